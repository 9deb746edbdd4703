"""Every key, word and order of the query language on SQLite and PostgreSQL: the same conditions, pages and counts."""

from __future__ import annotations

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import QueryDict
from django.utils import timezone

from runs.access import Principal
from runs.models import Trajectory, User
from runs.presenters.search import find, search
from runs.query.listing import build_listing, within
from tests.load.routes import queries
from tests.runs.builders import build_world

BOTH = ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.gate])]


@pytest.mark.parametrize("database", BOTH, indirect=True)
def test_every_query_reads_what_it_counts(database: BaseDatabaseWrapper) -> None:
    """Nobody and the site's admin ask everything. What an order lists is what its count says, none twice."""
    build_world(groups=3, updates=1)
    admin = User.objects.create(username="site", is_superuser=True, date_joined=timezone.now())
    asked = 0
    for principal in (Principal(None), Principal(admin)):
        for address in queries().values():
            path, _mark, given = address.partition("?")
            listing = build_listing(path.strip("/"), principal, QueryDict(given))
            asked += 1
            if listing.errors:  # a name of the large world, which this one lacks
                assert not listing.rows and all(error.term.partition(":")[0] for error in listing.errors), address
                continue
            assert len({row.pk for row in listing}) == len(listing) == min(listing.count, 50), address
    assert asked > 300


def test_search_and_neighbours(database: BaseDatabaseWrapper) -> None:
    world, nobody = build_world(groups=3, updates=1), Principal(None)
    kinds = {str(hit.kind) for hit in find(nobody, str(world.run.uid)[:8])}
    assert "run" in kinds and find(nobody, world.run.name)
    assert search(nobody, "kind:plan.*").routes and search(nobody, "slot:0").routes
    rows = list(Trajectory.objects.order_by("-pk"))
    given = QueryDict("in=trajectories&q=slot:0,1,2,3")
    found = within(nobody, given, "trajectories", rows[1], "runs:trajectory")
    assert found is not None and str(rows[0].uid) in found.previous_url and str(rows[2].uid) in found.next_url
