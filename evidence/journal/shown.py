"""Lines of the journal as people read them: the places of a text with their values, names of streams and subjects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evidence.journal.lines import PLACE, Line
from evidence.models import Claim, Figure, Source
from evidence.presenters.troubles import told
from runs.presenters.receipts import stream_names

ABSENT = "—"
_DECIMAL = re.compile(r"-?\d{1,6}\.\d{6,20}|-?\d(?:\.\d{1,20})?e-?\d{1,3}")
_HEADS: dict[str, Any] = {"claim": Claim, "figure": Figure, "source": Source}


@dataclass(frozen=True)
class Piece:
    """Words, or the value at ``place`` of the receipt; ``exact`` as the receipt writes it, a dash where it has none."""

    words: str
    place: str = ""
    exact: str = ""

    @property
    def is_value(self) -> bool:
        """Whether it comes from the receipt."""
        return bool(self.place)

    @property
    def is_words(self) -> bool:
        """Whether what comes from the receipt is a sentence and no number or name."""
        return " " in self.words or len(self.words) > 40


@dataclass(frozen=True)
class Shown:
    """A line: its pieces, its receipt, and what it is about in words."""

    kind: str
    pieces: list[Piece]
    receipt: str
    where: str
    about: str


def pieces_of(line: Line, language: str) -> list[Piece]:
    """A line's text in a language, cut at its values."""
    text, place, found = line[f"text_{language}"], 0, []
    for match in PLACE.finditer(text):
        if match.start() > place:
            found.append(Piece(text[place : match.start()]))
        value = line["values"].get(match[1])
        exact = ABSENT if value is None else value
        found.append(Piece(short(told(exact)), match[1], exact))
        place = match.end()
    if place < len(text):
        found.append(Piece(text[place:]))
    return found


def short(exact: str) -> str:
    """A long decimal to four significant digits; anything else as it is. The page keeps the exact one beside it."""
    return f"{float(exact):.4g}" if _DECIMAL.fullmatch(exact) else exact


def subjects_of(lines: Iterable[Line]) -> dict[str, str]:
    """Key of each claim, figure and source that lines are about, by uid; one query for each of the three."""
    wanted: dict[str, set[str]] = {name: set() for name in _HEADS}
    for line in lines:
        about = line.get("about")
        if about is not None and about[0] in wanted:
            wanted[about[0]].add(about[1])
    names: dict[str, str] = {}
    for name, model in _HEADS.items():
        if wanted[name]:
            names.update({str(row.uid): str(row) for row in model.objects.filter(uid__in=wanted[name])})
    return names


def shown_lines(lines: list[Line], language: str) -> list[Shown]:
    """All lines with readable names."""
    streams, subjects = stream_names({line["stream"] for line in lines}), subjects_of(lines)
    return [
        Shown(
            line["kind"], pieces_of(line, language), line["receipt"], streams.get(line["stream"], ""),
            subjects.get((line.get("about") or ["", ""])[1], ""),
        )
        for line in lines
    ]  # fmt: skip
