"""A byte of a held source is flipped, and put back: everything that rests on it follows, both ways."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from evidence.actions.stale import open_marks
from evidence.attacks.world import AttackWorld, build
from evidence.models import ExcerptHead, SourceCheck, StaleMark, StaleResolution
from evidence.propagation import section_uid
from evidence.recording import record_checks
from evidence.verify import verify
from runs.actions.actors import service_actor
from workbench.blobs import BlobStore


@pytest.fixture
def world(db: None, tmp_path: Path, settings: LazySettings) -> AttackWorld:
    settings.BLOB_ROOT = str(tmp_path / "blobs")
    return build(BlobStore(tmp_path / "blobs"))


def record(world: AttackWorld, minutes: int) -> dict[str, int]:
    at = world.later + timedelta(minutes=minutes)
    return record_checks(store=world.store, by=service_actor("verify"), at=at).as_json()


def states(world: AttackWorld) -> dict[str, Any]:
    """What pages show: source, excerpts, figures, claims, marked sections."""
    sections = {str(section_uid(world.study, name)): name for name in ("why", "results", "meaning", "page")}
    marked = open_marks(world.study).filter(target_kind="section").values_list("target_uid", flat=True)
    return {
        "source": world.source("pilot.md").state,
        "excerpts": {head.excerpt.key: head.state for head in ExcerptHead.objects.select_related("excerpt")},
        "figures": {
            key: (world.figure(key).state, world.figure(key).stale)
            for key in ("pilot.nonzero", "pilot.rate", "table.masked")
        },
        "claims": {key: (world.claim(key).status, world.claim(key).stale) for key in ("share", "duration")},
        "sections": sorted({sections.get(str(uid), "other") for uid in marked}),
    }


def flip(world: AttackWorld, before: bytes, after: bytes) -> None:
    version = world.source("pilot.md").current
    assert version is not None
    data = world.store.path(version.sha256).read_bytes()
    assert data.count(before) == 1
    world.overwrite(version.sha256, data.replace(before, after))


def test_nothing_to_record_in_a_sound_world(world: AttackWorld) -> None:
    assert set(record(world, 0).values()) == {0}
    assert verify(store=world.store).problems == []


def test_flipped_and_restored(world: AttackWorld) -> None:
    """'92 were' becomes '93 were': its excerpt is an orphan, the others have moved, everything above is marked."""
    sound = states(world)
    flip(world, b"92 were", b"93 were")
    faults = {(item.step, item.row, item.column) for item in verify(store=world.store).faults}
    assert {(12, "pilot.md", "bytes"), (13, "nonzero", "text"), (14, "pilot.nonzero", "value")} <= faults

    found = record(world, 1)
    assert found["sources"] == 1
    assert found["opened"] == 7, "three figures, the derivation, two claims, one section; each once"
    now = states(world)
    assert now["source"] == "drifted"
    assert now["excerpts"] == {"usable": "moved", "nonzero": "orphan", "hours": "moved"}
    assert now["figures"] == {
        "pilot.nonzero": ("drifted", True), "pilot.rate": ("drifted", True), "table.masked": ("bound", False),
    }  # fmt: skip
    assert now["claims"] == {"share": ("not_established", True), "duration": ("not_established", True)}
    assert now["sections"] == ["results"]
    report = verify(store=world.store)
    assert {item.step for item in report.faults} == {5, 12, 13, 14}  # stored states agree with what was found
    assert set(record(world, 2).values()) == {0}, "a second pass finds nothing new"

    world.restore()
    healed = record(world, 3)
    assert healed["settled"] == found["opened"]
    assert states(world) == sound
    assert not open_marks().exists()
    assert set(StaleResolution.objects.values_list("how", flat=True)) == {"healed"}
    assert verify(store=world.store).problems == []
    assert [check.state for check in SourceCheck.objects.order_by("pk")] == ["drifted", "verified"]


def test_bytes_that_are_gone_and_back(world: AttackWorld) -> None:
    version = world.source("pilot.md").current
    assert version is not None
    world.overwrite(version.sha256, None)
    record(world, 1)
    now = states(world)
    assert now["source"] == "missing"
    assert set(now["excerpts"].values()) == {"unavailable"}
    assert now["claims"]["share"] == ("not_established", True)
    world.restore()
    record(world, 2)
    assert not open_marks().exists()
    assert verify(store=world.store).problems == []


def test_command_records_and_reading_alone_does_not(world: AttackWorld, capsys: pytest.CaptureFixture[str]) -> None:
    """``verify`` writes nothing; ``verify --record`` opens the marks and still exits 1: the bytes differ."""
    flip(world, b"17 hours", b"27 hours")
    with pytest.raises(SystemExit):
        call_command("verify", "--no-replay", "--json")
    assert not StaleMark.objects.exists()
    with pytest.raises(SystemExit):
        call_command("verify", "--no-replay", "--json", "--record")
    assert StaleMark.objects.exists()
    assert world.source("pilot.md").state == "drifted"
    assert '"recorded": {"sources": 1' in capsys.readouterr().out
