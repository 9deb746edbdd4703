"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from runs import urls_catalogue, urls_compare, urls_filters, urls_layers, urls_logged, urls_people, urls_trials
from runs.views import (
    branches,
    checkpoints,
    control,
    groups,
    jobs,
    lists,
    now,
    plans,
    receipts,
    results,
    run,
    search,
    series,
    trajectories,
)

app_name = "runs"
urlpatterns = [
    *urls_catalogue.urlpatterns,
    *urls_compare.urlpatterns,
    *urls_people.urlpatterns,
    *urls_filters.urlpatterns,
    *urls_layers.urlpatterns,
    *urls_logged.urlpatterns,
    *urls_trials.urlpatterns,
    path("favicon.ico", now.favicon, name="favicon"),
    path("", now.now, name="now"),
    path("now/live/", now.live, name="now_live"),
    path("search/", search.search, name="search"),
    path("studies/<slug:study>/", plans.study, name="study"),
    path("plans/", plans.plans, name="plans"),
    path("studies/<slug:study>/plans/<slug:plan>/", plans.plan, name="plan"),
    path("studies/<slug:study>/plans/<slug:plan>/plan.json", plans.plan_bytes, name="plan_bytes"),
    path("studies/<slug:study>/plans/<slug:plan>/results/", results.results, name="results"),
    path("runs/", lists.runs, name="runs"),
    path("runs/<uuid:uid>/", run.run, name="run"),
    path("runs/<uuid:uid>/live/", run.live, name="run_live"),
    path("runs/<uuid:uid>/series/<slug:key>.json", series.series_json, name="series_json"),
    path("runs/<uuid:uid>/series/<slug:key>.csv", series.series_csv, name="series_csv"),
    path("runs/<uuid:uid>/<str:verb>/", control.control, name="run_control"),
    path("groups/<uuid:uid>/", groups.group, name="group"),
    path("trajectories/<uuid:uid>/", trajectories.trajectory, name="trajectory"),
    path("trajectories/<uuid:uid>/branches/", branches.branches, name="branches"),
    path("trajectories/<uuid:uid>/branches/ask/", branches.ask, name="branch_ask"),
    path("trajectories/<uuid:uid>/tokens.json", trajectories.tokens, name="trajectory_tokens"),
    path("evaluations/", lists.evaluations, name="evaluations"),
    path("checkpoints/", checkpoints.checkpoints, name="checkpoints"),
    path("checkpoints/<str:sha256>/adapter/", checkpoints.adapter, name="adapter"),
    path("receipts/", receipts.receipts, name="receipts"),
    path("receipts/verify/", receipts.verify, name="receipts_verify"),
    path("receipts/<str:sha256>/", receipts.receipt, name="receipt"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:uid>/", jobs.job, name="job"),
]
