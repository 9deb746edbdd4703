"""Comparison over layers: what is shared, means and spreads, what may be said of a difference, and what is capped."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from django.test import Client

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.read import load, series_of
from runs.models import Run, TrackedRun
from runs.presenters.layers import arms as words
from runs.presenters.layers.arms import arms_of, band_of, by_step, compare, pooled, verdict_of
from runs.presenters.layers.comparison import LINES_DRAWN, card_of, drawn_lines
from runs.presenters.layers.quantities import BY_MAPPING, BY_NAME, Quantity, quantities_of
from runs.readings.signals import line_of
from tests.pages import elsewhere
from tests.pages.state import World

pytestmark = pytest.mark.django_db


def find(runs: list[Run], name: str, by: str | None = None) -> Quantity:
    return next(item for item in quantities_of(runs) if item.name == name and by in (None, item.by))


@pytest.fixture
def seeds(world: World, db: None) -> list[Run]:
    """Two seeds of e3 at 1.0 and 1.2 all along, one of e2f at 1.25, then 3."""
    runs = [world.runs[name] for name in ("e3-s17", "e3-s7", "e2f-s17")]
    for run, level in zip(runs, (1.0, 1.2, 1.25), strict=True):
        elsewhere.write(run, "l1.grad_norm", [level] * 12)
    return runs


def foreign(world: World, name: str, series: dict[str, list[float]], framework: str) -> Run:
    head = elsewhere.logged(world.study, name, series, world.tick(), framework=framework)
    head.run.tracked = head
    return head.run


def test_mean_and_spread_of_seeds_are_those_worked_by_hand(seeds: list[Run]) -> None:
    """e3: mean of 1.0 and 1.2 is 1.1, sd with n - 1 is sqrt(2 * 0.1^2) = 0.1414; e2f lies 0.15 above, below 2 sd."""
    found = compare(find(seeds, "l1.grad_norm"), arms_of(seeds), "step")
    first, second = found.rows
    assert (first.n, first.of, second.n) == (2, 2, 1) or (first.n, second.n) == (2, 1)
    assert first.mean == pytest.approx(1.1) and first.sd == pytest.approx(math.sqrt(0.02)) and second.sd is None
    assert first.verdict == words.REFERENCE and second.difference == pytest.approx(0.15)
    assert found.pooled_sd == pytest.approx(math.sqrt(0.02)) and second.verdict == words.NOT_DISTINGUISHED
    (band,) = found.bands
    assert band.n.tolist() == [2] * 12 and band.mean.tolist() == pytest.approx([1.1] * 12)
    assert found.end == 11.0


def test_a_larger_difference_is_beyond_and_a_graded_one_is_withheld() -> None:
    """Two sd of 0.1 are 0.2: 0.2 itself is still not beyond."""
    assert verdict_of(0.21, 0.1, withheld=False) == words.DISTINGUISHED
    assert verdict_of(-0.21, 0.1, withheld=False) == words.DISTINGUISHED
    assert verdict_of(0.2, 0.1, withheld=False) == words.NOT_DISTINGUISHED
    assert verdict_of(9.0, None, withheld=False) == words.NO_SD
    assert verdict_of(9.0, 0.1, withheld=True) == words.WITHHELD


def test_pooled_spread_of_a_worked_example() -> None:
    """(1, 3) has squares 2, (5, 5, 8) has 6: 8 over 1 + 2 degrees; one run alone gives none."""
    assert pooled([[1.0, 3.0], [5.0, 5.0, 8.0], [7.0]]) == pytest.approx(math.sqrt(8 / 3))
    assert pooled([[1.0], [2.0]]) is None and pooled([]) is None


def test_one_value_a_step_is_that_of_the_readings(world: World, db: None) -> None:
    """Shards of one step by their denominators: (2 * 1 + 4 * 3) / 4 = 3.5; the point with a subject does not count."""
    points = Points(
        step=np.array([0, 0, 1, 1]), time_ms=np.zeros(4, np.int64), value=np.array([2.0, 4.0, 1.0, 9.0]),
        flag=np.array([codec.FINITE] * 4, np.uint8), count=np.array([1, 3, 2, 1]), subject=["", "", "", "x"],
    )  # fmt: skip
    steps, place, values = by_step(points, np.array([10.0, 20.0, 30.0, 99.0]))
    assert (steps.tolist(), values.tolist()) == ([0, 1], [3.5, 1.0])
    assert place is not None and place.tolist() == [20.0, 30.0]
    line = line_of("d/1", "train", "train", {}, points)
    assert line.steps.tolist() == steps.tolist() and line.values.tolist() == values.tolist()
    run = world.runs["e3-s17"]
    elsewhere.write(run, "l2.recovery_by_exposure", [None, 0.5, math.nan])
    item = series_of(run, definitions=["l2.recovery_by_exposure/1"])[0]
    assert by_step(load(run, [item])[item.pk], None)[0].tolist() == [1]


def test_equal_names_join_only_within_one_trainer(world: World, db: None) -> None:
    a = foreign(world, "a", {"kl": [0.1], "own": [1.0]}, "trl")
    b = foreign(world, "b", {"kl": [0.2], "own": [1.0]}, "trl")
    c = foreign(world, "c", {"kl": [0.3], "own": [1.0]}, "openrlhf")
    pair = quantities_of([a, b])
    assert {(item.name, item.by) for item in pair} == {("kl", BY_NAME), ("own", BY_NAME)}
    assert [item.name for item in quantities_of([a, c])] == []  # k3 of one, k1 of the other, and an unmapped name


def test_foreign_names_join_the_nearest_of_ours_with_their_note(world: World, seeds: list[Run]) -> None:
    a = foreign(world, "a", {"grad_norm": [2.0, 2.5]}, "trl")
    b = foreign(world, "b", {"actor/grad_norm": [3.0]}, "verl")
    found = find([seeds[0], a, b], "l1.grad_norm", BY_MAPPING)
    assert [(framework, name) for framework, name, _note in found.notes] == [
        ("trl", "grad_norm"),
        ("verl", "actor/grad_norm"),
    ]
    assert "before clipping" in found.notes[0][2] and found.runs == 3
    rows = compare(found, arms_of([seeds[0], a, b]), "step").rows
    assert [row.received for row in rows] == ["", "grad_norm", "actor/grad_norm"]
    both = quantities_of([a, b])
    assert [(item.name, item.by, item.definition) for item in both] == [("l1.grad_norm", BY_MAPPING, "l1.grad_norm/1")]


def test_newest_attempt_counts_and_what_is_not_finite_stays_a_mark(world: World, db: None) -> None:
    """Reward 0.1, 0.4, inf, then step 2 again with 0.6 and step 3 with 0.7."""
    one = elsewhere.full(world.study, world.tick())
    one.run.tracked = one
    two = foreign(world, "b", {"reward": [0.1]}, "trl")
    found = compare(find([one.run, two], "reward"), arms_of([one.run, two]), "step")
    line = found.lines[0]
    assert (line.step.tolist(), line.value.tolist()) == ([0, 1, 2, 3], [0.1, 0.4, 0.6, 0.7])
    assert line.odd == ((2.0, "inf"),) and line.stored == 5
    assert found.end == 0.0 and found.rows[0].mean == pytest.approx(0.1)  # the other run ends at step 0


def test_an_axis_that_a_run_does_not_know_is_said(world: World, seeds: list[Run]) -> None:
    a = foreign(world, "a", {"grad_norm": [2.0, 2.5]}, "trl")
    found = compare(find([*seeds, a], "l1.grad_norm"), arms_of([*seeds, a]), "tokens")
    assert found.without_axis == 1 and found.end == 4400.0
    assert found.rows[-1].verdict == words.NO_DATA and found.rows[-1].mean is None


def test_a_hundred_runs_are_counted_and_forty_drawn(client: Client, world: World, db: None) -> None:
    runs = [foreign(world, f"r{n}", {"loss": [float(n), n + 1.0]}, "trl") for n in range(100)]
    found = compare(find(runs, "loss"), arms_of(runs), "step")
    card = card_of(found, "step")
    assert len(found.rows) == 100 and card.lines_drawn == LINES_DRAWN == len(json.loads(card.plain)["lines"])
    assert card.capped
    query = "&".join(f"run={run.uid.hex}" for run in runs)
    page = client.get(f"/layers/compare/?{query}")
    assert page.status_code == 200 and "100 runs in 100 arms share 1 quantities" in page.content.decode()
    part = client.get(f"/layers/compare/{found.quantity.key}/card/?{query}").content.decode()
    assert "40 of 100 lines drawn; bands and table count all" in part and "200" in part
    more = foreign(world, "one more", {"loss": [0.0]}, "trl")
    assert client.get(f"/layers/compare/?{query}&run={more.uid.hex}").status_code == 404


def test_every_arm_keeps_a_line_when_lines_are_capped(world: World, seeds: list[Run]) -> None:
    found = compare(find(seeds, "l1.grad_norm"), arms_of(seeds), "step")
    many = [found.lines[0]] * 60 + [found.lines[2]]
    kept = drawn_lines(many)
    assert len(kept) == LINES_DRAWN and found.lines[2] in kept
    assert band_of(found.lines[0].arm, found.lines[:1]) is None


def test_page_and_card_say_what_may_be_said(client: Client, seeds: list[Run]) -> None:
    query = "&".join(f"run={run.uid}" for run in seeds)
    text = client.get(f"/layers/compare/?{query}").content.decode()
    assert "3 runs in 2 arms share 1 quantities." in text and "l1.grad_norm/1" in text and "judged apart" not in text
    key = find(seeds, "l1.grad_norm").key
    part = client.get(f"/layers/compare/{key}/card/?{query}").content.decode()
    for piece in ("1.1000 ± 0.1414", "+0.1500", "not distinguished", "36 of 36 points shown", "pooled", "goes on"):
        assert piece in part, piece


def test_graded_quantities_of_runs_from_elsewhere_are_shown_and_not_judged(
    client: Client, world: World, seeds: list[Run]
) -> None:
    elsewhere.write(seeds[0], "l3.reward_mean", [0.5])
    elsewhere.write(seeds[1], "l3.reward_mean", [0.6])
    a = foreign(world, "a", {"reward": [9.0]}, "trl")
    runs = [*seeds[:2], a]
    query = "&".join(f"run={run.uid}" for run in runs)
    text = client.get(f"/layers/compare/?{query}").content.decode()
    assert "judged apart" in text and "not known here" in text
    key = find(runs, "l3.reward_mean").key
    part = client.get(f"/layers/compare/{key}/card/?{query}").content.decode()
    assert "not judged: graders differ or are unknown" in part and "9.0000" in part


def test_choosing_offers_both_kinds_and_narrows(client: Client, world: World, db: None) -> None:
    a = foreign(world, "strange name", {"loss": [1.0]}, "trl")
    text = client.get("/layers/compare/").content.decode()
    assert "e3-s17" in text and "strange name" in text and "Choose 2 to 100 runs" in text
    text = client.get("/layers/compare/", {"q": "strange"}).content.decode()
    assert "e3-s17" not in text and a.uid.hex in text
    answer = client.get("/layers/compare/", {"q": "strange", "run": str(world.runs["e2f-s17"].uid)})
    offered = [run.name for run in answer.context["offered"]]
    assert offered == ["e2f-s17"] and [head.run.uid for head in answer.context["offered_logged"]] == [a.uid]


@pytest.mark.parametrize(
    "path", ["?run=x", "?run=00000000-0000-4000-8000-000000000000", "?axis=moon", "nokey/card/", "nokey.csv"]
)
def test_what_is_wrong_is_not_found(client: Client, world: World, db: None, path: str) -> None:
    assert client.get(f"/layers/compare/{path}").status_code == 404


def test_hidden_runs_are_absent(client: Client, world: World, seeds: list[Run]) -> None:
    a = foreign(world, "a", {"loss": [1.0]}, "trl")
    TrackedRun.objects.filter(run=a).update(deleted=True)
    assert client.get(f"/layers/compare/?run={seeds[0].uid}&run={a.uid}").status_code == 404
