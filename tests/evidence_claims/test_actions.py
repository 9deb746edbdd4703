"""Claims and links as records: versions, bound occurrences, receipts, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.actions.claims import ClaimRefused, add_claim, lower_claim, withdraw_claim
from evidence.actions.links import add_link, withdraw_link
from evidence.models import Claim, ClaimFigure, ClaimVersion, Figure
from runs.errors import DomainError
from runs.models import AuditEntry, Receipt
from tests.evidence_claims.build import Desk, result


def refused(desk: Desk, **more: object) -> dict[str, str]:
    """Field -> code of the faults of a claim that must be refused."""
    words = {"kind": "description", **more}
    with pytest.raises(ClaimRefused) as caught:
        add_claim(desk.study, "c1", **words, **desk.by())  # type: ignore[arg-type]
    assert not ClaimVersion.objects.exists()
    return {item.field: item.code for item in caught.value.faults}


def test_a_claim_keeps_which_figure_version_each_token_showed(desk: Desk) -> None:
    excerpt = desk.excerpt("both", "E3 recovered in 13/27 tasks, E2F in 1/27")
    desk.figure("a", "13/27", excerpt=excerpt)
    desk.figure("b", "1/27", excerpt=excerpt)
    version = desk.written("c1", kind="description", text_en="[[b]] and [[a]], so [[b]].", text_zh="[[a]]。")
    rows = ClaimFigure.objects.filter(version=version).order_by("language", "ordinal")
    assert [(row.language, row.ordinal, row.figure.key) for row in rows] == [
        ("en", 0, "b"), ("en", 1, "a"), ("en", 2, "b"), ("zh", 0, "a"),
    ]  # fmt: skip
    assert {row.figure_version_id for row in rows} == set(Figure.objects.values_list("current", flat=True))


def test_each_version_has_its_receipt_and_the_change_of_status_its_line(desk: Desk) -> None:
    claim = desk.claim()
    desk.link(claim)
    kinds = list(
        Receipt.objects.filter(stream=f"evidence:{desk.study.uid}").order_by("seq").values_list("kind", flat=True)
    )
    assert kinds[0] == "evidence.claim_version" and kinds[-1] == "evidence.link"
    version = ClaimVersion.objects.get()
    body = Receipt.objects.get(subject_uid=version.uid)
    assert body.actor_id == desk.author.pk
    moved = AuditEntry.objects.filter(route="claim.status").values_list("detail", flat=True)
    assert list(moved) == ["not_established -> partly; cap partly"]


def test_the_same_words_are_no_new_version_unless_a_figure_was_bound_again(desk: Desk) -> None:
    excerpt = desk.excerpt("both", "E3 recovered in 13/27 tasks, E2F in 1/27")
    desk.figure("a", "13/27", excerpt=excerpt)
    words = {"kind": "description", "text_en": "[[a]]"}
    assert desk.written("c1", **words).number == 1
    assert desk.written("c1", **words).number == 1
    desk.figure("a", "1/27", excerpt=excerpt, reason="the other arm")
    claim = Claim.objects.get()
    assert claim.stale
    version = desk.written("c1", **words, reason="bound again")
    assert version.number == 2 and not version.claim.stale


@pytest.mark.parametrize(
    "text", ["Recovered 13 of them.", "恢复率为13/27。", "Thirteen recovered.", "一半恢复了。", "①"]
)
def test_a_bare_number_is_refused_in_every_script_with_where_to_bind_it(desk: Desk, text: str) -> None:
    field = "text_en" if text.isascii() else "text_zh"
    assert refused(desk, **{field: text}) == {field: "bare_number"}
    with pytest.raises(ClaimRefused, match="/figures/new/"):
        desk.written("c1", kind="description", **{field: text})


def test_numbers_in_scope_denominator_and_gap_are_refused_too(desk: Desk) -> None:
    found = refused(desk, text_en="Runs.", scope_en="27 tasks", denominator_zh="共27", missing_en="a third seed")
    assert found == {"scope_en": "bare_number", "denominator_zh": "bare_number", "missing_en": "bare_number"}


def test_a_ruled_kind_needs_its_plan_endpoint_and_effect_figure(desk: Desk) -> None:
    words = {"kind": "improvement", "text_en": "It improves recovery."}
    assert refused(desk, **words) == {"plan_version": "plan"}
    assert refused(desk, **words, plan_version=desk.version) == {"endpoint": "endpoint"}
    assert refused(desk, **words, plan_version=desk.version, endpoint="undirected") == {
        "endpoint": "endpoint", "text_en": "no_effect",
    }  # fmt: skip
    assert refused(desk, **words, plan_version=desk.version, endpoint="recovery") == {"text_en": "no_effect"}
    assert refused(desk, **words, endpoint="recovery")["endpoint"] == "endpoint"
    assert refused(desk, **words, plan_version=desk.version, endpoint="none")["endpoint"] == "endpoint"


@pytest.mark.parametrize(
    ("kind", "text", "without", "with_it"),
    [
        ("equivalence", "The arms are equivalent: [[effect]].", "recovery", "same"),
        ("non_inferiority", "It is not worse than the other: [[effect]].", "same", "recovery"),
        ("improvement", "It improves recovery: [[effect]].", "same", "recovery"),
    ],
)
def test_what_the_endpoint_registered_decides(desk: Desk, kind: str, text: str, without: str, with_it: str) -> None:
    desk.pending("effect", with_it)
    more = {"kind": kind, "text_en": text, "plan_version": desk.version}
    assert refused(desk, **more, endpoint=without)["endpoint"] == "endpoint"
    assert desk.written("c1", **more, endpoint=with_it).number == 1


def test_a_measured_endpoint_that_does_not_hold_refuses_the_claim(desk: Desk) -> None:
    desk.pending("effect")
    desk.close({"recovery": result(0.02, -0.1, 0.2, [])})
    more = {"kind": "improvement", "text_en": "It improves recovery: [[effect]].", "plan_version": desk.version}
    assert refused(desk, **more, endpoint="recovery") == {"kind": "interval"}


def test_a_mechanism_figure_carries_no_effect(desk: Desk) -> None:
    mechanism = desk.figure("cut", kind="mechanism")
    desk.pending("effect")
    more: dict[str, Any] = {"kind": "improvement", "plan_version": desk.version, "endpoint": "recovery"}
    assert refused(desk, **more, text_en="It improves recovery: [[effect]], [[cut]].") == {"text_en": "figure_kind"}
    claim = desk.claim(text="It improves recovery: [[effect]].", **more)
    for relation in ("supports", "bounds"):
        with pytest.raises(DomainError, match="of kind mechanism, expected an effect"):
            add_link(claim, figure=mechanism, relation=relation, **desk.by())
    assert add_link(claim, figure=mechanism, relation="background", **desk.by()).pk


def test_a_status_is_set_at_or_below_its_cap_and_never_above(desk: Desk) -> None:
    claim = desk.claim()
    desk.link(claim)
    with pytest.raises(DomainError, match="expected at most partly: No reviewer has accepted") as caught:
        lower_claim(claim, "supported", reason="I know it", **desk.by())
    assert "What lifts that: an acceptance by an independent reviewer" in str(caught.value)
    lower_claim(claim, "not_established", reason="too little", **desk.by())
    claim.refresh_from_db()
    assert (claim.status, claim.cap) == ("not_established", "partly")
    desk.review(claim, link=claim.links.get())
    assert (claim.status, claim.cap) == ("not_established", "supported")
    lower_claim(claim, "partly", reason="a little more", **desk.by())
    lower_claim(claim, "supported", reason="as far as it goes", **desk.by())
    claim.refresh_from_db()
    assert claim.status == "supported"
    with pytest.raises(DomainError, match="which it is already"):
        lower_claim(claim, "supported", reason="again", **desk.by())
    with pytest.raises(DomainError, match="expected one of"):
        lower_claim(claim, "withdrawn", reason="away", **desk.by())


def test_a_revision_keeps_what_a_person_lowered_it_to(desk: Desk) -> None:
    claim = desk.claim()
    desk.link(claim)
    lower_claim(claim, "not_established", reason="too little", **desk.by())
    claim = desk.claim(text="Other words of it.", reason="clearer")
    assert claim.status == "not_established" and claim.cap == "partly"


def test_a_withdrawn_claim_takes_nothing_more(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    withdraw_claim(claim, reason="it was wrong", **desk.by())
    claim.refresh_from_db()
    assert claim.status == "withdrawn"
    with pytest.raises(DomainError, match="withdrawn"):
        add_link(claim, excerpt=desk.excerpt("more"), relation="supports", **desk.by())
    with pytest.raises(DomainError, match="withdrawn"):
        desk.claim(text="Again.", reason="again")
    withdraw_link(link, reason="with it", **desk.by())
    claim.refresh_from_db()
    assert claim.status == "withdrawn"


def test_links_name_one_piece_of_evidence_of_the_study_that_stands(desk: Desk) -> None:
    claim, excerpt = desk.claim(), desk.excerpt()
    for more, said in (
        ({}, "got neither"), ({"excerpt": excerpt, "figure": desk.figure("n")}, "got both"),
        ({"excerpt": excerpt, "relation": "proves"}, "relation: got 'proves'"),
    ):  # fmt: skip
        with pytest.raises(DomainError, match=said):
            add_link(claim, **{"relation": "supports", **more}, **desk.by())  # type: ignore[arg-type]
    add_link(claim, excerpt=excerpt, relation="supports", **desk.by())
    with pytest.raises(DomainError, match="linked as supports already"):
        add_link(claim, excerpt=excerpt, relation="supports", **desk.by())
    assert add_link(claim, excerpt=excerpt, relation="background", **desk.by()).pk


def test_a_quotation_of_a_superseded_version_supports_nothing_new(desk: Desk) -> None:
    excerpt, claim = desk.excerpt(), desk.claim()
    desk.source(data=b"E3 recovered in 13/27 tasks, and more.\n", reason="a later note")
    with pytest.raises(DomainError, match="superseded, expected one in the newest version"):
        add_link(claim, excerpt=excerpt, relation="supports", **desk.by())
    assert add_link(claim, excerpt=excerpt, relation="background", **desk.by()).pk
