"""Benchmarks of the engine against `transformers` and TRL; see ``docs/benchmarks.md``."""
