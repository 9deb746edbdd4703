"""Catalogue pages: task sets, tasks, environments, models; and what each reader may know."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.plans import plan_body
from runs.actions.tasks import store_task_set
from runs.models import EvaluationItem, Study, Task, TaskSet, User
from runs.presenters.catalogue import registered
from runs.presenters.catalogue.tasksets import overlaps
from runs.presenters.catalogue.words import MEMORY_ASSUMED, MEMORY_TERMS
from tests.pages.catalogue_people import client_of, member
from tests.pages.state import World
from workbench.contracts.canonical import canonical_bytes


@pytest.fixture
def tasks(world: World, db: None) -> TaskSet:
    return TaskSet.objects.get()


@pytest.fixture
def closed(world: World, db: None) -> Study:
    """The world's study, no longer public."""
    Study.objects.filter(pk=world.study.pk).update(visibility="private")
    return world.study


def test_sets_and_their_counts(client: Client, world: World, tasks: TaskSet) -> None:
    assert tasks.sha256[:12] in client.get("/task-sets/").content.decode()
    page = client.get(f"/task-sets/{tasks.sha256}/")
    splits = plan_body(world.version)["bindings"]["task_set"]["splits"]
    assert dict(zip(page.context["splits"], page.context["sums"], strict=True)) == {
        name: len(rows) for name, rows in splits.items()
    }
    narrowed = client.get(f"/task-sets/{tasks.sha256}/", {"split": "test"})
    assert narrowed.context["listing"].paginator.count == len(splits["test"])
    nothing = client.get(f"/task-sets/{tasks.sha256}/", {"split": "none", "family": "'; DROP"})
    assert "No task of this split and family." in nothing.content.decode()


def test_overlap_between_splits_is_counted(world: World, tasks: TaskSet) -> None:
    """The world repeats prompts, each from another state, and one hidden reference in both splits; no whole task."""
    whole, prompts, hidden = overlaps(tasks)
    assert (whole.shared, whole.total) == (0, tasks.count)
    assert Task.objects.values("prompt").distinct().count() < tasks.count
    assert (prompts.shared, prompts.total) == (0, tasks.count)
    assert (hidden.shared, hidden.total) == (1, 1)


@pytest.mark.parametrize(("state", "shared"), [({"n": 0}, 1), ({"n": 1}, 0)])
def test_a_prompt_is_shared_where_it_asks_about_the_same_state(world: World, db: None, state: Any, shared: int) -> None:
    """``Q`` and `` q `` are one prompt; asked about another tree it is another question."""
    rows = [
        {
            "key": "a",
            "split": "train",
            "family": "f",
            "prompt": "Q",
            "initial_state": {"n": 0},
            "hidden": 1,
            "tools": [],
        },
        {"key": "b", "split": "test", "family": "f", "prompt": " q ", "initial_state": state, "hidden": 2, "tools": []},
    ]
    found = store_task_set(canonical_bytes(rows), environment="other", version="1")
    assert [(item.shared, item.total) for item in overlaps(found)] == [(0, 2), (shared, 2 - shared), (0, 2)]


def test_a_set_without_overlap_says_so(client: Client, world: World, db: None) -> None:
    rows = [
        {
            "key": f"k{i}", "split": split, "family": "f", "prompt": f"Q {i}", "initial_state": {}, "hidden": {"a": i},
            "tools": [],
        }
        for i, split in enumerate(("train", "test"))
    ]  # fmt: skip
    found = store_task_set(canonical_bytes(rows), environment="other", version="1")
    assert [item.shared for item in overlaps(found)] == [0, 0, 0]
    admin = User.objects.create(username="root", is_superuser=True)
    page = client_of(admin).get(f"/task-sets/{found.sha256}/")
    assert "nothing is shared between splits" in page.content.decode()
    assert client.get(f"/task-sets/{found.sha256}/").status_code == 404  # no plan has bound it


def _evaluated() -> Task:
    return EvaluationItem.objects.order_by("pk")[0].task


def test_outcomes_of_a_task_by_checkpoint(client: Client, world: World, db: None) -> None:
    """Every item of the task is counted once, n of N by checkpoint and condition."""
    task = _evaluated()
    page = client.get(f"/tasks/{task.uid}/")
    rows = page.context["listing"].object_list
    items = EvaluationItem.objects.filter(task=task).select_related("trajectory")
    assert sum(row.total for row in rows) == items.count()
    assert sum(row.success for row in rows) == sum(bool(item.trajectory.success) for item in items)
    assert len({(row.checkpoint, row.condition) for row in rows}) == len(rows)
    text = page.content.decode()
    assert task.prompt.split("\n")[0][:30] in text and f"{rows[0].success}/{rows[0].valid}" in text


@pytest.mark.parametrize(
    ("role", "sees"), [("researcher", True), ("reviewer", True), ("admin", True), ("viewer", False), ("worker", False)]
)
def test_the_hidden_reference_is_for_those_who_may_know(world: World, db: None, role: str, sees: bool) -> None:
    """The page and the API give a signed-in person the same answer."""
    reader, task = client_of(member(world.study, role)), _evaluated()
    text = reader.get(f"/tasks/{task.uid}/").content.decode()
    assert ("label/L-14/r2" in text) is sees and ("kept back" in text) is not sees
    assert reader.get(f"/api/v1/tasks/{task.uid}").json()["hidden"] == (task.hidden if sees else None)


