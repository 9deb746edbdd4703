"""What was collected: groups, trajectories, captures, checkpoints, evaluation items."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from runs.access import get_visible, sees_everything, version_ids, visible
from runs.actions.tombstones import standing_tombstones
from runs.api.base import ApiView, DetailView, Filter, ListView, OfPlan, check_parameters
from runs.api.downloads import send_blob, send_bytes
from runs.api.problems import ApiProblem
from runs.api.record_serializers import (
    CaptureSerializer,
    CheckpointSerializer,
    EvaluationSerializer,
    GroupSerializer,
    TrajectoryDetail,
    TrajectorySerializer,
)
from runs.models import Checkpoint, EvaluationItem, Group, Trajectory, Turn
from runs.models.plan import heavy
from runs.storage import blob_store
from runs.visibility import visible_checkpoints
from workbench.capturefile import read_capture
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.records import CaptureRef

ARROW = "application/vnd.apache.arrow.stream"
CAPTURE = "application/vnd.workbench.capture"


def groups() -> QuerySet[Group]:
    """Groups with what their representation reads."""
    return Group.objects.select_related("run", "task")


def trajectories() -> QuerySet[Trajectory]:
    """Trajectories with what their representation reads."""
    return Trajectory.objects.select_related("group__run", "group__task")


class Groups(ListView):
    """Groups of visible studies."""

    tag, summary, serializer = "groups", "List groups", GroupSerializer
    filters = (
        Filter("run", "run__uid", "uuid"),
        OfPlan("plan", "plan_version__in", "uuid"),
        Filter("purpose", "purpose", choices=("preflight", "train", "evaluate")),
        Filter("condition", "condition"),
        Filter("split", "split"),
        Filter("task", "task__uid", "uuid"),
        Filter("eligible", "eligible", "boolean"),
        Filter("signal", "signal"),
        Filter("min_ordinal", "ordinal__gte", "integer"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, groups())


class OneGroup(DetailView):
    """One group."""

    tag, summary, serializer = "groups", "Read a group", GroupSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, groups(), uid=kwargs["uid"])


class GroupCaptures(ApiView):
    """The group's capture file as it lies in the store."""

    tag, summary = "groups", "Download a group's capture file"
    is_download = True

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The blob."""
        check_parameters(request, ())
        group = get_visible(self.principal, groups(), uid=kwargs["uid"])
        sha256 = group.capture_blob_sha256
        return send_blob(request, sha256, f"group-{group.uid}.captures", "application/octet-stream")


class HasFatal(Filter):
    """``has_fatal=true`` asks for rows whose column is not null."""

    def value(self, text: str) -> Any:
        return not super().value(text)


class Trajectories(ListView):
    """Trajectories of visible studies."""

    tag, summary, serializer = "trajectories", "List trajectories", TrajectorySerializer
    filters = (
        Filter("group", "group__uid", "uuid"),
        Filter("run", "group__run__uid", "uuid"),
        OfPlan("plan", "group__plan_version__in", "uuid"),
        Filter("purpose", "group__purpose", choices=("preflight", "train", "evaluate")),
        Filter("condition", "group__condition"),
        Filter("split", "group__split"),
        Filter("task", "group__task__uid", "uuid"),
        Filter("status", "status"),
        Filter("terminal", "terminal"),
        Filter("success", "success", "boolean"),
        Filter("recovered", "recovered", "boolean"),
        HasFatal("has_fatal", "fatal_confirmed__isnull", "boolean"),
        Filter("min_reward", "reward_total__gte", "number"),
        Filter("max_reward", "reward_total__lte", "number"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, trajectories())


class OneTrajectory(DetailView):
    """One trajectory with turns, Observations, reward components and invariants."""

    tag, summary, serializer = "trajectories", "Read a trajectory", TrajectoryDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, trajectories(), uid=kwargs["uid"])


def captures() -> QuerySet[Turn]:
    """Turns that hold a capture."""
    return Turn.objects.filter(capture_sha256__isnull=False).select_related("trajectory__group")


class Captures(ListView):
    """Captured model calls."""

    tag, summary, serializer = "captures", "List captures", CaptureSerializer
    filters = (
        Filter("trajectory", "trajectory__uid", "uuid"),
        Filter("group", "trajectory__group__uid", "uuid"),
        Filter("run", "trajectory__group__run__uid", "uuid"),
        Filter("policy_version", "policy_version", "integer"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        if sees_everything(self.principal):
            return captures()
        # A condition on each row, not a join: with a million rows the newest are found by key, without a sort.
        group = Group.objects.filter(pk=OuterRef("trajectory__group"), plan_version__in=version_ids(self.principal))
        return captures().filter(Exists(group))


class OneCapture(DetailView):
    """One captured model call."""

    tag, summary, serializer = "captures", "Read a capture's metadata", CaptureSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, captures(), capture_sha256=kwargs["sha256"])


def capture_bytes(turn: Turn) -> bytes:
    """Exact bytes of a capture, whose hash is checked; 410 or 404 where the store holds none."""
    blob = turn.trajectory.group.capture_blob_sha256
    store = blob_store()
    if not store.exists(blob):
        gone = standing_tombstones([blob]).get(blob)
        raise ApiProblem(
            410 if gone else 404, f"blob {blob}: " + (gone.reason if gone else "the store holds no such bytes")
        )
    assert turn.capture_sha256 is not None and turn.offset is not None and turn.length is not None
    ref = CaptureRef(turn.capture_sha256, str(turn.trajectory.uid), turn.decision, turn.offset, turn.length)
    return read_capture(store.get(blob), ref)


class CaptureBytes(ApiView):
    """The bytes that ``capture_sha256`` covers."""

    tag, summary = "captures", "Download a capture's exact bytes"
    is_download, media_type = True, CAPTURE

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Header and arrays."""
        check_parameters(request, ())
        turn = get_visible(self.principal, captures(), capture_sha256=kwargs["sha256"])
        data = capture_bytes(turn)
        return send_bytes(request, data, sha256_hex(data), f"{turn.capture_sha256}.capture", CAPTURE)


