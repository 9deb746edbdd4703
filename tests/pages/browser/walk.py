"""Every page by the name of its route, and every route that is no page, with the reason."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, get_resolver

_STUDY = "/studies/fatal-mask-pair/"
_PLAN = f"{_STUDY}plans/small/"
_PILOT = "/studies/pilot/"
_TRIED = "/studies/edit-credit/plans/tried/"
INTERFACES = {"api", "evidence_api", "mlflow"}  # namespaces that answer programs, never a person
ANONYMOUS = {"login", "account_login", "account_signup", "account_inactive"}

# Name of the route: a path, or a name among the addresses that the server of the tests prints.
PAGES = {
    "login": "/accounts/login/",
    "account_login": "/accounts/login/",
    "account_signup": "/accounts/signup/",
    "account_inactive": "/accounts/inactive/",
    "logout": "/accounts/logout/",
    "account_logout": "/accounts/logout/",
    "account_change_password": "/accounts/password/",
    "account_reauthenticate": "/accounts/reauthenticate/",
    "api_docs": "/api/",
    "runs:now": "/",
    "runs:study": _STUDY,
    "runs:plans": "/plans/",
    "runs:plan": _PLAN,
    "runs:plan_new": f"{_STUDY}plans/new/",
    "runs:plan_edit": f"{_STUDY}plans/walk/edit/",
    "runs:plan_difference": f"{_PLAN}difference/",
    "runs:plan_freeze": f"{_PLAN}freeze/",
    "runs:results": f"{_PLAN}results/",
    "runs:pair": f"{_PLAN}pairs/e2f/e3/",
    "runs:plan_discarded": f"{_PLAN}discarded/",
    "runs:lineage": f"{_PLAN}lineage/",
    "runs:edit_credit": f"{_TRIED}edit-credit/",
    "runs:trials": f"{_TRIED}trials/",
    "runs:edits": "edits",
    "runs:coefficients": "coefficients",
    "runs:runs": "/runs/",
    "runs:run": "run",
    "runs:run_discarded": "discarded",
    "runs:layers": "layers",
    "runs:update": "update",
    "runs:logged": "/logged/",
    "runs:logged_run": "logged",
    "runs:logged_rollout": "foreign",
    "runs:metrics_table": "/metrics-table/",
    "runs:layers_compare": "layers_side",
    "runs:compare": "both",
    "runs:groups": "/groups/",
    "runs:group": "group",
    "runs:trajectories": "/trajectories/",
    "runs:trajectory": "trajectory",
    "runs:divergence": "divergence",
    "runs:evaluations": "/evaluations/",
    "runs:checkpoints": "/checkpoints/",
    "runs:checkpoint": "checkpoint",
    "runs:receipts": "/receipts/",
    "runs:jobs": "/jobs/",
    "runs:job": "job",
    "runs:search": "/search/?q=e3",
    "runs:query_language": "/query-language/",
    "runs:filter_apply": "filter",
    "runs:task_sets": "/task-sets/",
    "runs:controls": "/controls/",
    "runs:one_controls": "controls",
    "runs:branches": "branches",
    "runs:task_set": "task_set",
    "runs:tasks": "/tasks/",
    "runs:task": "task",
    "runs:environments": "/environments/",
    "runs:models": "/models/",
    "runs:account": "/account/",
    "runs:users": "/users/",
    "runs:audit": "/audit/",
    "runs:study_new": "/studies/new/",
    "runs:members": f"{_STUDY}people/",
    "runs:study_audit": f"{_STUDY}audit/",
    "runs:receipt": "entry",
    "evidence:sources": "/sources/",
    "evidence:source": "source",
    "evidence:source_new": "/sources/new/",
    "evidence:source_difference": "source_difference",
    "evidence:stale": "/stale/",
    "evidence:stale_graph": "stale_graph",
    "evidence:figures": "/figures/",
    "evidence:figure": "figure",
    "evidence:figure_new": "/figures/new/?study=pilot",
    "evidence:claims": "/claims/",
    "evidence:claim": "claim",
    "evidence:claim_new": "/claims/new/?study=pilot",
    "evidence:claim_revise": "claim_revise",
    "evidence:reviews": "/reviews/",
    "evidence:review_item": "review_item",
    "evidence:notes": f"{_PILOT}notes/",
    "evidence:notes_en": f"{_PILOT}notes/en/",
    "evidence:notes_zh": f"{_PILOT}notes/zh/",
    "evidence:notes_versions": f"{_PILOT}notes/versions/",
    "evidence:notes_edit": f"{_PILOT}notes/edit/",
    "evidence:exports": f"{_PILOT}export/",
    "evidence:journal": f"{_PILOT}journal/",
    "evidence:journal_day": "journal_day",
}
# Second states of pages above: a draft beside the frozen plan, one chain, a choice, a query without rows or sense.
STATES = [
    "draft",
    f"{_STUDY}plans/walk/freeze/",
    f"{_STUDY}plans/walk/difference/",
    f"{_PLAN}difference/?with=fatal-mask-pair/walk",
    "receipt",
    "/compare/",
    "/layers/compare/",
    "/logged/?q=nothing",
    "/metrics-table/?q=entropy",
    "/groups/?q=is:cut",
    "/jobs/?q=is:errored",
    "/runs/?q=is:paused",
    "/search/?q=has:fatal",
    "/search/?q=signal",
    f"{_TRIED}trials/?list=queries",
    f"{_TRIED}trials/?verdict=unknown&kind=intervention",
    f"{_TRIED}trials/?isolation=unisolated",
    "untried_edit",
    "tried_group",
    "terminal_coefficients",
    "claimed_source",
    "pending_figure",
    "claim_item",
    "/figures/new/?study=pilot&figure=pilot.share",
    "/claims/?study=pilot&flag=disputed",
    "/stale/?state=settled",
    f"{_STUDY}notes/",
    f"{_STUDY}journal/",
    f"{_STUDY}export/",
]
FILES = ("runs:logged_file", "runs:card_export", "runs:layers_compare_export", "evidence:source_bytes")
NO_PAGES = {
    "file": {"runs:favicon", "runs:plan_bytes", "runs:adapter", "runs:series_csv", *FILES},
    "part of a page": {
        "runs:now_live",
        "runs:run_live",
        "runs:plan_freeze_live",
        "runs:layers_compare_card",
        "evidence:figure_card",
    },
    "data": {
        "alive",
        "ready",
        "metrics",
        "runs:series_json",
        "runs:layer_data",
        "runs:compare_series",
        "runs:trajectory_tokens",
        "evidence:figure_search",
        "evidence:figure_check",
    },
    "answer to a form": {"set_language"},
    "leads elsewhere": {"runs:behind"},
}


def routes(patterns: Any = None, space: str = "") -> dict[str, Any]:
    """Name and view of every address but those of the interfaces for scripts."""
    found: dict[str, Any] = {}
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(entry, URLPattern):
            found[f"{space}{entry.name}"] = entry.callback
        elif entry.namespace not in INTERFACES:
            found |= routes(entry.url_patterns, space + (f"{entry.namespace}:" if entry.namespace else ""))
    return found
