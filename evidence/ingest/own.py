"""What our own executions recorded, as documents that pages can cite: plan, closure, manifests, receipts, trials.

Nothing here changes after an execution is closed, so each document has the same hash however often it is written. Of
one that goes on there is what has ended for good: its frozen plan and its mechanism pilot.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evidence.ingest.names import OWN
from evidence.ingest.tried import TITLES, pilot_ended, trial_documents
from evidence.models import Source
from runs.actions.closure import AGGREGATE, CLOSURE, EVALUATION_MANIFEST, RUN_MANIFEST, endpoint_results
from runs.models import Document, Execution, PlanVersion, Receipt, Run, Study
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex

CLOSED = "execution.closed"  # the receipt after which nothing of the execution's stream belongs to its result
RESULT_COLUMNS = (
    "id", "metric", "condition", "split", "compare", "first", "second", "state", "difference", "low", "high", "level",
    "tasks", "seeds", "seed_mean", "seed_sd", "distinguished",
)  # fmt: skip


@dataclass(frozen=True)
class Own:
    """One document and where it stands among the study's sources."""

    path: str
    origin: str
    form: str
    data: bytes
    sha256: str
    title_en: str
    title_zh: str


def _own(path: str, origin: str, form: str, data: bytes, title_en: str, title_zh: str) -> Own:
    return Own(f"{OWN}/{path}", origin, form, data, sha256_hex(data), title_en, title_zh)


def records(study: Study) -> Iterator[Own]:
    """Documents of every closed execution of a study, and of every ended pilot; the oldest execution first."""
    known = Execution.objects.filter(plan_version__plan__study=study)
    for execution in known.select_related("plan_version__plan").order_by("pk"):
        if execution.state == "closed":
            yield from _of_execution(execution)
        elif pilot_ended(execution.plan_version):
            yield from _of_pilot(execution)


def _document(kind: str, uid: Any) -> bytes | None:
    found = Document.objects.filter(kind=kind, subject_uid=uid).values_list("bytes", flat=True).first()
    return None if found is None else bytes(found)


def _of_pilot(execution: Execution) -> Iterator[Own]:
    """Plan and pilot of an execution that is not closed."""
    version = execution.plan_version
    base, label = _names(version)
    yield _own(f"{base}/plan.json", Source.RECEIPT, "json", bytes(version.bytes), f"Plan {label}", f"方案 {label}")
    yield from _trials(execution)


def _trials(execution: Execution) -> Iterator[Own]:
    base, label = _names(execution.plan_version)
    for name, data in trial_documents(execution):
        yield _own(f"{base}/{name}", Source.EXPORT, "json", data, *(title.format(label) for title in TITLES[name]))


def _names(version: PlanVersion) -> tuple[str, str]:
    """(folder, label) of a plan version among the sources."""
    return f"{version.plan.slug}/{version.number}", f"{version.plan.slug}@{version.number}"


def _of_execution(execution: Execution) -> Iterator[Own]:
    version = execution.plan_version
    base, label = _names(version)
    closure = _document(CLOSURE, execution.uid)
    if closure is None:
        return
    yield _own(f"{base}/plan.json", Source.RECEIPT, "json", bytes(version.bytes), f"Plan {label}", f"方案 {label}")
    body = parse_canonical(closure)
    runs = {str(run.uid): run for run in Run.objects.filter(execution=execution)}
    for entry in body["runs"]:
        data = _document(RUN_MANIFEST, entry["uid"])
        if data is not None:
            name = runs[entry["uid"]].name
            title = f"Manifest of run {name}, {label}", f"{label} 中运行 {name} 的清单"
            yield _own(f"{base}/runs/{name}.json", Source.RECEIPT, "json", data, *title)
    for entry in body["evaluations"]:
        data = _document(EVALUATION_MANIFEST, entry["uid"])
        if data is not None:
            name = f"{entry['checkpoint_uid'][:8]}-{entry['condition']}-{entry['uid'][:8]}"
            title = f"Evaluation items, {entry['condition']}, {label}", f"{label} 的评估条目，{entry['condition']}"
            yield _own(f"{base}/evaluations/{name}.json", Source.RECEIPT, "json", data, *title)
    aggregate = _document(AGGREGATE, execution.uid)
    if aggregate is not None:
        title = f"Evaluation summary of {label}", f"{label} 的评估汇总"
        yield _own(f"{base}/summary.json", Source.RECEIPT, "json", aggregate, *title)
        title = f"Endpoints of {label} as a table", f"{label} 的终点指标表"
        yield _own(f"{base}/endpoints.csv", Source.EXPORT, "csv", endpoint_table(parse_canonical(aggregate)), *title)
    title = f"Receipts of the execution of {label}", f"{label} 执行过程的回执"
    yield _own(f"{base}/receipts.jsonl", Source.RECEIPT, "jsonl", _receipts(execution), *title)
    yield from _trials(execution)
    # last: where the closure is a source, everything else is one too
    yield _own(f"{base}/closure.json", Source.CLOSURE, "json", closure, f"Closure of {label}", f"{label} 的封存清单")


def _receipts(execution: Execution) -> bytes:
    """The execution's chain up to its closing, a receipt a line, each the exact bytes that its hash covers."""
    rows = Receipt.objects.filter(stream=f"execution:{execution.uid}").order_by("seq")
    last = rows.filter(kind=CLOSED).values_list("seq", flat=True).last()
    chosen = rows if last is None else rows.filter(seq__lte=last)
    return b"".join(bytes(data) + b"\n" for data in chosen.values_list("bytes", flat=True).iterator(chunk_size=500))


def endpoint_table(aggregate: dict[str, Any]) -> bytes:
    """Every registered endpoint as CSV; numbers as the canonical form writes them, nothing where none was measured."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(RESULT_COLUMNS)
    for result in endpoint_results(aggregate):
        arms = [*(result["arms"] or []), "", ""]
        row = {**result, "first": arms[0], "second": arms[1]}
        writer.writerow([_written(row[name]) for name in RESULT_COLUMNS])
    return target.getvalue().encode()


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_bytes(value).decode()
