"""Checks that an own environment and its reward must pass; ``examine`` runs them. No torch, no Django."""
