"""Binds what an execution recorded: counts to receipts, settings to the plan, outcomes to its closed aggregate.

Every value is read by the same bindings that people use; what was not measured is bound as unavailable with the
reason, never as 0. Before the execution is closed everything that only closing gives is pending, and names what fills
it. A figure that a person has bound since is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from evidence.actions.figures import bind_figure
from evidence.actions.pace import give_way
from evidence.binding.closed import ClosedError, closed_execution, endpoint_value
from evidence.binding.values import read_exact
from evidence.ingest.names import OWN as FOLDER
from evidence.ingest.own import CLOSED
from evidence.ingest.tried import ARMS_FILE, PILOT_FILE, PILOT_TIMES_FILE, TIMES_FILE
from evidence.models import Figure, Source
from evidence.notes import own_words as words
from runs.actions.plans import plan_body
from runs.models import Actor, Execution, PlanVersion, Receipt, Run, Study
from workbench.contracts.canonical import parse_canonical

ANEW = "computed anew from the closed execution"
MOST_DIGITS, DIGITS = 12, 3
PART = 12  # figures after which others may write
LABELS: dict[str, tuple[str, words.Text]] = {  # short name -> (file, what it is)
    "plan": ("plan.json", words.text("The frozen plan", "冻结的方案")),
    "closure": ("closure.json", words.text("The closure manifest", "封存清单")),
    "summary": ("summary.json", words.text("The evaluation summary", "评估汇总")),
    "receipts": ("receipts.jsonl", words.text("Receipts of the execution", "执行过程的回执")),
    "pilot": (PILOT_FILE, words.text("The mechanism pilot", "机制试点")),
    "arms": (ARMS_FILE, words.text("Edit credit by arm", "各臂的编辑信用")),
    "pilot-times": (PILOT_TIMES_FILE, words.text("What the pilot took", "试点用时")),
    "times": (TIMES_FILE, words.text("What the trials took", "试验用时")),
}
Given = dict[str, Any]


def prefix_of(version: PlanVersion) -> str:
    """Short name of a plan in its study, with which its figures and claims begin; later versions carry a number."""
    short = version.plan.slug.removeprefix(f"{version.plan.study.slug}-")
    return short if version.number == 1 else f"{short}.{version.number}"


@dataclass
class Own:
    """A closed execution as pages tell of it. ``prefix``: how its figures and claims begin (``small``)."""

    execution: Execution
    by: Actor
    at: datetime
    bound: dict[str, str] = field(default_factory=dict)  # key without prefix -> state, of what was bound in this pass
    values: dict[str, str | None] = field(default_factory=dict)  # the same -> exact value, None where it has none

    @cached_property
    def version(self) -> PlanVersion:
        """Its frozen plan."""
        return self.execution.plan_version

    @cached_property
    def study(self) -> Study:
        """The study that it belongs to."""
        return self.version.plan.study

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The plan document."""
        found: dict[str, Any] = plan_body(self.version)["plan"]
        return found

    @cached_property
    def prefix(self) -> str:
        """``prefix_of`` its plan."""
        return prefix_of(self.version)

    @cached_property
    def is_closed(self) -> bool:
        """Whether it was closed when the page was begun; else the page tells of its ended pilot.

        Read anew: who closed it may hold the row as it was before.
        """
        return Execution.objects.filter(pk=self.execution.pk, state="closed").exists()

    @cached_property
    def known(self) -> dict[str, Figure]:
        """Figures of the study whose keys begin as this execution's do, by key."""
        rows = Figure.objects.filter(study=self.study, key__startswith=f"{self.prefix}.").select_related("current")
        return {row.key: row for row in rows}

    @cached_property
    def closed(self) -> Any:
        """Its stored documents. Raises ``ClosedError`` before it is closed."""
        return closed_execution(self.version)

    @cached_property
    def split(self) -> str:
        """The split that its page shows: that of the endpoints, else the plan's own beginning."""
        splits = [item["split"] for item in self.plan["evaluation"]["splits"]]
        named = [item["split"] for item in self.plan["endpoints"] if item["split"] in splits]
        return str((named or splits)[0])

    def where(self, condition: str) -> words.Text:
        """What a condition is called; nothing where the plan has no other and injects nothing."""
        alone = self.plan["evaluation"]["conditions"] == [condition] and not self.plan["failure"]["train_cycle"]
        return words.HELD_OUT if alone else words.CONDITIONS.get(condition, words.text("", ""))

    def what(self, endpoint: Given) -> words.Text:
        """What an endpoint measures: rewards in units of their own go by these."""
        if endpoint["metric"] == "reward" and endpoint["unit"] not in ("reward", ""):
            return words.text(f"mean {endpoint['unit']}", f"平均 {endpoint['unit']}")
        return words.METRICS.get(endpoint["metric"], words.text("the endpoint", "终点指标"))

    def outcome(self, name: str) -> words.Text:
        """What an outcome is called; the mean reward by its own unit where endpoints give it one."""
        means = [self.what(item) for item in self.plan["endpoints"] if item["metric"] == "reward"]
        own = name == "mean.reward" and means and means[0] != words.METRICS["reward"]
        return means[0] if own else words.OUTCOMES[name]

    def path(self, name: str) -> str:
        """Path of one of its documents among the sources."""
        return f"{FOLDER}/{self.version.plan.slug}/{self.version.number}/{name}"

    def key(self, name: str) -> str:
        """Full key of a figure or claim."""
        return f"{self.prefix}.{name}"

    def receipt(self, kind: str) -> Receipt | None:
        """The newest receipt of a kind in its stream."""
        return Receipt.objects.filter(stream=f"execution:{self.execution.uid}", kind=kind).order_by("-seq").first()

    def has(self, name: str) -> bool:
        """Whether one of its documents is among the sources."""
        return Source.objects.filter(study=self.study, path=self.path(name), current__isnull=False).exists()

    def bind(self, name: str, binding: Given, title: words.Text, *, kind: str, **given: Any) -> str:
        """Bind one figure and return its key; unavailable where the documents hold no case to count.

        What has a value is never made pending again.
        """
        key = self.key(name)
        known = self.known.get(key)
        old = None if known is None else known.current
        if known is not None and old is not None and (old.actor_id != self.by.pk or _waits(binding, known)):
            self.bound[name], self.values[name] = known.state, old.value
            return key
        filled = known is not None and known.state == Figure.PENDING
        columns: Given = {
            "kind": kind, "title_en": title["en"], "title_zh": title["zh"], "by": self.by, "at": self.at,
            "plan_version": self.version, "reason": self._filled() if filled else ANEW, **given,
        }  # fmt: skip
        for name_of in ("per", "scope"):
            said = columns.pop(name_of, None)
            if said is not None:
                column = "denominator" if name_of == "per" else "scope"
                columns |= {f"{column}_en": said["en"], f"{column}_zh": said["zh"]}
        try:
            row = bind_figure(self.study, key, binding, **columns)
        except ClosedError:
            columns |= {"style": "plain", "digits": 0}
            row = bind_figure(self.study, key, unavailable(words.NO_CASE), **columns)
        self.bound[name], self.values[name] = row.figure.state, row.value
        if len(self.bound) % PART == 0:
            give_way()
        return key

    def value(self, name: str) -> Fraction | None:
        """Exact value of a figure that was bound in this pass; None where it has none."""
        text = self.values[name]
        return None if text is None else read_exact(text)

    def _filled(self) -> str:
        return f"filled by the closed execution of {self.version.plan.slug} version {self.version.number}"


