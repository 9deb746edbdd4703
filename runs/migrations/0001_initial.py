"""Every table of studies, plans, runs and their records."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from workbench.tables import CreateTables


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        CreateTables(
            [
                migrations.CreateModel(
                    name="Anchor",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("seq", models.PositiveBigIntegerField(unique=True)),
                        ("prev", models.CharField(max_length=64, unique=True)),
                        ("sha256", models.CharField(max_length=64)),
                        ("bytes", models.BinaryField()),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
                migrations.CreateModel(
                    name="BlobRef",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("bytes", models.PositiveBigIntegerField()),
                        ("kind", models.CharField(max_length=32)),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
                migrations.CreateModel(
                    name="User",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("password", models.CharField(max_length=128, verbose_name="password")),
                        ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                        (
                            "is_superuser",
                            models.BooleanField(
                                default=False,
                                help_text="Designates that this user has all permissions without explicitly assigning them.",
                                verbose_name="superuser status",
                            ),
                        ),
                        (
                            "username",
                            models.CharField(
                                error_messages={"unique": "A user with that username already exists."},
                                help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                                max_length=150,
                                unique=True,
                                validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                                verbose_name="username",
                            ),
                        ),
                        ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                        ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                        ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                        (
                            "is_staff",
                            models.BooleanField(
                                default=False,
                                help_text="Designates whether the user can log into this admin site.",
                                verbose_name="staff status",
                            ),
                        ),
                        (
                            "is_active",
                            models.BooleanField(
                                default=True,
                                help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                                verbose_name="active",
                            ),
                        ),
                        (
                            "date_joined",
                            models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                                related_name="user_set",
                                related_query_name="user",
                                to="auth.group",
                                verbose_name="groups",
                            ),
                        ),
                        (
                            "user_permissions",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Specific permissions for this user.",
                                related_name="user_set",
                                related_query_name="user",
                                to="auth.permission",
                                verbose_name="user permissions",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "user",
                        "verbose_name_plural": "users",
                        "abstract": False,
                    },
                    managers=[
                        ("objects", django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Actor",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("kind", models.CharField(max_length=16)),
                        ("family", models.CharField(max_length=64)),
                        ("name", models.CharField(max_length=200)),
                        (
                            "user",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="actors",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "person"), ("user__isnull", False)),
                                    models.Q(("kind", "service"), ("user__isnull", True)),
                                    _connector="OR",
                                ),
                                name="actor_person_has_user",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Study",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("slug", models.SlugField(max_length=100, unique=True)),
                        ("title_en", models.CharField(max_length=300)),
                        ("title_zh", models.CharField(blank=True, default="", max_length=300)),
                        ("summary_en", models.TextField(blank=True, default="")),
                        ("summary_zh", models.TextField(blank=True, default="")),
                        ("created_at", models.DateTimeField()),
                        (
                            "created_by",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="studies", to="runs.actor"
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["slug"],
                    },
                ),
                migrations.CreateModel(
                    name="Plan",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("slug", models.SlugField(max_length=100)),
                        ("state", models.CharField(default="draft", max_length=16)),
                        ("draft_text", models.TextField(blank=True, default="")),
                        ("draft_revision", models.PositiveIntegerField(default=0)),
                        (
                            "study",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="plans", to="runs.study"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [models.UniqueConstraint(fields=("study", "slug"), name="plan_slug_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="PlanVersion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("number", models.PositiveIntegerField()),
                        ("sha256", models.CharField(db_index=True, max_length=64)),
                        ("bytes", models.BinaryField()),
                        ("strict_pairs", models.JSONField(default=list)),
                        ("created_at", models.DateTimeField()),
                        (
                            "created_by",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "plan",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="runs.plan"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("plan", "number"), name="plan_version_number_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Execution",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("state", models.CharField(max_length=32)),
                        ("phase", models.CharField(blank=True, default="", max_length=64)),
                        ("reason", models.TextField(blank=True, default="")),
                        ("counters", models.JSONField(default=dict)),
                        ("updated_at", models.DateTimeField()),
                        (
                            "plan_version",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="execution",
                                to="runs.planversion",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["state"], name="execution_by_state")],
                    },
                ),
                migrations.CreateModel(
                    name="Arm",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("key", models.CharField(max_length=100)),
                        ("title_en", models.CharField(max_length=300)),
                        ("title_zh", models.CharField(blank=True, default="", max_length=300)),
                        ("position", models.PositiveIntegerField()),
                        ("config_bytes", models.BinaryField()),
                        ("config_sha256", models.CharField(max_length=64)),
                        ("gate", models.JSONField(null=True)),
                        ("seeds", models.JSONField(default=list)),
                        (
                            "plan_version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="arms", to="runs.planversion"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("plan_version", "key"), name="arm_key_unique"),
                            models.UniqueConstraint(fields=("plan_version", "position"), name="arm_position_unique"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Checkpoint",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("sha256", models.CharField(db_index=True, max_length=64)),
                        ("policy_version", models.PositiveIntegerField()),
                        ("kind", models.CharField(max_length=16)),
                        ("base_model_sha256", models.CharField(max_length=64)),
                        ("tokenizer_sha256", models.CharField(max_length=64)),
                        ("adaptation", models.JSONField()),
                        ("blob_bytes", models.PositiveBigIntegerField()),
                        ("created_at", models.DateTimeField()),
                        (
                            "parent",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="children",
                                to="runs.checkpoint",
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
                    name="Run",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("seed", models.CharField(max_length=40)),
                        ("origin", models.CharField(default="native", max_length=16)),
                        ("name", models.CharField(max_length=200)),
                        ("created_at", models.DateTimeField()),
                        (
                            "arm",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="runs.arm",
                            ),
                        ),
                        (
                            "execution",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="runs.execution",
                            ),
                        ),
                        (
                            "parent_checkpoint",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="child_runs",
                                to="runs.checkpoint",
                            ),
                        ),
                        (
                            "plan_version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="runs.planversion",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["-created_at"], name="run_newest")],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("origin", "native"), _negated=True),
                                    ("arm__isnull", False),
                                    _connector="OR",
                                ),
                                name="run_native_has_arm",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("origin__in", ["native", "imported", "tracked"])),
                                name="run_origin_known",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="MetricSeries",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("definition", models.CharField(max_length=200)),
                        ("phase", models.CharField(max_length=32)),
                        ("split", models.CharField(max_length=32)),
                        ("labels", models.JSONField(default=dict)),
                        ("labels_key", models.CharField(max_length=500)),
                        ("segment", models.CharField(blank=True, default="", max_length=100)),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="metric_series",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "definition", "phase", "split", "labels_key", "segment"),
                                name="metric_series_unique",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="StreamHead",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("stream", models.CharField(max_length=200, unique=True)),
                        ("seq", models.PositiveBigIntegerField(default=0)),
                        ("sha256", models.CharField(max_length=64)),
                    ],
                ),
                migrations.CreateModel(
                    name="TaskSet",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("environment", models.CharField(max_length=200)),
                        ("version", models.CharField(max_length=100)),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("blob_sha256", models.CharField(max_length=64)),
                        ("count", models.PositiveIntegerField()),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                    },
                ),
                migrations.CreateModel(
                    name="Task",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("key", models.CharField(max_length=200)),
                        ("split", models.CharField(max_length=32)),
                        ("family", models.CharField(max_length=100)),
                        ("prompt", models.TextField()),
                        ("task_sha256", models.CharField(db_index=True, max_length=64)),
                        ("hidden", models.JSONField()),
                        ("initial_state", models.JSONField()),
                        ("tools", models.JSONField()),
                        (
                            "task_set",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="tasks", to="runs.taskset"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["task_set", "split", "family"], name="task_by_split")],
                        "constraints": [models.UniqueConstraint(fields=("task_set", "key"), name="task_key_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="Group",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("purpose", models.CharField(max_length=16)),
                        ("condition", models.CharField(max_length=32)),
                        ("split", models.CharField(max_length=32)),
                        ("ordinal", models.PositiveIntegerField()),
                        ("failure_profile", models.CharField(max_length=64)),
                        ("identities", models.JSONField()),
                        ("policy_version", models.PositiveIntegerField()),
                        ("eligible", models.BooleanField()),
                        ("ineligible_reason", models.TextField(null=True)),
                        ("signal", models.CharField(max_length=32, null=True)),
                        ("mean", models.FloatField(null=True)),
                        ("sigma", models.FloatField(null=True)),
                        ("record_sha256", models.CharField(max_length=64)),
                        ("capture_blob_sha256", models.CharField(db_index=True, max_length=64)),
                        ("capture_blob_bytes", models.PositiveBigIntegerField()),
                        ("created_at", models.DateTimeField()),
                        (
                            "checkpoint",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="groups", to="runs.checkpoint"
                            ),
                        ),
                        (
                            "plan_version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="groups",
                                to="runs.planversion",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="groups",
                                to="runs.run",
                            ),
                        ),
                        (
                            "task",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="groups", to="runs.task"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [
                            models.Index(fields=["run", "purpose", "ordinal"], name="group_by_run"),
                            models.Index(fields=["plan_version", "purpose", "condition"], name="group_by_plan"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Trajectory",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("slot", models.PositiveIntegerField()),
                        ("seed", models.CharField(max_length=40)),
                        ("status", models.CharField(max_length=32)),
                        ("invalid_reason", models.TextField(null=True)),
                        ("terminal", models.CharField(max_length=32, null=True)),
                        ("success", models.BooleanField(null=True)),
                        ("success_definition", models.CharField(max_length=200)),
                        ("reward_total", models.FloatField(null=True)),
                        ("advantage", models.FloatField(null=True)),
                        ("reward_version", models.CharField(max_length=100, null=True)),
                        ("gate", models.FloatField(null=True)),
                        ("finished", models.BooleanField(null=True)),
                        ("parser_valid", models.BooleanField(null=True)),
                        ("premature_finish", models.BooleanField(null=True)),
                        ("tool_depth", models.PositiveIntegerField(null=True)),
                        ("repeat_calls", models.PositiveIntegerField(null=True)),
                        ("productive_calls", models.PositiveIntegerField(null=True)),
                        ("failures_seen", models.PositiveIntegerField(null=True)),
                        ("exposed", models.BooleanField(null=True)),
                        ("recovered", models.BooleanField(null=True)),
                        ("fatal_start", models.PositiveIntegerField(null=True)),
                        ("fatal_confirmed", models.PositiveIntegerField(null=True)),
                        ("continued_after_fatal", models.BooleanField(null=True)),
                        ("unmatched_final_action", models.BooleanField(null=True)),
                        ("injections", models.JSONField()),
                        ("invariants", models.JSONField()),
                        ("generated_tokens", models.PositiveBigIntegerField()),
                        ("policy_tokens", models.PositiveBigIntegerField()),
                        ("prompt_tokens", models.PositiveBigIntegerField()),
                        ("initial_state_sha256", models.CharField(max_length=64)),
                        ("final_state_sha256", models.CharField(max_length=64, null=True)),
                        ("grade", models.CharField(default="A", max_length=1)),
                        (
                            "group",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="trajectories",
                                to="runs.group",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["fatal_start"], name="trajectory_by_fatal")],
                        "constraints": [
                            models.UniqueConstraint(fields=("group", "slot"), name="trajectory_slot_unique"),
                            models.CheckConstraint(
                                condition=models.Q(("grade__in", ["A", "B", "C"])), name="trajectory_grade_known"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status", "valid"),
                                    models.Q(("advantage__isnull", True), ("reward_total__isnull", True)),
                                    _connector="OR",
                                ),
                                name="trajectory_invalid_has_no_reward",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Turn",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("decision", models.PositiveIntegerField()),
                        ("branch", models.CharField(max_length=64)),
                        ("parent_decision", models.PositiveIntegerField(null=True)),
                        ("capture_sha256", models.CharField(max_length=64, null=True, unique=True)),
                        ("offset", models.PositiveBigIntegerField(null=True)),
                        ("length", models.PositiveBigIntegerField(null=True)),
                        ("prompt_tokens", models.PositiveIntegerField()),
                        ("generated_tokens", models.PositiveIntegerField()),
                        ("policy_tokens", models.PositiveIntegerField()),
                        ("action_kind", models.CharField(max_length=32)),
                        ("parse_error", models.TextField(null=True)),
                        ("think_text", models.TextField(null=True)),
                        ("action_text", models.TextField()),
                        ("finish", models.JSONField(null=True)),
                        ("state_before", models.CharField(max_length=64)),
                        ("state_after", models.CharField(max_length=64)),
                        ("policy_version", models.PositiveIntegerField()),
                        (
                            "trajectory",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="turns", to="runs.trajectory"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("trajectory", "branch", "decision"), name="turn_decision_unique"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ToolCall",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("ordinal", models.PositiveIntegerField()),
                        ("tool", models.CharField(max_length=200)),
                        ("arguments", models.JSONField()),
                        ("executed", models.BooleanField()),
                        ("backend_called", models.BooleanField()),
                        ("is_repeat", models.BooleanField()),
                        ("is_productive", models.BooleanField(null=True)),
                        (
                            "turn",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT, related_name="tool_call", to="runs.turn"
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
                    name="Document",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=64)),
                        ("subject_uid", models.UUIDField()),
                        ("sha256", models.CharField(db_index=True, max_length=64)),
                        ("bytes", models.BinaryField()),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("kind", "subject_uid"), name="document_subject_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ExecutionTransition",
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
                            "execution",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="transitions",
                                to="runs.execution",
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
                    name="Job",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("key", models.CharField(max_length=255, unique=True)),
                        ("kind", models.CharField(max_length=32)),
                        ("queue", models.CharField(max_length=32)),
                        ("spec", models.JSONField(default=dict)),
                        ("state", models.CharField(default="queued", max_length=16)),
                        ("attempt", models.PositiveIntegerField(default=0)),
                        ("max_attempts", models.PositiveIntegerField(default=3)),
                        ("owner", models.CharField(blank=True, default="", max_length=200)),
                        ("lease_until", models.DateTimeField(null=True)),
                        ("heartbeat_at", models.DateTimeField(null=True)),
                        ("dispatched_at", models.DateTimeField(null=True)),
                        ("available_at", models.DateTimeField(null=True)),
                        ("progress", models.JSONField(default=dict)),
                        ("error", models.TextField(blank=True, default="")),
                        ("created_at", models.DateTimeField()),
                        ("finished_at", models.DateTimeField(null=True)),
                        (
                            "execution",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="jobs",
                                to="runs.execution",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="jobs",
                                to="runs.run",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["state", "queue", "available_at"], name="job_next"),
                            models.Index(fields=["state", "lease_until"], name="job_lease"),
                            models.Index(fields=["run", "kind", "state"], name="job_by_run"),
                            models.Index(fields=["execution", "state"], name="job_by_execution"),
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("state__in", ["queued", "leased", "succeeded", "failed", "errored", "cancelled"])
                                ),
                                name="job_state_known",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="JobTransition",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("from_state", models.CharField(max_length=16)),
                        ("to_state", models.CharField(max_length=16)),
                        ("attempt", models.PositiveIntegerField()),
                        ("owner", models.CharField(blank=True, default="", max_length=200)),
                        ("reason", models.TextField(blank=True, default="")),
                        ("at", models.DateTimeField()),
                        (
                            "job",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="transitions", to="runs.job"
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
                    name="MetricPoint",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("value", models.FloatField(null=True)),
                        ("nonfinite", models.CharField(blank=True, default="", max_length=4)),
                        ("count", models.PositiveBigIntegerField(null=True)),
                        ("policy_version", models.PositiveIntegerField()),
                        ("update", models.PositiveIntegerField(null=True)),
                        ("trajectories", models.PositiveBigIntegerField(null=True)),
                        ("generated_tokens", models.PositiveBigIntegerField(null=True)),
                        ("wall_seconds", models.FloatField(null=True)),
                        ("subject_uid", models.UUIDField(db_index=True, null=True)),
                        ("at", models.DateTimeField()),
                        ("position", models.PositiveIntegerField()),
                        (
                            "document",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="metric_points",
                                to="runs.document",
                            ),
                        ),
                        (
                            "series",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="points",
                                to="runs.metricseries",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [
                            models.Index(fields=["series", "policy_version", "update", "id"], name="metric_point_order")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("document", "position"), name="metric_point_position_unique"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("nonfinite", ""),
                                    models.Q(("nonfinite__in", ["nan", "inf", "-inf"]), ("value__isnull", True)),
                                    _connector="OR",
                                ),
                                name="metric_point_nonfinite_known",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PlanTransition",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("from_state", models.CharField(max_length=16)),
                        ("to_state", models.CharField(max_length=16)),
                        ("reason", models.TextField(blank=True, default="")),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
                            ),
                        ),
                        (
                            "plan",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="transitions", to="runs.plan"
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="transitions",
                                to="runs.planversion",
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
                    name="FailureSchedule",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("sha256", models.CharField(max_length=64)),
                        ("bytes", models.BinaryField()),
                        (
                            "plan_version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="failure_schedules",
                                to="runs.planversion",
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
                    name="Receipt",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("stream", models.CharField(max_length=200)),
                        ("seq", models.PositiveBigIntegerField()),
                        ("prev", models.CharField(max_length=64)),
                        ("sha256", models.CharField(db_index=True, max_length=64)),
                        ("bytes", models.BinaryField()),
                        ("kind", models.CharField(max_length=100)),
                        ("subject_uid", models.UUIDField(db_index=True, null=True)),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="receipts", to="runs.actor"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "indexes": [models.Index(fields=["-at"], name="receipt_newest")],
                        "constraints": [
                            models.UniqueConstraint(fields=("stream", "seq"), name="receipt_seq_unique"),
                            models.UniqueConstraint(fields=("stream", "prev"), name="receipt_prev_unique"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RunHead",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("state", models.CharField(max_length=32)),
                        ("phase", models.CharField(blank=True, default="", max_length=64)),
                        ("policy_version", models.PositiveIntegerField(default=0)),
                        ("optimizer_sha256", models.CharField(max_length=64, null=True)),
                        ("batch", models.PositiveIntegerField(default=0)),
                        ("steps", models.PositiveIntegerField(default=0)),
                        ("reason", models.TextField(blank=True, default="")),
                        ("runtime", models.CharField(blank=True, default="", max_length=200)),
                        ("trajectories", models.PositiveBigIntegerField(default=0)),
                        ("generated_tokens", models.PositiveBigIntegerField(default=0)),
                        ("updated_at", models.DateTimeField()),
                        (
                            "checkpoint",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="runs.checkpoint",
                            ),
                        ),
                        (
                            "run",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT, related_name="head", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["state"], name="run_head_by_state")],
                    },
                ),
                migrations.CreateModel(
                    name="RunTransition",
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
                                on_delete=django.db.models.deletion.PROTECT, related_name="transitions", to="runs.run"
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
                    name="Membership",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("role", models.CharField(max_length=16)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="memberships",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "study",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="memberships", to="runs.study"
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("study", "user", "role"), name="membership_unique"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("role__in", ["viewer", "researcher", "reviewer", "worker", "admin"])
                                ),
                                name="membership_role_known",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TaskSetEntry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("position", models.PositiveIntegerField()),
                        (
                            "task",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="runs.task"
                            ),
                        ),
                        (
                            "task_set",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="entries", to="runs.taskset"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("task_set", "position"), name="task_set_entry_position_unique"
                            ),
                            models.UniqueConstraint(fields=("task_set", "task"), name="task_set_entry_task_unique"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Tombstone",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sha256", models.CharField(max_length=64, unique=True)),
                        ("reason", models.TextField()),
                        ("recipe", models.JSONField()),
                        ("at", models.DateTimeField()),
                        (
                            "actor",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.actor"
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
                    name="Observation",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("status", models.CharField(max_length=16)),
                        ("retryable", models.BooleanField(null=True)),
                        ("injected", models.BooleanField()),
                        ("text", models.TextField()),
                        ("facts", models.JSONField()),
                        (
                            "call",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="observation",
                                to="runs.toolcall",
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
                    name="RewardComponent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        ("weight", models.FloatField()),
                        ("value", models.FloatField(null=True)),
                        ("points", models.FloatField(null=True)),
                        ("state", models.CharField(max_length=32)),
                        ("detail", models.JSONField()),
                        (
                            "trajectory",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="reward_components",
                                to="runs.trajectory",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("trajectory", "name"), name="reward_component_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EvaluationItem",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("condition", models.CharField(max_length=32)),
                        ("split", models.CharField(max_length=32)),
                        ("repeat", models.PositiveIntegerField()),
                        (
                            "checkpoint",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="evaluation_items",
                                to="runs.checkpoint",
                            ),
                        ),
                        (
                            "plan_version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="evaluation_items",
                                to="runs.planversion",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="evaluation_items",
                                to="runs.run",
                            ),
                        ),
                        (
                            "task",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="evaluation_items",
                                to="runs.task",
                            ),
                        ),
                        (
                            "trajectory",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="evaluation_item",
                                to="runs.trajectory",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("plan_version", "checkpoint", "condition", "split", "task", "repeat"),
                                name="evaluation_item_unique",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="UpdateBatch",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("uid", models.UUIDField(editable=False, unique=True)),
                        ("batch", models.PositiveIntegerField()),
                        ("policy_version", models.PositiveIntegerField()),
                        ("optimizer_before", models.CharField(max_length=64, null=True)),
                        ("optimizer_after", models.CharField(max_length=64, null=True)),
                        ("capture_digest", models.CharField(max_length=64)),
                        ("old_logprobs_sha256", models.CharField(max_length=64, null=True)),
                        ("trace_blob_sha256", models.CharField(max_length=64, null=True)),
                        ("skipped", models.CharField(max_length=64, null=True)),
                        ("note", models.TextField(null=True)),
                        ("clipping_inert", models.BooleanField()),
                        ("record_sha256", models.CharField(max_length=64)),
                        (
                            "checkpoint_after",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="updates_into",
                                to="runs.checkpoint",
                            ),
                        ),
                        (
                            "checkpoint_before",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="updates_from",
                                to="runs.checkpoint",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="updates", to="runs.run"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [models.UniqueConstraint(fields=("run", "batch"), name="update_batch_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="TrajectoryCredit",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("advantage", models.FloatField(null=True)),
                        ("policy_tokens", models.PositiveBigIntegerField()),
                        ("trained_tokens", models.PositiveBigIntegerField()),
                        ("masked_tokens", models.PositiveBigIntegerField()),
                        ("clamp_actionable", models.BooleanField()),
                        ("fatal_start", models.PositiveIntegerField(null=True)),
                        ("engine_drift_mean", models.FloatField(null=True)),
                        ("engine_drift_max", models.FloatField(null=True)),
                        ("nonfinite", models.JSONField(default=dict)),
                        (
                            "trajectory",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="credits",
                                to="runs.trajectory",
                            ),
                        ),
                        (
                            "update",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="credits",
                                to="runs.updatebatch",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("update", "trajectory"), name="trajectory_credit_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TraceFrame",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("step", models.PositiveIntegerField()),
                        ("frame_sha256", models.CharField(max_length=64)),
                        ("offset", models.PositiveBigIntegerField()),
                        ("length", models.PositiveBigIntegerField()),
                        (
                            "trajectory",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="trace_frames",
                                to="runs.trajectory",
                            ),
                        ),
                        (
                            "update",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="trace_frames",
                                to="runs.updatebatch",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [
                            models.UniqueConstraint(fields=("update", "step", "trajectory"), name="trace_frame_unique")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ConsumedGroup",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "group",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT, related_name="consumed", to="runs.group"
                            ),
                        ),
                        (
                            "update",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="consumed_groups",
                                to="runs.updatebatch",
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
                    name="UpdateStep",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("step", models.PositiveIntegerField()),
                        ("epoch", models.PositiveIntegerField()),
                        ("minibatch", models.PositiveIntegerField()),
                        ("loss", models.FloatField(null=True)),
                        ("grad_norm", models.FloatField(null=True)),
                        ("update_norm", models.FloatField(null=True)),
                        ("relative_update_norm", models.FloatField(null=True)),
                        ("clip_low_share", models.FloatField(null=True)),
                        ("clip_high_share", models.FloatField(null=True)),
                        ("ratio_max_deviation", models.FloatField(null=True)),
                        ("kl_k1", models.FloatField(null=True)),
                        ("kl_k3", models.FloatField(null=True)),
                        ("entropy", models.FloatField(null=True)),
                        ("trained_tokens", models.PositiveBigIntegerField()),
                        ("masked_tokens", models.PositiveBigIntegerField()),
                        ("trajectories", models.PositiveIntegerField()),
                        ("nonfinite", models.JSONField(default=dict)),
                        (
                            "update",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT, related_name="steps", to="runs.updatebatch"
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "base_manager_name": "objects",
                        "default_manager_name": "objects",
                        "constraints": [models.UniqueConstraint(fields=("update", "step"), name="update_step_unique")],
                    },
                ),
                migrations.AddField(
                    model_name="plan",
                    name="current_version",
                    field=models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.planversion"
                    ),
                ),
                migrations.AddField(
                    model_name="checkpoint",
                    name="run",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="checkpoints",
                        to="runs.run",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="checkpoint",
                    constraint=models.UniqueConstraint(
                        fields=("run", "policy_version"), name="checkpoint_version_unique"
                    ),
                ),
            ]
        ),
    ]