SCHEMA = pa.schema(
    [
        ("decision", pa.int32()),
        ("branch", pa.string()),
        ("position", pa.int32()),
        ("token", pa.int32()),
        ("is_prompt", pa.bool_()),
        ("is_policy", pa.bool_()),
        ("segment", pa.int32()),
        ("sampler_logprob", pa.float32()),
        ("capture_sha256", pa.string()),
    ]
)


def token_batch(turn: Turn) -> pa.RecordBatch:
    """One capture as columns: its prompt, then what was generated. A log-probability that is absent is null."""
    capture = Capture.from_bytes(capture_bytes(turn))
    prompt, generated = list(capture.prompt_ids), list(capture.generated_ids)
    n, m = len(prompt), len(generated)
    logprobs = [None] * m if capture.sampler_logprobs is None else list(capture.sampler_logprobs)
    return pa.record_batch(
        [
            pa.array([turn.decision] * (n + m), pa.int32()),
            pa.array([turn.branch] * (n + m), pa.string()),
            pa.array(range(n + m), pa.int32()),
            pa.array(prompt + generated, pa.int32()),
            pa.array([True] * n + [False] * m, pa.bool_()),
            pa.array([False] * n + [bool(v) for v in capture.is_policy_token], pa.bool_()),
            pa.array([None] * n + [int(v) for v in capture.segments], pa.int32()),
            pa.array([None] * n + logprobs, pa.float32()),
            pa.array([turn.capture_sha256] * (n + m), pa.string()),
        ],
        schema=SCHEMA,
    )


class TrajectoryTokens(ApiView):
    """Every captured token of a trajectory as an Arrow stream."""

    tag, summary = "trajectories", "Tokens of a trajectory as Arrow"
    is_download, media_type = True, ARROW

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """One record batch per capture."""
        check_parameters(request, ())
        found = get_visible(self.principal, trajectories(), uid=kwargs["uid"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            for turn in captures().filter(trajectory=found).order_by("branch", "decision"):
                writer.write_batch(token_batch(turn))
        data = sink.getvalue().to_pybytes()
        return send_bytes(request, data, sha256_hex(data), f"trajectory-{found.uid}.arrow", ARROW)


def checkpoints() -> QuerySet[Checkpoint]:
    """Checkpoints with what their representation reads."""
    return Checkpoint.objects.select_related("run", "parent")


class Checkpoints(ListView):
    """Checkpoints of visible runs, parents included."""

    tag, summary, serializer = "checkpoints", "List checkpoints", CheckpointSerializer
    filters = (
        Filter("run", "run__uid", "uuid"),
        Filter("kind", "kind", choices=("parent", "update")),
        Filter("sha256", "sha256__startswith"),
        Filter("policy_version", "policy_version", "integer"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible_checkpoints(self.principal, checkpoints())


def get_checkpoint(view: ApiView, uid: Any) -> Checkpoint:
    """The visible checkpoint."""
    found = visible_checkpoints(view.principal, checkpoints()).filter(uid=uid).first()
    if found is None:
        raise Http404("no checkpoint that you can see matches")
    return found


class OneCheckpoint(DetailView):
    """One checkpoint."""

    tag, summary, serializer = "checkpoints", "Read a checkpoint", CheckpointSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_checkpoint(self, kwargs["uid"])


class Adapter(ApiView):
    """A checkpoint's bytes."""

    tag, summary = "checkpoints", "Download a checkpoint's bytes"
    is_download = True

    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The blob."""
        check_parameters(request, ())
        found = get_checkpoint(self, kwargs["uid"])
        return send_blob(request, found.sha256, f"{found.sha256}.adapter", "application/octet-stream")


class Evaluations(ListView):
    """Evaluation items."""

    tag, summary, serializer = "evaluations", "List evaluation items", EvaluationSerializer
    filters = (
        OfPlan("plan", "plan_version__in", "uuid"),
        Filter("run", "run__uid", "uuid"),
        Filter("arm", "run__arm__key"),
        Filter("checkpoint", "checkpoint__sha256"),
        Filter("condition", "condition"),
        Filter("split", "split"),
        Filter("task", "task__uid", "uuid"),
        Filter("success", "trajectory__success", "boolean"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        rows = EvaluationItem.objects.select_related("plan_version__plan", "run", "checkpoint", "task", "trajectory")
        return visible(self.principal, rows.defer(*heavy("plan_version__")))
