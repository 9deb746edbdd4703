"""Environment controls."""
