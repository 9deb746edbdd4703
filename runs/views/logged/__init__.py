"""Pages of runs that were logged from elsewhere, and of what their names and ours mean."""
