"""Walks the HTML of a notes page and reports every number that nothing binds.

Looks at texts, SVG texts and the attributes that people or programs read. Exempt are chips of bound figures, whose
value is computed again, and what the template itself marks with ``data-walk``, each kind held to its own form; days
stand in ``<time>``; ``data-declared`` pieces are held to the grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.utils.translation import override

from evidence.binding.figures import Resolver, recompute
from evidence.binding.numbers import bare_numbers
from evidence.binding.tokens import check_declared
from evidence.models import Claim, Excerpt, Figure, FigureVersion, NotesVersion, Source, SourceVersion
from evidence.notes import read
from evidence.notes.claims import claims_of, figures_of
from evidence.presenters.chips import shown
from evidence.propagation import named_in
from runs.models import Actor, Study

READ_ATTRIBUTES = ("title", "alt", "aria-label", "aria-description", "placeholder", "content", "label", "summary")
FORMS = {
    "ordinal": re.compile(r"\d{1,4}"),
    "count": re.compile(r"\d{1,6}"),
    "clock": re.compile(r"0:00 / 0:40"),
    "lines": re.compile(r"\d+–\d+"),
    "label": re.compile(r"\[?[A-Za-z][A-Za-z0-9._-]*\]?"),
    "hash": re.compile(r"[0-9a-f]{8,64}"),
    "formula": re.compile(r"\D+"),
}
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "rect", "path", "circle", "line", "source"}
_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?|\d{2}-\d{2}")


@dataclass
class Element:
    """One element with its attributes, texts and children in order."""

    tag: str
    attributes: dict[str, str]
    parts: list[Element | str] = field(default_factory=list)

    def text(self) -> str:
        """All text below it, assistive text left out."""
        if "visually-hidden" in self.attributes.get("class", "").split():
            return ""
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)

    def all(self) -> Iterator[Element]:
        """The element and everything below it."""
        yield self
        for part in self.parts:
            if isinstance(part, Element):
                yield from part.all()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].parts.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self.open) - 1, 0, -1):
            if self.open[at].tag == tag:
                del self.open[at:]
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def parse(html: str) -> Element:
    """The tree of a page."""
    reader = _Reader()
    reader.feed(html)
    return reader.root


@dataclass
class Walked:
    """What a walk found. ``loose``: numbers that nothing binds; ``wrong``: bound ones that say something else."""

    loose: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    chips: list[str] = field(default_factory=list)  # keys, as often as they stand on the page
    exempt: dict[str, int] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether every number is bound and right."""
        return not self.loose and not self.wrong


