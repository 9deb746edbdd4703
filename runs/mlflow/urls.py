"""Addresses of the tracking endpoint, at the site's root as MLflow's clients expect them."""

from __future__ import annotations

from django.urls import path, re_path

from runs.mlflow import experiments, files, history, other, running, search, writing

_API = "api/2.0/mlflow/"
_FILES = "api/2.0/mlflow-artifacts/"

app_name = "mlflow"
urlpatterns = [
    path("health", other.health, name="health"),
    path("version", other.spoken_version, name="version"),
    path(f"{_API}experiments/get-by-name", experiments.get_by_name, name="experiment_by_name"),
    path(f"{_API}experiments/create", experiments.make, name="experiment_create"),
    path(f"{_API}experiments/get", experiments.get, name="experiment"),
    path(f"{_API}experiments/search", experiments.search, name="experiments"),
    path(f"{_API}experiments/update", experiments.change, name="experiment_update"),
    path(f"{_API}experiments/delete", experiments.change, name="experiment_delete"),
    path(f"{_API}experiments/restore", experiments.change, name="experiment_restore"),
    path(f"{_API}experiments/set-experiment-tag", experiments.change, name="experiment_tag"),
    path(f"{_API}experiments/delete-experiment-tag", experiments.change, name="experiment_untag"),
    path(f"{_API}experiments/search-datasets", other.no_datasets, name="datasets"),
    path(f"{_API}runs/create", running.create, name="run_create"),
    path(f"{_API}runs/get", running.get, name="run"),
    path(f"{_API}runs/update", running.update, name="run_update"),
    path(f"{_API}runs/delete", running.delete, name="run_delete"),
    path(f"{_API}runs/restore", running.restore, name="run_restore"),
    path(f"{_API}runs/search", search.search, name="runs"),
    path(f"{_API}runs/log-metric", writing.log_metric, name="log_metric"),
    path(f"{_API}runs/log-parameter", writing.log_parameter, name="log_parameter"),
    path(f"{_API}runs/log-batch", writing.log_batch, name="log_batch"),
    path(f"{_API}runs/set-tag", writing.set_tag, name="set_tag"),
    path(f"{_API}runs/delete-tag", writing.delete_tag, name="delete_tag"),
    path(f"{_API}runs/log-inputs", writing.log_inputs, name="log_inputs"),
    path(f"{_API}runs/outputs", writing.log_outputs, name="log_outputs"),
    path(f"{_API}runs/log-model", other.models, name="log_model"),
    path(f"{_API}metrics/get-history", history.get_history, name="history"),
    path(f"{_API}metrics/get-history-bulk", history.get_history_bulk, name="history_bulk"),
    path(f"{_API}metrics/get-history-bulk-interval", history.get_history_bulk_interval, name="history_interval"),
    path(f"{_API}artifacts/list", files.of_run, name="run_files"),
    path(f"{_API}artifacts/presigned-upload-url", files.unsupported, name="presigned_upload"),
    path(f"{_API}artifacts/presigned-download-url", files.unsupported, name="presigned_download"),
    path(f"{_FILES}artifacts", files.below, name="files"),
    path(f"{_FILES}artifacts/<path:path>", files.one, name="file"),
    path(f"{_FILES}mpu/<path:path>", files.unsupported, name="multipart"),
    path(f"{_FILES}presigned/<path:path>", files.unsupported, name="presigned"),
    path("api/3.0/mlflow/server-info", other.server_info, name="server_info"),
    path(f"{_API}logged-models/search", other.no_models, name="models"),
    re_path(rf"^{_API}logged-models(?:/.*)?$", other.models, name="model"),
    re_path(r"^api/[23]\.0/mlflow/traces/search$", other.no_traces, name="traces"),
    re_path(r"^api/[23]\.0/mlflow/traces(?:/.*)?$", other.traces, name="trace"),
    re_path(r"^api/[23]\.0/mlflow(?:-artifacts)?/", other.unknown, name="unknown"),
]
