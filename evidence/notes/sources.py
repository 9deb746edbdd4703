"""Sources as rows of the notes page: path, hash, day, state, and their excerpts with what is bound in them marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.utils.html import format_html
from django.utils.safestring import SafeString

from evidence.models import Excerpt, Figure, Source, SourceVersion
from runs.models import Study

MOST_EXCERPTS = 400  # of a page; the rest is counted, and the page of a source has all


@dataclass(frozen=True)
class ExcerptRow:
    """A quotation with the numbers that figures take from it marked. ``state``: of its last check."""

    excerpt: Excerpt
    state: str
    html: SafeString
    lines: tuple[int, int] | None


@dataclass
class SourceRow:
    """One source with its newest version. ``more``: excerpts that are not listed here."""

    STATES: ClassVar[tuple[str, ...]] = (*Source.STATES,)

    source: Source
    version: SourceVersion | None
    title: str
    excerpts: list[ExcerptRow] = field(default_factory=list)
    more: int = 0

    @property
    def reference(self) -> str:
        """Its label on pages, or nothing."""
        return self.source.reference

    @property
    def state(self) -> str:
        """State of the newest bytes."""
        return self.source.state


def source_rows(study: Study, language: str) -> list[SourceRow]:
    """Sources that have a label, in the order of their labels, with their excerpts: three queries."""
    rows = Source.objects.filter(study=study).exclude(reference="").select_related("current")
    found = {row.pk: SourceRow(row, row.current, _title(row, language)) for row in rows}
    excerpts = list(
        Excerpt.objects.filter(version__source__in=found).select_related("head", "version").order_by("pk")
        [:MOST_EXCERPTS]
    )  # fmt: skip
    bound = _bound(excerpts)
    for excerpt in excerpts:
        found[excerpt.version.source_id].excerpts.append(_excerpt(excerpt, bound.get(excerpt.pk, [])))
    return sorted(found.values(), key=lambda row: _order(row.reference))


def _order(label: str) -> tuple[bool, str, int]:
    """Numbered labels first, R2 before R10; then those that are words."""
    letters = label.rstrip("0123456789")
    return letters == label, letters, int(label[len(letters) :] or 0)


def _title(source: Source, language: str) -> str:
    own, other = (source.title_zh, source.title_en) if language == "zh" else (source.title_en, source.title_zh)
    return own or other


def _bound(excerpts: Iterable[Excerpt]) -> dict[int, list[dict[str, Any]]]:
    """Excerpt -> bindings of the current figures that take a number from it."""
    found: dict[int, list[dict[str, Any]]] = {}
    rows = Figure.objects.filter(current__excerpt__in=[row.pk for row in excerpts])
    for excerpt, binding in rows.values_list("current__excerpt", "current__binding"):
        found.setdefault(excerpt, []).append(binding)
    return found


def spans(text: str, bindings: Iterable[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Where the bound numbers stand in an excerpt, in order and without overlap."""
    found = []
    for binding in bindings:
        wanted, start = str(binding.get("number") or ""), -1
        for _ in range(int(binding.get("occurrence") or 1) if wanted else 0):
            start = text.find(wanted, start + 1)
            if start < 0:
                break
        if start >= 0 and wanted:
            found.append((start, start + len(wanted)))
    kept: list[tuple[int, int]] = []
    for start, stop in sorted(set(found)):
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
    return kept


def _excerpt(excerpt: Excerpt, bindings: Iterable[Mapping[str, Any]]) -> ExcerptRow:
    html, place = SafeString(""), 0
    for start, stop in spans(excerpt.text, bindings):
        html = html + format_html("{}<mark>{}</mark>", excerpt.text[place:start], excerpt.text[start:stop])
        place = stop
    html = html + format_html("{}", excerpt.text[place:])
    head = getattr(excerpt, "head", None)
    lines = (head.first_line, head.last_line) if head is not None and head.first_line is not None else None
    return ExcerptRow(excerpt, head.state if head is not None else excerpt.kind, html, lines)
