"""Pure functions that turn rows into what a template shows. They write nothing."""
