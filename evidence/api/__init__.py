"""Evidence: api."""
