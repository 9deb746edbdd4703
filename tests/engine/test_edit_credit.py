"""Arms O, B, M and E against arithmetic worked by hand; identities of mass for any numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.errors import EngineFault
from worker.engine import edit_credit as module
from worker.engine.edit_credit import ARMS, EditCredit, IdentityViolated, edit_credit

DECISIONS = (0, 0, 0, 1, 1, 2, 2, 2, 2, 2)  # L = 10; decision 1 has m = 2


def credit(arm: str, **changes: object) -> EditCredit:
    values: dict[str, object] = {
        "advantage": 0.5, "decisions_T": DECISIONS, "selected": 1, "difference": 0.25, "unavailable": None,
        "weight": 0.4, "cap": 2.0,
    }  # fmt: skip
    return edit_credit(arm, **{**values, **changes})  # type: ignore[arg-type]


def test_localised_within_the_cap() -> None:
    """lambda D L / m = 0.4 * 0.25 * 10 / 2 = 0.5 <= 2: s = 1. Mass 2 * 0.5 = 1 = lambda D L."""
    found = credit("M")
    assert found.coefficients_T == (0, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0)
    assert (found.shrinkage, found.capped, found.signed_mass, found.l1_mass) == (1.0, False, 1.0, 1.0)
    assert found.squared_mass == 0.5


def test_broadcast_has_the_same_mass_and_a_fifth_of_the_squared_mass() -> None:
    """0.4 * 0.25 = 0.1 on ten tokens: mass 1, squared 10 * 0.01 = 0.1, which is m / L of the localised 0.5."""
    found = credit("B")
    assert found.coefficients_T == (0.1,) * 10
    assert found.signed_mass == pytest.approx(1.0, abs=1e-15) and found.l1_mass == pytest.approx(1.0, abs=1e-15)
    assert found.squared_mass == pytest.approx(0.1, abs=1e-15)


def test_the_cap_shrinks_both_alike() -> None:
    """D = -2: lambda D L / m = -4, cap 1: s = 1/4. M: -1 on two tokens; B: 0.4 * -2 / 4 = -0.2 on ten. Mass -2."""
    local, wide = credit("M", difference=-2.0, cap=1.0), credit("B", difference=-2.0, cap=1.0)
    assert local.coefficients_T[3:5] == (-1.0, -1.0) and set(wide.coefficients_T) == {-0.2}
    assert local.shrinkage == wide.shrinkage == 0.25 and local.capped and wide.capped
    assert local.signed_mass == pytest.approx(-2.0) and wide.signed_mass == pytest.approx(-2.0)
    assert local.l1_mass == pytest.approx(2.0) and wide.l1_mass == pytest.approx(2.0)


def test_the_terminal_arm_clips_and_never_reads_the_difference() -> None:
    """lambda A L / m = 0.4 * 0.5 * 5 = 1; with A = -3 it is -6, clipped at -2. D may be anything."""
    assert credit("E").coefficients_T[3:5] == (1.0, 1.0)
    low = credit("E", advantage=-3.0)
    assert low.coefficients_T[3:5] == (-2.0, -2.0) and low.capped and low.signed_mass == -4.0
    for difference, unavailable in ((None, "trial_incomplete"), (-2.0, None), (0.0, None)):
        assert credit("E", difference=difference, unavailable=unavailable).coefficients_T == credit("E").coefficients_T


def test_no_selection_gives_the_terminal_arm_nothing() -> None:
    found = credit("E", selected=None, difference=None, unavailable="no_eligible_block")
    assert found.coefficients_T == (0.0,) * 10 and found.status == "no_eligible_block"


def test_the_plain_arm_adds_nothing() -> None:
    found = credit("O")
    assert found.coefficients_T == (0.0,) * 10 and found.status == "none" and found.shrinkage is None


@pytest.mark.parametrize("arm", ["B", "M"])
def test_unavailable_is_a_status_and_no_difference_of_zero(arm: str) -> None:
    missing = credit(arm, difference=None, unavailable="trial_incomplete")
    zero = credit(arm, difference=0.0)
    assert missing.status == "trial_incomplete" and missing.difference is None and missing.shrinkage is None
    assert zero.status == "applied" and zero.difference == 0.0 and zero.shrinkage == 1.0
    assert missing.coefficients_T == zero.coefficients_T == (0.0,) * 10


@pytest.mark.parametrize("arm", ["B", "M"])
def test_a_turn_without_a_policy_token_gets_no_credit(arm: str) -> None:
    assert credit(arm, selected=7).status == "no_selected_token"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cap": 0.0}, "expected lambda >= 0 and a cap above 0"),
        ({"weight": -1.0}, "expected lambda >= 0"),
        ({"advantage": float("nan")}, "expected finite numbers"),
        ({"difference": float("inf")}, "expected finite numbers"),
        ({"unavailable": "trial_incomplete"}, "expected one of them"),
        ({"difference": None}, "expected one of them"),
    ],
)
def test_refused_numbers(changes: dict[str, object], message: str) -> None:
    with pytest.raises(EngineFault, match=message):
        credit("M", **changes)


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(EngineFault, match="expected one of O, B, M, E"):
        credit("X")


@pytest.mark.parametrize("arm", ["B", "M"])
def test_a_violated_identity_stops_the_update(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coefficient that was changed after the fact no longer has the mass of the definition."""
    made = module._made
    monkeypatch.setattr(module, "_made", lambda *args: replace(made(*args), signed_mass=made(*args).signed_mass + 1e-3))
    with pytest.raises(IdentityViolated, match=f"signed mass of arm {arm}"):
        credit(arm)


