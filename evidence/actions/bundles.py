"""Takes a bundle in: the same uids, hashes and receipts as where it was written, or nothing at all."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import models, transaction
from django.utils.dateparse import parse_datetime

from evidence import waiting
from evidence.actions.versions import KIND as SOURCE
from evidence.models import (
    RECORDS,
    Claim,
    ClaimFigure,
    ClaimVersion,
    EvidenceRecord,
    Excerpt,
    ExcerptHead,
    Figure,
    FigureInput,
    FigureVersion,
    NotesVersion,
    Source,
    SourceVersion,
)
from evidence.notes.read import KIND as NOTES
from evidence.outward.archive import BundleReader, open_bundle
from evidence.outward.check import verify_bundle
from evidence.outward.contents import CLAIM_COLUMNS, FIGURE_COLUMNS, SOURCE_COLUMNS
from evidence.outward.foreign import IMPORTED, STREAM
from runs.actions.actors import OWN_FAMILY, SERVICE_FAMILY
from runs.actions.audit import record_change
from runs.actions.members import PEOPLE
from runs.actions.plans import project_arms
from runs.actions.receipts import append_receipt, lock_stream
from runs.errors import DomainError
from runs.models import Actor, Plan, PlanTransition, PlanVersion, Receipt, StreamHead, Study, User
from runs.storage import blob_store, reference_blobs
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.chain import genesis

KINDS: dict[str, type[EvidenceRecord]] = {model.KIND: model for model in RECORDS}


class ImportConflict(DomainError):
    """The bundle and this home disagree about something that both have; nothing was changed."""


@dataclass
class Imported:
    """What an import added. All zero: everything was here already."""

    study: str
    receipts: int = 0
    records: int = 0
    plans: int = 0
    blobs: int = 0


def import_bundle(file: Path, *, by: Actor, at: datetime.datetime, key: str = "") -> Imported:
    """Check a bundle and take it in. Raises ``DomainError`` naming the first problems, ``ImportConflict``.

    Receipts of all streams, plans, evidence and the bytes that it stands on come in; runs, their records and the
    anchors stay in the bundle, whose digest the receipt of the import names. A stream that has grown here since, or
    there, goes on where one is the beginning of the other; a fork is refused.
    """
    found = verify_bundle(file, key=key)
    if not found.ok:
        raise DomainError(
            f"bundle: got {len(found.faults)} problems, expected none; first: {found.faults[0]}; run verify-bundle"
        )
    with open_bundle(file) as reader:
        blobs = _store_blobs(reader)
        with transaction.atomic():
            lock_stream(STREAM)
            done = _Import(reader, by, at).run()
            done.blobs = blobs
            if done.receipts:
                manifest = reader.read("manifest.json")
                value = parse_canonical(manifest)
                body = {
                    "manifest_sha256": sha256_hex(manifest), "fingerprint": value["fingerprint"],
                    "streams": value["heads"], "study": value["study"]["slug"],
                }  # fmt: skip
                append_receipt(STREAM, IMPORTED, value["study"]["uid"], body, actor=by, at=at)
                record_change(
                    "bundle.imported", by=by, at=at, subject=done.study, detail=f"{done.receipts} receipts",
                    study=Study.objects.get(uid=value["study"]["uid"]),
                )  # fmt: skip
    return done


def _store_blobs(reader: BundleReader) -> int:
    """Bytes first: a row that names them may then commit. What a failed import leaves is a blob that nothing names."""
    store, count = blob_store(), 0
    for path in reader.paths("blobs/"):
        if not store.exists(path.removeprefix("blobs/")):
            with reader.open(path) as source:
                store.put_stream(iter(lambda source=source: source.read(1 << 20), b""), reader.sizes[path])  # type: ignore[misc]
            count += 1
    return count


class _Import:
    """One import, inside one transaction."""

    def __init__(self, reader: BundleReader, by: Actor, at: datetime.datetime):
        self.reader, self.by, self.at = reader, by, at
        self.actors: dict[str, Actor] = {}
        self.kept: dict[tuple[type[models.Model], str], Any] = {}

    def json(self, path: str) -> Any:
        """A canonical part."""
        return parse_canonical(self.reader.read(path))

    def run(self) -> Imported:
        """Everything, in the order in which rows name each other."""
        self._actors()
        study = self._study()
        done = Imported(study.slug)
        fresh = self._streams(study, done)
        self._plans(study, fresh, done)
        self._heads(study)
        for value in fresh:
            if value["kind"].startswith("evidence."):
                self._record(study, value)
                done.records += 1
        self._beside(study)
        self._currents()
        self._blobs()
        waiting.rebuild(study)
        return done

    def _blobs(self) -> None:
        """Enter into the ledger what sources and notes name."""
        here = {path.removeprefix("blobs/") for path in self.reader.paths("blobs/")}
        notes = set(NotesVersion.objects.filter(document_sha256__in=here).values_list("document_sha256", flat=True))
        sources = set(SourceVersion.objects.filter(sha256__in=here).values_list("sha256", flat=True))
        names = {**dict.fromkeys(sorted(notes), NOTES), **dict.fromkeys(sorted(sources), SOURCE)}
        if names:
            reference_blobs(names, store=blob_store())

    def _actors(self) -> None:
        """People come as logins that nobody can use; the name says who they are, as in every home."""
        for item in self.json("actors.json"):
            found = Actor.objects.filter(uid=item["uid"]).first()
            if found is None:
                found = self._new_actor(item)
            elif found.family != item["family"]:
                raise ImportConflict(
                    f"actor {item['name']}: got family {item['family']!r}, expected {found.family!r}, as it is here"
                )
            self.actors[item["uid"]] = found

    def _new_actor(self, item: dict[str, Any]) -> Actor:
        user = None
        if item["kind"] == Actor.PERSON:
            user = User.objects.filter(username=item["name"]).first()
            if user is None:
                user = User(username=item["name"], is_active=False)
                user.set_unusable_password()
                user.save()
        row = Actor.objects.create(
            uid=item["uid"], kind=item["kind"], family=item["family"], name=item["name"], user=user
        )
        if item["family"] not in (OWN_FAMILY, SERVICE_FAMILY):
            append_receipt(PEOPLE, "actor.family", row.uid, {"family": row.family}, actor=self.by, at=self.at)
        return row

    def _study(self) -> Study:
        value = self.json("study.json")
        found = Study.objects.filter(uid=value["uid"]).first()
        if found is not None:
            return found
        texts = {name: value[name] for name in ("slug", "title_en", "title_zh", "summary_en", "summary_zh")}
        return Study.objects.create(
            uid=value["uid"], visibility=Study.PRIVATE, created_at=_time(value["created_at"]),
            created_by=self.actors[value["created_by"]], **texts,
        )  # fmt: skip

    def _streams(self, study: Study, done: Imported) -> list[dict[str, Any]]:
        """Append what is new of every stream; the new receipts' values, plans before evidence."""
        fresh: list[dict[str, Any]] = []
        manifest = self.json("manifest.json")
        for stream, _seq, _sha256 in sorted(
            manifest["heads"], key=lambda head: (head[0].startswith("evidence"), head[0])
        ):
            lines = self.reader.read(f"receipts/{stream.replace(':', '-')}.jsonl").splitlines()
            fresh += self._stream(study, stream, lines)
        done.receipts = len(fresh)
        return fresh

    def _stream(self, study: Study, stream: str, lines: list[bytes]) -> list[dict[str, Any]]:
        head = StreamHead.objects.select_for_update().filter(stream=stream).first()
        if head is None:
            head = StreamHead.objects.create(stream=stream, study=study, seq=0, sha256=genesis(stream))
        if head.study_id != study.pk:
            raise ImportConflict(f"stream {stream}: got one of another study here, expected it in {study.slug}")
        common = min(head.seq, len(lines))
        if common:
            mine = Receipt.objects.get(stream=stream, seq=common).sha256
            theirs = sha256_hex(lines[common - 1])
            if mine != theirs:
                raise ImportConflict(
                    f"stream {stream}: got receipt {common} {theirs}, expected {mine}, as it is here: they have forked"
                )
        rows = []
        for seq, line in enumerate(lines[common:], common + 1):
            value = parse_canonical(line)
            Receipt.objects.create(
                stream=stream, seq=seq, prev=value["prev"], sha256=sha256_hex(line), bytes=line, kind=value["kind"],
                subject_uid=value["subject"], actor=self.actors[value["actor"]], at=_time(value["at"]),
            )  # fmt: skip
            rows.append(value)
        if rows:
            StreamHead.objects.filter(pk=head.pk).update(seq=len(lines), sha256=sha256_hex(lines[-1]))
        return rows

    def _plans(self, study: Study, fresh: list[dict[str, Any]], done: Imported) -> None:
        heads = {item["uid"]: item for item in self.json("plans/plans.json")}
        for value in fresh:
            if value["kind"] not in ("plan.frozen", "plan.superseded"):
                continue
            head = heads[value["stream"].partition(":")[2]]
            plan, made = Plan.objects.get_or_create(
                uid=head["uid"],
                defaults={"study": study, "slug": head["slug"], "draft_text": head["draft_text"], "draft_revision": 1},
            )
            if not made and plan.draft_text != head["draft_text"]:
                raise ImportConflict(f"plan {plan.slug}: got another text, expected what is here")
            version = self._version(plan, value) if value["kind"] == "plan.frozen" else None
            state, before = value["kind"].partition(".")[2], plan.state
            reason = "frozen" if version is not None else value["body"]["reason"]
            PlanTransition.objects.create(
                plan=plan, from_state=before, to_state=state, version=version, reason=reason,
                actor=self.actors[value["actor"]], at=_time(value["at"]),
            )  # fmt: skip
            plan.state, plan.current_version = state, version or plan.current_version
            plan.save(update_fields=["state", "current_version"])
            done.plans += version is not None

    def _version(self, plan: Plan, value: dict[str, Any]) -> PlanVersion:
        data = self.reader.read(f"plans/{value['subject']}.json")
        body = parse_canonical(data)
        version = PlanVersion.objects.create(
            uid=value["subject"], plan=plan, number=plan.versions.count() + 1, sha256=sha256_hex(data), bytes=data,
            strict_pairs=body["pairs"], created_at=_time(value["at"]), created_by=self.actors[value["actor"]],
        )  # fmt: skip
        project_arms(version, body)
        return version

    def _heads(self, study: Study) -> None:
        """Heads that are not here yet, still without their newest record; those that are here keep their own."""
        for model, path, columns in (
            (Source, "sources", SOURCE_COLUMNS), (Figure, "figures", FIGURE_COLUMNS), (Claim, "claims", CLAIM_COLUMNS),
        ):  # fmt: skip
            for item in self.json(f"evidence/{path}.json"):
                row: Any = model._default_manager.filter(uid=item["uid"]).first()
                values = {name: _column(model, name, item[name]) for name in columns}
                if row is None:
                    extra = {"author": self.actors[item["author"]]} if model is Claim else {}
                    row = model._default_manager.create(uid=item["uid"], study=study, **values, **extra)
                elif row.study_id != study.pk:
                    raise ImportConflict(f"{path} {item['uid']}: got one of another study here, expected {study.slug}")

    def _record(self, study: Study, value: dict[str, Any]) -> None:
        """One row from its receipt, which says every column."""
        model = KINDS[value["kind"].removeprefix("evidence.")]
        columns = {}
        for name, given in value["body"].items():
            column = model._meta.get_field(name)
            if isinstance(column, models.ForeignKey) and given is not None:
                columns[name] = self._named(column.related_model, given)
            else:
                columns[name] = _column(model, name, given)
        row = model(
            uid=uuid.UUID(value["subject"]), study=study, actor=self.actors[value["actor"]], at=_time(value["at"]),
            **columns,
        )  # fmt: skip
        if row.body() != value["body"]:
            raise ImportConflict(f"{value['kind']} {value['subject']}: got columns that do not give its receipt's body")
        row.save()

    def _named(self, model: type[models.Model], uid: str) -> Any:
        if (model, uid) not in self.kept:
            self.kept[model, uid] = model._default_manager.get(uid=uid)
        return self.kept[model, uid]

    def _beside(self, study: Study) -> None:
        """Rows that stand beside records: operands, tokens, and where excerpts were last found."""
        for version, name, figure in self.json("evidence/inputs.json"):
            FigureInput.objects.get_or_create(
                version=self._named(FigureVersion, version), name=name, defaults={"figure": self._named(Figure, figure)}
            )
        for version, language, ordinal, figure, shown in self.json("evidence/tokens.json"):
            ClaimFigure.objects.get_or_create(
                version=self._named(ClaimVersion, version), language=language, ordinal=ordinal,
                defaults={"figure": self._named(Figure, figure), "figure_version": self._named(FigureVersion, shown)},
            )  # fmt: skip
        for excerpt, state, first, last, checked in self.json("evidence/places.json"):
            ExcerptHead.objects.get_or_create(
                excerpt=self._named(Excerpt, excerpt),
                defaults={"state": state, "first_line": first, "last_line": last, "checked_at": _time(checked)},
            )

    def _currents(self) -> None:
        """Point heads at the bundle's newest record, unless this home has a newer one."""
        for model, path, columns, versions in (
            (Source, "sources", SOURCE_COLUMNS, SourceVersion), (Figure, "figures", FIGURE_COLUMNS, FigureVersion),
            (Claim, "claims", CLAIM_COLUMNS, ClaimVersion),
        ):  # fmt: skip
            for item in self.json(f"evidence/{path}.json"):
                if item["current"] is None:
                    continue
                row = self._fresh(model, item["uid"])
                newest = self._named(versions, item["current"])
                if row.current is None or row.current.number <= newest.number:
                    values = {name: _column(model, name, item[name]) for name in columns}
                    model._default_manager.filter(pk=row.pk).update(current=newest, **values)

    def _fresh(self, model: Any, uid: str) -> Any:
        return model._default_manager.select_related("current").get(uid=uid)


def _time(text: str) -> datetime.datetime:
    found = parse_datetime(text)
    if found is None or found.tzinfo is None:
        raise DomainError(f"time: got {text[:40]!r}, expected an ISO 8601 time with zone")
    return found


def _column(model: type[models.Model], name: str, given: Any) -> Any:
    """A column's value from JSON."""
    column = model._meta.get_field(name)
    if given is None or isinstance(column, models.JSONField):
        return given
    if isinstance(column, models.DateTimeField):
        return _time(given)
    return column.to_python(given)
