"""Runs that were not executed here: a trainer logged them (tracked) or their files were read (imported).

The head changes; parameters, tags, artifacts, segments, batches, chunks and rollouts only grow. Such a
run is exploratory until a frozen plan is linked to it, and fills no pending figure even then.
"""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class TrackedRun(models.Model):
    """Head of a run from elsewhere. ``run.origin`` is tracked or imported; the study is reached here.

    ``framework`` chooses the mapping table of metric names (empty: unknown). ``segment`` counts attempts
    from 0: a finished run that is taken up again opens the next one. ``landed`` is the number of points
    in landing rows. ``partial``: an import that could not read everything.
    """

    RUNNING, SCHEDULED, FINISHED, FAILED, KILLED = "running", "scheduled", "finished", "failed", "killed"
    STATES = (RUNNING, SCHEDULED, FINISHED, FAILED, KILLED)
    ENDED = (FINISHED, FAILED, KILLED)

    run = models.OneToOneField("runs.Run", models.PROTECT, related_name="tracked")
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="tracked_runs")
    external_id = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=500)
    framework = models.CharField(max_length=32, blank=True, default="")
    status = models.CharField(max_length=16, default=RUNNING)
    deleted = models.BooleanField(default=False)
    partial = models.BooleanField(default=False)
    segment = models.PositiveIntegerField(default=0)
    landed = models.PositiveBigIntegerField(default=0)
    linked_plan = models.ForeignKey("runs.PlanVersion", models.PROTECT, null=True, related_name="tracked_runs")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["study", "deleted", "-started_at"], name="tracked_by_study"),
            models.Index(fields=["-updated_at"], name="tracked_by_change"),
        ]
        constraints = [
            models.CheckConstraint(
                name="tracked_status_known",
                condition=models.Q(status__in=["running", "scheduled", "finished", "failed", "killed"]),
            )
        ]

    def __str__(self) -> str:
        return self.name


class RunSegment(AppendOnlyModel):
    """One attempt: opened at the start, and each time that an ended run is taken up again."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="segments")
    ordinal = models.PositiveIntegerField()
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["run", "ordinal"], name="run_segment_unique")]


class TrackedTransition(AppendOnlyModel):
    """One change of a tracked run's status or of what it is linked to, as words."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="tracked_transitions")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()


class RunParameter(AppendOnlyModel):
    """A parameter as it was received, never shortened; one value a key for good."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="parameters")
    key = models.CharField(max_length=500)
    value = models.TextField()
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="run_parameter_unique")]
        indexes = [models.Index(fields=["key", "run"], name="run_parameter_by_key")]


class RunTag(AppendOnlyModel):
    """A tag as it was set; the newest of a key counts, None in ``value`` takes the key away."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="tags")
    key = models.CharField(max_length=500)
    value = models.TextField(null=True)
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["run", "key", "-id"], name="run_tag_newest")]


class RunArtifact(AppendOnlyModel):
    """A file that a run logged: bytes in the store; the newest of a path counts."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="artifacts")
    path = models.CharField(max_length=1000)
    sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["run", "path", "-id"], name="run_artifact_newest")]


class MetricBatch(AppendOnlyModel):
    """One accepted write: a digest of what was sent, so that the same batch again stores nothing."""

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="metric_batches")
    digest = models.CharField(max_length=64)
    points = models.PositiveIntegerField()
    source = models.CharField(max_length=32)
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["run", "digest"], name="metric_batch_unique")]


class MetricLanding(models.Model):
    """Points of one batch until they are sealed (``runs.metrics.codec.LANDING`` rows); sealing removes the row."""

    batch = models.OneToOneField("runs.MetricBatch", models.PROTECT, related_name="landing")
    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="metric_landings")
    points = models.PositiveIntegerField()
    payload = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["run", "id"], name="metric_landing_by_run")]


class MetricChunk(AppendOnlyModel):
    """A sealed part of a series: compressed columns; ``sha256`` covers their uncompressed canonical bytes."""

    series = models.ForeignKey("runs.MetricSeries", models.PROTECT, related_name="chunks")
    ordinal = models.PositiveIntegerField()
    points = models.PositiveIntegerField()
    first_step = models.BigIntegerField()
    last_step = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    payload = models.BinaryField()
    sealed_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["series", "ordinal"], name="metric_chunk_unique")]


class MetricLatest(models.Model):
    """Newest point of a logged series by (step, time): what lists sort and search by. Derived, never evidence."""

    series = models.OneToOneField("runs.MetricSeries", models.PROTECT, related_name="latest")
    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="latest_metrics")
    name = models.CharField(max_length=500)
    step = models.BigIntegerField()
    time_ms = models.BigIntegerField()
    value = models.FloatField(null=True)
    nonfinite = models.CharField(max_length=4, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["run", "name"], name="metric_latest_by_run"),
            models.Index(fields=["name", "value"], name="metric_latest_by_value"),
        ]


class LogImport(models.Model):
    """Head of one import of files. ``cursor`` says where to go on; ``problems`` what could not be read and where."""

    QUEUED, RUNNING, DONE, PARTIAL, FAILED = "queued", "running", "done", "partial", "failed"

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="imports")
    run = models.ForeignKey("runs.Run", models.PROTECT, null=True, related_name="imports")
    format = models.CharField(max_length=64)
    source_name = models.CharField(max_length=1000)
    source_sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=16, default=QUEUED)
    cursor = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    error = models.TextField(blank=True, default="")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()


class ImportedRollout(AppendOnlyModel):
    """One foreign rollout. ``grade`` A, B or C as its file allows; ``body`` is zstd of canonical JSON.

    ``sha256`` covers the canonical bytes. ``reward``, ``advantage``, ``tokens`` are None where the file
    has none. Never trained on, never a pending figure's source.
    """

    uid = models.UUIDField(unique=True, editable=False)
    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="imported_rollouts")
    log_import = models.ForeignKey("runs.LogImport", models.PROTECT, related_name="rollouts")
    position = models.PositiveBigIntegerField()
    step = models.BigIntegerField(null=True)
    group_key = models.CharField(max_length=300, blank=True, default="")
    sample_key = models.CharField(max_length=300, blank=True, default="")
    grade = models.CharField(max_length=1)
    reward = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    tokens = models.PositiveBigIntegerField(null=True)
    stop_reason = models.CharField(max_length=100, blank=True, default="")
    sha256 = models.CharField(max_length=64)
    body = models.BinaryField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["log_import", "position"], name="imported_rollout_unique"),
            models.CheckConstraint(name="imported_grade_known", condition=models.Q(grade__in=["A", "B", "C"])),
        ]
        indexes = [models.Index(fields=["run", "step", "group_key"], name="imported_rollout_by_step")]


class ReadingVerdict(AppendOnlyModel):
    """What a person said about a reading: confirmed or dismissed, with a reason. The newest counts.

    ``rule`` names the rule, ``fired_sha256`` the digest of the steps and evidence that it fired on.
    """

    CONFIRMED, DISMISSED = "confirmed", "dismissed"

    run = models.ForeignKey("runs.Run", models.PROTECT, related_name="reading_verdicts")
    rule = models.CharField(max_length=100)
    fired_sha256 = models.CharField(max_length=64)
    verdict = models.CharField(max_length=16)
    reason = models.TextField()
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        indexes = [models.Index(fields=["run", "rule", "-id"], name="reading_verdict_newest")]
        constraints = [
            models.CheckConstraint(
                name="reading_verdict_known", condition=models.Q(verdict__in=["confirmed", "dismissed"])
            )
        ]
