"""What stands around every page: studies, sections with their counts, breadcrumb."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Sum
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, visible, visible_jobs, visible_studies
from runs.models import EvaluationItem, Execution, Plan, Run, RunHead, Study
from runs.presenters.trials.links import asks_for_trials
from runs.visibility import troubled_jobs, visible_checkpoints, visible_heads

TROUBLED_RUNS = ("interrupted", "stopped", "partial_invalid")
EXPECTED_RUNS = ("refused",)  # by a gate that the frozen plan bound: an outcome, no trouble


# Sections without a count: what plans draw from; help and the interface for scripts.
CATALOGUE = (
    ("runs:task_sets", _("Task sets")),
    ("runs:tasks", _("Tasks")),
    ("runs:environments", _("Environments")),
    ("runs:controls", _("Environment controls")),
    ("runs:models", _("Models")),
)
WITHIN_RUNS = (
    ("runs:logged", _("Logged runs")),
    ("runs:groups", _("Groups")),
    ("runs:trajectories", _("Trajectories")),
    ("runs:compare", _("Compare")),
)
# Sections of the app that stands above this one: named by their address, so that nothing of it is imported here.
EVIDENCE = (
    ("evidence:claims", _("Claims")),
    ("evidence:sources", _("Sources")),
    ("evidence:figures", _("Figures")),
    ("evidence:reviews", _("Reviews")),
    ("evidence:stale", _("Stale")),
)
# Pages of one study in that app: its study stands in the address.
OF_STUDY = (
    ("evidence:notes", _("Research note")),
    ("evidence:journal", _("Journal")),
    ("evidence:exports", _("Exports")),
)
HELP = (("runs:query_language", _("Query language")), ("api_docs", _("API")))


@dataclass(frozen=True)
class Crumb:
    """One step of the breadcrumb; ``url`` None for the page itself."""

    word: Any
    url: str | None = None


@dataclass(frozen=True)
class NavItem:
    """One section of the rail. ``count`` None: nothing worth counting. ``first``: it opens a block of sections.

    ``heading``: of which studies this section and those below it are; empty where that is plain.
    """

    word: Any
    url: str
    count: int | None
    current: bool
    alert: bool = False
    first: bool = False
    heading: Any = ""


@dataclass(frozen=True)
class Frame:
    """Everything that the base template needs."""

    study: Study | None
    studies: list[Study]
    nav: list[NavItem]
    crumbs: list[Crumb]


Count = int | None
_COUNTS: dict[str, Callable[[Principal], dict[str, Count]]] = {}  # what other apps count, by their own name
ALERTS = frozenset({"reviews"})  # sections whose count asks for something to be done

RUN_HEAD_STUDY = "run__plan_version__plan__study"


def register_counts(name: str, function: Callable[[Principal], dict[str, Count]]) -> None:
    """Let an app count its sections: ``function`` gives counts by section for a principal, None for no count.

    Called once when the app is ready; the same ``name`` again replaces the function.
    """
    _COUNTS[name] = function


def attention_count(principal: Principal) -> int:
    """Visible runs and jobs that a person should look at."""
    heads = visible(principal, RunHead.objects.filter(state__in=TROUBLED_RUNS), RUN_HEAD_STUDY)
    jobs = troubled_jobs(principal)
    found: int = principal.once("attention", lambda: heads.count() + jobs.count())
    return found


def _executed(principal: Principal, study: Study | None) -> Execution | None:
    """The execution whose results the rail links: the newest of the page's study, else of all visible ones."""
    rows = (
        visible(principal, Execution.objects.all())
        .select_related("plan_version__plan__study")
        .defer("plan_version__bytes")
        .order_by("-updated_at")
    )
    if study is not None:
        rows = rows.filter(plan_version__plan__study=study)
    return rows.first()


def _plain(entries: Iterable[tuple[str, Any]], section: str) -> list[NavItem]:
    """Sections without a count; the first of them opens a block."""
    return [
        NavItem(word, reverse(name), None, name.rpartition(":")[2] == section, first=at == 0)
        for at, (name, word) in enumerate(entries)
    ]


def _addresses(entries: Iterable[tuple[str, Any]], *args: str) -> list[tuple[str, Any, str]]:
    """(name, word, address) of those sections whose pages this installation has."""
    found = []
    for address, word in entries:
        try:
            found.append((address.rpartition(":")[2], word, reverse(address, args=args)))
        except NoReverseMatch:
            continue
    return found


def _evidence(principal: Principal, section: str) -> list[NavItem]:
    """Sections of claims and what they rest on, with counts over all studies."""
    counts: dict[str, Count] = {}
    for function in _COUNTS.values():
        counts.update(function(principal))
    return [
        NavItem(
            word,
            url,
            counts.get(name),
            name == section,
            name in ALERTS and bool(counts.get(name)),
            first=at == 0,
        )
        for at, (name, word, url) in enumerate(_addresses(EVIDENCE))
    ]


