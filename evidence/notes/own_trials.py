"""Binds what the trials of an execution showed: the mechanism pilot, each arm's terms, and what both took.

Three states that are never mixed: whether there is a signal (``mechanism``), whether parameters changed
(``parameter_change``), whether an effect was measured (``effect``, bound by ``own_figures`` to endpoints alone). Rates
are derived from bound counts, so that each shows its numerator and denominator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evidence.actions.sources import read_version
from evidence.ingest.tried import ARMS_FILE, PILOT_FILE, PILOT_TIMES_FILE, TIMES_FILE, asks_pilot
from evidence.models import Source
from evidence.notes import own_trial_words as words
from evidence.notes.own_figures import Own, awaited, digits_of, unavailable
from runs.actions.plans import plan_body
from workbench.contracts import layout
from workbench.contracts.records import TRAIN
from workbench.contracts.trials import SELECT

PILOT = "pilot"
Value = int | float | None


class Line(NamedTuple):
    """One count or median of a scope. ``place``: in the scope's document. ``d``: made of differences."""

    name: str
    place: str
    unit: str
    d: bool = True
    style: str = "plain"


class Share(NamedTuple):
    """``n`` of ``of``, both names of bound counts."""

    name: str
    n: str
    of: str
    d: bool = True
    style: str = "ratio"


PAIRS, RUNS, TIMES = "trajectories", "updates", "trials"
FUNNEL = (
    Line("planned", "planned", PAIRS, d=False),
    Line("format_error", "excluded/format_error", PAIRS, d=False),
    Line("no_eligible_block", "excluded/no_eligible_block", PAIRS, d=False),
    Line("no_original_utility", "excluded/no_original_utility", PAIRS, d=False),
    Line("trial_incomplete", "excluded/trial_incomplete", PAIRS),
    Line("never", "excluded/never", PAIRS, d=False),
    Line("chosen_only", "chosen_only", PAIRS, d=False),
    Line("usable", "usable", PAIRS),
    Line("zero", "signs/zero", PAIRS),
    Line("positive", "signs/positive", PAIRS),
    Line("negative", "signs/negative", PAIRS),
    Line("nonzero", "signs/nonzero", PAIRS),
)
ORIGINALS = (
    Line("failed.known", "failed/known", PAIRS),
    Line("failed.usable", "failed/usable", PAIRS),
    Line("failed.nonzero", "failed/nonzero", PAIRS),
    Line("failed.positive", "failed/positive", PAIRS),
    Line("failed.negative", "failed/negative", PAIRS),
    Line("succeeded.usable", "succeeded/usable", PAIRS),
    Line("succeeded.nonzero", "succeeded/nonzero", PAIRS),
)
SPLIT = (
    Line("positive.tests", "positive_of_failed/fail_to_pass", PAIRS),
    Line("positive.regression", "positive_of_failed/regression_only", PAIRS),
    Line("positive.tasks", "positive_of_failed/tasks", "tasks"),
)
GEOMETRY = (
    Line("chosen", "geometry/chosen", PAIRS, d=False),
    Line("ratio", "geometry/ratio/median", "", d=False, style="percent"),
    Line("touched", "geometry/touched/median", "", d=False, style="percent"),
    Line("empty", "geometry/empty/n", PAIRS, d=False),
    Line("elsewhere", "geometry/elsewhere/n", PAIRS),
)
COMPUTED = (
    Line("capped", "geometry/capped/n", PAIRS),
    Line("shrinkage", "geometry/shrinkage/median", ""),
)
REPEATED = (
    Line("replays.agree", "replays/n", TIMES),
    Line("replays", "replays/of", TIMES),
    Line("repeats.agree", "repeats/n", TIMES),
    Line("repeats", "repeats/of", TIMES),
    Line("missing", "missing/n", PAIRS),
    Line("asked", "missing/of", PAIRS),
    Line("missing.failed", "missing_failed/n", PAIRS),
    Line("asked.failed", "missing_failed/of", PAIRS),
)
TERMS = (
    Line("applied", "terms/applied", PAIRS, d=False),
    Line("moved", "terms/nonzero", PAIRS, d=False),
    Line("capped", "terms/capped/n", PAIRS, d=False),
    Line("shrinkage", "terms/shrinkage/median", ""),
    Line("masses", "terms/masses/n", PAIRS),
)
CHANGES = (
    Line("changed", "updates/changed/n", RUNS, d=False),
    Line("updates", "updates/changed/of", RUNS, d=False),
    Line("edit_only", "updates/edit_only_groups", "groups", d=False),
)
TOOK = (
    Line("tokens", "tokens", "tokens", d=False),
    Line("executed", "executed", TIMES),
    Line("complete", "complete", TIMES),
    Line("unisolated", "unisolated", TIMES),
    Line("service.mean", "service/mean", "s"),
    Line("service.p95", "service/p95", "s"),
    Line("queue.mean", "queue/mean", "s"),
    Line("wall", "wall", "s", d=False),
)
SIGNAL = (
    Share("nonzero.rate", "nonzero", "usable"),
    Share("nonzero.share", "nonzero", "usable", style="percent"),
)
SHARES = (
    Share("usable.share", "usable", "planned", style="percent"),
    Share("failed.rate", "failed.nonzero", "failed.usable"),
    Share("succeeded.rate", "succeeded.nonzero", "succeeded.usable"),
    Share("capped.rate", "capped", "nonzero"),
    Share("empty.rate", "empty", "chosen", d=False),
    Share("elsewhere.rate", "elsewhere", "nonzero"),
    Share("replays.rate", "replays.agree", "replays"),
    Share("repeats.rate", "repeats.agree", "repeats"),
    Share("missing.rate", "missing", "asked"),
    Share("missing.failed.rate", "missing.failed", "asked.failed"),
)
OF_ARM = (
    Share("capped.rate", "capped", "moved", d=False),
    Share("masses.rate", "masses", "applied"),
    Share("changed.rate", "changed", "updates", d=False),
)
POWER = (
    ("detectable", "value", "plain", ""),
    ("detectable.seeds", "seeds_per_arm", "plain", "seeds"),
    ("detectable.sd", "sd_between_seeds", "plain", ""),
    ("detectable.power", "power", "percent", ""),
)


