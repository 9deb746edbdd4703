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
    "begun": _("begun"),
    "resumed": _("resumed"),
    "cancelled": _("cancelled"),
    "execution cancelled": _("execution cancelled"),
    "pair": _("pair"),
    "context": _("context"),
    "gated": _("gated"),
    "train": _("train"),
    "preflight": _("preflight"),
    "evaluate": _("evaluate"),
    "close": _("close"),
    # Parts of a reward
    "evidence": _("evidence"),
    "process": _("process"),
    "efficiency": _("efficiency"),
    "medical_correctness": _("medical correctness"),
    "safety": _("safety"),
    # Orders of lists
    "advantage": _("advantage"),
    "attempt": _("attempt"),
    "batches": _("batches"),
    "bytes": _("bytes"),
    "created": _("created"),
    "depth": _("depth"),
    "family": _("family"),
    "finished": _("ended"),
    "name": _("name"),
    "ordinal": _("number in its run"),
    "policy": _("policy"),
    "repeat": _("repeat"),
    "sigma": "σ",
    "steps": _("steps"),
    "tokens": _("tokens"),
    "trajectories": _("trajectories"),
    "updated": _("updated"),
    # Ways by which a change is asked for
    "page": _("page"),
    "api": "API",
    "command": _("command"),
    # Imports: what could not be read, and what its place counts
    "malformed": _("malformed"),
    "truncated": _("truncated"),
    "not_imported": _("left out on purpose"),
    "line": _("line"),
    "record": _("record"),
    "row": _("row"),
    "metrics": _("points"),
    "rollouts": _("rollouts"),
    "parameters": _("parameters"),
    "repeated": _("repeated"),
    # Who speaks in a foreign rollout
    "system": _("system"),
    "user": _("user"),
    "assistant": _("assistant"),
    "tool": _("tool"),
    "prompt": _("prompt"),
    "completion": _("completion"),
    # What one value of a metric is computed over, and over what it varies
    "optimizer step": _("optimizer step"),
    "optimizer batch": _("optimizer batch"),
    "collection shard": _("collection shard"),
    "group or shard": _("group or shard"),
    "evaluation cell": _("evaluation cell"),
    "two evaluation cells": _("two evaluation cells"),
    "probe set": _("probe set"),
    "vocabulary": _("vocabulary"),
    "token": _("token"),
    "rollout": _("rollout"),
    "time": _("time"),
    "unmapped": _("unmapped"),
    # Kinds of actors
    "person": _("person"),
}


def term(value: Any) -> str:
    """The word in the reader's language; one that is not listed as it is stored, underscores as spaces."""
    text = str(value)
    return str(TERMS[text]) if text in TERMS else text.replace("_", " ")
