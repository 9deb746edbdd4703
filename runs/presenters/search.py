"""What the search finds, by kind, out of what the reader may see.

Words look at names, four hexadecimal digits or more at the beginnings of uids and hashes, and a term of the
query language leads to the lists that know it. Every look-up by prefix is a range of an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, sees_everything, visible, visible_jobs, visible_studies
from runs.models import BlobRef, Checkpoint, Group, Job, Plan, PlanVersion, Receipt, Run, Task, Trajectory, Turn
from runs.models.plan import heavy
from runs.query.lists import LISTS, of_versions
from runs.query.narrow import filtered, narrow, without_colon
from runs.query.paging import capped_count
from runs.query.parse import QueryError, parse
from runs.query.resolve import Asker, visible_tasks
from runs.query.values import hash_prefix, text_range, uid_prefix
from runs.visibility import visible_checkpoints, visible_receipts

LIMIT = 10


@dataclass(frozen=True)
class Hit:
    """One result: of what kind, its name, the full id or hash that matched, where it opens."""

    kind: Any
    name: str
    identity: str
    url: str


@dataclass(frozen=True)
class Route:
    """A list in which the query's terms have a meaning, with its number of rows."""

    word: Any
    total: str
    url: str


@dataclass(frozen=True)
class Found:
    """Hits by kind; lists under the query; what could not be understood where no list could read it."""

    hits: list[Hit]
    routes: list[Route]
    errors: tuple[QueryError, ...]

    @property
    def by_kind(self) -> list[tuple[Any, list[Hit]]]:
        """Hits under their kinds, in the order of finding."""
        kinds: dict[str, tuple[Any, list[Hit]]] = {}
        for hit in self.hits:
            kinds.setdefault(str(hit.kind), (hit.kind, []))[1].append(hit)
        return list(kinds.values())


Finder = Callable[[Principal, str], list[Hit]]
_FINDERS: dict[str, Finder] = {}  # what other apps find, by their own name


def register_finder(name: str, function: Finder) -> None:
    """Let an app add hits for free words: at most ``LIMIT`` of each kind, out of what the principal may see.

    Called once when the app is ready; the same ``name`` again replaces the function.
    """
    _FINDERS[name] = function


def search(principal: Principal, text: str) -> Found:
    """Everything for one text: free words are looked up, terms with a key are led to their lists."""
    query = parse(text)
    if query.errors:
        return Found([], [], query.errors)
    if not any(term.key or without_colon(term) for term in query.terms):
        words = " ".join(term.values[0] for term in query.terms if not term.negated)
        return Found(find(principal, words), [], ())
    asker = Asker(principal, timezone.now())
    routes, errors = [], []
    for spec in LISTS.values():
        narrowed = narrow(spec, query, asker)
        if narrowed.where is None:
            errors.append(narrowed.errors)
            continue
        count, more = capped_count(filtered(spec, asker, narrowed.where), 1_000)
        if count:
            total = f"{count:,}" + ("+" if more else "")
            routes.append(Route(spec.word, total, f"{reverse(spec.url)}?{urlencode({'q': query.text})}"))
    fewest = min(errors, key=lambda found: (len(found), not any(e.suggestion for e in found)), default=())
    return Found([], routes, () if len(errors) < len(LISTS) else fewest)


def find(principal: Principal, query: str) -> list[Hit]:
    """At most ``LIMIT`` hits of each kind, out of what the principal may see."""
    if len(query) < 2:
        return []
    found = _by_name(principal, query)
    if text_range(query):
        found += _by_uid(principal, query)
        if "-" not in query:
            found += _by_hash(principal, query)
    return found + [hit for finder in _FINDERS.values() for hit in finder(principal, query)]


def run_name(run: Run) -> str:
    """A run's name with its plan's: two plans may hold runs of one name."""
    return run.name if run.plan_version is None else f"{run.name} · {run.plan_version.plan.slug}"


def _run_hits(rows: Iterable[Run]) -> list[Hit]:
    return [Hit(_("run"), run_name(r), str(r.uid), reverse("runs:run", args=[r.uid])) for r in rows]


def _task_hits(rows: Iterable[Task]) -> list[Hit]:
    return [Hit(_("task"), f"{t.key} ({t.split})", t.task_sha256, reverse("runs:task", args=[t.uid])) for t in rows]