def _waits(binding: Given, known: Figure) -> bool:
    return bool(binding["type"] == "pending" and known.state != Figure.PENDING)


def unavailable(reason: words.Text) -> Given:
    """The binding of what has no value, and why."""
    return {"type": "unavailable", "reason_en": reason["en"], "reason_zh": reason["zh"]}


def awaited(what: words.Text = words.CLOSING) -> Given:
    """The binding of what closing the execution gives."""
    return {"type": "pending", "fills": {"words_en": what["en"], "words_zh": what["zh"]}}


def bind_all(own: Own) -> None:
    """Every figure of the execution, in the order in which they rest on each other; its trials apart."""
    _counts(own)
    _plan(own)
    _runs(own)
    for condition in own.plan["evaluation"]["conditions"]:
        for outcome in words.OUTCOMES if condition == "stress" else words.STANDARD_OUTCOMES:
            for column in ("parent", *(arm["key"] for arm in own.plan["arms"])):
                _cell(own, column, condition, outcome)
    for endpoint, result in endpoints(own):
        _endpoint(own, endpoint, result)


def _counts(own: Own) -> None:
    closed = own.receipt(CLOSED) if own.is_closed else None
    for name, title in (
        ("jobs", words.text("Jobs of the execution", "执行的作业")),
        ("items", words.text("Evaluation items", "评测条目")),
        ("captures", words.text("Captures", "capture")),
    ):
        binding = awaited()
        if closed is not None:
            binding = {"type": "receipt", "sha256": closed.sha256, "pointer": f"/body/counts/{name}"}
        per = words.text("all that the closure binds", "封存清单绑定的全部")
        own.bind(f"closure.{name}", binding, title, kind="environment", unit=name, per=per)
    preflight = own.receipt("preflight.passed") or own.receipt("preflight.refused")
    if preflight is not None:
        for name, member, title in (
            ("groups", "probe_groups", words.text("Groups of the preflight", "预检的组")),
            ("silent", "zero_variance_groups", words.text("Groups without variance", "没有方差的组")),
        ):
            binding = {"type": "receipt", "sha256": preflight.sha256, "pointer": f"/body/{member}"}
            own.bind(f"preflight.{name}", binding, title, kind="mechanism", unit="groups", per=_PROBE)
    gate = own.receipt("gate.met") or own.receipt("gate.refused")
    if gate is not None:
        for name, member, title in (
            ("cases", "cases", words.text("Cases that the gate counted", "门槛所计的情形")),
            ("minimum", "minimum", words.text("Registered minimum of cases", "登记的最少情形数")),
        ):
            binding = {"type": "receipt", "sha256": gate.sha256, "pointer": f"/body/{member}"}
            per = words.text("cases on which the clamp could act", "钳制可作用的情形")
            own.bind(f"gate.{name}", binding, title, kind="mechanism", unit="cases", per=per)


