"""Step 14: every figure recomputed from what it is bound to; a disagreement is named by the figure's key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evidence.models import Figure
from evidence.report import StepLog

CHUNK = 500


def figures() -> Iterator[tuple[Figure, Any]]:
    """Every figure that is bound, with the resolver of its study, which reads each source once."""
    from evidence.binding.figures import Resolver

    rows = Figure.objects.filter(current__isnull=False).select_related("study", "current__plan_version__plan")
    resolver = None
    for figure in rows.order_by("study", "pk").iterator(chunk_size=CHUNK):
        if resolver is None or resolver.study.pk != figure.study_id:
            resolver = Resolver(figure.study)
        resolver.load([figure])
        yield figure, resolver


def check_figures(log: StepLog) -> None:
    """The value that is stored is the value that its binding gives now; the state is the state now."""
    from evidence.binding.figures import recompute

    for figure, resolver in figures():
        log.count()
        with log.reading("evidence_figure", figure.key):
            found = recompute(figure, resolver)
            version = figure.current
            assert version is not None
            log.compare("evidence_figure", figure.key, {"state": found.state}, figure)
            if found.state == Figure.DRIFTED:
                got = f"{version.value}: {found.trouble}"
                log.problem("evidence_figureversion", figure.key, "value", expected=found.value, got=got)
