"""Step 12, summaries of trials: what a source says of an execution's trials is what its records give now.

Such a document is an extract that the product made: its bytes may be intact and still say something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evidence.actions.versions import BytesUnavailable, read_version
from evidence.ingest.names import OWN
from evidence.ingest.tried import SCHEMA, trial_documents
from evidence.models import Source
from evidence.report import StepLog
from runs.models import Execution
from workbench.contracts.canonical import parse_canonical

Leaf = tuple[str, Any]


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """(pointer, value) of everything that is no object."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}/{name}")
    else:
        yield path, value


def check_own(log: StepLog) -> None:
    """Every value of every summary that is a source. One of another form, by another version, is not compared."""
    rows = Execution.objects.filter(plan_version__trial_sets__isnull=False).distinct()
    for execution in rows.select_related("plan_version__plan").order_by("pk"):
        version = execution.plan_version
        base = f"{OWN}/{version.plan.slug}/{version.number}"
        known = Source.objects.filter(study=version.plan.study_id, path__startswith=f"{base}/trials/")
        sources = {source.path: source for source in known.select_related("current")}
        if not sources:
            continue
        for name, data in trial_documents(execution):
            source = sources.get(f"{base}/{name}")
            if source is not None and source.current is not None and source.origin == Source.EXPORT:
                log.count()
                with log.reading("evidence_source", source.path):
                    _compare(log, source, dict(leaves(parse_canonical(data))))


def _compare(log: StepLog, source: Source, expected: Mapping[str, Any]) -> None:
    assert source.current is not None
    try:
        stored = parse_canonical(read_version(source.current))
    except BytesUnavailable:
        return  # said of the source itself
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        return
    for pointer, got in leaves(stored):
        if pointer in expected and expected[pointer] != got:
            log.problem("evidence_source", source.path, pointer, expected=expected[pointer], got=got)