_PROBE = words.text("groups of the preflight", "预检的组")


def _plan(own: Own) -> None:
    place = next(at for at, item in enumerate(own.plan["evaluation"]["splits"]) if item["split"] == own.split)
    for name, pointer, unit, title in (
        ("batches", "budget/batches", "batches", words.text("Batches of each run", "每次运行的批")),
        ("groups", "rollout/groups_per_batch", "groups", words.text("Groups of each batch", "每批的组")),
        ("group_size", "rollout/group_size", "trajectories", words.text("Trajectories of each group", "每组的轨迹")),
        ("repeats", "evaluation/repeats", "repeats", words.text("Repeats of each item", "每个条目的重复")),
        ("tasks", f"evaluation/splits/{place}/tasks", "tasks", words.text("Held-out tasks", "留出任务")),
    ):
        binding = {"type": "pointer", "source": own.path("plan.json"), "pointer": f"/plan/{pointer}"}
        own.bind(f"plan.{name}", binding, title, kind="environment", unit=unit, per=_FROZEN)
    if own.plan["endpoints"]:
        binding = {"type": "pointer", "source": own.path("plan.json"), "pointer": "/plan/endpoints/0/interval"}
        title = words.text("Level of the intervals", "区间的水平")
        own.bind("plan.level", binding, title, kind="environment", style="percent", per=_FROZEN)


_FROZEN = words.text("as the frozen plan says", "按冻结的方案")


def _runs(own: Own) -> None:
    """Optimiser steps of each arm over its runs."""
    for arm in own.plan["arms"]:
        runs = Run.objects.filter(execution=own.execution, arm__key=arm["key"]).order_by("seed")
        steps: dict[str, str] = {}
        for number, run in enumerate(runs):
            binding = {"type": "pointer", "source": own.path(f"runs/{run.name}.json"), "pointer": "/steps"}
            if not own.is_closed:
                binding = awaited()
            title = words.text(f"Optimiser steps of a run of arm {arm['key']}", f"{arm['key']} 臂中某次运行的优化步")
            steps[f"r{number}"] = own.bind(
                f"run.{run.name}.steps", binding, title, kind="parameter_change", unit="steps"
            )
        if steps:
            title = words.text(f"Optimiser steps of arm {arm['key']}", f"{arm['key']} 臂的优化步")
            total: Given = {"type": "derivation", "expression": f"sum({', '.join(steps)})", "figures": steps}
            if not own.is_closed:
                total = awaited()
            per = words.text("runs of the arm", "该臂的运行")
            own.bind(f"arm.{arm['key']}.steps", total, title, kind="parameter_change", unit="steps", per=per)


