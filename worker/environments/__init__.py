"""Environments: one interface (``base``), a registry, and the bundled ones. No torch, no Django."""
