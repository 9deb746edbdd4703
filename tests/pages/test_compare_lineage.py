"""Lineage of checkpoints: the drawing, one checkpoint, and what changed between two."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Checkpoint, ConsumedGroup, Run, Study, Tombstone, UpdateStep
from runs.presenters.compare.lineage import build_drawing, change_between, way
from tests.pages.state import T0, World

LINEAGE = "/studies/fatal-mask-pair/plans/small/lineage/"


def _policy(world: World, name: str, version: int) -> Checkpoint:
    rows = Checkpoint.objects.select_related("run__parent_checkpoint", "parent")
    return rows.get(run=world.runs[name], policy_version=version)


def _runs(world: World) -> list[Run]:
    return list(Run.objects.filter(plan_version=world.version).select_related("head", "arm", "parent_checkpoint"))


def test_every_policy_is_a_node_and_every_update_an_edge(client: Client, world: World, db: None) -> None:
    drawing = client.get(LINEAGE).context["drawing"]
    own = Checkpoint.objects.filter(run__plan_version=world.version).count()
    assert drawing.total == own + 1 == len(drawing.nodes)
    assert len(drawing.edges) == own  # a tree: one edge less than nodes
    assert drawing.held == drawing.total and drawing.removed == 0
    assert [node.row for node in drawing.nodes if node.column == 0 and node.row < 0] == [-1]
    assert all(1.0 <= edge.width <= 4.0 for edge in drawing.edges)


def test_removed_policies_are_hollow_and_keep_their_recipe(client: Client, world: World, db: None) -> None:
    from runs.actions.actors import service_actor

    gone = _policy(world, "e3-s17", 1)
    Tombstone.objects.create(
        sha256=gone.sha256,
        reason="retention: not kept",
        recipe={"replay": "apply_update"},
        at=T0,
        actor=service_actor("r"),
    )
    drawing = build_drawing(world.version, _runs(world))
    assert drawing.removed == 1
    assert [node.held for node in drawing.nodes if node.url.endswith(f"{gone.uid}/")] == [False]
    text = client.get(f"/checkpoints/{gone.uid}/").content.decode()
    assert "retention removed its bytes and kept the recipe" in text and "apply_update" in text


def test_many_versions_share_columns(world: World, db: None) -> None:
    """Versions up to 130 in 60 columns: three a column, and the last column is not full."""
    like = _policy(world, "e3-s17", 1)
    for version in (60, 61, 62, 130):
        Checkpoint.objects.create(
            uid=uuid.uuid4(), run=like.run, parent=like, sha256=f"{version:064d}", policy_version=version,
            kind="update", base_model_sha256=like.base_model_sha256, tokenizer_sha256=like.tokenizer_sha256,
            adaptation={}, blob_bytes=1, created_at=T0,
        )  # fmt: skip
    drawing = build_drawing(world.version, _runs(world))
    assert drawing.per_column == 3
    assert sum(node.count for node in drawing.nodes) == drawing.total
    assert max(node.x for node in drawing.nodes) < 1150


def test_what_one_update_changed(client: Client, world: World, db: None) -> None:
    """v1 of e3: the groups of its ledger, both steps, the norms 0.01 + 0.01 = 0.02."""
    own = _policy(world, "e3-s17", 1)
    answer = client.get(f"/checkpoints/{own.uid}/")
    totals = answer.context["change"].forth.totals
    update = own.updates_into.get()
    assert totals["groups"] == ConsumedGroup.objects.filter(update=update).count()
    assert totals["steps"] == UpdateStep.objects.filter(update=update).count() == 2
    assert abs(totals["length"] - 0.02) < 1e-12
    assert f"made by update {update.batch}" in answer.content.decode()


def test_ways_along_one_line_and_between_two(world: World, db: None) -> None:
    """v2 since the parent: two updates. e3's v2 against e2f's v1: from the common parent one way each."""
    last, other = _policy(world, "e3-s17", 2), _policy(world, "e2f-s17", 1)
    parent = world.runs["e3-s17"].parent_checkpoint
    forth = way(parent, last)
    assert [line.update.checkpoint_after.policy_version for line in forth.lines] == [1, 2]
    change = change_between(_policy(world, "e3-s17", 1), last)
    assert change.common is not None and change.common.policy_version == 1
    assert change.back is not None and change.forth is not None
    assert change.back.lines == [] and len(change.forth.lines) == 1
    apart = change_between(other, last)
    assert apart.common == parent and apart.back is not None and apart.forth is not None
    assert (len(apart.back.lines), len(apart.forth.lines)) == (1, 2)


def test_policies_without_a_common_ancestor(world: World, db: None) -> None:
    like = _policy(world, "e3-s17", 1)
    stranger = Checkpoint.objects.create(
        uid=uuid.uuid4(), sha256="f" * 64, policy_version=0, kind="parent", base_model_sha256="0" * 64,
        tokenizer_sha256=like.tokenizer_sha256, adaptation=like.adaptation, blob_bytes=4096, created_at=T0,
    )  # fmt: skip
    change = change_between(stranger, like)
    assert change.common is None and change.forth is None
    assert [name for name, _a, _b in change.fields] == ["base_model_sha256"]


def test_since_by_query(client: Client, world: World, db: None) -> None:
    own, since = _policy(world, "e3-s17", 2), world.runs["e3-s17"].parent_checkpoint
    answer = client.get(f"/checkpoints/{own.uid}/", {"since": str(since.uid)})
    assert len(answer.context["change"].forth.lines) == 2
    assert client.get(f"/checkpoints/{own.uid}/", {"since": "x"}).status_code == 404
    assert client.get(f"/checkpoints/{own.uid}/", {"since": str(uuid.uuid4())}).status_code == 404


def test_the_parent_page_lists_its_runs(client: Client, world: World, db: None) -> None:
    parent = world.runs["e3-s17"].parent_checkpoint
    answer = client.get(f"/checkpoints/{parent.uid}/")
    assert "Parent policy" in answer.content.decode()
    assert len(answer.context["children"]) == Run.objects.filter(parent_checkpoint=parent).count()


@pytest.mark.parametrize("path", [f"/checkpoints/{uuid.UUID(int=1)}/", "/studies/fatal-mask-pair/plans/none/lineage/"])
def test_unknown(client: Client, world: World, db: None, path: str) -> None:
    assert client.get(path).status_code == 404


def test_hidden_study(client: Client, world: World, db: None) -> None:
    own, parent = _policy(world, "e3-s17", 1), world.runs["e3-s17"].parent_checkpoint
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    for path in (LINEAGE, f"/checkpoints/{own.uid}/", f"/checkpoints/{parent.uid}/"):
        assert client.get(path).status_code == 404


def test_query_count(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(22):
        client.get(LINEAGE)
    with django_assert_max_num_queries(34):
        client.get(f"/checkpoints/{_policy(world, 'e3-s17', 2).uid}/")
