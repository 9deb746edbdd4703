"""Step 10 of verify where the records' environment, its code or its reward is not here: not checked, and no fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from evidence.report import SHOWN_WHY, UNAVAILABLE, NotChecked, VerifyReport, show
from evidence.verify import verify
from runs.models import Execution, Trajectory
from runs.storage import blob_store
from tests.engine import trial_world as world
from tests.engine.trial_world import MEND_A, SUBMIT, episode
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from workbench.contracts.records import GroupRecord
from worker import audit
from worker.environments.code import CodeIdentity, code_identity
from worker.environments.registry import reward_code_sha256

GONE, REWARD = "gone_package.world:Gone", "gone_package.rules:Careful"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Worlds are kept by the hash of the plan."""
    kept = (audit._world, audit._body)  # a test may put others in their place
    for cache in kept:
        cache.cache_clear()
    yield
    for cache in kept:
        cache.cache_clear()


def closed(lab: Lab, **changes: Any) -> Execution:
    execution = lab.start(**{**ALONE, **changes})
    lab.drive(execution)
    return execution


def replayed() -> VerifyReport:
    return verify(store=blob_store(), recompute=audit.recompute, steps=(1, 3, 10))


def gaps(report: VerifyReport) -> Counter[tuple[str, str]]:
    assert all(item.severity == UNAVAILABLE for item in report.problems if item.column == "replay")
    return Counter((item.table, item.got) for item in report.unavailable)


@pytest.mark.parametrize("part", ["environment", "reward"])
def test_what_does_not_load_here_is_not_checked_and_says_what_to_do(lab: Lab, part: str) -> None:
    """One line for all trajectories of a cause; status 3."""
    closed(
        lab, **({"environment": {"id": GONE}} if part == "environment" else {"reward": {"id": REWARD, "version": "1"}})
    )
    report = replayed()
    ((table, why),) = gaps(report)
    valid = Trajectory.objects.filter(status="valid").count()
    assert valid > 1 and table == "runs_trajectory" and len(report.unavailable) == valid
    assert (GONE if part == "environment" else REWARD) in why and "put its package on PYTHONPATH" in why
    assert "No module named 'gone_package'" in why
    assert report.unchecked() == [f"not checked here, {valid} times: {why}"]
    assert {item.row for item in report.unavailable} <= {
        str(uid) for uid in Trajectory.objects.values_list("uid", flat=True)
    }


def test_other_code_than_was_bound_is_not_checked(lab: Lab) -> None:
    """The scripted plan binds made-up code for an environment that is here."""
    closed(lab)
    ((table, why),) = gaps(replayed())
    assert table == "runs_trajectory" and why.startswith("other code here than the plan binds; put that back")
    assert "environment 'evidence_search'" in why


def test_one_absent_environment_hides_no_fault_of_another_study(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both plans are looked at; what disagrees still decides the status."""
    closed(lab, environment={"id": GONE})
    only = replayed()
    assert only.exit_status == 3 and not only.faults
    first = str(Trajectory.objects.filter(status="valid").values_list("uid", flat=True)[0])

    def also(record: GroupRecord, captures: Any) -> Iterator[audit.Difference]:
        yield from audit.recompute(record, captures)
        yield from ((item.uid, "reward", 1, 2) for item in record.trajectories if item.uid == first)

    report = verify(store=blob_store(), recompute=also, steps=(10,))
    assert report.exit_status == 1 and [item.row for item in report.faults] == [first] and report.unavailable


# --- one record that can be played here


def body(code: CodeIdentity, reward: str) -> dict[str, Any]:
    """As much of a frozen body as the replay reads."""
    return {
        "plan": {
            "environment": {"id": "code_repair", "config": {}}, "reward": {"id": "code_repair.reward"},
            "rollout": {"max_decisions": 8},
        },
        "arms": [],
        "bindings": {
            "reward": {"code_sha256": reward, "code": {}},
            "environment": {
                "code_sha256": code.sha256(), "version": "1", "verifier": world.environment().verifier,
                "code": {"files": dict(code.files), "distribution": code.distribution, "version": code.version},
            },
        },
    }  # fmt: skip


def played(monkeypatch: pytest.MonkeyPatch, bound: dict[str, Any], **identities: str) -> list[audit.Difference]:
    """The replay of one repair under a plan that binds that; other identities than the bound ones where given."""
    monkeypatch.setattr(audit, "_body", lambda sha256: bound)
    monkeypatch.setattr(audit, "_task", lambda uid: world.TASK)
    record = world.group([episode(0, [MEND_A, SUBMIT])], world.environment().version)
    named = {name: bound["bindings"][name]["code_sha256"] for name in ("environment", "reward")}
    record = replace(record, identities=replace(record.identities, **{**named, **identities}))
    return [item for item in audit.recompute(record, {}) if not item[1].endswith("capture")]


def here() -> tuple[CodeIdentity, str]:
    return code_identity(type(world.environment())), reward_code_sha256(world.environment())


def test_the_bound_code_is_replayed_and_any_other_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The changed file is named; with the code put back the environment is asked again."""
    code, reward = here()
    monkeypatch.setattr(audit, "_replayed", lambda item, *rest: iter([(item.uid, "asked", 1, 2)]))
    monkeypatch.setattr(audit, "_outcome", lambda *rest: iter(()))
    assert "asked" in {what for _, what, _, _ in played(monkeypatch, body(code, reward))}
    audit._world.cache_clear()
    files = tuple((name, "0" * 64 if name == "reward.py" else sha256) for name, sha256 in code.files)
    found = played(monkeypatch, body(replace(code, files=files), reward))
    ((what, got),) = {(what, got) for _, what, _, got in found if isinstance(got, NotChecked)}
    assert what == "replay" and "environment 'code_repair': reward.py changed" in got.why
    assert "asked" not in {what for _, what, _, _ in found}


def test_another_verifier_than_the_bound_one_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tries an environment's artefacts is part of the product, outside the environment's files."""
    bound = body(*here())
    bound["bindings"]["environment"]["verifier"] = "hidden_calls/0"
    ((got,),) = {(got,) for _, what, _, got in played(monkeypatch, bound) if what == "replay"}
    assert isinstance(got, NotChecked)
    assert f"verifier {world.environment().verifier} is here, not hidden_calls/0" in got.why


def test_other_reward_rules_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = here()
    ((got,),) = {(got,) for _, what, _, got in played(monkeypatch, body(code, "0" * 64)) if what == "replay"}
    assert isinstance(got, NotChecked) and "reward 'code_repair.reward'" in got.why
    audit._world.cache_clear()
    bound = body(code, "0" * 64)
    bound["bindings"]["reward"]["code"] = {"files": {"rules.py": "0" * 64}}
    ((got,),) = {(got,) for _, what, _, got in played(monkeypatch, bound) if what == "replay"}
    assert isinstance(got, NotChecked) and "got nothing under this name here" in got.why


@pytest.mark.parametrize("part", ["environment", "reward"])
def test_a_record_that_names_other_code_than_its_plan_binds_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Nobody escapes the replay by writing another hash into a record: no gap, a disagreement of the group."""
    code, reward = here()
    bound = body(code, reward)
    assert played(monkeypatch, bound, **{part: "1" * 64}) == [
        (world.GROUP_UID, f"{part} code", bound["bindings"][part]["code_sha256"], "1" * 64)
    ]


def test_why_is_printed_whole_and_any_other_value_short() -> None:
    assert show(NotChecked("x" * 300)) == "x" * 300 and len(show("x" * 300)) == 120
    assert len(show(NotChecked("x" * 3000))) == SHOWN_WHY
