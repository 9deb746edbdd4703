"""A small web of evidence, appended row by row with its receipts: what each part of it rests on is told in names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from evidence.actions.record import append, record_uid
from evidence.models import (
    Claim,
    ClaimFigure,
    ClaimVersion,
    Excerpt,
    ExcerptHead,
    Figure,
    FigureInput,
    FigureVersion,
    Link,
    NotesVersion,
    Source,
    SourceVersion,
)
from runs.actions.actors import person_actor, service_actor
from runs.actions.plans import ensure_study
from runs.models import Actor, Study, User
from runs.storage import reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes, sha256_hex

AT = datetime(2026, 10, 1, 12, tzinfo=UTC)


def person(name: str) -> Actor:
    """The actor of a person who cannot log in."""
    return person_actor(User.objects.get_or_create(username=name)[0])


@dataclass
class Web:
    """Appends evidence of one study."""

    study: Study
    by: Actor
    store: BlobStore
    figures: dict[str, Figure] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    @classmethod
    def make(cls, store: BlobStore, slug: str = "web") -> Web:
        by = person("author")
        study = ensure_study(slug, title={"en": "Web"}, summary={"en": "."}, by=by, at=AT, visibility="public")
        service_actor("verify")
        return cls(study, by, store)

    def record(self, row: Any) -> Any:
        with transaction.atomic():
            return append(row)

    def common(self, parent: uuid.UUID, kind: str, key: str) -> dict[str, Any]:
        return {"uid": record_uid(parent, kind, key), "study": self.study, "actor": self.by, "at": AT}

    def source(self, path: str, data: bytes, reference: str = "", reason: str = "") -> SourceVersion:
        head, _ = Source.objects.get_or_create(
            study=self.study, path=path,
            defaults={
                "uid": record_uid(self.study.uid, "source", path), "form": "text", "origin": "upload",
                "reference": reference, "created_at": AT, "state": "verified",
            },
        )  # fmt: skip
        number = head.versions.count() + 1
        sha256 = self.store.put(data)
        reference_blobs({sha256: "source"}, store=self.store)
        version: SourceVersion = self.record(
            SourceVersion(
                **self.common(head.uid, "source_version", str(number)), source=head, number=number, sha256=sha256,
                size=len(data), media_type="text/plain", held=True, captured_at=AT, reason=reason,
            )
        )  # fmt: skip
        head.current = version
        head.save(update_fields=["current"])
        return version

    def excerpt(self, version: SourceVersion, key: str, exact: str) -> Excerpt:
        found: Excerpt = self.record(
            Excerpt(
                **self.common(self.study.uid, "excerpt", key), version=version, key=key, form="quote",
                selector={"exact": exact, "prefix": "", "suffix": "", "line": None}, kind="matched", text=exact,
            )
        )  # fmt: skip
        ExcerptHead.objects.create(excerpt=found, state="found", checked_at=AT)
        return found

    def figure(
        self, key: str, binding: dict[str, Any], value: str | None, *, excerpt: Excerpt | None = None,
        version: SourceVersion | None = None, kind: str = "mechanism",
    ) -> FigureVersion:  # fmt: skip
        head, _ = Figure.objects.get_or_create(
            study=self.study, key=key,
            defaults={"uid": record_uid(self.study.uid, "figure", key), "state": "bound"},
        )  # fmt: skip
        number = head.versions.count() + 1
        row: FigureVersion = self.record(
            FigureVersion(
                **self.common(head.uid, "figure_version", str(number)), figure=head, number=number, title_en=key,
                kind=kind, origin="native", binding=binding, source_version=version or (excerpt and excerpt.version),
                excerpt=excerpt, value=value,
            )
        )  # fmt: skip
        for name, used in (binding.get("figures") or {}).items():
            FigureInput.objects.create(version=row, name=name, figure=self.figures[used])
        head.current = row
        head.save(update_fields=["current"])
        self.figures[key] = head
        return row

    def quoted(self, key: str, excerpt: Excerpt, number: str) -> FigureVersion:
        return self.figure(key, {"type": "excerpt", "excerpt": excerpt.key, "number": number}, number, excerpt=excerpt)

    def claim(self, key: str, text: str, figures: list[str], author: Actor | None = None) -> Claim:
        head, _ = Claim.objects.get_or_create(
            study=self.study, key=key,
            defaults={
                "uid": record_uid(self.study.uid, "claim", key), "author": author or self.by,
                "status": "not_established", "cap": "not_established", "created_at": AT,
            },
        )  # fmt: skip
        number = head.versions.count() + 1
        row: ClaimVersion = self.record(
            ClaimVersion(
                **self.common(head.uid, "claim_version", str(number)), claim=head, number=number, text_en=text,
                kind="description",
            )
        )  # fmt: skip
        for ordinal, name in enumerate(figures):
            used = Figure.objects.get(study=self.study, key=name)
            ClaimFigure.objects.create(
                version=row, language="en", ordinal=ordinal, figure=used, figure_version=used.current
            )
        head.current = row
        head.save(update_fields=["current"])
        self.claims[key] = head
        return head

    def link(self, claim: Claim, *, excerpt: Excerpt | None = None, figure: Figure | None = None) -> Link:
        number = str(claim.links.count() + 1)
        found: Link = self.record(
            Link(
                **self.common(claim.uid, "link", number), claim=claim, claim_version=claim.current, excerpt=excerpt,
                figure=figure, relation="supports",
            )
        )  # fmt: skip
        return found

    def notes(self, sections: list[dict[str, Any]], **more: Any) -> NotesVersion:
        data = canonical_bytes({"schema": "workbench.notes/1", "sections": sections, **more})
        number = NotesVersion.objects.filter(study=self.study).count() + 1
        found: NotesVersion = self.record(
            NotesVersion(
                **self.common(self.study.uid, "notes_version", str(number)), number=number,
                document_sha256=self.store.put(data), page_date=AT.date(),
            )
        )  # fmt: skip
        assert found.document_sha256 == sha256_hex(data)
        return found
