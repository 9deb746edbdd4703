"""Tests of excerpts and figures."""
