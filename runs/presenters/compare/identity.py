"""Fingerprints of what a number rests on: grader, data, tasks, versions, protocol.

Two outcomes may be compared only where everything that judged and produced them is the same, apart
from the treatment. An identity that differs blocks the comparison by name; so does one that is not
known on one side, since nothing shows that it is equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.models import Group, Run
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, digest
from workbench.contracts.spec import flatten

UNKNOWN: Any = None
EQUAL, DIFFERS, UNSURE = "equal", "differs", "unknown"
RECORDED = ("reward", "environment", "task_set", "harness", "formatter", "tokenizer", "runtime")
_MAX_TEXT = 90


@dataclass(frozen=True)
class Identity:
    """One identity. ``part`` groups it; ``blocks`` says whether a difference forbids comparing outcomes."""

    key: str
    part: Any
    word: Any
    blocks: bool
    read: Any  # (body, arm configuration) -> value or None


def _binding(*path: str) -> Any:
    def read(body: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        found: Any = body["bindings"]
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    return read


def _config(*path: str) -> Any:
    def read(body: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        found: Any = config
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    return read


def _tasks(body: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Hash of the evaluated tasks, in order, by split: uid and content hash of each."""
    splits = body["bindings"]["task_set"]["splits"]
    chosen = {
        item["split"]: [[task["uid"], task["sha256"]] for task in splits.get(item["split"], [])[: item["tasks"]]]
        for item in body["plan"]["evaluation"]["splits"]
    }
    return digest(chosen)


