"""Checks a bundle offline, with nothing but the bundle: no database, no network.

(1) file: every byte follows from the contents; each part is named by the manifest and hashes as it says
(2) signature: the manifest is signed by the key inside, whose fingerprint a reader may have from elsewhere
(3) chains: each receipt hashes, follows the one before it, and the last one is the head of the manifest
(4) anchors: signed heads hold, and name receipts that are here; a cut tail shows in them
(5) plans and documents: canonical bytes whose hashes receipts and closures tell
(6) evidence: held bytes, excerpts in them, figures from them, tokens of claims and notes (``recheck``)
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.checks.documents import recorded
from evidence.outward.archive import BundleError, BundleReader, open_bundle, written_again
from evidence.outward.contents import RAW, left_kind
from evidence.outward.findings import Findings
from evidence.outward.keys import SignatureError, check_signature, fingerprint, read_head, read_public
from runs.actions.receipts import ANCHOR_SCHEMA
from workbench.contracts.canonical import derive_uid, parse_canonical, sha256_hex
from workbench.contracts.chain import RECEIPT_SCHEMA, genesis
from workbench.contracts.errors import ContractError

SCHEMA = "workbench.bundle/1"
UNREADABLE = (ContractError, KeyError, TypeError, ValueError, IndexError, AttributeError)


@dataclass
class Told:
    """A receipt as read: its value and the hash of its line."""

    value: dict[str, Any]
    sha256: str

    @property
    def body(self) -> dict[str, Any]:
        """What it tells."""
        found: dict[str, Any] = self.value["body"]
        return found


@dataclass
class World:
    """What the bundle holds, as far as it could be read. ``receipts`` by stream."""

    reader: BundleReader
    manifest: dict[str, Any]
    receipts: dict[str, list[Told]] = field(default_factory=dict)

    def every(self, prefix: str = "") -> Iterator[Told]:
        """Receipts whose kind begins with ``prefix``, stream by stream."""
        for stream in sorted(self.receipts):
            for told in self.receipts[stream]:
                if str(told.value["kind"]).startswith(prefix):
                    yield told

    def json(self, path: str) -> Any:
        """A canonical part."""
        return parse_canonical(self.reader.read(path))


def verify_bundle(file: Path, *, key: str = "", roots: bytes = b"") -> Findings:
    """Check a bundle. ``key``: the fingerprint that must have signed it; empty: the one that it names itself.

    ``roots``: PEM of the certificates that time stamps are trusted by; empty: stamps are named as not checked.

    Never raises for what the file holds: a bundle that cannot be read is a finding.
    """
    found = Findings()
    try:
        with open_bundle(file) as reader:
            world = _read(found, file, reader, key.lower())
            if world is not None:
                from evidence.outward.recheck import check_evidence

                _chains(found, world)
                _anchors(found, world, roots)
                _plans(found, world)
                _documents(found, world)
                check_evidence(found, world)
                for item in world.manifest["left_out"]:
                    found.unchecked.append(f"{item['count']} {item['what']}: {item['why']}")
    except BundleError as error:  # its message names what was expected
        said, _comma, expected = str(error).rpartition(", expected ")
        found.fault("file", file.name, got=said or str(error), expected=expected or "a bundle that can be read")
    except OSError as error:
        found.fault("file", file.name, got=str(error), expected="a bundle that can be read")
    except UNREADABLE as error:
        found.fault("file", file.name, got=f"{type(error).__name__}: {error}", expected="the parts of a bundle")
    return found


def _read(found: Findings, file: Path, reader: BundleReader, key: str) -> World | None:
    """Steps 1 and 2. None where the manifest cannot be relied on for anything further."""
    data = reader.read("manifest.json")
    manifest = parse_canonical(data)
    if manifest["schema"] != SCHEMA:
        found.fault("file", "manifest.json", got=manifest["schema"], expected=SCHEMA)
        return None
    found.study, found.fingerprint = manifest["study"]["slug"], manifest["fingerprint"]
    found.checked["file"] += 1
    if not written_again(file, reader):
        found.fault(
            "file", file.name, got="bytes beside the contents", expected="what the contents give, written again"
        )
    named = {"manifest.json", "manifest.sig"}
    for path, sha256, size in manifest["files"]:
        named.add(path)
        if path not in reader.sizes:
            found.fault("file", path, got="nothing", expected=sha256)
        elif found.same("file", path, sha256, reader.sha256(path)):
            found.same("file", f"{path} size", size, reader.sizes[path])
    for path in set(reader.sizes) - named:
        found.fault("file", path, got="a part that the manifest does not name", expected="no such part")
    _signature(found, reader, data, key or manifest["fingerprint"])
    missing = [item.subject for item in found.faults if item.area == "file" and item.got == "nothing"]
    return None if missing else World(reader, manifest)


def _signature(found: Findings, reader: BundleReader, manifest: bytes, key: str) -> None:
    found.checked["signature"] += 1
    try:
        public = read_public(reader.read("key.pem"))
        found.same("signature", "fingerprint of key.pem", key, fingerprint(public))
        check_signature(public, manifest, bytes.fromhex(reader.read("manifest.sig").decode("ascii")))
    except (SignatureError, BundleError, ValueError) as error:
        found.fault("signature", "manifest.sig", got=str(error), expected="a signature over the manifest")


def _chains(found: Findings, world: World) -> None:
    """Step 3."""
    actors = {item["uid"] for item in world.json("actors.json")}
    for actor in world.json("actors.json"):
        uid = str(derive_uid(None, f"actor:{actor['kind']}:{actor['name']}"))
        found.same("chain", f"actor {actor['name']}", uid, actor["uid"])
    study = world.json("study.json")
    found.same("chain", "study.json", world.manifest["study"]["uid"], study["uid"])
    found.same("chain", "study uid", str(derive_uid(None, f"study:{study['slug']}")), study["uid"])
    heads = {stream: (seq, sha256) for stream, seq, sha256 in world.manifest["heads"]}
    paths = {f"receipts/{stream.replace(':', '-')}.jsonl": stream for stream in heads}
    for path in world.reader.paths("receipts/"):
        if path not in paths:
            found.fault("chain", path, got="a stream without a head", expected="a head in the manifest")
    for path, stream in sorted(paths.items()):
        world.receipts[stream] = rows = []
        seq, prev = 0, genesis(stream)
        for line in world.reader.read(path).splitlines():
            told = _receipt(found, stream, seq + 1, prev, line, actors)
            if told is None:
                break
            rows.append(told)
            seq, prev = seq + 1, told.sha256
        found.same("chain", f"head of {stream}", heads[stream], (seq, prev))


def _receipt(found: Findings, stream: str, seq: int, prev: str, line: bytes, actors: set[str]) -> Told | None:
    name = f"{stream}#{seq}"
    try:
        value = parse_canonical(line)
        same = found.same("chain", f"{name} schema", RECEIPT_SCHEMA, value["schema"])
        for column, expected in (("stream", stream), ("seq", seq), ("prev", prev)):
            same &= found.same("chain", f"{name} {column}", expected, value[column])
        if value["actor"] not in actors:
            found.fault("chain", f"{name} actor", got=value["actor"], expected="an actor of the bundle")
        if not isinstance(value["body"], dict) or not isinstance(value["kind"], str):
            raise TypeError("kind and body")
    except UNREADABLE as error:
        found.fault("chain", name, got=f"{type(error).__name__}: {error}", expected="a receipt")
        return None
    return Told(value, sha256_hex(line)) if same else None


def _anchors(found: Findings, world: World, roots: bytes) -> None:
    """Step 4."""
    key, closed = world.manifest["fingerprint"], {}
    for stream, rows in world.receipts.items():
        closed.update(
            {(stream, told.value["seq"]): stream for told in rows if told.value["kind"] == "execution.closed"}
        )
    for path in world.reader.paths("anchors/"):
        data = world.reader.read(path)
        value, sha256 = parse_canonical(data), sha256_hex(data)
        found.same("anchor", f"{path} schema", ANCHOR_SCHEMA, value["schema"])
        heads = world.reader.read(path.replace("anchors/", "heads/"))
        signed = False
        for entry in parse_canonical(heads):
            try:
                head = read_head(entry["signed"].encode(), bytes.fromhex(entry["signature"]))
            except SignatureError as error:
                found.fault("anchor", path, got=str(error), expected="a signed head that holds")
                continue
            told = (head.anchor_seq, head.anchor_sha256, head.heads)
            found.same("anchor", f"signed head of {path}", (value["seq"], sha256, value["heads"]), told)
            signed |= head.fingerprint == key
            _stamps(found, path, entry, roots)
        if not signed:
            found.unchecked.append(f"{path}: not signed by {key[:16]}")
        for stream, seq, head_sha256 in value["heads"]:
            mine = world.receipts.get(stream)
            if mine is None:
                continue  # of another study
            closed.pop((stream, seq), None)
            got = mine[seq - 1].sha256 if 0 < seq <= len(mine) else f"{len(mine)} receipts"
            found.same("anchor", f"{path}: {stream}#{seq}", head_sha256, got)
    for (stream, seq), _ in sorted(closed.items()):
        found.fault("anchor", f"{stream}#{seq}", got="no anchor", expected="the anchor of this closing")


def _stamps(found: Findings, path: str, entry: dict[str, Any], roots: bytes) -> None:
    """RFC 3161 stamps over the signed bytes followed by their signature."""
    from cryptography.x509 import load_pem_x509_certificates

    from evidence.outward.timestamps import StampRefused, check_token

    message = entry["signed"].encode() + bytes.fromhex(entry["signature"])
    for stamp in entry["time_stamps"]:
        if not roots:
            found.unchecked.append(f"time stamp of {path}: it needs the certificates of {stamp['server']}")
            continue
        found.checked["time stamp"] += 1
        try:
            check_token(bytes.fromhex(stamp["token"]), message, load_pem_x509_certificates(roots))
        except (StampRefused, ValueError) as error:
            found.fault("time stamp", path, got=str(error), expected="a valid stamp over the signed head")


def _plans(found: Findings, world: World) -> None:
    """Step 5, plans: bytes, uid, and the receipt that froze them."""
    frozen = {
        told.value["subject"]: (told.body["plan_sha256"], told.value["stream"]) for told in world.every("plan.frozen")
    }
    for path in world.reader.paths("plans/"):
        if path == "plans/plans.json":
            continue
        uid, data = path.removeprefix("plans/").removesuffix(".json"), world.reader.read(path)
        parse_canonical(data)
        sha256, stream = frozen.pop(uid, (None, ""))
        if found.same("plan", path, sha256, sha256_hex(data)):
            found.same(
                "plan", f"{path} uid", str(derive_uid(uuid.UUID(stream.partition(":")[2]), f"version:{sha256}")), uid
            )
    for uid in frozen:
        found.fault("plan", uid, got="nothing", expected="the bytes that were frozen")


def _documents(found: Findings, world: World) -> None:
    """Step 5, documents: each named by a receipt or a closure, and hashing to what that says."""
    named: dict[tuple[str, str], str] = {}
    for told in world.every():
        for kind, subject, sha256 in recorded(told.value["kind"], told.value):
            if kind != "plan":
                named[kind, str(subject)] = sha256
    for path in world.reader.paths("documents/closure/"):
        closure = world.json(path)
        named["aggregate", closure["execution_uid"]] = closure["aggregate_sha256"]
        for kind, items in (("run_manifest", closure["runs"]), ("evaluation_manifest", closure["evaluations"])):
            named.update({(kind, item["uid"]): item["manifest_sha256"] for item in items})
    for path in world.reader.paths("documents/"):
        _folder, kind, name = path.split("/")
        data = world.reader.read(path)
        parse_canonical(data)
        found.same("document", path, named.pop((kind, name.removesuffix(".json")), None), sha256_hex(data))
    raw = set() if world.manifest["with_captures"] else _left_out(found, world, Counter(kind for kind, _ in named))
    for (kind, subject), sha256 in sorted(named.items()):
        if kind not in raw:
            found.fault("document", f"{kind} {subject}", got="nothing", expected=sha256)


def _left_out(found: Findings, world: World, absent: Counter[str]) -> set[str]:
    """Kinds of raw documents whose absence the signed manifest tells, as many as there are; receipts name each hash."""
    told = {item["what"]: item["count"] for item in world.manifest["left_out"]}
    for kind in RAW:
        if absent[kind] and left_kind(kind) in told:
            found.same("document", f"{kind} that are left out", absent[kind], told[left_kind(kind)])
    return {kind for kind in RAW if left_kind(kind) in told}


def as_text(found: Findings, shown: int = 50) -> str:
    """The findings as a person reads them."""
    lines = [f"{area}: {count} {'check' if count == 1 else 'checks'}" for area, count in sorted(found.checked.items())]
    lines += [f"not checked: {item}" for item in found.unchecked]
    lines += [str(item) for item in found.faults[:shown]]
    if len(found.faults) > shown:
        lines.append(f"and {len(found.faults) - shown} more; --json prints all of them")
    lines.append(f"signed by {found.fingerprint}")
    lines.append("verified" if found.ok else "NOT verified")
    return "\n".join(lines)


def as_json(found: Findings) -> str:
    """One JSON object."""
    return json.dumps(found.as_json(), ensure_ascii=False)
