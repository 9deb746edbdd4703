"""The expected rights of the tracking endpoint, written by hand; letters and columns as in ``rights``.

Only tokens count there: a session is nobody, so that a page elsewhere cannot make a browser log.
"""

from __future__ import annotations

from typing import Any

from tests.people.rights_row import EVERYONE, READERS, Row

_API = "/api/2.0/mlflow/"
_FILES = "/api/2.0/mlflow-artifacts/"
_NOBODY = "llllllll"
_SIGNED_IN = "looooooo"
_READERS = "lnoooooo"
_LOGGERS = "lnfofooo"  # researchers, workers and admins write; stranger: as if it did not exist
_OWN = "/api/v1/logged-runs/{logged_uid}"
_RUN = {"run_id": "{logged}"}
_EXPERIMENT = {"experiment_id": "{study_pk}"}
_POINT = {"key": "loss", "value": 1.0, "timestamp": 5, "step": 1}


def _row(name: str, method: str, path: str, expected: str, body: dict[str, Any] | None = None) -> Row:
    return Row(f"mlflow:{name}", method, path, _NOBODY, body or {}, token=expected)


TRACKING = [
    Row("mlflow:health", "GET", "/health", EVERYONE),
    Row("mlflow:version", "GET", "/version", EVERYONE),
    _row("server_info", "GET", "/api/3.0/mlflow/server-info", _SIGNED_IN),
    _row("experiment_by_name", "GET", f"{_API}experiments/get-by-name?experiment_name={{study}}", _READERS),
    _row("experiment_create", "POST", f"{_API}experiments/create", _SIGNED_IN, {"name": "fresh one"}),
    _row("experiment", "GET", f"{_API}experiments/get?experiment_id={{study_pk}}", _READERS),
    _row("experiments", "GET", f"{_API}experiments/search?max_results=5", _SIGNED_IN),
    _row("experiments", "POST", f"{_API}experiments/search", _SIGNED_IN, {"max_results": 5}),
    _row("experiment_update", "POST", f"{_API}experiments/update", _READERS, {**_EXPERIMENT, "new_name": "x"}),
    _row("experiment_delete", "POST", f"{_API}experiments/delete", _READERS, _EXPERIMENT),
    _row("experiment_restore", "POST", f"{_API}experiments/restore", _READERS, _EXPERIMENT),
    _row("experiment_tag", "POST", f"{_API}experiments/set-experiment-tag", _READERS, _EXPERIMENT),
    _row("experiment_untag", "POST", f"{_API}experiments/delete-experiment-tag", _READERS, _EXPERIMENT),
    _row("datasets", "POST", f"{_API}experiments/search-datasets", _SIGNED_IN),
    _row("run_create", "POST", f"{_API}runs/create", _LOGGERS, {**_EXPERIMENT, "run_name": "one"}),
    _row("run", "GET", f"{_API}runs/get?run_id={{logged}}", _READERS),
    _row("run_update", "POST", f"{_API}runs/update", _LOGGERS, {**_RUN, "status": "FINISHED"}),
    _row("run_delete", "POST", f"{_API}runs/delete", _LOGGERS, _RUN),
    _row("run_restore", "POST", f"{_API}runs/restore", _LOGGERS, _RUN),
    _row("runs", "POST", f"{_API}runs/search", _SIGNED_IN, {"experiment_ids": ["{study_pk}"]}),
    _row("log_metric", "POST", f"{_API}runs/log-metric", _LOGGERS, {**_RUN, **_POINT}),
    _row("log_parameter", "POST", f"{_API}runs/log-parameter", _LOGGERS, {**_RUN, "key": "lr", "value": "1"}),
    _row("log_batch", "POST", f"{_API}runs/log-batch", _LOGGERS, {**_RUN, "metrics": [_POINT]}),
    _row("set_tag", "POST", f"{_API}runs/set-tag", _LOGGERS, {**_RUN, "key": "a", "value": "b"}),
    _row("delete_tag", "POST", f"{_API}runs/delete-tag", _LOGGERS, {**_RUN, "key": "mlflow.runName"}),
    _row("log_inputs", "POST", f"{_API}runs/log-inputs", _LOGGERS, {**_RUN, "datasets": []}),
    _row("log_outputs", "POST", f"{_API}runs/outputs", _LOGGERS, {**_RUN, "models": []}),
    _row("history", "GET", f"{_API}metrics/get-history?run_id={{logged}}&metric_key=loss", _READERS),
    _row("history_bulk", "GET", f"{_API}metrics/get-history-bulk?run_id={{logged}}&metric_key=loss", _READERS),
    _row(
        "history_interval",
        "GET",
        f"{_API}metrics/get-history-bulk-interval?run_ids={{logged}}&metric_key=loss",
        _READERS,
    ),
    _row("run_files", "GET", f"{_API}artifacts/list?run_id={{logged}}", _READERS),
    _row("files", "GET", f"{_FILES}artifacts?path={{study_pk}}/{{logged}}/artifacts", _READERS),
    _row("file", "PUT", f"{_FILES}artifacts/{{study_pk}}/{{logged}}/artifacts/new.json", _LOGGERS, {"a": 1}),
    _row("file", "GET", f"{_FILES}artifacts/{{study_pk}}/{{logged}}/artifacts/a.txt", _READERS),
    # Refused in words to every live token.
    _row("presigned_upload", "POST", f"{_API}artifacts/presigned-upload-url", _SIGNED_IN, _RUN),
    _row("presigned_download", "POST", f"{_API}artifacts/presigned-download-url", _SIGNED_IN, _RUN),
    _row("multipart", "POST", f"{_FILES}mpu/create/{{study_pk}}/{{logged}}/artifacts/a.txt", _SIGNED_IN),
    _row("presigned", "GET", f"{_FILES}presigned/{{study_pk}}/{{logged}}/artifacts/a.txt", _SIGNED_IN),
    _row("log_model", "POST", f"{_API}runs/log-model", _SIGNED_IN, _RUN),
    _row("models", "POST", f"{_API}logged-models/search", _SIGNED_IN),
    _row("model", "POST", f"{_API}logged-models", _SIGNED_IN, {"name": "m"}),
    _row("traces", "POST", "/api/3.0/mlflow/traces/search", _SIGNED_IN),
    _row("trace", "POST", "/api/3.0/mlflow/traces", _SIGNED_IN),
    # The product's own API.
    Row("api:logged_runs", "GET", "/api/v1/logged-runs", EVERYONE),
    Row("api:logged_run_create", "POST", "/api/v1/studies/{study}/logged-runs", _LOGGERS, {"name": "two"}),
    Row("api:logged_run", "GET", f"{_OWN}", READERS),
    Row("api:logged_run_log", "POST", f"{_OWN}/log", _LOGGERS, {"tags": {"a": "b"}}),
    Row("api:logged_run_status", "POST", f"{_OWN}/status", _LOGGERS, {"status": "finished"}),
    Row("api:logged_run_link", "POST", f"{_OWN}/link", _LOGGERS, {"plan_version": "no", "reason": "it follows it"}),
    Row("api:logged_run_metrics", "GET", f"{_OWN}/metrics", READERS),
    Row("api:logged_run_history", "GET", f"{_OWN}/history?name=loss", READERS),
    Row("api:logged_run_arrow", "GET", f"{_OWN}/history.arrow", READERS),
    Row("api:logged_run_chart", "GET", f"{_OWN}/chart?name=loss", READERS),
    Row("mlflow:unknown", "GET", f"{_API}registered-models/search", "nnnnnnnn"),
]
