"""Imported reference studies as data: sources, excerpts, figures, claims and notes of other people's work."""
