"""Step 14: every figure recomputed from what it is bound to; a disagreement is named by the figure's key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from evidence.models import Figure, StaleMark
from evidence.propagation import FIGURE, VERSION
from evidence.report import StepLog
from runs.models import Study

CHUNK = 500


def figures(study: Study | None = None) -> Iterator[tuple[Figure, Any]]:
    """Every figure (of one study) that is bound, with the resolver of its study, which reads each source once."""
    from evidence.binding.figures import Resolver

    rows = Figure.objects.filter(current__isnull=False).select_related("study", "current__plan_version__plan")
    if study is not None:
        rows = rows.filter(study=study)
    resolver = None
    for figure in rows.order_by("study", "pk").iterator(chunk_size=CHUNK):
        if resolver is None or resolver.study.pk != figure.study_id:
            resolver = Resolver(figure.study)
        resolver.load([figure])
        yield figure, resolver


def says_so(figure: Figure) -> bool:
    """Whether a drifted figure says that it is: its state, and a mark that what it rests on was replaced.

    A source that was corrected with a reason, or another figure that was bound anew, is no fault of the record.
    Bytes that differ from their hash are one, whatever the mark says.
    """
    marks = StaleMark.objects.filter(target_kind=FIGURE, target_uid=figure.uid)
    standing = marks.filter(Q(resolution__isnull=True) | Q(resolution__how="confirmed"))
    causes = set(standing.values_list("cause_kind", flat=True))
    return figure.state == Figure.DRIFTED and bool(causes) and VERSION not in causes


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
            _kind(log, figure)
            _typed(log, figure, resolver)
            if found.state == Figure.DRIFTED and not says_so(figure):
                got = f"{version.value}: {found.trouble}"
                log.problem("evidence_figureversion", figure.key, "value", expected=found.value, got=got)


def _kind(log: StepLog, figure: Figure) -> None:
    """An effect rests on effects alone, a native one on a closed execution, or it has no value yet."""
    version = figure.current
    assert version is not None
    form = version.binding["type"]
    if version.kind == "effect" and form == "derivation":
        _operands(log, figure, "kind", "effect", "a derivation of effects alone")
    if version.origin != "native":
        return
    if form == "derivation":
        _operands(log, figure, "origin", "native", "a derivation of native figures alone")
    elif version.kind == "effect" and form not in ("endpoint", "cell_rate", "pending", "unavailable"):
        expected = "an effect of a closed execution"
        log.problem("evidence_figureversion", figure.key, "kind", expected=expected, got=f"a binding of type {form}")


def _operands(log: StepLog, figure: Figure, column: str, wanted: str, expected: str) -> None:
    """Every operand of a derivation has the kind or origin that is wanted."""
    assert figure.current is not None
    found = set(figure.current.inputs.values_list(f"figure__current__{column}", flat=True))
    if found != {wanted}:
        log.problem("evidence_figureversion", figure.key, column, expected=expected, got=", ".join(sorted(found)))


def _typed(log: StepLog, figure: Figure, resolver: Any) -> None:
    """No number that somebody typed passes as measured: the rule of today, whenever the figure was bound."""
    from evidence.binding.figures import BindingError, check_typed, operands_of

    version = figure.current
    assert version is not None
    names = version.binding.get("figures", {})
    try:
        operands = operands_of((name, resolver.figure(key)) for name, key in names.items())
        check_typed(version.kind, version.binding, operands)
    except BindingError as error:
        expected = "an effect that is computed from measured figures alone"
        log.problem("evidence_figureversion", figure.key, "binding", expected=expected, got=str(error))
