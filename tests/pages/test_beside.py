"""The sign of D beside sampled continuations, on the page of edit credit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from runs.models import Intervention, PlanVersion, StateBranch
from runs.presenters.trials import beside
from runs.presenters.trials.beside import sampled_of, standard_error
from tests.branches.rows import branch_on
from tests.pages.state import World
from tests.pages.trial_world import build

PAGE = "/studies/edit-credit/plans/tried/edit-credit/"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def tried(world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One batch done in each of the four arms, after a pilot."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build(batches=2, trained=1)
        transaction.set_rollback(True)


def _version() -> PlanVersion:
    return PlanVersion.objects.get(plan__slug="tried")


def _sample(item: Intervention) -> StateBranch:
    assert item.selected is not None
    return branch_on(item.trajectory, AT, item.selected)


def test_nothing_sampled_is_said_and_no_sign_is_assumed(client: Client, tried: World, db: None) -> None:
    page = client.get(PAGE).content.decode()
    assert "none sampled" in page and "no action value" in page and "same sign" not in page


def test_signs_are_counted_over_turns_whose_block_was_taken_back(client: Client, tried: World, db: None) -> None:
    """Means 1/2 (standard error 1/4) and 2/3 (1/6): their difference 1/6 has one of sqrt(1/16 + 1/36) = 0.3005."""
    known = Intervention.objects.exclude(difference=None)
    above = known.filter(difference__gt=0).first()
    assert above is not None
    made = _sample(above)
    others = {name: found for name, found in (
        ("other", known.filter(difference__lt=0).first()), ("zero", known.filter(difference=0).first()),
    ) if found is not None}  # fmt: skip
    for item in others.values():
        _sample(item)
    elsewhere = next(
        (item, turn.decision)
        for item in Intervention.objects.exclude(pk__in=[above.pk, *(o.pk for o in others.values())])
        for turn in item.trajectory.turns.all()
        if turn.decision != item.selected
    )
    branch_on(elsewhere[0].trajectory, AT, elsewhere[1])  # a turn of which no block was taken back
    sampled = sampled_of(_version())
    assert sampled.total == 1 + len(others) and sampled.same == 1 and sampled.unknown == 0
    assert (sampled.other, sampled.zero) == ("other" in others, "zero" in others)
    assert sampled.signed == sampled.same + sampled.other
    assert made.value == pytest.approx(1 / 6) and standard_error(made) == pytest.approx(0.3005, abs=1e-4)
    assert next(row for row in sampled.rows if row.branch == made).is_sure is False
    page = client.get(PAGE).content.decode()
    assert f'href="/trajectories/{above.trajectory.uid}/branches/#branch-{made.uid.hex}"' in page
    assert "same sign" in page and "± 0.300" in page and "within 2 standard errors" in page


def test_what_is_not_known_stays_unknown(tried: World, db: None) -> None:
    """Neither a mean without a valid continuation nor an error of one of them makes a sign or a certainty."""
    item = Intervention.objects.filter(difference__gt=0).first()
    assert item is not None
    made = _sample(item)
    row = sampled_of(_version()).rows[0]
    made.value = None
    assert replace(row, branch=made).is_sure is None
    made.value = 1.0
    assert replace(row, branch=made).is_sure is True and replace(row, branch=made, error=None).is_sure is None
    made.points = [made.points[0] | {"standard_error": None}, made.points[1]]
    assert standard_error(made) is None


def test_counts_are_of_all_where_rows_are_cut(
    client: Client, tried: World, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "MOST", 1)
    for item in Intervention.objects.filter(difference__gt=0)[:2]:
        _sample(item)
    sampled = sampled_of(_version())
    assert len(sampled.rows) == 1 and sampled.total == 2
    assert "The newest 1 of 2 are shown." in client.get(PAGE).content.decode()
