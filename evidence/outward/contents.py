"""What a bundle of a study holds, read from the database at one moment."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from evidence.actions.signing import head_entry
from evidence.models import (
    Claim,
    ClaimFigure,
    ExcerptHead,
    Figure,
    FigureInput,
    NotesVersion,
    SignedHead,
    Source,
    SourceVersion,
)
from runs.actions.closure import AGGREGATE, CLOSURE, EVALUATION_MANIFEST, RUN_MANIFEST
from runs.actions.record_group import GROUP
from runs.actions.record_probe import PROBE
from runs.actions.record_update import UPDATE
from runs.models import (
    Actor,
    Anchor,
    Document,
    Execution,
    Group,
    Plan,
    PlanVersion,
    Receipt,
    Run,
    StreamHead,
    Study,
    TaskSet,
    TrialSet,
)
from runs.storage import blob_store
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.chain import time_text

CLOSING = (CLOSURE, AGGREGATE, RUN_MANIFEST, EVALUATION_MANIFEST)  # documents without a raw trajectory
# Raw trajectories, and trials and controls of them with their trees, names of hidden tests and results.
RAW = (GROUP, UPDATE, PROBE, "trials", "controls", "branch")


@dataclass(frozen=True)
class Bytes:
    """A part in memory."""

    path: str
    data: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def open(self) -> IO[bytes]:
        """A stream of them."""
        return io.BytesIO(self.data)


@dataclass(frozen=True)
class Blob:
    """A part in the blob store."""

    path: str
    file: Path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.file.stat().st_size

    def open(self) -> IO[bytes]:
        """A stream of them."""
        return self.file.open("rb")


@dataclass
class Contents:
    """Parts by path, the heads of the study's streams, and what was left out, each with the reason."""

    heads: list[list[Any]]
    parts: dict[str, Bytes | Blob] = field(default_factory=dict)
    left_out: list[dict[str, Any]] = field(default_factory=list)

    def put(self, path: str, data: bytes) -> None:
        """Add a part in memory."""
        self.parts[path] = Bytes(path, data)

    def put_json(self, path: str, value: Any) -> None:
        """Add a part as canonical JSON."""
        self.put(path, canonical_bytes(value))

    def leave_out(self, what: str, count: int, why: str) -> None:
        """Say that something is not here."""
        if count:
            self.left_out.append({"what": what, "count": count, "why": why})


def stream_path(stream: str) -> str:
    """Where a stream's receipts lie."""
    return f"receipts/{stream.replace(':', '-')}.jsonl"


def gather(study: Study, *, with_captures: bool) -> Contents:
    """Everything that a bundle of the study holds. Call inside ``evidence.snapshot.reading``."""
    heads = StreamHead.objects.filter(study=study, seq__gt=0).order_by("stream")
    found = Contents([[head.stream, head.seq, head.sha256] for head in heads])
    actors = _receipts(found) | {study.created_by_id}
    _plans(found, study, actors)
    _anchors(found, study)
    _documents(found, study, with_captures)
    _evidence(found, study, actors)
    _blobs(found, study, with_captures)
    found.put_json("study.json", _study(study))
    rows = Actor.objects.filter(pk__in=actors).order_by("uid")
    found.put_json(
        "actors.json",
        [{"uid": str(row.uid), "kind": row.kind, "family": row.family, "name": row.name} for row in rows],
    )
    return found


def _study(study: Study) -> dict[str, Any]:
    names = ("slug", "title_en", "title_zh", "summary_en", "summary_zh")
    own = {name: getattr(study, name) for name in names}
    return {
        **own, "uid": str(study.uid), "created_at": time_text(study.created_at),
        "created_by": str(study.created_by.uid),
    }  # fmt: skip


def _receipts(found: Contents) -> set[int]:
    """Receipts, one a line, in the order of their stream up to its head; returns the actors that they name."""
    actors: set[int] = set()
    for stream, seq, _sha256 in found.heads:
        rows = Receipt.objects.filter(stream=stream, seq__lte=seq).order_by("seq")
        lines = []
        for data, actor in rows.values_list("bytes", "actor_id").iterator(chunk_size=1000):
            lines.append(bytes(data))
            actors.add(actor)
        found.put(stream_path(stream), b"\n".join(lines) + b"\n")
    return actors


