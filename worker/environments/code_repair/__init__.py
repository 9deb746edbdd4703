"""Repair small code bases: edits by line, visible tests, hidden tests by a verifier outside."""
