"""People, services, tokens and memberships."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from workbench.tables import CreateTables


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0001_initial"),
    ]

    operations = [
        CreateTables(
            [
                migrations.CreateModel(
                    name="ApiToken",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        ("prefix", models.CharField(max_length=16, unique=True)),
                        ("digest", models.CharField(max_length=64, unique=True)),
                        ("scopes", models.JSONField(default=list)),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("last_used_at", models.DateTimeField(null=True)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="api_tokens",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="AuditEntry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField(db_index=True)),
                        ("token_prefix", models.CharField(blank=True, default="", max_length=16)),
                        ("channel", models.CharField(max_length=16)),
                        ("method", models.CharField(max_length=16)),
                        ("route", models.CharField(max_length=200)),
                        ("subject", models.CharField(blank=True, default="", max_length=300)),
                        ("status", models.PositiveIntegerField()),
                        ("detail", models.CharField(blank=True, default="", max_length=500)),
                        ("request_id", models.CharField(blank=True, default="", max_length=64)),
                        ("address", models.CharField(blank=True, default="", max_length=64)),
                        (
                            "actor",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="audit_entries",
                                to="runs.actor",
                            ),
                        ),
                        (
                            "study",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="audit_entries",
                                to="runs.study",
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
                    name="IdempotencyRecord",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key", models.CharField(max_length=200)),
                        ("fingerprint", models.CharField(max_length=64)),
                        ("status", models.PositiveIntegerField(null=True)),
                        ("headers", models.JSONField(default=dict)),
                        ("body", models.BinaryField(default=b"")),
                        ("created_at", models.DateTimeField(db_index=True)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [models.UniqueConstraint(fields=("user", "key"), name="idempotency_key_unique")],
                    },
                ),
                migrations.CreateModel(
                    name="SavedFilter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        ("page", models.CharField(max_length=32)),
                        ("query", models.CharField(max_length=500)),
                        ("created_at", models.DateTimeField()),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="saved_filters",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("user", "page", "name"), name="saved_filter_unique")
                        ],
                    },
                ),
            ]
        ),
        migrations.AddField(
            model_name="job",
            name="result",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="study",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="jobs", to="runs.study"
            ),
        ),
        migrations.AddField(
            model_name="study",
            name="visibility",
            field=models.CharField(default="public", max_length=16),
        ),
        migrations.AlterField(
            model_name="study",
            name="visibility",
            field=models.CharField(default="private", max_length=16),
        ),
        migrations.AddConstraint(
            model_name="study",
            constraint=models.CheckConstraint(
                condition=models.Q(("visibility__in", ["private", "internal", "public"])), name="study_visibility_known"
            ),
        ),
    ]
