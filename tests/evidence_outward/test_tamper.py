"""Every change of a bundle is found: of any byte, and of what somebody makes fit who has all but the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.outward.bundle import Written
from evidence.outward.check import verify_bundle
from evidence.outward.findings import Findings
from evidence.outward.keys import fingerprint, head_bytes, public_pem
from tests.evidence_outward.forge import Parts, rewrite
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex

Bundle = tuple[Path, Written]
PLACES = 24


def areas(found: Findings) -> set[str]:
    """Areas in which something was found."""
    return {item.area for item in found.faults}


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 2**32), bit=st.integers(0, 7))
def test_any_byte_of_the_file(bundle: Bundle, tmp_path: Path, place: int, bit: int) -> None:
    data = bytearray(bundle[0].read_bytes())
    data[place % len(data)] ^= 1 << bit
    (tmp_path / "flipped").write_bytes(bytes(data))
    assert not verify_bundle(tmp_path / "flipped").ok


@pytest.mark.parametrize("part", range(PLACES))
def test_a_byte_of_every_region(bundle: Bundle, tmp_path: Path, part: int) -> None:
    """Ends and evenly spread places: local headers, contents, the directory and its end."""
    data = bytearray(bundle[0].read_bytes())
    data[(len(data) - 1) * part // (PLACES - 1)] ^= 0x20
    (tmp_path / "flipped").write_bytes(bytes(data))
    assert not verify_bundle(tmp_path / "flipped").ok


@pytest.mark.parametrize("extra", [b"\0", b"more"])
def test_bytes_after_the_end_or_before_the_beginning(bundle: Bundle, tmp_path: Path, extra: bytes) -> None:
    data = bundle[0].read_bytes()
    (tmp_path / "after").write_bytes(data + extra)
    (tmp_path / "before").write_bytes(extra + data)
    assert "file" in areas(verify_bundle(tmp_path / "after")) and "file" in areas(verify_bundle(tmp_path / "before"))


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_file_cut_short(bundle: Bundle, tmp_path: Path, keep: int) -> None:
    (tmp_path / "cut").write_bytes(bundle[0].read_bytes()[:keep])
    assert areas(verify_bundle(tmp_path / "cut")) == {"file"}


def stream_of(parts: Parts, prefix: str) -> str:
    """Path of the first stream of a kind."""
    return next(path for path in parts if path.startswith(f"receipts/{prefix}"))


def drop_last_receipt(parts: Parts) -> None:
    path = stream_of(parts, "execution")
    parts[path] = b"\n".join(parts[path].splitlines()[:-1]) + b"\n"


def drop_last_evidence(parts: Parts) -> None:
    path = stream_of(parts, "evidence")
    parts[path] = b"\n".join(parts[path].splitlines()[:-1]) + b"\n"


def drop_a_stream(parts: Parts) -> None:
    parts.pop(stream_of(parts, "run"))


def reorder_receipts(parts: Parts) -> None:
    path = stream_of(parts, "execution")
    lines = parts[path].splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    parts[path] = b"\n".join(lines) + b"\n"


def edit_receipt(parts: Parts) -> None:
    """The last receipt of a run, so that no later one names its hash."""
    path = stream_of(parts, "execution")
    lines = parts[path].splitlines()
    value = parse_canonical(lines[-1])
    value["body"]["counts"] = {"items": 999}
    lines[-1] = canonical_bytes(value)
    parts[path] = b"\n".join(lines) + b"\n"


def chained(path: str, parts: Parts, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change a stream's values and chain them anew."""
    values = [parse_canonical(line) for line in parts[path].splitlines()]
    prev = values[0]["prev"]
    change(values)
    lines = []
    for value in values:
        value["prev"] = prev
        lines.append(canonical_bytes(value))
        prev = sha256_hex(lines[-1])
    parts[path] = b"\n".join(lines) + b"\n"


def swap_excerpt(parts: Parts) -> None:
    """Another quotation under the same key, the chain made to fit."""

    def change(values: list[dict[str, Any]]) -> None:
        body = next(item["body"] for item in values if item["kind"] == "evidence.excerpt")
        body["selector"]["exact"] = body["text"] = "Of these, 192 were not zero."

    chained(stream_of(parts, "evidence"), parts, change)


def raise_figure(parts: Parts) -> None:
    def change(values: list[dict[str, Any]]) -> None:
        body = next(item["body"] for item in values if item["body"].get("value") == "244")
        body["value"] = "245"

    chained(stream_of(parts, "evidence"), parts, change)


def type_a_number(parts: Parts) -> None:
    def change(values: list[dict[str, Any]]) -> None:
        body = next(item["body"] for item in values if item["kind"] == "evidence.claim_version")
        body["text_en"] = body["text_en"].replace("[[pilot.nonzero]]", "192")

    chained(stream_of(parts, "evidence"), parts, change)


def rewrite_source(parts: Parts) -> None:
    path = next(path for path in parts if path.startswith("blobs/") and b"usable groups" in parts[path])
    parts[path] = parts[path].replace(b"92", b"93")


def drop_source(parts: Parts) -> None:
    parts.pop(next(path for path in parts if path.startswith("blobs/") and b"usable groups" in parts[path]))


