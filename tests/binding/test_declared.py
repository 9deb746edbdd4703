# ruff: noqa: E501 - tables of values
"""Declared pieces: what names, days, paths and formulas may hold, and no number typed as one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.declared import check_declared
from evidence.binding.tokens import check_pieces

RIGHT = {
    "name": [
        "E2F", "O42-retry1", "RTX-4060", "RTX-4060 Laptop", "Qwen3", "Qwen3-VL-2B", "v2.1", "v2", "NF4", "M", "p95", "L1",
        "SafeEdit", "二进制", "vanilla", "mask_end", "SHA-256", "V001", "Qwen2.5", "GPU内存", "a/b@c", "fatal-mask-pair",
        "награда", "a" * 40, "M′",
    ],
    "code": [
        "docs/plan.md", "docs/a1.md", "fdd83033", "fb4613", "2049b9", "fatal_start", "improve.py", "a/b", "runs/a1.json",
        "2026-10-01_report.json", "fatal-mask-pair", "ab" * 32, "one_shot.py", "reward:v2", "report-3.pdf",
    ],
    "formula": [
        "M−B", "M", "s = min(1, c / |D|)", "C = 0", "a = 1", "M′ = M · [decision(t) < fatal_start]", "x_1 + x₀", "1 - p",
        "1 − λ", "clip(r, 0, 1)", "R^0", "(1 − p) · q", "max(−1, r)", "C = 0, D = 1", "C = 0 and D = 1", "Δ = M − B", "R = １",
    ],
    "date": ["2026-10-01", "2026-10", "2026-10-01/2026-10-03", "1900-01", "2100-12-31"],
}  # fmt: skip
WRONG = {
    "name": [
        "95 of 100 tasks solved", "reward rose by 0.5", "0.95 reward", "95", "three", "二十", "n=95%", "37 percent",
        "improves the reward", "reward 95", "Reward 95", "R 0.95", "p0.05", "95K", "95of100", "R-0.95", "Twenty Tasks",
        "half", "一半", "a" * 41, "A B C D", "R٩٥", "E²", "rеward", "R\u200b1", "X  Y", "+5", "X ", "MMXXVI", "R95%", "",
        "Reward Rose By-0.5", "reward0.95", "½ A", "A ９５",
    ],
    "code": [
        "1234567", "0.95_reward", "reward:+0.95", "reward:-0.95", "reward:0.95", "0.95", "95", "95%", "a b", "95/100",
        "reward/95", "reward-95", "reward_0.95", "95of100", "+0.95", "r٩٥", "r²", "x=95", "1e3", "1e12345", "three",
        "v:95", "reward-0.95.md", "r.0.95", "rеward", "x,95",
    ],
    "formula": [
        "0.95 = R", "R ∈ [0.1, 0.3]", "Δ = 1/2", "R is 95", "Δ = (0.5)", "Δ=+ 0.5", "Δ = 1e3", "Δ＝0.5", "x = 0.95",
        "p < 0.05", "95", "three", "Δ = .5", "Δ = ٠٫٥", "Δ = ½", "R > 0", "R ≥ 1", "R < 1", "R = -1", "R = 1 million",
        "R = 1 000", "R = 1%", "R ∈ [0, 1]", "Δ ≈ 1", "Δ == 1.0", "R = 1.", "R = XCV", "R = 一百", "x²", "R := 7",
        "R = clip(0.95)", "R = 1 - 0", "R 1", "1 R", "R <= 1", "R = 10", "R = max(0.1, x)", "R = 0·5", "R = 1,5",
        "R0.95", "R_0.5", "R^0.5", "R = 𝟗", "f(1, x)",
    ],
    "date": [
        "9500-12", "٠٩٥٠-01", "yesterday", "2026-13-01", "2026-02-30", "20261001", "09-28", "1899-12", "2101-01",
        "2026-10-01/95", "２０２６-10", "2026-W01-1", "0950-01-01", "2026-10-01/2026-10-02/2026-10-03", "",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in RIGHT.items() for value in values])
def test_a_declared_piece_is_right(kind: str, value: str) -> None:
    assert check_declared(kind, value) is None


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in WRONG.items() for value in values])
def test_no_number_is_typed_as_a_declared_piece(kind: str, value: str) -> None:
    """Each refusal says what was expected; in a text it has the piece's place."""
    expected = check_declared(kind, value)
    assert expected, (kind, value)
    if value:
        text = f"So {{{{{kind}:{value}}}}} tasks"
        (trouble,) = check_pieces(text, "en", figures=[], references=[])
        assert (
            trouble.code == kind and expected in trouble.message and text[trouble.start : trouble.stop] == trouble.text
        )


@given(st.text(max_size=30), st.sampled_from(["name", "code", "formula", "date"]))
def test_any_value_is_judged(value: str, kind: str) -> None:
    """And digits alone, with signs, spaces or points among them, are never right but as a day."""
    check_declared(kind, value)


@given(st.from_regex(r"[-+]?[0-9]{1,6}([., /][0-9]{1,4})?( of [0-9]{1,3})?%?", fullmatch=True))
def test_no_plain_number_is_right(value: str) -> None:
    assert all(check_declared(kind, value) for kind in ("name", "code", "formula", "date"))
