"""Which capability an operation needs in the study, for readers of the schema. Views themselves ask ``runs.access``."""

from __future__ import annotations

from runs.access import LOG_WRITE, PLAN_FREEZE, PLAN_WRITE, READ, RUN_CONTROL

SIGNED_IN, SESSION, SCOPE_WRITE, OPEN = "signed in", "session", "signed in, scope write", ""
NEEDS: dict[tuple[str, str], str] = {
    ("GET", "openapi.json"): OPEN,
    ("GET", "me"): OPEN,
    ("GET", "me/tokens"): SIGNED_IN,
    ("POST", "me/tokens"): SESSION,
    ("POST", "me/tokens/{prefix}/revoke"): SESSION,
    ("POST", "studies"): SCOPE_WRITE,
    ("POST", "studies/{slug}/plans"): PLAN_WRITE,
    ("PUT", "plans/{uid}"): PLAN_WRITE,
    ("PATCH", "plans/{uid}"): PLAN_WRITE,
    ("POST", "plans/{uid}/validate"): READ,
    ("POST", "plans/{uid}/inspect"): PLAN_WRITE,
    ("GET", "plans/{uid}/preview"): PLAN_WRITE,
    ("POST", "plans/{uid}/freeze"): PLAN_FREEZE,
    ("POST", "plans/{uid}/supersede"): PLAN_FREEZE,
    ("POST", "plans/{uid}/start"): RUN_CONTROL,
    ("POST", "executions/{uid}/{verb}"): RUN_CONTROL,
    ("POST", "runs/{uid}/{verb}"): RUN_CONTROL,
    ("POST", "studies/{slug}/logged-runs"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/log"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/status"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/link"): LOG_WRITE,
}


def needed(method: str, path: str) -> str:
    """The capability's name, or what stands in its place; a read needs that the study is visible."""
    found = NEEDS.get((method.upper(), path.split("/v1/")[-1]))
    if found is None and method.upper() != "GET":
        raise LookupError(f"{method} {path}: got no capability, expected an entry in runs.api.needs")
    return READ if found is None else found
