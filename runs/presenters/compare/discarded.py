"""What was requested and not trained, with a name for every slot: requested = accounted, row by row.

Three accounts: training slots, evaluation items, jobs. Each states its total from the plan (or from all
jobs), then its parts from stored rows; the parts must add up to the total, and the page says whether they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.models import EvaluationItem, Group, Job, PlanVersion, Receipt, Run, Trajectory, TrajectoryCredit
from runs.presenters.evaluation import planned_items
from runs.templatetags.ui import format_number
from workbench.contracts import layout

ENDED = ("completed", "refused", "stopped", "partial_invalid", "cancelled")
LISTED = 50


@dataclass(frozen=True)
class Part:
    """One fate with its count; ``tone`` trained, lost, zero, waiting or never. ``anchor``: the list of its cases."""

    key: str
    word: Any
    why: Any
    count: int
    tone: str
    anchor: str = ""


@dataclass(frozen=True)
class Band:
    """A part of an account as a piece of a bar of 100 units."""

    key: str
    word: Any
    tone: str
    count: int
    x: float
    width: float


@dataclass(frozen=True)
class Account:
    """Requested slots of one scope and every part of them."""

    requested: int
    parts: list[Part]

    @property
    def accounted(self) -> int:
        """Sum of the parts."""
        return sum(part.count for part in self.parts)

    @property
    def balanced(self) -> bool:
        """Whether nothing is missing and nothing counted twice."""
        return self.requested == self.accounted

    def share(self, part: Part) -> float | None:
        """Share of a part in what was requested."""
        return part.count / self.requested if self.requested else None

    @property
    def shown(self) -> list[tuple[Part, float | None, float]]:
        """Parts with their share and bar width in per cent."""
        return [(part, self.share(part), 100.0 * (self.share(part) or 0.0)) for part in self.parts]

    @property
    def band(self) -> list[Band]:
        """Parts as one bar of 100 units; empty parts draw nothing."""
        found, x = [], 0.0
        for part, _share, width in self.shown:
            if width:
                found.append(Band(part.key, part.word, part.tone, part.count, x, width))
                x += width
        return found


def requested_slots(run: Run) -> int:
    """Training slots that the plan asks of a run: batches x groups x slots. Stored ones for a run without a plan."""
    if run.plan_version is None or run.arm is None:
        return Trajectory.objects.filter(group__run=run, group__purpose="train").count()
    config = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]
    rollout = config["rollout"]
    return int(config["budget"]["batches"] * rollout["groups_per_batch"] * rollout["group_size"])


_WHOLE = Q(group__eligible=True)
_SIGNAL = _WHOLE & Q(group__signal="signal")
_MET, _SKIPPED = Q(group__consumed__isnull=False), Q(group__consumed__update__skipped__isnull=False)
_ZERO = ("zero_all_right", "zero_all_wrong")
# Fate -> which stored slots share it. Every stored slot has exactly one.
FATES: dict[str, Q] = {
    "trained": _SIGNAL & _MET & ~_SKIPPED & Q(is_trained=True),
    "cut": _SIGNAL & _MET & ~_SKIPPED & Q(is_trained=False),
    "skipped": _SIGNAL & _MET & _SKIPPED,
    "waiting": _SIGNAL & ~_MET,
    "right": _WHOLE & Q(group__signal="zero_all_right"),
    "wrong": _WHOLE & Q(group__signal="zero_all_wrong"),
    "equal": _WHOLE & ~Q(group__signal__in=("signal", *_ZERO)),
    "invalid": Q(group__eligible=False) & ~Q(status="valid"),
    "lost": Q(group__eligible=False, status="valid"),
}
_WORDS: tuple[tuple[str, Any, Any, str, str], ...] = (
    ("trained", _("trained"), _("at least one token reached the optimizer"), "trained", ""),
    ("cut", _("every token cut"), _("the credit rule left no token; still in N"), "lost", ""),
    ("skipped", _("update skipped"), _("its update trained nothing and says why"), "lost", ""),
    ("right", _("zero variance, all right"), _("every slot succeeds: no signal"), "zero", "zero"),
    ("wrong", _("zero variance, all wrong"), _("every slot fails: no signal"), "zero", "zero"),
    ("equal", _("zero variance, all equal"), _("equal rewards, neither all right nor all wrong"), "zero", "zero"),
    ("invalid", _("infrastructure-invalid"), _("no outcome, so no reward"), "lost", "invalid"),
    (
        "lost",
        _("valid, in a rejected group"),
        _("a group never shrinks, so its valid slots go too"),
        "lost",
        "rejected",
    ),
    ("waiting", _("waits for its update"), _("collected, no update has taken it"), "waiting", ""),
)


def training_accounts(runs: Sequence[Run]) -> dict[int, Account]:
    """Every requested training slot of each run, once. One query. Needs ``head`` and ``arm`` loaded."""
    trained = Exists(TrajectoryCredit.objects.filter(trajectory=OuterRef("pk"), trained_tokens__gt=0))
    rows = (
        Trajectory.objects.filter(group__run__in=runs, group__purpose="train")
        .annotate(is_trained=trained)
        .order_by()
        .values("group__run")
        .annotate(stored=Count("pk"), **{f"n_{key}": Count("pk", filter=which) for key, which in FATES.items()})
    )
    counts: dict[int, Mapping[str, Any]] = {row["group__run"]: row for row in rows}
    found = {}
    for run in runs:
        n: dict[str, Any] = dict(counts.get(run.pk, {}))
        requested = requested_slots(run)
        parts = [Part(key, word, why, n.get(f"n_{key}", 0), tone, anchor) for key, word, why, tone, anchor in _WORDS]
        found[run.pk] = Account(requested, [*parts, *_never(run, requested - n.get("stored", 0))])
    return found


def total(accounts: Iterable[Account]) -> Account:
    """The accounts added up, part by part."""
    parts: dict[str, Part] = {key: Part(key, word, why, 0, tone, anchor) for key, word, why, tone, anchor in _WORDS}
    requested = 0
    for account in accounts:
        requested += account.requested
        for part in account.parts:
            before = parts.get(part.key)
            parts[part.key] = replace(part, count=part.count + (before.count if before else 0))
    return Account(requested, list(parts.values()))


_NEVER: dict[str, tuple[Any, Any]] = {
    "refused": (_("never run: arm refused by its gate"), _("the frozen gate was not met")),
    "stopped": (_("never collected: run stopped"), _("a frozen gate ended the run")),
    "cancelled": (_("never collected: run cancelled"), _("a person cancelled it")),
    "partial_invalid": (_("never collected: run broken"), _("an error ended the run")),
    "completed": (_("never collected: run ended before its batches"), _("the limit of optimizer steps was reached")),
    "open": (_("not collected yet"), _("the run has not ended")),
}


def _never(run: Run, count: int) -> list[Part]:
    """Slots that no shard has brought, under the state of their run."""
    if not count:
        return []
    state = run.head.state if run.head.state in ENDED else "open"
    return [Part(f"never_{state}", *_NEVER[state], count, "waiting" if state == "open" else "never", "arms")]


def evaluation_account(version: PlanVersion, runs: Sequence[Run], parent: bool) -> Account:
    """Every planned evaluation item of the runs' final policies, and of the parent where asked. Two queries."""
    planned = sum(planned_items(version).values())
    items = EvaluationItem.objects.filter(plan_version=version)
    scope = Q(run__in=runs) | Q(run__isnull=True) if parent else Q(run__in=runs)
    n = items.filter(scope).aggregate(
        valid=Count("pk", filter=Q(trajectory__status="valid")),
        invalid=Count("pk", filter=~Q(trajectory__status="valid")),
    )
    stored: dict[int | None, int] = dict(items.order_by().values_list("run").annotate(n=Count("pk")))
    same, missing = 0, {"refused": 0, "ended": 0, "open": 0}
    for run in runs:
        head = run.head
        if head.state == "completed" and head.checkpoint_id == run.parent_checkpoint_id:
            same += planned  # it trained nothing: its final policy is the parent, and so are its items
            continue
        fate = "refused" if head.state == "refused" else "ended" if head.state in ENDED[2:] else "open"
        missing[fate] += planned - stored.get(run.pk, 0)
    if parent:
        missing["open"] += planned - stored.get(None, 0)
    total = planned * (len(runs) + int(parent))
    parts = [
        Part("valid", _("valid outcome"), _("counted in every rate"), n["valid"], "trained"),
        Part(
            "invalid",
            _("infrastructure-invalid"),
            _("stays in the denominator, never in the numerator"),
            n["invalid"],
            "lost",
            "invalid",
        ),
        Part(
            "same",
            _("the parent's items"),
            _("the run trained nothing, so its final policy is the parent"),
            same,
            "trained",
        ),
        Part(
            "refused",
            _("never evaluated: arm refused"),
            _("the frozen gate was not met"),
            missing["refused"],
            "never",
            "arms",
        ),
        Part(
            "ended",
            _("never evaluated: run ended early"),
            _("stopped, cancelled or broken"),
            missing["ended"],
            "never",
            "arms",
        ),
        Part("open", _("not evaluated yet"), _("pending"), missing["open"], "waiting"),
    ]
    return Account(total, [part for part in parts if part.count or part.key in ("valid", "invalid")])


