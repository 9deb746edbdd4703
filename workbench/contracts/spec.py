"""The plan: complete document, resolved arms, strict pairs, and the body whose bytes are frozen.

``freeze_body`` builds everything that a plan binds. Its canonical bytes are hashed once
(``plan_sha256``) and never serialised again; later code reads those bytes.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

from .canonical import canonical_bytes, digest
from .errors import CanonicalError, PlanInvalid, Problem
from .failures import schedule_document
from .plan_schema import EDIT_CREDITS, PLAN, validate_fields

BODY_SCHEMA = "workbench.plan-body/1"

# What an arm resolves to: everything that a run does, apart from its seed.
RUN_SECTIONS = (
    "policy",
    "environment",
    "reward",
    "rollout",
    "failure",
    "objective",
    "optimizer",
    "budget",
    "runtime",
    "error_gate",
    "retention",
)
# Sections that an arm may override. Model, environment, reward and runtime are bound once for a plan.
OVERRIDABLE = ("rollout", "failure", "objective", "optimizer", "budget")
_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


@dataclass(frozen=True)
class PairCheck:
    """Field-by-field comparison of two arms. ``undeclared`` fields refuse the freeze."""

    arms: tuple[str, str]
    treatment: tuple[str, ...]
    equal: tuple[tuple[str, Any], ...]
    different: tuple[tuple[str, Any, Any], ...]
    undeclared: tuple[str, ...]
    inert: tuple[str, ...]  # declared as treatment but equal in both arms


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested objects by dotted path; lists are leaves."""
    if isinstance(value, dict) and value:
        found: dict[str, Any] = {}
        for key, item in value.items():
            found.update(flatten(item, f"{prefix}.{key}" if prefix else key))
        return found
    return {prefix: value}


def _merge(base: Any, overrides: Any) -> Any:
    if isinstance(base, dict) and isinstance(overrides, dict):
        return {
            key: _merge(base.get(key), overrides[key]) if key in overrides else base[key] for key in base | overrides
        }
    return copy.deepcopy(overrides)


def complete_plan(document: Any) -> dict[str, Any]:
    """Validate a plan document and fill in its defaults. Raises ``PlanInvalid`` with every problem."""
    complete, problems = validate_fields(document)
    if not problems:
        problems = _cross_checks(complete)
    if not problems:
        try:
            canonical_bytes(complete)
        except CanonicalError as error:
            problems = [Problem("$", str(error)[:200], "values that have a canonical form")]
    if problems:
        raise PlanInvalid(problems)
    return complete


def resolve_arm(plan: dict[str, Any], arm: dict[str, Any]) -> dict[str, Any]:
    """The arm's complete configuration: the plan's sections with the arm's overrides."""
    return {name: _merge(plan[name], arm["overrides"].get(name, {})) for name in RUN_SECTIONS}


def arm_seeds(plan: dict[str, Any], arm: dict[str, Any]) -> list[str]:
    """Seeds of an arm: its own list or the plan's."""
    return list(arm["seeds"] if arm["seeds"] is not None else plan["seeds"])


