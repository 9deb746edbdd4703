"""The shape of a notes document (``workbench.notes/1``) as data: validation, the editor's form and its reader share it.

A document holds no number: texts name bound figures, and every other value is a key, a date or a word of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA = "workbench.notes/1"
SECTIONS = (
    "why", "idea", "verify", "results", "meaning", "routes", "writing", "problems", "next", "milestones", "sources",
    "versions",
)  # fmt: skip
CARD_ROLES = ("holds", "blocked", "next")
FRAMES = ("artefact", "remove", "reverify", "assign")
CONTRIBUTION_STATES = ("done", "observed", "to_verify")
CATEGORIES = ("execution", "evidence", "research", "writing")
HIGHEST_RANK, LOWEST_RANK = 1, 9
CELL_STATES = (
    "done", "observed", "to_verify", "pending", "not_measured", "unavailable", "draft", "checked", "needs_evidence",
    "blocked", "abandoned", "supported", "partly", "not_established", "refuted", "withdrawn", "verified", "claimed",
    "drifted", "superseded",
)  # fmt: skip
STEPS = 4  # a strip and the storyboard have as many, see spec: the notes page


@dataclass(frozen=True)
class Field:
    """One member. ``kind``:

    text {en, zh}; need the same, not empty in at least one language; word a plain name; choice of ``choices``;
    date, date? (null allowed); rank 1 (highest) to 9; figure, figure?, claim: keys; refs a list of
    source labels; flag true or false; item ``shape``; item? the same or null; list of ``shape``; cells a list of
    rows of cells; blocks; texts a list of texts; keys a list of figure keys; claims a list of claim keys.
    ``default``: the value of a member that is left out; ``...``: it must stand there.
    ``count``: how many items exactly; 0: any number up to ``MOST_ITEMS``.
    """

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    shape: str = ""
    count: int = 0
    default: Any = ...


MOST_ITEMS = 200
MOST_TEXT = 6000
DEEPEST = 2  # details within details

_SOURCES = Field("sources", "refs", default=[])

SHAPES: Mapping[str, tuple[Field, ...]] = {
    "root": (
        Field("schema", "choice", (SCHEMA,)),
        Field("study", "word"),
        Field("page_date", "date"),
        Field("cutoff", "date?", default=None),
        Field("record_ends", "date?", default=None),
        Field("manuscript", "text", default={"en": "", "zh": ""}),
        Field("imported", "item?", shape="imported", default=None),
        Field("title", "need"),
        Field("subtitle", "text", default={"en": "", "zh": ""}),
        Field("state", "need"),
        Field("cards", "list", shape="card", count=len(CARD_ROLES)),
        Field("names", "list", shape="name", default=[]),
        Field("sections", "list", shape="section", count=len(SECTIONS)),
    ),
    "imported": (Field("of", "need"), Field("note", "text", default={"en": "", "zh": ""})),
    "card": (
        Field("role", "choice", CARD_ROLES),
        Field("text", "need"),
        Field("note", "text", default={"en": "", "zh": ""}),
    ),
    "name": (Field("text", "word"), Field("why", "text", default={"en": "", "zh": ""})),
    "section": (
        Field("id", "choice", SECTIONS),
        Field("title", "need"),
        Field("summary", "text", default={"en": "", "zh": ""}),
        Field("blocks", "blocks", default=[]),
    ),
    "step": (Field("title", "need"), Field("text", "text", default={"en": "", "zh": ""})),
    "contribution": (Field("state", "choice", CONTRIBUTION_STATES), Field("text", "need")),
    "frame": (Field("id", "choice", FRAMES), Field("title", "need"), Field("text", "need")),
    "figure_item": (
        Field("figure", "figure"),
        Field("label", "text", default={"en": "", "zh": ""}),
        Field("note", "text", default={"en": "", "zh": ""}),
        _SOURCES,
    ),
    "bar": (
        Field("figure", "figure"),
        Field("of", "figure?", default=None),
        Field("label", "text", default={"en": "", "zh": ""}),
    ),
    "problem": (
        Field("category", "choice", CATEGORIES),
        Field("priority", "rank"),
        Field("title", "need"),
        Field("affects", "text", default={"en": "", "zh": ""}),
        Field("evidence", "text", default={"en": "", "zh": ""}),
        Field("action", "text", default={"en": "", "zh": ""}),
        Field("done", "need"),
    ),
    "decision": (
        Field("title", "need"),
        Field("text", "text", default={"en": "", "zh": ""}),
        Field("product", "need"),
    ),
    "moment": (
        Field("date", "date"),
        Field("title", "need"),
        Field("text", "text", default={"en": "", "zh": ""}),
    ),
    "part": (
        Field("part", "need"),
        Field("state", "need"),
        Field("gap", "text", default={"en": "", "zh": ""}),
        _SOURCES,
    ),
    "correction": (Field("date", "date"), Field("what", "need"), Field("figures", "keys", default=[])),
    # blocks, by type
    "paragraph": (Field("text", "need"), _SOURCES),
    "strip": (Field("decision", "flag", default=False), Field("steps", "list", shape="step", count=STEPS)),
    "contributions": (Field("items", "list", shape="contribution"),),
    "storyboard": (Field("frames", "list", shape="frame", count=STEPS),),
    "table": (Field("columns", "texts"), Field("rows", "cells")),
    "figures": (Field("items", "list", shape="figure_item"),),
    "bars": (Field("items", "list", shape="bar"),),
    "claims": (Field("items", "claims"),),
    "details": (Field("summary", "need"), Field("blocks", "blocks")),
    "problems": (Field("items", "list", shape="problem"),),
    "decisions": (Field("items", "list", shape="decision"),),
    "timeline": (Field("items", "list", shape="moment"),),
    "progress": (Field("items", "list", shape="part"),),
    "sources": (),
    "versions": (),
    "corrections": (Field("items", "list", shape="correction"),),
}
BLOCK_TYPES = (
    "paragraph", "strip", "contributions", "storyboard", "table", "figures", "bars", "claims", "details", "problems",
    "decisions", "timeline", "progress", "sources", "versions", "corrections",
)  # fmt: skip
CELLS: Mapping[str, Field] = {
    "text": Field("text", "text"),
    "figure": Field("figure", "figure"),
    "claim": Field("claim", "claim"),
    "state": Field("state", "choice", CELL_STATES),
}
ROOT_PARTS = frozenset({"root", *BLOCK_TYPES})
