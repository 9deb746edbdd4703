"""Verifiers: what decides whether an artefact does what was asked."""
