"""Status, one rule a test: what caps a claim, and the event that lifts the cap."""

from __future__ import annotations

import pytest

from evidence.actions.claims import ClaimRefused
from evidence.actions.figures import fill_pending, refresh_figure
from evidence.actions.links import withdraw_link
from evidence.models import Claim, Figure, Source
from evidence.status import derive, rank, refresh_claim
from tests.evidence_claims.build import Desk, result


def codes(claim: Claim) -> list[str]:
    """Codes of everything that caps the claim."""
    return [item.code for item in derive(claim).reasons]


def supported(desk: Desk, key: str = "c1") -> Claim:
    """A claim with an independently accepted link to verified bytes."""
    claim = desk.claim(key)
    link = desk.link(claim)
    desk.review(claim, link=link)
    return claim


def test_a_claim_with_an_accepted_link_to_held_bytes_is_supported(desk: Desk) -> None:
    claim = supported(desk)
    assert (claim.status, claim.cap, claim.provisional, claim.disputed) == ("supported", "supported", False, False)
    assert derive(claim).reasons == ()


def test_without_a_supporting_link_nothing_is_established(desk: Desk) -> None:
    claim = desk.claim()
    assert claim.status == "not_established" and codes(claim)[0] == "no_support"
    desk.link(claim, "background")
    assert claim.status == "not_established"
    link = desk.link(claim)
    assert claim.status == "partly" and codes(claim) == ["unreviewed"]
    withdraw_link(link, reason="a mistake", **desk.by())
    claim.refresh_from_db()
    assert claim.status == "not_established"


def test_acceptance_within_the_family_is_provisional(desk: Desk) -> None:
    author = desk.reviewer("writer", family="alpha")
    claim = desk.written("c1", kind="description", text_en="Runs were made.").claim
    desk.author = author
    version = desk.written("c1", kind="description", text_en="Runs were made here.", reason="clearer words")
    claim = version.claim
    link = desk.link(claim)
    desk.review(claim, link=link, by=desk.reviewer("mate", family="alpha"))
    assert (claim.status, claim.provisional) == ("partly", True) and codes(claim) == ["provisional"]
    desk.review(claim, link=link, by=desk.reviewer("other", family="beta"))
    assert (claim.status, claim.provisional) == ("supported", False)


def test_a_pending_figure_makes_the_claim_pending(desk: Desk) -> None:
    desk.pending("later", "recovery", kind="environment")
    claim = desk.claim(text="Recovered: [[later]].")
    assert claim.status == "pending" and "endpoint recovery" in derive(claim).reasons[0].lifted_by


def test_a_pending_figure_as_evidence_makes_the_claim_pending(desk: Desk) -> None:
    claim = supported(desk)
    desk.link(claim, figure=desk.pending())
    assert claim.status == "pending"


def test_claimed_bytes_cap_at_partly(desk: Desk) -> None:
    version = desk.source("eval/elsewhere.md", None, sha256="ab" * 32)
    excerpt = desk.excerpt("told", "13/27 tasks", version=version, text="13/27 tasks")
    claim = desk.claim()
    desk.review(claim, link=desk.link(claim, excerpt=excerpt))
    assert claim.status == "partly" and set(codes(claim)) == {"claimed"}


def test_imported_figures_cap_at_partly_also_behind_a_derivation(desk: Desk) -> None:
    desk.figure("theirs", origin="imported")
    binding = {"type": "derivation", "expression": "a * 1", "figures": {"a": "theirs"}}
    desk.figure("derived", binding=binding, origin="imported", digits=3, number="", excerpt=object())
    for key, text in (("direct", "Counted: [[theirs]]."), ("behind", "Counted: [[derived]].")):
        claim = desk.claim(key, text)
        desk.review(claim, link=desk.link(claim))
        assert claim.status == "partly" and set(codes(claim)) == {"imported"}, key


@pytest.mark.parametrize("state", [Source.DRIFTED, Source.MISSING])
def test_a_drifted_or_missing_source_establishes_nothing_until_it_is_back(desk: Desk, state: str) -> None:
    claim = supported(desk)
    Source.objects.update(state=state)
    assert derive(claim).status == "not_established" and f"source_{state}" in codes(claim)
    Source.objects.update(state=Source.VERIFIED)
    assert derive(claim).status == "supported"


@pytest.mark.parametrize(
    ("change", "code"),
    [({"state": "drifted"}, "drifted"), ({"stale": True}, "stale"), ({"state": "unavailable"}, "unavailable")],
)
def test_a_figure_that_no_longer_holds_establishes_nothing(desk: Desk, change: dict[str, object], code: str) -> None:
    desk.figure("n")
    claim = desk.claim(text="Counted: [[n]].")
    desk.review(claim, link=desk.link(claim))
    assert claim.status == "supported"
    Figure.objects.filter(key="n").update(**change)
    assert derive(claim).status == "not_established" and codes(claim) == [code]


