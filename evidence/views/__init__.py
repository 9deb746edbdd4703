"""Evidence: views."""