def _cross_checks(plan: dict[str, Any]) -> list[Problem]:
    problems: list[Problem] = []
    keys = [arm["key"] for arm in plan["arms"]]
    for path, name in [
        ("study", plan["study"]),
        ("name", plan["name"]),
        *[(f"arms[{i}].key", k) for i, k in enumerate(keys)],
    ]:
        if not _KEY.fullmatch(name):
            problems.append(Problem(path, repr(name), "letters, digits, dot, dash or underscore, at most 64"))
    if len(set(keys)) != len(keys):
        problems.append(Problem("arms", repr(keys), "each key once"))
    for i, arm in enumerate(plan["arms"]):
        problems += _arm_checks(plan, arm, i)
    for i, pair in enumerate(plan["strict_pairs"]):
        for key in pair["arms"]:
            if key not in keys:
                problems.append(Problem(f"strict_pairs[{i}].arms", repr(key), "one of " + ", ".join(keys)))
    for i, endpoint in enumerate(plan["endpoints"]):
        for key in endpoint["compare"]["arms"]:
            if key not in keys:
                problems.append(Problem(f"endpoints[{i}].compare.arms", repr(key), "one of " + ", ".join(keys)))
    for path, names in [
        ("evaluation.conditions", plan["evaluation"]["conditions"]),
        ("evaluation.splits", [item["split"] for item in plan["evaluation"]["splits"]]),
    ]:
        if len(set(names)) != len(names):
            problems.append(Problem(path, repr(names), "each once"))
    if len({e["id"] for e in plan["endpoints"]}) != len(plan["endpoints"]):
        problems.append(Problem("endpoints", "a repeated id", "each id once"))
    if "stress" in plan["evaluation"]["conditions"] and not plan["failure"]["stress_cycle"]:
        problems.append(Problem("failure.stress_cycle", "[]", "at least one profile, since STRESS is evaluated"))
    problems += [*_probe_checks(plan), *_trials_checks(plan)]
    for seeds, path in [
        (plan["seeds"], "seeds"),
        *[(a["seeds"] or [], f"arms[{i}].seeds") for i, a in enumerate(plan["arms"])],
    ]:
        if len(set(seeds)) != len(seeds):
            problems.append(Problem(path, repr(seeds), "each seed once"))
    return problems


def _probe_checks(plan: dict[str, Any]) -> list[Problem]:
    """Faults of the probe section against the rest of the plan; none where nothing is probed."""
    probe, rollout, rows = plan["probe"], plan["rollout"], plan["runtime"]["shard_rows"]
    if probe is None:
        return []
    longer = probe["max_decisions"] is not None and probe["max_decisions"] > rollout["max_decisions"]
    checks = (
        (probe["repeats"] > rows, "repeats", "at most runtime.shard_rows"),
        (longer, "max_decisions", f"at most rollout.max_decisions ({rollout['max_decisions']}), or null for the same"),
    )
    return [Problem(f"probe.{name}", str(probe[name]), expected) for fails, name, expected in checks if fails]


def edit_arms(plan: dict[str, Any]) -> dict[str, str]:
    """Arms whose credit comes from edits: key -> B, M or E."""
    credits = {arm["key"]: resolve_arm(plan, arm)["objective"]["credit"] for arm in plan["arms"]}
    return {key: EDIT_CREDITS[credit] for key, credit in credits.items() if credit in EDIT_CREDITS}


def _trials_checks(plan: dict[str, Any]) -> list[Problem]:
    """Faults between the trials section and the arms: credit from edits needs trials, and trials need a use."""
    trials, pilot = plan["trials"], bool(plan["trials"] and plan["trials"]["pilot"])
    try:
        edits = edit_arms(plan)
    except (KeyError, TypeError, AttributeError):  # an override that _arm_checks names
        return []
    repeated = trials is not None and (trials["replays"] or trials["repeats"])
    use = "true, an arm with credit from edits, or every_arm: nothing would be tried otherwise"
    checks = (
        (bool(edits) and trials is None, "trials", "null", f"a section, since arm {next(iter(edits), '')} needs it"),
        (trials is not None and not (edits or pilot or trials["every_arm"]), "trials.pilot", "false", use),
        (pilot and plan["preflight"] is None, "preflight", "null", "a section, since trials.pilot tries its groups"),
        (repeated and not pilot, "trials.pilot", "false", "true: replays and repeats are made of preflight groups"),
    )
    return [Problem(field, got, expected) for fails, field, got, expected in checks if fails]


