"""Arms O, B, M and E through the real update: masses by hand, identities, zero-variance groups, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine import edit_world as ew
from tests.engine.test_update import collected, run, update_spec
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import UpdateSpec
from workbench.contracts.records import TrajectoryRecord, UpdateRecord
from workbench.contracts.trials import SELECT, SELECTED, TRIAL_INCOMPLETE, UNAVAILABLE
from workbench.tracefile import Trace, read_frame
from worker.engine import edit_credit
from worker.engine.edit_credit import IdentityViolated

__all__ = ["collected"]
ARMS = ("edit_broadcast", "edit_localised", "edit_terminal")


def first_frames(world: Any, record: UpdateRecord) -> dict[str, Trace]:
    blob = world.store.get(record.trace_blob_sha256)
    refs = [ref for ref in record.traces if ref.step == record.steps[0].step]
    return {ref.trajectory_uid: read_frame(blob[ref.offset :][: ref.length], ref.frame_sha256) for ref in refs}


def value_of(answer: Any, name: str, **labels: str) -> tuple[float | None, int | None]:
    (found,) = [m for m in answer.metrics if m.definition == f"{name}/1" and labels.items() <= m.labels.items()]
    return found.value, found.count


def test_coefficients_are_added_to_the_advantages_of_the_tokens(collected: Any) -> None:
    """D = 0.25, lambda 1, cap 100: M adds 0.25 * L / m on the first turn, B 0.25 everywhere; so says the trace."""
    world, result = collected
    for credit in ("edit_localised", "edit_broadcast"):
        spec = ew.edit_spec(world, result, credit, ew.everywhere(0.25), objective={"edit_cap": 100.0})
        record, _ = run(world, spec)
        frames = first_frames(world, record)
        assert record.skipped is None and len(frames) == len(record.credits)
        for item in record.credits:
            assert item.edit is not None and item.trained_tokens == item.policy_tokens
            decisions = np.array(frames[item.trajectory_uid].decisions)
            chosen = decisions == item.edit.selected
            assert (item.edit.tokens, item.edit.selected_tokens) == (len(decisions), int(chosen.sum()))
            local = 0.25 * len(decisions) / chosen.sum()
            added = np.where(chosen, local, 0.0) if credit == "edit_localised" else np.full(len(decisions), 0.25)
            got = np.array(frames[item.trajectory_uid].advantages)
            assert np.array_equal(got, (item.advantage + added).astype(np.float32))
            assert item.edit.signed_mass == pytest.approx(0.25 * len(decisions), abs=1e-9)
            assert (item.edit.status, item.edit.difference, item.edit.shrinkage) == ("applied", 0.25, 1.0)


def test_the_broadcast_and_the_localised_arm_have_equal_masses_and_other_gradients(collected: Any) -> None:
    """Cap 0.5: s = 0.5 / |D L / m| in both. Signed and L1 mass agree by trajectory; squared mass and weights do not."""
    world, result = collected

    def choose(slot: int, item: TrajectoryRecord) -> ew.Choice:
        return "available", item.turns[-1].decision, (-0.75, 0.0, 0.5, 1.25)[slot]

    found = [run(world, ew.edit_spec(world, result, credit, choose, objective={"edit_cap": 0.5}))[0]
             for credit in ("edit_broadcast", "edit_localised")]  # fmt: skip
    for left, right in zip(found[0].credits, found[1].credits, strict=True):
        assert left.edit is not None and right.edit is not None
        assert left.edit.shrinkage == right.edit.shrinkage
        assert left.edit.signed_mass == pytest.approx(right.edit.signed_mass, abs=1e-9)
        assert left.edit.l1_mass == pytest.approx(right.edit.l1_mass, abs=1e-9)
        if right.edit.difference and right.edit.selected_tokens < right.edit.tokens:
            assert right.edit.squared_mass > left.edit.squared_mass
    assert found[0].adapter_after != found[1].adapter_after
    assert any(item.edit is not None and item.edit.capped for item in found[0].credits)


@pytest.mark.parametrize("credit", ARMS)
def test_the_ratio_is_exactly_one_at_the_first_step(collected: Any, credit: str) -> None:
    world, result = collected
    record, _ = run(world, ew.edit_spec(world, result, credit, ew.everywhere(0.5)))
    assert record.steps[0].ratio_max_deviation == 0.0 and record.steps[0].kl_k3 == 0.0
    assert record.steps[1].ratio_max_deviation > 0.0 and record.adapter_after != record.adapter_before


def test_the_plain_arm_is_vanilla_to_the_byte_whether_its_groups_were_tried_or_not(collected: Any) -> None:
    """The same bytes as an objective that knows nothing of edits, but for the objective that the record repeats."""
    world, result = collected
    plain, _ = run(world, update_spec(world, result))
    fields = {"edit_weight": 0.25, "edit_cap": 3.0}
    _, with_fields = run(world, update_spec(world, result, objective=fields))
    tried = ew.edit_spec(world, result, "vanilla", ew.everywhere(0.5), objective=fields)
    record, answer = run(world, tried)
    assert answer.record_json == with_fields.record_json
    assert record == replace(plain, objective=record.objective)
    assert all(item.edit is None for item in record.credits) and record.trials == {}
    assert not [item for item in answer.metrics if item.definition.startswith("l3.edit_")]


def test_unavailable_adds_nothing_and_says_why(collected: Any) -> None:
    """Every trajectory unavailable: the weights are vanilla's, and no D of 0 stands anywhere."""
    world, result = collected

    def choose(slot: int, item: TrajectoryRecord) -> ew.Choice:
        return UNAVAILABLE[slot], None, None

    plain, _ = run(world, update_spec(world, result))
    for credit in ARMS:
        record, answer = run(world, ew.edit_spec(world, result, credit, choose))
        assert record.adapter_after == plain.adapter_after and record.trace_blob_sha256 == plain.trace_blob_sha256
        seen = {item.edit.status for item in record.credits if item.edit is not None}
        assert seen <= set(UNAVAILABLE) and len(seen) > 1
        assert all(item.edit is not None and item.edit.difference is None for item in record.credits)
        arm = record.credits[0].edit.arm  # type: ignore[union-attr]
        assert value_of(answer, "l3.edit_unavailable_share", arm=arm, reason="format_error")[0] == pytest.approx(0.25)
        assert value_of(answer, "l3.edit_l1_mass", arm=arm)[0] == 0.0
        assert value_of(answer, "l3.edit_selected_share", arm=arm) == (None, 0)


