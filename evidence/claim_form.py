"""What a person typed into the forms of claims: kept field by field beside what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from evidence.actions.claims import LANGUAGES, PROSE, ClaimMoved, ClaimRefused, add_claim
from evidence.models import Claim, ClaimVersion, Excerpt, Figure
from evidence.presenters.troubles import told
from runs.errors import DomainError
from runs.models import Actor, PlanVersion, Study

OPTIONS_MOST = 400  # keys that a form offers; any other key may be typed
WORDS = tuple(f"{name}_{language}" for name in PROSE for language in LANGUAGES)
FIELDS = (*WORDS, "key", "kind", "plan_version", "endpoint", "reason", "status", "relation", "evidence", "base")
FIELDS += ("reach_en", "reach_zh")


@dataclass
class Typed:
    """Values by field, and what is wrong with each. ``errors`` of the empty field stand above the form.

    ``moved``: somebody else wrote a version since; ``base`` then names the one that stands, what was typed is kept.
    """

    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)
    moved: bool = False

    def get(self, name: str) -> str:
        """What was typed; empty for nothing."""
        return self.values.get(name, "")

    def refuse(self, name: str, message: str) -> None:
        """Note what is wrong with a field."""
        self.errors.setdefault(name, []).append(message)

    def refuse_all(self, error: DomainError) -> None:
        """Note every fault of a refusal beside its field."""
        if isinstance(error, ClaimRefused):
            for item in error.faults:
                got = f"“{item.got}”: " if item.got and item.got not in item.message else ""
                self.refuse(item.field, f"{got}{item.message}")
            return
        if isinstance(error, ClaimMoved):
            self._follow(error)
            return
        name, colon, rest = str(error).partition(": ")
        said = told(str(error))
        if said != str(error):  # the reader's language names the field in its own words
            rest = said.partition("：")[2]
        known = name in FIELDS and bool(colon)
        if name in ("excerpt", "figure"):
            name, known = "evidence", True
        self.refuse(name if known else "", rest if known else said)

    def _follow(self, error: ClaimMoved) -> None:
        """Say beside each field what it says by now; the next sending is of one who has seen it."""
        self.moved = True
        self.refuse("", told(str(error)))
        self.refuse("", _("What you typed is kept. Look at what changed; sending again writes over it."))
        for name, text in error.changed.items():
            if name in FIELDS:
                self.refuse(name, _("by now: “%s”") % text)
        self.values["base"] = str(error.number)

    @classmethod
    def of_version(cls, claim: Claim) -> Typed:
        """The words that a claim has now."""
        assert claim.current_id is not None
        version = ClaimVersion.objects.select_related("plan_version").get(pk=claim.current_id)
        values = {name: str(getattr(version, name)) for name in (*WORDS, "kind", "endpoint")}
        values["plan_version"] = str(version.plan_version.uid) if version.plan_version is not None else ""
        return cls({**values, "key": claim.key, "base": str(version.number)})


def typed_of(given: Mapping[str, str], key: str | None = None) -> Typed:
    """What a form sent, line ends as texts have them; ``key`` where it is not the form's to say."""
    values = {name: given.get(name, "").replace("\r\n", "\n") for name in FIELDS}
    return Typed({**values, **({"key": key} if key is not None else {})})


def plan_of(study: Study, uid: str) -> PlanVersion | None:
    """The frozen plan version of a study. None for no uid, and for one that the study has not."""
    try:
        wanted = UUID(uid)
    except ValueError:
        return None
    return PlanVersion.objects.select_related("plan__study").filter(plan__study=study, uid=wanted).first()


def save(study: Study, typed: Typed, *, by: Actor, at: datetime) -> ClaimVersion | None:
    """Write what was typed. None where it was refused: ``typed`` says why, field by field."""
    version = plan_of(study, typed.get("plan_version"))
    if typed.get("plan_version") and version is None:
        typed.refuse("plan_version", "got no frozen plan of this study, expected one of the list")
        return None
    base = typed.get("base")
    if base and not (base.isascii() and base.isdigit() and len(base) <= 9):
        typed.refuse("", f"base: got {base[:20]!r}, expected the number of the version that was read")
        return None
    try:
        return add_claim(
            study, typed.get("key").strip(), kind=typed.get("kind"), by=by, at=at, plan_version=version,
            endpoint=typed.get("endpoint").strip(), reason=typed.get("reason"),
            base=int(base) if base else None,
            **{name: typed.get(name) for name in WORDS},
        )  # fmt: skip
    except DomainError as error:
        typed.refuse_all(error)
        return None


def evidence_of_form(study: Study, given: Mapping[str, str]) -> dict[str, Any]:
    """{"excerpt": …} or {"figure": …} of ``evidence``, a key. A figure and an excerpt of one key: write ``figure:KEY``.

    Raises ``DomainError`` for a key that names nothing.
    """
    text = given.get("evidence", "").strip()
    kind, colon, rest = text.partition(":")
    key = rest if colon and kind in ("excerpt", "figure") else text
    if not colon or kind != "figure":
        excerpt = Excerpt.objects.select_related("version__source").filter(study=study, key=key).first()
        if excerpt is not None:
            return {"excerpt": excerpt}
    if not colon or kind != "excerpt":
        figure = Figure.objects.select_related("current").filter(study=study, key=key).first()
        if figure is not None:
            return {"figure": figure}
    raise DomainError(
        f"evidence: got {text[:80]!r}, expected the key of an excerpt or a figure of {study.slug}; take the excerpt on "
        "its source's page, bind the number on /figures/new/"
    )


def evidence_options(study: Study) -> list[tuple[str, str]]:
    """(value, what it is) of the newest excerpts and figures, for the form's list. Two queries."""
    excerpts = Excerpt.objects.filter(study=study).order_by("-pk").values_list("key", "text")[: OPTIONS_MOST // 2]
    figures = Figure.objects.filter(study=study, current__isnull=False).order_by("-pk")
    found = [(f"excerpt:{key}", text[:80]) for key, text in excerpts]
    return found + [
        (f"figure:{key}", title) for key, title in figures.values_list("key", "current__title_en")[: OPTIONS_MOST // 2]
    ]
