"""Lines as a chart gets them: counts shown and stored, axes, marks, cursor, and what is refused."""

from __future__ import annotations

import math

import pytest
from django.test import Client

from runs.actions.actors import service_actor
from runs.metrics.read import series_of
from runs.metrics.store import LoggedPoint, log_points, seal
from runs.models import Run, Study, TrackedRun

from .conftest import AT

pytestmark = pytest.mark.django_db


@pytest.fixture
def public(run: Run) -> Run:
    Study.objects.update(visibility=Study.PUBLIC)
    points = [LoggedPoint("loss", 1.0 / (step + 1), step, 1_000 * step) for step in range(50)]
    points += [LoggedPoint("kl", math.nan, 0, 0), LoggedPoint("kl", 0.5, 1, 1000), LoggedPoint("kl", math.inf, 2, 2000)]
    log_points(run, points, source="api", actor=service_actor("tests"), at=AT)
    return run


def ask(client: Client, run: Run, **query: str) -> dict:
    uids = ",".join(item.uid for item in series_of(run))
    return client.get(f"/runs/{run.uid}/layers/data.json", {"series": uids, **query}).json()


def test_points_are_counted_and_odd_ones_marked(client: Client, public: Run) -> None:
    kl, loss = ask(client, public)["series"]
    assert (loss["n_stored"], loss["n_shown"], loss["sampler"]) == (50, 50, "exact") and loss["y"][1] == 0.5
    assert (kl["n_stored"], kl["n_shown"], kl["x"], kl["y"]) == (3, 3, [1], [0.5])
    assert kl["nonfinite"] == [[0, "nan"], [2, "inf"]] and kl["absent"] == []


def test_window_and_axis(client: Client, public: Run) -> None:
    """The run starts in 2026 and its times in 1970: wall seconds are far below zero, and still in order."""
    loss = ask(client, public, **{"from": "10", "to": "19"})["series"][1]
    assert loss["x"] == list(range(10, 20)) and loss["window"] == [10.0, 19.0]
    wall = ask(client, public, axis="wall")["series"][1]
    assert wall["step"] == list(range(50)) and wall["x"] == sorted(wall["x"])
    tokens = ask(client, public, axis="tokens")["series"][1]
    assert tokens["x"] is None and tokens["n_stored"] == 50 and tokens["n_shown"] == 0


def put(run: Run, *steps: int) -> None:
    points = [LoggedPoint("loss", 0.1, step, 0) for step in steps]
    log_points(run, points, source="api", actor=service_actor("tests"), at=AT)


def test_cursor_brings_only_what_is_new(client: Client, public: Run) -> None:
    """Fifty points, then two more, one of them late: the answer holds these two of this one line."""
    cursor = ask(client, public)["cursor"]
    assert ask(client, public, cursor=cursor) == {"changed": False, "cursor": cursor, "live": True}
    put(public, 51, 7)
    again = ask(client, public, cursor=cursor)
    (line,) = again["series"]
    assert (again["changed"], again["append"], line["x"], line["n_stored"]) == (True, True, [7, 51], 2)
    assert again["cursor"] != cursor and ask(client, public, cursor=again["cursor"])["changed"] is False


def test_a_cursor_older_than_the_sealing_brings_everything(client: Client, public: Run) -> None:
    """What was sealed since has left the landing rows, so that new and old can no longer be told apart."""
    cursor = ask(client, public)["cursor"]
    put(public, 50)
    seal(public, at=AT)
    again = ask(client, public, cursor=cursor)
    assert again["append"] is False and [line["n_stored"] for line in again["series"]] == [3, 51]


@pytest.mark.parametrize("cursor", ["n1", "b", "bx", "b" + "9" * 30, "b-1", "\u0661"])
def test_what_is_no_cursor_brings_everything(client: Client, public: Run, cursor: str) -> None:
    again = ask(client, public, cursor=cursor)
    assert again["append"] is False and [line["n_stored"] for line in again["series"]] == [3, 50]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"axis": "moon"}, "axis: got"),
        ({"from": "x"}, "from: got"),
        ({"to": "nan"}, "to: got nan"),
        ({"series": ""}, "series: got 0"),
        ({"series": "7c0b9fa4-0000-0000-0000-000000000000"}, "series of this run"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_named(client: Client, public: Run, query: dict[str, str], words: str) -> None:
    uids = ",".join(item.uid for item in series_of(public))
    answer = client.get(f"/runs/{public.uid}/layers/data.json", {"series": uids, **query})
    assert answer.status_code == 404


def test_a_hidden_run_is_not_there(client: Client, public: Run) -> None:
    Study.objects.update(visibility=Study.PRIVATE)
    uids = ",".join(item.uid for item in series_of(public))
    assert client.get(f"/runs/{public.uid}/layers/data.json", {"series": uids}).status_code == 404
    Study.objects.update(visibility=Study.PUBLIC)
    TrackedRun.objects.update(deleted=True)
    assert client.get(f"/runs/{public.uid}/layers/data.json", {"series": uids}).status_code == 404
