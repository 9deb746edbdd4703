"""Claims as rows of the notes page: words, verdict, what they stand on, what is still missing; from the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from evidence.binding.tokens import figure_keys
from evidence.models import Claim, Link
from evidence.notes.rich import Rich, Said
from evidence.presenters.chips import Chip
from runs.models import Study


@dataclass(frozen=True)
class LoadedClaim:
    """A claim with its current words, the keys of the figures that links name, and the labels of linked sources."""

    claim: Claim
    evidence: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class ClaimRow:
    """One line of the table. ``evidence``: chips of linked figures; ``cites``: the sources that links quote."""

    claim: Claim
    text: Said
    scope: Said
    missing: Said
    evidence: list[Chip]
    cites: list[SafeString]

    @property
    def state(self) -> str:
        """The derived status."""
        return self.claim.status


def claims_of(study: Study, keys: Iterable[str]) -> dict[str, LoadedClaim]:
    """The named claims by key: one query for them, one for what they are linked to."""
    rows = list(Claim.objects.filter(study=study, key__in=sorted(keys)).select_related("current"))
    figures: dict[int, dict[str, None]] = {}
    sources: dict[int, dict[str, None]] = {}
    if rows:
        links = Link.objects.filter(claim__in=rows, withdrawal__isnull=True).order_by("pk")
        names = ("claim_id", "figure__key", "excerpt__version__source__reference")
        for claim, key, reference in links.values_list(*names):
            if key:
                figures.setdefault(claim, {})[key] = None
            elif reference:
                sources.setdefault(claim, {})[reference] = None
    return {row.key: LoadedClaim(row, tuple(figures.get(row.pk, ())), tuple(sources.get(row.pk, ()))) for row in rows}


def figures_of(claims: Mapping[str, LoadedClaim]) -> set[str]:
    """Keys of every figure that the claims show: in their words and by their links."""
    found: set[str] = set()
    for loaded in claims.values():
        found.update(loaded.evidence)
        words = loaded.claim.current
        if words is not None:
            found.update(
                figure_keys(
                    [words.text_en, words.text_zh, words.scope_en, words.scope_zh, words.missing_en, words.missing_zh]
                )
            )
    return found


def claim_rows(claims: Mapping[str, LoadedClaim], rich: Rich) -> dict[str, ClaimRow]:
    """Rows by key."""
    return {key: _row(loaded, rich) for key, loaded in claims.items()}


def _row(loaded: LoadedClaim, rich: Rich) -> ClaimRow:
    words = loaded.claim.current
    texts = {
        name: rich.said({"en": getattr(words, f"{name}_en", ""), "zh": getattr(words, f"{name}_zh", "")})
        for name in ("text", "scope", "missing")
    }
    evidence = [rich.chips[key] for key in loaded.evidence if key in rich.chips]
    cites = [rich.citation(label) for label in loaded.sources]
    return ClaimRow(loaded.claim, texts["text"], texts["scope"], texts["missing"], evidence, cites)
