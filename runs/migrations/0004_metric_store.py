"""Metric series in chunks, tracked runs and imports. Constraints stand in the tables: each operation less renders less."""

import django.db.models.deletion
from django.db import migrations, models

from workbench.tables import CreateTables


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0003_list_indexes"),
    ]

    operations = [
        CreateTables(
            [
                migrations.CreateModel(
                    name="LogImport",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("format", models.CharField(max_length=64)),
                        ("source_name", models.CharField(max_length=1000)),
                        ("source_sha256", models.CharField(max_length=64)),
                        ("state", models.CharField(default="queued", max_length=16)),
                        ("cursor", models.JSONField(default=dict)),
                        ("counts", models.JSONField(default=dict)),
                        ("problems", models.JSONField(default=list)),
                        ("error", models.TextField(blank=True, default="")),
                        ("created_at", models.DateTimeField()),
                        ("updated_at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="imports",
                                to="runs.run",
                            ),
                        ),
                        (
                            "study",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="imports", to="runs.study"
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="ImportedRollout",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("position", models.PositiveBigIntegerField()),
                        ("step", models.BigIntegerField(null=True)),
                        ("group_key", models.CharField(blank=True, default="", max_length=300)),
                        ("sample_key", models.CharField(blank=True, default="", max_length=300)),
                        ("grade", models.CharField(max_length=1)),
                        ("reward", models.FloatField(null=True)),
                        ("advantage", models.FloatField(null=True)),
                        ("tokens", models.PositiveBigIntegerField(null=True)),
                        ("stop_reason", models.CharField(blank=True, default="", max_length=100)),
                        ("sha256", models.CharField(max_length=64)),
                        ("body", models.BinaryField()),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="imported_rollouts",
                                to="runs.run",
                            ),
                        ),
                        (
                            "log_import",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="rollouts",
                                to="runs.logimport",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["run", "step", "group_key"], name="imported_rollout_by_step")],
                        "constraints": [
                            models.UniqueConstraint(fields=("log_import", "position"), name="imported_rollout_unique"),
                            models.CheckConstraint(
                                condition=models.Q(("grade__in", ["A", "B", "C"])), name="imported_grade_known"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="MetricBatch",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(max_length=64)),
                        ("points", models.PositiveIntegerField()),
                        ("source", models.CharField(max_length=32)),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="metric_batches",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [models.UniqueConstraint(fields=("run", "digest"), name="metric_batch_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="MetricChunk",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("ordinal", models.PositiveIntegerField()),
                        ("points", models.PositiveIntegerField()),
                        ("first_step", models.BigIntegerField()),
                        ("last_step", models.BigIntegerField()),
                        ("sha256", models.CharField(db_index=True, max_length=64)),
                        ("payload", models.BinaryField()),
                        ("sealed_at", models.DateTimeField()),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="chunks",
                                to="runs.metricseries",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("series", "ordinal"), name="metric_chunk_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="MetricLanding",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("points", models.PositiveIntegerField()),
                        ("payload", models.BinaryField()),
                        (
                            "batch",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="landing",
                                to="runs.metricbatch",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="metric_landings",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["run", "id"], name="metric_landing_by_run")],
                    },
                ),
                migrations.CreateModel(
                    name="MetricLatest",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=500)),
                        ("step", models.BigIntegerField()),
                        ("time_ms", models.BigIntegerField()),
                        ("value", models.FloatField(null=True)),
                        ("nonfinite", models.CharField(blank=True, default="", max_length=4)),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="latest_metrics",
                                to="runs.run",
                            ),
                        ),
                        (
                            "series",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="latest",
                                to="runs.metricseries",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["run", "name"], name="metric_latest_by_run"),
                            models.Index(fields=["name", "value"], name="metric_latest_by_value"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ReadingVerdict",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("rule", models.CharField(max_length=100)),
                        ("fired_sha256", models.CharField(max_length=64)),
                        ("verdict", models.CharField(max_length=16)),
                        ("reason", models.TextField()),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="reading_verdicts",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["run", "rule", "-id"], name="reading_verdict_newest")],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("verdict__in", ["confirmed", "dismissed"])),
                                name="reading_verdict_known",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunArtifact",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("path", models.CharField(max_length=1000)),
                        ("sha256", models.CharField(max_length=64)),
                        ("bytes", models.PositiveBigIntegerField()),
                        ("at", models.DateTimeField()),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="artifacts", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["run", "path", "-id"], name="run_artifact_newest")],
                    },
                ),
                migrations.CreateModel(
                    name="RunParameter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key", models.CharField(max_length=500)),
                        ("value", models.TextField()),
                        ("at", models.DateTimeField()),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="parameters", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["key", "run"], name="run_parameter_by_key")],
                        "constraints": [models.UniqueConstraint(fields=("run", "key"), name="run_parameter_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="RunSegment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("ordinal", models.PositiveIntegerField()),
                        ("reason", models.TextField(blank=True, default="")),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="segments", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [models.UniqueConstraint(fields=("run", "ordinal"), name="run_segment_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="RunTag",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key", models.CharField(max_length=500)),
                        ("value", models.TextField(null=True)),
                        ("at", models.DateTimeField()),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="tags", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["run", "key", "-id"], name="run_tag_newest")],
                    },
                ),
                migrations.CreateModel(
                    name="TrackedRun",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("external_id", models.CharField(max_length=64, unique=True)),
                        ("name", models.CharField(max_length=500)),
                        ("framework", models.CharField(blank=True, default="", max_length=32)),
                        ("status", models.CharField(default="running", max_length=16)),
                        ("deleted", models.BooleanField(default=False)),
                        ("partial", models.BooleanField(default=False)),
                        ("segment", models.PositiveIntegerField(default=0)),
                        ("landed", models.PositiveBigIntegerField(default=0)),
                        ("started_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("updated_at", models.DateTimeField()),
                        (
                            "linked_plan",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tracked_runs",
                                to="runs.planversion",
                            ),
                        ),
                        (
                            "run",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT, related_name="tracked", to="runs.run"
                            ),
                        ),
                        (
                            "study",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tracked_runs",
                                to="runs.study",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["study", "deleted", "-started_at"], name="tracked_by_study"),
                            models.Index(fields=["-updated_at"], name="tracked_by_change"),
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status__in", ["running", "scheduled", "finished", "failed", "killed"])
                                ),
                                name="tracked_status_known",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TrackedTransition",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("from_state", models.CharField(max_length=32)),
                        ("to_state", models.CharField(max_length=32)),
                        ("reason", models.TextField(blank=True, default="")),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tracked_transitions",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
            ]
        ),
        migrations.RemoveConstraint(
            model_name="metricseries",
            name="metric_series_unique",
        ),
        migrations.AddField(
            model_name="metricseries",
            name="name",
            field=models.CharField(blank=True, default="", max_length=500),
        ),
        migrations.AddIndex(
            model_name="metricseries",
            index=models.Index(fields=["run", "segment", "name"], name="metric_series_by_name"),
        ),
        migrations.AddConstraint(
            model_name="metricseries",
            constraint=models.UniqueConstraint(
                fields=("run", "definition", "phase", "split", "labels_key", "segment", "name"),
                name="metric_series_unique",
            ),
        ),
    ]
