"""The table of the query language: each key, the lists that know it, and what it means there.

The help page and the help beside every filter field are read from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from runs.actions.tombstones import standing_rows
from runs.models import ToolCall, Trajectory, TrajectoryCredit, Turn
from runs.query import resolve
from runs.query.matchers import Matcher, choice, column, exact, name, named, number, sha, text, time, uid, whole
from runs.query.values import hash_prefix
from runs.states import JOB_TRANSITIONS, RUN_TRANSITIONS

PURPOSES = ("preflight", "train", "evaluate")
TERMINALS = ("finish", "policy_error", "budget_exhausted")
SIGNALS = ("signal", "zero_all_right", "zero_all_wrong", "zero_equal")
_CREDIT = TrajectoryCredit.objects


@dataclass(frozen=True)
class Key:
    """``on``: list -> matcher. ``help`` and ``example`` stand on the help page."""

    help: Any
    example: str
    on: Mapping[str, Matcher]


def _fatal(prefix: str) -> Any:
    """Groups or runs with a Fatal. By keys: the few slots are found by their index, once for all queries of a page."""
    rows = Trajectory.objects.filter(fatal_confirmed__isnull=False).distinct()

    def read(asker: resolve.Asker) -> Q:
        return Q(pk__in=asker.principal.once(f"fatal {prefix}", lambda: resolve.keys(rows, prefix)))

    return read


_masked = Q(pk__in=_CREDIT.filter(masked_tokens__gt=0).values("trajectory"))
_trained = Q(pk__in=_CREDIT.filter(trained_tokens__gt=0).values("trajectory"))
_credits = _CREDIT.filter(trajectory__group=OuterRef("pk"))
_cut = Q(Exists(_credits)) & ~Q(Exists(_credits.filter(trained_tokens__gt=0)))
# By keys: an index holds these few turns and calls alone.
_parse_error = Q(pk__in=Turn.objects.filter(parse_error__isnull=False).values("trajectory"))
_retried = Q(pk__in=ToolCall.objects.filter(is_repeat=True).values("turn__trajectory"))


def _removed(asker: resolve.Asker) -> Q:
    return Q(sha256__in=standing_rows().values("sha256"))


_STATES = {state: Q(head__state=state) for state in RUN_TRANSITIONS}
_JOBS = {state: Q(state=state) for state in JOB_TRANSITIONS} | {"running": Q(state="leased")}
_PURPOSE = {purpose: Q(purpose=purpose) for purpose in PURPOSES}

IS: Mapping[str, Matcher] = {
    "runs": choice(
        _STATES
        | {
            "finished": Q(head__state="completed"),
            "native": Q(origin="native"),
            "imported": Q(origin="imported"),
            "tracked": Q(origin="tracked"),
        }
        | {"troubled": Q(head__state__in=("interrupted", "stopped", "partial_invalid"))}
    ),
    "groups": choice(
        {
            "trains": Q(signal="signal", eligible=True) & ~_cut & ~Q(consumed__update__skipped__isnull=False),
            "cut": Q(signal="signal") & _cut,
            "zero": Q(eligible=True) & ~Q(signal="signal"),
            "eligible": Q(eligible=True),
            "rejected": Q(eligible=False),
            "pending": Q(purpose="train", eligible=True, consumed__isnull=True),
            **_PURPOSE,
        }
    ),
    "trajectories": choice(
        {
            "valid": Q(status="valid"),
            "invalid": ~Q(status="valid"),
            "effective": _trained,
            "success": Q(success=True),
            "exposed": Q(exposed=True),
            "recovered": Q(recovered=True),
            "finished": Q(finished=True),
            **{purpose: Q(group__purpose=purpose) for purpose in PURPOSES},
        }
    ),
    "evaluations": choice(
        {
            "valid": Q(trajectory__status="valid"),
            "invalid": ~Q(trajectory__status="valid"),
            "success": Q(trajectory__success=True),
            "exposed": Q(trajectory__exposed=True),
            "recovered": Q(trajectory__recovered=True),
            "parent": Q(run__isnull=True),
        }
    ),
    "jobs": choice({**_JOBS, "pending": Q(state="queued"), "troubled": Q(state__in=("failed", "errored"))}),
    "checkpoints": choice(
        {
            "parent": Q(kind="parent"),
            "update": Q(kind="update"),
            "removed": _removed,
            "held": lambda asker: ~_removed(asker),
        }
    ),
}
HAS: Mapping[str, Matcher] = {
    "runs": choice(
        {
            "fatal": _fatal("group__run"),
            "error": Q(pk__in=resolve.Run.objects.filter(jobs__state__in=("failed", "errored")).values("pk")),
            "reason": ~Q(head__reason=""),
            "checkpoint": Q(head__checkpoint__isnull=False),
        }
    ),
    "groups": choice(
        {
            "fatal": _fatal("group"),
            "masked": Q(pk__in=_CREDIT.filter(masked_tokens__gt=0).values("trajectory__group")),
            "error": Q(eligible=False),
            "signal": Q(signal="signal"),
        }
    ),
    "trajectories": choice(
        {
            "fatal": Q(fatal_confirmed__isnull=False),
            "masked": _masked,
            "error": ~Q(status="valid") | Q(terminal="policy_error"),
            "parse_error": _parse_error,
            "retry": _retried,
            "failure": Q(failures_seen__gt=0),
            "reward": Q(reward_total__isnull=False),
            "advantage": Q(advantage__isnull=False) & ~Q(advantage=0),
        }
    ),
    "evaluations": choice(
        {
            "fatal": Q(trajectory__fatal_confirmed__isnull=False),
            "error": ~Q(trajectory__status="valid") | Q(trajectory__terminal="policy_error"),
            "failure": Q(trajectory__failures_seen__gt=0),
        }
    ),
    "jobs": choice({"error": ~Q(error=""), "run": Q(run__isnull=False), "retry": Q(attempt__gt=1)}),
    "receipts": choice({"subject": Q(subject_uid__isnull=False)}),
}


def _capture(asker: resolve.Asker, value: str) -> Q:
    turns = Turn.objects.filter(hash_prefix("capture_sha256", value))
    return Q(pk__in=turns.values("trajectory"))


def _on(lists: Mapping[str, str], build: Any, *args: Any) -> dict[str, Matcher]:
    return {name: build(field, *args) for name, field in lists.items()}


_RUN = {"groups": "run", "trajectories": "group__run", "evaluations": "run", "jobs": "run", "checkpoints": "run"}
_VERSION = {
    "runs": "plan_version",
    "groups": "plan_version",
    "trajectories": "group__plan_version",
    "evaluations": "plan_version",
    "jobs": "execution__plan_version",
    "checkpoints": "run__plan_version",
}
_ARM = {name: f"{path}__arm" for name, path in _RUN.items()} | {"runs": "arm"}
_TASK = {"groups": "task", "trajectories": "group__task", "evaluations": "task"}
_GROUP = {"groups": "", "trajectories": "group__", "evaluations": ""}
_SLOT = {"trajectories": "", "evaluations": "trajectory__"}


def _slot(field: str, build: Any) -> dict[str, Matcher]:
    return {name: build(path + field) for name, path in _SLOT.items()}


KEYS: Mapping[str, Key] = {
    "is": Key(_("a state or kind"), "is:running", IS),
    "has": Key(_("something that the row holds"), "has:fatal", HAS),
    "state": Key(
        _("the stored state"),
        "state:interrupted",
        {"runs": column("head__state", tuple(RUN_TRANSITIONS)), "jobs": column("state", tuple(JOB_TRANSITIONS))},
    ),
    "study": Key(_("name of a study"), "study:fatal-mask-pair", _on(_VERSION, named, resolve.versions_of_study)),
    "plan": Key(_("name of a frozen plan"), "plan:small", _on(_VERSION, named, resolve.versions_of_plan)),
    "arm": Key(_("key of an arm"), "arm:e3", _on(_ARM, named, resolve.arms)),
    "seed": Key(
        _("seed of the run"), "seed:17", {n: exact(f"{p}__seed") for n, p in _RUN.items()} | {"runs": exact("seed")}
    ),
    "run": Key(_("name of a run, or the beginning of its uid"), "run:e3-s17", _on(_RUN, named, resolve.runs)),
    "task": Key(
        _("key of a task, a prefix with *, or the beginning of its hash"),
        "task:invoice*",
        {**_on(_TASK, named, resolve.tasks), "tasks": text("key")},
    ),
    "env": Key(
        _("environment"),
        "env:evidence_search",
        {**{n: text(f"{p}__task_set__environment") for n, p in _TASK.items()}, "tasks": text("task_set__environment")},
    ),
    "family": Key(
        _("family of the task"),
        "family:invoice",
        {**{n: text(f"{p}__family") for n, p in _TASK.items()}, "tasks": text("family")},
    ),
    "split": Key(
        _("split of the tasks"),
        "split:test",
        {**{n: text(f"{p}split") for n, p in _GROUP.items()}, "tasks": text("split")},
    ),
    "condition": Key(
        _("failure condition of the evaluation"),
        "condition:STRESS",
        {n: text(f"{p}condition") for n, p in _GROUP.items()},
    ),
    "purpose": Key(
        _("what the rollout was for"),
        "purpose:evaluate",
        {"groups": column("purpose", PURPOSES), "trajectories": column("group__purpose", PURPOSES)},
    ),
    "signal": Key(
        _("what the rewards of the group give"),
        "signal:zero_all_wrong",
        {"groups": column("signal", SIGNALS), "trajectories": column("group__signal", SIGNALS)},
    ),
    "stop": Key(
        _("how the trajectory ended"),
        "stop:budget_exhausted",
        {n: column(f"{p}terminal", TERMINALS) for n, p in _SLOT.items()},
    ),
    "reward": Key(
        _("reward; of a group its mean"), "reward:>0.5", {**_slot("reward_total", number), "groups": number("mean")}
    ),
    "advantage": Key(_("advantage"), "advantage:<0", {"trajectories": number("advantage")}),
    "sigma": Key(_("standard deviation of the group's rewards"), "sigma:>0.1", {"groups": number("sigma")}),
    "tokens": Key(
        _("generated tokens"),
        "tokens:>200",
        {**_slot("generated_tokens", whole), "runs": whole("head__generated_tokens")},
    ),
    "depth": Key(_("executed tool calls"), "depth:>=3", _slot("tool_depth", whole)),
    "failures": Key(_("failures that the policy saw"), "failures:>0", _slot("failures_seen", whole)),
    "slot": Key(_("slot in the group"), "slot:0", {"trajectories": whole("slot")}),
    "ordinal": Key(
        _("number of the group in its run"),
        "ordinal:0..7",
        {"groups": whole("ordinal"), "trajectories": whole("group__ordinal")},
    ),
    "repeat": Key(_("repeat of the evaluation"), "repeat:0", {"evaluations": whole("repeat")}),
    "policy": Key(
        _("policy version"),
        "policy:>=10",
        {
            "runs": whole("head__policy_version"),
            "groups": whole("policy_version"),
            "trajectories": whole("group__policy_version"),
            "evaluations": whole("checkpoint__policy_version"),
            "checkpoints": whole("policy_version"),
        },
    ),
    "steps": Key(_("optimizer steps done"), "steps:>100", {"runs": whole("head__steps")}),
    "batches": Key(_("optimizer batches done"), "batches:>=20", {"runs": whole("head__batch")}),
    "checkpoint": Key(
        _("beginning of a checkpoint's hash"),
        "checkpoint:ab12",
        {
            "runs": named("head__checkpoint", resolve.checkpoints),
            "groups": named("checkpoint", resolve.checkpoints),
            "trajectories": named("group__checkpoint", resolve.checkpoints),
            "evaluations": named("checkpoint", resolve.checkpoints),
        },
    ),
    "kind": Key(
        _("kind of job, receipt or checkpoint"),
        "kind:collect*",
        {n: text("kind") for n in ("jobs", "receipts", "checkpoints")},
    ),
    "queue": Key(_("queue of the job"), "queue:rollout", {"jobs": text("queue")}),
    "worker": Key(_("worker that holds the job"), "worker:worker-1*", {"jobs": text("owner")}),
    "attempt": Key(_("attempt of the job"), "attempt:>1", {"jobs": whole("attempt")}),
    "stream": Key(_("stream of the receipts; a prefix ends with *"), "stream:run:*", {"receipts": name("stream")}),
    "by": Key(_("who did it"), "by:scheduler", {"receipts": text("actor__name")}),
    "sha": Key(
        _("beginning of a hash"),
        "sha:ab12",
        {
            "runs": sha("head__checkpoint__sha256", "plan_version__sha256"),
            "groups": sha("record_sha256", "capture_blob_sha256"),
            "trajectories": Matcher(_capture),
            "receipts": sha("sha256"),
            "tasks": sha("task_sha256"),
            "checkpoints": sha("sha256"),
            "evaluations": sha("checkpoint__sha256"),
        },
    ),
    "uid": Key(
        _("beginning of a uid"),
        "uid:3f2a",
        {
            **{n: uid() for n in ("runs", "groups", "trajectories", "jobs", "tasks", "checkpoints", "evaluations")},
            "receipts": uid("subject_uid"),
        },
    ),
    "created": Key(
        _("when it was stored, UTC"),
        "created:2026-11-01",
        {
            "runs": time("created_at"),
            "groups": time("created_at"),
            "trajectories": time("group__created_at"),
            "evaluations": time("trajectory__group__created_at"),
            "jobs": time("created_at"),
            "checkpoints": time("created_at"),
            "receipts": time("at"),
        },
    ),
    "updated": Key(_("when its state last changed, UTC"), "updated:>2026-11-01", {"runs": time("head__updated_at")}),
    "finished": Key(_("when it ended, UTC"), "finished:>2h", {"jobs": time("finished_at")}),
}
