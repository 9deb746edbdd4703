"""Words of stored records that readers meet: directions, units, metrics, fixed reasons."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

TERMS: dict[str, Any] = {
    "none": _("no direction"),
    "increase": _("increase"),
    "decrease": _("decrease"),
    "reward": _("reward"),
    "success": _("success"),
    "recovery_all": _("recovery over all items"),
    "recovery_exposed": _("recovery over exposed items"),
    "share": _("share"),
    "share of items": _("share of items"),
    "budget spent": _("training budget spent"),
    "started": _("started"),
    "resumed": _("resumed"),
    "cancelled": _("cancelled"),
    "execution cancelled": _("execution cancelled"),
    "pair": _("pair"),
    "context": _("context"),
    "gated": _("gated"),
    "train": _("train"),
    "preflight": _("preflight"),
    "close": _("close"),
}


def term(value: Any) -> str:
    """The word in the reader's language; one that is not listed as it is stored, underscores as spaces."""
    text = str(value)
    return str(TERMS[text]) if text in TERMS else text.replace("_", " ")
