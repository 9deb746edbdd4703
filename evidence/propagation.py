"""What rests on what: source -> excerpts -> figures -> derived figures -> claims -> sections of notes.

Edges are read from the rows that count now: a figure's current version, a claim's current words, links that are
not withdrawn, the newest notes of a study. Walked breadth first, so that a path is a shortest one; how many queries
it takes does not depend on how much rests on what.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Q

from evidence.models import (
    Claim,
    ClaimFigure,
    Excerpt,
    Figure,
    FigureInput,
    Link,
    NotesVersion,
    Source,
    SourceVersion,
)
from runs.errors import DomainError
from runs.models import PlanVersion, Receipt, Study
from runs.storage import blob_store
from workbench.blobs import BlobError, BlobStore
from workbench.contracts.canonical import derive_uid, parse_json
from workbench.contracts.errors import ContractError

SOURCE, VERSION, EXCERPT, FIGURE, CLAIM, SECTION = "source", "version", "excerpt", "figure", "claim", "section"
RECEIPT, PLAN = "receipt", "plan"
CAUSES = (SOURCE, VERSION, EXCERPT, FIGURE, CLAIM, RECEIPT, PLAN)
TARGETS = (FIGURE, CLAIM, SECTION)
MOST = 900  # values of one IN list
Node = tuple[str, str]  # (kind, uid)

_FIGURE_TOKEN = re.compile(r"\[\[([^\[\]\s]{1,100})\]\]")
_SOURCE_TOKEN = re.compile(r"\[@([^\[\]\s]{1,32})\]")


@dataclass(frozen=True)
class Path:
    """A dependant and how it is reached: ``steps`` from the cause to it, both included."""

    kind: str
    uid: str
    steps: tuple[Node, ...]


@dataclass(frozen=True)
class Named:
    """What a section of notes names: keys of figures and claims, references of sources."""

    figures: frozenset[str]
    claims: frozenset[str]
    sources: frozenset[str]


@dataclass
class _Walk:
    """How each node was first reached; ``order`` of discovery."""

    before: dict[Node, Node | None] = field(default_factory=dict)

    def reach(self, node: Node, before: Node | None) -> bool:
        """Note a node. False where it was reached before."""
        if node in self.before:
            return False
        self.before[node] = before
        return True

    def path(self, node: Node) -> tuple[Node, ...]:
        """Steps from the cause to the node."""
        found: list[Node] = []
        step: Node | None = node
        while step is not None:
            found.append(step)
            step = self.before[step]
        return tuple(reversed(found))


def section_uid(study: Study, section: str) -> uuid.UUID:
    """Uid of a section of a study's notes: marks on it outlive a version of the notes."""
    return derive_uid(study.uid, f"section:{section}")


def named_in(value: Any) -> Named:
    """What a part of a notes document names, in texts and in cells, at any depth."""
    figures: set[str] = set()
    claims: set[str] = set()
    sources: set[str] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            figures.update(_FIGURE_TOKEN.findall(item))
            sources.update(_SOURCE_TOKEN.findall(item))
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            _named_by_keys(item, figures, claims, sources)
            waiting.extend(item.values())
    return Named(frozenset(figures), frozenset(claims), frozenset(sources))


def _named_by_keys(item: dict[str, Any], figures: set[str], claims: set[str], sources: set[str]) -> None:
    figures.update(item[name] for name in ("figure", "of") if isinstance(item.get(name), str))
    if isinstance(item.get("claim"), str):
        claims.add(item["claim"])
    if item.get("type") == "claims":
        claims.update(key for key in item.get("items") or () if isinstance(key, str))
    for name, found in (("figures", figures), ("sources", sources)):
        if isinstance(item.get(name), list):
            found.update(key for key in item[name] if isinstance(key, str))


def newest_notes(study: Study) -> NotesVersion | None:
    """The notes of a study that count now."""
    return NotesVersion.objects.filter(study=study).order_by("-number").first()


