"""The log of trials and of queries of one plan version: filters, and how one trial is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import Http404
from django.utils.translation import gettext_lazy as _

from runs.models import Intervention, PlanVersion, Trial
from runs.presenters.trials.words import CAUSE, KIND, STATUS, isolation
from workbench.contracts.records import PREFLIGHT, TRAIN
from workbench.contracts.trials import ORIGINAL, PASSED

TRIALS, QUERIES = "trials", "queries"
PHASES = {PREFLIGHT: _("pilot"), TRAIN: _("training")}
VERDICTS = {
    "success": (_("success"), Q(complete=True, success=True)),
    "failure": (_("no success"), Q(complete=True, success=False)),
    "negative": (_("regression"), Q(complete=True, utility__lt=0)),
    "unknown": (_("unknown"), Q(complete=False)),
}
EXECUTED = {
    "yes": (_("executed"), ~Q(kind=ORIGINAL)),
    "no": (_("copied"), Q(kind=ORIGINAL)),
}
ISOLATION = {
    "isolated": (_("isolated"), Q(level__unisolated=False)),
    "unisolated": (_("unisolated"), Q(level__unisolated=True)),
}
SIGNS = {
    "nonzero": (_("nonzero"), Q(difference__isnull=False) & ~Q(difference=0)),
    "positive": (_("positive"), Q(difference__gt=0)),
    "negative": (_("negative"), Q(difference__lt=0)),
    "zero": (_("exactly zero"), Q(difference=0)),
}

_HEAVY = ("trajectory__injections", "trajectory__invariants", "trajectory__group__task__prompt")


@dataclass(frozen=True)
class Field:
    """One filter: name in the address, word, choices (value, word), what is chosen ("" for all)."""

    name: str
    word: Any
    choices: list[tuple[str, Any]]
    chosen: str


@dataclass(frozen=True)
class TrialView:
    """Words and counts of one trial. ``passed`` of ``of`` listed tests; ``missing`` of them were not observed."""

    kind: Any
    executed: bool
    passed: int
    of: int
    missing: int
    unobserved: list[str]
    causes: list[tuple[Any, int]]
    level: Any
    level_facts: str
    unisolated: bool


def view_of(trial: Trial) -> TrialView:
    """Needs ``trial_set`` loaded, whose lists say which tests there are."""
    names = [*trial.trial_set.fail_to_pass, *trial.trial_set.pass_to_pass]
    observed = {item["test"]: item for item in trial.observed}
    missing = [name for name in names if name not in observed]
    causes = Counter(item["cause"] for item in trial.observed if item["cause"])
    word, facts = isolation(trial.level)
    return TrialView(
        KIND.get(trial.kind, trial.kind),
        trial.kind != ORIGINAL,
        sum(item["status"] == PASSED for item in trial.observed),
        len(names),
        len(missing),
        missing,
        [(CAUSE.get(cause, cause), n) for cause, n in sorted(causes.items())],
        word,
        facts,
        bool(trial.level.get("unisolated")),
    )


def _choice(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    value = given.get(name, "")
    if value and value not in allowed:
        raise Http404(f"{name}: got {value[:40]!r}, expected one of {', '.join(allowed)}")
    return value


def _uid(given: Mapping[str, str], name: str) -> UUID | None:
    text = given.get(name, "")
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Http404(f"{name}: got {text[:40]!r}, expected a uid") from error


@dataclass(frozen=True)
class Asked:
    """What the address asks for."""

    kind: str  # trials | queries
    fields: list[Field]
    where: Q
    scope: dict[str, str]
    by_cause: bool

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.scope) or any(field.chosen for field in self.fields)


def read(given: Mapping[str, str], arms: Sequence[str]) -> Asked:
    """The filters of an address. Raises ``Http404`` for a value that none of them has."""
    listed = _choice(given, "list", (TRIALS, QUERIES)) or TRIALS
    fields = [
        Field("phase", _("phase"), list(PHASES.items()), _choice(given, "phase", tuple(PHASES))),
        Field("arm", _("arm"), [(arm, arm) for arm in arms], _choice(given, "arm", arms)),
    ]
    where = Q()
    if fields[0].chosen:
        where &= Q(trial_set__purpose=fields[0].chosen)
    if fields[1].chosen:
        where &= Q(trial_set__run__arm__key=fields[1].chosen)
    tables: list[tuple[str, Any, Mapping[str, tuple[Any, Q]]]]
    if listed == TRIALS:
        tables = [
            ("kind", _("kind"), {key: (word, Q(kind=key)) for key, word in KIND.items()}),
            ("verdict", _("verdict"), VERDICTS),
            (
                "cause",
                _("cause"),
                {key: (word, Q(causes__contains=f'"cause": "{key}"')) for key, word in CAUSE.items()},
            ),
            ("isolation", _("isolation"), ISOLATION),
        ]
    else:
        tables = [
            ("status", _("status"), {key: (word, Q(status=key)) for key, (word, _why) in STATUS.items()}),
            ("sign", "D", SIGNS),
        ]
    for name, word, table in tables:
        chosen = _choice(given, name, tuple(table))
        fields.append(Field(name, word, [(key, entry[0]) for key, entry in table.items()], chosen))
        if chosen:
            where &= table[chosen][1]
    scope = {}
    for name, path in (
        ("run", "trial_set__run__uid"),
        ("group", "trial_set__group__uid"),
        ("trajectory", "trajectory__uid"),
    ):
        uid = _uid(given, name)
        if uid is not None:
            where &= Q(**{path: uid})
            scope[name] = str(uid)
    by_cause = any(field.name == "cause" and field.chosen for field in fields)
    return Asked(listed, fields, where, scope, by_cause)


def executed_of(version: PlanVersion, asked: Asked) -> int:
    """How many of the trials asked for were executed; the others are originals whose verdict was copied. One query."""
    return keys_of(version, asked).exclude(kind=ORIGINAL).order_by().count()


def keys_of(version: PlanVersion, asked: Asked) -> QuerySet[Any, int]:
    """Row numbers of trials or queries, newest first: narrow, so that sorting costs little."""
    model = Intervention if asked.kind == QUERIES else Trial
    rows: QuerySet[Any] = model._default_manager.filter(trial_set__plan_version=version)
    if asked.by_cause:
        rows = rows.annotate(causes=Cast("observed", TextField()))
    return rows.filter(asked.where).order_by("-pk").values_list("pk", flat=True)


def rows_of(asked: Asked, keys: Sequence[int]) -> list[Any]:
    """Those rows with what a line names, newest first. One query."""
    model = Intervention if asked.kind == QUERIES else Trial
    return list(
        model._default_manager.filter(pk__in=list(keys))
        .select_related("trial_set__run", "trajectory__group__task")
        .defer(*_HEAVY, *(("blocks",) if asked.kind == QUERIES else ()))
        .order_by("-pk")
    )
