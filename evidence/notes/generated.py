"""The notes of a bundled study of our own, generated after each closed execution from what it recorded.

Sources are its plan, closure, manifests and receipts; figures are bound to them; the wording of each claim follows
the plan's rules. What has no result is said so. A page that a person has saved since is never replaced.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evidence.actions.notes import save_notes
from evidence.actions.sources import add_source, collect_own
from evidence.models import Claim, NotesVersion, Source
from evidence.notes.own_blocks import document_of
from evidence.notes.own_claims import LAST, claim_all
from evidence.notes.own_figures import LABELS, Own, bind_all, prefix_of
from runs.models import Actor, EvaluationItem, Execution

FOLDER = Path(__file__).resolve().parent / "own"
LONGEST_REFERENCE = 32


def is_told(study_slug: str) -> bool:
    """Whether the product generates notes of this study."""
    return study_slug in _told()


@cache
def _told() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def _prose_of(slug: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{slug}.yaml").read_text(encoding="utf-8"))
    return found


def generate_notes(execution: Execution, *, by: Actor, at: datetime.datetime) -> NotesVersion | None:
    """Bind, claim and write the page of a closed execution; the version that is current then.

    None for a study whose page the product does not generate. The same execution again changes nothing. Of several
    closed executions the page reports the one with most evaluation items. Raises ``DomainError`` before it is closed.
    """
    own = Own(execution, by, at)
    if not is_told(own.study.slug):
        return None
    prose = copy.deepcopy(_prose_of(own.study.slug))
    _sources(own)
    bind_all(own)
    claims = claim_all(own, prose["reach"])
    newest = NotesVersion.objects.filter(study=own.study).order_by("-number").first()
    if newest is not None and newest.actor_id != by.pk:
        return newest  # people's own words
    if not _leads(execution):
        return newest
    document = document_of(own, prose, claims, _others(execution))
    reason = f"generated from the closed execution of {own.version.plan.slug}"
    return save_notes(own.study, document, by=by, at=at, reason=reason)


def without_notes() -> list[Execution]:
    """Closed executions of studies whose page the product generates, which no generation has finished; oldest first."""
    closed = Execution.objects.filter(state="closed", plan_version__plan__study__slug__in=_told())
    executions = list(closed.select_related("plan_version__plan__study").order_by("pk"))
    studies = {item.plan_version.plan.study_id for item in executions}
    written = set(NotesVersion.objects.filter(study__in=studies).values_list("study_id", flat=True))
    said = set(Claim.objects.filter(study__in=studies).values_list("study_id", "key"))
    return [
        item
        for item in executions
        if (study := item.plan_version.plan.study_id) not in written
        or (study, f"{prefix_of(item.plan_version)}.{LAST}") not in said
    ]


def _sources(own: Own) -> None:
    """The execution's documents as sources, with the short names under which the page cites them."""
    if not Source.objects.filter(study=own.study, path=own.path("closure.json")).exists():
        collect_own(own.study, by=own.by, at=own.at)
    taken = set(Source.objects.filter(study=own.study).values_list("reference", flat=True))
    for name, (file, title) in LABELS.items():
        source = Source.objects.filter(study=own.study, path=own.path(file)).select_related("current").first()
        reference = own.key(name)
        if source is None or source.current is None or source.reference or reference in taken:
            continue
        if reference[0].isalpha() and len(reference) <= LONGEST_REFERENCE:
            add_source(
                own.study, source.path, None, origin=source.origin, by=own.by, at=own.at, sha256=source.current.sha256,
                form=source.form, reference=reference, title_en=title["en"], title_zh=title["zh"],
            )  # fmt: skip


def _items(execution: Execution) -> int:
    return EvaluationItem.objects.filter(plan_version=execution.plan_version).count()


def _closed(execution: Execution) -> Iterable[Execution]:
    study = execution.plan_version.plan.study
    rows = Execution.objects.filter(plan_version__plan__study=study, state="closed")
    return rows.select_related("plan_version__plan__study").order_by("pk")


def _leads(execution: Execution) -> bool:
    """Whether no closed execution of the study has more evaluation items."""
    own = _items(execution)
    return all(_items(other) <= own for other in _closed(execution))


def _others(execution: Execution) -> list[Execution]:
    return [other for other in _closed(execution) if other.pk != execution.pk]
