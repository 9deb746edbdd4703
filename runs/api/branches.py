"""Same-state branches: records, and the request for new ones."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import RUN_CONTROL, get_visible, require, visible
from runs.actions.record_branches import request_branch
from runs.api.base import DetailView, Filter, ListView, PostView, sparse
from runs.api.executions import jobs
from runs.api.problems import invalid
from runs.api.serializers import JobSerializer, NumberOrNull, Text
from runs.models import Checkpoint, StateBranch, Trajectory
from runs.visibility import visible_checkpoints
from workbench.contracts.branches import MOST_CONTINUATIONS

STUDY = "trajectory__group__plan_version__plan__study"


class BranchSerializer(s.Serializer[Any]):
    """Mean rewards of continuations before and after one decision; ``value`` = after - before, null: not known."""

    uid = s.UUIDField()
    trajectory = s.UUIDField(source="trajectory.uid")
    decision = s.IntegerField()
    ordinal = s.IntegerField()
    count = s.IntegerField()
    policy_version = s.IntegerField()
    adapter_sha256 = Text(allow_null=True)
    before = NumberOrNull(allow_null=True)
    before_n = s.IntegerField()
    after = NumberOrNull(allow_null=True)
    after_n = s.IntegerField()
    value = NumberOrNull(allow_null=True)
    points = s.JSONField(help_text="state hashes: recorded, replayed, restored; snapshot, prompt, terminal")
    record_sha256 = Text()
    created_at = s.DateTimeField()


class BranchDetail(BranchSerializer):
    """With every continuation."""

    continuations = s.SerializerMethodField()

    def get_continuations(self, row: StateBranch) -> list[dict[str, Any]]:
        """By point and index."""
        names = (
            "point", "index", "seed", "start_state_sha256", "status", "invalid_reason", "terminal", "reward",
            "success", "policy_tokens", "actions", "final_state_sha256",
        )  # fmt: skip
        return list(row.continuations.order_by("point", "index").values(*names))


class BranchBody(s.Serializer[Any]):
    """Which decision, how many continuations from each of its two states, under which checkpoint (null: its own)."""

    decision = s.IntegerField(min_value=0, max_value=100_000)
    continuations = s.IntegerField(min_value=1, max_value=MOST_CONTINUATIONS)
    checkpoint = s.UUIDField(required=False, allow_null=True)


def rows_of_branches() -> QuerySet[StateBranch]:
    """Branches with what their representation reads."""
    return StateBranch.objects.select_related("trajectory")


class Branches(ListView):
    """Branches of trajectories of visible studies."""

    tag, summary, serializer = "branches", "List same-state branches", BranchSerializer
    filters = (Filter("trajectory", "trajectory__uid", "uuid"), Filter("decision", "decision", "integer"))

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, rows_of_branches(), STUDY)


class OneBranch(DetailView):
    """One record."""

    tag, summary, serializer = "branches", "Read a same-state branch", BranchDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, rows_of_branches(), STUDY, uid=kwargs["uid"])


class RequestBranch(PostView):
    """Ask a worker for continuations; the answer is the job."""

    tag, summary, serializer, body = "branches", "Sample continuations from a state", JobSerializer, BranchBody
    status_code = 202

    def _trajectory(self, **kwargs: Any) -> Trajectory:
        rows = Trajectory.objects.select_related("group__checkpoint", "group__plan_version__plan__study")
        return get_visible(self.principal, rows, uid=kwargs["uid"])

    def allow(self, **kwargs: Any) -> None:
        require(self.principal, RUN_CONTROL, self._trajectory(**kwargs).group.plan_version.plan.study)

    def change(self, request: Request, **kwargs: Any) -> Response:
        given = self.read_body(request)
        checkpoint: Checkpoint | None = None
        if given.get("checkpoint") is not None:
            rows = visible_checkpoints(self.principal)
            checkpoint = rows.filter(uid=given["checkpoint"]).first()
            if checkpoint is None:
                raise invalid("checkpoint", given["checkpoint"], "a checkpoint that you can see")
        job = request_branch(
            self._trajectory(**kwargs), given["decision"], given["continuations"], by=self.actor(), at=timezone.now(),
            checkpoint=checkpoint,
        )  # fmt: skip
        return Response(sparse(request, JobSerializer, [jobs().get(pk=job.pk)])[0], status=202)
