"""One run: page, fragment, control, series."""

from __future__ import annotations

import hashlib
import uuid

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.models import Group, Receipt, Run, RunHead, Trajectory, TrajectoryCredit, UpdateStep
from runs.presenters.gates import gate_of
from tests.pages.state import World


@pytest.fixture
def address(world: World) -> str:
    """The running run."""
    return f"/runs/{world.runs['e3-s17'].uid}/"


def test_sections_and_treatment(client: Client, world: World, address: str, db: None) -> None:
    text = client.get(address).content.decode()
    assert "Stable so far" in text
    assert "objective.credit" in text and "e2f-s17" in text
    for part in ("Groups as steps", "From requested to trained", "Updates", "Receipts", "State history"):
        assert part in text
    assert "fills when the run has trained its last batch" in text


def test_funnel_adds_up(client: Client, world: World, address: str, db: None) -> None:
    """Requested = trained + every named loss; 2 batches x 4 groups x 4 slots = 32 requested."""
    stages = client.get(address).context["funnel"].stages
    assert stages[0].count == 32
    assert stages[0].count == stages[-1].count + sum(stage.lost for stage in stages)
    trained = TrajectoryCredit.objects.filter(update__run=world.runs["e3-s17"], trained_tokens__gt=0).count()
    assert stages[-1].count == trained


def test_verdict_turns_unstable_on_a_non_finite_step(client: Client, world: World, address: str, db: None) -> None:
    run = world.runs["e3-s17"]
    update = run.updates.order_by("-batch").first()
    UpdateStep.objects.create(
        update=update,
        step=99,
        epoch=9,
        minibatch=0,
        loss=None,
        grad_norm=1.0,
        trained_tokens=0,
        masked_tokens=0,
        trajectories=0,
        nonfinite={"loss": "nan"},
    )
    text = client.get(address).content.decode()
    assert "Running, but not stable" in text
    assert "step 99 holds a non-finite value" in text
    data = client.get(f"{address}series/loss.json").json()
    assert data["nonfinite"] == [[99.0, "nan"]]
    assert data["n_shown"] == data["n_stored"] == len(data["x"]) + 1


@pytest.mark.parametrize("choice", ["trains", "cut", "zero", "rejected", "fatal"])
def test_filter_shows_exactly_its_groups(client: Client, world: World, address: str, choice: str, db: None) -> None:
    groups = Group.objects.filter(run=world.runs["e3-s17"], purpose="train")
    trained = TrajectoryCredit.objects.filter(trained_tokens__gt=0).values("trajectory__group")
    wanted = {
        "trains": groups.filter(signal="signal", pk__in=trained),
        "cut": groups.filter(signal="signal").exclude(pk__in=trained),
        "zero": groups.filter(eligible=True).exclude(signal="signal"),
        "rejected": groups.filter(eligible=False),
        "fatal": groups.filter(pk__in=Trajectory.objects.filter(fatal_confirmed__isnull=False).values("group")),
    }[choice]
    rows = client.get(address, {"groups": choice}).context["rows"]
    assert {row.group.pk for row in rows} == set(wanted.values_list("pk", flat=True))
    assert {row.signal for row in rows} <= {
        "trains": {"signal"},
        "cut": {"signal_cut"},
        "zero": {"zero_all_right", "zero_all_wrong", "zero_equal"},
        "rejected": {"ineligible"},
        "fatal": {"signal", "signal_cut", "zero_all_right", "zero_all_wrong", "zero_equal", "ineligible"},
    }[choice]


def test_live_fragment_swaps_verdict_and_progress(client: Client, world: World, address: str, db: None) -> None:
    text = client.get(f"{address}live/").content.decode()
    assert 'id="run-live"' in text and "every 2s" in text
    assert 'id="run-progress" hx-swap-oob="true"' in text
    RunHead.objects.filter(run=world.runs["e3-s17"]).update(state="completed")
    assert "every 2s" not in client.get(f"{address}live/").content.decode()


def test_pages_of_unstarted_and_refused_runs_say_so(client: Client, world: World, db: None) -> None:
    pending = client.get(f"/runs/{world.runs['e3-s7'].uid}/").content.decode()
    assert "Not started yet." in pending
    refused = client.get(f"/runs/{world.runs['e4-s17'].uid}/").content.decode()
    assert "proves nothing about the arm either way" in refused