def test_a_stale_claim_establishes_nothing(desk: Desk) -> None:
    claim = supported(desk)
    Claim.objects.update(stale=True)
    assert derive(claim).status == "not_established" and codes(claim) == ["stale"]


def test_a_dispute_lowers_until_it_is_answered_and_accepted(desk: Desk) -> None:
    claim = supported(desk)
    link = claim.links.get()
    other = desk.reviewer("second")
    dispute = desk.review(claim, "dispute", link=link, by=other)
    assert (claim.status, claim.disputed) == ("not_established", True)
    desk.answer(dispute)
    claim.refresh_from_db()
    assert (claim.status, claim.disputed) == ("not_established", True)
    desk.review(claim, link=link, by=other)
    assert (claim.status, claim.disputed) == ("supported", False)


def test_a_request_for_evidence_caps_at_partly(desk: Desk) -> None:
    claim = supported(desk)
    desk.review(claim, "needs_evidence", by=desk.reviewer("second"))
    assert claim.status == "partly" and codes(claim) == ["needs_evidence"] and not claim.disputed


def test_an_accepted_contradiction_refutes(desk: Desk) -> None:
    claim = supported(desk)
    against = desk.link(claim, "contradicts")
    assert claim.status == "partly" and codes(claim) == ["contradiction", "unreviewed"]
    desk.review(claim, link=against)
    assert claim.status == "refuted"
    withdraw_link(against, reason="it was of another run", **desk.by())
    claim.refresh_from_db()
    assert claim.status == "not_established" and codes(claim) == ["contradiction_withdrawn", "unreviewed"]
    desk.review(claim, link=against)
    assert claim.status == "partly" and codes(claim) == ["unreviewed"]
    desk.review(claim)
    assert claim.status == "supported"


def test_other_words_need_another_acceptance(desk: Desk) -> None:
    claim = supported(desk)
    claim = desk.claim(text="E3 was run on every task of the note.", reason="said more exactly")
    assert claim.status == "partly" and codes(claim) == ["unreviewed"]


def test_an_acceptance_of_another_number_does_not_count(desk: Desk) -> None:
    """The note is bound at 13/27, accepted, and bound anew at 1/27: the reviewer has not seen that."""
    excerpt = desk.excerpt("both", "E3 recovered in 13/27 tasks, E2F in 1/27")
    desk.figure("n", "13/27", excerpt=excerpt)
    claim = desk.claim(text="Counted: [[n]].")
    desk.review(claim, link=desk.link(claim))
    assert claim.status == "supported"
    desk.figure("n", "1/27", excerpt=excerpt, reason="the wrong one was bound")
    claim.refresh_from_db()
    assert claim.status == "not_established" and {"stale", "unreviewed"} == set(codes(claim))
    claim = desk.claim(text="Counted: [[n]].", reason="bound again")
    assert claim.status == "partly" and codes(claim) == ["unreviewed"]


def improvement(desk: Desk, endpoint: str = "recovery", kind: str = "improvement", **more: str) -> Claim:
    """A claim of a ruled kind on a figure that its endpoint will fill, linked and accepted once it is filled."""
    desk.pending("effect", endpoint)
    text = more.pop("text", "E3 improves recovery by [[effect]].")
    claim = desk.claim(kind=kind, text=text, plan_version=desk.version, endpoint=endpoint)
    assert claim.status == "pending"
    return claim


def measured(desk: Desk, claim: Claim, **results: dict[str, object]) -> Claim:
    """Close the execution, fill the figure, link it and have it accepted."""
    desk.close(results)
    assert fill_pending(desk.version, **desk.by()) == 1
    desk.review(claim, link=desk.link(claim, figure=Figure.objects.get(key="effect")))
    return claim


def test_an_improvement_stands_on_the_closed_execution_of_its_plan(desk: Desk) -> None:
    claim = measured(desk, improvement(desk), recovery=result(0.44, 0.2, 0.6, ["improvement"]))
    assert claim.status == "supported" and codes(claim) == []


def test_an_improvement_that_the_interval_does_not_support_is_not_established(desk: Desk) -> None:
    claim = measured(desk, improvement(desk), recovery=result(0.04, -0.1, 0.2, []))
    assert claim.status == "not_established" and codes(claim) == ["interval"]


