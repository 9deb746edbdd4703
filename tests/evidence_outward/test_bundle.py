"""Bundles: the same bytes each time, everything in them, checked offline."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evidence.outward.archive import BundleError, open_bundle
from evidence.outward.bundle import Written, write_bundle
from evidence.outward.check import verify_bundle
from runs.models import Document, Receipt
from tests.evidence_outward.conftest import World
from workbench.contracts.canonical import sha256_hex

Bundle = tuple[Path, Written]


def test_a_clean_bundle_holds(bundle: Bundle) -> None:
    found = verify_bundle(bundle[0])
    assert [str(item) for item in found.faults] == []
    assert found.study == "scripted" and found.fingerprint == bundle[1].fingerprint
    assert {"anchor", "chain", "claim", "document", "excerpt", "figure", "file", "plan", "signature", "source"} <= set(
        found.checked
    )


def test_what_cannot_be_checked_is_named(bundle: Bundle) -> None:
    said = "\n".join(verify_bundle(bundle[0]).unchecked)
    assert "transcriptions" in said and "--with-captures" in said


def test_the_same_state_gives_the_same_bytes(world: World, bundle: Bundle, tmp_path: Path) -> None:
    again = write_bundle(world.study, tmp_path / "again")
    assert again.sha256 == bundle[1].sha256 == sha256_hex(bundle[0].read_bytes())
    assert (tmp_path / "again").read_bytes() == bundle[0].read_bytes()


def test_it_names_every_receipt_of_the_study_and_no_trajectory(world: World, bundle: Bundle) -> None:
    with open_bundle(bundle[0]) as reader:
        lines = sum(len(reader.read(path).splitlines()) for path in reader.paths("receipts/"))
        kinds = {path.split("/")[1] for path in reader.paths("documents/")}
    assert lines == Receipt.objects.count() and "group" not in kinds and "closure" in kinds


def test_with_captures_the_raw_records_are_in_it(world: World, tmp_path: Path) -> None:
    file = tmp_path / "raw"
    write_bundle(world.study, file, with_captures=True)
    with open_bundle(file) as reader:
        groups = reader.paths("documents/group/")
        assert len(groups) == Document.objects.filter(kind="group").count() > 0
    assert verify_bundle(file).ok


def test_nothing_is_overwritten_and_a_limit_holds(world: World, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    with pytest.raises(FileExistsError):
        write_bundle(world.study, file)
    with pytest.raises(BundleError, match="expected at most 10"):
        write_bundle(world.study, tmp_path / "small", most=10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"] and file.read_text() == "mine"


def test_a_blob_that_was_changed_is_not_exported(world: World, tmp_path: Path) -> None:
    from evidence.models import SourceVersion
    from runs.storage import blob_store

    version = SourceVersion.objects.get(source__path="pilot/table.csv")
    path = blob_store().path(version.sha256)
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data.replace(b"27", b"28"))
    try:
        with pytest.raises(BundleError, match=r"manage\.py verify"):
            write_bundle(world.study, tmp_path / "bundle")
    finally:
        path.write_bytes(data)
    assert list(tmp_path.iterdir()) == []


def command(file: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of the command."""
    out = io.StringIO()
    status = 0
    try:
        call_command("verify-bundle", str(file), "--json", *arguments, stdout=out)
    except SystemExit as ended:
        status = int(ended.code or 0)
    found: dict[str, Any] = json.loads(out.getvalue())
    return status, found


def test_command_needs_no_database(bundle: Bundle) -> None:
    """No test database is open here: a query would raise."""
    status, found = command(bundle[0])
    assert status == 0 and found["ok"] and found["problems"] == []


def test_command_names_what_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("hello")
    assert command(tmp_path / "note")[0] == 1
    assert command(tmp_path / "absent")[0] == 1


def test_command_refuses_another_key(bundle: Bundle) -> None:
    status, found = command(bundle[0], "--key", "00" * 32)
    assert status == 1 and {item["area"] for item in found["problems"]} == {"signature"}
    assert command(bundle[0], "--key", bundle[1].fingerprint)[0] == 0


@pytest.mark.django_db
def test_time_stamps_are_checked_against_given_roots(world: World, tmp_path: Path, settings: Any) -> None:
    """Without roots they are named; with their own they hold; with others they are a problem."""
    from evidence.actions.signing import newest_head
    from evidence.outward.timestamps import stamp_head
    from tests.evidence_signing.tsa import authority, make_certificates

    head = newest_head()
    assert head is not None
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    with authority(tmp_path / "own") as tsa:
        settings.TSA_URL, settings.TSA_ROOTS = tsa.url, tsa.roots
        stamp_head(head, at=head.at)
    make_certificates(tmp_path / "other")
    file = tmp_path / "stamped"
    write_bundle(world.study, file)
    assert any("it needs the certificates" in item for item in verify_bundle(file).unchecked)
    held = verify_bundle(file, roots=(tmp_path / "own/ca.pem").read_bytes())
    assert held.ok and held.checked["time stamp"] == 1
    refused = verify_bundle(file, roots=(tmp_path / "other/ca.pem").read_bytes())
    assert {item.area for item in refused.faults} == {"time stamp"}


def test_what_is_no_bundle_says_once_what_was_expected(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("no zip")
    for path in (file, tmp_path / "absent"):
        (fault,) = verify_bundle(path).faults
        assert fault.expected == "a bundle that can be read" and "expected" not in fault.got
