"""``manage.py attack``: try to make pages say more than their evidence, and show what finds each attempt."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from tqdm import tqdm

from runs.storage import blob_store
from workbench.home import initialise
from workbench.settings import child_environment

MARKER = "attacked-world"
NOBODY = {"DATABASE_URL": "", "WORKBENCH_BROKER_URL": "", "REDIS_URL": ""}


class Command(BaseCommand):
    """Works on a home of its own in a temporary folder, never on this one. Exit status 1 where one goes unfound."""

    help = "Build a small world in a temporary folder, try every attack on it, and exit 1 if one goes unfound."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
        parser.add_argument("--list", action="store_true", help="print the table of attacks and try none")
        parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # the temporary home, in the child process

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            from evidence.attacks.listing import listing

            self.stdout.write(listing(), ending="")
        elif options["inside"] is not None:
            self._inside(options["inside"], options["json"])
        else:
            self._child(options["json"])

    def _child(self, as_json: bool) -> None:
        """A process with another home: this one's database and store are never opened."""
        with tempfile.TemporaryDirectory(prefix="workbench-attack-") as folder:
            home = Path(folder).resolve()
            (home / MARKER).touch()
            command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "attack", "--inside", str(home)]
            environment = child_environment({**NOBODY, "WORKBENCH_HOME": str(home)})
            found = subprocess.run([*command, *(["--json"] if as_json else [])], env=environment, check=False)
        if found.returncode:
            raise SystemExit(found.returncode)

    def _inside(self, home: Path, as_json: bool) -> None:
        name = Path(connection.settings_dict["NAME"])
        if settings.HOME.root != home or not (home / MARKER).is_file() or connection.vendor != "sqlite":
            raise CommandError(f"--inside: got {home}, expected the temporary home that this command makes")
        if home not in name.resolve().parents:
            raise CommandError(f"--inside: got a database at {name}, expected one in {home}")
        from evidence.attacks.suite import ATTACKS, clean, run_all
        from evidence.attacks.world import build

        started = time.monotonic()
        initialise(settings.HOME)
        with transaction.atomic():
            world = build(blob_store())
            troubles = clean(world)
            with tqdm(total=len(ATTACKS), unit=" attacks", file=sys.stderr, disable=not sys.stderr.isatty()) as bar:
                outcomes = run_all(world, tell=lambda _outcome: bar.update())
            troubles += clean(world)
        unfound = [outcome.attack.key for outcome in outcomes if not outcome.found]
        result = {
            "ok": not unfound and not troubles,
            "attacks": len(outcomes),
            "unfound": unfound,
            "clean_world": troubles,
            "results": [outcome.as_json() for outcome in outcomes],
            "wall_s": round(time.monotonic() - started, 2),
        }
        self.stdout.write(json.dumps(result, ensure_ascii=False)) if as_json else self._print(result)
        if not result["ok"]:
            raise SystemExit(1)

    def _print(self, result: dict[str, Any]) -> None:
        for item in result["results"]:
            mark = "found  " if item["found"] else "UNFOUND"
            self.stdout.write(f"{mark} {item['key']}: {item['title']}\n        {item['by']}: {item['message'][:160]}")
        for line in result["clean_world"]:
            self.stdout.write(f"clean world: {line}")
        count = result["attacks"] - len(result["unfound"])
        self.stdout.write(f"{count} of {result['attacks']} attacks found in {result['wall_s']} s")
