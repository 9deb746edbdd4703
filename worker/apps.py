"""The worker app: Celery tasks and the commands that run studies. It loads no torch by itself."""

from __future__ import annotations

from django.apps import AppConfig


class WorkerConfig(AppConfig):
    name = "worker"
    verbose_name = "Worker"
