"""The bundled study of our own: its notes are generated from its closed execution, bound and verified."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from evidence import wording
from evidence.actions.figures import bind_figure
from evidence.actions.notes import save_notes
from evidence.binding.figures import recompute
from evidence.models import Claim, ClaimVersion, Figure, FigureVersion, Link, NotesVersion, Source
from evidence.notes import own_words as words
from evidence.notes import read
from evidence.notes.generated import generate_notes, without_notes
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study, save_draft
from runs.models import Execution, Plan, Receipt
from runs.storage import blob_store
from tests.evidence_notes.walk import walk_page
from tests.runs.engine_double import Engine
from tests.runs.scripted import AT, Lab
from tests.runs.scripted_plan import document
from workbench.contracts.canonical import canonical_bytes
from worker import closing, lifecycle

SLUG = "fatal-mask-pair"
ENDPOINT = {
    "definition": "reward.v2.1/mean", "metric": "reward", "unit": "reward", "interval": 0.95, "split": "test",
    "condition": "stress",
}  # fmt: skip
ENDPOINTS = [
    {**ENDPOINT, "id": "stress-reward-pair", "direction": "none", "compare": {"kind": "pair", "arms": ["V", "F"]}},
    {**ENDPOINT, "id": "stress-reward-vanilla", "direction": "increase", "compare": {"kind": "parent", "arms": ["V"]}},
    {**ENDPOINT, "id": "stress-reward-gated", "direction": "none", "compare": {"kind": "parent", "arms": ["K"]}},
]


class Study(Lab):
    """The laboratory under the name of the bundled study."""

    def draft(self, **changes: Any) -> Plan:
        """A saved draft of the bundled study."""
        study = ensure_study(SLUG, title={"en": "S"}, summary={"en": "S"}, by=self.actor, at=AT, visibility="public")
        plan = document(**{"study": SLUG, "name": f"{SLUG}-tiny", "endpoints": ENDPOINTS, **changes})
        return save_draft(study, plan["name"], canonical_bytes(plan).decode(), by=self.actor, at=AT)


@dataclass
class Own:
    """A closed execution with its generated notes."""

    execution: Execution
    notes: NotesVersion
    blobs: Path


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Own]:
    """Closed by the real lifecycle, which writes the notes. The rows vanish with the outer transaction."""
    from django.conf import settings

    blobs, lab = tmp_path_factory.mktemp("own") / "blobs", Study()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), transaction.atomic():
        patch.setattr(settings, "BLOB_ROOT", blobs)
        patch.setattr(lifecycle, "engine_client", lambda threads: Engine(blob_store(), lab.script))
        patch.setattr("runs.dispatch.app.send_task", lambda name, args, **_: lab.sent.append(args[0]))
        execution = lab.start()
        lab.drive(execution)
        assert execution.state == "closed"
        yield Own(execution, NotesVersion.objects.get(study=execution.plan_version.plan.study), blobs)
        transaction.set_rollback(True)


@pytest.fixture
def own(built: Own, db: None, settings: Any) -> Own:
    """The closed execution; what a test does to it is rolled back."""
    settings.BLOB_ROOT = built.blobs
    return built


def figure(name: str) -> Figure:
    """A figure of the tiny plan."""
    return Figure.objects.select_related("current").get(study__slug=SLUG, key=f"tiny.{name}")


def test_closing_writes_sources_figures_claims_and_the_page(own: Own) -> None:
    """Counts are those of the closing receipt; plan and aggregate carry the rest."""
    closed = Receipt.objects.get(kind="execution.closed")
    items = figure("closure.items").current
    assert items is not None and items.binding == {
        "type": "receipt", "sha256": closed.sha256, "pointer": "/body/counts/items"
    }  # fmt: skip
    assert items.value == "24"  # three checkpoints (parent, V, F), two conditions, two tasks, two repeats
    group = figure("plan.group_size").current
    assert group is not None and group.value == "2" and group.source_version is not None and group.source_version.held
    cited = set(Source.objects.filter(study__slug=SLUG).exclude(reference="").values_list("reference", flat=True))
    assert cited == {"tiny.plan", "tiny.closure", "tiny.summary", "tiny.receipts"}
    assert own.notes.number == 1 and not own.notes.imported


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_on_the_page_is_bound(own: Own, client: Client, language: str) -> None:
    answer = client.get(f"/studies/{SLUG}/notes/{language}/")
    assert answer.status_code == 200
    study = own.execution.plan_version.plan.study
    walked = walk_page(study, answer.content.decode(), language)
    assert walked.loose == [] and walked.wrong == [] and len(set(walked.chips)) > 40


def test_what_has_a_value_recomputes_from_held_bytes(own: Own) -> None:
    """Bound, or unavailable with a reason; nothing is claimed or pending."""
    for row in Figure.objects.filter(study__slug=SLUG).select_related("current"):
        assert row.current is not None and row.state in (Figure.BOUND, Figure.UNAVAILABLE), row.key
        again = recompute(row)
        assert (again.state, again.value) == (row.state, row.current.value), row.key
        assert row.current.origin == "native"


def test_what_did_not_happen_has_no_value(own: Own) -> None:
    """The gated arm was refused: its endpoint was not measured, and one seed has no spread."""
    for name in ("stress-reward-gated.difference", "stress-reward-pair.seed_sd"):
        found = figure(name)
        assert found.state == Figure.UNAVAILABLE and found.current is not None and found.current.value is None
    claim = Claim.objects.select_related("current").get(study__slug=SLUG, key="tiny.gate")
    assert claim.current is not None and claim.current.kind == "negative"
    assert "was not run" in claim.current.text_en
    gated = Claim.objects.select_related("current").get(study__slug=SLUG, key="tiny.stress-reward-gated")
    assert gated.status == "not_established" and gated.current is not None
    assert "did not measure it" in gated.current.text_en


def test_claims_are_worded_and_capped_by_the_rules(own: Own) -> None:
    """No verdict of one seed is more than an observation, and nobody has reviewed any."""
    rows = Claim.objects.filter(study__slug=SLUG).select_related("current")
    assert {row.status for row in rows} == {"partly", "not_established"}
    pair = rows.get(key="tiny.stress-reward-pair").current
    assert pair is not None and pair.kind == "description" and "observed on this frozen sample" in pair.text_en
    assert "[[tiny.stress-reward-pair.low]]" in pair.text_en and "[[tiny.stress-reward-pair.low]]" in pair.text_zh


@pytest.mark.parametrize("verdict", sorted(words.TAILS))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_verdict_adds_may_be_said_by_its_kind(verdict: str, language: str) -> None:
    """The tail of each verdict, alone and against the direction; a ruled word is refused elsewhere."""
    kind = words.KINDS.get(verdict, "description")
    for tail in (words.TAILS[verdict][language], words.TAILS[verdict][language] + words.AGAINST[language]):
        assert wording.check(kind, f"x {tail}", language) == []
    if kind in wording.RULED:
        assert wording.check("description", words.TAILS[verdict][language], language) != []


def test_generating_again_changes_nothing(own: Own) -> None:
    def counts() -> tuple[int, ...]:
        kinds = (FigureVersion, ClaimVersion, Link, NotesVersion, Receipt)
        return tuple(model.objects.count() for model in kinds)

    before = counts()
    later = AT + timedelta(days=400)
    assert generate_notes(own.execution, by=service_actor("worker"), at=later) == own.notes
    assert counts() == before and without_notes() == []


def test_a_page_that_a_person_saved_is_left_alone(own: Own) -> None:
    person = service_actor("somebody else")
    study = own.execution.plan_version.plan.study
    changed = read.document_of(own.notes)
    changed["state"] = {"en": "Rewritten by hand", "zh": "手工改写"}
    saved = save_notes(study, changed, by=person, at=AT, reason="own words")
    assert generate_notes(own.execution, by=service_actor("worker"), at=AT) == saved


def test_a_figure_that_a_person_bound_is_left_alone(own: Own) -> None:
    study = own.execution.plan_version.plan.study
    binding = {"type": "unavailable", "reason_en": "under discussion"}
    bound = bind_figure(
        study, "tiny.closure.jobs", binding, title_en="Jobs", kind="environment", by=service_actor("somebody else"),
        at=AT, reason="under discussion",
    )  # fmt: skip
    generate_notes(own.execution, by=service_actor("worker"), at=AT)
    assert figure("closure.jobs").current == bound


def test_a_failure_is_logged_and_made_good_after_a_minute(
    own: Own, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The closing stands; the reaper, which looks every two seconds, tries an execution again after sixty."""
    monkeypatch.setattr(closing, "_TRIED", {})
    monkeypatch.setattr(closing, "without_notes", lambda: [own.execution])
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(closing, "generate_notes", lambda *args, **named: 1 / 0)
        assert closing.write_missing_notes() == 0 and "were not written" in caplog.text
    assert closing.write_missing_notes() == 0
    monkeypatch.setattr(closing, "_TRIED", {own.execution.pk: time.monotonic() - 61})
    assert closing.write_missing_notes() == 1


def test_a_command_waits_for_the_worker_that_writes(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing notes are looked at until they stand, no longer than asked."""
    missing = [[own.execution], [own.execution], []]
    monkeypatch.setattr(closing, "without_notes", lambda: missing.pop(0))
    assert closing.await_written(30) and missing == []
    monkeypatch.setattr(closing, "without_notes", lambda: [own.execution])
    assert not closing.await_written(0.3)


def test_another_study_has_no_generated_page(own: Own) -> None:
    study = ensure_study("another", title={"en": "A"}, summary={"en": "A"}, by=service_actor("tester"), at=AT)
    own.execution.plan_version.plan.study = study
    assert generate_notes(own.execution, by=service_actor("worker"), at=AT) is None