def has_trials(own: Own) -> bool:
    """Whether the plan tries anything."""
    return has_pilot(own) or bool(arms_tried(own))


def has_pilot(own: Own) -> bool:
    """Whether the plan has a mechanism pilot."""
    return asks_pilot(plan_body(own.version))


def last_document(own: Own) -> str:
    """The file of trials that must be among the sources before figures are bound."""
    return ARMS_FILE if own.is_closed else PILOT_FILE


def arms_tried(own: Own) -> list[str]:
    """Arms whose training groups are tried, in the plan's order."""
    body = plan_body(own.version)
    return [arm["key"] for arm in own.plan["arms"] if layout.trial_settings(body, TRAIN, arm["key"]) is not None]


def reads_d(own: Own, arm: str) -> bool:
    """Whether an arm's trials are executed; the terminal arm chooses a block and reads no verdict."""
    settings = layout.trial_settings(plan_body(own.version), TRAIN, arm)
    return settings is not None and settings["mode"] != SELECT


def backends(own: Own) -> list[str]:
    """Names of the sandbox back ends that executed trials of the pilot, as its document has them."""
    body = document_of_trials(own, PILOT_TIMES_FILE) or {}
    return [name for name in body.get("pilot", {}).get("backends", {}) if name]


def bind_trials(own: Own) -> None:
    """Every figure of the trials, counts before what is derived from them; nothing for a plan that tries nothing."""
    if not has_trials(own):
        return
    _power(own)
    if has_pilot(own):
        scope = _Scope(own, PILOT, words.PILOT, PILOT_FILE, "pilot", True)
        scope.bind((*FUNNEL, *ORIGINALS, *SPLIT, *GEOMETRY, *COMPUTED, *REPEATED), "mechanism")
        scope.derive((*SIGNAL, *SHARES))
        times = _Scope(own, PILOT, words.PILOT, PILOT_TIMES_FILE, "pilot", True)
        times.bind([line for line in TOOK if line.name != "wall"], "cost")
        times.bind([Line(f"backend.{name}", f"backends/{name}", TIMES) for name in backends(own)], "cost")
    for arm in arms_tried(own):
        where = words.text(f"arm {arm}", f"{arm} 臂")
        scope = _Scope(own, f"arm.{arm}", where, ARMS_FILE, f"arms/{arm}", reads_d(own, arm))
        scope.bind((*FUNNEL, *(line for line in GEOMETRY if line.name == "ratio"), *TERMS), "mechanism")
        scope.derive(SIGNAL)
        _Scope(own, f"arm.{arm}", where, TIMES_FILE, f"scopes/{arm}", reads_d(own, arm)).bind(TOOK, "cost")
    for arm in (item["key"] for item in own.plan["arms"]):
        where = words.text(f"arm {arm}", f"{arm} 臂")
        scope = _Scope(own, f"arm.{arm}", where, ARMS_FILE, f"arms/{arm}", reads_d(own, arm))
        scope.bind(CHANGES, "parameter_change")
        tried = [item for item in OF_ARM if item.name == "changed.rate" or arm in arms_tried(own)]
        scope.derive(tried)


