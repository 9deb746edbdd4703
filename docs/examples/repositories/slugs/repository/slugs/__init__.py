"""Short names for addresses."""