def test_other_seeds_and_the_partner_are_offered_to_three_charts(
    client: Client, world: World, address: str, db: None
) -> None:
    """e3 has three seeds: the page of s17 names the two others and its pair e2f-s17, for reward, loss and entropy."""
    answer = client.get(address)
    overlay = answer.context["overlay"]
    assert [run.name for run in overlay.seeds] == ["e3-s42", "e3-s7"] and overlay.total == 2
    assert overlay.partner.name == "e2f-s17"
    text = answer.content.decode()
    assert text.count("data-seeds=") == 3 and text.count("data-partner=") == 3 and "data-partner-switch" in text
    assert overlay.addresses("sigma") == {"seeds": "", "partner": ""}
    assert "data-seeds" not in client.get(f"/runs/{world.runs['context-s17'].uid}/").content.decode()


def test_the_gate_of_a_gated_arm_stands_on_its_page(client: Client, world: World, db: None) -> None:
    """Decided: what the receipt says (2 of at least 3); undecided: the frozen rule; another arm has no gate."""
    run = world.runs["e4-s17"]
    text = client.get(f"/runs/{run.uid}/").content.decode()
    assert "gate refused" in text and "2 cases counted over e3, minimum 3" in text
    assert "gateline" not in client.get(f"/runs/{world.runs['e3-s17'].uid}/").content.decode()
    undecided = Run.objects.select_related("arm").get(pk=run.pk)
    undecided.execution = None
    gate = gate_of(undecided)
    assert gate is not None and gate.met is None and gate.cases is None and gate.minimum == 3


def test_series_csv_hashes_its_own_bytes(client: Client, world: World, address: str, db: None) -> None:
    answer = client.get(f"{address}series/reward.csv")
    assert answer["X-Data-SHA256"] == hashlib.sha256(answer.content).hexdigest()
    means = Group.objects.filter(run=world.runs["e3-s17"], purpose="train", eligible=True).order_by("ordinal")
    rows = [line.split(",") for line in answer.content.decode().splitlines()[1:]]
    assert [float(row[1]) for row in rows] == list(means.values_list("mean", flat=True))


@pytest.mark.parametrize("query", [{"from": "abc"}, {"from": "nan"}])
def test_bad_range_is_refused(client: Client, world: World, address: str, query: dict[str, str], db: None) -> None:
    assert client.get(f"{address}series/reward.json", query).status_code == 404


def test_unknown_run_series_and_verb(client: Client, signed_in: Client, world: World, address: str) -> None:
    assert client.get(f"/runs/{uuid.uuid4()}/").status_code == 404
    assert client.get(f"{address}series/nothing.json").status_code == 404
    assert signed_in.post(f"{address}explode/").status_code == 404


def test_query_count_does_not_grow_with_groups(
    client: Client, world: World, address: str, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(52):
        client.get(address)


def test_pause_and_resume_write_receipts(signed_in: Client, world: World, address: str) -> None:
    run = world.runs["e3-s17"]
    answer = signed_in.post(f"{address}pause/", follow=True)
    assert RunHead.objects.get(run=run).state == "paused"
    assert Receipt.objects.filter(stream=f"run:{run.uid}", kind="run.paused", actor__name="mara").exists()
    assert "A receipt was written." in answer.content.decode()
    signed_in.post(f"{address}resume/")
    assert RunHead.objects.get(run=run).state == "running"


def test_a_refused_control_is_shown(signed_in: Client, world: World, db: None) -> None:
    """A completed run cannot be paused: nothing changes, and the page says why."""
    run = world.runs["context-s17"]
    text = signed_in.post(f"/runs/{run.uid}/pause/", follow=True).content.decode()
    assert "Refused, nothing was changed" in text
    assert RunHead.objects.get(run=run).state == "completed"


def test_nobody_controls_a_run_without_signing_in(client: Client, world: World, address: str, db: None) -> None:
    answer = client.post(f"{address}cancel/")
    assert answer.status_code == 302 and answer["Location"].startswith("/accounts/login/")
    assert client.get(f"{address}cancel/").status_code == 405
    assert RunHead.objects.get(run=world.runs["e3-s17"]).state == "running"
    assert '<form method="post" action="/runs/' not in client.get(address).content.decode()
