"""Tables of the documents against the code that they describe: rights, statistics, operations, client, plan, checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest

from evidence.verify import STEPS
from runs.access import ROLES, SCOPES
from runs.metrics import sealing
from runs.mlflow import writing
from runs.readings.table import READINGS
from runs.statistics import verdicts
from runs.statistics.contrasts import PASS_METRICS
from runs.statistics.items import METRICS
from workbench import client, db, web
from workbench.benchmarks.metrics import GOALS
from workbench.benchmarks.servers import MLFLOW_VERSION
from workbench.client import handles
from workbench.contracts.plan_schema import PLAN, REQUIRED, Field, ListOf, Optional
from workbench.importers import FORMATS
from workbench.operations import metrics, readiness, server, traffic
from worker.environments.conformance.examine import CHECKS

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = {11: "eleven", 16: "Sixteen", 17: "Seventeen"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def table(document: str, head: str) -> list[list[str]]:
    """Cells of each row of the table whose first line begins with ``head``; ``\\|`` is no border."""
    lines = text_of(document).partition(f"\n{head}")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines, f"{document}: no table {head!r}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_roles_of_the_table_of_rights_are_those_of_the_code() -> None:
    """A row that names several capabilities says who has at least one of them."""
    rows = table("docs/rights.md", "| In a study |")
    order = ("viewer", "researcher", "reviewer", "worker", "admin")
    assert {name for row in rows for name in codes(row[0])} == set().union(*ROLES.values())
    for title, *marks in rows:
        expected = ["yes" if ROLES[role] & set(codes(title)) else "–" for role in order]
        assert marks == expected, title


def test_scopes_of_the_table_are_those_of_the_code() -> None:
    rows = {codes(scope)[0]: set(codes(through)) for scope, through in table("docs/rights.md", "| Scope |")}
    assert rows == {scope: set(through) for scope, through in SCOPES.items()}


def test_statistics_names_every_metric_word_and_sentence() -> None:
    listed = {name for row in table("docs/statistics.md", "| id | 1 (or the value) means |") for name in codes(row[0])}
    assert listed == {*METRICS, *PASS_METRICS}
    words = {codes(row[0])[0] for row in table("docs/statistics.md", "| word | rule |")}
    sentences = {name for row in table("docs/statistics.md", "| id | sentence |") for name in codes(row[0])}
    assert words == {*verdicts.RULED, verdicts.NOT_DISTINGUISHED, verdicts.OBSERVED, verdicts.PENDING}
    assert sentences | words - {verdicts.PENDING} == set(verdicts.SENTENCES)


def test_every_series_of_the_metrics_page_is_listed_with_its_labels() -> None:
    listed = {name: labels for row in table("docs/operations.md", "| Series (") for name in codes(row[0])
              for labels in [row[1]]}  # fmt: skip
    gauges = set(re.findall(r'_gauge\(\s*"(\w+)"', getsource(metrics)))
    states = set(re.findall(r'\("(\w+)", [A-Z]\w+\)', getsource(metrics)))
    counted = {re.sub(r"^workbench_", "", name) for name in re.findall(r'"(workbench_\w+)"', getsource(traffic))}
    counters = {f"{name}_total" if name in ("http_requests", "http_errors") else name for name in counted}
    assert set(listed) == gauges | states | counters
    for call in re.findall(r'_gauge\(\s*"(\w+)",\s*"[^"]*",\s*\(([^)]*)\)', getsource(metrics)):
        assert set(re.findall(r'"(\w+)"', call[1])) <= set(re.findall(r"\w+", listed[call[0]])), call


def test_readiness_and_limits_are_those_of_the_server() -> None:
    assert [codes(row[0])[0] for row in table("docs/operations.md", "| Check |")] == list(readiness.CHECKS)
    text = text_of("docs/operations.md")
    shown = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])  # type: ignore[index]
    assert list(shown["checks"]) == list(readiness.CHECKS)
    assert shown["checks"]["triggers"]["detail"] == f"{len(db.append_only_models())} tables"
    limits = dict(table("docs/operations.md", "| What | Limit |"))
    assert limits["Request line, header field, header fields"] == (
        f"{web.limit_request_line:,} bytes, {web.limit_request_field_size:,} bytes, {web.limit_request_fields}"
    )
    assert limits["Head of a request, its body"] == (
        f"must arrive within {server.HEAD_SECONDS:g} s, {server.BODY_SECONDS:g} s"
    )
    assert limits["An answer that nobody takes"] == f"given up after {server.SEND_SECONDS} s"


def test_steps_of_verify_are_listed() -> None:
    said = ", ".join(f"{number} {name}" for number, name in STEPS.items())
    assert said in " ".join(text_of("docs/operations.md").split())


def test_limits_of_logging_are_those_of_the_code() -> None:
    text = " ".join(text_of("docs/logging.md").split())
    assert (
        f"{writing.METRICS_MOST} metrics, {writing.PARAMS_MOST} parameters, {writing.TAGS_MOST} tags, "
        f"{writing.ITEMS_MOST} in all"
    ) in text
    assert f"({sealing.SEAL_POINTS} points a series, {sealing.SEAL_BATCHES} rows)" in text
    assert f"at most {sealing.CHUNK_POINTS:,} points" in text


def test_the_client_has_what_its_document_names() -> None:
    named = {call.partition("(")[0] for row in table("docs/client.md", "| on `Workbench` |") for call in codes(row[0])}
    assert len(named) > 20 and all(callable(getattr(client.Workbench, name)) for name in named)
    for holders, members in table("docs/client.md", "| on | there is |"):
        kinds = [getattr(handles, kind) for kind in codes(holders)]
        for name in (call.partition("(")[0] for call in codes(members)):
            assert any(callable(getattr(kind, name, None)) for kind in kinds), f"{holders}: {name}"
    errors = set(re.findall(r"`([A-Z]\w+)`", text_of("docs/client.md").partition("## Errors")[2]))
    known = {name for name, value in vars(client).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert errors == known


def test_goals_of_logging_are_those_of_the_benchmark() -> None:
    expected = {
        name: f"at most {seconds * 1000:g} ms" + (f", ratio at least {least:g}" if least else "")
        for name, (seconds, least) in GOALS.items()
    }
    section = text_of("docs/findings.md").partition("## Logging")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)`.*\| ([^|]+) \|$", section, re.MULTILINE)
    assert dict(rows) == expected and f"MLflow {MLFLOW_VERSION}" in section
    assert f"MLflow {MLFLOW_VERSION} server" in text_of("README.md")


def test_counted_words_count() -> None:
    """Numbers in words that grow with the code."""
    readme, own = text_of("README.md"), text_of("docs/own.md")
    assert f"{NUMBERS[len(READINGS)]} readings" in readme
    assert re.search(rf"importers\s+for {NUMBERS[len(FORMATS)]} formats", readme)
    assert f"{NUMBERS[len(CHECKS)]} checks" in own


def limits_of(item: Field) -> str:
    """``int, 2 to 32, or null``: what a row of docs/plan.md says of a field."""
    if item.choices:
        return " \\| ".join(f"`{choice}`" for choice in item.choices)
    kind = {"seed": "decimal string", "dict": "object"}.get(item.kind, item.kind)
    low, high = item.minimum, item.maximum
    span = f", {low:g} to {high:g}" if None not in (low, high) else f", from {low:g}" if low is not None else ""
    span = span if low is None or high is None or item.kind != "int" or high >= 1e6 else f", {low} to {high}"
    return kind + span + (", or null" if item.nullable else "")


def default_of(value: Any) -> str:
    return "required" if value is REQUIRED else f"`{json.dumps(value, ensure_ascii=False)}`"


def rows_of(spec: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(field, type and range, default) of every leaf and of every object that may be null."""
    if isinstance(spec, Optional):
        yield prefix, "object or null", "`null`"
        yield from rows_of(spec.item, prefix)
    elif isinstance(spec, dict):
        for name, item in spec.items():
            yield from rows_of(item, f"{prefix}.{name}".lstrip("."))
    elif isinstance(spec, ListOf) and isinstance(spec.item, Field):
        yield f"{prefix}[]", f"list of {limits_of(spec.item)}", default_of(spec.default)
    elif isinstance(spec, ListOf):
        yield f"{prefix}[]", "list", default_of(spec.default)
        yield from rows_of(spec.item, f"{prefix}[]")
    else:
        yield prefix, limits_of(spec), default_of(spec.default)


@pytest.mark.parametrize("name, kind, default", list(rows_of(PLAN)), ids=lambda text: text[:40])
def test_a_row_of_the_plan_says_type_range_and_default(name: str, kind: str, default: str) -> None:
    found = {codes(row[0])[0]: (row[1], row[2]) for row in table("docs/plan.md", "| field | type, range | default |")}
    assert found[name] == (kind, default)