def _own_pages(section: str, study: Study | None) -> list[NavItem]:
    """Pages that one study has of its own."""
    if study is None:
        return []
    return [NavItem(word, url, None, name == section) for name, word, url in _addresses(OF_STUDY, study.slug)]


def _headed(items: list[NavItem], heading: Any) -> list[NavItem]:
    """The same sections under a heading."""
    return [replace(item, heading=heading if at == 0 else "") for at, item in enumerate(items)]


def pages_of(study: Study) -> list[tuple[Any, str]]:
    """(word, address) of the pages that one study has of its own in the app of evidence."""
    return [(word, url) for _name, word, url in _addresses(OF_STUDY, study.slug)]


def evidence_of(study: Study) -> list[tuple[Any, str]]:
    """The same, and everything that the study's claims rest on."""
    return [*pages_of(study), *((word, f"{url}?study={study.slug}") for _name, word, url in _addresses(EVIDENCE))]


def _counted(principal: Principal, section: str) -> dict[str, NavItem]:
    """Sections with what they hold, by name; counts are of everything that the principal may see."""
    attention = attention_count(principal)
    entries: list[tuple[str, Any, int | None, bool]] = [
        ("now", _("Now"), attention or None, attention > 0),
        ("plans", _("Plans"), visible(principal, Plan.objects.all()).count(), False),
        ("runs", _("Runs"), visible(principal, Run.objects.all()).count(), False),
        ("evaluations", _("Evaluations"), visible(principal, EvaluationItem.objects.all()).count(), False),
        ("checkpoints", _("Checkpoints"), visible_checkpoints(principal).count(), False),
        ("receipts", _("Receipts"), visible_heads(principal).aggregate(n=Sum("seq"))["n"] or 0, False),
        ("jobs", _("Jobs"), visible_jobs(principal).exclude(state__in=("succeeded", "cancelled")).count(), False),
    ]
    return {
        name: NavItem(word, reverse(f"runs:{name}"), count, name == section, alert, first=name == "runs")
        for name, word, count, alert in entries
    }


def _outcomes(executed: Execution | None, section: str) -> list[NavItem]:
    """Results, first strict pair, discarded work and lineage of one execution; none where nothing was executed."""
    if executed is None:
        return []
    version = executed.plan_version
    at = [version.plan.study.slug, version.plan.slug]
    entries = [("results", _("Results"), "runs:results", at)]
    if version.strict_pairs:
        entries.append(("pair", _("Strict pair"), "runs:pair", [*at, *version.strict_pairs[0]["arms"]]))
    if asks_for_trials(version):
        entries.append(("edit_credit", _("Edit credit"), "runs:edit_credit", at))
    entries.append(("discarded", _("Discarded"), "runs:plan_discarded", at))
    entries.append(("lineage", _("Lineage"), "runs:lineage", at))
    return [
        NavItem(word, reverse(name, args=args), None, key == section, first=key == "results")
        for key, word, name, args in entries
    ]


def build_frame(principal: Principal, section: str, study: Study | None, crumbs: list[Crumb]) -> Frame:
    """The frame of a page in ``section``.

    Counts and lists are of all studies that the principal may see. Where those are several and the page is of one, the
    rail says which sections are that study's alone, and names the others as those of all.
    """
    counted = _counted(principal, section)
    within = [replace(item, first=False) for item in _plain(WITHIN_RUNS, section)]
    within.append(NavItem(_("Metrics"), reverse("runs:metrics_table"), None, section == "metrics"))
    outcomes = _outcomes(_executed(principal, study), section)
    records = [counted["evaluations"], counted["checkpoints"], counted["receipts"], counted["jobs"]]
    studies = list(visible_studies(principal).order_by("slug"))
    chosen = study or (studies[0] if len(studies) == 1 else None)
    claims, own = _evidence(principal, section), _own_pages(section, chosen)
    records[0] = replace(records[0], first=bool(claims) or not outcomes)
    before, after = (
        [counted["now"], counted["plans"], counted["runs"], *within],
        [*records, *_plain(CATALOGUE, section)],
    )
    if study is not None and len(studies) > 1:
        page = NavItem(_("Overview"), reverse("runs:study", args=[study.slug]), None, section == "study")
        mine = [page, *(replace(item, first=False) for item in outcomes), *own]
        nav = _headed(mine, _("In this study")) + _headed([*before, *claims, *after], _("In all studies"))
    else:
        nav = [*before, *outcomes, *claims, *own, *after]
    nav += _plain(HELP, section)
    return Frame(chosen, studies, nav, crumbs)
