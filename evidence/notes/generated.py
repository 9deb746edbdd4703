"""The notes of a bundled study of our own, generated after each closed execution from what it recorded.

Sources are its plan, closure, manifests, receipts and trials; figures are bound to them; the wording of each claim
follows the plan's rules. What has no result is said so. A plan with a mechanism pilot has a page as soon as it has
ended: the effect cells are pending until closing fills them. A page that a person has saved since is never replaced.
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
from evidence.ingest.tried import pilot_ended
from evidence.models import Claim, NotesVersion, Source
from evidence.notes.own_blocks import document_of
from evidence.notes.own_claims import LAST, claim_all
from evidence.notes.own_figures import LABELS, Own, bind_all, prefix_of
from evidence.notes.own_trial_claims import PILOT_LAST, claim_trials
from evidence.notes.own_trials import bind_trials, has_trials, last_document
from runs.errors import DomainError
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
    """Bind, claim and write the page of an execution; the version that is current then.

    None for a study whose page the product does not generate. The same execution again changes nothing. Of several
    executions the page reports the one with most evaluation items. Raises ``DomainError`` before the execution is
    closed or its pilot has ended.
    """
    own = Own(execution, by, at)
    if not is_told(own.study.slug):
        return None
    if not own.is_closed and not pilot_ended(own.version):
        raise DomainError("execution: got one that goes on and has no ended pilot, expected either")
    prose = copy.deepcopy(_prose_of(own.study.slug))
    _sources(own)
    bind_all(own)
    bind_trials(own)
    claims = [*claim_all(own, prose["reach"])]
    claims = [*claim_trials(own), *claims]
    newest = NotesVersion.objects.filter(study=own.study).order_by("-number").first()
    if newest is not None and newest.actor_id != by.pk:
        return newest  # people's own words
    if not _leads(own) or _was_closed_since(own):
        return newest
    document = document_of(own, prose, claims, _others(execution))
    what = "closed execution" if own.is_closed else "ended pilot"
    return save_notes(own.study, document, by=by, at=at, reason=f"generated from the {what} of {own.version.plan.slug}")


def _was_closed_since(own: Own) -> bool:
    """Whether the execution of a pilot's page was closed meanwhile: that page is another one's to write."""
    return not own.is_closed and Execution.objects.filter(pk=own.execution.pk, state="closed").exists()


def without_notes() -> list[Execution]:
    """Executions whose page the product generates and no generation has finished: closed, or with an ended pilot.

    The oldest first.
    """
    known = Execution.objects.filter(plan_version__plan__study__slug__in=_told())
    executions = list(known.select_related("plan_version__plan__study").order_by("pk"))
    studies = {item.plan_version.plan.study_id for item in executions}
    written = set(NotesVersion.objects.filter(study__in=studies).values_list("study_id", flat=True))
    said = set(Claim.objects.filter(study__in=studies).values_list("study_id", "key"))
    found = []
    for item in executions:
        study, closed = item.plan_version.plan.study_id, item.state == "closed"
        last = f"{prefix_of(item.plan_version)}.{LAST if closed else PILOT_LAST}"
        if (study not in written or (study, last) not in said) and (closed or pilot_ended(item.plan_version)):
            found.append(item)
    return found


def _sources(own: Own) -> None:
    """The execution's documents as sources, with the short names under which the page cites them."""
    needed = [*(["closure.json"] if own.is_closed else []), *([last_document(own)] if has_trials(own) else [])]
    if not all(own.has(file) for file in needed):
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


def _leads(own: Own) -> bool:
    """Whether no closed execution of the study has more evaluation items: one that is not closed stands behind all."""
    if not own.is_closed:
        return not any(True for _ in _closed(own.execution))
    most = _items(own.execution)
    return all(_items(other) <= most for other in _closed(own.execution))


def _others(execution: Execution) -> list[Execution]:
    return [other for other in _closed(execution) if other.pk != execution.pk]
