"""Who may log and read, experiments as studies, and how refusals sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from runs.actions.tokens import revoke_token
from runs.models import ApiToken, AuditEntry, Membership, MetricBatch, Study, TrackedRun, User
from tests.mlflow.calls import Mlflow, point
from tests.mlflow.conftest import make_study, secret_of

pytestmark = pytest.mark.django_db
Caller = Callable[..., Mlflow]


def test_nobody_is_asked_for_a_token(study: Study) -> None:
    for method, path in (("GET", "experiments/search"), ("POST", "runs/log-batch"), ("POST", "runs/create")):
        answer = Mlflow("").call(method, path)
        assert answer.status_code == 401 and answer.json()["error_code"] == "UNAUTHENTICATED"
        assert "Bearer" in answer["WWW-Authenticate"]


def test_basic_takes_the_token_as_password(study: Study) -> None:
    secret = secret_of("mara", study, "researcher")
    for name in ("mara", "token", ""):
        assert Mlflow(secret, basic=name).get("experiments/search")["experiments"]
    for name, word in (("ada", secret), ("mara", "wrong"), ("mara", "correct horse battery")):
        assert Mlflow(word, basic=name).call("GET", "experiments/search").status_code == 401
    bad = Mlflow("")
    for header in ("Basic ???", "Digest abc", "Bearer", "Bearer wb_x", "Basic"):
        bad.headers = {"Authorization": header}
        assert bad.call("GET", "experiments/search").status_code == 401


def test_a_password_opens_nothing(study: Study) -> None:
    User.objects.create_user("eve", password="correct horse battery")
    assert Mlflow("correct horse battery", basic="eve").call("GET", "experiments/search").status_code == 401


def test_a_revoked_token_logs_nothing_from_then_on(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-metric", run_id=run, **point("x", 1.0))
    token = ApiToken.objects.get()
    revoke_token(token, by=token.user, at=timezone.now())
    assert mara.post("runs/log-metric", 401, run_id=run, **point("x", 2.0, 1))["error_code"] == "UNAUTHENTICATED"
    assert MetricBatch.objects.count() == 1


def test_a_role_that_is_taken_is_gone_at_once(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    Membership.objects.all().delete()
    assert mara.post("runs/log-metric", 404, run_id=run, **point("x", 1.0))["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    Membership.objects.create(study=study, user=User.objects.get(username="mara"), role="viewer")
    assert mara.post("runs/log-metric", 403, run_id=run, **point("x", 1.0))["error_code"] == "PERMISSION_DENIED"
    assert mara.get("runs/get", run_id=run)["run"]["info"]["run_id"] == run
    assert AuditEntry.objects.filter(status=403, route__startswith="mlflow:log_metric").get().study == study


def test_scopes_narrow_what_a_token_logs(caller: Caller, study: Study) -> None:
    worker = caller("ben", study, "worker", ("log",))
    run = worker.run(study.pk)
    worker.post("runs/log-metric", run_id=run, **point("x", 1.0))
    reader = caller("ada", study, "researcher", ("read",))
    assert reader.get("runs/get", run_id=run)["run"]["info"]["run_id"] == run
    assert "scope read" in reader.post("runs/log-metric", 403, run_id=run, **point("x", 1.0))["message"]
    assert "scope write" in worker.post("experiments/create", 403, name="a new one")["message"]


def test_an_absent_run_and_a_hidden_one_sound_alike(mara: Mlflow, caller: Caller) -> None:
    other = make_study("hidden")
    hidden = caller("ada", other).run(other.pk)
    for path in ("runs/get?run_id={}", "artifacts/list?run_id={}", "metrics/get-history?run_id={}&metric_key=x"):
        first, second = (mara.call("GET", path.format(name)) for name in (hidden, "f" * 32))
        assert first.status_code == second.status_code == 404
        assert first.json()["message"].replace(hidden, "-") == second.json()["message"].replace("f" * 32, "-")
    for path in ("runs/update", "runs/delete", "runs/log-batch", "runs/set-tag", "runs/log-inputs"):
        body: dict[str, Any] = {"run_id": hidden, "key": "a", "value": "b"}
        assert mara.post(path, 404, **body)["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert mara.post("runs/create", 404, experiment_id=str(other.pk))["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert TrackedRun.objects.count() == 1


def test_an_experiment_is_a_study_by_slug_or_title(mara: Mlflow, study: Study) -> None:
    for name in ("logs", "Logs"):
        found = mara.get("experiments/get-by-name", experiment_name=name)["experiment"]
        assert (found["experiment_id"], found["lifecycle_stage"]) == (str(study.pk), "active")
    assert mara.get("experiments/get", experiment_id=study.pk)["experiment"]["name"] == "Logs"
    for wrong in ("999999", "abc", "-1", "9" * 30):
        assert mara.get("experiments/get", 404, experiment_id=wrong)["error_code"] == "RESOURCE_DOES_NOT_EXIST"


@pytest.mark.parametrize("name", ["fresh", "My Experiment / two", "中文实验", "a", "new", "x" * 300])
def test_a_new_experiment_is_a_private_study_of_the_caller(mara: Mlflow, caller: Caller, name: str) -> None:
    assert mara.get("experiments/get-by-name", 404, experiment_name=name)["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    made = mara.post("experiments/create", name=name)["experiment_id"]
    study = Study.objects.get(pk=int(made))
    assert (study.title_en, study.visibility) == (name, "private")
    assert mara.get("experiments/get-by-name", experiment_name=name)["experiment"]["experiment_id"] == made
    assert mara.post("experiments/create", 400, name=name)["error_code"] == "RESOURCE_ALREADY_EXISTS"
    mara.run(made)
    other = caller("ada")
    other.get("experiments/get-by-name", 404, experiment_name=name)
    mine = other.post("experiments/create", name=name)["experiment_id"]  # names are each one's own
    assert mine != made and other.get("experiments/get-by-name", experiment_name=name)["experiment"]["name"] == name


@pytest.mark.parametrize("name", ["", "   ", "x" * 301, 7, None])
def test_an_experiment_without_a_name_is_refused(mara: Mlflow, name: Any) -> None:
    assert mara.post("experiments/create", 400, name=name)["error_code"] == "INVALID_PARAMETER_VALUE"


def test_the_default_experiment_is_each_ones_own(mara: Mlflow, caller: Caller) -> None:
    run = mara.run("0")
    mine = mara.get("runs/get", run_id=run)["run"]["info"]["experiment_id"]
    assert mara.get("experiments/get", experiment_id="0")["experiment"]["experiment_id"] == mine
    assert mara.get("experiments/get-by-name", experiment_name="Default")["experiment"]["experiment_id"] == mine
    assert len(mara.post("runs/search", experiment_ids=["0"])["runs"]) == 1
    ada = caller("ada")
    assert ada.post("runs/search", experiment_ids=["0"]) == {"runs": []}
    assert ada.get("experiments/get", experiment_id="0")["experiment"]["experiment_id"] != mine


def test_the_list_of_experiments_pages_and_filters(mara: Mlflow, study: Study) -> None:
    for number in range(3):
        mara.post("experiments/create", name=f"e{number}x")
    make_study("hidden")
    first = mara.get("experiments/search", max_results=3)
    rest = mara.get("experiments/search", max_results=3, page_token=first["next_page_token"])
    listed = [item["name"] for item in [*first["experiments"], *rest["experiments"]]]
    assert listed == ["e2x", "e1x", "e0x", "Logs"] and "next_page_token" not in rest
    assert len(mara.post("experiments/search", max_results=10, filter="name = 'e1x'")["experiments"]) == 1
    mara.post("experiments/search", 400, max_results=10, filter="tags.a = 'b'")
    mara.get("experiments/search", 400, max_results=3, page_token="nonsense")


def test_what_is_not_served_says_so(mara: Mlflow, study: Study) -> None:
    for path in ("experiments/update", "experiments/delete", "experiments/set-experiment-tag"):
        answer = mara.post(path, 400, experiment_id=str(study.pk), new_name="x", key="a", value="b")
        assert answer["error_code"] == "NOT_IMPLEMENTED"
    for path in ("logged-models", "/api/3.0/mlflow/traces", "/api/2.0/mlflow/traces", "runs/log-model"):
        assert mara.post(path, 400)["error_code"] == "NOT_IMPLEMENTED"
    assert mara.post("logged-models/search") == {"models": []}
    assert mara.post("/api/3.0/mlflow/traces/search") == {"traces": []}
    for path in ("registered-models/search", "nonsense"):
        assert mara.get(path, 404)["error_code"] == "ENDPOINT_NOT_FOUND"


def test_a_method_that_is_not_served(mara: Mlflow) -> None:
    answer = mara.call("GET", "runs/log-batch")
    assert answer.status_code == 405 and answer["Allow"] == "POST"
    assert mara.call("DELETE", "runs/get").status_code == 405


@pytest.mark.parametrize("raw", [b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"run_id": ' + b"[" * 5000])
def test_a_body_that_is_no_object(mara: Mlflow, raw: bytes) -> None:
    answer = mara.call("POST", "runs/log-batch", raw=raw)
    assert answer.status_code == 400 and answer.json()["error_code"] == "MALFORMED_REQUEST"


def test_a_body_that_is_too_large(mara: Mlflow, settings: Any) -> None:
    settings.REQUEST_BODY_LIMIT = 1000
    answer = mara.call("POST", "runs/log-batch", raw=b" " * 1001)
    assert answer.status_code == 413 and answer.json()["error_code"] == "REQUEST_TOO_LARGE"


def test_too_many_requests_are_told_when_to_come_again(mara: Mlflow, study: Study, settings: Any) -> None:
    settings.API_RATES = {**settings.API_RATES, "log": 3}
    run = mara.run(study.pk)
    mara.post("runs/log-metric", run_id=run, **point("x", 1.0))
    mara.post("runs/log-metric", run_id=run, **point("x", 2.0, 1))
    answer = mara.call("POST", "runs/log-metric", {"run_id": run, **point("x", 3.0, 2)})
    assert answer.status_code == 429 and answer.json()["error_code"] == "REQUEST_LIMIT_EXCEEDED"
    assert 1 <= int(answer["Retry-After"]) <= 60 and MetricBatch.objects.count() == 2


def test_health_and_version_need_no_token() -> None:
    nobody = Mlflow("")
    assert nobody.client.get("/health").content == b"OK"
    assert nobody.client.get("/version").content == b"3.17.2"


def test_logged_runs_stay_out_of_the_lists_of_plans(mara: Mlflow, study: Study) -> None:
    """Also for a site admin, who sees everything else."""
    mara.run(study.pk)
    boss = User.objects.create_user("boss", is_superuser=True)
    mara.client.force_login(boss)
    assert mara.client.get("/runs/").status_code == 200
    assert mara.client.get("/").status_code == 200
    assert mara.client.get("/api/v1/runs").json()["items"] == []
    assert len(mara.client.get("/api/v1/logged-runs").json()["items"]) == 1
