"""Notes of a study with trials: a page as soon as the pilot has ended, effect cells that only closing fills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from evidence import wording
from evidence.actions.claims import ClaimRefused, add_claim
from evidence.actions.figures import bind_figure
from evidence.actions.sources import add_source, read_version
from evidence.binding.figures import recompute
from evidence.checks.evidence_own import check_own
from evidence.ingest.own import records
from evidence.ingest.tried import ARMS_FILE, PILOT_FILE, PILOT_TIMES_FILE, TIMES_FILE, pilot_ended, trial_documents
from evidence.models import Claim, Figure, FigureVersion, NotesVersion, Source
from evidence.notes import own_words
from evidence.notes.generated import generate_notes, without_notes
from evidence.report import StepLog, VerifyReport
from runs.actions.actors import service_actor
from runs.actions.closure import close_execution
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Execution, Intervention, RunHead, TrialSet
from tests.evidence_notes.walk import walk_page
from tests.pages.state import World
from tests.pages.trial_world import build
from tests.pages.world import evaluate
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from worker import closing

SLUG = "edit-credit-pilot"
PREFIX = "tried"  # of the plan's figures


@dataclass
class Tried:
    """The world after its pilot with the notes of then, and what they were."""

    world: World
    execution: Execution
    blobs: Path


def _started(world: World) -> None:
    """The receipts that mark an execution's course up to the preflight."""
    by, uid = service_actor("scheduler"), str(world.execution.uid)
    for kind, body in (
        ("execution.started", {}),
        ("preflight.passed", {"probe_groups": 4, "zero_variance_groups": 1}),
    ):
        append_receipt(f"execution:{uid}", kind, uid, body, actor=by, at=world.tick())


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tried]:
    """A pilot of four groups, four arms of one batch each; its notes are written while it goes on."""
    from django.conf import settings

    blobs = tmp_path_factory.mktemp("tried") / "blobs"
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), transaction.atomic():
        patch.setattr(settings, "BLOB_ROOT", blobs)
        patch.setattr(closing, "_TRIED", {})
        world = build(batches=1, trained=1, study=SLUG)
        _started(world)
        assert closing.write_missing_notes(settled_s=closing.AGAIN_S) == 1
        yield Tried(world, Execution.objects.get(pk=world.execution.pk), blobs)
        transaction.set_rollback(True)


@pytest.fixture
def tried(built: Tried, db: None, settings: Any) -> Tried:
    """Its pilot has ended; what a test does to it is rolled back. Such tests stand ahead of those of ``done``."""
    settings.BLOB_ROOT = built.blobs
    return built


@pytest.fixture(scope="module")
def closed(built: Tried, django_db_blocker: DjangoDbBlocker) -> Iterator[Tried]:
    """The same, evaluated and closed by the product; the rows of closing vanish with a savepoint."""
    world, by = built.world, service_actor("worker")
    with django_db_blocker.unblock():
        saved = transaction.savepoint()
        parent = next(iter(world.runs.values())).parent_checkpoint
        evaluate(world, None, parent, 0.4)
        for run in world.runs.values():
            head = RunHead.objects.select_related("checkpoint").get(run=run)
            evaluate(world, run, head.checkpoint, 0.5)
            RunHead.objects.filter(run=run).update(state="completed", reason="budget spent")
        close_execution(built.execution, actor=by, at=world.tick())
        assert closing.write_notes(built.execution)
        yield Tried(world, Execution.objects.get(pk=built.execution.pk), built.blobs)
        transaction.savepoint_rollback(saved)


@pytest.fixture
def done(closed: Tried, db: None, settings: Any) -> Tried:
    """It is closed; what a test does to it is rolled back."""
    settings.BLOB_ROOT = closed.blobs
    return closed


def figure(name: str) -> Figure:
    """A figure of the plan."""
    return Figure.objects.select_related("current").get(study__slug=SLUG, key=f"{PREFIX}.{name}")


def shown(name: str) -> Fraction | None:
    """Its exact value."""
    current = figure(name).current
    return None if current is None or current.value is None else Fraction(current.value)


