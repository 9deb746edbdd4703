"""Evaluation statistics: estimators, task bootstrap and the aggregate of an evaluation.

Pure Python and numpy: neither Django nor torch. Reads item facts, writes canonical-JSON-able values.
"""