def _by_name(principal: Principal, query: str) -> list[Hit]:
    runs = visible(principal, Run.objects.filter(name__icontains=query)).select_related("plan_version__plan")
    hits = _run_hits(runs.defer(*heavy("plan_version__")).order_by("-pk")[:LIMIT])
    hits += [
        Hit(_("study"), s.slug, str(s.uid), reverse("runs:study", args=[s.slug]))
        for s in visible_studies(principal).filter(
            Q(slug__icontains=query) | Q(title_en__icontains=query) | Q(title_zh__icontains=query)
        )[:LIMIT]
    ]
    plans = Plan.objects.filter(Q(slug__icontains=query) | Q(study__slug__icontains=query))
    hits += [
        Hit(_("plan"), p.slug, str(p.uid), reverse("runs:plan", args=[p.study.slug, p.slug]))
        for p in visible(principal, plans).select_related("study")[:LIMIT]
    ]
    hits += _task_hits(visible_tasks(principal).filter(Q(key__icontains=query) | Q(prompt__icontains=query))[:LIMIT])
    hits += [
        Hit(_("job"), f"{j.kind} · {j.state}", str(j.uid), reverse("runs:job", args=[j.uid]))
        for j in visible_jobs(principal).filter(Q(kind__iexact=query) | Q(key=query)).order_by("-pk")[:LIMIT]
    ]
    return hits


def _by_uid(principal: Principal, prefix: str) -> list[Hit]:
    if len(prefix.replace("-", "")) > 32:
        return []
    where = uid_prefix("uid", prefix)
    runs = visible(principal, Run.objects.filter(where)).select_related("plan_version__plan")
    hits = _run_hits(runs.defer(*heavy("plan_version__"))[:LIMIT])
    hits += [
        Hit(_("group"), f"{g.task.key} · {g.ordinal}", str(g.uid), reverse("runs:group", args=[g.uid]))
        for g in of_versions("plan_version", Group)(principal).filter(where).select_related("task")[:LIMIT]
    ]
    trajectories = of_versions("group__plan_version", Trajectory)(principal).filter(where)
    hits += [
        Hit(_("trajectory"), f"{t.group.task.key} · {t.slot}", str(t.uid), reverse("runs:trajectory", args=[t.uid]))
        for t in trajectories.select_related("group__task")[:LIMIT]
    ]
    hits += [
        Hit(_("job"), f"{j.kind} · {j.state}", str(j.uid), reverse("runs:job", args=[j.uid]))
        for j in visible_jobs(principal, Job.objects.filter(where))[:LIMIT]
    ]
    hits += _task_hits(visible_tasks(principal).filter(where)[:LIMIT])
    hits += _checkpoint_hits(principal, where)
    return hits


def _checkpoint_hits(principal: Principal, where: Q) -> list[Hit]:
    rows = visible_checkpoints(principal, Checkpoint.objects.filter(where)).select_related("run")
    return [
        Hit(
            _("checkpoint"),
            f"v{c.policy_version}" + (f" · {c.run.name}" if c.run else ""),
            c.sha256,
            reverse("runs:checkpoint", args=[c.uid]),
        )
        for c in rows[:LIMIT]
    ]


def _by_hash(principal: Principal, prefix: str) -> list[Hit]:
    where = hash_prefix("sha256", prefix)
    hits = [
        Hit(_("receipt"), r.kind, r.sha256, reverse("runs:receipt", args=[r.sha256]))
        for r in visible_receipts(principal, Receipt.objects.filter(where)).defer("bytes")[:LIMIT]
    ]
    versions = visible(principal, PlanVersion.objects.filter(where)).select_related("plan__study").defer(*heavy())
    hits += [
        Hit(_("plan"), v.plan.slug, v.sha256, reverse("runs:plan", args=[v.plan.study.slug, v.plan.slug]))
        for v in versions[:LIMIT]
    ]
    turns = of_versions("trajectory__group__plan_version", Turn)(principal)
    hits += [
        Hit(
            _("capture"),
            f"d{t.decision}",
            t.capture_sha256 or "",
            reverse("runs:trajectory", args=[t.trajectory.uid]) + f"#d{t.decision}",
        )
        for t in turns.filter(hash_prefix("capture_sha256", prefix)).select_related("trajectory")[:LIMIT]
    ]
    hits += _checkpoint_hits(principal, where)
    hits += _task_hits(visible_tasks(principal).filter(hash_prefix("task_sha256", prefix))[:LIMIT])
    groups = of_versions("plan_version", Group)(principal)
    for kind, column in ((_("group record"), "record_sha256"), (_("capture file"), "capture_blob_sha256")):
        hits += [
            Hit(kind, f"{g.task.key} · {g.ordinal}", getattr(g, column), reverse("runs:group", args=[g.uid]))
            for g in groups.filter(hash_prefix(column, prefix)).select_related("task")[:LIMIT]
        ]
    return hits + _blob_hits(principal, where)


def _blob_hits(principal: Principal, where: Q) -> list[Hit]:
    """Blobs belong to no study: only who sees everything finds those that no visible row names."""
    if not sees_everything(principal):
        return []
    rows = BlobRef.objects.filter(where).exclude(kind="captures")[:LIMIT]
    return [
        Hit(_("blob"), f"{b.kind} · {b.bytes:,} B", b.sha256, f"{reverse('runs:checkpoints')}?q=sha:{b.sha256}")
        for b in rows
    ]