def page(client: Client, language: str) -> str:
    """The notes page."""
    answer = client.get(f"/studies/{SLUG}/notes/{language}/")
    assert answer.status_code == 200
    return answer.content.decode()


# Before the execution is closed ----------------------------------------------------------------------


def test_an_ended_pilot_has_a_page_whose_effects_are_pending(tried: Tried) -> None:
    """Every effect names what fills it; no figure of the pilot is an effect, and each has a value or a reason."""
    rows = {row.key.removeprefix(f"{PREFIX}."): row for row in Figure.objects.filter(study__slug=SLUG)}
    effects = {name: row for name, row in rows.items() if figure(name).current.kind == "effect"}  # type: ignore[union-attr]
    assert len(effects) > 20 and {row.state for row in effects.values()} == {Figure.PENDING}
    pilot = {name: row for name, row in rows.items() if name.startswith("pilot.")}
    assert {figure(name).current.kind for name in pilot} == {"mechanism", "cost"}  # type: ignore[union-attr]
    assert len(pilot) > 40 and {row.state for row in pilot.values()} <= {Figure.BOUND, Figure.UNAVAILABLE}
    primary = figure("m_minus_b.difference").current
    assert primary is not None and primary.binding == {
        "type": "pending",
        "fills": {"plan": "tried", "endpoint": "m_minus_b", "quantity": "difference", "arms": ["b", "m"]},
    }
    notes = NotesVersion.objects.get(study__slug=SLUG)
    assert notes.number == 1 and "ended pilot" in notes.reason
    assert {row.status for row in Claim.objects.filter(study__slug=SLUG, key__startswith=f"{PREFIX}.m_")} == {"pending"}


def test_counts_are_those_of_the_records(tried: Tried) -> None:
    """Planned 4 groups x 4; usable, sign and exclusion of each intervention of the preflight, counted here again."""
    rows = list(Intervention.objects.filter(trial_set__purpose="preflight"))
    known = [row.difference for row in rows if row.difference is not None]
    assert shown("pilot.planned") == 16 == len(rows)
    assert shown("pilot.usable") == len(known) and shown("pilot.nonzero") == sum(d != 0 for d in known)
    assert shown("pilot.positive") == sum(d > 0 for d in known)
    assert shown("pilot.format_error") == sum(row.status == "format_error" for row in rows)
    up = [row for row in rows if row.difference and row.difference > 0 and (row.original_utility or 0) < 1]
    assert shown("pilot.failed.positive") == len(up)
    assert (shown("pilot.positive.tests") or 0) + (shown("pilot.positive.regression") or 0) == len(up)
    assert shown("pilot.nonzero.rate") == Fraction(sum(d != 0 for d in known), len(known))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_before_closing_is_bound(tried: Tried, client: Client, language: str) -> None:
    walked = walk_page(tried.execution.plan_version.plan.study, page(client, language), language)
    assert walked.loose == [] and walked.wrong == [] and len(set(walked.chips)) > 60


def test_what_is_pending_cannot_be_claimed_as_an_effect(tried: Tried) -> None:
    """Nor can a count of the pilot stand in a sentence of an effect, or fill its cell."""
    study, by = tried.execution.plan_version.plan.study, service_actor("somebody")
    given: dict[str, Any] = {"by": by, "at": tried.world.tick(), "plan_version": tried.execution.plan_version}
    with pytest.raises(ClaimRefused, match="mechanism"):
        add_claim(
            study, "better", text_en=f"M improves by [[{PREFIX}.pilot.nonzero]].", kind="improvement",
            endpoint="m_minus_b", **given,
        )  # fmt: skip
    binding = {"type": "derivation", "expression": "n", "figures": {"n": f"{PREFIX}.pilot.nonzero"}}
    with pytest.raises(DomainError, match="never fills an effect cell"):
        bind_figure(
            study, f"{PREFIX}.m_minus_b.difference", binding, title_en="x", kind="effect", reason="try", **given
        )