def _train_tasks(body: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Hash of the tasks of the training split, in order."""
    tasks = body["bindings"]["task_set"]["splits"].get(config["rollout"]["split"], [])
    return digest([[task["uid"], task["sha256"]] for task in tasks])


def _protocol(body: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Conditions, repeats and temperature of the evaluation."""
    evaluation = body["plan"]["evaluation"]
    return f"{', '.join(evaluation['conditions'])} × {evaluation['repeats']}, T = {evaluation['temperature']:g}"


_GRADER, _DATA, _ENVIRONMENT, _PROTOCOL, _CODE, _POLICY = (
    _("grader"),
    _("data"),
    _("environment"),
    _("protocol"),
    _("code"),
    _("policy"),
)
IDENTITIES: tuple[Identity, ...] = (
    Identity("reward", _GRADER, _("reward"), True, _config("reward", "id")),
    Identity("reward_version", _GRADER, _("reward version"), True, _config("reward", "version")),
    Identity("reward_code", _GRADER, _("reward code"), True, _binding("reward", "code_sha256")),
    Identity("success", _GRADER, _("definition of success"), True, _binding("environment", "success_definition")),
    Identity("task_set", _DATA, _("task set"), True, _binding("task_set", "sha256")),
    Identity("tasks", _DATA, _("evaluated task ids"), True, _tasks),
    Identity("train_tasks", _DATA, _("training task ids"), False, _train_tasks),
    Identity("environment", _ENVIRONMENT, _("environment"), True, _config("environment", "id")),
    Identity("environment_version", _ENVIRONMENT, _("environment version"), True, _binding("environment", "version")),
    Identity("environment_code", _ENVIRONMENT, _("environment code"), True, _binding("environment", "code_sha256")),
    Identity("environment_config", _ENVIRONMENT, _("environment settings"), True, _config("environment", "config")),
    Identity("protocol", _PROTOCOL, _("conditions, repeats, temperature"), True, _protocol),
    Identity("stress", _PROTOCOL, _("failure schedule of STRESS"), True, _config("failure", "stress_cycle")),
    Identity("decisions", _PROTOCOL, _("decisions at most"), True, _config("rollout", "max_decisions")),
    Identity(
        "new_tokens", _PROTOCOL, _("tokens a decision at most"), True, _config("rollout", "sampling", "max_new_tokens")
    ),
    Identity("harness", _CODE, _("harness"), True, _binding("harness")),
    Identity("formatter", _CODE, _("formatter"), False, _binding("policy", "formatter")),
    Identity("tokenizer", _POLICY, _("tokenizer"), False, _binding("policy", "tokenizer_sha256")),
    Identity("base_model", _POLICY, _("base model"), False, _binding("policy", "base_model_sha256")),
    Identity("parent", _POLICY, _("parent adapter"), False, _binding("policy", "parent_adapter_sha256")),
    Identity("runtime", _CODE, _("runtime"), False, _binding("runtime")),
    Identity("lock", _CODE, _("dependency lock"), False, _binding("dependency_lock")),
)


@dataclass(frozen=True)
class Row:
    """One identity over the compared sides; ``state`` equal, differs or unknown."""

    key: str
    part: Any
    word: Any
    blocks: bool
    values: tuple[Any, ...]
    state: str

    @property
    def barred(self) -> bool:
        """Whether this row forbids comparing outcomes."""
        return self.blocks and self.state != EQUAL


def state_of(values: Sequence[Any]) -> str:
    """Equal, differs, or unknown where a side has no value. One that nobody binds is unknown."""
    if any(value is UNKNOWN for value in values):
        return UNSURE
    first = canonical_bytes(values[0])
    return EQUAL if all(canonical_bytes(value) == first for value in values[1:]) else DIFFERS


def side_values(run: Run) -> dict[str, Any] | None:
    """Identity -> value of a run's arm, from the frozen bytes; None without plan or arm."""
    if run.plan_version is None or run.arm is None:
        return None
    return arm_values(plan_body(run.plan_version), run.arm.key)


def arm_values(body: dict[str, Any], arm: str) -> dict[str, Any]:
    """Identity -> value of an arm."""
    config = layout.arm_of(body, arm)["config"]
    return {item.key: item.read(body, config) for item in IDENTITIES}


def fingerprint(sides: Sequence[Mapping[str, Any] | None]) -> list[Row]:
    """Every identity over the sides, those that block first within their part's order.

    An optional identity that no side binds is left out; a blocking one stays, as unknown.
    """
    rows = []
    for item in IDENTITIES:
        values = tuple(None if side is None else side.get(item.key) for side in sides)
        if all(value is None for value in values) and (not item.blocks or item.key == "success"):
            continue
        rows.append(Row(item.key, item.part, item.word, item.blocks, values, state_of(values)))
    return rows


def recorded_identities(groups: Any, by: str) -> dict[Any, dict[str, set[str]]]:
    """What the evaluation's captures name: side -> identity -> the values met. One query.

    ``by``: the column that tells the sides apart.
    """
    found: dict[Any, dict[str, set[str]]] = {}
    columns = [f"identities__{name}" for name in RECORDED]
    for row in groups.order_by().values(by, *columns).distinct():
        side = found.setdefault(row[by], {name: set() for name in RECORDED})
        for name in RECORDED:
            value = row[f"identities__{name}"]
            if value is not None:
                side[name].add(str(value))
    return found


@dataclass(frozen=True)
class Witness:
    """One identity as captures name it on every side; ``values`` sorted, several where a side is mixed."""

    name: str
    values: tuple[tuple[str, ...], ...]
    state: str

    @property
    def word(self) -> Any:
        """Its name in words."""
        return _WITNESSED[self.name]


def witnesses(sides: Sequence[dict[str, set[str]] | None]) -> list[Witness]:
    """Recorded identities side by side. Nothing recorded on any side is left out: it witnesses nothing."""
    found = []
    for name in RECORDED:
        values = tuple(tuple(sorted(side[name])) if side else () for side in sides)
        if not any(values):
            continue
        known = [value for value in values if value]
        same = all(value == known[0] and len(value) == 1 for value in known)
        state = DIFFERS if not same else EQUAL if len(known) == len(values) else UNSURE
        found.append(Witness(name, values, state))
    return found


_WITNESSED: dict[str, Any] = {
    "reward": _("reward code"),
    "environment": _("environment code"),
    "task_set": _("task set"),
    "harness": _("harness"),
    "formatter": _("formatter"),
    "tokenizer": _("tokenizer"),
    "runtime": _("runtime"),
}
BLOCKING_WITNESSES = ("reward", "environment", "task_set", "harness")


@dataclass(frozen=True)
class Caution:
    """Something that does not forbid the comparison and limits what it means."""

    word: Any


@dataclass(frozen=True)
class Comparability:
    """The verdict. ``blocks``: names of what forbids comparing outcomes; empty means that they may be compared."""

    rows: list[Row]
    witnesses: list[Witness]
    cautions: list[Caution]

    @property
    def blocks(self) -> list[Any]:
        """What differs or is unknown and must not, by name."""
        own = [row.word for row in self.rows if row.barred]
        seen = [
            _("%(name)s as captures name it") % {"name": witness.word}
            for witness in self.witnesses
            if witness.state == DIFFERS and witness.name in BLOCKING_WITNESSES
        ]
        return [*own, *seen]

    @property
    def comparable(self) -> bool:
        """Whether a difference of outcomes may be shown at all."""
        return not self.blocks

    @property
    def equal(self) -> int:
        """Identities that are equal on every side."""
        return sum(row.state == EQUAL for row in self.rows)

    @property
    def unequal(self) -> list[Row]:
        """Identities that differ or are unknown, those that block first."""
        return sorted((row for row in self.rows if row.state != EQUAL), key=lambda row: not row.barred)

    @property
    def equal_parts(self) -> list[tuple[Any, list[Row]]]:
        """The equal identities by part, in reading order."""
        found: dict[str, tuple[Any, list[Row]]] = {}
        for row in self.rows:
            if row.state == EQUAL:
                found.setdefault(str(row.part), (row.part, []))[1].append(row)
        return list(found.values())

    @property
    def equal_witnesses(self) -> list[Witness]:
        """What every stored item names alike."""
        return [witness for witness in self.witnesses if witness.state == EQUAL]

    def names(self) -> str:
        """The blocking identities in one line."""
        return gettext(", ").join(str(word) for word in self.blocks)


def evaluation_groups(runs: Iterable[Run]) -> Any:
    """Evaluation groups of runs."""
    return Group.objects.filter(run__in=list(runs), purpose="evaluate")


def configuration(run: Run) -> dict[str, Any]:
    """Leaves of a run's resolved configuration by dotted path, seed included; empty without an arm."""
    if run.plan_version is None or run.arm is None:
        return {}
    config = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]
    return {**flatten(config), "seed": run.seed}
