"""Runs that were logged from elsewhere: their list, one run, its foreign rollouts."""