def test_the_pilot_is_told_once_and_only_when_it_has_ended(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_notes() == [] and pilot_ended(tried.execution.plan_version)
    before = FigureVersion.objects.count(), NotesVersion.objects.count()
    generate_notes(tried.execution, by=service_actor("worker"), at=tried.world.tick())
    assert (FigureVersion.objects.count(), NotesVersion.objects.count()) == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evidence.notes.generated.pilot_ended", lambda version: False)
        with pytest.raises(DomainError, match="expected either"):
            generate_notes(tried.execution, by=service_actor("worker"), at=tried.world.tick())


def test_equal_records_give_equal_documents(tried: Tried) -> None:
    """Only the pilot is told before closing; seconds stand apart from counts."""
    first, again = (dict(trial_documents(tried.execution)) for _ in range(2))
    assert first == again and set(first) == {PILOT_FILE, PILOT_TIMES_FILE}
    assert b"service" not in first[PILOT_FILE] and parse_canonical(first[PILOT_TIMES_FILE])["pilot"]["executed"] > 0
    paths = {item.path.partition("/tried/1/")[2] for item in records(tried.execution.plan_version.plan.study)}
    assert paths == {"plan.json", PILOT_FILE, PILOT_TIMES_FILE}


def test_without_a_pilot_that_ended_nothing_is_told(tried: Tried) -> None:
    """A group of the pilot that was not tried yet: no document, so nothing that could be cited changes later."""
    more = TrialSet.objects.filter(purpose="preflight").count() + 1
    with pytest.MonkeyPatch.context() as patch:
        body = {"plan": {"preflight": {"groups": more}}}
        patch.setattr("evidence.ingest.tried.plan_body", lambda version: body)
        patch.setattr("evidence.ingest.tried.asks_pilot", lambda found: True)
        assert not pilot_ended(tried.execution.plan_version) and list(trial_documents(tried.execution)) == []


def test_people_who_wait_for_an_endpoint_are_served_by_closing(tried: Tried) -> None:
    """A pending figure that a person bound is filled too, after the worker's own."""
    study, by = tried.execution.plan_version.plan.study, service_actor("somebody")
    bind_figure(
        study, "mine", {"type": "pending", "fills": {"plan": "tried", "endpoint": "m_minus_b"}}, title_en="mine",
        kind="effect", digits=3, by=by, at=tried.world.tick(),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        seen: list[Any] = []
        patch.setattr(closing, "generate_notes", lambda execution, **_: None)
        patch.setattr(closing, "fill_pending", lambda version, **_: seen.append(version))
        assert closing.write_notes(tried.execution) and seen == []  # it goes on
        Execution.objects.filter(pk=tried.execution.pk).update(state="closed")
        assert closing.write_notes(tried.execution) and seen == [tried.execution.plan_version]


def test_one_that_was_closed_just_now_is_left_to_who_closed_it(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "_TRIED", {})
    monkeypatch.setattr(closing, "write_notes", lambda execution: True)
    monkeypatch.setattr(closing, "without_notes", lambda: [tried.execution])
    lately = closing.timezone.now()
    monkeypatch.setattr(tried.execution, "state", "closed")
    monkeypatch.setattr(tried.execution, "updated_at", lately)
    assert closing.write_missing_notes(settled_s=60.0) == 0
    monkeypatch.setattr(tried.execution, "updated_at", lately - timedelta(seconds=61))
    assert closing.write_missing_notes(settled_s=60.0) == 1


def test_verify_makes_the_summaries_again(tried: Tried) -> None:
    """Intact bytes that say another count are named by the place of the count; the same bytes are not."""
    report = VerifyReport({12: "sources"})
    check_own(StepLog(report, 12))
    assert report.problems == [] and report.checked[12] == 2
    study, by = tried.execution.plan_version.plan.study, service_actor("worker")
    source = Source.objects.select_related("current").get(study=study, path__endswith=PILOT_FILE)
    assert source.current is not None
    said = parse_canonical(read_version(source.current))
    said["pilot"]["signs"]["nonzero"] += 1
    add_source(
        study, source.path, canonical_bytes(said), origin=source.origin, by=by, at=tried.world.tick(),
        form=source.form, reason="another count",
    )  # fmt: skip
    check_own(StepLog(report, 12))
    assert [problem.column for problem in report.problems] == ["/pilot/signs/nonzero"]


# After it ------------------------------------------------------------------------------------------


def test_closing_fills_every_pending_cell_and_keeps_the_pilot(done: Tried) -> None:
    """The pilot's figures keep their first version; what waited has a second one, whose reason says what filled it."""
    rows = Figure.objects.filter(study__slug=SLUG).select_related("current")
    assert {row.state for row in rows} == {Figure.BOUND, Figure.UNAVAILABLE}
    for row in rows:
        assert row.current is not None
        again = recompute(row)
        assert (again.state, again.value) == (row.state, row.current.value), row.key
        assert row.current.number == (1 if row.key.startswith((f"{PREFIX}.pilot", f"{PREFIX}.plan")) else 2) or (
            row.key.startswith(f"{PREFIX}.preflight")
        ), row.key
    filled = figure("m_minus_b.difference").current
    assert filled is not None and filled.binding["type"] == "endpoint" and "filled by the closed" in filled.reason
    assert Source.objects.filter(study__slug=SLUG, path__endswith=ARMS_FILE).exists()
    assert NotesVersion.objects.filter(study__slug=SLUG).count() == 2 and without_notes() == []


def test_arms_say_what_changed_and_that_masses_agree(done: Tried) -> None:
    """Arm o adds no term; e never reads D; b and m agree with the definition on each term that was applied."""
    documents = {name: parse_canonical(data) for name, data in trial_documents(done.execution)}
    arms = documents[ARMS_FILE]["arms"]
    assert set(documents) == {PILOT_FILE, PILOT_TIMES_FILE, ARMS_FILE, TIMES_FILE} and set(arms) == set("obme")
    assert arms["o"]["mode"] is None and arms["e"]["terms"]["masses"] is None
    for arm in "bm":
        masses = arms[arm]["terms"]["masses"]
        assert masses["n"] == masses["of"] == arms[arm]["terms"]["applied"] > 0
        assert shown(f"arm.{arm}.masses") == masses["n"] and shown(f"arm.{arm}.changed") == 1
    assert figure("arm.m.changed").current.kind == "parameter_change"  # type: ignore[union-attr]
    assert not Figure.objects.filter(study__slug=SLUG, key=f"{PREFIX}.arm.e.nonzero").exists()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_after_closing_is_bound(done: Tried, client: Client, language: str) -> None:
    html = page(client, language)
    walked = walk_page(done.execution.plan_version.plan.study, html, language)
    assert walked.loose == [] and walked.wrong == [] and len(set(walked.chips)) > 100
    assert ("bubblewrap" in html) and ("Positive D among failed originals" in html or language == "zh")


def test_no_claim_says_more_than_its_kind(done: Tried) -> None:
    """Trials are claimed as mechanism, cost or description; power is said beside the primary endpoint."""
    rows = Claim.objects.filter(study__slug=SLUG).select_related("current")
    kinds = {row.key.removeprefix(f"{PREFIX}."): row.current.kind for row in rows if row.current}
    assert kinds["pilot.signal"] == kinds["masses"] == "mechanism" and kinds["pilot.cost"] == "cost"
    assert kinds["changed"] == "description" and kinds["m_minus_b"] in ("description", "negative", "improvement")
    primary = rows.get(key=f"{PREFIX}.m_minus_b").current
    assert primary is not None and "allow no statement on a difference between arms" in primary.text_en
    assert {row.status for row in rows} <= {"partly", "not_established"}  # nobody has reviewed any


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_qualifies_an_endpoint_may_be_said_by_every_kind(language: str) -> None:
    """Power, an interval without width and waiting: none of them asserts equality or a gain."""
    for text in (own_words.POWER, own_words.POWERLESS, own_words.NO_WIDTH, own_words.WAITING, own_words.UNMEASURED):
        assert wording.check("description", f"x {text[language].format('[[a.b]]')}", language) == []
    assert wording.check("description", {"en": "There is no difference.", "zh": "两臂没有差异。"}[language], language)
