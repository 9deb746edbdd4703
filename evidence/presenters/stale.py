"""What is stale, in words: the chain from cause to effect, and the graph of what rests on one thing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _

from evidence.models import (
    Claim,
    ClaimFigure,
    Excerpt,
    ExcerptHead,
    Figure,
    Link,
    Source,
    SourceVersion,
    StaleMark,
)
from evidence.notes.edits import TITLES
from evidence.notes.shapes import SECTIONS
from evidence.propagation import Node, chunks, dependants, section_uid
from runs.access import Principal, visible
from runs.models import PlanVersion, Study

KINDS: Mapping[str, Any] = {
    "source": gettext_lazy("source"), "version": gettext_lazy("bytes"), "excerpt": gettext_lazy("quotation"),
    "figure": gettext_lazy("figure"), "claim": gettext_lazy("claim"), "section": gettext_lazy("section"),
    "receipt": gettext_lazy("receipt"), "plan": gettext_lazy("plan"),
}  # fmt: skip
MANY: Mapping[str, Any] = {
    "figure": gettext_lazy("figures"), "claim": gettext_lazy("claims"), "section": gettext_lazy("sections"),
}  # fmt: skip
HOW: Mapping[str, Any] = {
    "rebound": gettext_lazy("bound again"), "confirmed": gettext_lazy("confirmed"), "healed": gettext_lazy("healed"),
}  # fmt: skip
OPEN, SETTLED = "open", "settled"


@dataclass(frozen=True)
class Step:
    """One node of a chain: what it is, its name, and where its page is (empty: none)."""

    kind: str
    word: Any
    name: str
    url: str


@dataclass(frozen=True)
class Row:
    """A mark with its chain."""

    mark: StaleMark
    steps: tuple[Step, ...]
    graph: str
    settled: Any

    @property
    def target(self) -> Step:
        """What is stale."""
        return self.steps[-1]


def marks(principal: Principal) -> QuerySet[StaleMark]:
    """Visible marks with what a row reads."""
    return visible(principal, StaleMark.objects.select_related("study", "actor", "resolution__actor"), "study")


def named(nodes: Iterable[Node], studies: Sequence[Study]) -> dict[Node, Step]:
    """Names of nodes, by one query for each kind of them."""
    by_kind: dict[str, list[str]] = {}
    for kind, uid in dict.fromkeys(nodes):
        by_kind.setdefault(kind, []).append(uid)
    found: dict[Node, Step] = {}
    for kind, uids in by_kind.items():
        reader = _READERS.get(kind)
        if reader is not None:
            for part in chunks(uids):
                found.update({(kind, str(of)): Step(kind, KINDS[kind], name, url) for of, name, url in reader(part)})
    if "section" in by_kind:
        for study in studies:
            for name in ("page", *SECTIONS):
                node = ("section", str(section_uid(study, name)))
                url = reverse("evidence:notes", args=[study.slug]) + ("" if name == "page" else f"#{name}")
                found[node] = Step("section", KINDS["section"], section_words(name), url)
    return found


def section_words(name: str) -> str:
    """What a section of the notes is called, whatever its title is on the page of one study."""
    if name not in TITLES:
        return _("Head of the page") if name == "page" else name
    return TITLES[name][1 if (get_language() or "").startswith("zh") else 0]


def _sources(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for source in Source.objects.filter(uid__in=uids):
        yield source.uid, str(source), reverse("evidence:source", args=[source.uid])


def _versions(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for row in SourceVersion.objects.filter(uid__in=uids).select_related("source"):
        url = f"{reverse('evidence:source', args=[row.source.uid])}?version={row.number}"
        yield row.uid, _("%(source)s, version %(number)s") % {"source": row.source, "number": row.number}, url


def _excerpts(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for row in Excerpt.objects.filter(uid__in=uids).select_related("version__source"):
        url = f"{reverse('evidence:source', args=[row.version.source.uid])}?version={row.version.number}#e-{row.key}"
        yield row.uid, row.key, url


def _figures(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for uid, key in Figure.objects.filter(uid__in=uids).values_list("uid", "key"):
        yield uid, key, reverse("evidence:figure", args=[uid])


def _claims(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for uid, key in Claim.objects.filter(uid__in=uids).values_list("uid", "key"):
        yield uid, key, reverse("evidence:claim", args=[uid])


def _plans(uids: list[str]) -> Iterable[tuple[uuid.UUID, str, str]]:
    for row in PlanVersion.objects.filter(uid__in=uids).select_related("plan__study"):
        yield row.uid, row.plan.slug, reverse("runs:plan", args=[row.plan.study.slug, row.plan.slug])


_READERS = {
    "source": _sources, "version": _versions, "excerpt": _excerpts, "figure": _figures, "claim": _claims,
    "plan": _plans,
}  # fmt: skip


def _step(node: Sequence[str], names: Mapping[Node, Step]) -> Step:
    kind, uid = node
    return names.get((kind, uid)) or Step(kind, KINDS.get(kind, kind), uid[:8], "")


def rows(found: Sequence[StaleMark]) -> list[Row]:
    """Marks of a page with their chains; a number of queries that does not grow."""
    nodes = [(kind, uid) for mark in found for kind, uid in mark.path]
    studies = list({mark.study_id: mark.study for mark in found}.values())
    names = named(nodes, studies)
    made = []
    for mark in found:
        resolution = getattr(mark, "resolution", None)
        graph = reverse("evidence:stale_graph", args=[mark.cause_kind, mark.cause_uid])
        steps = tuple(_step(node, names) for node in mark.path)
        made.append(Row(mark, steps, graph, (HOW[resolution.how], resolution) if resolution else None))
    return made


def counts(found: QuerySet[StaleMark]) -> dict[str, int]:
    """How many open marks there are, by kind of what is stale."""
    every = found.filter(resolution__isnull=True).values_list("target_kind", "target_uid").distinct()
    result = dict.fromkeys(("figure", "claim", "section"), 0)
    for kind, _uid in every:
        result[kind] = result.get(kind, 0) + 1
    return result


def broken(principal: Principal, study: Study | None) -> tuple[int, int]:
    """(figures that do not recompute, claims that show one or are linked to a quotation without a place)."""
    figures = visible(principal, Figure.objects.filter(state=Figure.DRIFTED), "study")
    links = Link.objects.filter(claim=OuterRef("pk"), withdrawal__isnull=True)
    lost = links.filter(Q(excerpt__head__state=ExcerptHead.ORPHAN) | Q(figure__state=Figure.DRIFTED))
    words = ClaimFigure.objects.filter(version=OuterRef("current"), figure__state=Figure.DRIFTED)
    rows = Claim.objects.exclude(status=Claim.WITHDRAWN).filter(Exists(lost) | Exists(words))
    claims = visible(principal, rows, "study")
    if study is not None:
        figures, claims = figures.filter(study=study), claims.filter(study=study)
    return figures.count(), claims.count()


def headline(found: Mapping[str, int], broken: tuple[int, int] = (0, 0)) -> str:
    """The page's first line. ``broken``: as the function of that name counts."""
    if not any(found.values()) and any(broken):
        figures = ngettext("%d figure does not recompute", "%d figures do not recompute", broken[0]) % broken[0]
        claims = ngettext("%d claim rests on lost evidence", "%d claims rest on lost evidence", broken[1]) % broken[1]
        return _("No mark is open, but %s.") % _(", ").join((figures, claims))
    if not any(found.values()):
        return _("Nothing is stale.")
    words = (
        ngettext("%d figure", "%d figures", found["figure"]) % found["figure"],
        ngettext("%d claim", "%d claims", found["claim"]) % found["claim"],
        ngettext("%d section", "%d sections", found["section"]) % found["section"],
    )
    return _("Stale: %s") % _(", ").join(words)


