"""Files of cards and comparisons: exact numbers, hashes in name and header, pending cells, and what is refused."""

from __future__ import annotations

import csv
import io
import math
import re
import uuid
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
from django.test import Client

from runs.actions.actors import service_actor
from runs.actions.tracking import set_status
from runs.exports import cards, figures, latex
from runs.metrics.draw import SHOWN
from runs.metrics.read import data_sha256, series_of
from runs.metrics.store import LoggedPoint, log_points
from runs.models import Run, Study, TrackedRun
from runs.presenters.layers.cards import cards_of
from runs.presenters.layers.quantities import quantities_of
from tests.pages import elsewhere

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
KINDS = ("csv", "parquet", "svg", "pdf", "tex")


@pytest.fixture
def study(db: None) -> Study:
    return Study.objects.create(
        uid=uuid.uuid4(), slug="logs", title_en="Logs", created_at=AT, created_by=service_actor("tests"),
        visibility=Study.PUBLIC,
    )  # fmt: skip


@pytest.fixture
def run(study: Study) -> Run:
    """Five thousand values of ``loss``, one of them a spike, and three of ``kl`` of which one is no number."""
    values = [float(np.sin(step / 50)) for step in range(5000)]
    values[1234] = 77.0
    return elsewhere.logged(study, "a & b_1", {"loss": values, "kl": [0.25, math.nan, 0.5]}, AT, framework="trl").run


def key_of(run: Run, name: str) -> str:
    run.tracked = TrackedRun.objects.get(run=run)
    return next(card.key for found in cards_of(run).values() for card in found if card.name == name)


def body(answer: object) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]


def ask(client: Client, run: Run, name: str, kind: str, **query: str) -> bytes:
    answer = client.get(f"/runs/{run.uid}/layers/export/{key_of(run, name)}.{kind}", query)
    assert answer.status_code == 200
    return body(answer)


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_every_file_is_named_by_the_hash_of_its_data(client: Client, run: Run) -> None:
    series = [item for item in series_of(run) if item.name == "loss"]
    sha256 = data_sha256(run, series)
    for kind in KINDS:
        answer = client.get(f"/runs/{run.uid}/layers/export/{key_of(run, 'loss')}.{kind}")
        assert answer["X-Data-SHA256"] == sha256 and answer["X-Content-Type-Options"] == "nosniff"
        assert re.search(rf'attachment; filename="a-b_1-loss-.*{sha256[:12]}\.{kind}"', answer["Content-Disposition"])\
            or f"a-b_1-loss-{sha256[:12]}.{kind}" in answer["Content-Disposition"]  # fmt: skip
        assert len(body(answer)) > 200


def test_all_points_are_the_stored_ones_bit_by_bit(client: Client, run: Run) -> None:
    found = rows(ask(client, run, "loss", "csv", points="all"))
    expected = [float(np.sin(step / 50)) for step in range(5000)]
    expected[1234] = 77.0
    assert [float(row["value"]) for row in found] == expected
    assert [int(row["step"]) for row in found] == list(range(5000))
    assert {row["state"] for row in found} == {"finite"} and {row["metric"] for row in found} == {"loss"}


def test_plotted_points_are_fewer_and_keep_the_spike(client: Client, run: Run) -> None:
    found = rows(ask(client, run, "loss", "csv"))
    assert 12 < len(found) <= SHOWN and "77" in {row["value"].removesuffix(".0") for row in found}
    window = rows(ask(client, run, "loss", "csv", **{"from": "100", "to": "109"}))
    assert [int(row["step"]) for row in window] == list(range(100, 110))


def test_parquet_holds_what_csv_holds_and_tells_absent_from_not_finite(client: Client, run: Run) -> None:
    table = pq.read_table(io.BytesIO(ask(client, run, "kl", "parquet", points="all")))
    values = table.column("value").to_pylist()
    assert values[0] == 0.25 and math.isnan(values[1]) and values[2] == 0.5
    assert table.column("state").to_pylist() == ["finite", "nan", "finite"]
    assert table.column("tokens" if "tokens" in table.column_names else "generated_tokens").null_count == 3
    series = [item for item in series_of(run) if item.name == "kl"]
    assert table.schema.metadata[b"data_sha256"].decode() == data_sha256(run, series)


def test_figures_say_their_hash_and_are_the_same_twice(client: Client, run: Run) -> None:
    first, again = ask(client, run, "loss", "svg"), ask(client, run, "loss", "svg")
    series = [item for item in series_of(run) if item.name == "loss"]
    sha256 = data_sha256(run, series)
    assert first == again and first.startswith(b"<?xml") and sha256.encode() in first
    assert f"of 5000 points shown, m4 · data {sha256[:16]}".encode() in first and b"<script" not in first
    pdf = ask(client, run, "loss", "pdf")
    assert pdf == ask(client, run, "loss", "pdf") and pdf.startswith(b"%PDF-")
    assert b"not finite" in ask(client, run, "kl", "svg")


