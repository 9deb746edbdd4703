"""The Celery app. A message only says "look at job N": the database row is the truth."""

from __future__ import annotations

import os

from celery import Celery
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

QUEUES = ("rollout", "update", "trial", "evaluate", "io")
COMPUTE_QUEUES = ("rollout", "update", "trial", "evaluate")

app = Celery("workbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = tuple(Queue(name, routing_key=name) for name in QUEUES)
app.autodiscover_tasks(["worker"])
