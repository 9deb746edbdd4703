"""Template tags of the evidence."""
