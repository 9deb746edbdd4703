"""One trajectory and its tokens."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Trajectory, TrajectoryCredit
from runs.presenters.tokens import first_difference, sequence_of, vocabulary
from runs.presenters.trajectory import reward_view
from runs.storage import blob_store
from tests.pages.rows import fake_sha
from tests.pages.state import World
from workbench.capturefile import read_index, read_trajectory
from workbench.contracts.capture import Capture


@pytest.fixture
def fatal(world: World, db: None) -> Trajectory:
    """A trained Fatal trajectory of the masked arm."""
    credit = TrajectoryCredit.objects.filter(
        update__run=world.runs["e3-s17"], masked_tokens__gt=0, trained_tokens__gt=0
    ).first()
    assert credit is not None
    return credit.trajectory


def _captures(row: Trajectory) -> list[Capture]:
    blob = blob_store().get(row.group.capture_blob_sha256)
    refs = [ref for ref in read_index(blob) if ref.trajectory_uid == str(row.uid)]
    return [Capture.from_bytes(data) for data in read_trajectory(blob, refs)]


def test_page_reads_as_a_conversation(client: Client, fatal: Trajectory) -> None:
    answer = client.get(f"/trajectories/{fatal.uid}/")
    text = answer.content.decode()
    assert "fatal_start" in text and "fatal_confirmed" in text
    assert "cut from training" in text
    assert text.count('class="turn ') == fatal.turns.count()
    assert "not measured: no validated judge" in text
    cut = [turn.turn.decision for turn in answer.context["turns"] if turn.cut]
    assert cut == [d for d in range(fatal.turns.count()) if d >= (fatal.fatal_start or 0)]


def test_tokens_are_the_recorded_ids(client: Client, world: World, fatal: Trajectory) -> None:
    """The strip = last prompt + last generated ids, text by text, since each prompt repeats what came before."""
    data = client.get(f"/trajectories/{fatal.uid}/tokens.json").json()
    last = _captures(fatal)[-1]
    assert data["ids"] == [*last.prompt_ids, *last.generated_ids]
    assert data["texts"] == [world.words.texts[i] for i in data["ids"]]
    assert [s[0] for s in data["segments"][1:]] == [s[1] for s in data["segments"][:-1]]
    assert data["segments"][-1][1] == data["n"] == len(data["kinds"])


def test_credit_matches_the_stored_counts(client: Client, fatal: Trajectory) -> None:
    data = client.get(f"/trajectories/{fatal.uid}/tokens.json").json()
    credit = TrajectoryCredit.objects.get(trajectory=fatal)
    assert len(data["policy"]) == credit.policy_tokens
    assert sum(data["trace"]["credited"]) == credit.trained_tokens
    assert data["trace"]["credited"].count(0) == credit.masked_tokens
    first_cut = data["policy"][data["trace"]["credited"].index(0)]
    assert data["fatal_start"] == first_cut


def test_first_step_of_a_batch_has_ratio_one(client: Client, fatal: Trajectory) -> None:
    data = client.get(f"/trajectories/{fatal.uid}/tokens.json").json()
    assert data["step"] == data["steps"][-1]
    first = client.get(f"/trajectories/{fatal.uid}/tokens.json", {"step": data["steps"][0]}).json()
    assert first["step"] == data["steps"][0]
    assert set(first["trace"]["ratio"]) == {1.0}


def test_divergence_from_siblings(client: Client, fatal: Trajectory) -> None:
    data = client.get(f"/trajectories/{fatal.uid}/tokens.json").json()
    own = data["ids"]
    assert len(data["divergence"]) == 3
    for item in data["divergence"]:
        other = sequence_of(_captures(Trajectory.objects.get(uid=item["uid"]))).ids
        if item["index"] is None:
            assert other == own
        else:
            assert other[: item["index"]] == own[: item["index"]]
            assert other[item["index"] : item["index"] + 1] != own[item["index"] : item["index"] + 1]


def test_unreadable_captures_are_contained(client: Client, fatal: Trajectory) -> None:
    """A missing blob is named in the answer; the page itself stays. The world's other tests get the blob back."""
    store, sha256 = blob_store(), fatal.group.capture_blob_sha256
    kept = store.get(sha256)
    store.delete(sha256)
    try:
        data = client.get(f"/trajectories/{fatal.uid}/tokens.json")
        assert data.status_code == 200
        assert "expected it in the store" in data.json()["unavailable"]
        assert client.get(f"/trajectories/{fatal.uid}/").status_code == 200
    finally:
        assert store.put(kept) == sha256
    assert "unavailable" not in client.get(f"/trajectories/{fatal.uid}/tokens.json").json()


def test_an_evaluation_says_that_it_trains_nothing(client: Client, world: World, db: None) -> None:
    row = Trajectory.objects.filter(group__purpose="evaluate").first()
    assert row is not None
    text = client.get(f"/trajectories/{row.uid}/").content.decode()
    assert "an evaluation trains nothing" in text
    data = client.get(f"/trajectories/{row.uid}/tokens.json").json()
    assert data["trace"] is None and data["trace_missing"] == "no update trained this trajectory"


def test_unknown_trajectory_and_bad_step(client: Client, fatal: Trajectory) -> None:
    assert client.get(f"/trajectories/{uuid.uuid4()}/").status_code == 404
    assert client.get(f"/trajectories/{uuid.uuid4()}/tokens.json").status_code == 404
    assert client.get(f"/trajectories/{fatal.uid}/tokens.json", {"step": "x"}).status_code == 404


def test_query_count_does_not_grow_with_turns(
    client: Client, fatal: Trajectory, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(25):
        client.get(f"/trajectories/{fatal.uid}/")


def test_vocabulary_of_an_unknown_tokenizer_is_none(world: World, db: None) -> None:
    assert vocabulary("0" * 64) is None
    found = vocabulary(fake_sha("tokenizer"))
    assert found is not None and found[0] == world.words.texts[0]


@pytest.mark.parametrize(
    ("left", "right", "index"),
    [([1, 2, 3], [1, 2, 3], None), ([1, 2, 3], [1, 9, 3], 1), ([1, 2], [1, 2, 3], 2), ([], [], None), ([], [1], 0)],
)
def test_first_difference(left: list[int], right: list[int], index: int | None) -> None:
    assert first_difference(left, right) == index


@pytest.mark.parametrize(
    ("weights", "low", "zero", "mean"), [((1.0, -1.0), -1.0, 260.0, 130.0), ((1.0, 0.5), 0.0, 0.0, 0.0)]
)
def test_a_reward_that_subtracts_is_drawn_from_minus_one(
    weights: tuple[float, float], low: float, zero: float, mean: float
) -> None:
    """A group mean of -0.5 on a bar of 520 from -1 to 1: at 130; on one from 0 it stands at the end."""
    rows = [SimpleNamespace(pk=n, name=f"c{n}", weight=w, value=0.5, points=w * 0.5) for n, w in enumerate(weights)]
    group = SimpleNamespace(mean=-0.5)
    of = SimpleNamespace(all=lambda: rows)
    item: Any = SimpleNamespace(reward_components=of, gate=1.0, group=group, reward_total=0.0)
    view = reward_view(item)
    assert (view.low, view.zero_x, view.mean_x) == (low, zero, mean)
    first = view.bar[0]
    assert (first.x, first.width) == (zero, 0.5 * 520 / (1 - low))
