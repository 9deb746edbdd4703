"""What comparison pages show: comparability first, then pairs, runs, checkpoints, discarded work, tokens."""
