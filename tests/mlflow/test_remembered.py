"""What the server remembers of tokens and runs never outlives a change: real commits, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from runs.actions.tokens import revoke_token
from runs.models import ApiToken, Membership, MetricBatch, Study, User
from tests.mlflow.calls import Mlflow, point
from tests.mlflow.conftest import make_study, secret_of
from tests.runs.conftest import database as database
from tests.runs.conftest import postgres_template as postgres_template
from tests.runs.conftest import sqlite_template as sqlite_template


@pytest.fixture
def own_study(database: BaseDatabaseWrapper) -> Study:
    return make_study()


@pytest.fixture
def mara(own_study: Study) -> Mlflow:
    return Mlflow(secret_of("mara", own_study, "researcher"))


def log(mara: Mlflow, run: str, step: int) -> int:
    return int(mara.call("POST", "runs/log-metric", {"run_id": run, **point("x", float(step), step)}).status_code)


def test_every_change_counts_at_once(mara: Mlflow, own_study: Study) -> None:
    run = mara.run(own_study.pk)
    assert [log(mara, run, step) for step in range(3)] == [200] * 3
    member = Membership.objects.get()
    member.delete()
    assert log(mara, run, 3) == 404
    Study.objects.update(visibility="internal")
    assert log(mara, run, 3) == 403
    Membership.objects.create(study=own_study, user=User.objects.get(), role="viewer")
    assert log(mara, run, 3) == 403
    Membership.objects.create(study=own_study, user=User.objects.get(), role="worker")
    assert log(mara, run, 3) == 200
    mara.post("runs/delete", run_id=run)
    assert log(mara, run, 4) == 400
    mara.post("runs/restore", run_id=run)
    mara.post("runs/update", run_id=run, status="FINISHED")
    mara.post("runs/update", run_id=run, status="RUNNING")
    assert log(mara, run, 4) == 200
    assert mara.history(run, "x") == [(step, 1, float(step)) for step in range(5)]
    ApiToken.objects.update(scopes=["read"])
    assert log(mara, run, 5) == 403
    ApiToken.objects.update(scopes=["log"])
    assert log(mara, run, 5) == 200
    User.objects.update(is_active=False)
    assert log(mara, run, 6) == 401
    User.objects.update(is_active=True)
    assert log(mara, run, 6) == 200
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert log(mara, run, 7) == 401
    ApiToken.objects.update(expires_at=None)
    token = ApiToken.objects.get()
    revoke_token(token, by=token.user, at=timezone.now())
    assert log(mara, run, 7) == 401
    assert MetricBatch.objects.count() == 7


def test_the_second_attempt_is_another_series_for_those_who_remember_the_first(mara: Mlflow, own_study: Study) -> None:
    run = mara.run(own_study.pk)
    log(mara, run, 1)
    mara.post("runs/update", run_id=run, status="FAILED")
    mara.post("runs/update", run_id=run, status="RUNNING")
    log(mara, run, 1)
    assert mara.history(run, "x") == [(1, 1, 1.0), (1, 1, 1.0)]


def test_a_site_admin_needs_no_role(own_study: Study) -> None:
    boss = Mlflow(secret_of("boss", None, ""))
    User.objects.filter(username="boss").update(is_superuser=True)
    run = boss.run(own_study.pk)
    assert log(boss, run, 0) == 200
    User.objects.filter(username="boss").update(is_superuser=False)
    assert log(boss, run, 1) == 404
