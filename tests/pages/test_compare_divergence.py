"""The first token that differs between two trajectories of one task."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import EvaluationItem, Study, Trajectory
from runs.presenters.compare.divergence import Side, Token, align, divergence_of
from runs.presenters.tokens import ACTION, OBSERVATION, PROMPT, THINK, Segment, TokenSequence, first_difference
from runs.storage import blob_store
from tests.pages.state import World


@pytest.fixture
def siblings(world: World, db: None) -> list[Trajectory]:
    """Two slots of one group that part."""
    for row in Trajectory.objects.filter(group__run=world.runs["e3-s17"], group__signal="signal", slot=0):
        others = list(Trajectory.objects.filter(group=row.group, status="valid").exclude(pk=row.pk))
        for other in others:
            if divergence_of(row, other).index is not None:
                return [row, other]
    raise AssertionError("no siblings that part")


def _address(left: Trajectory, right: Trajectory) -> str:
    return f"/trajectories/{left.uid}/against/{right.uid}/"


def test_the_pair_is_the_first_difference_of_the_recorded_ids(client: Client, siblings: list[Trajectory]) -> None:
    left, right = siblings
    answer = client.get(_address(left, right))
    found = answer.context["found"]
    ids = [client.get(f"/trajectories/{row.uid}/tokens.json").json()["ids"] for row in siblings]
    assert found.index == first_difference(*ids)
    a, b = found.pair
    assert (a.id, b.id) == (ids[0][found.index], ids[1][found.index]) and a.id != b.id
    assert [t.id for t in found.before] == ids[0][: found.index][-24:] == ids[1][: found.index][-24:]
    text = answer.content.decode()
    assert f"They share {found.index} tokens" in text and 'id="parts"' in text
    assert f"/trajectories/{left.uid}/#t{found.index}" in text


def test_sides_swap_and_the_same_index_stays(client: Client, siblings: list[Trajectory]) -> None:
    there = client.get(_address(*siblings)).context["found"]
    back = client.get(_address(*reversed(siblings))).context["found"]
    assert there.index == back.index
    assert [t.id for t in there.pair] == [t.id for t in reversed(back.pair)]


@dataclass
class _Row:
    uid: str = "x"
    extra: dict[str, Any] = field(default_factory=dict)


def _side(*segments: tuple[int, int | None, str]) -> Side:
    """A side of one-letter tokens: (class, decision, letters)."""
    ids: list[int] = []
    kinds: list[int] = []
    found = []
    for kind, decision, letters in segments:
        found.append(Segment(len(ids), len(ids) + len(letters), kind, decision))
        ids += [ord(letter) for letter in letters]
        kinds += [kind] * len(letters)
    tokens = [Token(i, n, chr(n), kinds[i], False, None, None, None, None, None) for i, n in enumerate(ids)]
    return Side(_Row(), TokenSequence(ids, kinds, found, [], [], {}), tokens)  # type: ignore[arg-type]


def test_alignment_of_a_worked_example() -> None:
    """Left: P pp, think ab, action cd, Observation o, think x. Right: P pp, think ab, action ce.

    They part at index 5 (d against e), inside d0 action; Observation 0 and d1 think stand on the left alone.
    """
    left = _side((PROMPT, None, "pp"), (THINK, 0, "ab"), (ACTION, 0, "cd"), (OBSERVATION, 0, "o"), (THINK, 1, "x"))
    right = _side((PROMPT, None, "pp"), (THINK, 0, "ab"), (ACTION, 0, "ce"))
    index = first_difference(left.sequence.ids, right.sequence.ids)
    assert index == 5
    rows = align(left, right, index)
    assert [(row.label, row.state, row.right is None) for row in rows] == [
        ("prompt", "shared", False),
        ("d0 think", "shared", False),
        ("d0 action", "parts", False),
        ("Observation 0", "differs", True),
        ("d1 think", "differs", True),
    ]


def test_alignment_where_one_side_goes_on() -> None:
    """Equal up to index 2, then the left has a further Observation: that row holds the difference."""
    left, right = _side((THINK, 0, "ab"), (OBSERVATION, 0, "o")), _side((THINK, 0, "ab"))
    assert [row.state for row in align(left, right, 2)] == ["shared", "parts"]
    assert [row.state for row in align(left, left, None)] == ["shared", "shared"]


def test_later_equal_text_is_named() -> None:
    """They part in the thought; the same Observation follows in both: equal text, no shared prefix."""
    left, right = (_side((THINK, 0, a), (OBSERVATION, 0, "same")) for a in ("ab", "ac"))
    assert [row.state for row in align(left, right, 1)] == ["parts", "equal"]


def test_two_arms_on_one_item_share_a_seed(client: Client, world: World, db: None) -> None:
    """context and e2f on the same evaluation item: another policy, the same sampling seed."""
    item = EvaluationItem.objects.filter(run=world.runs["e2f-s17"], condition="stress").first()
    assert item is not None
    other = EvaluationItem.objects.get(
        run=world.runs["context-s17"], condition="stress", task=item.task, repeat=item.repeat
    )
    text = client.get(_address(item.trajectory, other.trajectory)).content.decode()
    assert "two policies" in text and "same sampling seed" in text


def test_two_tasks_and_one_trajectory_are_refused(client: Client, siblings: list[Trajectory]) -> None:
    left = siblings[0]
    other = Trajectory.objects.exclude(group__task=left.group.task).first()
    assert other is not None
    answer = client.get(_address(left, other))
    assert answer.status_code == 422 and "different tasks" in answer.content.decode()
    assert client.get(_address(left, left)).status_code == 422


def test_unreadable_captures_are_contained(client: Client, siblings: list[Trajectory]) -> None:
    sha256 = siblings[0].group.capture_blob_sha256
    data = blob_store().get(sha256)
    blob_store().delete(sha256)
    answer = client.get(_address(*siblings))
    blob_store().put(data)
    assert answer.status_code == 200 and "The recorded tokens are unavailable." in answer.content.decode()


def test_unknown_and_hidden(client: Client, world: World, siblings: list[Trajectory]) -> None:
    left, right = siblings
    assert client.get(f"/trajectories/{left.uid}/against/{uuid.uuid4()}/").status_code == 404
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    assert client.get(_address(left, right)).status_code == 404


def test_query_count(
    client: Client, siblings: list[Trajectory], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(23):
        client.get(_address(*siblings))
