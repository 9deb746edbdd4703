"""``manage.py retention``: apply what the plans keep, and tell what was removed and could be made again."""

from __future__ import annotations

import argparse
import json
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.retention import ENDED, Removal, due, kept_blobs, overview, retain
from runs.actions.tombstones import finish_removals
from runs.models import Execution
from runs.storage import blob_store
from workbench.home import initialise

SHOWN = 20


class Command(BaseCommand):
    """Works on executions that have ended; a study that is still running keeps everything."""

    help = "Remove checkpoints and optimizer states that no plan keeps; each leaves a tombstone with its recipe."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        store, dry = blob_store(), bool(options["dry_run"])
        actor, at = service_actor("command line"), timezone.now()
        removals: dict[str, Removal] = {}
        audited: AbstractContextManager[dict[str, str]] = nullcontext({})
        if not dry:
            audited = audited_command("retention", by=actor, at=at)
        with audited as noted:
            for execution in Execution.objects.filter(state__in=ENDED).select_related("plan_version").order_by("pk"):
                found = due(execution, kept=kept_blobs())
                removals.update((item.sha256, item) for item in found)
                if found and not dry:
                    retain(execution, actor=actor, at=at)
            finished = finish_removals(store, dry_run=dry)
            noted["detail"] = f"{len(removals)} blobs removed"
        gone = list(overview(store))
        result = {
            "dry_run": dry,
            "removed": [
                {"sha256": item.sha256, "what": item.what, "bytes": item.bytes, "recipe": item.recipe}
                for item in removals.values()
            ],
            "removed_bytes": sum(item.bytes or 0 for item in removals.values()),
            "left_by_a_crash": finished,
            "tombstones": [item.as_json() for item in gone],
            "tombstoned_bytes": sum(item.bytes or 0 for item in gone),
            "can_be_made_again": sum(1 for item in gone if item.missing is None),
        }
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            self._print(result)

    def _print(self, result: dict[str, Any]) -> None:
        verb = "would go" if result["dry_run"] else "removed"
        self.stdout.write(f"{verb}: {len(result['removed'])} blobs, {result['removed_bytes']} bytes")
        for item in result["removed"][:SHOWN]:
            self.stdout.write(f"  {item['sha256'][:16]} {item['what']} {item['bytes']} bytes")
        if result["left_by_a_crash"]:
            self.stdout.write(f"{verb}, tombstoned before: {len(result['left_by_a_crash'])} blobs")
        total = len(result["tombstones"])
        self.stdout.write(
            f"tombstones: {total}, {result['tombstoned_bytes']} bytes; "
            f"{result['can_be_made_again']} of {total} can be made again from what is held"
        )
        for item in [item for item in result["tombstones"] if not item["can_be_made_again"]][:SHOWN]:
            self.stdout.write(f"  {item['sha256'][:16]} cannot: {item['missing']} is not there")