JOB_STATES = ("succeeded", "queued", "leased", "failed", "errored", "cancelled")


@dataclass(frozen=True)
class JobLine:
    """Jobs of one kind by state; the states add up to ``total``."""

    kind: str
    total: int
    states: dict[str, int]

    @property
    def cells(self) -> list[int]:
        """Counts in the order of ``JOB_STATES``."""
        return [self.states.get(state, 0) for state in JOB_STATES]


def job_lines(jobs: QuerySet[Job]) -> list[JobLine]:
    """Every job of the scope by kind and state. One query."""
    found: dict[str, dict[str, int]] = {}
    for kind, state, n in jobs.order_by("kind").values_list("kind", "state").annotate(n=Count("pk")):
        found.setdefault(kind, {})[state] = n
    return [JobLine(kind, sum(states.values()), states) for kind, states in found.items()]


@dataclass(frozen=True)
class Selection:
    """Groups of one failure profile: which of them carried signal. The parts add up to ``groups``."""

    profile: str
    groups: int
    signal: int
    right: int
    wrong: int
    equal: int
    rejected: int

    @property
    def share(self) -> float | None:
        """Share of groups that could train."""
        return self.signal / self.groups if self.groups else None


def selection(runs: Sequence[Run]) -> list[Selection]:
    """Training groups by failure profile: what the optimizer saw is not what was asked. One query."""
    rows = (
        Group.objects.filter(run__in=runs, purpose="train")
        .order_by("failure_profile")
        .values("failure_profile")
        .annotate(
            groups=Count("pk"),
            with_signal=Count("pk", filter=Q(eligible=True, signal="signal")),
            right=Count("pk", filter=Q(eligible=True, signal="zero_all_right")),
            wrong=Count("pk", filter=Q(eligible=True, signal="zero_all_wrong")),
            rejected=Count("pk", filter=Q(eligible=False)),
        )
    )
    return [
        Selection(
            row["failure_profile"],
            row["groups"],
            row["with_signal"],
            row["right"],
            row["wrong"],
            row["groups"] - row["with_signal"] - row["right"] - row["wrong"] - row["rejected"],
            row["rejected"],
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Lists:
    """The cases by name, at most ``LISTED`` each, with how many there are."""

    invalid: list[Trajectory]
    invalid_total: int
    rejected: list[Group]
    rejected_total: int
    zero: list[Group]
    zero_total: int
    jobs: list[Job]
    jobs_total: int
    arms: list[tuple[Run, Receipt | None]] = field(default_factory=list)


def _first(rows: QuerySet[Any]) -> tuple[list[Any], int]:
    return list(rows[:LISTED]), rows.count()


def case_lists(runs: Sequence[Run], jobs: QuerySet[Job], parent_of: PlanVersion | None) -> Lists:
    """Infrastructure-invalid slots, rejected and zero-variance groups, troubled jobs, runs that never finished."""
    scope = Q(group__run__in=runs)
    if parent_of is not None:
        scope |= Q(group__plan_version=parent_of, group__run__isnull=True)
    invalid = Trajectory.objects.filter(scope).exclude(status="valid").select_related("group__run", "group__task")
    groups = Group.objects.filter(run__in=runs, purpose="train").select_related("run", "task")
    troubled = (
        jobs.filter(state__in=("failed", "errored", "cancelled")).select_related("run").order_by("-finished_at", "pk")
    )
    zero = groups.filter(eligible=True).exclude(signal="signal").order_by("run__name", "ordinal")
    return Lists(
        *_first(invalid.order_by("group__run__name", "group__ordinal", "slot")),
        *_first(groups.filter(eligible=False).order_by("run__name", "ordinal")),
        *_first(zero),
        *_first(troubled),
        arms=_ended_arms(runs),
    )


def _ended_arms(runs: Sequence[Run]) -> list[tuple[Run, Receipt | None]]:
    ended = [run for run in runs if run.head.state in ENDED and run.head.state != "completed"]
    receipts = {
        str(receipt.subject_uid): receipt
        for receipt in Receipt.objects.filter(kind="gate.refused", subject_uid__in=[run.uid for run in ended])
    }
    return [(run, receipts.get(str(run.uid))) for run in ended]


def headline(account: Account) -> Any:
    """The sentence that opens the page."""
    by = {part.key: part.count for part in account.parts}
    if not account.requested:
        return _("Nothing was requested here.")
    parts = {
        "n": account.requested - by["trained"],
        "of": account.requested,
        "right": by["right"],
        "wrong": by["wrong"],
        "invalid": by["invalid"] + by["lost"],
    }
    if not account.balanced:
        return _("The account does not close: %(of)d slots were requested and %(got)d are accounted for.") % {
            **parts,
            "got": account.accounted,
        }
    return _(
        "%(n)s of %(of)s requested slots were not trained, and each has a name: %(right)s were all right, "
        "%(wrong)s all wrong, %(invalid)s fell to infrastructure."
    ) % {key: format_number(value, 0) for key, value in parts.items()}
