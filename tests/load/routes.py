# ruff: noqa: E501
"""Every address whose server time is bounded: measured pages, lists of the API, every key of the query language."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.urls import URLResolver, get_resolver

from runs.api.base import ListView
from runs.models import ControlSet, Plan, Study, Task, TaskSet
from runs.query.keys import HAS, IS, KEYS
from runs.query.lists import LISTS
from tests.load.evidence import UNMEASURED_EVIDENCE, evidence_addresses
from tests.load.generate import Size, sha, uid
from tests.load.logged import logged_addresses
from tests.load.pages import addresses
from tests.load.tried import tried_addresses

# Words that the generated world holds, for keys whose example it does not hold.
VALUES = {
    "study": "study-3", "plan": "plan-3", "arm": "e3", "seed": "17", "run": "e3-s1001", "task": "task-0001",
    "env": "evidence_search", "family": "family-3", "split": "test", "condition": "stress", "policy": "1",
    "checkpoint": sha("adapter", 7)[:6], "kind": "update*", "queue": "rollout", "worker": "worker-1*", "by": "scheduler",
    "stream": f"run:{uuid.UUID(uid('run', 5))}", "sha": sha("adapter", 7)[:6], "uid": uid("run", 5)[:6],
    "created": ">2026-10-02", "updated": "2026-10-02..2026-10-03", "finished": "2026-10-03", "jobs state": "errored",
}  # fmt: skip
# Values of parameters whose meaning the table below does not know, by their type.
KINDS = {"text": "other", "uuid": str(uuid.UUID(uid("run", 3))), "integer": "1", "number": "0.5", "boolean": "true",
         "time": "2026-10-03T00:00:00Z"}  # fmt: skip
# Other ways of asking that have cost much: words, negations, several terms, an order by another table's column.
MORE = {
    "runs": ("s12", "-has:fatal sort:-tokens", "has:error", "sort:updated is:completed"),
    "groups": ("task-0123", "e3-s1", "-is:cut", "is:trains sort:-reward", "study:study-3 has:fatal", "nothing-like-it"),
    "trajectories": (
        "task-0123", "e3-s1001", "nothing-like-it", "-has:masked", "arm:e3 has:fatal reward:>0.5 sort:-reward",
        "study:study-3 sort:-tokens", "is:effective sort:-advantage", "depth:>3 sort:depth", "created:<2026-10-02",
    ),
    "evaluations": ("task-0123", "e3-s1001", "nothing-like-it", "sort:-reward", "-has:fatal sort:depth"),
    "jobs": ("collect", "nothing-like-it", "is:errored sort:-finished", "is:succeeded run:e3-s1001"),
    "receipts": ("applied", "nothing-like-it", "has:subject by:scheduler", "-kind:run.*"),
    "tasks": ("document", "nothing-like-it", "sort:name"),
    "checkpoints": ("e3-s12", "nothing-like-it", "is:held sort:-bytes", "is:removed", "is:parent", "sort:policy"),
}  # fmt: skip


# Routes without an address here: what only changes something, and what needs bytes or series that the world does not hold.
UNMEASURED = UNMEASURED_EVIDENCE | frozenset({
    "logout", "account_logout", "account_inactive", "account_signup", "account_change_password",
    "account_reauthenticate", "account_login", "ready", "metrics", "api:token_revoke", "api:plan_create",
    "api:plan_validate", "api:plan_inspect", "api:plan_freeze", "api:plan_supersede", "api:plan_start",
    "api:execution_control", "api:run_control", "api:controls_request", "api:branch_request", "api:branch", "runs:branch_ask", "api:not_found", "api:group_captures",
    "api:trial_set", "api:trial", "api:intervention",
    "api:trajectory_tokens", "api:capture_bytes", "api:checkpoint_bytes", "api:me", "runs:plan_freeze_live",
    "runs:plan_inspect", "runs:plan_do_freeze", "runs:plan_start", "runs:plan_supersede", "runs:token_issue",
    "runs:token_revoke", "runs:sessions_end", "runs:user_create", "runs:user_change", "runs:member_add",
    "runs:member_remove", "runs:study_visibility", "runs:filter_save", "runs:filter_apply",
    "runs:filter_delete", "runs:run_control", "runs:receipts_verify", "runs:adapter", "runs:favicon",
    "runs:trajectory_tokens", "login", "api:plan_preview", "runs:reading_judge", "runs:logged_file",
    "runs:logged_rollout", "api:logged_run_create", "api:logged_run_log", "api:logged_run_status", "api:logged_run_link",
})  # fmt: skip


def named() -> Iterator[tuple[str, str]]:
    """(name, template of the address) of every route."""

    def walk(patterns: list[Any], space: str, before: str) -> Iterator[tuple[str, str]]:
        for entry in patterns:
            if isinstance(entry, URLResolver):
                if entry.namespace in ("api", "runs", "evidence", "evidence_api"):
                    yield from walk(entry.url_patterns, f"{entry.namespace}:", before + str(entry.pattern))
            else:
                yield space + str(entry.name), before + str(entry.pattern)

    yield from walk(get_resolver().url_patterns, "", "/")


def details(size: Size) -> dict[str, str]:
    """One object of each kind, and pages about several: name -> address. Needs the generated database."""

    def of(kind: str, n: int) -> str:
        return str(uuid.UUID(uid(kind, n)))

    task, task_set = Task.objects.get(key="task-0001"), TaskSet.objects.get()
    controls = ControlSet.objects.get()
    other_plan = Plan.objects.exclude(slug__in=("plan-3", "draft")).earliest("pk")
    plan, receipt = Plan.objects.get(slug="plan-3"), sha("receipt", size.receipts - 1)
    at, api = "/studies/study-3/plans/plan-3/", "/api/v1/"
    runs = "+".join(of("run", n) for n in (3, 103, 203))
    trajectory, other = of("trajectory", 4 * size.deep), of("trajectory", 4 * size.deep + 1)
    pages = [
        "/healthz", "/api/", "/now/live/", f"/task-sets/{task_set.sha256}/", "/task-sets/",
        "/controls/", f"/controls/{controls.uid}/", f"/controls/{controls.uid}/?kind=gold&category=strict_pass",
        f"/tasks/{task.uid}/", "/environments/", "/models/", "/studies/study-0/plans/draft/edit/", f"{at}difference/", f"{at}freeze/",
        "/studies/study-3/plans/new/", f"{at}pairs/e2f/e3/", f"{at}discarded/", f"{at}lineage/", f"{at}plan.json",
        f"{at}results/", f"/runs/{of('run', 3)}/discarded/", f"/runs/{of('run', 0)}/discarded/",
        f"/runs/{of('run', 0)}/live/", f"/runs/{of('run', 0)}/series/reward.json", f"/runs/{of('run', 0)}/series/reward.csv",
        f"/compare/?runs={runs}", f"/compare/series/reward.json?runs={runs}", "/compare/",
        f"/checkpoints/{of('checkpoint', 0)}/", f"/checkpoints/{of('checkpoint', 4)}/",
        f"/trajectories/{trajectory}/against/{other}/", "/account/", "/users/", "/audit/", "/studies/new/",
        "/studies/study-3/people/", "/studies/study-3/audit/", "/query-language/",
        f"/receipts/?stream=run:{of('run', 5)}", f"/runs/{of('run', 0)}/layers/",
        f"/updates/{of('update', 1)}/", f"/behind/{of('group', 1)}/", f"/trajectories/{trajectory}/branches/",
        *tried_addresses(of),
    ]  # fmt: skip
    objects = [
        "openapi.json", "studies/study-3", f"plans/{plan.uid}", f"plans/{plan.uid}/cells", f"plans/{plan.uid}/bytes",
        f"plans/{plan.uid}/difference?against={other_plan.uid}",
        f"executions/{of('execution', 3)}", f"executions/{of('execution', 3)}/progress", f"runs/{of('run', 0)}",
        f"runs/{of('run', 0)}/series", f"runs/{of('run', 0)}/series/reward", f"jobs/{of('job', 3)}",
        f"groups/{of('group', 1)}", f"trajectories/{trajectory}", f"captures/{sha('capture', 77)}",
        f"checkpoints/{of('checkpoint', 4)}", f"task-sets/{task_set.uid}", f"tasks/{task.uid}", f"receipts/{receipt}",
        f"controls/{controls.uid}", f"controls/{controls.uid}/slots", f"controls/{controls.uid}/slots?limit=500",
        f"receipts/{receipt}/bytes", "events?study=study-3&limit=500", "events?study=study-3&from=now",
    ]  # fmt: skip
    return {f"page: {address}": address for address in pages} | {f"api: {o}": api + o for o in objects}


def queries() -> dict[str, str]:
    """The query language: every key of every list, every word, every order, and some terms together."""
    found = {}
    for name, spec in LISTS.items():
        asked = [f"{key}:{VALUES.get(f'{name} {key}') or VALUES.get(key) or entry.example.partition(':')[2]}"
                 for key, entry in KEYS.items() if name in entry.on and key not in ("is", "has")]  # fmt: skip
        asked += [f"is:{word}" for word in (IS[name].words or () if name in IS else ())]
        asked += [f"has:{word}" for word in (HAS[name].words or () if name in HAS else ())]
        asked += [f"sort:{sign}{sort}" for sort in spec.sorts for sign in ("", "-")]
        for query in dict.fromkeys([*asked, *MORE[name]]):
            found[f"query: {name}: {query}"] = f"/{spec.name}/?{urlencode({'q': query})}"
    return found


def lists_of_api(size: Size) -> dict[str, str]:
    """Every list of the API: alone, at its largest page, oldest first, and by each of its parameters."""
    study, plan = Study.objects.get(slug="study-3"), Plan.objects.get(slug="plan-3")
    task, task_set = Task.objects.get(key="task-0001"), TaskSet.objects.get()
    values = {
        "study": study.slug, "plan": str(plan.uid), "execution": str(uuid.UUID(uid("execution", 3))), "state": "completed",
        "run": str(uuid.UUID(uid("run", 3))), "group": str(uuid.UUID(uid("group", 2003))), "task": str(task.uid),
        "task_set": str(task_set.uid), "trajectory": str(uuid.UUID(uid("trajectory", 8003))), "sha256": sha("adapter", 7)[:8],
        "arm": "e3", "seed": "17", "name": "e3-s1001", "created_after": "2026-10-03T00:00:00Z", "kind": "update",
        "purpose": "train", "condition": "stress", "split": "test", "eligible": "false", "signal": "signal",
        "min_ordinal": "1", "status": "valid", "terminal": "finish", "success": "true", "recovered": "true",
        "has_fatal": "true", "min_reward": "0.9", "max_reward": "0.1", "policy_version": "1", "key": "task-0001",
        "checkpoint": sha("adapter", 7), "environment": "evidence_search", "family": "family-3", "slug": "plan-3",
        "stream": f"run:{uuid.UUID(uid('run', 5))}", "subject": str(uuid.UUID(uid("run", 5))), "after_seq": "2",
        "visibility": "public",
    }  # fmt: skip
    special = {("jobs", "state"): "errored", ("jobs", "kind"): "apply_update", ("receipts", "kind"): "run.started",
               ("executions", "state"): "running", ("plans", "state"): "frozen"}  # fmt: skip
    found = {}
    for entry in next(e for e in get_resolver().url_patterns if getattr(e, "namespace", "") == "api").url_patterns:
        view = getattr(entry.callback, "view_class", None)
        if view is None or not issubclass(view, ListView):
            continue
        route = str(entry.pattern)
        if "<" in route:  # the list of one object, which the world may lack
            continue
        found |= {
            f"api: {route}{tail}": f"/api/v1/{route}{tail}" for tail in ("", "?limit=500", "?limit=500&order=oldest")
        }
        for item in view.filters:
            value = special.get((route, item.name)) or values.get(item.name) or KINDS[item.kind]
            given = {
                item.name: item.choices[0] if item.choices and value not in item.choices else value,
                "limit": "500",
            }
            found[f"api: {route}?{item.name}="] = f"/api/v1/{route}?{urlencode(given)}"
    return found


def everything(size: Size) -> dict[str, str]:
    """Name -> address of all that is bounded. Needs the generated database."""
    pages = {f"page: {name}": address for name, address in addresses(size).items()}
    return pages | details(size) | lists_of_api(size) | queries() | logged_addresses() | evidence_addresses()