def _arm_checks(plan: dict[str, Any], arm: dict[str, Any], i: int) -> list[Problem]:
    path, problems = f"arms[{i}]", []
    for section, value in arm["overrides"].items():
        if section not in OVERRIDABLE or not isinstance(value, dict):
            problems.append(
                Problem(
                    f"{path}.overrides.{section}", repr(value)[:80], "an object under one of " + ", ".join(OVERRIDABLE)
                )
            )
    if problems:
        return problems
    resolved = resolve_arm(plan, arm)
    _, found = validate_fields({**plan, **resolved})
    problems += [Problem(f"{path}.overrides.{item.field}", item.got, item.expected) for item in found]
    if problems:
        return problems
    return _arm_relations(plan, arm, resolved, path)


def _arm_relations(plan: dict[str, Any], arm: dict[str, Any], resolved: dict[str, Any], path: str) -> list[Problem]:
    """Faults between fields of a resolved arm whose single fields are sound."""
    rollout, objective, gate = resolved["rollout"], resolved["objective"], arm["gate"]
    sampling, shard = rollout["sampling"], plan["runtime"]["shard_rows"]
    rows, repeats = rollout["group_size"] * rollout["groups_per_batch"], plan["evaluation"]["repeats"]
    ungated = [other["key"] for other in plan["arms"] if other["gate"] is None]
    other_stress = resolved["failure"]["stress_cycle"] != plan["failure"]["stress_cycle"]
    truncates = sampling["top_p"] != 1.0 or sampling["top_k"] != 0
    no_length = objective["aggregation"] == "fixed_length" and objective["fixed_length"] is None
    checks = (
        (
            other_stress,
            f"{path}.overrides.failure.stress_cycle",
            "a change",
            "the plan's: every checkpoint faces one schedule",
        ),
        (
            rollout["group_size"] > shard,
            f"{path}: rollout.group_size",
            rollout["group_size"],
            "at most runtime.shard_rows",
        ),
        (rows > 32, f"{path}: rollout", f"{rows} rows a batch", "group_size x groups_per_batch of at most 32"),
        (
            resolved["optimizer"]["minibatches"] > rollout["group_size"],
            f"{path}: optimizer.minibatches",
            resolved["optimizer"]["minibatches"],
            "at most rollout.group_size: a batch may have one group with signal alone",
        ),
        (repeats > shard, "evaluation.repeats", repeats, "at most runtime.shard_rows"),
        (no_length, f"{path}: objective.fixed_length", "null", "a length, since aggregation is fixed_length"),
        (
            truncates,
            f"{path}: rollout.sampling",
            "truncated sampling",
            "top_p 1 and top_k 0: truncation biases the ratio",
        ),
        (
            sampling["temperature"] != 1.0,
            f"{path}: rollout.sampling.temperature",
            sampling["temperature"],
            "1.0: the policy that is trained is the policy that samples",
        ),
        (
            gate is not None and gate["counted_over"] not in ungated,
            f"{path}.gate.counted_over",
            repr(gate and gate["counted_over"]),
            "another arm of the plan, without a gate of its own",
        ),
        (
            (arm["role"] == "gated") != (gate is not None),
            f"{path}.gate",
            repr(gate),
            "a gate exactly when the role is gated",
        ),
    )
    return [Problem(field, str(got), expected) for fails, field, got, expected in checks if fails]


def compare_arms(plan: dict[str, Any], first: str, second: str, treatment: list[str]) -> PairCheck:
    """Difference of two resolved arms, seeds included, field by field."""
    arms = {arm["key"]: arm for arm in plan["arms"]}
    left, right = (flatten({**resolve_arm(plan, arms[k]), "seeds": arm_seeds(plan, arms[k])}) for k in (first, second))
    equal, different = [], []
    for path in sorted(left.keys() | right.keys()):
        a, b = left.get(path), right.get(path)
        if canonical_bytes(a) == canonical_bytes(b):  # 0 and 0.0 have the same bytes, true and 1 have not
            equal.append((path, a))
        else:
            different.append((path, a, b))
    names = {path for path, _, _ in different}
    return PairCheck(
        arms=(first, second),
        treatment=tuple(treatment),
        equal=tuple(equal),
        different=tuple(different),
        undeclared=tuple(sorted(names - set(treatment))),
        inert=tuple(sorted(set(treatment) - names)),
    )


