"""A study with held sources of each kind, and one source of which only the hash is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.sources import add_source
from evidence.models import Excerpt, FigureVersion, SourceVersion
from runs.actions.actors import person_actor
from runs.actions.studies import create_study
from runs.models import Actor, Study, User

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOTES = "# Pilot\n\nOf 244 usable rows 92 were nonzero (37.7 %).\nThe run took 17 hours on six hosts; 44 were lost.\n"
TABLE = "arm,n,of\nvanilla,8,27\nmasked,27,27\n"
DATA = '{"counts": {"usable": 244, "nonzero": 92}, "rate": 0.10, "name": "pilot", "list": [1, 2.50]}'


@dataclass
class Desk:
    """The study with its sources by path, and who binds."""

    study: Study
    by: Actor
    user: User
    sources: dict[str, SourceVersion]

    def quote(self, key: str, exact: str, path: str = "pilot.md", **given: Any) -> Excerpt:
        """An excerpt that quotes a held source."""
        selector = {"exact": exact, **given}
        return add_excerpt(self.study, self.sources[path], key, "quote", selector, by=self.by, at=AT)

    def transcribe(self, key: str, text: str, path: str = "claimed.pdf") -> Excerpt:
        """An excerpt of the source whose bytes are not held."""
        return add_excerpt(self.study, self.sources[path], key, "quote", {}, by=self.by, at=AT, text=text)

    def bind(self, key: str, binding: dict[str, Any], **given: Any) -> FigureVersion:
        """A mechanism figure, unless ``given`` says otherwise."""
        columns: dict[str, Any] = {"title_en": key, "kind": "mechanism", "by": self.by, "at": AT, **given}
        return bind_figure(self.study, key, binding, **columns)

    def number(self, key: str, number: str, excerpt: str = "counts", **given: Any) -> FigureVersion:
        """A figure bound to a number of an excerpt."""
        return self.bind(key, {"type": "excerpt", "excerpt": excerpt, "number": number}, **given)

    def derive(self, key: str, expression: str, figures: dict[str, str], **given: Any) -> FigureVersion:
        """A derived figure."""
        return self.bind(key, {"type": "derivation", "expression": expression, "figures": figures}, **given)


def make_desk() -> Desk:
    """The study and its four sources."""
    user = User.objects.create_user("ada", password="correct horse battery")
    by = person_actor(user)
    study = create_study("pilot", title={"en": "Pilot"}, summary={}, by=user, at=AT)
    sources = {}
    for path, data in (("pilot.md", NOTES), ("table.csv", TABLE), ("data.json", DATA)):
        sources[path] = add_source(study, path, data.encode(), origin="upload", by=by, at=AT)
    sources["claimed.pdf"] = add_source(
        study, "claimed.pdf", None, origin="imported", by=by, at=AT, sha256="ab" * 32, reference="R1"
    )
    return Desk(study, by, user, sources)


def bind_share(desk: Desk) -> None:
    """pilot.usable 244, pilot.nonzero 92 from one excerpt, and pilot.share = nonzero / usable."""
    desk.quote("counts", "Of 244 usable rows 92 were nonzero (37.7 %)")
    desk.number("pilot.usable", "244", unit="rows")
    desk.number("pilot.nonzero", "92", unit="rows")
    operands = {"nonzero": "pilot.nonzero", "usable": "pilot.usable"}
    desk.derive("pilot.share", "nonzero / usable", operands, style="percent", digits=1)
