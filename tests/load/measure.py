"""Server time of every page and API list on a large database, as a member of some studies and as the site's admin.

``python -m tests.load.measure HOME [words of names ...]``: fills HOME where it is empty, and prints one JSON
object per address: wall and CPU milliseconds (the least of some tries), queries, bytes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

TRIES = 3
BUDGET_MS = 300.0


def prepare() -> None:
    """Migrate, fill an empty database at full size, and see to the two readers and to one private study."""
    from django.core.management import call_command
    from django.utils import timezone

    from runs.models import Membership, Plan, Run, Study, User
    from tests.load.evidence import add_evidence
    from tests.load.generate import FULL, PRIVATE, add_draft, generate
    from tests.load.points import add_logged

    call_command("migrate", verbosity=0)
    if not Run.objects.exists():
        generate(FULL)
    add_logged(FULL.runs)
    add_evidence()
    if not Plan.objects.filter(slug="draft").exists():
        add_draft()
    Study.objects.filter(slug=PRIVATE).update(visibility="private")
    for name, admin in (("member", False), ("admin", True)):
        if not User.objects.filter(username=name).exists():
            User.objects.create(username=name, is_superuser=admin, is_staff=admin, date_joined=timezone.now())
    member = User.objects.get(username="member")
    for study in Study.objects.filter(slug__in=("study-0", "study-3")):
        Membership.objects.get_or_create(study=study, user=member, role=Membership.RESEARCHER)


def measure(who: str, address: str) -> dict[str, Any]:
    """The best of some requests in this process. CPU time counts SQLite's work, which runs in the process too."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from runs.models import User

    client = Client()
    client.force_login(User.objects.get(username=who))
    walls, cpus = [], []
    for _ in range(TRIES):
        began, cpu = time.perf_counter(), time.process_time()
        answer = client.get(address)
        size = sum(len(part) for part in answer) if answer.streaming else len(answer.content)
        walls.append(time.perf_counter() - began)
        cpus.append(time.process_time() - cpu)
        if min(cpus) * 1000 < BUDGET_MS / 3:
            break
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    return {
        "who": who, "status": answer.status_code, "wall": round(min(walls) * 1000), "cpu": round(min(cpus) * 1000),
        "queries": len(queries), "bytes": size,
    }  # fmt: skip


def main(home: str, words: list[str]) -> None:
    """Print the measurements."""
    os.environ["WORKBENCH_HOME"] = home
    os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
    import django
    from django.conf import settings

    django.setup()
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    settings.API_RATES = dict.fromkeys(settings.API_RATES, 10**9)
    prepare()
    from tests.load.generate import FULL
    from tests.load.routes import everything

    for who in ("member", "admin"):
        measure(who, "/")  # what a process does once
        for name, address in everything(FULL).items():
            if not words or any(word in name for word in words):
                print(json.dumps({"name": name, "address": address, **measure(who, address)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
