"""Downloads: exact bytes under their hash, single ranges, conditions, what retention removed; tokens as Arrow."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pyarrow as pa
import pytest

from runs.models import Checkpoint, Receipt, Tombstone, Turn
from runs.storage import blob_store
from tests.api.calls import Api, content
from tests.pages.state import World
from workbench.contracts.capture import Capture


@pytest.fixture
def turn(world: World) -> Turn:
    """The first captured call of e3-s17."""
    rows = Turn.objects.filter(trajectory__group__run=world.runs["e3-s17"], capture_sha256__isnull=False)
    return rows.order_by("pk")[0]


@pytest.fixture
def path(turn: Turn) -> str:
    """Address of its bytes."""
    return f"captures/{turn.capture_sha256}/bytes"


def test_the_bytes_are_those_that_the_hash_covers(mara: Api, turn: Turn, path: str) -> None:
    response = mara.get(path)
    data = content(response)
    assert hashlib.sha256(data).hexdigest() == turn.capture_sha256 == response["X-Data-SHA256"]
    assert response["ETag"] == f'"{turn.capture_sha256}"' and response["Accept-Ranges"] == "bytes"
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert response["Repr-Digest"] == response["Content-Digest"] == f"sha-256=:{digest}:"
    capture = Capture.from_bytes(data)
    assert len(list(capture.prompt_ids)) == turn.prompt_tokens


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("bytes=5-", 5, None), ("bytes=-7", -7, None)],
)
def test_one_range_is_sent(mara: Api, path: str, asked: str, first: int, last: int | None) -> None:
    whole = content(mara.get(path))
    response = mara.get(path, Range=asked)
    end = None if last is None else last + 1
    assert response.status_code == 206 and content(response) == whole[first:end]
    start = first % len(whole)
    assert response["Content-Range"] == f"bytes {start}-{start + len(whole[first:end]) - 1}/{len(whole)}"
    assert "Content-Digest" not in response  # only the whole's digest is known


def test_a_range_past_the_end_is_cut_to_it(mara: Api, path: str) -> None:
    whole = content(mara.get(path))
    response = mara.get(path, Range="bytes=3-999999999999999999")
    assert response.status_code == 206 and content(response) == whole[3:]


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0", "bytes=9-3"])
def test_a_range_outside_is_refused(mara: Api, path: str, asked: str) -> None:
    size = len(content(mara.get(path)))
    response = mara.get(path, Range=asked)
    assert response.status_code == 416 and response["Content-Range"] == f"bytes */{size}"


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "tokens=0-3", "bytes=-", "bytes=a-b", "nonsense"])
def test_what_is_no_single_range_gets_the_whole(mara: Api, path: str, asked: str) -> None:
    """RFC 9110 lets a server ignore a Range that it does not serve."""
    whole = content(mara.get(path))
    response = mara.get(path, Range=asked)
    assert response.status_code == 200 and content(response) == whole


def test_conditions(mara: Api, path: str) -> None:
    tag = mara.get(path)["ETag"]
    same = mara.get(path, If_None_Match=tag)
    assert same.status_code == 304 and content(same) == b""
    assert mara.get(path, If_None_Match='"0"').status_code == 200
    assert mara.get(path, Range="bytes=0-3", If_Range=tag).status_code == 206
    assert mara.get(path, Range="bytes=0-3", If_Range='"0"').status_code == 200


def test_pieces_make_the_whole(mara: Api, world: World) -> None:
    """The group's file, a blob of the store, in pieces of 1,000 bytes."""
    group = world.runs["e3-s17"].groups.order_by("pk")[0]
    address = f"groups/{group.uid}/captures"
    whole = content(mara.get(address))
    assert hashlib.sha256(whole).hexdigest() == group.capture_blob_sha256 and len(whole) == group.capture_blob_bytes
    pieces = [content(mara.get(address, Range=f"bytes={at}-{at + 999}")) for at in range(0, len(whole), 1000)]
    assert b"".join(pieces) == whole and len(pieces) > 1


def test_plan_and_receipt_bytes(mara: Api, world: World) -> None:
    plan = mara.get(f"plans/{world.plan.uid}/bytes")
    assert hashlib.sha256(content(plan)).hexdigest() == world.version.sha256
    receipt = Receipt.objects.filter(stream=f"run:{world.runs['e3-s17'].uid}")[0]
    assert hashlib.sha256(content(mara.get(f"receipts/{receipt.sha256}/bytes"))).hexdigest() == receipt.sha256


def test_bytes_that_retention_removed_are_gone_and_lost_ones_are_missing(mara: Api, world: World) -> None:
    """410 with the reason and the recipe differs from 404: one was decided, the other is damage."""
    run = world.runs["e3-s17"]
    rows = list(Checkpoint.objects.filter(run=run).order_by("pk")[:2])
    removed, lost = rows[0], rows[1]
    for row in rows:
        target = blob_store().path(row.sha256)
        if target.exists():
            target.rename(target.with_suffix(".aside"))
    try:
        Tombstone.objects.create(
            sha256=removed.sha256,
            reason="not kept by the plan",
            recipe={"replay": 1},
            at=world.clock,
            actor=world.study.created_by,
        )
        gone = mara.get(f"checkpoints/{removed.uid}/bytes")
        assert gone.status_code == 410 and "not kept by the plan" in gone.json()["detail"]
        assert mara.get(f"checkpoints/{lost.uid}/bytes").status_code == 404
        found = {row["sha256"]: row for row in mara.read(f"checkpoints?run={run.uid}")["items"]}
        assert found[removed.sha256]["tombstone"] == "not kept by the plan" and not found[removed.sha256]["held"]
        assert found[lost.sha256]["tombstone"] is None and not found[lost.sha256]["held"]
    finally:
        for row in rows:
            target = blob_store().path(row.sha256)
            if target.with_suffix(".aside").exists():
                target.with_suffix(".aside").rename(target)


def test_tokens_as_arrow(mara: Api, turn: Turn) -> None:
    """Rows are prompt and generated tokens of every call; the prompt has neither segment nor log-probability."""
    trajectory = turn.trajectory
    response = mara.get(f"trajectories/{trajectory.uid}/tokens.arrow", Accept="application/vnd.apache.arrow.stream")
    assert response["Content-Type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(content(response)).read_all()
    rows = list(trajectory.turns.filter(capture_sha256__isnull=False).order_by("branch", "decision"))
    assert table.num_rows == sum(row.prompt_tokens + row.generated_tokens for row in rows)
    first: list[dict[str, Any]] = [row for row in table.to_pylist() if row["capture_sha256"] == rows[0].capture_sha256]
    assert [row["is_prompt"] for row in first].count(True) == rows[0].prompt_tokens
    assert sum(row["is_policy"] for row in first) == rows[0].policy_tokens
    assert all(row["segment"] is None and row["sampler_logprob"] is None for row in first if row["is_prompt"])
    assert [row["position"] for row in first] == list(range(len(first)))


def test_nobody_downloads_from_a_private_study(world: World, caller: Any, path: str) -> None:
    type(world.study).objects.filter(pk=world.study.pk).update(visibility="private")
    assert caller().get(path).status_code == 404
    assert caller("stranger").get(path).status_code == 404
