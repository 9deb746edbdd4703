"""The layer page: sections, readings with verdicts, an update's trajectories, and where a point leads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from runs.actions.record_metrics import write_points
from runs.models import Group, MetricSeries, ReadingVerdict, Run, Trajectory, UpdateBatch
from runs.presenters.layers.heat import heat_of
from runs.readings.fire import readings_of
from runs.readings.fired import fired_warnings
from tests.pages.state import World
from workbench.contracts.records import MetricRecord


def put(
    run: Run,
    name: str,
    values: list[float | None],
    phase: str = "train",
    subject: str | None = None,
    start: int = 0,
    **labels: str,
) -> None:
    """One point a step of definition ``name``."""
    at: datetime = run.created_at
    records = [
        MetricRecord(f"{name}/1", phase, "train", labels, value, 16, step, step, 16 * step, 400 * step, subject)
        for step, value in enumerate(values, start)
    ]
    write_points(run, records, segment="", at=at, wall_seconds=1.0, source=f"{name}{phase}{subject}{start}{labels}")


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
        "Gradient norm 1.01 in the median, largest 9 at batch 19", "60 to 98 tokens a trajectory",
        "Nothing of this layer was measured", "Padding or overthinking", "Gradient-norm spike", "l1.grad_norm/1",
        "what lies between them was not evaluated",
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


def test_new_points_of_a_native_run_come_alone(client: Client, run: Run) -> None:
    page = client.get(f"/runs/{run.uid}/layers/").content.decode()
    series = MetricSeries.objects.filter(run=run, definition__in=["l1.grad_norm/1", "l3.success_rate/1"])
    query = {"series": ",".join(str(item.uid) for item in series)}
    first = client.get(f"/runs/{run.uid}/layers/data.json", query).json()
    assert first["append"] is False and all(uid in page for uid in query["series"].split(","))
    put(run, "l1.grad_norm", [1.5], start=20)
    again = client.get(f"/runs/{run.uid}/layers/data.json", {**query, "cursor": first["cursor"]}).json()
    (line,) = again["series"]
    assert (again["append"], line["x"], line["y"], line["n_stored"]) == (True, [20], [1.5], 1)


def test_phases_stand_apart_and_an_unknown_one_is_named(client: Client, run: Run) -> None:
    put(run, "l2.response_length", [44.0], phase="standard")
    training = client.get(f"/runs/{run.uid}/layers/")
    lengths = [
        c for s in training.context["sections"] for c in (*s.charts, *s.more) if c.card.name == "l2.response_length"
    ]
    assert [(c.card.phase, c.single, c.keys[0].value, c.change) for c in lengths] == [("train", False, "98", "+38")]
    other = client.get(f"/runs/{run.uid}/layers/", {"phase": "standard"})
    (chart,) = [c for s in other.context["sections"] for c in (*s.charts, *s.more)]
    assert (chart.card.phase, chart.single, chart.keys[0].value) == ("standard", True, "44")
    assert client.get(f"/runs/{run.uid}/layers/", {"phase": "moon"}).status_code == 404


def test_bounds_belong_to_their_line(client: Client, run: Run) -> None:
    for bound, value in ((None, 0.6), ("low", 0.5), ("high", 0.8)):
        labels = {} if bound is None else {"bound": bound}
        put(run, "l5.reward", [value, value + 0.1], phase="standard", **labels)
    sections = client.get(f"/runs/{run.uid}/layers/").context["sections"]
    (chart,) = [c for s in sections for c in s.charts if c.card.layer == "L5"]
    (key,) = chart.keys
    assert (key.value, key.low, key.high, len(chart.card.lines), len(chart.card.series)) == ("0.7", "0.6", "0.9", 1, 3)


def test_a_group_beside_a_shard_is_not_its_newest_value(client: Client, run: Run) -> None:
    put(run, "l4.action_edit_distance", [0.5, 0.4])
    put(run, "l4.action_edit_distance", [0.1, 0.9], subject=str(Group.objects.filter(run=run).earliest("pk").uid))
    sections = client.get(f"/runs/{run.uid}/layers/").context["sections"]
    (chart,) = [c for s in sections for c in s.charts if c.card.layer == "L4"]
    assert (chart.keys[0].value, chart.change, chart.stored) == ("0.4", "−0.1", 4)


def test_warnings_cap_the_verdict_and_need_a_look(client: Client, run: Run) -> None:
    """A spike of the norm takes the word stable away; padding is named; both lead to their evidence."""
    verdict = client.get(f"/runs/{run.uid}/").content.decode()
    assert "Stable so far" not in verdict and "Running, but not stable" in verdict
    assert f'href="/runs/{run.uid}/layers/#reading-padding"' in verdict and "Padding or overthinking" in verdict
    now = client.get("/").content.decode()
    assert f'href="/runs/{run.uid}/layers/#reading-padding"' in now and "Gradient-norm spike" in now


def test_a_dismissed_warning_caps_nothing(signed_in: Client, run: Run) -> None:
    for found in readings_of(run):
        if found.outcome.state == "fired" and found.reading.kind == "warning":
            form = {
                "rule": found.reading.id,
                "fired_sha256": found.fired_sha256,
                "verdict": "dismissed",
                "reason": "Known.",
            }
            signed_in.post(f"/runs/{run.uid}/layers/judge/", form)
    assert ReadingVerdict.objects.count() == 2
    assert "Stable so far" in signed_in.get(f"/runs/{run.uid}/").content.decode()
    assert "Gradient-norm spike" not in signed_in.get("/").content.decode()


def test_warnings_are_kept_until_more_is_stored(run: Run, django_assert_max_num_queries: Any) -> None:
    assert [item.reading.id for item in fired_warnings(run)] == ["padding", "gradient_spike"]
    with django_assert_max_num_queries(2):
        assert len(fired_warnings(run)) == 2
    put(run, "l3.success_rate", [0.5 + 0.01 * step for step in range(20)], start=20)
    put(run, "l2.response_length", [100.0 + step for step in range(20)], start=20)
    assert [item.reading.id for item in fired_warnings(run)] == ["gradient_spike"]


def test_a_held_out_point_leads_to_its_checkpoint(client: Client, run: Run) -> None:
    for checkpoint in (run.parent_checkpoint, run.checkpoints.latest("pk")):
        answer = client.get(f"/behind/{checkpoint.uid}/")
        assert (
            answer["Location"] == f"/checkpoints/{checkpoint.uid}/"
            and client.get(answer["Location"]).status_code == 200
        )
