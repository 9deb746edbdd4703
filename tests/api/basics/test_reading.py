"""Lists and details: paging that does not shift, filters, sparse fields, hidden studies, query counts."""

from __future__ import annotations

from typing import Any

import pytest

from runs.models import Plan, Run, Study, Trajectory, User
from tests.api.basics.conftest import Caller
from tests.pages.world import World

LISTS = [
    "studies", "plans", "executions", "runs", "jobs", "groups", "trajectories", "captures", "checkpoints",
    "evaluations", "task-sets", "tasks", "receipts", "streams",
]  # fmt: skip


def walk(caller: Caller, name: str, limit: int, more: str = "") -> list[Any]:
    """Every item of a list, page by page."""
    seen, cursor = [], ""
    for _ in range(1000):
        answer = caller.get(f"{name}?limit={limit}{more}{cursor}")
        seen += answer["items"]
        if answer["next_cursor"] is None:
            return seen
        cursor = f"&cursor={answer['next_cursor']}"
    raise AssertionError(f"{name}: the list has no end")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_walked_without_gap_or_repeat(world: World, callers: dict[str, Caller], name: str) -> None:
    whole = walk(callers["site"], name, 500)
    assert whole and walk(callers["site"], name, 47 if len(whole) > 100 else 3) == whole
    assert walk(callers["site"], name, 500, "&order=oldest") == whole[::-1]


def test_a_walk_does_not_see_rows_that_come_later(world: World, callers: dict[str, Caller]) -> None:
    first = callers["site"].get("runs?limit=2&order=oldest")
    last = Run.objects.order_by("-pk").first()
    assert last is not None
    Run.objects.create(
        uid="00000000-0000-4000-8000-000000000001", name="late", seed="1", origin="imported", created_at=last.created_at
    )
    seen = callers["site"].get(f"runs?limit=500&cursor={first['next_cursor']}")
    assert "late" not in [item["name"] for item in seen["items"]]


def test_a_bound_tells_nothing_of_hidden_rows(world: World, callers: dict[str, Caller], other: Study) -> None:
    """A newer private study changes neither the bound nor the cursor that others get; its own people see it."""
    queries = ("plans?limit=1", "plans?limit=1&order=oldest", "plans?slug=none")
    before = [callers["nobody"].get(query) for query in queries]
    made = Plan.objects.create(uid="00000000-0000-4000-8000-000000000002", study=other, slug="late")
    assert [callers["nobody"].get(query) for query in queries] == before
    assert [item["upto"] for item in before] == [world.plan.pk, world.plan.pk, 0]
    assert [callers["site"].get(query)["upto"] for query in queries] == [made.pk, made.pk, 0]


