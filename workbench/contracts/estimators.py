"""Unbiased estimators that the engine, the statistics and pages share. Pure arithmetic."""

from __future__ import annotations

import math


def check_counts(n: int, c: int, k: int) -> None:
    """Raise ``ValueError`` unless 1 <= k <= n and 0 <= c <= n."""
    if k < 1 or n < k:
        raise ValueError(f"k: got {k}, expected 1 <= k <= n with n = {n}")
    if not 0 <= c <= n:
        raise ValueError(f"c: got {c}, expected 0 <= c <= n with n = {n}")


def task_pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased pass@k of one task: 1 - C(n-c, k) / C(n, k), with ``c`` successes in ``n`` repeats (Chen et al. 2021).

    With n = k this is max over the repeats. Raises ``ValueError`` for n < k.
    """
    check_counts(n, c, k)
    total = math.comb(n, k)
    return (total - math.comb(n - c, k)) / total


def task_pass_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased pass^k of one task: C(c, k) / C(n, k). With n = k this is min over the repeats."""
    check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k)