def against_the_parent(desk: Desk) -> None:
    """Close the execution: one arm gained over the parent, the other lost; a figure binds each difference."""
    gained = result(0.29, 0.04, 0.54, ["improvement"]) | {"arms": ["e3"]}
    lost = result(-0.2, -0.4, -0.1, []) | {"arms": ["e2f"]}
    desk.close({"trained": [lost, gained]})
    for arm in ("e3", "e2f"):
        binding = {
            "type": "endpoint", "endpoint": "trained", "arms": [arm],
            "quantity": "difference",
        }  # fmt: skip
        desk.figure(
            arm, binding=binding, kind="effect", digits=3, number="", excerpt=object(), plan_version=desk.version,
        )  # fmt: skip


def test_an_improvement_of_one_arm_stands_whatever_another_arm_of_its_endpoint_shows(desk: Desk) -> None:
    against_the_parent(desk)
    ruled = {"plan_version": desk.version, "endpoint": "trained"}
    claim = desk.claim(kind="improvement", text="E3 improves on its parent by [[e3]].", **ruled)
    desk.review(claim, link=desk.link(claim, figure=Figure.objects.get(key="e3")))
    assert claim.status == "supported" and codes(claim) == []
    for shown in ("[[e2f]]", "[[e3]] and [[e2f]]"):
        with pytest.raises(ClaimRefused, match="interval supports"):
            desk.claim("other", kind="improvement", text=f"The arms improve on their parent: {shown}.", **ruled)


def test_no_regression_observed_is_of_the_arm_that_it_shows(desk: Desk) -> None:
    against_the_parent(desk)
    ruled = {"kind": "no_regression", "plan_version": desk.version, "endpoint": "trained"}
    for key, expected in (("e3", []), ("e2f", ["regression"])):
        claim = desk.claim(f"of.{key}", text=f"No regression was observed: [[{key}]].", **ruled)
        desk.review(claim, link=desk.link(claim, figure=Figure.objects.get(key=key)))
        assert codes(claim) == expected


def test_equivalence_stands_only_where_the_interval_lies_inside(desk: Desk) -> None:
    claim = improvement(desk, "same", "equivalence", text="E3 and E2F are equivalent: [[effect]].")
    measured(desk, claim, same=result(0.01, -0.05, 0.06, ["equivalence"]))
    assert claim.status == "supported"


def test_equivalence_beyond_the_interval_is_not_established(desk: Desk) -> None:
    claim = improvement(desk, "same", "equivalence", text="The arms are equivalent: [[effect]].")
    measured(desk, claim, same=result(0.05, -0.05, 0.16, []))
    assert claim.status == "not_established" and codes(claim) == ["interval"]


def test_non_inferiority_stands_on_its_margin(desk: Desk) -> None:
    claim = improvement(desk, "recovery", "non_inferiority", text="E3 is not worse than E2F: [[effect]].")
    measured(desk, claim, recovery=result(0.0, -0.05, 0.05, ["non_inferiority"]))
    assert claim.status == "supported"


def test_no_regression_observed_needs_no_endpoint_and_falls_with_one_that_shows_a_step_back(desk: Desk) -> None:
    claim = desk.claim(kind="no_regression", text="No regression was observed.")
    desk.review(claim, link=desk.link(claim))
    assert claim.status == "supported"
    claim = desk.claim(
        "c2", kind="no_regression", text="No regression was observed.", plan_version=desk.version, endpoint="recovery"
    )
    desk.review(claim, link=desk.link(claim))
    assert claim.status == "supported"
    desk.close({"recovery": result(-0.2, -0.4, -0.1, [])})
    assert fill_pending(desk.version, **desk.by()) == 0
    claim.refresh_from_db()
    assert claim.status == "not_established" and codes(claim) == ["regression"]


def test_a_figure_that_computes_again_lifts_its_claims(desk: Desk) -> None:
    figure = desk.figure("n")
    claim = desk.claim(text="Counted: [[n]].")
    desk.link(claim)
    Figure.objects.filter(pk=figure.pk).update(state="drifted")
    refresh_claim(claim, at=desk.tick())
    assert claim.status == "not_established"
    figure.refresh_from_db()
    assert refresh_figure(figure, **desk.by()).state == "bound"
    claim.refresh_from_db()
    assert claim.status == "partly"


def test_a_ruled_claim_without_its_effect_figure_is_not_established(desk: Desk) -> None:
    """The figure that the words show is bound anew to something else: nothing measured carries the claim."""
    claim = measured(desk, improvement(desk), recovery=result(0.44, 0.2, 0.6, ["improvement"]))
    Figure.objects.filter(key="effect").update(current=desk.figure("other").current_id)
    assert "no_effect" in codes(claim) and derive(claim).status == "not_established"


def test_the_order_of_statuses() -> None:
    names = ["withdrawn", "refuted", "pending", "not_established", "partly", "supported"]
    assert sorted(names, key=rank) == names
