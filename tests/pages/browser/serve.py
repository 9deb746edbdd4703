"""Build the world in a data directory of its own and serve it: ``python -m tests.pages.browser.serve PORT``."""

from __future__ import annotations

import json
import os
import sys


def main(port: str) -> None:
    """Migrate, build, write the addresses that the tests open to standard output, serve until ended."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from runs.models import Membership, TrajectoryCredit, User
    from tests.pages import trial_world
    from tests.pages.browser import evidence_world
    from tests.pages.browser.addresses import more
    from tests.pages.world import build
    from tests.template import copy_to_home

    copy_to_home()
    mara = User.objects.create_user("mara", password="correct horse battery")
    world = build(batches=2)
    rosa = User.objects.create_user("rosa", password="correct horse battery")
    Membership.objects.create(study=world.study, user=rosa, role=Membership.RESEARCHER)
    Membership.objects.create(study=world.study, user=mara, role=Membership.RESEARCHER)
    desk, of_evidence = evidence_world.build()
    ada = desk.user
    ada.is_staff = ada.is_superuser = True
    ada.save()
    run = world.runs["e3-s17"]
    credit = TrajectoryCredit.objects.filter(update__run=run, masked_tokens__gt=0, trained_tokens__gt=0).first()
    assert credit is not None
    addresses = {
        "run": f"/runs/{run.uid}/",
        "group": f"/groups/{credit.trajectory.group.uid}/",
        "trajectory": f"/trajectories/{credit.trajectory.uid}/",
        "receipt": f"/receipts/?stream=run:{run.uid}",
        "job": f"/jobs/{run.jobs.get(state='errored').uid}/",
        **more(world, credit.trajectory, ada),
        **of_evidence,
        **trial_world.addresses(trial_world.build()),
    }
    print(json.dumps(addresses), flush=True)
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main(sys.argv[1])
