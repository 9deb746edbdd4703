"""Addresses of the REST API, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import path, re_path, register_converter
from django.urls.converters import StringConverter

from runs.api import (
    branches,
    catalogue,
    cells,
    controls,
    events,
    executions,
    logged,
    me,
    plans,
    records,
    schema,
    studies,
    trials,
)
from runs.api.problems import not_found


class Hash(StringConverter):
    """A whole SHA-256."""

    regex = "[0-9a-f]{64}"


class Verb(StringConverter):
    """What may be done with a run or an execution."""

    regex = "pause|resume|cancel"


register_converter(Hash, "hash")
register_converter(Verb, "verb")

app_name = "api"
urlpatterns = [
    path("openapi.json", schema.OpenApi.as_view(), name="openapi"),
    path("me", me.Me.as_view(), name="me"),
    path("me/tokens", me.Tokens.as_view(), name="tokens"),
    path("me/tokens/<slug:prefix>/revoke", me.OneToken.as_view(), name="token_revoke"),
    path("studies", studies.Studies.as_view(), name="studies"),
    path("studies/<slug:slug>", studies.OneStudy.as_view(), name="study"),
    path("studies/<slug:slug>/plans", plans.CreatePlan.as_view(), name="plan_create"),
    path("plans", plans.Plans.as_view(), name="plans"),
    path("plans/<uuid:uid>", plans.OnePlan.as_view(), name="plan"),
    path("plans/<uuid:uid>/validate", plans.Validate.as_view(), name="plan_validate"),
    path("plans/<uuid:uid>/difference", plans.Difference.as_view(), name="plan_difference"),
    path("plans/<uuid:uid>/inspect", plans.Inspect.as_view(), name="plan_inspect"),
    path("plans/<uuid:uid>/preview", plans.Preview.as_view(), name="plan_preview"),
    path("plans/<uuid:uid>/freeze", plans.Freeze.as_view(), name="plan_freeze"),
    path("plans/<uuid:uid>/supersede", plans.Supersede.as_view(), name="plan_supersede"),
    path("plans/<uuid:uid>/start", plans.Start.as_view(), name="plan_start"),
    path("plans/<uuid:uid>/cells", cells.Cells.as_view(), name="plan_cells"),
    path("plans/<uuid:uid>/bytes", plans.PlanBytes.as_view(), name="plan_bytes"),
    path("executions", executions.Executions.as_view(), name="executions"),
    path("executions/<uuid:uid>", executions.OneExecution.as_view(), name="execution"),
    path("executions/<uuid:uid>/progress", executions.Progress.as_view(), name="execution_progress"),
    path("executions/<uuid:uid>/<verb:verb>", executions.ControlExecution.as_view(), name="execution_control"),
    path("runs", executions.Runs.as_view(), name="runs"),
    path("runs/<uuid:uid>", executions.OneRun.as_view(), name="run"),
    path("runs/<uuid:uid>/series", executions.AllSeries.as_view(), name="series_list"),
    path("runs/<uuid:uid>/series/<slug:key>", executions.Series.as_view(), name="series"),
    path("runs/<uuid:uid>/<verb:verb>", executions.ControlRun.as_view(), name="run_control"),
    path("studies/<slug:slug>/logged-runs", logged.CreateLoggedRun.as_view(), name="logged_run_create"),
    path("logged-runs", logged.LoggedRuns.as_view(), name="logged_runs"),
    path("logged-runs/<uuid:uid>", logged.OneLoggedRun.as_view(), name="logged_run"),
    path("logged-runs/<uuid:uid>/log", logged.Log.as_view(), name="logged_run_log"),
    path("logged-runs/<uuid:uid>/status", logged.MoveLoggedRun.as_view(), name="logged_run_status"),
    path("logged-runs/<uuid:uid>/link", logged.LinkLoggedRun.as_view(), name="logged_run_link"),
    path("logged-runs/<uuid:uid>/metrics", logged.Newest.as_view(), name="logged_run_metrics"),
    path("logged-runs/<uuid:uid>/history", logged.History.as_view(), name="logged_run_history"),
    path("logged-runs/<uuid:uid>/history.arrow", logged.HistoryArrow.as_view(), name="logged_run_arrow"),
    path("logged-runs/<uuid:uid>/chart", logged.Chart.as_view(), name="logged_run_chart"),
    path("jobs", executions.Jobs.as_view(), name="jobs"),
    path("jobs/<uuid:uid>", executions.OneJob.as_view(), name="job"),
    path("groups", records.Groups.as_view(), name="groups"),
    path("groups/<uuid:uid>", records.OneGroup.as_view(), name="group"),
    path("groups/<uuid:uid>/captures", records.GroupCaptures.as_view(), name="group_captures"),
    path("trajectories", records.Trajectories.as_view(), name="trajectories"),
    path("trajectories/<uuid:uid>", records.OneTrajectory.as_view(), name="trajectory"),
    path("trajectories/<uuid:uid>/tokens.arrow", records.TrajectoryTokens.as_view(), name="trajectory_tokens"),
    path("captures", records.Captures.as_view(), name="captures"),
    path("captures/<hash:sha256>", records.OneCapture.as_view(), name="capture"),
    path("captures/<hash:sha256>/bytes", records.CaptureBytes.as_view(), name="capture_bytes"),
    path("checkpoints", records.Checkpoints.as_view(), name="checkpoints"),
    path("checkpoints/<uuid:uid>", records.OneCheckpoint.as_view(), name="checkpoint"),
    path("checkpoints/<uuid:uid>/bytes", records.Adapter.as_view(), name="checkpoint_bytes"),
    path("evaluations", records.Evaluations.as_view(), name="evaluations"),
    path("trial-sets", trials.TrialSets.as_view(), name="trial_sets"),
    path("trial-sets/<uuid:uid>", trials.OneTrialSet.as_view(), name="trial_set"),
    path("interventions", trials.Interventions.as_view(), name="interventions"),
    path("trajectories/<uuid:uid>/intervention", trials.OneIntervention.as_view(), name="intervention"),
    path("trials", trials.Trials.as_view(), name="trials"),
    path("trials/<uuid:uid>", trials.OneTrial.as_view(), name="trial"),
    path("task-sets", catalogue.TaskSets.as_view(), name="task_sets"),
    path("task-sets/<uuid:uid>", catalogue.OneTaskSet.as_view(), name="task_set"),
    path("tasks", catalogue.Tasks.as_view(), name="tasks"),
    path("tasks/<uuid:uid>", catalogue.OneTask.as_view(), name="task"),
    path("branches", branches.Branches.as_view(), name="branches"),
    path("branches/<uuid:uid>", branches.OneBranch.as_view(), name="branch"),
    path("trajectories/<uuid:uid>/branches", branches.RequestBranch.as_view(), name="branch_request"),
    path("controls", controls.Controls.as_view(), name="controls"),
    path("controls/<uuid:uid>", controls.OneControls.as_view(), name="one_controls"),
    path("controls/<uuid:uid>/slots", controls.ControlSlots.as_view(), name="control_slots"),
    path("studies/<slug:slug>/controls", controls.RequestControls.as_view(), name="controls_request"),
    path("receipts", catalogue.Receipts.as_view(), name="receipts"),
    path("receipts/<hash:sha256>", catalogue.OneReceipt.as_view(), name="receipt"),
    path("receipts/<hash:sha256>/bytes", catalogue.ReceiptBytes.as_view(), name="receipt_bytes"),
    path("streams", catalogue.Streams.as_view(), name="streams"),
    path("events", events.Events.as_view(), name="events"),
    re_path(r"^", not_found, name="not_found"),
]