@pytest.mark.parametrize(
    ("query", "field", "expected"),
    [
        ("nope=1", "nope", "a parameter out of"), ("limit=0", "limit", "1 to 500"), ("limit=1e3", "limit", "1 to 500"),
        ("order=up", "order", "newest or oldest"), ("cursor=%00", "cursor", "next_cursor"),
        ("cursor=YTpiOmM", "cursor", "next_cursor"), ("fields=uid,zzz", "fields", "uid, name"),
        ("plan=1", "plan", "a UUID"), ("state=flying", "state", "one of"),
        ("created_after=2026", "created_after", "zone"),
        ("arm=%00", "arm", "U+0000"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_named(
    world: World, callers: dict[str, Caller], query: str, field: str, expected: str
) -> None:
    status, value, response = callers["site"].call("GET", f"runs?{query}")
    assert status == 400 and response["Content-Type"] == "application/problem+json"
    assert value["errors"][0]["field"] == field and expected in value["errors"][0]["expected"]


def test_filters_and_fields(world: World, callers: dict[str, Caller]) -> None:
    caller = callers["viewer"]
    runs = caller.get("runs?arm=e3&fields=uid,arm")
    assert (
        runs["items"] and {item["arm"] for item in runs["items"]} == {"e3"} and set(runs["items"][0]) == {"uid", "arm"}
    )
    fatal = caller.get("trajectories?has_fatal=true&limit=500")["items"]
    assert len(fatal) == Trajectory.objects.filter(fatal_confirmed__isnull=False).count() > 0
    good = caller.get("trajectories?min_reward=0.5&limit=500")["items"]
    assert all(item["reward"] >= 0.5 for item in good)


def test_a_trajectory_tells_everything_and_its_tokens_are_arrow(world: World, callers: dict[str, Caller]) -> None:
    import pyarrow as pa

    row = Trajectory.objects.filter(turns__capture_sha256__isnull=False).order_by("pk").first()
    assert row is not None
    value = callers["viewer"].get(f"trajectories/{row.uid}")
    assert len(value["turns"]) == row.turns.count() and value["invariants"] is not None
    table = pa.ipc.open_stream(callers["viewer"].get(f"trajectories/{row.uid}/tokens.arrow")).read_all()
    turns = [turn for turn in value["turns"] if turn["capture_sha256"]]
    assert table.num_rows == sum(turn["prompt_tokens"] + turn["generated_tokens"] for turn in turns)
    assert sum(table["is_policy"].to_pylist()) == sum(turn["policy_tokens"] for turn in turns)


def paths(world: World) -> list[str]:
    """The address of one object of every kind."""
    run = world.runs["e3-s17"]
    group = run.groups.order_by("pk").first()
    assert group is not None
    trajectory = group.trajectories.order_by("pk").first()
    assert trajectory is not None
    turn = trajectory.turns.filter(capture_sha256__isnull=False).first()
    assert turn is not None and run.execution is not None
    return [
        f"studies/{world.study.slug}", f"plans/{world.plan.uid}", f"plans/{world.plan.uid}/bytes",
        f"executions/{run.execution.uid}", f"executions/{run.execution.uid}/progress", f"runs/{run.uid}",
        f"runs/{run.uid}/series/reward", f"groups/{group.uid}", f"groups/{group.uid}/captures",
        f"trajectories/{trajectory.uid}", f"trajectories/{trajectory.uid}/tokens.arrow",
        f"captures/{turn.capture_sha256}", f"captures/{turn.capture_sha256}/bytes", f"events?run={run.uid}",
        f"events?study={world.study.slug}",
    ]  # fmt: skip


def test_a_hidden_study_answers_as_if_it_were_not_there(
    world: World, callers: dict[str, Caller], hidden: Study
) -> None:
    for path in paths(world):
        assert callers["viewer"].call("GET", path)[0] == 200, path
        for name in ("nobody", "stranger"):
            assert callers[name].call("GET", path)[0] == 404, (name, path)
    for name in LISTS:
        assert callers["stranger"].get(f"{name}?limit=500")["items"] == [], name


def test_a_public_study_is_read_by_everyone(world: World, callers: dict[str, Caller]) -> None:
    for path in paths(world):
        assert callers["nobody"].call("GET", path)[0] == 200, path


@pytest.mark.parametrize(
    ("role", "shown"),
    [("nobody", False), ("viewer", False), ("worker", False), ("researcher", True), ("reviewer", True), ("admin", True),
     ("site", True)],
)  # fmt: skip
def test_hidden_references_are_for_those_who_judge(
    world: World, callers: dict[str, Caller], role: str, shown: bool
) -> None:
    task = callers["site"].get("tasks?limit=1")["items"][0]
    assert "hidden" not in task
    value = callers[role].get(f"tasks/{task['uid']}")
    assert (value["hidden"] is not None) == shown


@pytest.mark.parametrize(
    ("scopes", "shown"),
    [(("read",), False), (("log",), False), (("read", "write"), True), (("review",), False)],
)
def test_a_token_shows_hidden_references_through_its_scopes_only(
    world: World, people: dict[str, User], scopes: tuple[str, ...], shown: bool
) -> None:
    """A researcher's right comes from plan.write, which only the scope write lets through."""
    asker = Caller(people["researcher"], scopes)
    task = asker.get("tasks?limit=1")["items"][0]
    assert (asker.get(f"tasks/{task['uid']}")["hidden"] is not None) == shown


@pytest.mark.parametrize(
    ("path", "most"), [("runs", 8), ("groups", 8), ("trajectories", 8), ("captures", 8), ("jobs", 8)]
)
def test_query_counts(
    world: World, callers: dict[str, Caller], django_assert_max_num_queries: Any, path: str, most: int
) -> None:
    with django_assert_max_num_queries(most):
        callers["viewer"].get(f"{path}?limit=100")
