"""Tasks and the sets that they come in."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class TaskSet(AppendOnlyModel):
    """The tasks of one environment version; ``blob_sha256`` holds their canonical JSON."""

    uid = models.UUIDField(unique=True, editable=False)
    environment = models.CharField(max_length=200)
    version = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64, unique=True)
    blob_sha256 = models.CharField(max_length=64)
    count = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.environment}/{self.version} {self.sha256[:12]}"

    def all_tasks(self) -> models.QuerySet[Task]:
        """Tasks of this set, in its order, also those that an earlier set stored first."""
        return Task.objects.filter(entries__task_set=self).order_by("entries__position")


class Task(AppendOnlyModel):
    """One problem. ``task_sha256`` covers prompt, initial state, hidden reference and tools.

    ``task_set`` is the set that brought it first. ``hidden`` never enters a prompt.
    """

    uid = models.UUIDField(unique=True, editable=False)
    task_set = models.ForeignKey("runs.TaskSet", models.PROTECT, related_name="tasks")
    key = models.CharField(max_length=200)
    split = models.CharField(max_length=32)
    family = models.CharField(max_length=100)
    prompt = models.TextField()
    task_sha256 = models.CharField(max_length=64, db_index=True)
    hidden = models.JSONField()
    initial_state = models.JSONField()
    tools = models.JSONField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["task_set", "key"], name="task_key_unique")]
        indexes = [models.Index(fields=["task_set", "split", "family"], name="task_by_split")]

    def __str__(self) -> str:
        return self.key


class TaskSetEntry(AppendOnlyModel):
    """Membership of a task in a set: two sets of one environment version share equal tasks."""

    task_set = models.ForeignKey("runs.TaskSet", models.PROTECT, related_name="entries")
    task = models.ForeignKey("runs.Task", models.PROTECT, related_name="entries")
    position = models.PositiveIntegerField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["task_set", "position"], name="task_set_entry_position_unique"),
            models.UniqueConstraint(fields=["task_set", "task"], name="task_set_entry_task_unique"),
        ]
