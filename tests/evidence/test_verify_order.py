"""verify: a plan that claims to be frozen after its first group is named."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from evidence.verify import verify
from runs.models import Group, PlanVersion
from tests.runs.builders import World
from workbench.db import drop_triggers


def test_a_freeze_after_the_first_group_is_named(db: None, world: World) -> None:
    """Row time moved to a day after the first group: step 2 says which plan and that it came too late."""
    late = Group.objects.earliest("created_at").created_at + timedelta(days=1)
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_planversion SET created_at = %s", [late])
    problems = [item for item in verify(store=world.store).faults if item.column == "created_at"]
    places = [(item.step, item.table) for item in problems]
    assert places == [(2, "runs_planversion")] * 2  # too late, and not the time of the receipt
    assert {item.row for item in problems} == {str(PlanVersion.objects.get().uid)}
    assert sum(item.expected.startswith("before ") for item in problems) == 1
