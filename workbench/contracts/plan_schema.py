"""Fields of the plan document (schema ``workbench.plan/1``) and their strict validation.

A table of data: each field has a type, a range and a default. ``validate`` returns the complete
document and every problem found, each with its dotted path, the value and what was expected.
"""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass
from typing import Any

from .errors import Problem
from .failures import PROFILES

SCHEMA = "workbench.plan/1"
REQUIRED = object()

ADVANTAGES = ("grpo", "mean_centred", "leave_one_out")
AGGREGATIONS = ("trajectory_balanced", "token_mean", "turn_balanced", "sequence_sum", "fixed_length")
EDIT_CREDITS = {"edit_broadcast": "B", "edit_localised": "M", "edit_terminal": "E"}  # credit -> arm of the equations
CREDITS = ("vanilla", "fatal_suffix", "one_sided_clamp", *EDIT_CREDITS)
SPLITS = ("train", "validation", "test", "out_of_distribution", "anchor")
CONDITIONS = ("standard", "stress")
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ENDPOINT_METRICS = (
    "reward", "success", "finish", "policy_failure", "premature_finish_all", "budget_exhausted", "tool_depth",
    "repeat_any", "repeat_calls", "fatal", "continued_after_fatal_all", "exposed", "recovery_all", "pass_at_k",
    "pass_hat_k",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One scalar or free field. ``kind``: str, int, float, bool, dict, seed (decimal string).

    ``longest``: characters of a text, as many as the narrowest column that it is stored in holds.
    """

    kind: str
    default: Any = REQUIRED
    choices: tuple[str, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    longest: int = 4000


@dataclass(frozen=True)
class ListOf:
    """A list whose items follow ``item``."""

    item: Any
    default: Any = REQUIRED
    minimum: int = 0
    maximum: int = 1000


@dataclass(frozen=True)
class Optional:
    """An object or null."""

    item: dict[str, Any]


TEXT = {"en": Field("str"), "zh": Field("str", "")}
TITLE = {"en": Field("str", longest=300), "zh": Field("str", "", longest=300)}
_KEY = Field("str", longest=100)
ENDPOINT: dict[str, Any] = {
    "id": _KEY,
    "definition": Field("str"),
    "metric": Field("str", choices=ENDPOINT_METRICS),
    "direction": Field("str", choices=("increase", "decrease", "none")),
    "unit": Field("str"),
    "margin": Field("float", None, minimum=0, nullable=True),
    "equivalence": ListOf(Field("float"), None, 2, 2),
    "interval": Field("float", 0.95, minimum=0.5, maximum=0.999),
    "split": Field("str", choices=SPLITS),
    "condition": Field("str", choices=CONDITIONS),
    "compare": {"kind": Field("str", choices=("pair", "parent")), "arms": ListOf(_KEY, minimum=1, maximum=2)},
}
PROBE: dict[str, Any] = {
    "split": Field("str", "validation", choices=SPLITS),
    "tasks": Field("int", minimum=1, maximum=64),
    "repeats": Field("int", 4, minimum=2, maximum=32),
    "every": Field("int", minimum=1, maximum=100000),
    "decisions": Field("int", 2, minimum=1, maximum=16),
    "max_decisions": Field("int", None, minimum=1, maximum=256, nullable=True),
    "temperature": Field("float", 1.0, minimum=0.01, maximum=10),
}
TRIALS: dict[str, Any] = {
    "seed": Field("seed", "0"),
    "replays": Field("int", 0, minimum=0, maximum=16),
    "repeats": Field("int", 0, minimum=0, maximum=16),
    "pilot": Field("bool", False),
    "every_arm": Field("bool", False),
}
GATE: dict[str, Any] = {
    "rule": Field("str", choices=("clamp_actionable_cases",)),
    "counted_over": _KEY,
    "minimum": Field("int", minimum=1, maximum=10**6),
}
ARM: dict[str, Any] = {
    "key": _KEY,
    "title": TITLE,
    "role": Field("str", choices=("context", "pair", "gated", "main")),
    "overrides": Field("dict", {}),
    "seeds": ListOf(Field("seed"), None, 1, 100),
    "gate": Optional(GATE),
}
PLAN: dict[str, Any] = {
    "schema": Field("str", choices=(SCHEMA,)),
    "study": _KEY,
    "name": _KEY,
    "scale": Field("str", "custom", choices=("tiny", "small", "full", "custom")),
    "title": TITLE,
    "question": TEXT,
    "policy": {
        "model": Field("str"),
        "dtype": Field("str", "float32", choices=("float32", "bfloat16", "nf4")),
        "formatter": Field("str", "compact", choices=("compact", "chat")),
        "adaptation": {
            "kind": Field("str", "lora", choices=("lora", "full")),
            "rank": Field("int", 8, minimum=1, maximum=1024),
            "alpha": Field("int", 16, minimum=1, maximum=4096),
            "targets": ListOf(Field("str"), list(LORA_TARGETS), 1),
            "seed": Field("seed", "0"),
        },
    },
    "environment": {"id": Field("str"), "config": Field("dict", {})},
    "reward": {"id": Field("str"), "version": Field("str")},
    "rollout": {
        "group_size": Field("int", 4, minimum=2, maximum=32),
        "groups_per_batch": Field("int", 4, minimum=1, maximum=16),
        "max_decisions": Field("int", 6, minimum=1, maximum=256),
        "split": Field("str", "train", choices=SPLITS),
        "sampling": {
            "temperature": Field("float", 1.0, minimum=0.01, maximum=10),
            "top_p": Field("float", 1.0, minimum=0.01, maximum=1),
            "top_k": Field("int", 0, minimum=0, maximum=10**6),
            "max_new_tokens": Field("int", 64, minimum=1, maximum=65536),
        },
    },
    "failure": {
        "train_cycle": ListOf(Field("str", choices=tuple(PROFILES)), []),
        "stress_cycle": ListOf(Field("str", choices=tuple(PROFILES)), []),
    },
    "objective": {
        "advantage": Field("str", "grpo", choices=ADVANTAGES),
        "advantage_eps": Field("float", 1e-6, minimum=0, maximum=1),
        "aggregation": Field("str", "trajectory_balanced", choices=AGGREGATIONS),
        "fixed_length": Field("int", None, minimum=1, maximum=10**7, nullable=True),
        "clip_low": Field("float", 0.2, minimum=0, maximum=1),
        "clip_high": Field("float", 0.2, minimum=0, maximum=10),
        "credit": Field("str", "vanilla", choices=CREDITS),
        "edit_weight": Field("float", 1.0, minimum=0, maximum=1000),
        "edit_cap": Field("float", 1.0, minimum=1e-6, maximum=1000),
        "zero_variance": Field("str", "skip", choices=("skip", "train_if_credit")),
        "kl_beta": Field("float", 0.0, minimum=0, maximum=0),
    },
    "optimizer": {
        "name": Field("str", "adamw", choices=("adamw",)),
        "learning_rate": Field("float", minimum=0, maximum=1),
        "beta1": Field("float", 0.9, minimum=0, maximum=0.9999),
        "beta2": Field("float", 0.999, minimum=0, maximum=0.99999),
        "eps": Field("float", 1e-8, minimum=1e-12, maximum=1),
        "weight_decay": Field("float", 0.0, minimum=0, maximum=1),
        "grad_clip": Field("float", 1.0, minimum=0.001, maximum=1000),
        "epochs": Field("int", 2, minimum=1, maximum=16),
        "minibatches": Field("int", 1, minimum=1, maximum=64),
        "micro_batch": Field("int", 16, minimum=1, maximum=256),
        "length_buckets": Field("bool", True),
    },
    "budget": {
        "batches": Field("int", minimum=1, maximum=100000),
        "max_steps": Field("int", minimum=1, maximum=10**6),
        "max_attempts": Field("int", 3, minimum=1, maximum=100),
    },
    "runtime": {
        "threads": Field("int", 1, minimum=1, maximum=256),
        "shard_rows": Field("int", 32, minimum=1, maximum=32),
    },
    "seeds": ListOf(Field("seed"), minimum=1, maximum=100),
    "arms": ListOf(ARM, minimum=1, maximum=50),
    "strict_pairs": ListOf(
        {"arms": ListOf(_KEY, minimum=2, maximum=2), "treatment": ListOf(Field("str"), minimum=1)}, []
    ),
    "preflight": Optional(
        {
            "groups": Field("int", 8, minimum=1, maximum=64),
            "max_zero_variance_share": Field("float", 0.9, minimum=0, maximum=1),
        }
    ),
    "error_gate": {
        "max_invalid_share": Field("float", 0.2, minimum=0, maximum=1),
        "minimum_trajectories": Field("int", 16, minimum=1, maximum=10**6),
    },
    "evaluation": {
        "conditions": ListOf(Field("str", choices=CONDITIONS), ["standard", "stress"], 1, 2),
        "splits": ListOf(
            {"split": Field("str", choices=SPLITS), "tasks": Field("int", minimum=1, maximum=10**5)}, minimum=1
        ),
        "repeats": Field("int", 4, minimum=1, maximum=32),
        "temperature": Field("float", 1.0, minimum=0.01, maximum=10),
    },
    "endpoints": ListOf(ENDPOINT, []),
    "smallest_detectable_difference": Field("dict", None, nullable=True),
    "probe": Optional(PROBE),
    "trials": Optional(TRIALS),
    "retention": {"checkpoint_every": Field("int", 20, minimum=1, maximum=10**6)},
    "claims": {"reach": TEXT, "cannot_show": TEXT},
}  # fmt: skip

# Fields that came after plans had been frozen, with the value that a body without them means.
LATER: dict[str, Any] = {"objective.edit_weight": 1.0, "objective.edit_cap": 1.0, "trials": None}

_TYPES = {"str": str, "bool": bool, "dict": dict, "seed": str}


def _show(value: Any) -> str:
    return repr(value)[:80]


def _is_number(value: Any) -> bool:
    """Whether a number is finite and fits a float; a long integer literal need not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_seed(value: Any) -> bool:
    """Whether text is the one decimal form of a number below 2**64."""
    return re.fullmatch("0|[1-9][0-9]{0,19}", value) is not None and int(value) < 2**64


def _is_storable(text: str, longest: int) -> bool:
    """Whether text is short enough and without control characters other than tab and line break."""
    return len(text) <= longest and not any(ord(sign) < 32 and sign not in "\t\n" for sign in text)


def _scalar(field: Field, value: Any, path: str, problems: list[Problem]) -> Any:
    expected = field.kind
    if value is None and field.nullable:
        return None
    if field.kind in ("int", "float"):
        wanted = int if field.kind == "int" else (int, float)
        bounds = f"{field.kind} in [{field.minimum}, {field.maximum}]"
        if isinstance(value, bool) or not isinstance(value, wanted) or not _is_number(value):
            problems.append(Problem(path, _show(value), bounds))
            return value
        if (field.minimum is not None and value < field.minimum) or (
            field.maximum is not None and value > field.maximum
        ):
            problems.append(Problem(path, _show(value), bounds))
        return float(value) if field.kind == "float" else value
    if not isinstance(value, _TYPES[field.kind]):
        problems.append(Problem(path, _show(value), expected))
    elif field.kind == "str" and not _is_storable(str(value), field.longest):
        limit = f"at most {field.longest} characters, none of them a control character"
        problems.append(Problem(path, f"{len(str(value))} characters: {_show(value)}", limit))
    elif field.kind == "seed" and not _is_seed(value):
        problems.append(Problem(path, _show(value), "a decimal string below 2**64, without leading zeros"))
    elif field.choices is not None and value not in field.choices:
        problems.append(Problem(path, _show(value), "one of " + ", ".join(field.choices)))
    return value


def _list(spec: ListOf, value: Any, path: str, problems: list[Problem]) -> Any:
    if value is None and spec.default is None:
        return None
    if not isinstance(value, list):
        problems.append(Problem(path, _show(value), "a list"))
        return value
    if not spec.minimum <= len(value) <= spec.maximum:
        problems.append(Problem(path, f"{len(value)} items", f"{spec.minimum} to {spec.maximum} items"))
        return value
    return [_validate(spec.item, item, f"{path}[{i}]", problems) for i, item in enumerate(value)]


def _object(spec: dict[str, Any], value: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, dict):
        problems.append(Problem(path or "$", _show(value), "an object"))
        return value
    prefix = f"{path}." if path else ""
    for name in value:
        if name not in spec:
            problems.append(Problem(f"{prefix}{name}", _show(value[name]), "no such field; known: " + ", ".join(spec)))
    return {name: _member(item, name, value, f"{prefix}{name}", problems) for name, item in spec.items()}


def _member(item: Any, name: str, value: dict[str, Any], path: str, problems: list[Problem]) -> Any:
    if name in value:
        return _validate(item, value[name], path, problems)
    if isinstance(item, Optional):
        return None
    if isinstance(item, dict):
        return _object(item, {}, path, problems)
    if item.default is REQUIRED:
        problems.append(Problem(path, "nothing", "a value"))
        return None
    return copy.deepcopy(item.default)


def _validate(spec: Any, value: Any, path: str, problems: list[Problem]) -> Any:
    if isinstance(spec, Optional):
        return None if value is None else _object(spec.item, value, path, problems)
    if isinstance(spec, dict):
        return _object(spec, value, path, problems)
    if isinstance(spec, ListOf):
        return _list(spec, value, path, problems)
    return _scalar(spec, value, path, problems)


def validate_fields(document: Any) -> tuple[dict[str, Any], list[Problem]]:
    """The document with defaults filled in, and every problem of types, ranges and unknown fields."""
    problems: list[Problem] = []
    complete = _validate(PLAN, document, "", problems)
    return (complete if isinstance(complete, dict) else {}), problems