# --- the graph ------------------------------------------------------------------------------------

WIDE, HIGH, GAP_X, GAP_Y, EDGE = 184, 34, 56, 12, 8
MOST_NODES, MOST_CHAINS, MOST_NAME = 120, 200, 24


@dataclass(frozen=True)
class Box:
    """A node as it is drawn: upper left corner, words, and whether an open mark names it."""

    step: Step
    x: int
    y: int
    marked: bool
    is_cause: bool
    short: str

    @property
    def middle(self) -> int:
        """Height of its middle."""
        return self.y + HIGH // 2

    @property
    def text_x(self) -> int:
        """Where its words begin."""
        return self.x + 10


@dataclass(frozen=True)
class Graph:
    """Boxes by depth from the left, and curves between them. ``left_out``: nodes that are not drawn.

    ``count``: of everything that rests on the cause; ``chains``: the first of them.
    """

    boxes: list[Box]
    curves: list[str]
    width: int
    height: int
    left_out: int
    chains: list[tuple[Step, ...]]
    count: int
    cause: Step


def graph(kind: str, uid: uuid.UUID, study: Study) -> Graph:
    """What rests on one thing, as a drawing and as chains."""
    paths = dependants(kind, uid)
    start = paths[0].steps[0] if paths else (kind, str(uid))
    before: dict[Node, Node | None] = {start: None}
    for path in paths:
        for first, second in zip(path.steps, path.steps[1:], strict=False):
            before.setdefault(second, first)
    nodes, listed = list(before)[:MOST_NODES], paths[:MOST_CHAINS]
    names = named([*nodes, *(step for path in listed for step in path.steps)], [study])
    targets = StaleMark.objects.filter(study=study, resolution__isnull=True, target_uid__in=[uid for _k, uid in nodes])
    marked = {(found, str(of)) for found, of in targets.values_list("target_kind", "target_uid")}
    boxes, places = _boxes(nodes, before, names, marked)
    edges = [(before[node], node) for node in nodes]
    curves = [_curve(places[first], places[node]) for first, node in edges if first is not None and first in places]
    width = max(box.x for box in boxes) + WIDE + EDGE
    height = max(box.y for box in boxes) + HIGH + EDGE
    chains = [tuple(_step(node, names) for node in path.steps) for path in listed]
    return Graph(boxes, curves, width, height, len(before) - len(nodes), chains, len(paths), _step(start, names))


def _boxes(
    nodes: Sequence[Node], before: Mapping[Node, Node | None], names: Mapping[Node, Step], marked: set[Node]
) -> tuple[list[Box], dict[Node, Box]]:
    depth: dict[Node, int] = {}
    filled: dict[int, int] = {}
    places: dict[Node, Box] = {}
    for node in nodes:  # a node comes after the one that it was reached from
        first = before[node]
        depth[node] = 0 if first is None else depth[first] + 1
        row = filled.get(depth[node], 0)
        filled[depth[node]] = row + 1
        step = _step(node, names)
        short = step.name if len(step.name) <= MOST_NAME else step.name[: MOST_NAME - 1] + "…"
        x, y = EDGE + depth[node] * (WIDE + GAP_X), EDGE + row * (HIGH + GAP_Y)
        places[node] = Box(step, x, y, node in marked, first is None, short)
    return list(places.values()), places


def _curve(first: Box, second: Box) -> str:
    """Path data from the right of one box to the left of another."""
    x, to = first.x + WIDE, second.x
    half = (x + to) // 2
    return f"M{x} {first.middle}C{half} {first.middle} {half} {second.middle} {to} {second.middle}"
