"""What the search finds among claims, sources and figures, out of what the reader may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from evidence.models import Claim, Figure, Source, SourceVersion
from runs.access import Principal, visible
from runs.presenters.search import LIMIT, Hit
from runs.query.values import hash_prefix, text_range, uid_prefix


def find(principal: Principal, query: str) -> list[Hit]:
    """At most ``LIMIT`` hits of each kind, newest first.

    Claims by key or words, sources by path, reference, title or the beginning of a version's hash, figures by key or
    title; each by the beginning of its uid.
    """
    uid = uid_prefix("uid", query) if text_range(query) and len(query.replace("-", "")) <= 32 else None
    words = Q(key__icontains=query) | Q(current__text_en__icontains=query) | Q(current__text_zh__icontains=query)
    hits = _hits(principal, Claim.objects.filter(current__isnull=False), uid, words, _claim)
    words = Q(path__icontains=query) | Q(reference__iexact=query) | Q(title_en__icontains=query)
    words |= Q(title_zh__icontains=query)
    hits += _hits(principal, Source.objects.filter(current__isnull=False), uid, words, _source)
    words = Q(key__icontains=query) | Q(current__title_en__icontains=query) | Q(current__title_zh__icontains=query)
    hits += _hits(principal, Figure.objects.filter(current__isnull=False), uid, words, _figure)
    return hits + _versions(principal, query)


def _hits(
    principal: Principal, rows: QuerySet[Any, Any], uid: Q | None, words: Q, shown: Callable[[Any], Hit]
) -> list[Hit]:
    wanted: QuerySet[Model, Model] = rows.filter(words if uid is None else words | uid)
    return [shown(row) for row in visible(principal, wanted, "study").select_related("study").order_by("-pk")[:LIMIT]]


def _versions(principal: Principal, query: str) -> list[Hit]:
    """Versions of sources by the beginning of their hash; each opens as it was."""
    if not text_range(query) or "-" in query:
        return []
    rows = visible(principal, SourceVersion.objects.filter(hash_prefix("sha256", query)), "source__study")
    return [
        Hit(
            _("source"),
            f"{row.source.path} · {row.number} · {row.source.study.slug}",
            row.sha256,
            f"{reverse('evidence:source', args=[row.source.uid])}?version={row.number}",
        )
        for row in rows.select_related("source__study").order_by("-pk")[:LIMIT]
    ]


def _claim(row: Claim) -> Hit:
    return Hit(_("claim"), f"{row.key} · {row.study.slug}", str(row.uid), reverse("evidence:claim", args=[row.uid]))


def _source(row: Source) -> Hit:
    name = f"{row.reference} {row.path}".strip()
    return Hit(_("source"), f"{name} · {row.study.slug}", str(row.uid), reverse("evidence:source", args=[row.uid]))


def _figure(row: Figure) -> Hit:
    return Hit(_("figure"), f"{row.key} · {row.study.slug}", str(row.uid), reverse("evidence:figure", args=[row.uid]))