def test_the_terminal_arm_never_reads_the_difference(collected: Any) -> None:
    """D of another sign, or no trial at all: the same weights, trace and records but the trials' own hash."""
    world, result = collected

    def broken(slot: int, item: TrajectoryRecord) -> ew.Choice:
        return TRIAL_INCOMPLETE, item.turns[0].decision, None

    def chosen(slot: int, item: TrajectoryRecord) -> ew.Choice:
        return SELECTED, item.turns[0].decision, None

    found = [
        run(world, ew.edit_spec(world, result, "edit_terminal", choose, mode=mode))[0]
        for choose, mode in (
            (ew.everywhere(0.75), "execute"), (ew.everywhere(-1.5), "execute"), (broken, "execute"), (chosen, SELECT)
        )
    ]  # fmt: skip
    for other in found[1:]:
        assert other.trials != found[0].trials
        assert replace(other, trials=found[0].trials) == found[0]
    terms = [item.edit for item in found[0].credits if item.edit is not None]
    assert all(term.difference is None and term.shrinkage is None for term in terms)
    for item in found[0].credits:  # clip(A L / m, -1, 1) on the chosen tokens
        assert item.edit is not None
        raw = item.advantage * item.edit.tokens / item.edit.selected_tokens
        assert item.edit.signed_mass == pytest.approx(float(np.clip(raw, -1, 1)) * item.edit.selected_tokens)
        assert item.edit.capped == (abs(raw) > 1)


