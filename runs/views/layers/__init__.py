"""Pages of the six layers."""
