"""How each state looks: a word, an icon and a tone. Colour is never the only sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class StateView:
    """``tone`` is a class of ``parts.css``; ``icon`` a name of ``templatetags.icons``."""

    word: Any
    icon: str
    tone: str


_RUN = {
    "pending": StateView(_("pending"), "circle", "pending"),
    "running": StateView(_("running"), "clock", "running"),
    "paused": StateView(_("paused"), "pause", "warned"),
    "interrupted": StateView(_("interrupted"), "warn", "warned"),
    "refused": StateView(_("refused by its gate"), "barrier", "warned"),
    "stopped": StateView(_("stopped by a gate"), "barrier", "warned"),
    "partial_invalid": StateView(_("partial, invalid"), "warn", "failed"),
    "cancelled": StateView(_("cancelled"), "stop", "neutral"),
    "completed": StateView(_("completed"), "check", "done"),
    "closed": StateView(_("closed"), "check", "done"),
}
TABLES: dict[str, dict[str, StateView]] = {
    "plan": {
        "draft": StateView(_("draft"), "circle", "pending"),
        "frozen": StateView(_("frozen"), "lock", "verified"),
        "superseded": StateView(_("superseded"), "arrow", "superseded"),
    },
    "run": _RUN,
    "execution": _RUN,
    "job": {
        "queued": StateView(_("queued"), "circle", "pending"),
        "leased": StateView(_("running"), "clock", "running"),
        "succeeded": StateView(_("succeeded"), "check", "done"),
        "failed": StateView(_("failed"), "cross", "failed"),
        "errored": StateView(_("errored"), "warn", "failed"),
        "cancelled": StateView(_("cancelled"), "stop", "neutral"),
    },
    "tracked": {
        "scheduled": StateView(_("scheduled"), "circle", "pending"),
        "running": StateView(_("running"), "clock", "running"),
        "finished": StateView(_("finished"), "check", "done"),
        "failed": StateView(_("failed"), "cross", "failed"),
        "killed": StateView(_("killed"), "stop", "neutral"),
    },
    "import": {
        "queued": StateView(_("queued"), "circle", "pending"),
        "running": StateView(_("running"), "clock", "running"),
        "done": StateView(_("whole"), "check", "done"),
        "partial": StateView(_("partial"), "half", "warned"),
        "failed": StateView(_("failed"), "cross", "failed"),
    },
    "signal": {
        "signal": StateView(_("trains"), "check", "done"),
        "signal_cut": StateView(_("signal, every token cut"), "hatch", "warned"),
        "signal_skipped": StateView(_("signal, update skipped"), "minus", "warned"),
        "zero_all_right": StateView(_("zero variance, all right"), "minus", "neutral"),
        "zero_all_wrong": StateView(_("zero variance, all wrong"), "minus", "neutral"),
        "zero_equal": StateView(_("zero variance, all equal"), "minus", "neutral"),
        "ineligible": StateView(_("rejected"), "cross", "failed"),
    },
    "injection": {
        "realized": StateView(_("realized"), "dot", "warned"),
        "scheduled_but_unreached": StateView(_("scheduled, unreached"), "circle", "neutral"),
    },
    "observation": {
        "ok": StateView(_("ok"), "check", "done"),
        "error": StateView(_("error"), "warn", "failed"),
        "timeout": StateView(_("timeout"), "warn", "failed"),
    },
    "terminal": {
        "finish": StateView(_("finish"), "flag", "done"),
        "policy_error": StateView(_("policy error"), "cross", "failed"),
        "budget_exhausted": StateView(_("budget spent"), "stop", "warned"),
        "infrastructure_invalid": StateView(_("infrastructure-invalid"), "warn", "failed"),
    },
    "evidence": {
        "verified": StateView(_("verified"), "check", "verified"),
        "claimed": StateView(_("claimed"), "dashed", "claimed"),
        "drifted": StateView(_("drifted"), "notequal", "drifted"),
        "superseded": StateView(_("superseded"), "arrow", "superseded"),
        "stale": StateView(_("stale"), "hatch", "stale"),
        "pending": StateView(_("pending"), "circle", "pending"),
        "disputed": StateView(_("disputed"), "flag", "disputed"),
        "provisional": StateView(_("provisional"), "half", "provisional"),
        "exploratory": StateView(_("exploratory"), "dashed", "neutral"),
    },
}


def state_view(table: str, value: str) -> StateView:
    """How a state looks. A state that no table lists is shown by its own name, never hidden."""
    return TABLES.get(table, {}).get(value) or StateView(value, "circle", "neutral")
