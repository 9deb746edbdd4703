"""Numbers of credit from edits as pages give them: coefficients, the token card, counts, costs in all."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from runs.models import TrajectoryCredit, Trial, UpdateBatch
from runs.presenters import tokens
from runs.presenters.trials.coefficients import Masses, Totals, coefficients_on, headline, terms_of
from runs.presenters.trials.words import STATUS
from runs.templatetags.trials import exact
from tests.pages.state import World
from tests.pages.trial_world import build
from workbench.tracefile import Trace

PLAN = "/studies/edit-credit/plans/tried/"
CSS = Path(settings.BASE_DIR, "static", "css")


@pytest.fixture(scope="module")
def tried(world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Two of three batches done in each of the four arms, after a pilot."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build(batches=3, trained=2)
        transaction.set_rollback(True)


def _edit(arm: str, **values: Any) -> dict[str, Any]:
    return {"arm": arm, "status": "applied", "tokens": 12, "selected_tokens": 3, "signed_mass": 3.0} | values


def _update(arm: str) -> UpdateBatch:
    return UpdateBatch.objects.filter(run__arm__key=arm).select_related("run__arm", "run__plan_version").earliest("pk")


def _text(client: Client, address: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", client.get(address).content.decode()))


def test_a_coefficient_is_its_mass_over_the_tokens_that_carry_it() -> None:
    """A signed mass of 3: a quarter on each of 12 tokens broadcast, 1 on each of the three chosen localised."""
    assert coefficients_on(_edit("B")) == (0.25, 0.25)
    assert coefficients_on(_edit("M")) == coefficients_on(_edit("E")) == (1.0, 0.0)
    assert coefficients_on(_edit("M", status="format_error", selected_tokens=0)) == (0.0, 0.0)


def test_a_number_is_rounded_once() -> None:
    """0.5773476 has the four places 0.5773; through five places, 0.57735, it would have become 0.5774."""
    sent = tokens._number(array("f", [0.5773476])[0])
    assert isinstance(sent, float) and f"{sent:.4f}" == "0.5773" and array("f", [sent]) == array("f", [0.5773476])
    assert tokens._number(float("inf")) == "inf"
    assert exact(1 / 3) == "0.333333333" and exact(-0.5) == "−0.5" and exact(0.0) == "0" and exact(None) == "—"


@pytest.mark.parametrize("arm", ["m", "b", "e"])
def test_the_card_gets_a_c_and_what_the_loss_used(
    client: Client, tried: World, db: None, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    found = TrajectoryCredit.objects.filter(update__run__arm__key=arm).order_by("pk")
    credit = next(c for c in found if c.edit and c.edit["l1_mass"])
    assert credit.edit is not None and credit.advantage is not None
    chosen, other = coefficients_on(credit.edit)
    row = credit.trajectory
    own = tokens.sequence_of(tokens.read_captures(row))
    used = [credit.advantage + (chosen if d == credit.edit["selected"] else other) for d in own.policy_decisions]
    n = len(used)
    nothing = array("f", [0.0] * n)
    trace = Trace(str(row.uid), 0, None, None, array("i", own.policy_decisions), nothing, nothing, nothing,
                  array("B", [0] * n), nothing, array("B", [1] * n), array("f", used))  # fmt: skip
    monkeypatch.setattr(tokens, "read_trace", lambda *_: (trace, [0], ""))
    data = client.get(f"/trajectories/{row.uid}/tokens.json").json()
    edit = data["edit"]
    assert edit["selected"] == credit.edit["selected"] and edit["why"] == "" and chosen != 0
    assert (edit["chosen"], edit["other"]) == pytest.approx((chosen, other)) and data["advantage"] is not None
    for decision, value in zip(own.policy_decisions, data["trace"]["advantage"], strict=True):
        on = edit["chosen"] if decision == edit["selected"] else edit["other"]
        assert value == pytest.approx(data["advantage"] + on, abs=1e-6)
    page = client.get(f"/trajectories/{row.uid}/").content.decode()
    assert "coefficient of its edit" in page and "used in the loss: A + C" in page


def test_no_term_and_an_unknown_one_are_two_things(client: Client, tried: World, db: None) -> None:
    plain = TrajectoryCredit.objects.filter(update__run__arm__key="o").earliest("pk").trajectory
    assert client.get(f"/trajectories/{plain.uid}/tokens.json").json()["edit"] is None
    found = TrajectoryCredit.objects.exclude(update__run__arm__key="o").order_by("pk")
    lost = next(c for c in found if c.edit and c.edit["status"] not in ("applied", "no_selected_token"))
    assert lost.edit is not None
    sent = client.get(f"/trajectories/{lost.trajectory.uid}/tokens.json").json()["edit"]
    assert (sent["chosen"], sent["other"], sent["why"]) == (0.0, 0.0, str(STATUS[lost.edit["status"]][0]))


@pytest.mark.parametrize("arm", ["m", "b", "e"])
def test_every_coefficient_stands_as_a_number(client: Client, tried: World, db: None, arm: str) -> None:
    update = _update(arm)
    page = client.get(f"/updates/{update.uid}/edit-credit/").content.decode()
    table = page[page.index('id="values"') :]
    terms = terms_of(update)
    assert table.count("<tr>") == 1 + len(terms)
    for term in terms:
        assert exact(term.credit.advantage) in table and exact(term.edit["shrinkage"]) in table
        for key, value, masses in term.values:
            for shown in (value, masses.signed, masses.l1):
                assert f">{exact(shown)}</td>" in table
            if term.is_applied and key != "B":
                assert f"on each of {term.edit['selected_tokens']} tokens of decision {term.edit['selected']}" in page
        if term.is_applied and not term.edit["l1_mass"]:
            assert "applied, 0" in table
    for drawn in re.findall(r'massfig"[^>]*aria-label="([^"]+)"', page):
        assert re.search(r"[+−]?\d", drawn) and "on each of" in drawn
    assert page.count('class="massaxis') == sum(term.is_applied for term in terms) > 0


def test_a_coefficient_of_zero_is_not_added_credit(client: Client, tried: World, db: None) -> None:
    """Six of eight have a term that is not 0, two a D of 0; with two more that have none at all."""
    nothing = Masses(0.0, 0.0, 0.0)
    update = _update("m")
    said = headline(update, "M", Totals(nothing, {}, True, 8, 6, 10, 5))
    assert "is not 0 to 6 of 10 trajectories; 2 have a coefficient of 0; 2 have none;" in said
    assert "have" not in headline(update, "M", Totals(nothing, {}, True, 8, 8, 8, 5)).partition("agree")[0]
    assert "is not 0 to 6 of 8" in headline(update, "E", Totals(nothing, {}, True, 8, 6, 8, 5))
    terms = terms_of(update)
    zero = sum(term.is_applied and term.edit["difference"] == 0 for term in terms)
    assert zero > 0 and f"; {zero} have a coefficient of 0" in _text(client, f"/updates/{update.uid}/edit-credit/")


def test_what_was_copied_is_no_executed_trial(client: Client, tried: World, db: None) -> None:
    everything = Trial.objects.filter(trial_set__plan_version=tried.version)
    copied = everything.filter(kind="original").count()
    executed = everything.count() - copied
    assert copied > 0 and executed > 0
    assert f"{executed + copied} verdicts are recorded: executed {executed}, copied from the reward {copied}." in _text(
        client, f"{PLAN}trials/"
    )
    assert f"{copied} verdicts match: executed 0, copied from the reward {copied}." in _text(
        client, f"{PLAN}trials/?kind=original"
    )


def test_costs_have_a_line_of_all(client: Client, tried: World, db: None) -> None:
    *parts, total = client.get(f"{PLAN}edit-credit/").context["costs"]
    everything = Trial.objects.filter(trial_set__plan_version=tried.version)
    assert total.is_total and not any(part.is_total for part in parts)
    assert total.trials == sum(part.trials for part in parts) == everything.exclude(kind="original").count()
    assert total.copied == sum(part.copied for part in parts) == everything.filter(kind="original").count()
    assert total.tokens == sum(part.tokens for part in parts if part.tokens is not None)
    assert total.service_sum == pytest.approx(sum(part.service_sum for part in parts if part.service_sum is not None))
    assert total.service_mean == pytest.approx(total.service_sum / total.trials)
    assert total.wall == sum(part.wall for part in parts if part.wall is not None)


def test_observations_keep_their_lines_and_indentation() -> None:
    """An Observation is often code."""
    rule = re.search(r"\.obs-text \{([^}]*)\}", (CSS / "trajectory.css").read_text())
    assert rule is not None and "white-space: pre-wrap" in rule[1]


def test_an_interval_of_zero_width_wraps_on_a_phone() -> None:
    """Else its words alone are wider than the page."""
    narrow = re.findall(r"@media \(max-width: 760px\) \{((?:[^{}]*\{[^}]*\})*)", (CSS / "trials.css").read_text())
    assert any("table.data.effects td.num { white-space: normal; }" in rules for rules in narrow)
