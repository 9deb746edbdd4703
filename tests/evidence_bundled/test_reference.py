"""The bundled reference studies: complete, exact, marked as other people's, and bounded as their sources bound them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from evidence.actions import bundle_import
from evidence.actions.sources import add_source
from evidence.binding.numbers import bare_numbers
from evidence.binding.tokens import TEXT, figure_keys, parse_text
from evidence.binding.values import show_stored
from evidence.bundled.read import load, slugs
from evidence.models import Claim, Excerpt, Figure, Source, SourceVersion, StaleMark
from evidence.notes import read
from runs.errors import DomainError
from runs.models import Receipt, Study
from tests.evidence_notes.walk import walk_page

from . import expected
from .conftest import AT, Records

EDIT_CREDIT, MEDICAL = "counterfactual-edit-credit", "medical-deep-search"


def of(slug: str) -> Study:
    """A bundled study."""
    return Study.objects.get(slug=slug)


def shown(slug: str) -> dict[str, str]:
    """Key -> what a page shows of the current version, without its unit."""
    rows = Figure.objects.filter(study__slug=slug).select_related("current")
    return {
        row.key: show_stored(
            row.current.value, row.current.style, row.current.digits, row.current.numerator, row.current.denominator
        )
        for row in rows
        if row.current is not None
    }


@pytest.mark.parametrize(("slug", "figures"), [(EDIT_CREDIT, expected.EDIT_CREDIT), (MEDICAL, expected.MEDICAL)])
def test_every_number_of_the_list_is_there_as_written(records: Records, slug: str, figures: dict[str, str]) -> None:
    found = shown(slug)
    assert {key: found.get(key) for key in figures} == figures


def test_an_interrupted_import_goes_on_where_it_was(records: Records) -> None:
    """The cut one kept the transactions that were whole: most figures of one study, and no claim."""
    assert 60 < records.cut < 72 and [item["changed"] for item in records.said] == [True, True]
    assert [item["figures"] for item in records.said] == [72, 76]
    assert [item["notes"] for item in records.said] == [1, 1]


@pytest.mark.gate
def test_a_second_import_changes_nothing(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the short way nor by the whole way through every record."""
    before = Receipt.objects.count()
    assert bundle_import.missing() == []
    again = bundle_import.import_bundled(by=records.by, at=AT + timedelta(days=1))
    assert [item["changed"] for item in again] == [False, False]
    monkeypatch.setattr(bundle_import, "REASON", "under another word ")
    assert bundle_import.missing() == [EDIT_CREDIT, MEDICAL]
    again = bundle_import.import_bundled(by=records.by, at=AT + timedelta(days=1))
    assert [item["changed"] for item in again] == [False, False] and Receipt.objects.count() == before


def test_all_of_it_is_imported_and_nothing_is_verified(records: Records) -> None:
    """Bytes are not held: sources and figures are claimed, open ones pending, and no claim is supported."""
    studies = [of(slug) for slug in slugs()]
    assert [study.visibility for study in studies] == ["public", "public"]
    for study in studies:
        sources = Source.objects.filter(study=study)
        assert {(source.state, source.origin) for source in sources} == {("claimed", "imported")}
        figures = Figure.objects.filter(study=study).select_related("current")
        assert {figure.current.origin for figure in figures if figure.current} == {"imported"}
        assert {figure.state for figure in figures} == {"claimed", "pending", "unavailable"} - (
            {"unavailable"} if study.slug == EDIT_CREDIT else {"pending"}
        )
        versions = [figure.current for figure in figures if figure.current is not None]
        assert len(versions) == len(figures)
        assert all(version.denominator_en and version.denominator_zh for version in versions)
        assert not Claim.objects.filter(study=study, status="supported").exists()
        document = read.document_of(read.current(study))  # type: ignore[arg-type]
        assert document["imported"] is not None


def test_sources_carry_the_recorded_hashes_and_short_quotations(records: Records) -> None:
    versions = SourceVersion.objects.filter(source__study__slug=EDIT_CREDIT).select_related("source")
    found = {version.source.reference: version.sha256[:8] for version in versions}
    assert {name: found[name] for name in expected.HASHES} == expected.HASHES
    assert all(len(excerpt.text) <= 200 for excerpt in Excerpt.objects.all())
    assert set(Excerpt.objects.values_list("kind", flat=True)) == {"transcribed"}


def test_corrections_are_kept_as_earlier_versions(records: Records) -> None:
    """999 became 995 and so on; nothing that shows them is marked, since they were corrected before."""
    for key, values in expected.CORRECTED.items():
        figure = Figure.objects.get(study__slug=EDIT_CREDIT, key=key)
        versions = list(figure.versions.order_by("number"))
        assert tuple(version.value for version in versions) == values
        assert "fdd83033" in versions[1].reason and not figure.stale
    assert not StaleMark.objects.exists()


