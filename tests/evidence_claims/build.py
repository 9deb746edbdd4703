"""A small study with a frozen plan, sources, figures and people: states are reached through the real actions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.reviews import answer, review
from evidence.actions.sources import add_source
from evidence.models import Claim, ClaimVersion, Excerpt, Figure, Link, Review
from runs import models as m
from runs.actions.actors import person_actor
from runs.actions.closure import AGGREGATE, CLOSURE
from runs.actions.documents import store_document
from runs.models import Actor, Membership, PlanVersion, Study, User
from tests.pages import world as pages
from tests.pages.state import World
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes

AT = datetime(2026, 10, 1, 9, 0, tzinfo=UTC)
NOTE = b"E3 recovered in 13/27 tasks, E2F in 1/27 of the same 27.\nThe mask cuts 4 tokens.\n"
PAIR = ["e2f", "e3"]
BASE: dict[str, Any] = {
    "definition": "evidence_search.recovery/1", "metric": "recovery_all", "unit": "share", "split": "test",
    "condition": "stress", "compare": {"kind": "pair", "arms": PAIR},
}  # fmt: skip
ENDPOINTS: list[dict[str, Any]] = [
    {**BASE, "id": "recovery", "direction": "increase", "margin": 0.1},
    {**BASE, "id": "same", "direction": "none", "equivalence": [-0.1, 0.1]},
    {**BASE, "id": "undirected", "direction": "none"},
    {**BASE, "id": "trained", "direction": "increase", "compare": {"kind": "parent", "arms": PAIR}},
]


def result(difference: float, low: float, high: float, holds: list[str], state: str = "measured") -> dict[str, Any]:
    """One stored result of the pair, in the shape of ``runs.statistics.verdicts.judge``."""
    over = {
        "task_difference": {"value": difference}, "interval": {"low": low, "high": high, "level": 0.95, "tasks": 27},
        "spread": {"sd": 0.02}, "seeds": {"numerator": 3},
    }  # fmt: skip
    may = [*holds, *(["no_regression_observed"] if difference >= 0 else [])]
    contrast = {"over_seeds": over} if state == "measured" else None
    reason = None if state == "measured" else "items_missing"
    return {"arms": PAIR, "state": state, "reason": reason, "holds": holds, "may_say": may, "contrast": contrast}


@dataclass
class Desk:
    """One study and who works in it. ``tick`` moves the clock, so that every record has its own time."""

    study: Study
    version: PlanVersion
    author: Actor
    clock: datetime = AT
    people: dict[str, Actor] = field(default_factory=dict)

    def tick(self) -> datetime:
        """The next minute."""
        self.clock += timedelta(minutes=1)
        return self.clock

    def by(self, actor: Actor | None = None) -> dict[str, Any]:
        """Who and when, for an action."""
        return {"by": actor or self.author, "at": self.tick()}

    def reviewer(self, name: str = "rev", family: str = "") -> Actor:
        """A reviewer; one of a family where it is named, else a person of nobody's family."""
        if family:
            name = f"{family}.{name}"
            if name not in self.people:
                self.people[name] = Actor.objects.create(
                    uid=layout.derive_uid(None, f"actor:service:{name}"), kind=Actor.SERVICE, family=family, name=name
                )
            return self.people[name]
        user = User.objects.get_or_create(username=name)[0]
        Membership.objects.get_or_create(study=self.study, user=user, role=Membership.REVIEWER)
        return person_actor(user)

    def source(self, path: str = "eval/closure.md", data: bytes | None = NOTE, **more: Any) -> Any:
        """A source: held bytes, or a hash alone where ``data`` is None."""
        more.setdefault("origin", "upload" if data is not None else "imported")
        return add_source(self.study, path, data, **more, **self.by())

    def excerpt(self, key: str = "recovered", exact: str = "13/27 tasks", **more: Any) -> Excerpt:
        """A quotation of the note."""
        version = more.pop("version", None) or self.source()
        return add_excerpt(self.study, version, key, "quote", {"exact": exact}, **more, **self.by())

    def figure(self, key: str, number: str = "13/27", kind: str = "environment", **more: Any) -> Figure:
        """A figure that a number of the note binds."""
        excerpt = more.pop("excerpt", None) or self.excerpt(f"at.{key}", "E3 recovered in 13/27 tasks")
        binding = more.pop("binding", None) or {
            "type": "excerpt", "excerpt": excerpt.key, "number": number, "occurrence": 1,
        }  # fmt: skip
        more.setdefault("style", "ratio" if "/" in number else "plain")
        return bind_figure(self.study, key, binding, title_en=key, kind=kind, **more, **self.by()).figure

    def pending(self, key: str = "effect", endpoint: str = "recovery", kind: str = "effect") -> Figure:
        """A figure that the plan's endpoint will fill."""
        binding = {"type": "pending", "fills": {"plan": self.version.plan.slug, "endpoint": endpoint}}
        return self.figure(key, binding=binding, kind=kind, digits=3, number="", excerpt=object())

    def claim(self, key: str = "c1", text: str = "E3 was run on the tasks of the note.", **more: Any) -> Claim:
        """A claim, or its next version. Texts write names as declared ones."""
        more.setdefault("kind", "description")
        more.setdefault("text_en", named(text))
        return self.written(key, **more).claim

    def written(self, key: str, **more: Any) -> ClaimVersion:
        """The version that an addition made."""
        version = add_claim(self.study, key, **more, **self.by())
        version.claim.refresh_from_db()
        return version

    def link(self, claim: Claim, relation: str = "supports", **more: Any) -> Link:
        """A link to an excerpt of the note, unless another piece of evidence is given."""
        if "figure" not in more and "excerpt" not in more:
            more["excerpt"] = self.excerpt(f"for.{claim.key}.{relation}")
        more.setdefault("reach_en", "It says nothing of other tasks.")
        found = add_link(claim, relation=relation, **more, **self.by())
        claim.refresh_from_db()
        return found

    def review(self, claim: Claim, verdict: str = "accept", *, by: Actor | None = None, **more: Any) -> Review:
        """A verdict of an independent reviewer, unless another is given."""
        found = review(
            claim, verdict=verdict, reason="read it", looked_at=["quotation"], **more, **self.by(by or self.reviewer())
        )
        claim.refresh_from_db()
        return found

    def answer(self, to: Review, text: str = "because it says so", **more: Any) -> None:
        """The author's answer."""
        answer(to, text, **more, **self.by())
        to.claim.refresh_from_db()

    def close(self, results: dict[str, dict[str, Any] | list[dict[str, Any]]]) -> None:
        """Close the plan's execution with these results by endpoint (one, or one for each arm), as documents."""
        execution = m.Execution.objects.create(
            uid=layout.execution_uid(str(self.version.uid)), plan_version=self.version, state="closed",
            updated_at=self.tick(),
        )  # fmt: skip
        endpoints = [
            {"endpoint": item, "results": found if isinstance(found, list) else [found]}
            for item in ENDPOINTS
            if (found := results.get(item["id"])) is not None
        ]
        aggregate = store_document(AGGREGATE, execution.uid, canonical_bytes({"endpoints": endpoints}))
        closure = {"plan_sha256": self.version.sha256, "aggregate_sha256": aggregate.sha256}
        store_document(CLOSURE, execution.uid, canonical_bytes(closure))


def named(text: str) -> str:
    """The arms of the texts below as declared names."""
    for name in ("E2F", "E3"):
        text = text.replace(name, f"{{{{name:{name}}}}}")
    return text


def desk(visibility: str = "public") -> Desk:
    """A study whose plan registered ``ENDPOINTS``; its author is a researcher of it."""
    original = pages.plan_document

    def document(batches: int, seeds: list[str]) -> dict[str, Any]:
        return json.loads(json.dumps({**original(batches, seeds), "endpoints": ENDPOINTS}))

    user = User.objects.get_or_create(username="author")[0]
    author = person_actor(user)
    world = World()
    pages.plan_document = document
    try:
        pages._freeze(world, author, 4, ["17"])
    finally:
        pages.plan_document = original
    study = Study.objects.get(pk=world.study.pk)
    if study.visibility != visibility:
        Study.objects.filter(pk=study.pk).update(visibility=visibility)
        study.refresh_from_db()
    Membership.objects.get_or_create(study=study, user=user, role=Membership.RESEARCHER)
    return Desk(study, PlanVersion.objects.select_related("plan__study").get(pk=world.version.pk), author)