def check_pairs(plan: dict[str, Any]) -> list[PairCheck]:
    """Every strict pair of the plan, compared. Raises ``PlanInvalid`` if more than the treatment differs."""
    checks, problems = [], []
    for i, pair in enumerate(plan["strict_pairs"]):
        check = compare_arms(plan, pair["arms"][0], pair["arms"][1], pair["treatment"])
        checks.append(check)
        for path in check.undeclared:
            values = next((a, b) for name, a, b in check.different if name == path)
            problems.append(
                Problem(
                    f"strict_pairs[{i}]: {path}",
                    f"{values[0]!r} and {values[1]!r}",
                    "equal in both arms, or declared as treatment",
                )
            )
        for path in check.inert:
            problems.append(
                Problem(
                    f"strict_pairs[{i}].treatment: {path}",
                    "the same value in both arms",
                    "a difference between the arms",
                )
            )
    if problems:
        raise PlanInvalid(problems)
    return checks


def freeze_body(document: Any, bindings: dict[str, Any]) -> dict[str, Any]:
    """Everything that freezing binds: document, resolved arms, failure schedule, pairs, and bindings.

    ``bindings`` are the identities that the engine described (base model, tokenizer, parent adapter,
    environment and reward code, harness, runtime, task set) and the ordered task uids of each split.
    """
    plan = complete_plan(document)
    pairs = check_pairs(plan)
    _check_tasks(plan, bindings)
    if plan["trials"] is not None and not bindings.get("environment", {}).get("verifier"):
        raise PlanInvalid([Problem("trials", "a section", f"null: environment {plan['environment']['id']} keeps no"
                                   " artefacts that a verifier could try")])  # fmt: skip
    arms = []
    for position, arm in enumerate(plan["arms"]):
        resolved = resolve_arm(plan, arm)
        arms.append(
            {
                "key": arm["key"],
                "title": arm["title"],
                "role": arm["role"],
                "position": position,
                "gate": arm["gate"],
                "seeds": arm_seeds(plan, arm),
                "config": resolved,
                "config_sha256": digest(resolved),
            }
        )
    return {
        "schema": BODY_SCHEMA,
        "plan": plan,
        "arms": arms,
        "failure_schedule": schedule_document(plan["failure"]["train_cycle"], plan["failure"]["stress_cycle"]),
        "pairs": [
            {
                "arms": list(check.arms),
                "treatment": list(check.treatment),
                "equal": [[path, value] for path, value in check.equal],
                "different": [[path, a, b] for path, a, b in check.different],
            }
            for check in pairs
        ],
        "bindings": bindings,
    }


def _check_tasks(plan: dict[str, Any], bindings: dict[str, Any]) -> None:
    available = {split: len(tasks) for split, tasks in bindings["task_set"]["splits"].items()}
    wanted = [
        (f"evaluation.splits[{i}].tasks", s["split"], s["tasks"]) for i, s in enumerate(plan["evaluation"]["splits"])
    ]
    wanted.append(("rollout.split", plan["rollout"]["split"], 1))
    if plan["probe"] is not None:
        wanted.append(("probe.tasks", plan["probe"]["split"], plan["probe"]["tasks"]))
    for i, arm in enumerate(plan["arms"]):
        wanted.append((f"arms[{i}]: rollout.split", resolve_arm(plan, arm)["rollout"]["split"], 1))
    problems = [
        Problem(path, str(count), f"at most {available.get(split, 0)} tasks of split {split}")
        for path, split, count in wanted
        if count > available.get(split, 0)
    ]
    if problems:
        raise PlanInvalid(problems)


def field_paths() -> list[str]:
    """Dotted paths of all plan fields, for documentation and forms."""

    def walk(spec: Any, prefix: str) -> list[str]:
        if isinstance(spec, dict):
            return [path for name, item in spec.items() for path in walk(item, f"{prefix}.{name}" if prefix else name)]
        return [prefix]

    return walk(PLAN, "")
