"""Readings: rules over several metrics, each a hypothesis with its evidence and the experiment that would tell."""
