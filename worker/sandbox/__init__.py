"""Runs programs that nobody trusts: one interface, back ends ``bubblewrap`` and ``subprocess``."""
