"""Marks: opened once, settled by rebinding, by a person or by the cause being gone."""

from __future__ import annotations

from typing import Any

import pytest

from evidence import status
from evidence.actions.stale import heal, mark_changed, open_marks, rebind, settle, source_of
from evidence.models import Claim, Figure, Source, StaleMark
from evidence.propagation import section_uid
from runs.actions.actors import service_actor
from runs.errors import DomainError
from runs.models import Receipt
from tests.evidence_stale.rows import AT, Web, person


@pytest.fixture(autouse=True)
def refreshed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Statuses have tests of their own: here only which claims are derived again."""
    calls: list[str] = []
    monkeypatch.setattr(status, "refresh_claim", lambda claim, *, at: calls.append(claim.key))
    return calls


def supersede(web: Web) -> Any:
    """Version 2 of pilot.md, with marks on what rests on version 1."""
    newer = web.source("pilot.md", b"Of 240 usable rows 90 were nonzero. 17 hours", reason="corrected")
    mark_changed("source", newer.source.uid, "superseded by version 2", by=web.by, at=AT)
    return newer


def stale(web: Web) -> set[str]:
    """Keys of what is marked."""
    figures = set(Figure.objects.filter(study=web.study, stale=True).values_list("key", flat=True))
    return figures | set(Claim.objects.filter(study=web.study, stale=True).values_list("key", flat=True))


def test_marks_every_dependant_once_with_receipts(web: Web, refreshed: list[str]) -> None:
    """Nine dependants, nine marks with receipts; a second call opens none."""
    newer = supersede(web)
    assert stale(web) == {"usable", "nonzero", "hours", "rate", "share", "linked"}
    assert open_marks(web.study).count() == 9
    assert Receipt.objects.filter(kind="evidence.stale_mark").count() == 9
    assert sorted(refreshed) == ["linked", "share"]
    assert mark_changed("source", newer.source.uid, "again", by=web.by, at=AT) == 0
    mark = StaleMark.objects.get(target_uid=web.figures["rate"].uid)
    assert [kind for kind, _ in mark.path] == ["source", "excerpt", "figure", "figure"]
    assert source_of(mark) == newer.source


def test_rebinding_settles_what_rests_on_current_evidence(web: Web) -> None:
    """``usable`` rebound: it alone. Then the others: the derivation and the section follow, the claim needs words."""
    newer = supersede(web)
    at = web.excerpt(newer, "usable2", "240 usable")
    web.quoted("usable", at, "240")
    assert rebind("figure", web.figures["usable"].uid, by=web.by, at=AT) == 1
    assert "usable" not in stale(web)
    assert "rate" in stale(web)
    web.quoted("nonzero", web.excerpt(newer, "nonzero2", "90 were nonzero"), "90")
    assert rebind("figure", web.figures["nonzero"].uid, by=web.by, at=AT) == 3  # nonzero, rate, section results
    assert stale(web) == {"hours", "share", "linked"}
    web.claim("share", "Now [[rate]] of [[usable]].", ["rate", "usable"])
    assert rebind("claim", web.claims["share"].uid, by=web.by, at=AT) == 2  # the claim, and section meaning
    assert stale(web) == {"hours", "linked"}


def test_claim_that_shows_an_old_version_stays_marked(web: Web) -> None:
    """The rate changed its value: the claim is marked until its words are bound again, though no bytes changed."""
    web.figure("rate", {"type": "unavailable"}, None)
    assert mark_changed("figure", web.figures["rate"].uid, "recomputed", by=web.by, at=AT) == 3
    assert rebind("claim", web.claims["share"].uid, by=web.by, at=AT) == 0
    web.claim("share", "Rows: [[usable]].", ["usable"])
    assert rebind("claim", web.claims["share"].uid, by=web.by, at=AT) == 1
    assert stale(web) == set()
    sections = set(open_marks(web.study).values_list("target_uid", flat=True))
    assert sections == {section_uid(web.study, "results"), section_uid(web.study, "meaning")}
    web.notes([])
    assert rebind("section", section_uid(web.study, "results"), by=web.by, at=AT) == 2


def test_a_person_confirms_with_a_note(web: Web) -> None:
    """No service, no empty note, not twice; the mark of the claim stays."""
    supersede(web)
    mark = StaleMark.objects.get(target_uid=web.figures["hours"].uid)
    with pytest.raises(DomainError, match="got the service verify, expected a person"):
        settle(mark, "confirmed", "looked at it", by=service_actor("verify"), at=AT)
    with pytest.raises(DomainError, match="note: got 0 characters"):
        settle(mark, "confirmed", " ", by=person("reader"), at=AT)
    with pytest.raises(DomainError, match="how: got 'healed'"):
        settle(mark, "healed", "it is fine", by=person("reader"), at=AT)
    with pytest.raises(DomainError, match="still rests on what changed"):
        settle(mark, "rebound", "", by=person("reader"), at=AT)
    settle(mark, "confirmed", "The hours stand unchanged in version 2.", by=person("reader"), at=AT)
    assert "hours" not in stale(web)
    assert "linked" in stale(web)
    with pytest.raises(DomainError, match="which is settled"):
        settle(mark, "confirmed", "once more", by=person("reader"), at=AT)


def test_bytes_that_are_back_heal_their_marks_only(web: Web) -> None:
    """Drift of the newest version heals; marks of another cause stay."""
    version = Source.objects.get(path="pilot.md").current
    assert mark_changed("figure", web.figures["usable"].uid, "recomputed", by=web.by, at=AT) == 4
    assert mark_changed("version", version.uid, "bytes differ", by=web.by, at=AT) == 9
    assert heal("version", version.uid, by=web.by, at=AT, note="the bytes are back") == 9
    assert stale(web) == {"rate", "share"}
    assert heal("version", version.uid, by=web.by, at=AT) == 0
    assert mark_changed("version", version.uid, "bytes differ once more", by=web.by, at=AT) == 9


def test_a_claim_is_derived_again_when_its_figure_is_confirmed(web: Web, refreshed: list[str]) -> None:
    """The claim was confirmed before its figures: each of them that is confirmed later counts for it."""
    supersede(web)
    web.source("pilot.md", b"As before: 244 usable, 92 were nonzero, 17 hours.", reason="put right")
    for target in (web.claims["share"], web.figures["rate"], web.figures["usable"]):
        mark = StaleMark.objects.get(target_uid=target.uid)
        refreshed.clear()
        settle(mark, "confirmed", "It stands unchanged.", by=person("reader"), at=AT)
        assert refreshed == ["share"]


def test_one_change_marks_once(web: Web) -> None:
    """The bytes drift, and so the figure recomputes otherwise: what rests on it is marked already."""
    version = Source.objects.get(path="pilot.md").current
    assert mark_changed("version", version.uid, "bytes differ", by=web.by, at=AT) == 9
    assert mark_changed("figure", web.figures["usable"].uid, "recomputed", by=web.by, at=AT) == 0
    heal("version", version.uid, by=web.by, at=AT)
    assert mark_changed("figure", web.figures["usable"].uid, "recomputed", by=web.by, at=AT) == 4


def test_a_version_given_as_source_is_that_version(web: Web) -> None:
    """Whoever has the superseded version at hand may name it."""
    old = Source.objects.get(path="pilot.md").current
    assert mark_changed("source", old.uid, "superseded", by=web.by, at=AT) == 9
    assert set(StaleMark.objects.values_list("cause_kind", flat=True)) == {"version"}


def test_reason_is_asked_for(web: Web) -> None:
    with pytest.raises(DomainError, match="reason: got 0 characters"):
        mark_changed("figure", web.figures["usable"].uid, "", by=web.by, at=AT)