def _power(own: Own) -> None:
    """The smallest difference that the plan's seeds can show, as it is frozen."""
    stated = own.plan.get("smallest_detectable_difference") or {}
    for name, place, style, unit in POWER:
        value = stated.get(place)
        binding = unavailable(words.NO_POWER)
        if value is not None:
            pointer = f"/plan/smallest_detectable_difference/{place}"
            binding = {"type": "pointer", "source": own.path("plan.json"), "pointer": pointer}
        own.bind(
            f"plan.{name}", binding, words.POWER[name], kind="environment", style=style if binding["type"] == "pointer"
            else "plain", digits=digits_of(value) if isinstance(value, float) and style == "plain" else 0, unit=unit,
            per=words.FROZEN,
        )  # fmt: skip


class _Scope:
    """The pilot or an arm while its figures are bound. ``d``: whether differences are measured in it."""

    def __init__(self, own: Own, key: str, where: words.Text, file: str, place: str, d: bool):
        self.own, self.key, self.where, self.file, self.place, self.d = own, key, where, file, place, d
        self.body = document_of_trials(own, file)

    def _value(self, place: str) -> Value:
        found: Any = self.body
        for part in f"{self.place}/{place}".split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, int | float) else None

    def _kept(self, lines: Sequence[Any]) -> Iterator[Any]:
        return (line for line in lines if self.d or not line.d)

    def bind(self, lines: Sequence[Line], kind: str) -> None:
        """Counts, medians and seconds, each at its place of the scope's document."""
        for line in self._kept(lines):
            value = self._value(line.place)
            binding, style, digits = self._binding(line, value), "plain", 0
            if binding["type"] == "pointer":
                style = line.style
                if isinstance(value, float):
                    digits = digits_of(value * 100, 1) if style == "percent" else digits_of(value)
            self.own.bind(
                f"{self.key}.{line.name}", binding, self._title(line.name), kind=kind, style=style, digits=digits,
                unit=line.unit, per=words.PER.get(line.name, words.ALL_PLANNED),
            )  # fmt: skip

    def _binding(self, line: Line, value: Value) -> dict[str, Any]:
        if self.body is None:
            return awaited()
        if value is None:
            return unavailable(words.NOTHING)
        pointer = f"/{self.place}/{line.place}"
        return {"type": "pointer", "source": self.own.path(self.file), "pointer": pointer}

    def _title(self, name: str) -> words.Text:
        what = words.LINES.get(name, words.BACKEND)
        return words.text(f"{what['en']}, {self.where['en']}", f"{self.where['zh']}，{what['zh']}")

    def derive(self, shares: Sequence[Share]) -> None:
        """Rates of bound counts; unavailable where there is nothing to count."""
        for share in self._kept(shares):
            n, of = (self.own.key(f"{self.key}.{name}") for name in (share.n, share.of))
            values = [self.own.value(f"{self.key}.{name}") for name in (share.n, share.of)]
            binding: dict[str, Any] = {
                "type": "derivation",
                "expression": "n / whole",
                "figures": {"n": n, "whole": of},
            }
            style, digits = share.style, 0
            if self.body is None:
                binding, style = awaited(), "plain"
            elif None in values or not values[1]:
                binding, style = unavailable(words.NOTHING), "plain"
            elif style == "percent":
                digits = digits_of(float(values[0] or 0) / float(values[1]) * 100, 1)
            kind = "parameter_change" if share.name == "changed.rate" else "mechanism"
            self.own.bind(
                f"{self.key}.{share.name}", binding, self._title(share.name), kind=kind, style=style, digits=digits,
                per=words.PER.get(share.name, words.ALL_PLANNED),
            )  # fmt: skip


def document_of_trials(own: Own, file: str) -> dict[str, Any] | None:
    """One of its documents as it is held among the sources; None before there is one."""
    source = Source.objects.filter(study=own.study, path=own.path(file)).select_related("current").first()
    if source is None or source.current is None:
        return None
    found: dict[str, Any] = json.loads(read_version(source.current))
    return found
