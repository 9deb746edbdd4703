"""Trials of a group on a hand-made repair task: U, D, statuses, agreement; real sandbox; blind selection."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import trial_world as world
from tests.engine.trial_world import BREAK_C, GARBAGE, MEND_A, MEND_B, READ, SUBMIT, TASK, Blobs, episode
from workbench.contracts.canonical import derive_uid, sha256_hex
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.records import GroupRecord, RewardComponent, TrajectoryRecord
from workbench.contracts.trials import (
    GroupTrials,
    InterventionRecord,
    TrialsResult,
    TrialsSpec,
    read_snapshots,
    tree_digest,
)
from workbench.contracts.wire import from_wire, parse_record, to_wire
from worker.engine import trial_choice
from worker.engine.counterfactual import plan_intervention
from worker.engine.identities import runtime_identity
from worker.engine.service import handle
from worker.engine.trial_choice import choices
from worker.engine.trials import run_group_trials
from worker.environments.code import CodeChanged
from worker.environments.registry import environment_code
from worker.verifiers.trial import Observed, TrialReport

VERSION = world.environment().version
STEPS = [READ, MEND_A, BREAK_C, SUBMIT]  # U = 1/2 - 1 = -1/2; blocks: 1 (a), 2 (c)


def tried(
    items: Sequence[TrajectoryRecord], environment: Any = None, **given: Any
) -> tuple[GroupTrials, TrialsResult, Blobs]:
    store = Blobs()
    spec = world.specification(world.group(items, VERSION), store, VERSION, **given)
    result = run_group_trials(spec, environment or world.environment(), store)
    return parse_record(GroupTrials, result.record_json.encode()), result, store


def seed_that_draws(item: TrajectoryRecord, decision: int) -> str:
    trees, _ = world.environment().trees(TASK, item.turns)
    for seed in map(str, range(50)):
        plan = plan_intervention(
            trees, own_seed=item.seed, seed=seed, has_format_error=False, is_test_path=lambda path: False
        )
        if plan.block is not None and plan.block.decision == decision:
            return seed
    raise AssertionError(f"no seed of 50 draws decision {decision}")


def test_a_trajectory_that_two_arms_have_in_common_loses_the_same_block_in_both() -> None:
    """Arms of one run seed share the seeds of their trajectories and nothing else that names them."""
    drawn = set()
    for seed in map(str, range(12)):
        item = replace(episode(0, STEPS), seed=seed)
        both = [replace(item, uid=str(derive_uid(None, f"{arm}{seed}"))) for arm in "BM"]
        plans = [choice.plan for choice in choices(world.group(both, VERSION), world.environment(), TASK, "3")]
        assert plans[0] is not None and plans[1] is not None
        assert plans[0].block is not None and plans[0].block == plans[1].block
        drawn.add(plans[0].block.decision)
    assert drawn == {1, 2}


@pytest.mark.parametrize(("decision", "without", "difference"), [(1, -1.0, 0.5), (2, 0.5, -1.0)])
def test_what_one_edit_did_is_measured_with_its_sign(decision: int, without: float, difference: float) -> None:
    """Final: a mended, c broken: U = 1/2 - 1 = -1/2.

    Without the mend of a: U = 0 - 1 = -1, D = -1/2 + 1 = 1/2. Without the harm to c: U = 1/2, D = -1/2 - 1/2 = -1.
    Tokens are 5, 6, 7, 8: L = 26, m = 6 or 7. Two paths differ in the end, the block touches one: share 1/2.
    """
    item = episode(0, STEPS)
    found, result, _ = tried([item], seed=seed_that_draws(item, decision))
    (record,) = found.interventions
    assert (record.status, record.selected, record.original_utility) == ("available", decision, -0.5)
    assert (record.without_utility, record.difference) == (without, difference)
    assert (record.policy_tokens, record.selected_tokens) == (26, 5 + decision)
    assert (record.final_paths, record.touched_share, record.is_empty_patch) == (2, 0.5, False)
    assert [(block.decision, block.paths, block.eligible) for block in record.blocks] == [
        (1, ("a.py",), True), (2, ("c.py",), True),
    ]  # fmt: skip
    assert [trial.kind for trial in found.trials] == ["original", "intervention"]
    assert found.trials[1].level["backend"] == "bubblewrap" and found.trials[1].exit_code == 0
    (timing,) = result.timings
    assert timing.trial_uid == found.trials[1].uid and timing.service_s >= timing.run_s > 0


def test_every_status_has_its_case() -> None:
    """Slot 0 ends in garbage, 1 edits nothing, 2 is infrastructure-invalid, 3 has no verdict in its reward."""
    spoilt, idle = episode(0, [MEND_A, GARBAGE]), episode(1, [READ, SUBMIT])
    turns, terminal = world.played([MEND_A, SUBMIT])
    invalid = world.trajectory(2, turns, terminal, None, invalid="EnvironmentFault: gone")
    reward = world.environment().reward(TASK, turns, terminal)
    style = RewardComponent("style", 1.0, 0.5, 0.5, "measured", {})
    silent = world.trajectory(3, turns, terminal, replace(reward, components=(style,), total=0.5))
    found, result, _ = tried([spoilt, idle, invalid, silent])
    by_slot = {item.slot: item for item in found.interventions}
    assert [by_slot[slot].status for slot in range(4)] == [
        "format_error", "no_eligible_block", "no_original_utility", "no_original_utility",
    ]  # fmt: skip
    assert by_slot[0].selected is None and by_slot[0].blocks[0].eligible and by_slot[0].original_utility == 0.5
    assert by_slot[1].blocks == () and by_slot[1].touched_share is None and by_slot[1].final_paths == 0
    assert by_slot[2].final_tree_sha256 is None and "gone" in str(by_slot[2].detail)
    assert by_slot[3].selected == 0 and by_slot[3].without_utility is None  # chosen, never executed
    assert all(item.difference is None for item in found.interventions) and result.timings == ()
    assert [trial.kind for trial in found.trials] == ["original", "original"]


def test_overwritten_and_undone_edits_are_no_candidates() -> None:
    """a is mended (0), broken again (1): block 0 is overwritten, block 1's removal would change the tree.

    b is written with what it holds anyway: no block at all.
    """
    item = episode(0, [MEND_A, world.edit("a.py", "return x - y"), world.edit("b.py", "return x * 3"), SUBMIT])
    (record,) = tried([item])[0].interventions
    assert [(block.decision, block.eligible, block.reason) for block in record.blocks] == [
        (0, False, "overwritten"), (1, True, None),
    ]  # fmt: skip
    assert record.selected == 1 and record.final_paths == 0 and record.touched_share is None
    assert (record.original_utility, record.without_utility, record.difference) == (0.0, 0.5, -0.5)


def test_replays_and_repeats_agree_and_an_arm_that_only_chooses_executes_nothing() -> None:
    item = episode(0, [MEND_A, MEND_B, SUBMIT])
    found, result, _ = tried([item], replays=2, repeats=1)
    (record,) = found.interventions
    assert (record.replays_agree, record.replays, record.repeats_agree, record.repeats) == (2, 2, 1, 1)
    assert record.original_utility == 1.0 and found.trials[0].success is True and record.difference == 0.5
    assert len(result.timings) == 4 and len({trial.uid for trial in found.trials}) == 5
    chosen, quiet, _ = tried([item], mode="select")
    assert (chosen.interventions[0].status, chosen.interventions[0].selected) == ("selected", record.selected)
    assert chosen.interventions[0].difference is None and quiet.timings == ()


def test_two_calls_give_the_same_bytes_and_snapshots_rebuild_the_trees() -> None:
    items = [episode(slot, STEPS) for slot in range(2)]
    first, result, store = tried(items)
    second, again, _ = tried(items)
    assert result.record_sha256 == again.record_sha256 and first == second
    snapshots = read_snapshots(store[str(first.snapshots_sha256)])
    trees = snapshots.trees(items[0].uid)
    assert len(trees) == 5 and tree_digest(trees[-1]) == first.interventions[0].final_tree_sha256
    assert snapshots.contents[trees[-1]["c.py"]] == b"def one():  # 1\n    return 2\n"
    assert sha256_hex(world.FILES["b.py"].encode()) not in snapshots.contents  # no block touched it


def test_an_artefact_that_breaks_is_failed_with_its_cause_and_never_unknown() -> None:
    """c exits with 0 when it is called: that is a failed test. U = 1/2 - 1; without the mend of a: 0 - 1; D = 1/2."""
    item = episode(0, [MEND_A, world.edit("c.py", "raise SystemExit(0)"), SUBMIT])
    found, _, _ = tried([item], seed=seed_that_draws(item, 0))
    causes = {test.test: test.cause for test in found.trials[1].observed}
    assert found.trials[1].complete and causes["one"] == "assertion" and causes["add"] == "assertion"
    assert found.interventions[0].difference == 0.5


# --- refusals -------------------------------------------------------------------------------------


def test_actions_that_do_not_lead_to_the_recorded_states_are_refused() -> None:
    item = episode(0, STEPS)
    forged = replace(item, turns=(*item.turns[:-1], replace(item.turns[-1], state_after_sha256="f" * 64)))
    with pytest.raises(EnvironmentFault, match="turn 3: got state"):
        tried([forged])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree_sha256": "0" * 64}, "tree_sha256: got 0000"),
        ({"verifier": "other/9"}, "verifier: got other/9"),
        ({"observed": {"add": "PASSED", "double": "PASSED", "one": "PASSED"}}, "got U -0.5, expected 1"),
    ],
)
def test_a_reward_of_another_tree_verifier_or_verdict_is_refused(change: dict[str, Any], message: str) -> None:
    item = episode(0, STEPS)
    assert item.reward is not None
    first, *rest = item.reward.components
    parts = (replace(first, detail={**first.detail, **change}), *rest)
    with pytest.raises(EngineFault, match=message):
        tried([replace(item, reward=replace(item.reward, components=parts))])


@pytest.mark.parametrize(
    "given", [{"mode": "guess"}, {"replays": -1}, {"repeats": 17}, {"replays": True}, {"unheard": 1}]
)
def test_unknown_settings_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(EngineFault, match="settings: got"):
        tried([episode(0, [SUBMIT])], **given)


def test_an_environment_without_artefacts_and_a_changed_record_are_refused() -> None:
    from worker.environments.evidence_search.environment import EvidenceSearch

    store = Blobs()
    spec = world.specification(world.group([episode(0, [SUBMIT])], VERSION), store, VERSION)
    with pytest.raises(EngineFault, match="evidence_search, which keeps no artefacts"):
        run_group_trials(spec, EvidenceSearch({}), store)
    with pytest.raises(EngineFault, match="record_sha256: got"):
        run_group_trials(replace(spec, record_sha256="0" * 64), world.environment(), store)


# --- what a trial says ----------------------------------------------------------------------------


class Told:
    """The environment with verdicts of its own: statuses by tree, drawn once; never a sandbox."""

    id, version, verifier = "code_repair", VERSION, world.environment().verifier

    def __init__(self, verdicts: Mapping[str, Sequence[bool]] | None = None, **changes: Any) -> None:
        self.verdicts, self.changes = verdicts or {}, changes
        self.trees, self.lists = world.environment().trees, world.environment().lists
        self.is_test_path = world.environment().is_test_path

    def trial(self, task: Any, files: Mapping[str, bytes]) -> TrialReport:
        tree = tree_digest({path: sha256_hex(data) for path, data in files.items()})
        passed = self.verdicts.get(tree, (True, True, True))
        observed = tuple(
            Observed(test["id"], "PASSED", None, "value") if good else Observed(test["id"], "FAILED", "exit", "exit: ")
            for test, good in zip(world.TESTS, passed, strict=True)
        )
        report = TrialReport(
            self.verifier, tree, True, observed, None, 0, None, sha256_hex(b"o"), sha256_hex(b"e"), 0.1, 0.2, 0.3, {}
        )
        return replace(report, **self.changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verifier": "other/1"}, "got other/1"),
        ({"tree_sha256": "0" * 64}, "on 0000"),
        ({"reused_from": "x"}, "reused from x, expected a fresh one"),
    ],
)
def test_a_report_of_something_else_or_of_before_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineFault, match=message):
        tried([episode(0, STEPS)], Told(**change))


def test_a_report_that_lacks_a_test_is_unknown_even_if_it_calls_itself_complete() -> None:
    observed = (Observed("add", "PASSED", None, "value"),)
    found, _, _ = tried([episode(0, STEPS)], Told(observed=observed))
    (record,) = found.interventions
    assert (record.status, record.difference, record.without_utility) == ("trial_incomplete", None, None)
    assert record.selected is not None and found.trials[1].unknown == "a test of the lists without an observation"


def test_disagreeing_replays_are_counted_and_incomplete_ones_apart() -> None:
    item = episode(0, STEPS)  # its own verdict: add PASSED, double FAILED, one FAILED
    found, _, _ = tried([item], Told(), replays=3, repeats=2)
    (record,) = found.interventions
    assert (record.replays_agree, record.replays, record.repeats_agree, record.repeats) == (0, 3, 2, 2)
    unknown, _, _ = tried([item], Told(complete=False, unknown="away"), replays=3, repeats=2)
    (record,) = unknown.interventions
    assert (record.replays_agree, record.replays, record.repeats_agree, record.repeats) == (0, 0, 0, 0)
    assert (record.status, record.detail) == ("trial_incomplete", "away")


# --- blindness ------------------------------------------------------------------------------------

EPISODES = [episode(0, STEPS), episode(1, [MEND_A, MEND_B, BREAK_C, SUBMIT]), episode(2, [MEND_B, READ, SUBMIT])]
VERDICT = st.tuples(st.booleans(), st.booleans(), st.booleans())


def _selected(record: InterventionRecord) -> tuple[Any, ...]:
    return (
        record.selected, record.blocks, record.selected_tokens, record.without_tree_sha256, record.touched_share,
        record.is_empty_patch, record.final_paths,
    )  # fmt: skip


def _rewarded(item: TrajectoryRecord, verdict: Sequence[bool]) -> TrajectoryRecord:
    """The same episode, had the verifier said something else of its final tree."""
    assert item.reward is not None
    share, regression = (verdict[0] + verdict[1]) / 2, float(not verdict[2])
    first, second, third = item.reward.components
    said = {
        test["id"]: "PASSED" if good else "FAILED:assertion" for test, good in zip(world.TESTS, verdict, strict=True)
    }
    parts = (
        replace(first, value=share, points=share, detail={**first.detail, "observed": said}),
        replace(second, value=regression, points=-regression),
        third,
    )
    return replace(item, reward=replace(item.reward, components=parts))


@settings(max_examples=30, deadline=None)
@given(
    order=st.permutations(range(3)),
    said=st.lists(VERDICT, min_size=3, max_size=3),
    fresh=VERDICT,
    seed=st.integers(0, 2**64 - 1).map(str),
)
def test_permuting_verifier_results_changes_nothing_chosen(
    order: list[int], said: list[tuple[bool, bool, bool]], fresh: tuple[bool, bool, bool], seed: str
) -> None:
    """Whatever the verifier said of the final trees, in whatever order, and whatever it says of any other tree."""
    plain, _, _ = tried(EPISODES, Told(), seed=seed)

    class Other(Told):
        def trial(self, task: Any, files: Mapping[str, bytes]) -> TrialReport:
            self.verdicts = {tree_digest({path: sha256_hex(data) for path, data in files.items()}): fresh}
            return super().trial(task, files)

    items = [_rewarded(item, said[order[slot]]) for slot, item in enumerate(EPISODES)]
    other, _, _ = tried(items, Other(), seed=seed)
    assert [_selected(item) for item in other.interventions] == [_selected(item) for item in plain.interventions]
    assert other.snapshots_sha256 == plain.snapshots_sha256


def test_what_chooses_takes_turns_and_a_seed_and_nothing_that_holds_a_verdict() -> None:
    assert list(inspect.signature(trial_choice.choose).parameters) == [
        "artefacts", "task", "turns", "own_seed", "terminal", "seed",
    ]  # fmt: skip
    source = inspect.getsource(trial_choice)
    assert "reward" not in source.partition('"""')[2].partition('"""')[2].replace("no reward", "")


def test_the_group_is_read_as_recorded() -> None:
    found, _, _ = tried(EPISODES)
    record = world.group(EPISODES, VERSION)
    assert isinstance(record, GroupRecord) and (found.group_uid, found.ordinal) == (record.uid, 3)
    assert found.fail_to_pass == ("add", "double") and found.pass_to_pass == ("one",)


# --- the operation --------------------------------------------------------------------------------


def test_the_operation_answers_as_the_function_does_and_refuses_other_code_and_runtimes(tmp_path: Path) -> None:
    """Through the service and plain values, as the runner calls it; a job is held to the code that the plan binds."""
    store, item = Blobs(), episode(0, STEPS)
    code = environment_code(world.environment())
    spec = world.specification(world.group([item], VERSION), store, VERSION)
    reference = replace(spec.environment, code_sha256=code.sha256(), code=code.value())
    spec = replace(spec, environment=reference, runtime=runtime_identity("float32"))

    def ask(asked: TrialsSpec) -> dict[str, Any]:
        return handle("trials", to_wire(asked), store=store, cache_dir=tmp_path, progress=said.append)

    said: list[dict[str, Any]] = []
    result = from_wire(TrialsResult, ask(spec))
    assert result.record_sha256 == run_group_trials(spec, world.environment(), store).record_sha256
    assert said == [{"stage": "trials", "finished": 1}]
    with pytest.raises(EngineFault, match="runtime: got"):
        ask(replace(spec, runtime="0" * 64))
    with pytest.raises(CodeChanged, match="code_repair"):
        ask(replace(spec, environment=replace(reference, code_sha256="0" * 64)))
