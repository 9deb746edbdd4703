"""Views of the comparison pages."""
