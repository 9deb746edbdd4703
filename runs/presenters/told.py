"""What was refused, in the reader's language.

Refusals are English where they are made, stored and answered by the API and the commands. Pages read the values out of
them by the patterns of ``runs.presenters.refusals``; a message of no pattern is shown as it is.
"""

from __future__ import annotations

from django.utils.translation import gettext

from runs.presenters.catalogue.problems import in_words
from runs.presenters.patterns import is_translated, read
from runs.presenters.people import ROLE_WORDS
from runs.presenters.refusals import FIELDS, REFUSALS, THINGS
from runs.presenters.states import TABLES
from workbench.contracts.errors import PlanInvalid, Problem

_STATE_TABLES = ("plan", "run", "job", "tracked", "import")


def told(error: Exception | str) -> str:
    """A refusal in the reader's language: itself in English, and where no pattern reads it."""
    if isinstance(error, PlanInvalid):
        return gettext("; ").join(problem_told(problem) for problem in error.problems)
    message = str(error)
    return (read(REFUSALS, message, _value) or message) if is_translated() else message


def problem_told(problem: Problem) -> str:
    """One fault of a plan as a line."""
    if not is_translated():
        return str(problem)
    words = {"got": in_words(problem.got), "expected": in_words(problem.expected)}
    return f"{problem.field}: " + gettext("got %(got)s, expected %(expected)s") % words


def _state(value: str) -> str:
    views = (TABLES[table].get(value) for table in _STATE_TABLES)
    return next((str(view.word) for view in views if view is not None), value)


def _value(name: str, value: str) -> str:
    """One value of a refusal: a refusal of its own, a stored word, or what somebody wrote, as it is."""
    if name == "said":
        return told(value)
    if name in ("state", "was", "status"):
        return _state(value)
    if name == "role":
        return str(ROLE_WORDS.get(value, value))
    words = FIELDS if name == "field" else THINGS if name in ("table", "kind") else {}
    return gettext(words[value]) if value in words else value
