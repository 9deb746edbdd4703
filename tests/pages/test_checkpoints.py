"""Checkpoints: held adapters are downloads, removed ones say so and give their recipe."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import FileResponse
from django.test import Client

from runs.models import Checkpoint, Tombstone
from runs.storage import blob_store
from tests.pages.state import T0, World


@pytest.fixture
def held(world: World, db: None) -> Checkpoint:
    """A checkpoint of e3-s17 whose bytes lie in the store."""
    like = Checkpoint.objects.filter(run=world.runs["e3-s17"]).first()
    assert like is not None
    data = b"adapter bytes"
    return Checkpoint.objects.create(
        run=world.runs["e3-s17"],
        uid="11111111-1111-4111-8111-111111111111",
        parent=like,
        sha256=blob_store().put(data),
        policy_version=90,
        kind="update",
        base_model_sha256=like.base_model_sha256,
        tokenizer_sha256=like.tokenizer_sha256,
        adaptation=like.adaptation,
        blob_bytes=len(data),
        created_at=T0,
    )


def _entomb(row: Checkpoint, actor: Any) -> Tombstone:
    return Tombstone.objects.create(
        sha256=row.sha256,
        reason="retention: adapter not kept by the plan",
        recipe={"replay": "apply_update", "update_uid": "u-1", "run_uid": "r-1"},
        at=T0,
        actor=actor,
    )


def test_a_held_adapter_is_streamed_under_its_name(client: Client, held: Checkpoint) -> None:
    answer = client.get(f"/checkpoints/{held.sha256}/adapter/")
    assert isinstance(answer, FileResponse)
    assert b"".join(answer.streaming_content) == b"adapter bytes"
    assert answer["Content-Length"] == "13" and answer["X-Data-SHA256"] == held.sha256
    assert answer["Content-Type"] == "application/octet-stream" and answer["X-Content-Type-Options"] == "nosniff"
    name = f"e3-s17-v90-{held.sha256[:12]}.safetensors"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert f"/checkpoints/{held.sha256}/adapter/" in client.get("/checkpoints/").content.decode()


def test_a_removed_adapter_is_gone_with_its_recipe(client: Client, world: World, held: Checkpoint) -> None:
    from runs.actions.actors import service_actor

    _entomb(held, service_actor("retention"))
    answer = client.get(f"/checkpoints/{held.sha256}/adapter/")
    text = answer.content.decode()
    assert answer.status_code == 410
    assert "removed on purpose" in text and "not kept by the plan" in text and "u-1" in text
    assert "removed by retention, replay recipe kept" in client.get("/checkpoints/").content.decode()


def test_updates_of_the_run_mark_what_is_gone(client: Client, world: World, db: None) -> None:
    from runs.actions.actors import service_actor

    run = world.runs["e3-s17"]
    update = run.updates.filter(skipped=None).select_related("checkpoint_after").order_by("-batch").first()
    address = f"/runs/{run.uid}/"
    assert "removed by retention" not in client.get(address).content.decode()
    _entomb(update.checkpoint_after, service_actor("retention"))
    assert "removed by retention" in client.get(address).content.decode()


@pytest.mark.parametrize("name", ["0" * 64, "nothing", ".."])
def test_an_unknown_hash_is_not_found(client: Client, world: World, db: None, name: str) -> None:
    assert client.get(f"/checkpoints/{name}/adapter/").status_code == 404


def test_a_checkpoint_without_bytes_or_tombstone_is_not_found(client: Client, world: World, db: None) -> None:
    row = Checkpoint.objects.filter(run=world.runs["e3-s17"]).first()
    assert row is not None and not blob_store().exists(row.sha256)
    assert client.get(f"/checkpoints/{row.sha256}/adapter/").status_code == 404


def test_checkpoints_under_a_query(client: Client, world: World, held: Checkpoint) -> None:
    def count(query: str) -> int:
        answer = client.get("/checkpoints/", {"q": query})
        assert answer.status_code == 200
        return int(answer.context["listing"].count)

    assert count(f"sha:{held.sha256[:10]}") == 1 and count("run:e3-s17") == held.run.checkpoints.count()
    assert count("is:parent") == Checkpoint.objects.filter(kind="parent").count() > 0
    assert count("policy:90") == 1 and count("policy:>90") == 0
    assert next(iter(client.get("/checkpoints/", {"q": "sort:-policy"}).context["listing"])).pk == held.pk
    assert client.get("/checkpoints/", {"q": "reward:>1"}).status_code == 400


def test_removed_and_held_follow_the_standing_tombstones(client: Client, world: World, held: Checkpoint) -> None:
    """Removed, produced again, removed once more: the lists say what holds now."""
    from django.db import transaction

    from runs.actions.actors import service_actor
    from runs.actions.tombstones import rely_again, tombstone_blob

    def counts() -> tuple[int, int]:
        found = [
            client.get("/checkpoints/", {"q": f"is:{word}"}).context["listing"].count for word in ("removed", "held")
        ]
        return found[0], found[1]

    actor, total = service_actor("retention"), Checkpoint.objects.count()
    assert counts() == (0, total)
    tombstone_blob(held.sha256, "not kept", {"replay": "apply_update"}, actor, at=T0)
    assert counts() == (1, total - 1)
    with transaction.atomic():
        assert rely_again([held.sha256], actor=actor, at=T0) == [held.sha256]
    assert counts() == (0, total)
