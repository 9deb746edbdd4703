"""REST API v1."""
