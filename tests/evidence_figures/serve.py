"""Bind figures in a data directory of its own and serve it: ``python -m tests.evidence_figures.serve PORT``."""

from __future__ import annotations

import json
import os
import sys


def main(port: str) -> None:
    """Migrate, bind, write the addresses that the tests open to standard output, serve until ended."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from evidence.models import Figure
    from tests.evidence_figures.desk import bind_share, make_desk
    from tests.template import copy_to_home

    copy_to_home()
    desk = make_desk()
    bind_share(desk)
    desk.derive("pilot.twice", "share * 2", {"share": "pilot.share"}, style="percent", digits=1)
    addresses = {key: f"/figures/{uid}/" for key, uid in Figure.objects.values_list("key", "uid")}
    print(json.dumps(addresses), flush=True)
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main(sys.argv[1])