def test_the_effect_is_open_and_what_was_never_run_has_no_value(records: Records) -> None:
    """An em dash, never a 0; the source's measured zeros are zeros."""
    found = shown(EDIT_CREDIT)
    assert [found[key] for key in expected.OPEN] == ["—"] * 5
    assert {Figure.objects.get(study__slug=EDIT_CREDIT, key=key).state for key in expected.OPEN} == {"pending"}
    medical = shown(MEDICAL)
    assert medical["gate.effect"] == medical["reward.medical"] == medical["reward.safety"] == "—"
    assert medical["context.failures"] == "0"


def test_claims_stand_where_their_sources_leave_them(records: Records) -> None:
    status = dict(Claim.objects.values_list("key", "status"))
    assert status["localised-better"] == "pending"
    for key in (
        "environments-ready", "mass-isolates", "attribution-accurate", "cache-faster", "manuscript-ready",
        "stopping-learned", "clamp-effective", "medical-quality",
    ):  # fmt: skip
        assert status[key] == "not_established", key
    for key in ("signal-available", "query-bound", "resilience", "standard-no-regression", "persistence"):
        assert status[key] == "partly", key
    kinds = dict(Claim.objects.values_list("key", "current__kind"))
    assert kinds["standard-no-regression"] == "no_regression"
    assert not set(kinds.values()) & {"improvement", "equivalence", "non_inferiority"}


@pytest.mark.parametrize("slug", [EDIT_CREDIT, MEDICAL])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_on_the_page_is_bound(records: Records, client: Client, slug: str, language: str) -> None:
    """Digits and number words, texts and attributes; each chip equals what its binding gives now."""
    answer = client.get(f"/studies/{slug}/notes/{language}/")
    assert answer.status_code == 200
    walked = walk_page(of(slug), answer.content.decode(), language)
    assert walked.loose == [] and walked.wrong == []
    assert len(set(walked.chips)) >= 60


@pytest.mark.parametrize("slug", [EDIT_CREDIT, MEDICAL])
def test_both_languages_say_the_same_numbers(slug: str) -> None:
    """Each text exists in both languages, names the same figures, and holds no number of its own."""

    def texts(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"en", "zh"}:
            yield value
        elif isinstance(value, dict):
            for item in value.values():
                yield from texts(item)
        elif isinstance(value, list):
            for item in value:
                yield from texts(item)

    data = load(slug)
    found = [*texts(data.notes), *texts(data.claims), *texts(data.words), *texts(data.figures), *texts(data.study)]
    assert len(found) > 300
    for text in found:
        assert text["en"] and text["zh"]
        assert sorted(figure_keys([text["en"]])) == sorted(figure_keys([text["zh"]])), text
        for said in text.values():
            prose = " ".join(piece.raw for piece in parse_text(said) if piece.kind == TEXT)
            assert bare_numbers(prose) == [], said


def test_another_version_of_a_source_marks_what_rests_on_it(records: Records, client: Client) -> None:
    """R1 replaced: figures, claims and the page say so; the corrected summary R5 rests on other bytes."""
    study = of(EDIT_CREDIT)
    path = Source.objects.get(study=study, reference="R1").path
    add_source(
        study, path, None, origin="imported", by=records.by, at=AT, sha256="ab" * 32, reason="the manuscript changed"
    )
    stale = set(Figure.objects.filter(study=study, stale=True).values_list("key", flat=True))
    assert {"pilot.usable", "pilot.nonzero_share", "cap.share"} <= stale and "env.raw" not in stale
    assert set(Claim.objects.filter(study=study, stale=True).values_list("key", flat=True)) >= {"signal-available"}
    assert Claim.objects.get(study=study, key="signal-available").status == "not_established"
    page = client.get(f"/studies/{EDIT_CREDIT}/notes/en/").content.decode()
    assert "stale" in page


@pytest.mark.gate
def test_every_source_shakes_something(records: Records) -> None:
    """Whichever source is replaced, at least one figure, claim or section of the page is marked with it as cause."""
    for source in list(Source.objects.order_by("pk")):
        add_source(
            source.study, source.path, None, origin="imported", by=records.by, at=AT, sha256="cd" * 32,
            reason="other bytes",
        )  # fmt: skip
        marks = StaleMark.objects.filter(cause_uid=source.uid)
        assert marks.exists() or source.reference == "NOTE", source.reference


def test_a_slug_that_is_not_bundled_is_refused() -> None:
    with pytest.raises(DomainError, match="study: got 'none', expected one of counterfactual-edit-credit, medical"):
        load("none")
