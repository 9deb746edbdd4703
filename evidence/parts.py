"""Who has a part in what a claim rests on: the one rule of who may not review it, read only.

Parts are: a version of the claim, a link, a link's withdrawal, the binding of a figure that the words show or a link
names (the one of now, and the one that was shown), the binding of every figure that such a one is derived from, over
however many steps, and every excerpt that a link names or such a binding quotes. A review of one link leaves the
authorship of other links and of their withdrawals aside; their evidence it does not.

The action, the queue and ``verify`` ask ``Parts.of``: the first two as it stands, ``verify`` as it stood before a
place in the study's stream.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from evidence.models import (
    Claim,
    ClaimFigure,
    ClaimVersion,
    EvidenceRecord,
    Figure,
    FigureInput,
    FigureVersion,
    Link,
    LinkWithdrawal,
    stream_of,
)
from runs.models import Actor, Receipt, Study

CHUNK = 500
VERSION, LINK, WITHDRAWAL, BINDING, OPERAND, EXCERPT = "version", "link", "withdrawal", "binding", "operand", "excerpt"
WORDS: Mapping[str, str] = {
    VERSION: "version {number} of claim {key}",
    LINK: "a link of claim {key}",
    WITHDRAWAL: "a withdrawal of a link of claim {key}",
    BINDING: "the binding of figure {key}",
    OPERAND: "the binding of figure {key}, from which another is derived",
    EXCERPT: "excerpt {key}",
}


@dataclass(frozen=True)
class Part:
    """What somebody has made of it: ``what`` of ``WORDS``, with the key of the claim, figure or excerpt."""

    actor: Actor
    what: str
    key: str
    number: int = 0

    def __str__(self) -> str:
        return WORDS[self.what].format(key=self.key, number=self.number)


def _chunks(values: Iterable[int]) -> Iterator[list[int]]:
    rows = sorted(set(values))
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))


class Parts:
    """Everybody's parts in some claims and figures, read together: at most six queries, two more for each level of
    derivation.

    ``history``: read older bindings and places in the stream too, so that ``of`` can be asked of an earlier moment.
    """

    def __init__(
        self, claims: Iterable[Claim | int] = (), *, figures: Iterable[int] = (), history: bool = False
    ) -> None:
        self.history = history
        keys = {claim.pk if isinstance(claim, Claim) else claim for claim in claims}
        self.versions: dict[int, list[ClaimVersion]] = defaultdict(list)
        self.links: dict[int, list[Link]] = defaultdict(list)
        self.withdrawals: dict[int, list[LinkWithdrawal]] = defaultdict(list)
        self.shown: dict[int, list[ClaimFigure]] = defaultdict(list)  # by version of a claim
        self.bindings: dict[int, list[FigureVersion]] = defaultdict(list)  # by figure
        self.inputs: dict[int, list[int]] = defaultdict(list)  # by binding: figures
        self.by_pk: dict[int, FigureVersion] = {}
        self.places: dict[uuid.UUID, int] = {}
        for part in _chunks(keys):
            self._read(part)
        linked = [link.figure_id for links in self.links.values() for link in links if link.figure_id is not None]
        told = [row for rows in self.shown.values() for row in rows]
        self._figures({*figures, *linked, *(row.figure_id for row in told)}, {row.figure_version_id for row in told})
        if history:
            self._receipts()

    def _read(self, claims: list[int]) -> None:
        told = ClaimVersion.objects.filter(claim__in=claims).select_related("actor", "claim").order_by("number")
        for version in told:
            self.versions[version.claim_id].append(version)
        links = Link.objects.filter(claim__in=claims).select_related("actor", "excerpt__actor", "claim")
        for link in links.order_by("pk"):
            self.links[link.claim_id].append(link)
        for gone in LinkWithdrawal.objects.filter(link__claim__in=claims).select_related("actor", "link"):
            self.withdrawals[gone.link.claim_id].append(gone)
        shown = ClaimFigure.objects.filter(version__claim__in=claims).order_by("pk")
        for row in shown if self.history else shown.filter(version=F("version__claim__current")):
            self.shown[row.version_id].append(row)

    def _figures(self, figures: set[int], versions: set[int]) -> None:
        """Bindings of figures and what they are derived from, a level at a time."""
        seen: set[int] = set()
        while figures or versions:
            seen |= figures
            rows = [row for part in _chunks(versions) for row in self._bindings(pk__in=part)]
            rows += [row for part in _chunks(figures) for row in self._of_figures(part)]
            new = [row for row in {row.pk: row for row in rows}.values() if row.pk not in self.by_pk]
            for row in new:
                self.by_pk[row.pk] = row
                self.bindings[row.figure_id].append(row)
            derived = [row.pk for row in new if row.binding.get("type") == "derivation"]
            for part in _chunks(derived):
                for version, figure in FigureInput.objects.filter(version__in=part).values_list("version", "figure"):
                    self.inputs[version].append(figure)
            figures = {figure for pk in derived for figure in self.inputs[pk]} - seen
            versions = set()

    def _of_figures(self, figures: list[int]) -> Iterable[FigureVersion]:
        if self.history:
            return self._bindings(figure__in=figures)
        return self._bindings(figure__in=figures, pk=F("figure__current"))

    @staticmethod
    def _bindings(**which: Any) -> Iterable[FigureVersion]:
        return FigureVersion.objects.filter(**which).select_related("actor", "figure", "excerpt__actor")

    def _receipts(self) -> None:
        rows: list[EvidenceRecord] = [*self.by_pk.values()]
        rows += [row.excerpt for row in self.by_pk.values() if row.excerpt is not None]
        for found in (self.versions, self.links, self.withdrawals):
            rows += [row for many in found.values() for row in many]
        rows += [link.excerpt for many in self.links.values() for link in many if link.excerpt is not None]
        self.places = places_of(rows)

    def of(self, claim: int, link: int | None = None, *, before: int | None = None) -> list[Part]:
        """Parts in a claim, or in one of its links, the claim's own first. ``before``: a place in the stream."""
        versions = [row for row in self.versions[claim] if self._told(row, before)]
        links = [row for row in self.links[claim] if self._told(row, before)]
        gone = [row for row in self.withdrawals[claim] if self._told(row, before)]
        found = [Part(row.actor, VERSION, row.claim.key, row.number) for row in versions]
        found += [Part(row.actor, LINK, row.claim.key) for row in links if link in (None, row.pk)]
        key = versions[-1].claim.key if versions else ""
        found += [Part(row.actor, WITHDRAWAL, key) for row in gone if link in (None, row.link_id)]
        shown = self.shown[versions[-1].pk] if versions else []
        first = [self.by_pk[row.figure_version_id] for row in shown if row.figure_version_id in self.by_pk]
        figures = [*(row.figure_id for row in shown), *(row.figure_id for row in links if row.figure_id is not None)]
        first += [row for figure in figures if (row := self._present(figure, before)) is not None]
        found += self._of_bindings(first, before)
        found += [Part(row.excerpt.actor, EXCERPT, row.excerpt.key) for row in links if row.excerpt is not None]
        return list(dict.fromkeys(found))

    def of_figure(self, figure: int) -> list[Part]:
        """Parts in a figure as it is bound now."""
        row = self._present(figure, None)
        return [] if row is None else list(dict.fromkeys(self._of_bindings([row], None)))

    def _told(self, row: EvidenceRecord, before: int | None) -> bool:
        return before is None or self.places.get(row.uid, 0) < before

    def _present(self, figure: int, before: int | None) -> FigureVersion | None:
        """The binding of a figure that stood then."""
        rows = [row for row in self.bindings[figure] if self._told(row, before)]
        return max(rows, key=lambda row: row.number, default=None)

    def _of_bindings(self, first: list[FigureVersion], before: int | None) -> list[Part]:
        """Who bound these and everything that they are derived from, and who took the excerpts that they quote."""
        found, seen, waiting = [], set(), [(row, BINDING) for row in first]
        for row, what in waiting:  # grows while it is walked
            if row.pk in seen:
                continue
            seen.add(row.pk)
            found.append(Part(row.actor, what, row.figure.key))
            if row.excerpt is not None:
                found.append(Part(row.excerpt.actor, EXCERPT, row.excerpt.key))
            operands = (self._present(figure, before) for figure in self.inputs[row.pk])
            waiting += [(operand, OPERAND) for operand in operands if operand is not None]
        return found


