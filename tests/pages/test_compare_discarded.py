"""Discarded and cancelled work: requested = accounted, at every scope."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Job, Run, RunHead, Study
from runs.presenters.compare.discarded import Account, Part, job_lines, total, training_accounts
from tests.pages.state import World

PLAN = "/studies/fatal-mask-pair/plans/small/discarded/"


def test_a_run_accounts_for_every_requested_slot(client: Client, world: World, db: None) -> None:
    """4 batches x 4 groups x 4 slots = 64 are requested, 2 batches are stored: 32 are not collected yet."""
    run = world.runs["e3-s17"]
    answer = client.get(f"/runs/{run.uid}/discarded/")
    account = answer.context["account"]
    assert account.requested == account.accounted == 64 and account.balanced
    parts = {part.key: part.count for part in account.parts}
    assert parts["never_open"] == 32
    assert parts["trained"] == run.updates.filter(credits__trained_tokens__gt=0).count()
    assert "requested = accounted" in answer.content.decode()


def test_the_plan_adds_up_and_names_the_refused_arm(client: Client, world: World, db: None) -> None:
    """8 runs x 64 slots; the refused arm's 64 slots have a name, its receipt is linked."""
    answer = client.get(PLAN)
    account = answer.context["account"]
    assert account.requested == 64 * Run.objects.filter(plan_version=world.version).count() == account.accounted
    parts = {part.key: part.count for part in account.parts}
    assert parts["never_refused"] == 64
    assert sum(a.requested for _run, a in answer.context["by_run"]) == account.requested
    text = answer.content.decode()
    assert "never run: arm refused by its gate" in text and "gate: 2 actionable cases, minimum 3" in text
    assert any(receipt is not None for _run, receipt in answer.context["lists"].arms)
    assert "MemoryError: 4.1 GiB asked" in text


def test_evaluation_adds_up_too(client: Client, world: World, db: None) -> None:
    """36 items a policy (2 conditions x 9 tasks x 2 repeats), for 8 runs and the parent; three sides are stored."""
    evaluation = client.get(PLAN).context["evaluation"]
    runs = Run.objects.filter(plan_version=world.version).count()
    assert evaluation.requested == 36 * (runs + 1) == evaluation.accounted
    parts = {part.key: part.count for part in evaluation.parts}
    assert parts["valid"] == 3 * 36 and parts["refused"] == 36 and parts["open"] == 36 * (runs + 1 - 4)


def test_rejected_groups_and_invalid_slots_are_listed(client: Client, world: World, db: None) -> None:
    from tests.pages.rows import add_group
    from workbench.contracts.jobs import GroupSpec, SlotSpec

    run = world.runs["e3-s17"]
    like = run.groups.filter(purpose="train").first()
    slots = tuple(SlotSpec(str(uuid.uuid4()), s, str(s)) for s in range(4))
    spec = GroupSpec(str(uuid.uuid4()), 900, str(like.task.uid), "control", (), slots)
    before = training_accounts([_loaded(run)])[run.pk]
    add_group(world, run, like.checkpoint, spec, "train", "train", "train", broken=True)
    after = training_accounts([_loaded(run)])[run.pk]
    change = {a.key: a.count - b.count for a, b in zip(after.parts, before.parts, strict=True)}
    assert change["invalid"] == 1 and change["lost"] == 3 and change["never_open"] == -4
    text = client.get(f"/runs/{run.uid}/discarded/").content.decode()
    assert "slot " in text and "worker died" in text


def _loaded(run: Run) -> Run:
    return Run.objects.select_related("head", "arm", "plan_version").get(pk=run.pk)


def test_a_cancelled_run_names_what_it_never_collected(world: World, db: None) -> None:
    run = world.runs["e3-s7"]
    RunHead.objects.filter(run=run).update(state="cancelled")
    account = training_accounts([_loaded(run)])[run.pk]
    assert {part.key: part.count for part in account.parts if part.count} == {"never_cancelled": 64}


def test_an_account_that_does_not_close_says_so() -> None:
    """10 requested, 6 + 3 accounted: not balanced; 6 + 3 + 1 is. Added up part by part: 20 of 19."""
    parts = [Part("trained", "t", "", 6, "trained"), Part("cut", "c", "", 3, "lost")]
    short = Account(10, parts)
    full = Account(10, [*parts, Part("invalid", "i", "", 1, "lost")])
    assert not short.balanced and full.balanced
    both = total([short, full])
    assert (both.requested, both.accounted, both.balanced) == (20, 19, False)
    assert {part.key: part.count for part in both.parts if part.count} == {"trained": 12, "cut": 6, "invalid": 1}
    assert [(b.key, b.x, b.width) for b in full.band] == [
        ("trained", 0.0, 60.0),
        ("cut", 60.0, 30.0),
        ("invalid", 90.0, 10.0),
    ]


def test_jobs_add_up_by_kind(world: World, db: None) -> None:
    lines = job_lines(Job.objects.filter(execution=world.execution))
    assert sum(line.total for line in lines) == Job.objects.filter(execution=world.execution).count()
    for line in lines:
        assert sum(line.cells) == line.total


def test_selection_adds_up(client: Client, world: World, db: None) -> None:
    for row in client.get(PLAN).context["selection"]:
        assert row.signal + row.right + row.wrong + row.equal + row.rejected == row.groups


@pytest.mark.parametrize(
    "path", [f"/runs/{uuid.UUID(int=1)}/discarded/", "/studies/fatal-mask-pair/plans/none/discarded/"]
)
def test_unknown_scopes(client: Client, world: World, db: None, path: str) -> None:
    assert client.get(path).status_code == 404


def test_hidden_study(client: Client, world: World, db: None) -> None:
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    assert client.get(PLAN).status_code == 404
    assert client.get(f"/runs/{world.runs['e3-s17'].uid}/discarded/").status_code == 404


def test_query_count(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(33):
        client.get(PLAN)
