"""Counter-based sampling noise: one uniform per (slot seed, decision, token index).

A value depends on its three coordinates and nothing else, so that a row draws the same numbers
whatever else is in its batch and in whichever order rows finish. The mixer is the finaliser of
splitmix64, applied once per coordinate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bijective 64-bit mix of every element (splitmix64: increment and finaliser)."""
    with np.errstate(over="ignore"):
        mixed = values + _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def uniforms(seed: str, decision: int, first: int, count: int) -> NDArray[np.float64]:
    """``count`` uniforms in [0, 1) for token indices ``first`` onwards of one decision.

    Multiples of 2**-52: the greatest value times any positive total stays below that total, which
    the inverse of a cumulative distribution relies on. ``seed`` is a decimal 64-bit string.
    """
    start = mix64(np.array([int(seed)], dtype=np.uint64))
    turn = mix64(start ^ np.uint64(decision))
    bits = mix64(turn ^ np.arange(first, first + count, dtype=np.uint64))
    return (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52
