"""Documents of trials: in a bundle with captures, else named as left out; one that is silently absent is found."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from evidence.outward.archive import open_bundle
from evidence.outward.bundle import write_bundle
from evidence.outward.check import verify_bundle
from runs.actions.documents import store_document
from runs.actions.receipts import append_receipt
from runs.models import StreamHead
from tests.evidence_outward.conftest import World
from tests.evidence_outward.forge import Parts, rewrite
from tests.evidence_outward.world import AT
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex

KINDS = {"trials": "trials.recorded", "controls": "controls.recorded", "branch": "branch.recorded"}


@pytest.fixture(params=sorted(KINDS))
def tried(request: pytest.FixtureRequest, world: World) -> tuple[str, str]:
    """(kind, uid) of a document that a receipt of the study names; two receipts name it."""
    kind: str = request.param
    uid = uuid.uuid5(uuid.NAMESPACE_URL, kind)
    data = canonical_bytes({"fail_to_pass": ["hidden_test"], "kind": kind})
    store_document(kind, uid, data)
    stream = StreamHead.objects.filter(study=world.study, stream__startswith="run:").order_by("stream")[0].stream
    body: dict[str, Any] = {kind: str(uid), "record_sha256": sha256_hex(data)}
    for _ in range(2):
        append_receipt(stream, KINDS[kind], uid, body, actor=world.study.created_by, at=AT)
    return kind, str(uid)


def told(file: Path) -> list[str]:
    """What the check says against a bundle's documents."""
    return [str(item) for item in verify_bundle(file).faults if item.area == "document"]


def test_without_captures_it_is_named_as_left_out(world: World, tried: tuple[str, str], tmp_path: Path) -> None:
    kind, _uid = tried
    done = write_bundle(world.study, tmp_path / "open")
    assert f"1 documents of kind {kind}: raw trajectories: --with-captures" in done.left_out
    assert b"hidden_test" not in (tmp_path / "open").read_bytes()
    found = verify_bundle(tmp_path / "open")
    assert found.ok and any(f"documents of kind {kind}" in item for item in found.unchecked)


def test_with_captures_it_is_there_and_its_absence_is_found(
    world: World, tried: tuple[str, str], tmp_path: Path
) -> None:
    kind, uid = tried
    path = f"documents/{kind}/{uid}.json"
    write_bundle(world.study, tmp_path / "raw", with_captures=True)
    with open_bundle(tmp_path / "raw") as reader:
        assert path in reader.sizes
    assert verify_bundle(tmp_path / "raw").ok
    gone = rewrite(tmp_path / "raw", tmp_path / "gone", lambda parts: parts.pop(path) and None)
    assert any(uid in said and "got nothing" in said for said in told(gone))


@pytest.mark.parametrize("count", [None, 0, 2])
def test_an_absence_that_is_told_wrongly_or_not_at_all_is_found(
    world: World, tried: tuple[str, str], tmp_path: Path, count: int | None
) -> None:
    kind, _uid = tried

    def silent(parts: Parts) -> None:
        manifest = parse_canonical(parts["manifest.json"])
        for item in list(manifest["left_out"]):
            if item["what"] == f"documents of kind {kind}":
                if count is None:
                    manifest["left_out"].remove(item)
                else:
                    item["count"] = count
        parts["manifest.json"] = canonical_bytes(manifest)

    write_bundle(world.study, tmp_path / "open")
    assert told(rewrite(tmp_path / "open", tmp_path / "silent", silent))


def test_the_check_writes_nothing_into_a_home(tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"no bundle")
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "manage.py", "verify-bundle", str(tmp_path / "no.zip")], cwd=settings.BASE_DIR, timeout=60,
        env={**os.environ, "WORKBENCH_HOME": str(home), "WORKBENCH_SECRET_KEY": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "NOT verified" in done.stdout, done.stderr
    assert not home.exists()
