"""Counterfactual trials: a set a group, an intervention a trajectory, a row an execution."""

import django.db.models.deletion
from django.db import migrations, models

from workbench.tables import CreateTables


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_few_rows"),
    ]

    operations = [
        CreateTables(
            [
                migrations.CreateModel(
                    name="TrialSet",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("purpose", models.CharField(max_length=16)),
                        ("ordinal", models.PositiveIntegerField()),
                        ("verifier", models.CharField(max_length=100)),
                        ("seed", models.CharField(max_length=32)),
                        ("mode", models.CharField(max_length=16)),
                        ("replays", models.PositiveIntegerField()),
                        ("repeats", models.PositiveIntegerField()),
                        ("fail_to_pass", models.JSONField()),
                        ("pass_to_pass", models.JSONField()),
                        ("snapshots_sha256", models.CharField(max_length=64, null=True)),
                        ("unavailable", models.TextField(null=True)),
                        ("record_sha256", models.CharField(max_length=64)),
                        ("created_at", models.DateTimeField()),
                        (
                            "group",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT, related_name="trial_set", to="runs.group"
                            ),
                        ),
                        (
                            "plan_version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="trial_sets",
                                to="runs.planversion",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="trial_sets",
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
                migrations.CreateModel(
                    name="Trial",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("kind", models.CharField(max_length=32)),
                        ("repeat", models.PositiveIntegerField()),
                        ("tree_sha256", models.CharField(max_length=64)),
                        ("verifier", models.CharField(max_length=100)),
                        ("complete", models.BooleanField()),
                        ("utility", models.FloatField(null=True)),
                        ("success", models.BooleanField(null=True)),
                        ("unknown", models.TextField(null=True)),
                        ("observed", models.JSONField()),
                        ("exit_code", models.IntegerField(null=True)),
                        ("signal", models.IntegerField(null=True)),
                        ("stdout_sha256", models.CharField(max_length=64, null=True)),
                        ("stderr_sha256", models.CharField(max_length=64, null=True)),
                        ("level", models.JSONField()),
                        ("repeated", models.JSONField()),
                        ("queue_s", models.FloatField(null=True)),
                        ("setup_s", models.FloatField(null=True)),
                        ("run_s", models.FloatField(null=True)),
                        ("cleanup_s", models.FloatField(null=True)),
                        ("service_s", models.FloatField(null=True)),
                        (
                            "trajectory",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="trials", to="runs.trajectory"
                            ),
                        ),
                        (
                            "trial_set",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="trials", to="runs.trialset"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
                migrations.CreateModel(
                    name="Intervention",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("slot", models.PositiveIntegerField()),
                        ("status", models.CharField(max_length=32)),
                        ("detail", models.TextField(null=True)),
                        ("blocks", models.JSONField()),
                        ("eligible_blocks", models.PositiveIntegerField()),
                        ("selected", models.PositiveIntegerField(null=True)),
                        ("policy_tokens", models.PositiveBigIntegerField()),
                        ("selected_tokens", models.PositiveBigIntegerField(null=True)),
                        ("final_tree_sha256", models.CharField(max_length=64, null=True)),
                        ("without_tree_sha256", models.CharField(max_length=64, null=True)),
                        ("final_paths", models.PositiveIntegerField(null=True)),
                        ("touched_share", models.FloatField(null=True)),
                        ("is_empty_patch", models.BooleanField(null=True)),
                        ("original_utility", models.FloatField(null=True)),
                        ("without_utility", models.FloatField(null=True)),
                        ("difference", models.FloatField(null=True)),
                        ("replays_agree", models.PositiveIntegerField()),
                        ("replays", models.PositiveIntegerField()),
                        ("repeats_agree", models.PositiveIntegerField()),
                        ("repeats", models.PositiveIntegerField()),
                        (
                            "trajectory",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="intervention",
                                to="runs.trajectory",
                            ),
                        ),
                        (
                            "trial_set",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="interventions",
                                to="runs.trialset",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
                migrations.AddIndex(
                    model_name="trialset",
                    index=models.Index(fields=["run", "ordinal"], name="trial_set_by_run"),
                ),
                migrations.AddIndex(
                    model_name="trialset",
                    index=models.Index(fields=["plan_version", "purpose"], name="trial_set_by_plan"),
                ),
                migrations.AddIndex(
                    model_name="trial",
                    index=models.Index(fields=["trial_set", "kind"], name="trial_by_kind"),
                ),
                migrations.AddIndex(
                    model_name="trial",
                    index=models.Index(fields=["tree_sha256"], name="trial_by_tree"),
                ),
                migrations.AddConstraint(
                    model_name="trial",
                    constraint=models.UniqueConstraint(fields=("trajectory", "kind", "repeat"), name="trial_unique"),
                ),
                migrations.AddConstraint(
                    model_name="trial",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ("original", "intervention", "factual_replay", "intervention_repeat"))
                        ),
                        name="trial_kind_known",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="trial",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("complete", True), ("utility__isnull", False)),
                            models.Q(("complete", False), ("utility__isnull", True)),
                            _connector="OR",
                        ),
                        name="trial_unknown_has_no_utility",
                    ),
                ),
                migrations.AddIndex(
                    model_name="intervention",
                    index=models.Index(fields=["trial_set", "status"], name="intervention_by_status"),
                ),
                migrations.AddIndex(
                    model_name="intervention",
                    index=models.Index(fields=["difference"], name="intervention_by_difference"),
                ),
                migrations.AddConstraint(
                    model_name="intervention",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                (
                                    "available",
                                    "selected",
                                    "format_error",
                                    "no_eligible_block",
                                    "no_original_utility",
                                    "trial_incomplete",
                                ),
                            )
                        ),
                        name="intervention_status_known",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="intervention",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("difference__isnull", False), ("status", "available")),
                            models.Q(models.Q(("status", "available"), _negated=True), ("difference__isnull", True)),
                            _connector="OR",
                        ),
                        name="intervention_difference_where_available",
                    ),
                ),
            ]
        ),
    ]
