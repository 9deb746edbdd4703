"""Readers of what becomes a source: names, folders that may be watched, git, our own documents. They write no row."""
