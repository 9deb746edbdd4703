"""Measurements of the server against a real MLflow server, side by side."""
