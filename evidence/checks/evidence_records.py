"""Step 11: every evidence record says what its receipt says, none is missing or extra, and heads follow from them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet

from evidence.actions.versions import DESCRIBED
from evidence.models import (
    RECORDS,
    Claim,
    ClaimVersion,
    EvidenceRecord,
    Figure,
    FigureInput,
    FigureVersion,
    NotesVersion,
    Source,
    SourceVersion,
    StaleMark,
)
from evidence.models.base import STREAM, stream_of
from evidence.report import StepLog
from runs.models import Receipt
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.chain import time_text

CHUNK = 500
PREFIX = "evidence."
DESCRIPTION = ("path", "reference", "title_en", "title_zh", "form", "origin")


@dataclass(frozen=True)
class Told:
    """What a receipt says of a record. ``digest``: SHA-256 of its canonical body."""

    kind: str
    stream: str
    actor: str
    at: str
    digest: str
    receipt: int


def check_records(log: StepLog) -> None:
    """Rows against receipts, then heads against rows."""
    told, described = _receipts(log)
    for model in RECORDS:
        _rows(log, model, told)
    tables = {model.KIND: model._meta.db_table for model in RECORDS}
    for uid, receipt in told.items():
        table = tables.get(receipt.kind.removeprefix(PREFIX), "runs_receipt")
        log.problem(table, uid, "uid", expected=f"the record that receipt {receipt.kind} tells of", got=None)
    _sources(log, described)
    _heads(log)
    _inputs(log)


def _receipts(log: StepLog) -> tuple[dict[uuid.UUID, Told], dict[str, Any]]:
    """(records told of, by uid; newest description of each source, by uid)."""
    told: dict[uuid.UUID, Told] = {}
    described: dict[str, Any] = {}
    rows = Receipt.objects.filter(stream__startswith=f"{STREAM}:").order_by("stream", "seq")
    for receipt in rows.select_related("actor").iterator(chunk_size=CHUNK):
        with log.reading("runs_receipt", f"{receipt.stream}#{receipt.seq}"):
            value = parse_canonical(bytes(receipt.bytes))
            if receipt.kind == DESCRIBED:
                described[str(receipt.subject_uid)] = value["body"]
            if not receipt.kind.startswith(PREFIX) or receipt.subject_uid is None:
                continue
            if receipt.subject_uid in told:
                name = f"{receipt.stream}#{receipt.seq}"
                log.problem("runs_receipt", name, "subject", expected="one receipt of each record", got="a second one")
            digest = sha256_hex(canonical_bytes(value["body"]))
            told[receipt.subject_uid] = Told(
                receipt.kind, receipt.stream, str(receipt.actor.uid), value["at"], digest, receipt.pk
            )
    return told, described


def _references(model: type[Model]) -> list[str]:
    return [column.name for column in model._meta.concrete_fields if column.is_relation]


def _rows(log: StepLog, model: type[EvidenceRecord], told: dict[uuid.UUID, Told]) -> None:
    """Each row of one model; what it has a receipt for leaves ``told``."""
    rows: QuerySet[EvidenceRecord] = model.objects.select_related(*_references(model)).order_by("pk")
    for row in rows.iterator(chunk_size=CHUNK):
        log.count()
        receipt = told.pop(row.uid, None)
        if receipt is None:
            log.problem(model._meta.db_table, row.uid, "uid", expected="a receipt that tells of it", got=None)
            continue
        with log.reading(model._meta.db_table, row.uid, "body"):
            wanted = (f"{PREFIX}{model.KIND}", stream_of(row.study), str(row.actor.uid))
            for name, value, got in zip(
                ("kind", "study", "actor"), (receipt.kind, receipt.stream, receipt.actor), wanted, strict=True
            ):
                if value != got:
                    log.problem(model._meta.db_table, row.uid, name, expected=value, got=got)
            if time_text(row.at) != receipt.at:
                log.problem(model._meta.db_table, row.uid, "at", expected=receipt.at, got=time_text(row.at))
            if sha256_hex(canonical_bytes(row.body())) != receipt.digest:
                _columns(log, row, receipt)


def _columns(log: StepLog, row: EvidenceRecord, told: Told) -> None:
    """Name the columns in which a row differs from its receipt."""
    body = parse_canonical(bytes(Receipt.objects.get(pk=told.receipt).bytes))["body"]
    mine = row.body()
    for name in sorted(body.keys() | mine.keys()):
        if name not in body or name not in mine or canonical_bytes([body[name]]) != canonical_bytes([mine[name]]):
            log.problem(row._meta.db_table, row.uid, name, expected=body.get(name), got=mine.get(name))


def _sources(log: StepLog, described: dict[str, Any]) -> None:
    """What a source is called is what the newest receipt calls it."""
    for source in Source.objects.order_by("pk").iterator(chunk_size=CHUNK):
        log.count()
        said = described.get(str(source.uid))
        if said is None:
            log.problem("evidence_source", source.uid, "path", expected="a receipt that describes it", got=None)
            continue
        for name in DESCRIPTION:
            if getattr(source, name) != said.get(name):
                log.problem("evidence_source", source.uid, name, expected=said.get(name), got=getattr(source, name))


def _numbered(log: StepLog, rows: Any, head: str, table: str) -> Iterator[tuple[int, int, int]]:
    """(head, number of its newest version, key of that version); numbers run from 1 without a gap."""
    last: dict[int, tuple[int, int]] = {}
    for owner, number, key, uid in rows.order_by(head, "number").values_list(head, "number", "pk", "uid").iterator():
        before = last.get(owner, (0, 0))[0]
        if number != before + 1:
            log.problem(table, uid, "number", expected=before + 1, got=number)
        last[owner] = (number, key)
    for owner, (number, key) in last.items():
        yield owner, number, key


def _heads(log: StepLog) -> None:
    """The current version is the newest; ``stale`` is whether a mark is open; the author wrote the first version."""
    marked: dict[str, set[uuid.UUID]] = {"figure": set(), "claim": set()}
    open_marks = StaleMark.objects.filter(resolution__isnull=True, target_kind__in=marked)
    for kind, uid in open_marks.values_list("target_kind", "target_uid"):
        marked[kind].add(uid)
    first = dict(ClaimVersion.objects.filter(number=1).values_list("claim", "actor"))
    heads: tuple[tuple[Any, Any, str], ...] = (
        (Source, SourceVersion, "source"), (Figure, FigureVersion, "figure"), (Claim, ClaimVersion, "claim")
    )  # fmt: skip
    for model, versions, name in heads:
        table, rows = f"evidence_{name}", versions.objects.all()
        newest = {owner: key for owner, _, key in _numbered(log, rows, name, f"{table}version")}
        for row in model.objects.order_by("pk").iterator(chunk_size=CHUNK):
            log.count()
            expected: dict[str, Any] = {"current_id": newest.get(row.pk)}
            if name in marked:
                expected["stale"] = row.uid in marked[name]
            if name == "claim":
                expected["author_id"] = first.get(row.pk)
            log.compare(table, row.uid, expected, row)
    list(_numbered(log, NotesVersion.objects.all(), "study", "evidence_notesversion"))


def _inputs(log: StepLog) -> None:
    """Operands of a derivation are those that its binding names."""
    named: dict[int, dict[str, str]] = {}
    for version, name, key in FigureInput.objects.values_list("version", "name", "figure__key").iterator():
        named.setdefault(version, {})[name] = key
    for row in FigureVersion.objects.order_by("pk").only("pk", "uid", "binding").iterator(chunk_size=CHUNK):
        binding = row.binding if isinstance(row.binding, dict) else {}
        wanted = binding.get("figures") if binding.get("type") == "derivation" else {}
        if (wanted or {}) != named.get(row.pk, {}):
            log.problem("evidence_figureinput", row.uid, "figure", expected=wanted, got=named.get(row.pk, {}))
