"""The study of ``build`` in its own data directory, served: ``python -m tests.evidence_notes.serve PORT``."""

from __future__ import annotations

import json
import os
import sys


def populate() -> dict[str, str]:
    """The study with its notes, and someone who may write in it; addresses by name."""
    from runs.models import Membership, User
    from tests.evidence_notes.build import PASSWORD, make_desk

    desk = make_desk()
    desk.save()
    user = User.objects.create_user("mara", password=PASSWORD)
    Membership.objects.create(study=desk.study, user=user, role=Membership.RESEARCHER)
    base = "/studies/pilot/notes/"
    return {"en": f"{base}en/", "zh": f"{base}zh/", "edit": f"{base}edit/", "versions": f"{base}versions/"}


def main(port: str) -> None:
    """Populate, print the addresses, answer until ended."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from tests.template import copy_to_home

    copy_to_home()
    print(json.dumps(populate()), flush=True)
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main(sys.argv[1])
