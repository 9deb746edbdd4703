"""Same-state branching."""
