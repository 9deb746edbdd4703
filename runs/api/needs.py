"""Which capability an operation needs in the study, for readers of the schema. Views themselves ask ``runs.access``."""

from __future__ import annotations

from runs.access import (
    AUDIT_READ,
    EVIDENCE_WRITE,
    LOG_WRITE,
    PLAN_FREEZE,
    PLAN_WRITE,
    READ,
    REVIEW_WRITE,
    RUN_CONTROL,
)

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
    ("POST", "studies/{slug}/controls"): RUN_CONTROL,
    ("POST", "trajectories/{uid}/branches"): RUN_CONTROL,
    ("POST", "studies/{slug}/logged-runs"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/log"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/status"): LOG_WRITE,
    ("POST", "logged-runs/{uid}/link"): LOG_WRITE,
    ("POST", "studies/{slug}/sources"): EVIDENCE_WRITE,
    ("POST", "sources/{uid}/check"): EVIDENCE_WRITE,
    ("POST", "stale-marks/{uid}/settle"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/excerpts"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/figures"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/figures/check"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/derivations/check"): EVIDENCE_WRITE,
    ("POST", "figures/{uid}/recompute"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/claims"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/claims/check"): READ,
    ("POST", "claims/{uid}/revise"): EVIDENCE_WRITE,
    ("POST", "claims/{uid}/lower"): EVIDENCE_WRITE,
    ("POST", "claims/{uid}/withdraw"): EVIDENCE_WRITE,
    ("POST", "claims/{uid}/links"): EVIDENCE_WRITE,
    ("POST", "links/{uid}/withdraw"): EVIDENCE_WRITE,
    ("POST", "claims/{uid}/reviews"): REVIEW_WRITE,
    ("POST", "reviews/queue/take"): REVIEW_WRITE,
    ("POST", "reviews/queue/{name}/reserve"): REVIEW_WRITE,
    ("POST", "reviews/queue/{name}/release"): REVIEW_WRITE,
    ("POST", "reviews/{uid}/answers"): EVIDENCE_WRITE,
    ("PUT", "studies/{slug}/notes"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/notes/versions"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/notes/check"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/notes/contracts"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/journal"): EVIDENCE_WRITE,
    ("POST", "studies/{slug}/journal/notes"): f"{EVIDENCE_WRITE} or {REVIEW_WRITE}",
    ("GET", "heads"): f"{AUDIT_READ} in any study",
    ("GET", "studies/{slug}/export/bundle"): f"{EVIDENCE_WRITE} or {AUDIT_READ}",
    ("GET", "studies/{slug}/export/crate"): f"{EVIDENCE_WRITE} or {AUDIT_READ}",
    ("GET", "studies/{slug}/export/site"): f"{EVIDENCE_WRITE} or {AUDIT_READ}",
}


def needed(method: str, path: str) -> str:
    """The capability's name, or what stands in its place; a read needs that the study is visible."""
    found = NEEDS.get((method.upper(), path.split("/v1/")[-1]))
    if found is None and method.upper() != "GET":
        raise LookupError(f"{method} {path}: got no capability, expected an entry in runs.api.needs")
    return READ if found is None else found