def test_dollar_signs_and_brackets_of_foreign_names_begin_no_formula() -> None:
    curve = figures.Curve("a $\\frac{1}$ <b> 中文", 1, 0, [0.0, 1.0], [0.0, 1.0])
    sheet = figures.Sheet("$x$ _{ <script>", "", "step", [curve, curve], (), "2 of 2", "0" * 64)
    svg = figures.render(sheet, "svg")
    assert b"<script>" not in svg and b"&lt;script&gt;" in svg
    with pytest.raises(ValueError, match="kind: got 'png'"):
        figures.render(sheet, "png")


def test_latex_escapes_and_marks_what_is_exploratory(client: Client, run: Run) -> None:
    text = ask(client, run, "kl", "tex").decode()
    assert r"a \& b\_1\exploratory & $2$ & $1$ & $0.25$ & $0.5$ & $0.25$ & $0.5$ \\" in text
    assert text.startswith("% data sha256 ") and r"\providecommand{\pending}" in text


def test_latex_keeps_pending_what_may_still_move(client: Client, run: Run) -> None:
    set_status(run, TrackedRun.RUNNING, by=service_actor("tests"), at=AT)
    text = ask(client, run, "kl", "tex").decode()
    assert r"& $0.25$ & \pending & \pending & \pending \\" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, r"\pending"), (0.0, "$0$"), (math.nan, "NaN"), (math.inf, r"$\infty$"), (-math.inf, r"$-\infty$"),
        (-1.23456, "$-1.235$"), (1.5e-9, r"$1.5\times 10^{-9}$"), (123456.0, r"$1.235\times 10^{5}$"),
    ],
)  # fmt: skip
def test_cells(value: float | None, text: str) -> None:
    assert latex.cell(value) == text
    assert latex.cell(value, pending=True) == r"\pending"


def test_spread_of_a_cell() -> None:
    assert latex.spread(1.1, 0.1414) == r"$1.1 \pm 0.14$"
    assert latex.spread(1.1, None) == "$1.1$" and latex.spread(None, 0.1) == r"\pending"
    assert latex.escaped("a_b\n%\\") == r"a\_b \%\textbackslash{}"


def test_comparison_gives_runs_and_names_its_pending_arm(client: Client, study: Study, run: Run) -> None:
    other = elsewhere.logged(study, "other", {"kl": [1.0, 1.5, math.inf]}, AT, framework="trl").run
    set_status(other, TrackedRun.RUNNING, by=service_actor("tests"), at=AT)
    for item in (run, other):
        item.tracked = TrackedRun.objects.get(run=item)
    key = next(item.key for item in quantities_of([run, other]) if item.name == "kl")
    query = {"run": [run.uid.hex, other.uid.hex]}
    found = rows(body(client.get(f"/layers/compare/{key}.csv", query)))
    assert [(row["run"], row["value"], row["state"]) for row in found] == [
        ("a & b_1", "0.25", "finite"), ("a & b_1", "0.5", "finite"), ("a & b_1", "nan", "nan"),
        ("other", "1", "finite"), ("other", "1.5", "finite"), ("other", "inf", "inf"),
    ]  # fmt: skip
    text = body(client.get(f"/layers/compare/{key}.tex", query)).decode()
    assert r"other: kl\exploratory & $1/1$ & \pending & \pending & \pending \\" in text
    hashes = set()
    for kind in KINDS:
        answer = client.get(f"/layers/compare/{key}.{kind}", query)
        hashes.add(answer["X-Data-SHA256"])
        assert answer["X-Data-SHA256"][:12] in answer["Content-Disposition"] and len(body(answer)) > 100
    assert len(hashes) == 1


def test_new_points_change_the_hash(client: Client, run: Run) -> None:
    address = f"/runs/{run.uid}/layers/export/{key_of(run, 'kl')}.csv"
    before = client.get(address)["X-Data-SHA256"]
    log_points(run, [LoggedPoint("kl", 1.0, 9, 9)], source="api", actor=service_actor("tests"), at=AT)
    assert client.get(address)["X-Data-SHA256"] != before


def test_a_run_that_moves_at_every_try_gives_no_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter("abcdefgh")
    monkeypatch.setattr(cards, "data_sha256", lambda *_: next(names))
    with pytest.raises(cards.Moving, match="expected a moment of rest"):
        cards.snapshot(run, series_of(run))


@pytest.mark.parametrize(
    "path", ["{key}.png", "nokey.csv", "{key}.csv?points=some", "{key}.csv?axis=moon", "{key}.csv?from=x"]
)
def test_what_is_wrong_is_not_found(client: Client, run: Run, path: str) -> None:
    address = path.format(key=key_of(run, "kl"))
    assert client.get(f"/runs/{run.uid}/layers/export/{address}").status_code == 404


def test_hidden_runs_give_no_file(client: Client, run: Run) -> None:
    address = f"/runs/{run.uid}/layers/export/{key_of(run, 'kl')}.csv"
    Study.objects.update(visibility=Study.PRIVATE)
    assert client.get(address).status_code == 404