@pytest.mark.parametrize("name", ["signed_mass", "l1_mass"])
def test_a_mass_that_is_no_number_stops_the_update(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = module._made
    monkeypatch.setattr(module, "_made", lambda *args: replace(made(*args), **{name: float("nan")}))
    with pytest.raises(IdentityViolated, match="got nan"):
        credit("M")


FINITE = st.floats(-5, 5, allow_nan=False)


@given(
    counts=st.tuples(st.integers(1, 4000), st.integers(0, 4000)),
    difference=st.floats(-2, 2, allow_nan=False),
    advantage=st.floats(-1e9, 1e9, allow_nan=False),
    weight=st.floats(0, 1000, allow_nan=False),
    cap=st.floats(1e-6, 1000, allow_nan=False),
)
def test_masses_are_equal_over_all_that_a_plan_may_say(
    counts: tuple[int, int], difference: float, advantage: float, weight: float, cap: float
) -> None:
    """To 1e-9 of the mass, where that is above 1. ``counts``: tokens of the chosen turn, and of all others."""
    chosen, others = counts
    wide, local, terminal = (
        edit_credit(
            arm, advantage=advantage, decisions_T=[1] * chosen + [0] * others, selected=1, difference=difference,
            unavailable=None, weight=weight, cap=cap,
        )
        for arm in ("B", "M", "E")
    )  # fmt: skip
    for name in ("signed_mass", "l1_mass"):
        one, other = getattr(wide, name), getattr(local, name)
        assert abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other)), name
    assert wide.shrinkage == local.shrinkage and 0 <= (local.shrinkage or 0) <= 1
    assert all(abs(value) <= cap * (1 + 1e-12) for value in (*local.coefficients_T[:1], *terminal.coefficients_T[:1]))
    assert set(terminal.coefficients_T[chosen:]) <= {0.0} and set(local.coefficients_T[chosen:]) <= {0.0}


@given(
    decisions=st.lists(st.integers(0, 4), min_size=1, max_size=60).map(sorted),
    place=st.integers(0, 59),
    difference=st.floats(-2, 2, allow_nan=False),
    advantage=FINITE,
    weight=st.floats(0, 3, allow_nan=False),
    cap=st.floats(0.01, 5, allow_nan=False),
)
def test_masses_and_bounds_for_any_numbers(
    decisions: list[int], place: int, difference: float, advantage: float, weight: float, cap: float
) -> None:
    """NumPy says the same; B and M have equal signed and L1 mass; no coefficient of M or E exceeds the cap."""
    selected = decisions[place % len(decisions)]
    found = {
        arm: edit_credit(
            arm, advantage=advantage, decisions_T=decisions, selected=selected, difference=difference, unavailable=None,
            weight=weight, cap=cap,
        )
        for arm in ARMS
    }  # fmt: skip
    indicator = np.array(decisions) == selected
    tokens, count = len(decisions), int(indicator.sum())
    raw = weight * difference * tokens / count
    s = 1.0 if raw == 0 else min(1.0, cap / abs(raw))
    np.testing.assert_allclose(found["M"].coefficients_T, s * raw * indicator, atol=1e-12)
    np.testing.assert_allclose(found["B"].coefficients_T, np.full(tokens, s * weight * difference), atol=1e-12)
    terminal = np.clip(weight * advantage * tokens / count, -cap, cap) * indicator
    np.testing.assert_allclose(found["E"].coefficients_T, terminal, atol=1e-12)
    assert found["M"].signed_mass == pytest.approx(found["B"].signed_mass, abs=1e-9)
    assert found["M"].l1_mass == pytest.approx(found["B"].l1_mass, abs=1e-9)
    assert max(map(abs, found["M"].coefficients_T)) <= cap * (1 + 1e-12)
    assert found["M"].squared_mass >= found["B"].squared_mass - 1e-12
