"""Trials as jobs: when they are made, that updates wait, what is stored, and that a trial that fails ends no run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from evidence.verify import verify
from runs.actions import jobs
from runs.actions.advance import progress_of
from runs.actions.closure import closure_of, run_manifest
from runs.actions.documents import AlreadyRecorded
from runs.actions.record_trials import parse_trials
from runs.models import Document, Execution, Group, Intervention, Job, Receipt, Trial, TrialSet, UpdateBatch
from runs.storage import blob_store
from tests.runs import trials_double
from tests.runs.scripted import Lab, head_of, run_of
from tests.runs.test_advance import ALONE, told
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import ContractError, RecordError
from workbench.contracts.trials import TrialsResult, read_snapshots
from workbench.contracts.wire import record_bytes
from worker import handoff, lifecycle, recorder_trials
from worker.runner_client import RunnerDied, RunnerFailed

pytestmark = pytest.mark.django_db

STEPS = (1, 3, 4, 5, 9)  # the scripted engine's updates are no real arithmetic, which the other steps know


def arm(key: str, credit: str) -> dict[str, Any]:
    return {"key": key, "role": "main", "title": {"en": key}, "overrides": {"objective": {"credit": credit}}}


SECTION = {"seed": "7", "pilot": False}
TRIED: dict[str, Any] = {**ALONE, "arms": [arm("M", "edit_localised")], "trials": SECTION}
PILOT: dict[str, Any] = {
    **TRIED,
    "preflight": {"groups": 2, "max_zero_variance_share": 0.5},
    "trials": {"seed": "7", "pilot": True, "replays": 2, "repeats": 1},
}


@pytest.fixture
def tried(lab: Lab) -> Lab:
    lab.script.components = trials_double.components
    return lab


def trial_states(execution: Execution) -> dict[str, str]:
    rows = Job.objects.filter(execution=execution, kind="run_trials").values_list("key", "state")
    return {key.split(":", 1)[1]: state for key, state in rows}


def test_every_training_group_of_an_edit_arm_is_tried_before_its_update(tried: Lab) -> None:
    """Two batches of one group of two slots: one job a group, one intervention a slot, one execution each.

    U = 1/2 with the block, 0 without (f1 fails): D = 0.5 - 0 = 0.5.
    """
    execution = tried.start(**TRIED)
    expected = progress_of(execution)["expected"]
    done = tried.drive(execution)
    assert execution.state == "closed" and len(done) == expected
    assert trial_states(execution) == {"trials:train:0": "succeeded", "trials:train:1": "succeeded"}
    order = [key.split(":", 1)[1] for key in done]
    for batch in "01":
        assert order.index(f"collect:{batch}") < order.index(f"trials:train:{batch}") < order.index(f"update:{batch}")
    assert Job.objects.filter(kind="run_trials").values_list("queue", flat=True).distinct().get() == "trial"
    assert TrialSet.objects.count() == 2 and Intervention.objects.count() == 4
    for row in Intervention.objects.all():
        assert (row.status, row.selected, row.difference) == ("available", 0, 0.5)
        assert (row.original_utility, row.without_utility) == (0.5, 0.0)
        assert (row.policy_tokens, row.selected_tokens, row.final_paths, row.touched_share) == (3, 3, 1, 1.0)
        assert row.is_empty_patch is True and (row.replays, row.repeats) == (0, 0)
    assert sorted(Trial.objects.values_list("kind", flat=True)) == ["intervention"] * 4 + ["original"] * 4
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_timings_and_isolation_stand_in_rows_and_receipt_and_in_no_hash(tried: Lab) -> None:
    execution = tried.start(**TRIED)
    tried.drive(execution)
    body = told("trials.recorded")[0]
    assert (body["executed"], body["incomplete"], body["mode"]) == (2, 0, "execute")
    assert body["interventions"] == {"available": 2} and body["levels"] == [trials_double.LEVEL]
    row = Trial.objects.filter(kind="intervention").order_by("pk")[0]
    assert body["timings"][0] == [str(row.uid), row.queue_s, row.setup_s, row.run_s, row.cleanup_s, row.service_s]
    assert (row.setup_s, row.run_s, row.cleanup_s, row.service_s) == (0.25, 0.5, 0.125, 1.0)
    assert row.queue_s is not None and row.queue_s >= 1  # the clock's first second, and what the job waited
    original = Trial.objects.filter(kind="original").order_by("pk")[0]
    assert (original.queue_s, original.service_s, original.stdout_sha256, original.level) == (None, None, None, {})
    text = bytes(Document.objects.filter(kind="trials").order_by("pk")[0].bytes).decode()
    assert "queue_s" not in text and "service_s" not in text


def test_the_pilot_replays_and_repeats_and_the_gate_waits_for_it(tried: Lab) -> None:
    """2 preflight groups x 2 slots: 1 intervention, 1 repeat and 2 replays each, all agreeing."""
    execution = tried.start(**PILOT)
    expected = progress_of(execution)["expected"]
    while tried.step(execution, only=f"{execution.uid}:preflight:"):
        pass
    assert trial_states(execution) == {"trials:preflight:0": "queued", "trials:preflight:1": "queued"}
    assert not Job.objects.filter(key__contains=":collect:").exists() and not told("preflight.passed")
    done = tried.drive(execution)
    assert execution.state == "closed" and told("preflight.passed") and len(done) + 2 == expected
    pilot = TrialSet.objects.filter(purpose="preflight").order_by("ordinal")
    assert [(row.run, row.replays, row.repeats) for row in pilot] == [(None, 2, 1)] * 2
    for row in Intervention.objects.filter(trial_set__in=pilot):
        assert (row.replays_agree, row.replays, row.repeats_agree, row.repeats) == (2, 2, 1, 1)
    kinds = Trial.objects.filter(trial_set__in=pilot).values_list("kind", flat=True)
    assert {kind: list(kinds).count(kind) for kind in set(kinds)} == {
        "original": 4, "intervention": 4, "factual_replay": 8, "intervention_repeat": 4,
    }  # fmt: skip
    assert not Trial.objects.filter(trial_set__purpose="train", kind__in=("factual_replay", "intervention_repeat"))
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_arm_e_chooses_and_executes_nothing_and_arm_o_is_not_tried(tried: Lab) -> None:
    execution = tried.start(**{**TRIED, "arms": [arm("E", "edit_terminal"), arm("O", "vanilla")]})
    tried.drive(execution)
    assert execution.state == "closed" and TrialSet.objects.values_list("run__arm__key", "mode").distinct().get() == (
        "E", "select",
    )  # fmt: skip
    assert set(Intervention.objects.values_list("status", "selected", "difference")) == {("selected", 0, None)}
    assert set(Trial.objects.values_list("kind", flat=True)) == {"original"}


def test_every_arm_is_tried_where_the_plan_says_so(tried: Lab) -> None:
    arms = [arm("E", "edit_terminal"), arm("O", "vanilla")]
    execution = tried.start(**{**TRIED, "arms": arms, "trials": {**SECTION, "every_arm": True}})
    tried.drive(execution)
    assert set(TrialSet.objects.values_list("run__arm__key", "mode")) == {("E", "execute"), ("O", "execute")}


def test_without_a_section_nothing_is_tried(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    lab.drive(execution)
    assert execution.state == "closed" and not Job.objects.filter(kind="run_trials").exists()
    assert "trials" not in run_manifest(run_of(execution, "V"))


def test_an_update_is_handed_the_trials_of_its_groups(tried: Lab) -> None:
    execution = tried.start(**TRIED)
    tried.drive(execution)
    job = Job.objects.get(key__endswith=":update:0")
    (group,) = handoff.update_spec(job).groups
    document = Document.objects.get(kind="trials", sha256=group.trials_sha256)
    assert group.trials_json == bytes(document.bytes).decode()
    assert parse_trials(document.bytes).group_uid == str(Group.objects.get(purpose="train", ordinal=0).uid)


def test_the_run_manifest_binds_the_trials(tried: Lab) -> None:
    execution = tried.start(**TRIED)
    tried.drive(execution)
    manifest = run_manifest(run_of(execution, "M"))
    rows = TrialSet.objects.order_by("ordinal").values_list("uid", "record_sha256")
    assert [(item["uid"], item["record_sha256"]) for item in manifest["trials"]] == [(str(u), s) for u, s in rows]
    assert closure_of(execution) is not None


def test_trees_and_contents_can_be_read_from_one_blob(tried: Lab) -> None:
    execution = tried.start(**TRIED)
    tried.drive(execution)
    row = Intervention.objects.select_related("trial_set", "trajectory").order_by("pk")[0]
    snapshots = read_snapshots(blob_store().get(str(row.trial_set.snapshots_sha256)))
    trees = snapshots.trees(str(row.trajectory.uid))
    assert [snapshots.contents[tree["a.py"]] for tree in trees] == [trials_double.BROKEN, trials_double.MENDED]


def test_an_incomplete_trial_is_unknown_and_no_zero(tried: Lab) -> None:
    tried.script.trials["incomplete"] = True
    execution = tried.start(**TRIED)
    tried.drive(execution)
    assert execution.state == "closed" and head_of(execution, "M").state == "completed"
    for row in Intervention.objects.all():
        assert (row.status, row.difference, row.without_utility) == ("trial_incomplete", None, None)
        assert row.detail == "2 of 3 tests without an observation" and row.original_utility == 0.5
    for trial in Trial.objects.filter(kind="intervention"):
        assert (trial.complete, trial.utility, trial.success) == (False, None, None) and len(trial.observed) == 1
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_a_machine_without_a_sandbox_gives_unknown_trials(tried: Lab) -> None:
    tried.script.trials["no_sandbox"] = True
    execution = tried.start(**TRIED)
    tried.drive(execution)
    assert execution.state == "closed"
    trial = Trial.objects.filter(kind="intervention").order_by("pk")[0]
    assert trial.unknown == "EnvironmentFault: trial: no sandbox" and trial.level == {} and trial.stdout_sha256 is None


@pytest.mark.parametrize(
    "error",
    [RunnerFailed("gone", boundary="EngineFault", class_name="EngineFault", trace=""), ValueError("gone")],
)
def test_a_job_that_errors_is_recorded_as_unavailable_and_the_run_completes(tried: Lab, error: Exception) -> None:
    """Group 0 cannot be tried; group 1 is as usual. The reason stands in the receipt and in no hashed record."""

    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "trials" and '"ordinal":0' in spec["record_json"]:
            raise error

    tried.script.before = before
    execution = tried.start(**TRIED)
    tried.drive(execution)
    assert execution.state == "closed" and head_of(execution, "M").state == "completed"
    assert trial_states(execution) == {"trials:train:0": "errored", "trials:train:1": "succeeded"}
    lost, kept = TrialSet.objects.order_by("ordinal")
    assert (lost.unavailable, kept.unavailable) == ("job errored", None)
    assert set(lost.interventions.values_list("status", "difference", "selected")) == {("trial_incomplete", None, None)}
    assert not lost.trials.exists() and UpdateBatch.objects.count() == 2
    (body,) = told("trials.unavailable")
    assert "gone" in body["reason"] and body["state"] == "errored" and body["executed"] == 0
    assert b"gone" not in bytes(Document.objects.get(kind="trials", subject_uid=lost.uid).bytes)
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_a_worker_that_dies_is_tried_again_and_then_unavailable(tried: Lab) -> None:
    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "trials" and '"ordinal":1' in spec["record_json"]:
            raise RunnerDied("killed", -9)

    tried.script.before = before
    execution = tried.start(**TRIED)
    tried.drive(execution)
    job = Job.objects.get(key__endswith=":trials:train:1")
    assert (job.state, job.attempt) == ("errored", 3) and execution.state == "closed"
    assert Receipt.objects.filter(kind="attempt.lost").count() == 3
    assert TrialSet.objects.get(ordinal=1).unavailable == "job errored"


def test_a_worker_that_dies_once_loses_and_doubles_nothing(tried: Lab) -> None:
    deaths: list[str] = []

    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "trials" and spec["trials_uid"] not in deaths:
            deaths.append(spec["trials_uid"])
            raise RunnerDied("killed", -9)

    tried.script.before = before
    execution = tried.start(**TRIED)
    tried.drive(execution)
    assert len(deaths) == 2 and execution.state == "closed"
    assert TrialSet.objects.count() == 2 and Trial.objects.count() == 8
    assert set(trial_states(execution).values()) == {"succeeded"}


def test_invalid_slots_are_counted_apart_and_say_why(tried: Lab) -> None:
    tried.script.invalid = lambda spec, group, slot: spec.purpose == "train" and slot == 1
    execution = tried.start(**{**TRIED, "error_gate": {"max_invalid_share": 0.9, "minimum_trajectories": 4}})
    tried.drive(execution)
    row = Intervention.objects.get(trial_set__ordinal=0, slot=1)
    assert (row.status, row.detail) == ("no_original_utility", "infrastructure-invalid: EnvironmentFault: gone")
    assert (row.final_tree_sha256, row.final_paths, row.blocks) == (None, None, [])
    assert verify(store=blob_store(), steps=STEPS).faults == []


def test_a_lost_shard_is_tried_too_and_gives_no_intervention(tried: Lab) -> None:
    def before(op: str, spec: dict[str, Any]) -> None:
        if op == "collect" and spec["purpose"] == "train" and spec["groups"][0]["ordinal"] == 0:
            raise RunnerDied("killed", -9)

    tried.script.before = before
    execution = tried.start(**{**TRIED, "error_gate": {"max_invalid_share": 0.9, "minimum_trajectories": 4}})
    tried.drive(execution)
    assert execution.state == "closed"
    assert set(Intervention.objects.filter(trial_set__ordinal=0).values_list("status", "policy_tokens")) == {
        ("no_original_utility", 0)
    }


def taken(lab: Lab) -> tuple[Job, TrialsResult]:
    execution = lab.start(**TRIED)
    lab.step(execution, only=":collect:")
    job = jobs.claim(Job.objects.get(key__endswith=":trials:train:0").pk, owner="w", at=timezone.now())
    assert job is not None
    return job, trials_double.trials(handoff.trials_spec(job), lab.script, blob_store())


def changed(result: TrialsResult, **values: Any) -> TrialsResult:
    data = record_bytes(replace(parse_trials(result.record_json.encode()), **values))
    return replace(result, record_json=data.decode(), record_sha256=sha256_hex(data))


OTHER = "00000000-0000-5000-8000-00000000000f"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"uid": OTHER}, "uid: got"),
        ({"plan_sha256": "f" * 64}, "plan_sha256: got"),
        ({"run_uid": OTHER}, "run_uid: got"),
        ({"ordinal": 5}, "ordinal: got 5"),
        ({"purpose": "evaluate"}, "purpose: got"),
        ({"seed": "8"}, "seed: got 8"),
        ({"verifier": "other/2"}, "verifier: got scripted/1, expected other/2"),
        ({"settings": {"mode": "execute", "replays": 1, "repeats": 0}}, "settings: got"),
        ({"trials": ()}, "timings: got 2, expected one for each of 0"),
        ({"interventions": ()}, "interventions: got slots"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_and_nothing_stored(
    tried: Lab, values: dict[str, Any], message: str
) -> None:
    job, result = taken(tried)
    with pytest.raises(RecordError, match=message):
        recorder_trials.commit_trials(job, changed(result, **values))
    assert not TrialSet.objects.exists() and not Document.objects.filter(kind="trials").exists()
    assert Job.objects.get(pk=job.pk).state == "leased" and not told("trials.recorded")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"difference": None}, "difference: got None with available"),
        ({"status": "unheard"}, "status: got 'unheard'"),
        ({"selected": None}, "selected: got None with available"),
        ({"selected": 3}, "selected: got 3, expected an eligible block"),
        ({"policy_tokens": 4}, "policy_tokens: got"),
    ],
)
def test_an_intervention_that_contradicts_itself_is_refused(tried: Lab, values: dict[str, Any], message: str) -> None:
    job, result = taken(tried)
    first, *rest = parse_trials(result.record_json.encode()).interventions
    with pytest.raises(RecordError, match=message):
        recorder_trials.commit_trials(job, changed(result, interventions=(replace(first, **values), *rest)))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("intervention", {"tree_sha256": "0" * 64}, "tree_sha256: got 0000.*, the tree without the block"),
        ("original", {"tree_sha256": "0" * 64}, "tree_sha256: got 0000.*, the final tree"),
        ("intervention", {"uid": OTHER}, f"{OTHER}.*uid: expected"),
        ("intervention", {"trajectory_uid": OTHER}, f"got intervention of {OTHER}"),
        ("intervention", {"repeat": 1}, "uid: expected"),
        ("intervention", {"utility": 1.0}, "utility: got 1.0, expected 0 from its observations"),
        ("intervention", {"utility": None}, "expected a verdict or why there is none"),
        ("intervention", {"observed": ()}, "utility: got 0.0, expected None from its observations"),
        ("original", {"kind": "guess"}, "got guess of"),
    ],
)
def test_a_trial_of_something_else_is_refused(tried: Lab, kind: str, values: dict[str, Any], message: str) -> None:
    """A tree that is not the one asked about, a report of another trial, a verdict that its tests do not give."""
    job, result = taken(tried)
    trials = list(parse_trials(result.record_json.encode()).trials)
    place = next(index for index, trial in enumerate(trials) if trial.kind == kind)
    trials[place] = replace(trials[place], **values)
    with pytest.raises(RecordError, match=message):
        recorder_trials.commit_trials(job, changed(result, trials=tuple(trials)))
    assert not TrialSet.objects.exists() and Job.objects.get(pk=job.pk).state == "leased"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"difference": -0.5}, "difference: got -0.5, expected 0.5 from its trials"),
        ({"original_utility": 1.0}, "original_utility: got 1.0, expected 0.5 from its trials"),
        ({"without_utility": None}, "without_utility: got None, expected 0.0 from its trials"),
        ({"without_tree_sha256": "0" * 64}, "expected 0000.*, the tree without the block"),
        ({"final_tree_sha256": None}, "expected None, the final tree"),
    ],
)
def test_a_difference_that_its_trials_do_not_give_is_refused(tried: Lab, values: dict[str, Any], message: str) -> None:
    """U = 1/2 with the block and 0 without: D = 1/2 and nothing else."""
    job, result = taken(tried)
    first, *rest = parse_trials(result.record_json.encode()).interventions
    with pytest.raises(RecordError, match=message):
        recorder_trials.commit_trials(job, changed(result, interventions=(replace(first, **values), *rest)))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_that_is_not_finite_is_recorded(tried: Lab, value: str) -> None:
    job, result = taken(tried)
    text = result.record_json.replace('"difference":0.5', f'"difference":{value}')
    assert text != result.record_json
    with pytest.raises(ContractError):
        recorder_trials.commit_trials(job, replace(result, record_json=text, record_sha256=sha256_hex(text.encode())))
    assert not TrialSet.objects.exists()


def test_a_second_record_and_a_stale_attempt_are_refused(tried: Lab) -> None:
    job, result = taken(tried)
    with pytest.raises(RecordError, match="record_sha256: got"):
        recorder_trials.commit_trials(job, replace(result, record_sha256="0" * 64))
    recorder_trials.commit_trials(job, result)
    Job.objects.filter(pk=job.pk).update(state="leased")
    with pytest.raises(AlreadyRecorded):
        recorder_trials.commit_trials(job, result)
    Job.objects.filter(pk=job.pk).update(attempt=9)
    lifecycle._fail(job, "errored", "late")  # its lease is gone: nothing is recorded
    assert TrialSet.objects.count() == 1 and not told("trials.unavailable")
