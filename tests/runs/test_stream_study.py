"""Heads name the study of their stream: when they are made, and in databases of before there was the column."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from django.apps import apps
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.access import Principal
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study
from runs.actions.receipts import append_receipt
from runs.models import Receipt, StreamHead, Study
from runs.streams import study_of_stream
from runs.visibility import stream_visible, visible_heads, visible_receipts
from tests.runs.builders import AT, build_world

NOBODY = Principal(None)


def _hidden() -> Study:
    return ensure_study(
        "hidden", title={"en": "Hidden", "zh": ""}, summary={"en": "", "zh": ""}, by=service_actor("w"), at=AT,
        visibility="private",
    )  # fmt: skip


def _fill() -> dict[str, Study]:
    """A public world with receipts of a plan, an execution and a run; a private study; a stream of no study."""
    world, hidden, actor = build_world(), _hidden(), service_actor("w")
    with transaction.atomic():
        for stream in (f"study:{hidden.uid}", f"execution:{world.execution.uid}", f"run:{world.run.uid}", "blobs"):
            append_receipt(stream, "test.note", None, {}, actor=actor, at=AT)
    own = {f"plan:{world.version.plan.uid}", f"execution:{world.execution.uid}", f"run:{world.run.uid}"}
    return dict.fromkeys(own, world.study) | {f"study:{hidden.uid}": hidden}


def test_a_stream_names_its_study_when_it_is_made(database: BaseDatabaseWrapper) -> None:
    expected = _fill()
    found = {head.stream: head.study for head in StreamHead.objects.exclude(study=None)}
    assert expected.items() <= found.items()
    assert StreamHead.objects.get(stream="blobs").study is None
    assert all(head.study == study_of_stream(head.stream) for head in StreamHead.objects.all())


def test_readers_see_the_streams_of_their_studies(database: BaseDatabaseWrapper) -> None:
    """Nobody signed in: the public study's three kinds of stream, neither the private study's nor those of no study."""
    expected = _fill()
    seen = {name for name, study in expected.items() if study.visibility == "public"}
    assert len(seen) == 3 and seen <= set(visible_heads(NOBODY).values_list("stream", flat=True))
    for stream in StreamHead.objects.filter(seq__gt=0).values_list("stream", flat=True):
        named = expected.get(stream) or study_of_stream(stream)
        public = named is not None and named.visibility == "public"
        assert stream_visible(NOBODY, stream) == public == visible_heads(NOBODY).filter(stream=stream).exists()
        assert visible_receipts(NOBODY, Receipt.objects.filter(stream=stream)).exists() == public
    assert not stream_visible(NOBODY, "run:none") and not stream_visible(NOBODY, "blobs")


def test_older_heads_are_filled(database: BaseDatabaseWrapper) -> None:
    """What the migration writes into an empty column is what creation writes; a malformed name stays without one."""
    _fill()
    StreamHead.objects.create(stream="run:no-uid", seq=0, sha256="0" * 64)
    before = dict(StreamHead.objects.values_list("stream", "study"))
    assert sum(study is not None for study in before.values()) > 3
    StreamHead.objects.update(study=None)
    migration = importlib.import_module("runs.migrations.0005_stream_study")
    migration.name_studies(apps, SimpleNamespace(connection=database))
    assert dict(StreamHead.objects.values_list("stream", "study")) == before
