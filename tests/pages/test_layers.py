"""The layer page: sections, readings with verdicts, an update's trajectories, and where a point leads."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.test import Client

from runs.actions.record_metrics import write_points
from runs.models import Group, MetricSeries, ReadingVerdict, Run, Trajectory, UpdateBatch
from runs.presenters.layers.heat import heat_of
from runs.readings.fire import readings_of
from tests.pages.state import World
from workbench.contracts.records import MetricRecord


def put(
    run: Run, name: str, values: list[float | None], phase: str = "train", subject: str | None = None, **labels: str
) -> None:
    """One point a step of definition ``name``."""
    at: datetime = run.created_at
    records = [
        MetricRecord(f"{name}/1", phase, "train", labels, value, 16, step, step, 16 * step, 400 * step, subject)
        for step, value in enumerate(values)
    ]
    write_points(run, records, segment="", at=at, wall_seconds=1.0, source=name + str(labels))


@pytest.fixture
def run(world: World, db: None) -> Run:
    """The running run with lengths that rise while success stays, and one spike of the gradient norm."""
    found = world.runs["e3-s17"]
    update = UpdateBatch.objects.filter(run=found).earliest("batch")
    put(found, "l2.response_length", [60.0 + 2 * step for step in range(20)])
    put(found, "l3.success_rate", [0.4 + 0.01 * (step % 2) for step in range(20)])
    put(found, "l1.grad_norm", [1.0 + 0.01 * (step % 3) for step in range(19)] + [9.0], subject=str(update.uid))
    put(found, "l2.recovery_by_exposure", [None, 0.5])
    return found


def test_every_layer_asks_its_question_and_says_what_is_missing(client: Client, run: Run) -> None:
    text = client.get(f"/runs/{run.uid}/layers/").content.decode()
    for part in (
        "Is the optimisation working?", "Is the reasoning real?", "Pattern or memory?",
        "Gradient norm 1.01 in the median, largest 9 at step 19", "60 to 98 tokens a trajectory",
        "Nothing of this layer was measured", "Padding or overthinking", "Gradient-norm spike", "l1.grad_norm/1",
    ):  # fmt: skip
        assert part in text, part
    assert "3 of 6 layers measured; may be wrong" in text and "Confirm" not in text


def test_page_is_in_chinese(client: Client, run: Run) -> None:
    text = client.get(f"/runs/{run.uid}/layers/", headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "推理是真实的吗？" in text and "梯度范数" in text


def test_data_of_the_page_comes_with_what_stands_behind(client: Client, run: Run) -> None:
    uid = MetricSeries.objects.get(run=run, definition="l1.grad_norm/1").uid
    line = client.get(f"/runs/{run.uid}/layers/data.json", {"series": str(uid), "axis": "tokens"}).json()["series"][0]
    assert line["x"][-1] == 400 * 19 and line["y"][-1] == 9.0 and line["count"][-1] == 16 and line["step"][-1] == 19
    answer = client.get(f"/behind/{line['subject'][-1]}/")
    assert answer.status_code == 302 and client.get(answer["Location"]).status_code == 200
    missing = MetricSeries.objects.get(run=run, definition="l2.recovery_by_exposure/1").uid
    line = client.get(f"/runs/{run.uid}/layers/data.json", {"series": str(missing)}).json()["series"][0]
    assert (line["x"], line["y"], line["absent"], line["nonfinite"], line["n_stored"]) == ([1], [0.5], [0], [], 2)


def test_verdict_on_a_reading_is_kept_with_its_reason(signed_in: Client, run: Run) -> None:
    (found,) = [item for item in readings_of(run) if item.reading.id == "padding"]
    form = {"rule": "padding", "fired_sha256": found.fired_sha256, "verdict": "confirmed", "reason": "Seen in e3 too."}
    page = signed_in.post(f"/runs/{run.uid}/layers/judge/", form, follow=True).content.decode()
    assert "Your verdict was recorded." in page and "Seen in e3 too." in page
    (row,) = ReadingVerdict.objects.all()
    assert (row.rule, row.verdict, row.reason) == ("padding", "confirmed", "Seen in e3 too.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": "mood"}, "rule: got"),
        ({"rule": "all_right"}, "expected a reading that fired"),
        ({"verdict": "maybe"}, "verdict: got"),
        ({"reason": "  "}, "reason: got 0 characters"),
        ({"fired_sha256": "0" * 64}, "the run has gone on"),
    ],
)  # fmt: skip
def test_wrong_verdict_is_named_and_nothing_kept(
    signed_in: Client, run: Run, change: dict[str, str], words: str
) -> None:
    (found,) = [item for item in readings_of(run) if item.reading.id == "padding"]
    form = {"rule": "padding", "fired_sha256": found.fired_sha256, "verdict": "dismissed", "reason": "No.", **change}
    page = signed_in.post(f"/runs/{run.uid}/layers/judge/", form, follow=True).content.decode()
    assert words in page and ReadingVerdict.objects.count() == 0


def test_update_page_lists_trajectories_by_gradient_norm(client: Client, run: Run) -> None:
    update = UpdateBatch.objects.filter(run=run).earliest("batch")
    answer = client.get(f"/updates/{update.uid}/")
    rows = answer.context["contributions"]
    largest = [max((norm or 0.0 for norm in row.norms), default=0.0) for row in rows]
    assert len(rows) == update.credits.count() > 0 and largest == sorted(largest, reverse=True)


def test_distribution_counts_every_trajectory_of_the_run(run: Run) -> None:
    trained = Trajectory.objects.filter(group__run=run, group__purpose="train")
    heat = heat_of(run, "length")
    assert heat.stored == trained.count() == sum(map(sum, heat.counts))
    reward = heat_of(run, "reward")
    assert reward.stored + reward.without == trained.count()


def test_unknown_things_are_404(client: Client, run: Run) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    for path in (f"/runs/{nobody}/layers/", f"/behind/{nobody}/", f"/updates/{nobody}/"):
        assert client.get(path).status_code == 404
    assert client.get(f"/behind/{Group.objects.filter(run=run).earliest('pk').uid}/").status_code == 302
