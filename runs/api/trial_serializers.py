"""What the API says about counterfactual trials: sets, interventions, trials."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from runs.api.serializers import NumberOrNull, Text


class TrialSerializer(s.Serializer[Any]):
    """One verdict on one tree. ``utility`` and ``success`` null: unknown, and ``unknown`` says why.

    Seconds are null where nothing was executed (kind original). ``service_s`` leaves waiting out.
    """

    uid = s.UUIDField()
    trajectory = s.UUIDField(source="trajectory.uid")
    group = s.UUIDField(source="trial_set.group.uid")
    run = s.UUIDField(source="trial_set.run.uid", default=None, allow_null=True)
    purpose = Text(source="trial_set.purpose")
    kind = Text()
    repeat = s.IntegerField()
    tree_sha256 = Text()
    verifier = Text()
    complete = s.BooleanField()
    utility = NumberOrNull(allow_null=True)
    success = s.BooleanField(allow_null=True)
    unknown = s.CharField(allow_null=True)
    queue_s = NumberOrNull(allow_null=True)
    setup_s = NumberOrNull(allow_null=True)
    run_s = NumberOrNull(allow_null=True)
    cleanup_s = NumberOrNull(allow_null=True)
    service_s = NumberOrNull(allow_null=True)


class TestSerializer(s.Serializer[Any]):
    """What one hidden test showed. ``cause`` null where it passed."""

    test = Text()
    status = Text()
    cause = s.CharField(allow_null=True)
    detail = s.CharField(allow_blank=True)


class TrialDetail(TrialSerializer):
    """A trial with its observations, its exit and how well its sandbox separates (empty: nothing was executed)."""

    observed = TestSerializer(many=True)
    exit_code = s.IntegerField(allow_null=True)
    signal = s.IntegerField(allow_null=True)
    stdout_sha256 = s.CharField(allow_null=True)
    stderr_sha256 = s.CharField(allow_null=True)
    level = s.JSONField()
    repeated = s.ListField(child=s.CharField())


class InterventionSerializer(s.Serializer[Any]):
    """The one intervention of a trajectory, or why there is none.

    ``difference`` = utility of the final tree minus utility without the block, signed; null unless ``status`` is
    available. ``selected``: decision of the chosen block.
    """

    trajectory = s.UUIDField(source="trajectory.uid")
    group = s.UUIDField(source="trial_set.group.uid")
    run = s.UUIDField(source="trial_set.run.uid", default=None, allow_null=True)
    purpose = Text(source="trial_set.purpose")
    mode = Text(source="trial_set.mode")
    ordinal = s.IntegerField(source="trial_set.ordinal")
    slot = s.IntegerField()
    status = Text()
    detail = s.CharField(allow_null=True)
    eligible_blocks = s.IntegerField()
    selected = s.IntegerField(allow_null=True)
    policy_tokens = s.IntegerField()
    selected_tokens = s.IntegerField(allow_null=True)
    final_paths = s.IntegerField(allow_null=True)
    touched_share = NumberOrNull(allow_null=True)
    is_empty_patch = s.BooleanField(allow_null=True)
    original_utility = NumberOrNull(allow_null=True)
    without_utility = NumberOrNull(allow_null=True)
    difference = NumberOrNull(allow_null=True)
    replays_agree = s.IntegerField()
    replays = s.IntegerField()
    repeats_agree = s.IntegerField()
    repeats = s.IntegerField()


class BlockSerializer(s.Serializer[Any]):
    """All file changes of one turn: hashes by path, null where there is no file."""

    decision = s.IntegerField()
    paths = s.ListField(child=s.CharField())
    before = s.DictField(child=s.CharField(allow_null=True))
    after = s.DictField(child=s.CharField(allow_null=True))
    eligible = s.BooleanField()
    reason = s.CharField(allow_null=True)


class InterventionDetail(InterventionSerializer):
    """An intervention with every edit block and its trials."""

    final_tree_sha256 = s.CharField(allow_null=True)
    without_tree_sha256 = s.CharField(allow_null=True)
    snapshots_sha256 = s.CharField(source="trial_set.snapshots_sha256", allow_null=True)
    blocks = BlockSerializer(many=True)
    trials = s.SerializerMethodField()

    @extend_schema_field(TrialSerializer(many=True))
    def get_trials(self, row: Any) -> list[dict[str, Any]]:
        """Its trials, in order of kind and repeat."""
        rows = row.trajectory.trials.select_related("trajectory", "trial_set__group", "trial_set__run")
        return [dict(TrialSerializer().to_representation(item)) for item in rows.order_by("kind", "repeat")]


class TrialSetSerializer(s.Serializer[Any]):
    """The trials of one group. ``unavailable``: why nothing of it could be tried; null otherwise."""

    uid = s.UUIDField()
    group = s.UUIDField(source="group.uid")
    run = s.UUIDField(source="run.uid", default=None, allow_null=True)
    purpose = Text()
    ordinal = s.IntegerField()
    mode = Text()
    verifier = Text()
    seed = Text()
    replays = s.IntegerField()
    repeats = s.IntegerField()
    fail_to_pass = s.ListField(child=s.CharField())
    pass_to_pass = s.ListField(child=s.CharField())
    snapshots_sha256 = s.CharField(allow_null=True)
    unavailable = s.CharField(allow_null=True)
    record_sha256 = Text()
