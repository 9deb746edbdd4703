"""All models. Heads (Plan, Execution, RunHead, Job, StreamHead) change; history only grows."""

from __future__ import annotations

from .access import ApiToken, AuditEntry, IdempotencyRecord, SavedFilter
from .branches import BranchContinuation, StateBranch
from .controls import ControlSet, ControlSlot
from .document import Document
from .evaluation import EvaluationItem
from .group import Group, Observation, RewardComponent, ToolCall, Trajectory, Turn
from .job import Job, JobTransition
from .metric import MetricPoint, MetricSeries
from .people import Actor, Membership, User
from .plan import Arm, FailureSchedule, Plan, PlanTransition, PlanVersion
from .receipt import Anchor, Receipt, StreamHead
from .run import Execution, ExecutionTransition, Run, RunHead, RunTransition
from .storage import BlobRef, Tombstone
from .study import Study
from .tasks import Task, TaskSet, TaskSetEntry
from .tracking import (
    ImportedRollout,
    LogImport,
    MetricBatch,
    MetricChunk,
    MetricLanding,
    MetricLatest,
    ReadingVerdict,
    RunArtifact,
    RunParameter,
    RunSegment,
    RunTag,
    TrackedRun,
    TrackedTransition,
)
from .trials import Intervention, Trial, TrialSet
from .update import Checkpoint, ConsumedGroup, TraceFrame, TrajectoryCredit, UpdateBatch, UpdateStep

__all__ = [
    "Actor",
    "Anchor",
    "ApiToken",
    "Arm",
    "AuditEntry",
    "BlobRef",
    "BranchContinuation",
    "Checkpoint",
    "ConsumedGroup",
    "ControlSet",
    "ControlSlot",
    "Document",
    "EvaluationItem",
    "Execution",
    "ExecutionTransition",
    "FailureSchedule",
    "Group",
    "IdempotencyRecord",
    "ImportedRollout",
    "Intervention",
    "Job",
    "JobTransition",
    "LogImport",
    "Membership",
    "MetricBatch",
    "MetricChunk",
    "MetricLanding",
    "MetricLatest",
    "MetricPoint",
    "MetricSeries",
    "Observation",
    "Plan",
    "PlanTransition",
    "PlanVersion",
    "ReadingVerdict",
    "Receipt",
    "RewardComponent",
    "Run",
    "RunArtifact",
    "RunHead",
    "RunParameter",
    "RunSegment",
    "RunTag",
    "RunTransition",
    "SavedFilter",
    "StateBranch",
    "StreamHead",
    "Study",
    "Task",
    "TaskSet",
    "TaskSetEntry",
    "Tombstone",
    "ToolCall",
    "TraceFrame",
    "TrackedRun",
    "TrackedTransition",
    "Trajectory",
    "TrajectoryCredit",
    "Trial",
    "TrialSet",
    "Turn",
    "UpdateBatch",
    "UpdateStep",
    "User",
]
