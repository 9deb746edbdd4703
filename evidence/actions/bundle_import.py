"""Imports the bundled reference studies: other people's records, built by the same actions that people use.

Everything is imported and claimed: no bytes are held, no figure fills a cell of ours. A second import changes
nothing. What people have changed since is theirs: a figure, claim or page whose newest version is another
author's is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.notes import save_notes
from evidence.actions.pace import give_way
from evidence.actions.record import lock_evidence
from evidence.actions.sources import add_source
from evidence.bundled.read import Reference, binding_of, day, digest_of, load, moment, slugs
from evidence.models import Claim, Excerpt, Figure, FigureVersion, Link, NotesVersion, Source
from runs.actions.plans import ensure_study
from runs.models import Actor, Study

ACTOR = "bundled records"  # the service that imports them
REASON = "bundled record "  # of the notes' version, before the digest of the data
REVISED = "the bundled record was revised"
PART = 3  # records of one transaction
_FIELDS = ("kind", "unit", "style", "digits")
_PROSE = ("text", "scope", "denominator", "missing")


def import_bundled(*, by: Actor, at: datetime) -> list[dict[str, Any]]:
    """Every bundled reference study, each as ``import_reference_study`` says."""
    return [import_reference_study(slug, by=by, at=at) for slug in slugs()]


def missing() -> list[str]:
    """Slugs of the bundled studies that are not imported as they are bundled now."""
    there = set(NotesVersion.objects.filter(reason__startswith=REASON).values_list("study__slug", "reason"))
    return [slug for slug in slugs() if (slug, REASON + digest_of(slug)) not in there]


def import_reference_study(slug: str, *, by: Actor, at: datetime) -> dict[str, Any]:
    """Build a bundled reference study, or complete one that stands; how many records of each kind it has.

    ``changed`` says whether anything was written. Interrupted, it goes on where it was when it is called again: it
    writes in small transactions, so that nobody waits for it. Raises ``DomainError`` for a slug that is not bundled.
    """
    data = load(slug)
    reason = REASON + data.digest
    if NotesVersion.objects.filter(study__slug=slug, reason=reason).exists():
        return {"study": slug, "changed": False, **_counts(Study.objects.get(slug=slug))}
    study = ensure_study(
        slug, title=data.study["title"], summary=data.study["summary"], by=by, at=at, visibility=Study.PUBLIC
    )
    before = _counts(study)
    for part in _parts(data):
        with transaction.atomic():
            lock_evidence(study)
            for write, entry in part:
                write(study, data, entry, by=by, at=at)
        give_way()
    newest = NotesVersion.objects.filter(study=study).order_by("-number").first()
    if newest is None or newest.actor_id == by.pk:
        save_notes(study, data.notes, by=by, at=at, reason=reason)
    after = _counts(study)
    return {"study": slug, "changed": before != after, **after}


def _parts(data: Reference) -> Iterator[Sequence[tuple[Any, Mapping[str, Any]]]]:
    """Everything to write, in order, in parts that are each one transaction."""
    steps = [
        *((_source, entry) for entry in data.sources),
        *((_figure, entry) for entry in data.figures),
        *((_claim, entry) for entry in data.claims),
    ]
    for start in range(0, len(steps), PART):
        yield steps[start : start + PART]


def _counts(study: Study) -> dict[str, int]:
    return {
        "sources": Source.objects.filter(study=study).count(),
        "excerpts": Excerpt.objects.filter(study=study).count(),
        "figures": Figure.objects.filter(study=study).count(),
        "figure_versions": FigureVersion.objects.filter(study=study).count(),
        "claims": Claim.objects.filter(study=study).count(),
        "links": Link.objects.filter(study=study).count(),
        "notes": NotesVersion.objects.filter(study=study).count(),
    }


def _source(study: Study, _data: Reference, entry: Mapping[str, Any], *, by: Actor, at: datetime) -> None:
    """A source whose bytes are not held, with its transcribed excerpts; one that stands by now is left as it is."""
    known = Source.objects.filter(study=study, path=entry["path"]).select_related("current").first()
    if known is None or known.current is None:
        version = add_source(
            study, entry["path"], None, origin=Source.IMPORTED, by=by, at=at, sha256=entry["sha256"],
            size=entry.get("size"), form=entry["form"], media_type=entry["media_type"],
            reference=entry["reference"], title_en=entry["title"]["en"], title_zh=entry["title"]["zh"],
            cutoff=day(entry.get("cutoff")), captured_at=moment(entry.get("captured")), note=entry.get("note", ""),
        )  # fmt: skip
    else:
        version = known.current
    taken = set(Excerpt.objects.filter(study=study).values_list("key", flat=True))
    for item in entry.get("excerpts", ()):
        if item["key"] not in taken:
            add_excerpt(
                study, version, item["key"], Excerpt.QUOTE, {"exact": item["text"]}, by=by, at=at, text=item["text"],
                language=item["language"],
            )  # fmt: skip


def _figure(study: Study, data: Reference, entry: Mapping[str, Any], *, by: Actor, at: datetime) -> None:
    """A figure with the versions that its record gives, the oldest first."""
    versions = entry.get("versions", [entry])
    known = Figure.objects.filter(study=study, key=entry["key"]).select_related("current").first()
    count = known.current.number if known is not None and known.current is not None else 0
    if known is not None and known.current is not None and known.current.actor_id != by.pk:
        return
    per, scope = data.words[entry["per"]], data.words[entry["in"]]
    for number, version in enumerate(versions, start=1):
        if number <= count and number < len(versions):
            continue  # history that stands
        bind_figure(
            study, entry["key"], binding_of({"key": entry["key"], **version}), origin="imported", by=by, at=at,
            **{name: entry[name] for name in _FIELDS if name in entry},
            title_en=entry["title"]["en"], title_zh=entry["title"]["zh"],
            denominator_en=per["en"], denominator_zh=per["zh"], scope_en=scope["en"], scope_zh=scope["zh"],
            cutoff=day(data.cutoffs.get(version["at"][0])) if "at" in version else None,
            reason=version.get("reason", REVISED if count else ""),
        )  # fmt: skip


def _claim(study: Study, _data: Reference, entry: Mapping[str, Any], *, by: Actor, at: datetime) -> None:
    """A claim and its links; links that stand, or were taken back, are left as they are."""
    claim = Claim.objects.filter(study=study, key=entry["key"]).select_related("current").first()
    if claim is None or (claim.current is not None and claim.current.actor_id == by.pk):
        words = {
            f"{name}_{language}": text for name in _PROSE if name in entry for language, text in entry[name].items()
        }
        add_claim(study, entry["key"], kind=entry["kind"], by=by, at=at, reason=REVISED if claim else "", **words)
    claim = Claim.objects.get(study=study, key=entry["key"])
    for item in entry["links"]:
        excerpt = Excerpt.objects.get(study=study, key=item["excerpt"]) if "excerpt" in item else None
        figure = Figure.objects.get(study=study, key=item["figure"]) if "figure" in item else None
        if Link.objects.filter(claim=claim, excerpt=excerpt, figure=figure, relation=item["relation"]).exists():
            continue
        add_link(
            claim, excerpt=excerpt, figure=figure, relation=item["relation"], reach_en=item["reach"]["en"],
            reach_zh=item["reach"]["zh"], by=by, at=at,
        )  # fmt: skip