class Walk:
    """Compares a page of a study with what its records say now. ``language``: the page's, ``en`` or ``zh-hans``."""

    def __init__(self, study: Study, language: str = "en"):
        self.study, self.language = study, "zh-hans" if language.startswith("zh") else "en"
        self.found, self.resolver = Walked(), Resolver(study)
        self.figures = {str(row.uid): row for row in Figure.objects.filter(study=study).select_related("current")}
        self.hashes = {
            *SourceVersion.objects.filter(source__study=study).values_list("sha256", flat=True),
            *NotesVersion.objects.filter(study=study).values_list("document_sha256", flat=True),
        }
        self.labels = set(Source.objects.filter(study=study).values_list("reference", flat=True))
        self.paths = {
            *Source.objects.filter(study=study).values_list("path", flat=True),
            *Excerpt.objects.filter(study=study).values_list("key", flat=True),
        }
        self.names = {
            study.slug,
            study.title_en,
            study.title_zh,
            "SHA-256",
            *(item["text"] for item in self._document()["names"]),
        }
        self.names |= set(Claim.objects.filter(study=study).values_list("key", flat=True))
        self.people = set(Actor.objects.values_list("name", flat=True))

    def page(self, html: str) -> Walked:
        """Walk a whole page."""
        self._element(parse(html))
        return self.found

    def _element(self, element: Element) -> None:
        if element.tag in ("script", "style"):
            return
        if "data-figure" in element.attributes:
            self._chip(element)
            return
        if "data-walk" in element.attributes:
            self._exempt(element)
            return
        if "data-declared" in element.attributes:
            expected = check_declared(element.attributes["data-declared"], element.text())
            if expected:
                self.found.wrong.append(f"{element.attributes['data-declared']}: {element.text()}")
            return
        if element.tag == "time":
            self._time(element)
            return
        self._attributes(element)
        for part in element.parts:
            if isinstance(part, str):
                self._prose(part, element.tag)
            else:
                self._element(part)

    def _prose(self, text: str, where: str) -> None:
        for item in bare_numbers(text):
            self.found.loose.append(f"<{where}> {item.text!r} in {' '.join(text.split())[:80]!r}")

    def _attributes(self, element: Element) -> None:
        for name in READ_ATTRIBUTES:
            if element.tag == "meta" and element.attributes.get("name") == "viewport":
                continue
            for item in bare_numbers(element.attributes.get(name, "")):
                if not self._known(element.attributes[name]):
                    self.found.loose.append(
                        f"<{element.tag} {name}> {item.text!r} in {element.attributes[name][:80]!r}"
                    )

    def _known(self, text: str) -> bool:
        """A hash in full on hover, or the title of a source that its record gives."""
        titles = Source.objects.filter(study=self.study).values_list("title_en", "title_zh")
        return text in self.hashes or text in {title for pair in titles for title in pair}

    def _chip(self, element: Element) -> None:
        figure = self.figures.get(element.attributes["data-figure"])
        if figure is None or figure.current is None:
            self.found.wrong.append(f"figure {element.attributes['data-figure']}: none of this study")
            return
        self.found.chips.append(figure.key)
        again = recompute(figure, self.resolver)
        with override(self.language):
            stands = shown(figure.current, figure.state)
        if again.value != figure.current.value:
            self.found.wrong.append(f"{figure.key}: stored {figure.current.value}, computes to {again.value}")
        values = [part for part in element.all() if "fig-value" in part.attributes.get("class", "")]
        printed = (values[0] if values else element).text().strip()
        if stands not in (printed, element.attributes.get("data-shown")) or printed != element.attributes["data-shown"]:
            self.found.wrong.append(f"{figure.key}: shows {printed!r}, its record says {stands!r}")
        before = json.loads(element.attributes.get("data-earlier", "[]"))
        known = [shown(row, Figure.BOUND) for row in figure.versions.order_by("number") if row.value is not None]
        if not all(text in known and text != stands for text in before):
            self.found.wrong.append(f"{figure.key}: shows {before} as what it was, its record says {known}")
        card = json.loads(element.attributes.get("data-card", "[]"))
        said = [stands, *(text for _, text in card)]
        if figure.current.value and not any(figure.current.value in text or "/" in text for text in said):
            self.found.wrong.append(
                f"{figure.key}: neither it nor its card gives the exact value {figure.current.value}"
            )

    def _time(self, element: Element) -> None:
        text = element.text().strip()
        if not _DAY.search(text) or bare_numbers(re.sub(r"[\d:Z\s–/.-]", "", text)):
            self.found.wrong.append(f"<time> {text!r}")

    def _exempt(self, element: Element) -> None:
        kind, text = element.attributes["data-walk"], " ".join(element.text().split())
        self.found.exempt[kind] = self.found.exempt.get(kind, 0) + 1
        if not self._allowed(kind, text, element):
            self.found.wrong.append(f"data-walk={kind}: {text!r}")

    def _allowed(self, kind: str, text: str, element: Element) -> bool:
        match kind:
            case "hash":
                found = FORMS["hash"].search(text)
                return found is not None and any(known.startswith(found[0]) for known in self.hashes)
            case "label":
                return bool(FORMS["label"].fullmatch(text)) and text.strip("[]") in self.labels
            case "path":
                return text in self.paths
            case "person":
                return text in self.people
            case "name":
                return text in self.names
            case "quotation":
                stored = Excerpt.objects.filter(study=self.study, uid=element.attributes["data-excerpt"]).first()
                return stored is not None and " ".join(stored.text.split()) == text
            case "earlier":
                uid = element.attributes["data-figure-version"]
                version = FigureVersion.objects.filter(figure__study=self.study, uid=uid).first()
                return version is not None and text == shown(version, Figure.BOUND)
            case "count":
                return bool(FORMS["count"].fullmatch(text)) and int(text) == self._count(
                    element.attributes["data-count"]
                )
        form = FORMS.get(kind)
        return form is not None and bool(form.fullmatch(text))

    def _count(self, what: str) -> int:
        name, _, value = what.partition(":")
        if name == "sources":
            return Source.objects.filter(study=self.study, state=value).exclude(reference="").count()
        if name == "excerpts":
            return Excerpt.objects.filter(study=self.study, version__source__reference=value).count()
        return self.counted.get(value, -1) if name == "figures" else -1

    def _document(self) -> dict[str, Any]:
        notes = read.current(self.study)
        assert notes is not None
        return read.document_of(notes)

    @property
    def counted(self) -> dict[str, int]:
        """State -> how many figures the newest notes and their claims name."""
        named = named_in(self._document())
        keys = named.figures | figures_of(claims_of(self.study, named.claims))
        states = list(Figure.objects.filter(study=self.study, key__in=keys).values_list("state", flat=True))
        return {state: states.count(state) for state in states}


def walk_page(study: Study, html: str, language: str = "en") -> Walked:
    """Walk the HTML of a study's notes page in ``en`` or ``zh``."""
    return Walk(study, language).page(html)
