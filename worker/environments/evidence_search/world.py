"""A corpus: documents about entities, and the search over it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.contracts.canonical import digest
from workbench.contracts.seeds import derive_seed

from .lexicon import FAMILIES, HEADING_ONLY, ID_HIGH, ID_LOW, VALUES


@dataclass(frozen=True)
class Document:
    """One document: the value of one attribute of one entity, in one source family."""

    id: str
    family: str
    entity: str
    attribute: str
    value: str

    def heading(self) -> str:
        """What a heading-only hit shows. The text stands before the id: copying is easier that way."""
        return f"{self.entity} {self.attribute} [{self.id}]"

    def line(self) -> str:
        """The whole document."""
        return f"{self.entity} {self.attribute} {self.value} [{self.id}]"

    def fact(self) -> dict[str, str]:
        """What a record keeps of a document that an Observation showed; the value is not part of it."""
        return {"id": self.id, "family": self.family, "entity": self.entity, "attribute": self.attribute}

    def reference(self) -> dict[str, str]:
        """The hidden reference of a task that needs this document."""
        return {**self.fact(), "value": self.value}


class World:
    """An immutable corpus. ``documents`` is sorted by id."""

    def __init__(self, documents: Sequence[Document]):
        self.documents = tuple(sorted(documents, key=lambda item: item.id))
        self.by_id = {item.id: item for item in self.documents}
        self.by_fact = {(item.entity, item.attribute): item for item in self.documents}
        if len(self.by_id) != len(self.documents) or len(self.by_fact) != len(self.documents):
            raise ValueError("documents: got a repeated id or (entity, attribute), expected each once")

    @classmethod
    def build(cls, seed: str | int, entities: Sequence[str]) -> World:
        """Nine documents an entity (one an attribute), ids and values drawn from ``seed``."""
        rng = random.Random(int(derive_seed("evidence_search.world", str(seed), *entities)))
        slots = [
            (entity, family, attribute) for entity in entities for family in FAMILIES for attribute in VALUES[family]
        ]
        if len(slots) > ID_HIGH - ID_LOW:
            raise ValueError(f"entities: got {len(entities)}, expected at most {(ID_HIGH - ID_LOW) // 9}")
        ids = rng.sample(range(ID_LOW, ID_HIGH), len(slots))
        return cls(
            [
                Document(str(number), family, entity, attribute, rng.choice(VALUES[family][attribute]))
                for number, (entity, family, attribute) in zip(ids, slots, strict=True)
            ]
        )

    @cached_property
    def sha256(self) -> str:
        """Digest of every document."""
        return digest([item.reference() for item in self.documents])

    def search(self, source: str, query: str) -> list[Document]:
        """The two best documents of a family, *shown by id*, so that the best one is not always first.

        Score = query words that name the document's entity (weight 2) or attribute (weight 1); a
        document without any of them is no hit; ties go to the lower id.
        """
        words = set(query.split())
        scored = [
            (-(2 * (item.entity in words) + (item.attribute in words)), item.id, item)
            for item in self.documents
            if item.family == source and (item.entity in words or item.attribute in words)
        ]
        return sorted((item for _, _, item in sorted(scored)[:2]), key=lambda item: item.id)


def shows_value(document: Document, tool: str) -> bool:
    """True where a call of ``tool`` that returns ``document`` shows its value, not its heading only."""
    return tool == "open" or document.family not in HEADING_ONLY


def call_result(world: World, tool: str, arguments: dict[str, Any]) -> tuple[str, str, list[Document], list[Document]]:
    """(status, text, documents read, documents listed) of a call: a pure function of the corpus."""
    if tool == "open":
        document = world.by_id.get(arguments["id"])
        if document is None:
            return "error", f"no document {arguments['id']}", [], []
        return "ok", document.line(), [document], []
    hits = world.search(arguments["source"], arguments["query"])
    if not hits:
        return "ok", "no match", [], []
    read = [item for item in hits if shows_value(item, tool)]
    listed = [item for item in hits if not shows_value(item, tool)]
    text = "\n".join(item.line() if shows_value(item, tool) else item.heading() for item in hits)
    return "ok", text, read, listed
