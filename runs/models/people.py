"""Who acts: users, actors and memberships."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models

from workbench.db import AppendOnlyModel


class User(AbstractUser):
    """A login. What a person did is recorded under their ``Actor``."""

    class Meta(AbstractUser.Meta):
        pass


class Actor(AppendOnlyModel):
    """A person or a service, as transitions and receipts name it. A service has no login."""

    PERSON, SERVICE = "person", "service"

    uid = models.UUIDField(unique=True, editable=False)
    kind = models.CharField(max_length=16)
    family = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="actors")

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.CheckConstraint(
                name="actor_person_has_user",
                condition=models.Q(kind="person", user__isnull=False) | models.Q(kind="service", user__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """What a user may do in a study."""

    VIEWER, RESEARCHER, REVIEWER, WORKER, ADMIN = "viewer", "researcher", "reviewer", "worker", "admin"

    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "user", "role"], name="membership_unique"),
            models.CheckConstraint(
                name="membership_role_known",
                condition=models.Q(role__in=["viewer", "researcher", "reviewer", "worker", "admin"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.role}"
