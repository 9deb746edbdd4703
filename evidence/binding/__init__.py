"""Binding: where in a source's bytes an excerpt or a number stands, and what is derived from bound numbers."""