def _anchors(found: Contents, study: Study) -> None:
    """The newest anchor, and for each closing of the study the first that holds it; with all their signatures."""
    closed = {
        (stream, seq)
        for stream, seq in Receipt.objects.filter(
            kind="execution.closed", stream__in=[head[0] for head in found.heads]
        ).values_list("stream", "seq")
    }
    newest = Anchor.objects.order_by("-seq").first()
    for anchor in Anchor.objects.order_by("seq").iterator(chunk_size=50):
        heads = {(stream, seq) for stream, seq, _ in parse_canonical(bytes(anchor.bytes))["heads"]}
        held = closed & heads
        if not held and anchor != newest:
            continue
        closed -= held
        found.put(f"anchors/{anchor.seq:08}.json", bytes(anchor.bytes))
        signed = SignedHead.objects.filter(anchor=anchor).order_by("pk")
        found.put_json(f"heads/{anchor.seq:08}.json", [head_entry(item) for item in signed])


def _plans(found: Contents, study: Study, actors: set[int]) -> None:
    plans = []
    for plan in Plan.objects.filter(study=study).select_related("current_version").order_by("uid"):
        if plan.current_version is None:
            found.leave_out(f"draft {plan.slug}", 1, "a draft is no record")
            continue
        plans.append({"uid": str(plan.uid), "slug": plan.slug, "state": plan.state, "draft_text": plan.draft_text})
    found.put_json("plans/plans.json", plans)
    for version in PlanVersion.objects.filter(plan__study=study).select_related("plan").order_by("uid"):
        found.put(f"plans/{version.uid}.json", bytes(version.bytes))
        actors.add(version.created_by_id)


def _documents(found: Contents, study: Study, with_captures: bool) -> None:
    executions = list(Execution.objects.filter(plan_version__plan__study=study).values_list("uid", flat=True))
    runs = list(Run.objects.filter(plan_version__plan__study=study).values_list("uid", flat=True))
    closures = Document.objects.filter(kind=CLOSURE, subject_uid__in=executions)
    evaluations = [item["uid"] for row in closures for item in parse_canonical(bytes(row.bytes))["evaluations"]]
    for kind, subjects in (
        (CLOSURE, executions), (AGGREGATE, executions), (RUN_MANIFEST, runs), (EVALUATION_MANIFEST, evaluations),
    ):  # fmt: skip
        _take(found, kind, subjects)
    named = _raw_subjects(found)
    for kind in RAW:
        if with_captures:
            _take(found, kind, named[kind])
        else:
            found.leave_out(left_kind(kind), len(named[kind]), "raw trajectories: --with-captures")


def left_kind(kind: str) -> str:
    """What the manifest calls documents of a kind that were left out; ``check`` reads it."""
    return f"documents of kind {kind}"


def _take(found: Contents, kind: str, subjects: Iterable[Any]) -> None:
    given = list(subjects)
    for start in range(0, len(given), 500):
        rows = Document.objects.filter(kind=kind, subject_uid__in=given[start : start + 500]).order_by("subject_uid")
        for row in rows.iterator(chunk_size=100):
            found.put(f"documents/{kind}/{row.subject_uid}.json", bytes(row.bytes))


def _raw_subjects(found: Contents) -> dict[str, list[str]]:
    """Subjects of the documents that receipts name and that hold raw trajectories, by kind."""
    from evidence.checks.documents import recorded

    named: dict[str, dict[str, None]] = {kind: {} for kind in RAW}
    for stream, _seq, _sha256 in found.heads:
        part = found.parts[stream_path(stream)]
        assert isinstance(part, Bytes)
        for line in part.data.splitlines():
            value = parse_canonical(line)
            for kind, subject, _hash in recorded(value["kind"], value):
                if kind in named:
                    named[kind][subject] = None
    return {kind: list(subjects) for kind, subjects in named.items()}


