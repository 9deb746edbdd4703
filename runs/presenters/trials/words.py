"""Words of trials that readers meet: statuses, reasons, kinds, causes, outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from workbench.contracts import trials as t

# Status of an intervention -> (word, what it means).
STATUS: dict[str, tuple[Any, Any]] = {
    t.AVAILABLE: (_("usable"), _("one fresh trial without the block, complete: D is known")),
    t.SELECTED: (_("chosen, not executed"), _("this arm reads which block was chosen and no verdict")),
    t.FORMAT_ERROR: (_("format error"), _("the trajectory ended in an action that does not parse")),
    t.NO_ELIGIBLE_BLOCK: (_("no eligible block"), _("no edit may be taken back")),
    t.NO_ORIGINAL_UTILITY: (_("no original utility"), _("the final tree has no complete verdict of its own")),
    t.TRIAL_INCOMPLETE: (_("trial incomplete"), _("the trial without the block is unknown, which is no failure")),
}
# Why a block may not be taken back.
REASON: dict[str, Any] = {
    t.TEST_PATHS_ONLY: _("touches tests only"),
    t.OVERWRITTEN: _("a later turn overwrote one of its paths"),
    t.NO_CONTENT: _("the content before it is not in the snapshots"),
    t.NO_CHANGE: _("taking it back changes nothing in the final tree"),
}
KIND: dict[str, Any] = {
    t.ORIGINAL: _("original"),
    t.INTERVENTION: _("without the block"),
    t.FACTUAL_REPLAY: _("factual replay"),
    t.INTERVENTION_REPEAT: _("repeat without the block"),
}
CAUSE: dict[str, Any] = {
    "assertion": _("assertion"),
    "import_error": _("import error"),
    "timeout": _("time limit"),
    "exit": _("process ended"),
}
# Outcome of the original, by its utility.
SUCCESS, PARTIAL, ZERO, NEGATIVE, UNKNOWN = "success", "partial", "zero", "negative", "unknown"
OUTCOME: dict[str, tuple[Any, Any]] = {
    SUCCESS: (_("success"), "U = 1"),
    PARTIAL: (_("partial success"), "0 < U < 1"),
    ZERO: (_("no success"), "U = 0"),
    NEGATIVE: (_("regression"), "U < 0"),
}
NOT_WHAT_D_IS = (
    _("No action value: it does not say what the turn was worth when it was taken."),
    _("No Shapley share: one block is taken back, in the presence of all the others."),
    _("No outcome of a natural continuation: later turns are not generated again, and may depend on the block."),
    _("No authorship: snapshots attribute what a background process wrote by time."),
    _("No certificate of harmlessness: taking a block back can bring earlier damage back."),
)


def outcome_of(utility: float | None) -> str:
    """Class of an original by its utility; ``UNKNOWN`` without one."""
    if utility is None:
        return UNKNOWN
    if utility == 1:
        return SUCCESS
    if utility > 0:
        return PARTIAL
    return ZERO if utility == 0 else NEGATIVE


def isolation(level: dict[str, Any]) -> tuple[Any, str]:
    """(word, what bounds it) of a trial's level of isolation; ("", "") where nothing was executed."""
    if not level:
        return "", ""
    word = _("unisolated") if level.get("unisolated") else _("isolated")
    facts = ", ".join(f"{name}: {value}" for name, value in sorted(level.items()) if name != "unisolated")
    return word, facts


def sentence(clauses: Sequence[str]) -> str:
    """One sentence of clauses, with the marks of the reader's language between them and at its end."""
    return gettext("; ").join(clauses) + gettext(".")
