"""The same study on PostgreSQL and a real Redis, through two environment variables alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.tiny import Ran, differences, none_left, run_tiny, verified

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


def test_postgres_and_redis_give_the_closure_of_sqlite(
    tmp_path: Path, cache: Path, undisturbed: Ran, fresh_postgres_url: str, redis_url: str
) -> None:
    variables = {"DATABASE_URL": fresh_postgres_url, "WORKBENCH_BROKER_URL": redis_url}
    home = tmp_path / "home"
    ran = run_tiny(home, cache, **variables)
    assert not (home / "db.sqlite3").exists() and not (home / "logs" / "broker.log").exists()
    assert ran.summary["closure"] == undisturbed.summary["closure"]
    assert not differences(undisturbed.facts, ran.facts)
    verified(home, cache, **variables)
    none_left(home)
