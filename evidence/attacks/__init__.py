"""The attack suite: a small world, attempts to falsify it, and what finds each of them."""
