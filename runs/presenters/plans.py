"""What a plan says: arms, treatment contract, budgets, gates, endpoints, straight from its frozen bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.actions.plans import parse_plan_text, plan_body
from runs.models import Plan, PlanVersion, Run
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.spec import complete_plan, flatten


@dataclass(frozen=True)
class Field:
    """One compared field of two arms."""

    path: str
    left: Any
    right: Any
    equal: bool


@dataclass(frozen=True)
class Contract:
    """Treatment contract of a strict pair; different fields first, then the equal ones by section."""

    arms: tuple[str, str]
    treatment: list[str]
    different: list[Field]
    equal: dict[str, list[Field]]
    count_equal: int


def contracts(version: PlanVersion) -> list[Contract]:
    """The comparisons that freezing stored."""
    found = []
    for pair in version.strict_pairs:
        equal: dict[str, list[Field]] = {}
        for path, value in pair["equal"]:
            equal.setdefault(path.split(".")[0], []).append(Field(path, value, value, True))
        different = [Field(path, a, b, False) for path, a, b in pair["different"]]
        found.append(
            Contract((pair["arms"][0], pair["arms"][1]), pair["treatment"], different, equal, len(pair["equal"]))
        )
    return found


def runs_by_arm(version: PlanVersion) -> dict[str, list[Run]]:
    """Runs of a version by arm, in the order of the arm's seeds; empty before it starts."""
    found: dict[str, list[Run]] = {}
    for run in Run.objects.filter(plan_version=version, arm__isnull=False).select_related("arm"):
        found.setdefault(run.arm.key, []).append(run)
    for runs in found.values():
        runs.sort(key=lambda run: run.arm.seeds.index(run.seed) if run.seed in run.arm.seeds else len(run.arm.seeds))
    return found


def settings_of(document: dict[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """The plan's shared fields by section, leaves only; arms, pairs and endpoints have tables of their own."""
    sections = (
        "policy",
        "environment",
        "reward",
        "rollout",
        "failure",
        "objective",
        "optimizer",
        "budget",
        "runtime",
        "preflight",
        "error_gate",
        "evaluation",
        "retention",
    )
    return {
        name: list(flatten(document[name]).items()) if isinstance(document[name], dict) else [("", document[name])]
        for name in sections
        if document.get(name) is not None
    }


@dataclass(frozen=True)
class Draft:
    """A draft as far as it can be read: the document, or what is wrong with it."""

    document: dict[str, Any] | None
    problems: list[str]


def read_draft(plan: Plan) -> Draft:
    """Parse and complete a draft; every problem is listed."""
    try:
        return Draft(complete_plan(parse_plan_text(plan.draft_text)), [])
    except PlanInvalid as error:
        return Draft(None, [str(problem) for problem in error.problems])


def headline(plan: Plan, version: PlanVersion | None, draft: Draft | None) -> str:
    """The sentence that opens a plan's page."""
    if version is None:
        if draft is not None and draft.problems:
            return _("A draft that cannot be frozen yet: %(n)d problems.") % {"n": len(draft.problems)}
        return _("A draft: nothing is bound, and nothing may run under it.")
    body = plan_body(version)
    runs = sum(len(arm["seeds"]) for arm in body["arms"])
    parts = {"arms": len(body["arms"]), "runs": runs}
    if plan.state == "superseded":
        return _("Superseded: %(arms)d arms, %(runs)d runs stay readable under bytes that never changed.") % parts
    pair = body["pairs"][0] if body["pairs"] else None
    if pair is not None:
        parts |= {
            "n": len(pair["different"]),
            "of": len(pair["different"]) + len(pair["equal"]),
            "a": pair["arms"][0],
            "b": pair["arms"][1],
        }
        return (
            _(
                "Frozen: %(arms)d arms, %(runs)d runs; the strict pair %(a)s and %(b)s differs in %(n)d of "
                "%(of)d fields."
            )
            % parts
        )
    return _("Frozen: %(arms)d arms, %(runs)d runs; no pair is declared strict.") % parts
