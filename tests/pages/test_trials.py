"""Pages of counterfactual trials: funnel, spread, edits, coefficients, log; and where nothing may be shown."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.template.loader import render_to_string
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker

from runs.models import Intervention, Trial, TrialSet, UpdateBatch
from runs.presenters.trials import blocks, coefficients
from runs.presenters.trials.coefficients import close, masses_of
from runs.presenters.trials.funnel import Column
from runs.presenters.trials.rows import Rate, Row, middle, nearest_rank, shrinkage, signs_of
from runs.presenters.trials.spread import stems_of
from runs.presenters.trials.words import outcome_of
from runs.templatetags.trials import seconds
from tests.pages.state import World
from tests.pages.trial_world import build
from workbench.blobs import BlobMissing

PLAN = "/studies/edit-credit/plans/tried/"
PAGE, LOG = f"{PLAN}edit-credit/", f"{PLAN}trials/"
TRIED = re.compile(r'href="/(studies|updates|trajectories)/[^"]+/(edit-credit/"|trials/|edits/)')


@pytest.fixture(scope="module")
def tried(world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Three of four batches done in each of the four arms, after a pilot of four groups.

    The folder's world is built before: a transaction that lives longer must not begin inside this one.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield build(batches=4, trained=3)
        transaction.set_rollback(True)


def _row(**values: Any) -> Row:
    fields: dict[str, Any] = dict.fromkeys(Row._fields) | {
        "trajectory": UUID(int=1), "valid": "valid", "status": "available", "tokens": 12, "selected_tokens": 3,
        "replays_agree": 0, "replays": 0, "repeats_agree": 0, "repeats": 0,
    }  # fmt: skip
    return Row(**(fields | values))


def _text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_shrinkage_by_hand() -> None:
    """L/m = 4, lambda 1, c 1: |D L/m| of 1/2 is 2, so s = 1/2; of 1/8 it is 1/2, below the cap; of 0 s is 1."""
    assert shrinkage(1.0, 1.0, _row(difference=0.5)) == 0.5
    assert shrinkage(1.0, 1.0, _row(difference=-0.5)) == 0.5
    assert shrinkage(1.0, 1.0, _row(difference=0.125)) == 1.0
    assert shrinkage(1.0, 1.0, _row(difference=0.0)) == 1.0
    assert shrinkage(1.0, 1.0, _row(difference=None)) is None  # unknown is no zero
    assert shrinkage(1.0, 1.0, _row(difference=0.5, selected_tokens=0)) is None


def _edit(arm: str, difference: float, tokens: int, chosen: int, cap: float) -> dict[str, Any]:
    s = shrinkage(1.0, cap, _row(difference=difference, tokens=tokens, selected_tokens=chosen))
    return {"arm": arm, "status": "applied", "difference": difference, "shrinkage": s, "tokens": tokens,
            "selected_tokens": chosen}  # fmt: skip


def test_masses_by_hand() -> None:
    """s D = 1/4: B 12 * 1/4 = 3, squared 12/16; M 1 on three tokens = 3, squared 3. E: clip(-2 * 4) = -1 on three."""
    found = masses_of(_edit("M", 0.5, 12, 3, 1.0), 0.0, 1.0, 1.0)
    assert (found["B"].signed, found["B"].l1, found["B"].squared) == (3.0, 3.0, 0.75)
    assert (found["M"].signed, found["M"].l1, found["M"].squared) == (3.0, 3.0, 3.0)
    terminal = masses_of(_edit("E", 0.5, 12, 3, 1.0), -2.0, 1.0, 1.0)
    assert (terminal["E"].signed, terminal["E"].l1, terminal["E"].squared) == (-3.0, 3.0, 3.0)
    assert masses_of({"arm": "M", "status": "format_error"}, 0.0, 1.0, 1.0) == {}


@given(
    st.floats(-2, 2), st.integers(1, 10**5), st.data(), st.floats(1e-3, 1e3)
)  # fmt: skip
def test_both_arms_have_equal_mass_and_other_squares(difference: float, chosen: int, data: Any, cap: float) -> None:
    tokens = data.draw(st.integers(chosen, 10**6))
    found = masses_of(_edit("B", difference, tokens, chosen, cap), 0.0, 1.0, cap)
    assert close(found["B"].signed, found["M"].signed) and close(found["B"].l1, found["M"].l1)
    assert found["B"].squared * tokens / chosen == pytest.approx(found["M"].squared, rel=1e-9)


def test_counts_and_percentiles() -> None:
    assert nearest_rank([float(n) for n in range(1, 21)], 0.95) == 19.0
    assert nearest_rank([], 0.95) is None
    assert middle([None, 3.0, 1.0]) == middle([1.0, 3.0]) and middle([None]).value is None
    signs = signs_of([_row(difference=d) for d in (1.0, -0.5, 0.0, 0.0, None)])
    assert (signs.usable, signs.positive, signs.negative, signs.zero) == (4, 1, 1, 2)
    assert signs.nonzero.share == 0.5 and signs_of([]).nonzero.share is None
    assert [outcome_of(u) for u in (1.0, 0.5, 0.0, -0.5, None)] == ["success", "partial", "zero", "negative", "unknown"]


def test_what_touches_no_path_of_the_final_patch_by_hand() -> None:
    """Of four nonzero differences one block touches half of the paths, one none, and one an empty patch: 2 of 4.

    A D of 0 and a query without D are none of them.
    """
    rows = (
        _row(difference=0.5, touched=0.5), _row(difference=-0.5, touched=0.0), _row(difference=1.0, touched=None),
        _row(difference=0.5, touched=1.0), _row(difference=0.0, touched=0.0),
        _row(difference=None, touched=0.0, status="trial_incomplete"),
    )  # fmt: skip
    column = Column(None, "pilot", "pilot", "", "execute", 1.0, 1.0, len(rows), (), rows, None)
    assert column.elsewhere == Rate(2, 4)


def test_stems_stand_at_exact_values() -> None:
    """-2 to 2 over 360 units: 0 is 180, 1/2 is 225. Ten zeros beside one other are drawn broken, two are not."""
    few = stems_of([0.0, 0.0, 0.5])
    assert [(s.value, s.count, s.x, s.broken) for s in few] == [(0.0, 2, 180.0, False), (0.5, 1, 225.0, False)]
    assert few[1].top == 17.0  # half as high as the two zeros
    many = stems_of([0.0] * 10 + [0.5])
    assert many[0].broken and many[0].top == 0.0 and not many[1].broken


def test_numbers_of_stems_beside_each_other_do_not_cover_each_other() -> None:
    """1/6, 1/5 and 1/4 stand at 195, 198 and 202.5; a number of one digit is 7 wide and 9 high. Ten set the scale.

    Tops: a tenth of 34 is 3.4, so 30.6 for one and 27.2 for two. The first stands 5 above, at 25.6. The second too
    would, and is 9 higher, at 16.6. The third, at 22.2, would be clear of the first and moves above the second.
    """
    found = stems_of([1 / 6, 0.2, 0.25, 0.25, *[0.5] * 10])
    assert [(stem.x, stem.top) for stem in found] == [(195.0, 30.6), (198.0, 30.6), (202.5, 27.2), (225.0, 0.0)]
    assert found[0].label == 25.6 and found[3].label == -5.0
    for one, other in itertools.combinations(found, 2):
        wide = 7.0 * (len(str(one.count)) + len(str(other.count))) / 2
        assert abs(one.x - other.x) >= wide or abs(one.label - other.label) >= 9.0
    crowd = stems_of([0.5] * 10 + [0.501] * 10)  # no room above: they stay where their stems end
    assert [stem.label for stem in crowd] == [-5.0, -5.0]


def test_difference_has_numbers_of_both_sides() -> None:
    found = [(line.sign, line.old, line.new, line.text) for line in blocks.difference_of("a", "x\ny\n", "x\nz\nw\n")]
    assert found[1:] == [(" ", 1, 1, "x"), ("-", 2, None, "y"), ("+", None, 2, "z"), ("+", None, 3, "w")]


def test_funnel_counts_every_query(client: Client, tried: World, db: None) -> None:
    context = client.get(PAGE).context
    columns = {column.key: column for column in context["columns"]}
    assert [columns[key].planned for key in ("pilot", "o", "b", "m", "e")] == [16, 0, 32, 32, 32]
    for key, column in columns.items():
        assert column.balanced, key
        stored = Intervention.objects.filter(trial_set__run__arm__key=key) if key != "pilot" else (
            Intervention.objects.filter(trial_set__run=None)
        )  # fmt: skip
        by_status = Counter(stored.values_list("status", flat=True))
        count = column.count
        assert {status: count[status] for status in by_status if status != "available"} == {
            status: n for status, n in by_status.items() if status != "available"
        }
        assert count["nonzero"] + count["zero"] == by_status["available"]
        assert count["nonzero"] == stored.exclude(difference=0).filter(difference__isnull=False).count()
    assert columns["b"].count["waiting"] == 8 and columns["o"].mode is None and columns["e"].mode == "select"


def test_page_keeps_the_three_states_apart(client: Client, tried: World, db: None) -> None:
    text = _text(client, PAGE)
    assert (
        "the effect is pending" in text and "seen in the pilot" in text and "parameters changed in 4 of 4 arms" in text
    )
    assert "Nothing above this line says whether edit credit helps." in text
    assert "this arm never reads D" in client.get(PAGE).content.decode()


def test_stored_terms_count_for_arms_and_computed_ones_for_the_pilot(client: Client, tried: World, db: None) -> None:
    columns = {column.key: column for column in client.get(PAGE).context["columns"]}
    assert columns["m"].geometry.applied and not columns["pilot"].geometry.applied
    pilot = [shrinkage(1.0, 1.0, row) for row in columns["pilot"].rows if row.difference]  # where D is 0 no cap acts
    known = [s for s in pilot if s is not None]
    assert known and (columns["pilot"].geometry.capped.n, columns["pilot"].geometry.capped.of) == (
        sum(s < 1 for s in known), len(known)
    )  # fmt: skip


def test_seconds_keep_one_notation() -> None:
    """Less than half a thousandth says so; nothing measured is no 0."""
    assert [seconds(value) for value in (0.000284, 0.0006, 1.5, 0.0, None)] == [
        "< 0.001",
        "0.001",
        "1.500",
        "0.000",
        "—",
    ]


def test_costs_are_of_executed_trials_alone(client: Client, tried: World, db: None) -> None:
    costs = {cost.key: cost for cost in client.get(PAGE).context["costs"]}
    executed = Trial.objects.filter(trial_set__run__arm__key="m").exclude(kind="original")
    assert costs["m"].trials == executed.count() and costs["m"].service_sum == pytest.approx(
        sum(executed.values_list("service_s", flat=True))
    )
    assert costs["e"].trials == 0 and costs["e"].service_mean is None  # nothing executed, which is no cost of 0
    assert costs["pilot"].wall is None


def _known(**values: Any) -> Intervention:
    found = Intervention.objects.filter(status="available", **values).first()
    assert found is not None
    return found


def test_edits_of_a_known_difference(client: Client, tried: World, db: None) -> None:
    item = _known(difference__gt=0)
    address = f"/trajectories/{item.trajectory.uid}/edits/"
    answer, text = client.get(address), _text(client, address)
    assert f"Without the edit of decision {item.selected}" in text and "No Shapley share" in text
    assert answer.context["flipped"] == sum(line.flipped for line in answer.context["tests"]) > 0
    assert item.trial_set.record_sha256 in answer.content.decode()
    assert answer.context["receipt"] is not None
    assert answer.context["opened"].is_chosen and all(not file.why for file in answer.context["files"])


def test_where_each_utility_comes_from_is_said_as_it_is_stored(client: Client, tried: World, db: None) -> None:
    """Originals were copied, in the pilot and in training alike; trees without the block were tried."""
    page, originals = _text(client, PAGE), Trial.objects.filter(trial_set__plan_version=tried.version, kind="original")
    assert "copied; the tree without the edit has a fresh trial" in page and "from one fresh trial each" not in page
    assert originals.filter(service_s__isnull=False).count() == 0
    assert {item.trial_set.purpose for item in originals.select_related("trial_set")} == {"preflight", "train"}
    assert Trial.objects.filter(kind="intervention", service_s__isnull=False).exists()


def test_turns_that_changed_files_are_counted(client: Client, tried: World, db: None) -> None:
    item = _known(difference__gt=0)
    answer = client.get(f"/trajectories/{item.trajectory.uid}/edits/")
    turns, changed = len(answer.context["cells"]), len(answer.context["blocks"])
    assert f"{turns} turns, {changed} of which changed files" in answer.content.decode()


def test_unavailable_zero_and_not_read_look_different(client: Client, tried: World, db: None) -> None:
    zero = _text(client, f"/trajectories/{_known(difference=0).trajectory.uid}/edits/")
    assert "D = 0, measured" in zero and "No difference is known" not in zero
    for status, words in (("format_error", "format error"), ("no_eligible_block", "no eligible block"),
                          ("selected", "chosen, not executed")):  # fmt: skip
        item = Intervention.objects.filter(status=status).earliest("pk")
        text = _text(client, f"/trajectories/{item.trajectory.uid}/edits/")
        assert f"No difference is known: {words}" in text and "D = 0" not in text


def test_file_contents_are_escaped(client: Client, tried: World, db: None) -> None:
    found = [
        (item, block["decision"])
        for item in Intervention.objects.select_related("trajectory")
        for block in item.blocks
        if "stock/notes.py" in block["paths"]
    ]
    item, decision = found[0]
    page = client.get(f"/trajectories/{item.trajectory.uid}/edits/?block={decision}").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "<script>alert(1)" not in page


def test_missing_snapshots_are_named(client: Client, tried: World, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def get(self, sha256: str) -> bytes:
            raise BlobMissing(f"{sha256[:8]} is not held")

    monkeypatch.setattr(blocks, "blob_store", lambda: Gone())
    assert "is not held" in _text(client, f"/trajectories/{_known().trajectory.uid}/edits/")


def test_coefficients_agree(client: Client, tried: World, db: None) -> None:
    for arm in "bm":
        for update in UpdateBatch.objects.filter(run__arm__key=arm):
            context = client.get(f"/updates/{update.uid}/edit-credit/").context
            assert context["totals"].agrees
            for term in context["terms"]:
                assert term.agrees is (True if term.is_applied else None)
    text = _text(client, f"/updates/{UpdateBatch.objects.filter(run__arm__key='m').earliest('pk').uid}/edit-credit/")
    assert "not equal, and not meant to be" in text and "equal to 1e-9 on each trajectory" in text


def test_a_wrong_mass_is_seen(tried: World, db: None) -> None:
    update = UpdateBatch.objects.filter(run__arm__key="m").select_related("run__arm", "run__plan_version")[0]
    credit = next(c for c in update.credits.order_by("pk") if c.edit and c.edit["status"] == "applied")
    credit.edit = credit.edit | {"l1_mass": credit.edit["l1_mass"] + 1e-6}
    assert coefficients._term(credit, [(0, 10)], 1.0, 1.0).agrees is False


@pytest.mark.parametrize("unisolated", [True, False])
def test_what_shields_nothing_says_what_follows(tried: World, db: None, unisolated: bool) -> None:
    trial = Trial.objects.select_related("trial_set__run", "trajectory__group__task").filter(kind="intervention")[0]
    trial.level = {**trial.level, "backend": "subprocess", "unisolated": unisolated}
    text = render_to_string("trials/parts/trials_table.html", {"rows": [trial]})
    assert ("what ends it fails the artefact" in text) == ("unisolated" in text) == unisolated


def test_log_filters(client: Client, tried: World, db: None) -> None:
    def count(query: str) -> int:
        return int(client.get(f"{LOG}?{query}").context["listing"].paginator.count)

    everything = Trial.objects.filter(trial_set__plan_version=tried.version)
    assert count("") == everything.count()
    assert count("verdict=unknown") == everything.filter(complete=False).count() > 0
    caused = sum(any(o["cause"] == "timeout" for o in trial.observed) for trial in everything)
    assert count("cause=timeout") == caused > 0
    assert count("phase=preflight") + count("phase=train") == everything.count()
    assert (
        count("isolation=isolated") == everything.exclude(kind="original").count()
        and count("isolation=unisolated") == 0
    )
    assert count("list=queries&status=format_error") == Intervention.objects.filter(status="format_error").count() > 0
    run = tried.runs["b-s17"]
    assert count(f"run={run.uid}") == everything.filter(trial_set__run=run).count() > 0
    for query in ("kind=other", "arm=x", "run=x", "list=x", "cause=x", "list=queries&sign=x"):
        assert client.get(f"{LOG}?{query}").status_code == 404


def test_nothing_is_shown_where_there_is_nothing(client: Client, tried: World, world: World, db: None) -> None:
    plan, run = "/studies/fatal-mask-pair/plans/small/", world.runs["e3-s17"]
    update = UpdateBatch.objects.filter(run=run).earliest("batch")
    trajectory = run.groups.filter(purpose="train").earliest("pk").trajectories.earliest("slot")
    for address in (f"{plan}edit-credit/", f"{plan}trials/", f"/trajectories/{trajectory.uid}/edits/",
                    f"/updates/{update.uid}/edit-credit/"):  # fmt: skip
        assert client.get(address).status_code == 404, address
    for address in (plan, f"{plan}results/", f"/runs/{run.uid}/", f"/updates/{update.uid}/",
                    f"/trajectories/{trajectory.uid}/", f"/groups/{trajectory.group.uid}/",
                    "/studies/fatal-mask-pair/"):  # fmt: skip
        page = client.get(address).content.decode()
        assert not TRIED.search(page), address


def test_pages_lead_to_trials(client: Client, tried: World, db: None) -> None:
    item = _known(trial_set__run__arm__key="m")
    update = UpdateBatch.objects.filter(run__arm__key="m").earliest("batch")
    edits, run = f"/trajectories/{item.trajectory.uid}/edits/", tried.runs["m-s17"]
    for address, link in (
        (PLAN, PAGE), (f"{PLAN}results/", LOG), ("/studies/edit-credit/", PAGE),
        (f"/runs/{run.uid}/", f"{LOG}?run={run.uid}"),
        (f"/trajectories/{item.trajectory.uid}/", edits), (f"/groups/{item.trial_set.group.uid}/", edits),
        (f"/updates/{update.uid}/", f"/updates/{update.uid}/edit-credit/"),
    ):  # fmt: skip
        assert f'href="{link}"' in client.get(address).content.decode(), address


def test_queries_are_bounded(
    client: Client, tried: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    update = UpdateBatch.objects.filter(run__arm__key="m").earliest("batch")
    assert TrialSet.objects.count() > 20
    for address, most in ((PAGE, 32), (LOG, 20), (f"{LOG}?list=queries", 20),
                          (f"/updates/{update.uid}/edit-credit/", 21),
                          (f"/trajectories/{_known().trajectory.uid}/edits/", 28)):  # fmt: skip
        client.get(address)
        with django_assert_max_num_queries(most):
            client.get(address)