def test_a_group_without_variance_trains_through_its_edits_alone_and_is_counted_apart(collected: Any) -> None:
    world, result = collected
    rule = {"zero_variance": "train_if_credit"}

    def spec(credit: str, choose: ew.Choose, **objective: Any) -> UpdateSpec:
        made = ew.edit_spec(world, result, credit, choose, objective=objective)
        groups = (made.groups[0], *(ew.tried(group, choose) for group in ew.flat(made.groups[1:])))
        return replace(made, groups=groups)

    record, answer = run(world, spec("edit_localised", ew.everywhere(0.5), **rule))
    signal = [uid for uid in record.trained_group_uids if uid not in record.edit_only_group_uids]
    assert len(record.edit_only_group_uids) == 3 and len(record.trained_group_uids) == 3 + len(signal)
    flat = [item for item in record.credits if item.group_uid in record.edit_only_group_uids]
    assert len(flat) == 12 and all(item.advantage == 0.0 for item in flat)
    assert value_of(answer, "l3.edit_only_groups", arm="M") == (3 / len(record.trained_group_uids), 3 + len(signal))
    skipping, _ = run(world, spec("edit_localised", ew.everywhere(0.5), zero_variance="skip"))
    assert skipping.edit_only_group_uids == () and len(skipping.trained_group_uids) == len(signal)
    for credit, choose in (("edit_localised", ew.everywhere(0.0)), ("edit_terminal", ew.everywhere(0.5))):
        other, _ = run(world, spec(credit, choose, **rule))
        assert other.edit_only_group_uids == () and len(other.trained_group_uids) == len(signal)
        assert len(other.trials) == 4, "groups that were read and not trained are named too"


def test_nothing_but_groups_without_variance_and_difference_is_no_credit(collected: Any) -> None:
    world, result = collected
    made = ew.edit_spec(world, result, "edit_broadcast", ew.everywhere(0.0),
                        objective={"zero_variance": "train_if_credit"})  # fmt: skip
    groups = tuple(ew.tried(group, ew.everywhere(0.0)) for group in ew.flat(made.groups))
    record, _ = run(world, replace(made, groups=groups))
    assert record.skipped == "no_credit" and record.adapter_after == record.adapter_before