def _cell(own: Own, column: str, condition: str, outcome: str) -> None:
    mean = outcome.startswith("mean.")
    binding = {
        "type": "cell_rate", "checkpoint": column, "condition": condition, "split": own.split, "outcome": outcome
    }  # fmt: skip
    style, digits = ("plain", DIGITS) if mean else ("ratio", 0)
    if not own.is_closed:
        binding, style = awaited(words.EVALUATION), "plain"
    said, where = own.outcome(outcome), own.where(condition)
    en = "parent" if column == "parent" else f"arm {column}"
    zh = words.PARENT["zh"] if column == "parent" else f"{column} 臂"
    title = words.text(f"{said['en']}, {where['en']}, {en}", f"{zh}，{where['zh']}，{said['zh']}")
    own.bind(
        f"cell.{condition}.{column}.{outcome}", binding, title, kind="effect", style=style, digits=digits,
        unit="reward" if mean else "", per=words.CELL_OF.get(outcome, words.ITEMS),
    )  # fmt: skip


def endpoints(own: Own) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every registered endpoint with each of its results; before closing, results without a contrast."""
    if not own.is_closed:
        for endpoint in own.plan["endpoints"]:
            arms = endpoint["compare"]["arms"]
            for found in [arms] if endpoint["compare"]["kind"] == "pair" else [[arm] for arm in arms]:
                yield endpoint, {"arms": list(found), "verdict": "pending", "contrast": None, **_UNDIRECTED}
        return
    for item in own.closed.aggregate["endpoints"]:
        for result in item["results"]:
            yield item["endpoint"], result


_UNDIRECTED = {"opposite_direction": False}


def endpoint_name(endpoint: dict[str, Any], result: dict[str, Any]) -> str:
    """Its id, with the arm where it covers several against the parent."""
    several = endpoint["compare"]["kind"] == "parent" and len(endpoint["compare"]["arms"]) > 1
    return f"{endpoint['id']}.{result['arms'][0]}" if several else str(endpoint["id"])


def compared(endpoint: Given, arms: Sequence[str]) -> words.Text:
    """What an endpoint's difference is of: the second arm minus the first, or an arm minus its parent."""
    if endpoint["compare"]["kind"] == "pair":
        return words.text(f"arm {arms[1]} minus arm {arms[0]}", f"{arms[1]} 臂减 {arms[0]} 臂")
    return words.text(f"arm {arms[0]} minus its parent", f"{arms[0]} 臂减其父检查点")


def digits_of(value: Any, digits: int = DIGITS) -> int:
    """Decimal places, ``digits`` at least, with which a value that is not 0 does not show as 0."""
    while digits < MOST_DIGITS and value and abs(value) * 10**digits < 1:
        digits += 1
    return digits


def _endpoint(own: Own, endpoint: dict[str, Any], result: dict[str, Any]) -> None:
    name, said, who = endpoint_name(endpoint, result), own.what(endpoint), compared(endpoint, result["arms"])
    for quantity, what in words.QUANTITIES.items():
        binding: dict[str, Any] = {"type": "endpoint", "endpoint": endpoint["id"], "quantity": quantity}
        binding["arms"] = list(result["arms"])
        value = None
        try:
            if own.is_closed:
                value = endpoint_value(own.closed, endpoint["id"], quantity, binding["arms"])
            else:
                fills = {name: binding[name] for name in ("endpoint", "quantity", "arms")}
                binding = {"type": "pending", "fills": {"plan": own.version.plan.slug, **fills}}
        except ClosedError:
            binding = unavailable(words.NOT_MEASURED)
        count = quantity in ("tasks", "seeds")
        own.bind(
            f"{name}.{quantity}", binding,
            words.text(f"{what['en']}: {who['en']}, {said['en']}", f"{what['zh']}：{who['zh']}，{said['zh']}"),
            kind="effect", digits=0 if count or value is None else digits_of(value),
            unit=quantity if count else (endpoint["unit"] if endpoint["metric"] == "reward" else ""), per=words.PAIRED,
            scope=own.where(endpoint["condition"]), endpoint=endpoint["id"],
        )  # fmt: skip


def recorded_days(execution: Execution) -> Iterator[tuple[str, datetime, dict[str, Any]]]:
    """(kind, time, body) of the receipts that mark an execution's course."""
    kinds = ("execution.started", "preflight.passed", "preflight.refused", "gate.met", "gate.refused", CLOSED)
    rows = Receipt.objects.filter(stream=f"execution:{execution.uid}", kind__in=kinds).order_by("seq")
    for row in rows:
        body = parse_canonical(bytes(row.bytes))
        yield row.kind, datetime.fromisoformat(body["at"]), body["body"]
