"""What leaves the house and can be checked elsewhere: signed heads, bundles, crates, sites, plans of other forms."""