def replace_aggregate(parts: Parts) -> None:
    path = next(path for path in parts if path.startswith("documents/aggregate/"))
    parts[path] = canonical_bytes({**parse_canonical(parts[path]), "schema": "other"})


def drop_plan(parts: Parts) -> None:
    parts.pop(next(path for path in parts if path.startswith("plans/") and path != "plans/plans.json"))


def edit_plan(parts: Parts) -> None:
    path = next(path for path in parts if path.startswith("plans/") and path != "plans/plans.json")
    value = parse_canonical(parts[path])
    value["plan"]["budget"]["batches"] = 99
    parts[path] = canonical_bytes(value)


def replace_head(parts: Parts) -> None:
    """A head of another history, signed with a key of one's own."""
    path = max(path for path in parts if path.startswith("heads/"))
    entries = parse_canonical(parts[path])
    value, key = json.loads(entries[0]["signed"]), Ed25519PrivateKey.generate()
    value["heads"][0][1] += 1
    data = head_bytes(value["anchor"]["seq"], value["anchor"]["sha256"], value["heads"], key.public_key())
    entries[0].update(signed=data.decode(), signature=key.sign(data).hex())
    parts[path] = canonical_bytes(entries)


def forge_head(parts: Parts) -> None:
    """The signed text changed under its old signature."""
    path = max(path for path in parts if path.startswith("heads/"))
    entries = parse_canonical(parts[path])
    value = json.loads(entries[0]["signed"])
    value["heads"][0][1] += 1
    value["receipts"] += 1
    entries[0]["signed"] = canonical_bytes(value).decode()
    parts[path] = canonical_bytes(entries)


def drop_anchors(parts: Parts) -> None:
    for path in [path for path in parts if path.startswith(("anchors/", "heads/"))]:
        parts.pop(path)


def older_claim(parts: Parts) -> None:
    """The head of a figure points at nothing."""
    rows = parse_canonical(parts["evidence/figures.json"])
    rows[0]["current"] = None
    parts["evidence/figures.json"] = canonical_bytes(rows)


def rename_source(parts: Parts) -> None:
    rows = parse_canonical(parts["evidence/sources.json"])
    next(row for row in rows if row["reference"] == "R1")["reference"] = "R9"
    parts["evidence/sources.json"] = canonical_bytes(rows)


def rename_actor(parts: Parts) -> None:
    rows = parse_canonical(parts["actors.json"])
    rows[0]["name"] = "somebody"
    parts["actors.json"] = canonical_bytes(rows)


FORGERIES: dict[Callable[[Parts], None], str] = {
    drop_last_receipt: "anchor", drop_last_evidence: "anchor", drop_a_stream: "file", reorder_receipts: "chain",
    edit_receipt: "anchor", swap_excerpt: "excerpt", raise_figure: "figure", type_a_number: "claim",
    rewrite_source: "source", drop_source: "source", replace_aggregate: "document", drop_plan: "plan",
    edit_plan: "plan", replace_head: "anchor", forge_head: "anchor", drop_anchors: "anchor", older_claim: "figure",
    rename_actor: "chain", rename_source: "source",
}  # fmt: skip


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_forgery_whose_manifest_fits(bundle: Bundle, tmp_path: Path, change: Callable[[Parts], None]) -> None:
    """Found by what the bundle says of itself, and by the signature over the manifest besides."""
    found = verify_bundle(rewrite(bundle[0], tmp_path / "forged", change))
    assert {FORGERIES[change], "signature"} <= areas(found), [str(item) for item in found.faults[:5]]


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_forgery_under_the_old_manifest(bundle: Bundle, tmp_path: Path, change: Callable[[Parts], None]) -> None:
    assert "file" in areas(verify_bundle(rewrite(bundle[0], tmp_path / "forged", change, fit=False)))


def test_a_part_that_nobody_names(bundle: Bundle, tmp_path: Path) -> None:
    def change(parts: Parts) -> None:
        parts["evidence/more.json"] = b"{}"

    assert areas(verify_bundle(rewrite(bundle[0], tmp_path / "forged", change, fit=False))) == {"file"}


def test_signed_anew_with_another_key_it_is_found_by_the_fingerprint(bundle: Bundle, tmp_path: Path) -> None:
    """Whoever replaces everything, key included, gives a bundle that holds; a reader's own copy of the key finds it."""
    key = Ed25519PrivateKey.generate()

    def change(parts: Parts) -> None:
        parts["key.pem"] = public_pem(key.public_key()).encode()
        manifest = parse_canonical(parts["manifest.json"])
        manifest["fingerprint"] = fingerprint(key.public_key())
        parts["manifest.json"] = canonical_bytes(manifest)

    fitted = rewrite(bundle[0], tmp_path / "fitted", change)

    def sign(parts: Parts) -> None:
        parts["manifest.sig"] = key.sign(parts["manifest.json"]).hex().encode()

    forged = rewrite(fitted, tmp_path / "forged", sign, fit=False)
    assert "signature" not in areas(verify_bundle(forged))
    assert areas(verify_bundle(forged, key=bundle[1].fingerprint)) == {"signature"}
