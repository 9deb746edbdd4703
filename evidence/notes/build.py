"""A stored document and the rows that it names -> what the notes page shows, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evidence.models import AcceptanceContract, NotesVersion, StaleMark
from evidence.notes import drawings, shapes
from evidence.notes.claims import ClaimRow, claim_rows, claims_of, figures_of
from evidence.notes.history import VersionRow, corrections_of, versions_of
from evidence.notes.read import document_of
from evidence.notes.rich import Rich, Said
from evidence.notes.sources import SourceRow, source_rows
from evidence.presenters import chips as chip_views
from evidence.propagation import named_in, section_uid
from runs.models import Study

FOLDED = frozenset({"routes", "writing", "milestones", "versions"})  # a summary says what is in them
ASIDE = frozenset({"sources", "versions"})  # sections that are lists of sources themselves get no margin notes


@dataclass(frozen=True)
class SectionView:
    """One numbered section. ``margin``: the sources that it cites, in order of first mention."""

    id: str
    number: int
    title: Said
    summary: Said
    blocks: list[dict[str, Any]]
    margin: list[SourceRow]
    folded: bool
    stale: list[str]  # why; empty: nothing has changed under it


@dataclass
class NotesPage:
    """Everything that the template reads."""

    study: Study
    notes: NotesVersion
    newest: int
    language: str
    document: Mapping[str, Any]
    title: Said
    subtitle: Said
    state: Said
    manuscript: Said
    imported: dict[str, Said] | None
    cards: list[dict[str, Any]]
    sections: list[SectionView]
    sources: list[SourceRow]
    versions: list[VersionRow]
    contract: AcceptanceContract | None
    contract_text: Said
    figure_states: list[tuple[str, int]]
    source_states: list[tuple[str, int]]
    names: list[dict[str, Any]] = field(default_factory=list)

    @property
    def stale(self) -> list[SectionView]:
        """Sections under which something has changed."""
        return [section for section in self.sections if section.stale]


def _counted(states: Iterable[str], order: tuple[str, ...]) -> list[tuple[str, int]]:
    every = list(states)
    return [(state, every.count(state)) for state in order if state in every]


@dataclass
class _Builder:
    """Turns parts of a document into what templates read: texts rendered, keys resolved, anchors given."""

    rich: Rich
    claims: Mapping[str, ClaimRow]
    sources: Mapping[str, SourceRow]
    corrections: Mapping[str, Any]

    def member(self, value: Any, spec: shapes.Field, anchor: str) -> Any:
        match spec.kind:
            case "text" | "need":
                return self.rich.said(value)
            case "item" | "item?":
                return None if value is None else self.members(value, spec.shape, anchor)
            case "list":
                return [self.members(item, spec.shape, f"{anchor}-{at}") for at, item in enumerate(value, start=1)]
            case "blocks":
                return self.blocks(value, anchor)
            case "texts":
                return [self.rich.said(item) for item in value]
            case "cells":
                return [[self.cell(cell) for cell in row] for row in value]
            case "refs":
                return [self.rich.citation(label) for label in value]
            case "claims":
                return [self.claims[key] for key in value if key in self.claims]
            case "figure" | "figure?":
                return self.rich.chips.get(value) if value else None
        return value

    def members(self, value: Mapping[str, Any], shape: str, anchor: str) -> dict[str, Any]:
        found = {spec.name: self.member(value[spec.name], spec, anchor) for spec in shapes.SHAPES[shape]}
        found["anchor"] = anchor
        return found

    def cell(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        ((name, inner),) = cell.items()
        match name:
            case "text":
                return {"text": self.rich.said(inner)}
            case "figure":
                return {"figure": self.rich.chips.get(inner)}
            case "claim":
                return {"claim": self.claims.get(inner)}
        return {"state": inner}

    def blocks(self, blocks: list[Mapping[str, Any]], anchor: str) -> list[dict[str, Any]]:
        found = []
        for at, block in enumerate(blocks, start=1):
            place = f"{anchor}-{at}"
            view = self.members(block, block["type"], place)
            view.update(type=block["type"], template=f"evidence/notes/block_{block['type']}.html")
            self._more(view, block, place)
            found.append(view)
        return found

    def _more(self, view: dict[str, Any], block: Mapping[str, Any], anchor: str) -> None:
        """What a type needs beside its members."""
        match block["type"]:
            case "paragraph":
                view["text"] = self.rich.said(block["text"], anchor)
            case "bars":
                view["rows"] = drawings.bars(view["items"])
            case "storyboard":
                view["cells"] = drawings.CREDIT_CELLS
            case "problems":
                order = {name: at for at, name in enumerate(shapes.CATEGORIES)}
                view["items"].sort(key=lambda item: (order[item["category"]], item["priority"]))
            case "corrections":
                for item, raw in zip(view["items"], block["items"], strict=True):
                    item["history"] = [self.corrections[key] for key in raw["figures"] if key in self.corrections]


def _stale_reasons(study: Study) -> dict[str, list[str]]:
    """Section id -> reasons of its open marks."""
    names = {section_uid(study, name): name for name in ("page", *shapes.SECTIONS)}
    found: dict[str, list[str]] = {}
    rows = StaleMark.objects.filter(study=study, target_kind="section", resolution__isnull=True).order_by("pk")
    for uid, reason in rows.values_list("target_uid", "reason"):
        if uid in names:
            found.setdefault(names[uid], []).append(reason)
    return found


def build(study: Study, notes: NotesVersion, language: str, newest: int | None = None) -> NotesPage:
    """The page of one version in ``en`` or ``zh``. Raises ``DomainError`` where its document cannot be read."""
    return build_document(study, notes, document_of(notes), language, newest)


def build_document(
    study: Study, notes: NotesVersion, document: Mapping[str, Any], language: str, newest: int | None = None
) -> NotesPage:
    """The page of a complete document that need not be stored yet: previews use it."""
    named = named_in(document)
    claims = claims_of(study, named.claims)
    keys = named.figures | figures_of(claims)
    chips = chip_views.chips_for(study, sorted(keys))
    sources = source_rows(study, language)
    by_label = {row.reference: row for row in sources if row.reference}
    rich = Rich(language, chips, by_label)
    corrected = {key for block in _corrections(document) for item in block["items"] for key in item["figures"]}
    builder = _Builder(rich, claim_rows(claims, rich), by_label, corrections_of(study, corrected, chips))
    reasons = _stale_reasons(study)
    contract = AcceptanceContract.objects.filter(study=study).select_related("actor").order_by("-pk").first()
    sections = [_section(builder, section, at, reasons) for at, section in enumerate(document["sections"], start=1)]
    said = {name: rich.said(document[name]) for name in ("title", "subtitle", "state", "manuscript")}
    imported = document["imported"]
    return NotesPage(
        study=study, notes=notes, newest=notes.number if newest is None else newest, language=language,
        document=document, **said,
        imported=None if imported is None else {name: rich.said(imported[name]) for name in ("of", "note")},
        cards=[builder.members(card, "card", f"card-{card['role']}") for card in document["cards"]],
        sections=sections, sources=sources, versions=versions_of(study), contract=contract,
        contract_text=rich.said({"en": contract.text_en, "zh": contract.text_zh}) if contract else rich.said({}),
        figure_states=_counted((chip.state for chip in chips.values()), tuple(chip_views.STATES)),
        source_states=_counted((row.state for row in sources), SourceRow.STATES),
        names=[builder.members(item, "name", "name") for item in document["names"]],
    )  # fmt: skip


def _corrections(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    from evidence.notes.schema import blocks_of

    return [block for _, block in blocks_of(document) if block["type"] == "corrections"]


def _section(
    builder: _Builder, section: Mapping[str, Any], number: int, reasons: Mapping[str, list[str]]
) -> SectionView:
    name = section["id"]
    cited = _cited(section, builder.sources) if name not in ASIDE else []
    return SectionView(
        id=name,
        number=number,
        title=builder.rich.said(section["title"]),
        summary=builder.rich.said(section["summary"]),
        blocks=builder.blocks(section["blocks"], name),
        margin=[builder.sources[label] for label in cited],
        folded=name in FOLDED,
        stale=reasons.get(name, []),
    )


def _cited(section: Mapping[str, Any], sources: Mapping[str, SourceRow]) -> list[str]:
    """Labels of the sources that a section names, in the order in which a reader meets them."""
    from evidence.binding.tokens import source_references
    from evidence.notes.texts import leaves

    found: list[str] = []
    for _, kind, value in leaves(section, "section"):
        if kind == "text":
            found.extend(source_references(value.values()))
        elif kind == "refs":
            found.extend(value)
    return [label for label in dict.fromkeys(found) if label in sources]
