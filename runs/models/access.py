"""What requests leave behind: API tokens, the audit log, answers kept for repeated requests, saved filters."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from workbench.db import AppendOnlyModel


class ApiToken(models.Model):
    """A key for scripts. Only ``digest`` (SHA-256 of the whole token) is stored; ``prefix`` names it on pages.

    ``scopes``: a list out of read, write, log, review, admin. ``expires_at`` None: it does not expire.
    A revoked token keeps its row.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"


class AuditEntry(AppendOnlyModel):
    """One request or command that asked for a change, also where it was refused. Never holds a secret.

    ``route``: the address's name and pattern; ``status``: HTTP status, or 0 and 1 for a command's exit.
    ``subject``: what it was about (study and uid), ``study`` None: it concerned none or no known one.
    """

    at = models.DateTimeField(db_index=True)
    actor = models.ForeignKey("runs.Actor", models.PROTECT, null=True, related_name="audit_entries")
    token_prefix = models.CharField(max_length=16, blank=True, default="")
    channel = models.CharField(max_length=16)  # page, api, command
    method = models.CharField(max_length=16)
    route = models.CharField(max_length=200)
    subject = models.CharField(max_length=300, blank=True, default="")
    study = models.ForeignKey("runs.Study", models.PROTECT, null=True, related_name="audit_entries")
    status = models.PositiveIntegerField()
    detail = models.CharField(max_length=500, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")


class IdempotencyRecord(models.Model):
    """The answer to a POST with an Idempotency-Key, given again to a repeat. ``status`` None: in progress.

    ``fingerprint``: SHA-256 of method, path and body: another body under one key is refused.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_unique")]


class SavedFilter(models.Model):
    """A query that a person keeps under a name, for one kind of list."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_filters")
    name = models.CharField(max_length=100)
    page = models.CharField(max_length=32)
    query = models.CharField(max_length=500)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="saved_filter_unique")]

    def __str__(self) -> str:
        return self.name