def test_nobody_reads_the_hidden_reference_of_a_public_study(client: Client, world: World, db: None) -> None:
    assert "label/L-14/r2" not in client.get(f"/tasks/{_evaluated().uid}/").content.decode()
    assert client.get(f"/api/v1/tasks/{_evaluated().uid}").json()["hidden"] is None


def test_a_researcher_of_another_study_is_no_researcher_here(world: World, person: User, db: None) -> None:
    other = Study.objects.create(
        uid="5d1fbd4e-0000-4000-8000-000000000002", slug="other", title_en="Other", created_at=world.clock,
        created_by=world.version.created_by,
    )  # fmt: skip
    reader = client_of(member(other, "researcher", "elsewhere"))
    assert "label/L-14/r2" not in reader.get(f"/tasks/{_evaluated().uid}/").content.decode()
    assert reader.get(f"/api/v1/tasks/{_evaluated().uid}").json()["hidden"] is None


def test_what_a_closed_study_bound_does_not_exist_for_others(
    client: Client, world: World, tasks: TaskSet, closed: Study
) -> None:
    for address in (f"/task-sets/{tasks.sha256}/", f"/tasks/{_evaluated().uid}/"):
        assert client.get(address).status_code == 404
        assert client_of(member(closed, "viewer")).get(address).status_code == 200
    assert tasks.sha256[:12] not in client.get("/task-sets/").content.decode()
    for view in client.get("/environments/").context["environments"]:
        assert world.plan.slug not in view.task_sets and view.bound == []
    assert client.get("/models/").context["models"] == []


def test_unknown_addresses(client: Client, world: World, db: None) -> None:
    for address in ("/task-sets/none/", f"/task-sets/{'0' * 64}/", "/tasks/5d1fbd4e-0000-4000-8000-0000000000aa/"):
        assert client.get(address).status_code == 404


def test_environments_say_what_was_bound(client: Client, world: World, db: None) -> None:
    other, view = client.get("/environments/").context["environments"]
    assert view.registration.id == "evidence_search" and len(view.bound) == 1
    assert other.registration.id == "code_repair" and other.bound == []
    text = client.get("/environments/").content.decode()
    assert "other code" in text  # the world binds an invented hash
    assert {row.name for row in view.components}


@pytest.mark.parametrize("name", ["code_repair", "evidence_search"])
def test_the_code_hash_is_the_one_that_a_freeze_would_bind(db: None, name: str) -> None:
    """Computed by the worker's own function in another process; this one never imports an environment."""
    script = (
        "from worker.environments.registry import environment_code_sha256, get_environment;"
        f"print(environment_code_sha256(get_environment('{name}', {{}})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    (found,) = [item for item in registered.registrations() if item.id == name]
    assert found.code_sha256 == done.stdout.strip()


def test_an_installed_package_is_listed_and_not_imported(
    client: Client, world: World, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def points(group: str) -> list[Any]:
        named = {"workbench.environments": "maze", "workbench.rewards": "points", "workbench.models": "large"}
        return [EntryPoint(named[group], f"no_such_package.{named[group]}:Thing", group)]

    monkeypatch.setattr(registered, "entry_points", points)
    page = client.get("/environments/")
    assert [view.registration.id for view in page.context["environments"]] == [
        "code_repair",
        "evidence_search",
        "maze",
    ]
    text = page.content.decode()
    assert "no_such_package.maze:Thing" in text and "no_such_package.points:Thing" in text
    assert "no_such_package.large:Thing" in client.get("/models/").content.decode()
    assert "no_such_package" not in sys.modules


def test_models_say_what_was_bound_and_the_fit_is_computed(client: Client, world: World, db: None) -> None:
    page = client.get("/models/")
    (view,) = page.context["models"]
    assert (view.model, view.identity["parameters"], view.checkpoints) == ("embedded-evidence-search", 550_000, 6)
    fit = page.context["fit"]
    assert (fit.profile, fit.total, fit.limit, len(fit.terms)) == ("qwen3-vl-2b-nf4", 4838, 8188, 14)
    assert "computed, not measured" in page.content.decode()


def test_the_fit_adds_up(db: None) -> None:
    """Resident terms and the larger of the update's and the rollout's, by the document's own labels."""
    fit = registered.fit()
    assert fit is not None
    assert (tuple(name for name, _size in fit.terms), fit.assumed) == (MEMORY_TERMS, MEMORY_ASSUMED)
    sums = {stage: sum(size for name, size in fit.terms if name.endswith(f"({stage})")) for stage in
            ("resident", "update", "rollout")}  # fmt: skip
    assert abs(sums["resident"] + max(sums["update"], sums["rollout"]) - fit.total) <= 2  # each term is rounded


def test_query_counts_are_bounded(
    client: Client, world: World, tasks: TaskSet, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    addresses = (
        "/task-sets/",
        f"/task-sets/{tasks.sha256}/",
        f"/tasks/{_evaluated().uid}/",
        "/environments/",
        "/models/",
    )
    for address in addresses:
        with django_assert_max_num_queries(42):
            assert client.get(address).status_code == 200
