"""Reads the data of a bundled reference study. What a file lacks or holds too much of is named with its place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml

from runs.errors import DomainError

FOLDER = Path(__file__).resolve().parent
FILES = ("study", "sources", "figures", "claims", "notes")
_BINDINGS = ("at", "expr", "pending", "unavailable")


@dataclass(frozen=True)
class Reference:
    """One bundled study. ``digest``: SHA-256 over its files in the order of ``FILES``."""

    slug: str
    digest: str
    study: dict[str, Any]
    sources: list[dict[str, Any]]
    words: dict[str, dict[str, str]]
    figures: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    notes: dict[str, Any]

    @property
    def cutoffs(self) -> dict[str, str]:
        """Key of an excerpt -> the day up to which its source knows anything; nothing where that is not recorded."""
        return {
            item["key"]: source["cutoff"]
            for source in self.sources
            if source.get("cutoff")
            for item in source.get("excerpts", ())
        }


def slugs() -> list[str]:
    """Slugs of the bundled reference studies."""
    return sorted(path.parent.name for path in FOLDER.glob("*/study.yaml"))


def _files(slug: str) -> dict[str, bytes]:
    if slug not in slugs():
        raise DomainError(f"study: got {slug[:80]!r}, expected one of {', '.join(slugs())}")
    return {name: (FOLDER / slug / f"{name}.yaml").read_bytes() for name in FILES}


def digest_of(slug: str) -> str:
    """SHA-256 over the files of a bundled reference study. Raises ``DomainError`` naming what exists."""
    return hashlib.sha256(b"".join(_files(slug).values())).hexdigest()


def load(slug: str) -> Reference:
    """The data of a bundled reference study. Raises ``DomainError`` naming what exists."""
    found: dict[str, Any] = {name: yaml.load(data, Loader=_LOADER) for name, data in _files(slug).items()}
    figures = found.pop("figures")
    return Reference(slug=slug, digest=digest_of(slug), words=figures["words"], figures=figures["figures"], **found)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def binding_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The binding that an entry of ``figures`` writes in short. Raises ``DomainError`` for none or several."""
    given = [name for name in _BINDINGS if name in entry]
    if len(given) != 1:
        raise DomainError(f"figure: got {given or 'nothing'} in {entry.get('key')}, expected one of {_BINDINGS}")
    value = entry[given[0]]
    if given[0] == "at":
        excerpt, number, *occurrence = value
        found = {"type": "excerpt", "excerpt": excerpt, "number": number}
        return {**found, "occurrence": occurrence[0]} if occurrence else found
    if given[0] == "expr":
        return {"type": "derivation", "expression": value, "figures": dict(entry["of"])}
    if given[0] == "pending":
        return {"type": "pending", "fills": {"words_en": value["en"], "words_zh": value["zh"]}}
    return {"type": "unavailable", "reason_en": value["en"], "reason_zh": value["zh"]}


def day(text: str | None) -> date | None:
    """A day of the data."""
    return None if text is None else date.fromisoformat(text)


def moment(text: str | None) -> datetime | None:
    """A time of the data, with its zone."""
    return None if text is None else datetime.fromisoformat(text)
