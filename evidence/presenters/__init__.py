"""Evidence: presenters."""
