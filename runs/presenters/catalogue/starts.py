"""What a new plan may start from: a bundled study at a scale, a plan that exists, or the least that is valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from django.conf import settings
from django.utils.translation import gettext as _

from runs.access import Principal, visible
from runs.actions.plans import parse_plan_text, plan_body
from runs.models import Plan
from runs.presenters.catalogue.yamltext import dump_plan, rewrite
from workbench.contracts.errors import PlanInvalid

MINIMAL = """\
# The least that is valid: one arm, one seed. What is not written has the default that the form shows.
schema: workbench.plan/1
study: {study}
name: {name}
title:
  en: {name}
question:
  en: What does this policy learn here?
policy:
  model: embedded-evidence-search
environment:
  id: evidence_search
reward:
  id: evidence_search.reward
  version: "2.1"
rollout:
  max_decisions: 7
failure:
  stress_cycle: [prefix_fatal_opportunity, immediate_fatal_opportunity, isolated_recoverable_failure]
optimizer:
  learning_rate: 0.001
budget:
  batches: 2
  max_steps: 4
seeds: ["17"]
arms:
  - key: A
    title:
      en: The only arm
    role: main
evaluation:
  splits:
    - {{split: test, tasks: 4}}
  repeats: 2
claims:
  reach:
    en: These tasks, this policy, this budget.
  cannot_show:
    en: General ability, safety, behaviour of other policies.
"""


@dataclass(frozen=True)
class Start:
    """One choice. ``key`` is posted."""

    key: str
    title: str
    note: str


def bundled() -> dict[str, dict[str, Any]]:
    """Bundled plans by ``slug:scale``, read as data."""
    found = {}
    for place in sorted((settings.BASE_DIR / "worker" / "studies").glob("*.yaml")):
        content = yaml.safe_load(place.read_text(encoding="utf-8"))
        for scale, over in content["scales"].items():
            found[f"{place.stem}:{scale}"] = _over(content["plan"], over)
    return found


def _over(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {key: _over(base.get(key), over[key]) if key in over else base[key] for key in base | over}
    return over


def starts(principal: Principal) -> list[Start]:
    """Everything that this person may start from."""
    found = [Start("minimal", _("The least that is valid"), _("one arm, one seed, a few minutes"))]
    for key, document in bundled().items():
        slug, scale = key.split(":")
        note = _("bundled: arms %(arms)d, seeds %(seeds)d, batches %(batches)s") % {
            "arms": len(document["arms"]), "seeds": len(document["seeds"]), "batches": document["budget"]["batches"]
        }  # fmt: skip
        found.append(Start(f"bundled:{key}", f"{slug}, {scale}", note))
    rows = visible(principal, Plan.objects.select_related("study")).order_by("study__slug", "slug")
    found += [
        Start(f"plan:{p.study.slug}/{p.slug}", f"{p.study.slug} / {p.slug}", _("a copy of this plan"))
        for p in rows[:200]
    ]
    return found


def start_text(principal: Principal, key: str, *, study: str, name: str) -> str | None:
    """The text that a new plan begins with; None for a choice that does not exist or cannot be seen."""
    kind, _separator, rest = key.partition(":")
    if kind == "minimal":
        return MINIMAL.format(study=study, name=name)
    if kind == "bundled":
        document = bundled().get(rest)
        return dump_plan(_named(document, study, name)) if document else None
    if kind == "plan" and rest.count("/") == 1:
        of_study, slug = rest.split("/")
        plan = visible(principal, Plan.objects.select_related("study", "current_version")).filter(
            study__slug=of_study, slug=slug
        ).first()  # fmt: skip
        return _copy(plan, study, name) if plan is not None else None
    return None


def _named(document: dict[str, Any], study: str, name: str) -> dict[str, Any]:
    return {**document, "study": study, "name": name}


def _copy(plan: Plan, study: str, name: str) -> str:
    try:
        document = parse_plan_text(plan.draft_text)
    except PlanInvalid:
        if plan.current_version is None:
            return plan.draft_text  # unreadable as it is: copied as it is
        return dump_plan(_named(plan_body(plan.current_version)["plan"], study, name))
    return rewrite(plan.draft_text, _named(document, study, name))[0]