def _evidence(found: Contents, study: Study, actors: set[int]) -> None:
    """Heads of sources, figures and claims, and the rows beside the records; the records themselves are receipts."""
    sources = Source.objects.filter(study=study).select_related("current").order_by("uid")
    found.put_json("evidence/sources.json", [_head(row, SOURCE_COLUMNS, row.current) for row in sources])
    figures = Figure.objects.filter(study=study).select_related("current").order_by("uid")
    found.put_json("evidence/figures.json", [_head(row, FIGURE_COLUMNS, row.current) for row in figures])
    claims = Claim.objects.filter(study=study).select_related("current", "author").order_by("uid")
    rows = [{**_head(row, CLAIM_COLUMNS, row.current), "author": str(row.author.uid)} for row in claims]
    found.put_json("evidence/claims.json", rows)
    actors |= {row.author_id for row in claims}
    tokens = ClaimFigure.objects.filter(version__study=study).order_by("version__uid", "language", "ordinal")
    columns = ("version__uid", "language", "ordinal", "figure__uid", "figure_version__uid")
    found.put_json("evidence/tokens.json", [_plain(row) for row in tokens.values_list(*columns)])
    inputs = FigureInput.objects.filter(version__study=study).order_by("version__uid", "name")
    found.put_json(
        "evidence/inputs.json", [_plain(row) for row in inputs.values_list("version__uid", "name", "figure__uid")]
    )
    heads = ExcerptHead.objects.filter(excerpt__study=study).order_by("excerpt__uid")
    columns = ("excerpt__uid", "state", "first_line", "last_line", "checked_at")
    found.put_json("evidence/places.json", [_plain(row) for row in heads.values_list(*columns)])


SOURCE_COLUMNS = (
    "path", "reference", "title_en", "title_zh", "form", "origin", "state", "checked_at", "created_at",
)  # fmt: skip
FIGURE_COLUMNS = ("key", "state", "stale", "checked_at")
CLAIM_COLUMNS = ("key", "status", "cap", "disputed", "provisional", "stale", "created_at")


def _plain(row: Iterable[Any]) -> list[Any]:
    return [_value(item) for item in row]


def _value(item: Any) -> Any:
    if hasattr(item, "tzinfo"):
        return time_text(item)
    return item if item is None or isinstance(item, str | bool | int) else str(item)


def _head(row: Any, columns: tuple[str, ...], current: Any) -> dict[str, Any]:
    own = {name: _value(getattr(row, name)) for name in columns}
    return {"uid": str(row.uid), "current": None if current is None else str(current.uid), **own}


def _blobs(found: Contents, study: Study, with_captures: bool) -> None:
    """Bytes that evidence stands on. Captures and task sets (test labels) only where they are asked for."""
    held = set(SourceVersion.objects.filter(study=study, held=True).values_list("sha256", flat=True))
    notes = set(NotesVersion.objects.filter(study=study).values_list("document_sha256", flat=True))
    of_plan = Group.objects.filter(plan_version__plan__study=study)
    captures = set(of_plan.values_list("capture_blob_sha256", flat=True))
    labels = set(
        TaskSet.objects.filter(tasks__groups__plan_version__plan__study=study).values_list("blob_sha256", flat=True)
    )
    tried = TrialSet.objects.filter(plan_version__plan__study=study).values_list("snapshots_sha256", flat=True)
    trees = {sha256 for sha256 in tried if sha256 is not None}
    raw, wanted = captures | labels | trees, held | notes
    if with_captures:
        wanted |= raw
    else:
        found.leave_out(
            "captures, trees of trials and task sets", len(raw), "raw trajectories and test labels: --with-captures"
        )
        found.leave_out("sources with raw bytes", len(wanted & raw), "raw trajectories and test labels")
        wanted -= raw
    store, gone = blob_store(), 0
    for sha256 in sorted(wanted):
        if store.exists(sha256):
            found.parts[f"blobs/{sha256}"] = Blob(f"blobs/{sha256}", store.path(sha256))
        else:
            gone += 1
    found.leave_out("bytes that the store does not hold", gone, "removed by retention, or lost")


def manifest_of(
    found: Contents, study: Study, *, key_fingerprint: str, with_captures: bool, hashes: dict[str, str]
) -> bytes:
    """Canonical manifest: what the bundle is of, the heads, and every other part with its hash and size."""
    anchors = [path for path in found.parts if path.startswith("anchors/")]
    return canonical_bytes(
        {
            "schema": "workbench.bundle/1",
            "study": {"uid": str(study.uid), "slug": study.slug},
            "with_captures": with_captures,
            "fingerprint": key_fingerprint,
            "heads": found.heads,
            "anchor": max(anchors, default=None),
            "files": [[path, hashes[path], found.parts[path].size] for path in sorted(found.parts)],
            "left_out": found.left_out,
        }
    )


def hashed(part: Bytes | Blob) -> str:
    """SHA-256 of a part."""
    if isinstance(part, Bytes):
        return sha256_hex(part.data)
    with part.open() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
