"""Sources that are corrected or broken: an honest correction is no fault, a broken file one of its own rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from evidence.actions.figures import bind_figure
from evidence.actions.sources import add_source
from evidence.attacks.world import AttackWorld, build
from evidence.outward.bundle import write_bundle
from evidence.outward.check import verify_bundle
from evidence.recording import record_checks
from evidence.verify import verify
from runs.actions.actors import service_actor
from workbench.blobs import BlobStore


@pytest.fixture
def world(db: None, tmp_path: Path, settings: LazySettings) -> AttackWorld:
    settings.BLOB_ROOT = str(tmp_path / "blobs")
    return build(BlobStore(tmp_path / "blobs"))


def faults(world: AttackWorld) -> set[tuple[int, str, str]]:
    """(step, row, column) of each fault."""
    return {(item.step, item.row, item.column) for item in verify(store=world.store).faults}


def correct(world: AttackWorld, path: str, before: bytes, after: bytes, **given: Any) -> None:
    """Take in other bytes of a source, with a reason."""
    version = world.source(path).current
    assert version is not None
    data = world.store.path(version.sha256).read_bytes()
    assert data.count(before) == 1
    add_source(
        world.study, path, data.replace(before, after), origin="upload", by=world.author, at=world.later,
        reason="recounted by hand", **given,
    )  # fmt: skip


def test_an_honest_correction_is_no_fault_and_its_bundle_holds(world: AttackWorld, tmp_path: Path) -> None:
    """92 was 93: figures on it have drifted and say so; the same bytes flipped in the store are faults."""
    correct(world, "pilot.md", b"92 were", b"93 were")
    assert (world.figure("pilot.nonzero").state, world.figure("pilot.nonzero").stale) == ("drifted", True)
    assert faults(world) == set()
    write_bundle(world.study, tmp_path / "bundle")
    assert [str(item) for item in verify_bundle(tmp_path / "bundle").faults] == []


def test_a_drifted_figure_that_says_that_it_is_bound_is_a_fault(world: AttackWorld) -> None:
    correct(world, "pilot.md", b"92 were", b"93 were")
    figure = world.figure("pilot.nonzero")
    figure.state = "bound"
    figure.save(update_fields=["state"])
    assert {(14, "pilot.nonzero", "state"), (14, "pilot.nonzero", "value")} <= faults(world)


@pytest.mark.parametrize("after", [b'"1asked', b"\xffasked", b"m,a,s,k"])
def test_a_broken_table_is_a_fault_of_its_own_rows_and_the_rest_is_looked_at(world: AttackWorld, after: bytes) -> None:
    """An open quotation mark and a byte that is no text: the figure has drifted, everything else is as it was."""
    version = world.source("table.csv").current
    assert version is not None
    data = world.store.path(version.sha256).read_bytes()
    world.overwrite(version.sha256, data.replace(b"masked", after))
    found = faults(world)
    assert (12, "table.csv", "bytes") in found and (14, "table.masked", "value") in found
    assert not any(row.startswith("pilot") for _step, row, _column in found)
    record_checks(store=world.store, by=service_actor("verify"), at=world.later)
    assert world.figure("table.masked").state == "drifted" and world.figure("pilot.nonzero").state == "bound"


def test_a_broken_table_can_be_taken_in_as_a_new_version(world: AttackWorld) -> None:
    correct(world, "table.csv", b"masked", b'"masked')
    assert world.source("table.csv").versions.count() == 2
    assert faults(world) == set()


def test_a_bundle_names_a_share_that_says_that_it_has_drifted(world: AttackWorld, tmp_path: Path) -> None:
    """The share rests on an operand that was bound anew: it says so, and no fault is found."""
    binding = {"type": "excerpt", "excerpt": "hours", "number": "17"}
    bind_figure(
        world.study, "pilot.nonzero", binding, title_en="Pilot: nonzero", kind="mechanism", by=world.author,
        at=world.later, reason="the wrong count",
    )  # fmt: skip
    assert world.figure("pilot.rate").state == "drifted" and faults(world) == set()
    write_bundle(world.study, tmp_path / "bundle")
    found = verify_bundle(tmp_path / "bundle")
    assert found.ok and any("pilot.rate: it says that it has drifted" in said for said in found.unchecked)
