"""What the plan editor, the freeze page and the catalogue show."""