def sections_of(notes: NotesVersion, store: BlobStore | None = None) -> dict[str, Named]:
    """What each section names, by its id; the head of the page is the section ``page``.

    Empty where the document cannot be read: verification of notes says so.
    """
    try:
        document = parse_json((store or blob_store()).get(notes.document_sha256))
    except (BlobError, ContractError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    found = {"page": named_in({key: value for key, value in document.items() if key != "sections"})}
    for section in document.get("sections") or ():
        if isinstance(section, dict):
            found[str(section.get("id"))] = named_in(section)
    return found


def names_of_section(study: Study, uid: uuid.UUID | str, store: BlobStore | None = None) -> Named:
    """What a section of the newest notes names; nothing where they have no such section any more."""
    notes = newest_notes(study)
    for section, named in sections_of(notes, store).items() if notes is not None else ():
        if str(section_uid(study, section)) == str(uid):
            return named
    return Named(frozenset(), frozenset(), frozenset())


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Values in lists that one query can hold."""
    every = list(values)
    for start in range(0, len(every), MOST):
        yield every[start : start + MOST]


def study_of_cause(kind: str, uid: uuid.UUID | str) -> Study:
    """The study in which a cause lies. Raises ``DomainError`` where there is none."""
    rows: Any
    match kind:
        case "source":
            rows = Study.objects.filter(Q(sources__uid=uid) | Q(sources__versions__uid=uid))
        case "version":
            rows = Study.objects.filter(sources__versions__uid=uid)
        case "excerpt":
            rows = Study.objects.filter(pk__in=Excerpt.objects.filter(uid=uid).values("study"))
        case "figure":
            rows = Study.objects.filter(figures__uid=uid)
        case "claim":
            rows = Study.objects.filter(claims__uid=uid)
        case "plan":
            rows = Study.objects.filter(plans__versions__uid=uid)
        case "receipt":
            rows = Study.objects.filter(pk__in=_studies_of_receipt(uid))
        case _:
            raise DomainError(f"kind: got {kind[:40]!r}, expected one of {', '.join(CAUSES)}")
    found: Study | None = rows.first()
    if found is None:
        raise DomainError(f"uid: got {str(uid)[:40]!r}, expected the uid of a {kind}")
    return found


def _studies_of_receipt(uid: uuid.UUID | str) -> list[int]:
    hashes = list(Receipt.objects.filter(subject_uid=uid).values_list("sha256", flat=True)[:MOST])
    rows = Figure.objects.filter(current__binding__sha256__in=hashes)
    return list(rows.values_list("study_id", flat=True).distinct())


def cause_of(kind: str, uid: uuid.UUID | str) -> Node:
    """A cause as marks name it: the uid of a version given as a source's is that version."""
    if kind == SOURCE and not Source.objects.filter(uid=uid).exists():
        return VERSION, str(uuid.UUID(str(uid)))
    return kind, str(uuid.UUID(str(uid)))


def dependants(
    kind: str, uid: uuid.UUID | str, *, superseded_only: bool = False, store: BlobStore | None = None
) -> list[Path]:
    """Figures, claims and sections that rest on something, each with a shortest path from it.

    ``superseded_only``: of a source, what rests on its older versions only.
    """
    study = study_of_cause(kind, uid)
    cause = cause_of(kind, uid)
    walk = _Walk()
    walk.reach(cause, None)
    versions = _versions(cause, superseded_only)
    _excerpts(walk, cause, versions)
    _figures(walk, cause, versions)
    _derived(walk, study)
    _claims(walk)
    _sections(walk, study, store)
    targets = [node for node in walk.before if node[0] in TARGETS and node != cause]
    return [Path(node[0], node[1], walk.path(node)) for node in targets]


def _uids(walk: _Walk, kind: str) -> list[str]:
    return [uid for found, uid in walk.before if found == kind]


def _versions(cause: Node, superseded_only: bool) -> list[int]:
    if cause[0] == VERSION:
        return list(SourceVersion.objects.filter(uid=cause[1]).values_list("pk", flat=True))
    if cause[0] != SOURCE:
        return []
    rows = SourceVersion.objects.filter(source__uid=cause[1])
    if superseded_only:
        newest = rows.order_by("-number").values_list("sha256", flat=True).first()
        rows = rows.exclude(sha256=newest)  # the same bytes under another number supersede nothing
    return list(rows.values_list("pk", flat=True))


def _excerpts(walk: _Walk, cause: Node, versions: Sequence[int]) -> None:
    for part in chunks(versions):
        for uid in Excerpt.objects.filter(version__in=part).order_by("pk").values_list("uid", flat=True):
            walk.reach((EXCERPT, str(uid)), cause)


def _figures(walk: _Walk, cause: Node, versions: Sequence[int]) -> None:
    """Figures whose current version is bound to the bytes, to an excerpt, to a plan's endpoint or to a receipt."""
    rows = Figure.objects.order_by("pk")
    for part in chunks(_uids(walk, EXCERPT)):
        found = rows.filter(current__excerpt__uid__in=part).values_list("uid", "current__excerpt__uid")
        for uid, excerpt in found:
            walk.reach((FIGURE, str(uid)), (EXCERPT, str(excerpt)))
    for part in chunks(versions):
        for uid in rows.filter(current__source_version__in=part).values_list("uid", flat=True):
            walk.reach((FIGURE, str(uid)), cause)
    if cause[0] == PLAN:
        plan = PlanVersion.objects.filter(uid=cause[1]).values_list("pk", flat=True).first()
        for uid in rows.filter(current__plan_version=plan).values_list("uid", flat=True):
            walk.reach((FIGURE, str(uid)), cause)
    if cause[0] == RECEIPT:
        hashes = list(Receipt.objects.filter(subject_uid=cause[1]).values_list("sha256", flat=True)[:MOST])
        for uid in rows.filter(current__binding__sha256__in=hashes).values_list("uid", flat=True):
            walk.reach((FIGURE, str(uid)), cause)


def _derived(walk: _Walk, study: Study) -> None:
    """Derivations over what was reached, however long the chain is: one query for all edges of the study."""
    uids = _uids(walk, FIGURE)
    if not uids:
        return
    edges: dict[str, list[str]] = {}
    rows = FigureInput.objects.filter(version__figure__study=study, version=F("version__figure__current"))
    for used, by in rows.order_by("pk").values_list("figure__uid", "version__figure__uid"):
        edges.setdefault(str(used), []).append(str(by))
    for reached in uids:  # grows while it is walked
        for derived in edges.get(reached, ()):
            if walk.reach((FIGURE, derived), (FIGURE, reached)):
                uids.append(derived)


def _claims(walk: _Walk) -> None:
    """Claims whose current words show a figure, or that a standing link ties to a figure or an excerpt."""
    standing = Link.objects.filter(withdrawal__isnull=True)
    edges: list[tuple[Node, str]] = []
    for part in chunks(_uids(walk, EXCERPT)):
        rows = standing.filter(excerpt__uid__in=part).values_list("claim__uid", "excerpt__uid")
        edges.extend(((EXCERPT, str(excerpt)), str(claim)) for claim, excerpt in rows)
    for part in chunks(_uids(walk, FIGURE)):
        bound = ClaimFigure.objects.filter(figure__uid__in=part, version=F("version__claim__current"))
        shown = bound.values_list("version__claim__uid", "figure__uid")
        linked = standing.filter(figure__uid__in=part).values_list("claim__uid", "figure__uid")
        edges.extend(((FIGURE, str(figure)), str(claim)) for claim, figure in (*shown, *linked))
    place = {node: number for number, node in enumerate(walk.before)}
    for node, claim in sorted(edges, key=lambda edge: (place[edge[0]], edge[1])):  # nearest the cause first
        walk.reach((CLAIM, claim), node)


def _sections(walk: _Walk, study: Study, store: BlobStore | None) -> None:
    for section, node in sections_naming(study, list(walk.before), store).items():
        walk.reach((SECTION, section), node)


def sections_naming(study: Study, nodes: Sequence[Node], store: BlobStore | None = None) -> dict[str, Node]:
    """Uid of each section of the newest notes that names one of ``nodes``, with the node that it names."""
    notes = newest_notes(study)
    if notes is None or not nodes:
        return {}
    found: dict[str, Node] = {}
    reached = keys_of(study, nodes)
    for section, named in sections_of(notes, store).items():
        for kind, keys in ((FIGURE, named.figures), (CLAIM, named.claims), (SOURCE, named.sources)):
            hits = sorted(keys & reached[kind].keys())
            if hits:
                found[str(section_uid(study, section))] = reached[kind][hits[0]]
                break
    return found


def keys_of(study: Study, nodes: Sequence[Node]) -> dict[str, dict[str, Node]]:
    """Key or reference -> node, by kind, of those nodes that notes can name."""
    found: dict[str, dict[str, Node]] = {FIGURE: {}, CLAIM: {}, SOURCE: {}}
    heads: tuple[tuple[str, Any], ...] = ((FIGURE, Figure), (CLAIM, Claim))
    for kind, model in heads:
        for part in chunks(uid for item, uid in nodes if item == kind):
            for key, uid in model.objects.filter(study=study, uid__in=part).values_list("key", "uid"):
                found[kind][key] = (kind, str(uid))
    for kind, uid in nodes[:1]:
        if kind in (SOURCE, VERSION):
            rows = Source.objects.filter(Q(uid=uid) | Q(versions__uid=uid)).exclude(reference="")
            found[SOURCE].update({reference: (kind, uid) for reference in rows.values_list("reference", flat=True)})
    return found
