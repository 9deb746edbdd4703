"""Evidence: notes."""