def test_a_violated_identity_stops_the_update(collected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A localised term with a tenth too much mass: nothing is written, and the next update is undisturbed."""
    world, result = collected
    spec = ew.edit_spec(world, result, "edit_localised", ew.everywhere(0.25))
    plain = edit_credit._made

    def heavier(arm: str, found: tuple[float, ...], *rest: Any) -> Any:
        return plain(arm, tuple(1.1 * value for value in found), *rest)

    before = set(world.store.blobs)
    with monkeypatch.context() as patch:
        patch.setattr(edit_credit, "_made", heavier)
        with pytest.raises(IdentityViolated, match="signed mass of arm M"):
            run(world, spec)
    assert set(world.store.blobs) == before
    assert run(world, spec)[0].skipped is None


def test_metrics_of_an_arm_by_hand(collected: Any) -> None:
    """Of four slots one is unavailable, one has D = 0 and two meet the cap of 0.125 with D = 1 and -1."""
    world, result = collected

    def choose(slot: int, item: TrajectoryRecord) -> ew.Choice:
        choices = ((TRIAL_INCOMPLETE, 0, None), ("available", 0, 0.0), ("available", 0, 1.0), ("available", 0, -1.0))
        return choices[slot]

    record, answer = run(world, ew.edit_spec(world, result, "edit_localised", choose, objective={"edit_cap": 0.125}))
    count = len(record.credits)
    assert value_of(answer, "l3.edit_capped_share", arm="M") == (pytest.approx(2 / 3), count * 3 // 4)
    assert value_of(answer, "l3.edit_nonzero_share", arm="M") == (pytest.approx(2 / 3), count * 3 // 4)
    assert value_of(answer, "l3.edit_unavailable_share", reason="trial_incomplete") == (0.25, count)
    assert value_of(answer, "l3.edit_unavailable_share", reason="format_error") == (0.0, count)
    terms = [item.edit for item in record.credits if item.edit is not None]
    selected = sum(term.selected_tokens for term in terms if term.difference)
    signed = value_of(answer, "l3.edit_signed_mass", arm="M")[0]
    sums = [np.sign(term.difference) * 0.125 * term.selected_tokens for term in terms if term.difference]
    assert signed == pytest.approx(sum(sums) / count, abs=1e-12)
    mass = value_of(answer, "l3.edit_l1_mass", arm="M")[0]
    assert mass == pytest.approx(0.125 * selected / count)
    squared = value_of(answer, "l3.edit_squared_mass", arm="M")[0]
    assert squared == pytest.approx(0.125**2 * selected / count)
    applied = [term for term in terms if term.status == "applied"]
    shares = [term.selected_tokens / term.tokens for term in applied]
    assert value_of(answer, "l3.edit_selected_share", arm="M")[0] == pytest.approx(float(np.median(shares)))
    sizes = [1.0 if not term.difference else 0.125 * term.selected_tokens / term.tokens for term in applied]
    assert value_of(answer, "l3.edit_shrinkage", arm="M")[0] == pytest.approx(float(np.median(sizes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group_uid": "other"}, r"trials\.group_uid: got other"),
        ({"uid": "other"}, r"trials\.uid: got other"),
        ({"run_uid": "other"}, r"trials\.run_uid: got other"),
        ({"plan_sha256": "1" * 64}, r"trials\.plan_sha256: got 1111"),
        ({"ordinal": 9}, r"trials\.ordinal: got 9"),
        ({"purpose": "preflight"}, r"trials\.purpose: got preflight, expected train"),
        ({"interventions": ()}, r"trials\.interventions: got \[\]"),
        ({"mode": "select"}, r"settings\.mode: got select, expected execute"),
    ],
)
def test_trials_of_something_else_are_refused(collected: Any, changes: dict[str, Any], message: str) -> None:
    world, result = collected
    spec = ew.edit_spec(world, result, "edit_broadcast", ew.everywhere(0.5))
    groups = (ew.tried(spec.groups[0], ew.everywhere(0.5), **changes), *spec.groups[1:])
    with pytest.raises(EngineFault, match=message):
        run(world, replace(spec, groups=groups))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("difference", 0.75, r"difference: got 0\.75, expected 0\.5"),
        ("difference", None, r"difference: got None, expected 0\.5"),
        ("without_utility", None, r"difference: got 0\.5, expected None"),
        ("status", "selected", r"status: got selected"),
        ("status", "fine", r"status: got fine"),
        ("selected", None, r"selected: got None"),
        ("policy_tokens", 1, r"policy_tokens, selected_tokens: got \(1, "),
        ("selected_tokens", 1000, r"policy_tokens, selected_tokens: got"),
    ],
)
def test_an_intervention_that_contradicts_itself_is_refused(
    collected: Any, field: str, value: Any, message: str
) -> None:
    world, result = collected
    spec = ew.edit_spec(world, result, "edit_localised", ew.everywhere(0.5))
    record = ew.trials_of_group(
        ew.parse_record(ew.GroupRecord, spec.groups[0].record_json.encode()), ew.everywhere(0.5)
    )
    wrong = (replace(record.interventions[0], **{field: value}), *record.interventions[1:])
    groups = (ew.tried(spec.groups[0], ew.everywhere(0.5), interventions=wrong), *spec.groups[1:])
    with pytest.raises(EngineFault, match=message):
        run(world, replace(spec, groups=groups))


def test_missing_or_altered_trials_are_refused(collected: Any) -> None:
    world, result = collected
    spec = ew.edit_spec(world, result, "edit_broadcast", ew.everywhere(0.5))
    none = replace(spec.groups[0], trials_json=None, trials_sha256=None)
    with pytest.raises(EngineFault, match="trials: got none, expected the trials of a group"):
        run(world, replace(spec, groups=(none, *spec.groups[1:])))
    other = replace(spec.groups[0], trials_sha256=sha256_hex(b"other"))
    with pytest.raises(EngineFault, match=r"trials\.sha256: got"):
        run(world, replace(spec, groups=(other, *spec.groups[1:])))