def parts_of(claim: Claim, link: Link | None = None) -> list[Part]:
    """Parts in one claim, or in one of its links, as it stands."""
    return Parts([claim]).of(claim.pk, None if link is None else link.pk)


def parts_of_item(kind: str, uid: uuid.UUID) -> list[Part]:
    """Parts in what an item of the queue asks about: a link, a claim or a figure; nobody writes a source's drift."""
    if kind == "link":
        link = Link.objects.filter(uid=uid).select_related("claim").first()
        return [] if link is None else parts_of(link.claim, link)
    if kind == "claim":
        claim = Claim.objects.filter(uid=uid).first()
        return [] if claim is None else parts_of(claim)
    if kind == "figure":
        pk = Figure.objects.filter(uid=uid).values_list("pk", flat=True).first()
        return [] if pk is None else Parts(figures=[pk]).of_figure(pk)
    return []


def authors_of(parts: Iterable[Part]) -> list[Actor]:
    """Who has these parts, each once."""
    return list({part.actor.pk: part.actor for part in parts}.values())


def places_of(rows: Iterable[EvidenceRecord]) -> dict[uuid.UUID, int]:
    """uid of a record -> place of its receipt in the study's stream."""
    by_study: dict[int, set[uuid.UUID]] = defaultdict(set)
    for row in rows:
        by_study[row.study_id].add(row.uid)
    found: dict[uuid.UUID, int] = {}
    for study in Study.objects.filter(pk__in=by_study):
        wanted = sorted(by_study[study.pk])
        for start in range(0, len(wanted), CHUNK):
            told = Receipt.objects.filter(stream=stream_of(study), subject_uid__in=wanted[start : start + CHUNK])
            found.update({uid: seq for uid, seq in told.order_by("-seq").values_list("subject_uid", "seq") if uid})
    return found
