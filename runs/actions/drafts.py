"""Drafts under a revision: create once, save over the revision that was read, and say everything that is wrong.

A draft may be saved with problems, so that nothing typed is lost; freezing refuses it until they are gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from runs.actions.plans import MAX_TEXT, parse_plan_text, save_draft
from runs.errors import AlreadyFrozen, DomainError, StaleTransition
from runs.models import Actor, Plan, Study
from runs.statistics.verdicts import check_endpoint
from workbench.contracts.errors import PlanInvalid, Problem
from workbench.contracts.spec import check_pairs, complete_plan

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TAKEN = frozenset({"new"})  # names that are addresses of pages


class DraftExists(DomainError):
    """The study has a plan of this name."""


class StaleDraft(StaleTransition):
    """Another writer saved first; ``plan`` holds their text and revision, and nothing was changed."""

    def __init__(self, plan: Plan, revision: int):
        self.plan = plan
        super().__init__(
            f"plan {plan.slug}: got revision {revision}, expected {plan.draft_revision}, the newest; nothing was saved"
        )


@dataclass(frozen=True)
class Checked:
    """A draft's text as far as it can be read.

    ``document``: as written, None where the text is no plan object. ``complete``: with its defaults,
    None while a field is wrong. ``line``: of a fault of the text itself, from 1.
    """

    document: dict[str, Any] | None
    complete: dict[str, Any] | None
    problems: list[Problem] = field(default_factory=list)
    line: int | None = None


def check_name(name: str) -> list[Problem]:
    """Whether a plan may have this name: it stands in addresses."""
    if _SLUG.fullmatch(name) and name not in _TAKEN:
        return []
    return [Problem("name", repr(name)[:80], "letters, digits, dash or underscore, at most 64, and not the word new")]


def check_storable(text: str) -> list[Problem]:
    """Whether a text can be kept at all, right or wrong: its length, and characters that no database holds."""
    if len(text) > MAX_TEXT:
        return [Problem("$", f"{len(text)} characters", f"at most {MAX_TEXT}")]
    for position, character in enumerate(text):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            line = text.count("\n", 0, position) + 1
            return [Problem(f"line {line}", f"the character U+{ord(character):04X}", "text that can be stored")]
    return []


def check_draft(study: str, name: str, text: str) -> Checked:
    """Every problem that would keep this text from being frozen as plan ``name`` of ``study``.

    Types, ranges and unknown fields first; then relations between fields, the plan's place, every
    strict pair and every endpoint.
    """
    found = check_storable(text)
    if found:
        return Checked(None, None, found)
    try:
        document = parse_plan_text(text)
    except PlanInvalid as error:
        return Checked(None, None, error.problems, _line_of_fault(error))
    placed = [
        Problem(key, repr(document.get(key))[:80], f"{wanted}, {why}")
        for key, wanted, why in (
            ("study", study, "the study that the plan is saved in"),
            ("name", name, "the name that the plan is saved under"),
        )
        if isinstance(document.get(key), str) and document[key] != wanted
    ]
    try:
        complete = complete_plan(document)
    except PlanInvalid as error:
        return Checked(document, None, placed + error.problems)
    problems = list(placed)
    try:
        check_pairs(complete)
    except PlanInvalid as error:
        problems += error.problems
    arms = frozenset(arm["key"] for arm in complete["arms"])
    problems += [problem for endpoint in complete["endpoints"] for problem in check_endpoint(endpoint, arms)]
    return Checked(document, complete, problems)


def _line_of_fault(error: PlanInvalid) -> int | None:
    mark = getattr(error.__cause__, "problem_mark", None) or getattr(error.__cause__, "context_mark", None)
    if mark is not None:
        return int(mark.line) + 1
    named = re.fullmatch(r"line (\d+)", error.problems[0].field)
    return int(named.group(1)) if named else None


def create_draft(study: Study, name: str, text: str, *, by: Actor, at: datetime) -> Plan:
    """A new draft. Raises ``PlanInvalid`` for an unusable name or text, ``DraftExists`` for a name in use."""
    problems = check_name(name) + check_storable(text)
    if problems:
        raise PlanInvalid(problems)
    with transaction.atomic():
        if Plan.objects.filter(study=study, slug=name).exists():
            raise DraftExists(f"name: got {name!r}, expected one that no plan of study {study.slug} has")
        return save_draft(study, name, text, by=by, at=at)


def update_draft(plan: Plan, text: str, *, revision: int, by: Actor, at: datetime) -> Plan:
    """Save a draft over the revision that its writer read.

    A text that is stored already conflicts with nothing, whichever revision its writer read: nothing is changed.
    Raises ``PlanInvalid`` for a text that cannot be kept, ``StaleDraft`` where another writer saved another
    text first, ``AlreadyFrozen`` where the plan is no draft any more.
    """
    problems = check_storable(text)
    if problems:
        raise PlanInvalid(problems)
    changed = Plan.objects.filter(pk=plan.pk, state="draft", draft_revision=revision).update(
        draft_text=text, draft_revision=revision + 1
    )
    current = Plan.objects.select_related("study", "current_version").get(pk=plan.pk)
    if changed == 1:
        return current
    if current.state != "draft":
        raise AlreadyFrozen(
            f"plan {plan.slug}: it is {current.state}; its bytes never change. Save under another name."
        )
    if current.draft_text == text:
        return current
    raise StaleDraft(current, revision)
