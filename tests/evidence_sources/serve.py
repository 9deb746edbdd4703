"""Sources of every form in a data directory of their own, served: ``python -m tests.evidence_sources.serve PORT``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

PASSWORD = "correct horse battery"
NOTES = (
    "# Pilot\n\n"
    + "".join(f"Paragraph {number}.\n\n" for number in range(60))
    + "Of 244 usable edits, 92 were nonzero.\n\n"
    + "".join(f"Later {number}.\n" for number in range(60))
    + "999 rows were counted.\n"
)


def populate() -> dict[str, str]:
    """One source of each kind; addresses by name."""
    from django.utils import timezone

    from evidence.actions.excerpts import add_excerpt
    from evidence.actions.sources import add_source
    from runs.actions.actors import person_actor
    from runs.actions.plans import ensure_study
    from runs.models import Membership, User
    from tests.evidence_sources.test_reading import pdf

    user = User.objects.create_user("mara", password=PASSWORD)
    acting: dict[str, Any] = {"by": person_actor(user), "at": timezone.now()}
    texts = {"en": "Edit credit", "zh": ""}
    study = ensure_study("edit-credit", title=texts, summary=texts, **acting)
    Membership.objects.create(study=study, user=user, role=Membership.RESEARCHER)
    notes = add_source(study, "notes.md", NOTES.encode(), origin="upload", reference="R1", **acting)
    for key, exact in (("counts", "92 were nonzero"), ("rows", "999 rows")):
        add_excerpt(study, notes, key, "quote", {"exact": exact}, **acting)
    first = add_source(study, "a.json", b'{"rows": 999, "of": [1]}', origin="upload", **acting)
    add_excerpt(study, first, "json", "pointer", {"pointer": "/rows"}, **acting)
    table = add_source(study, "t.csv", b"arm,n\na,1\nb,2\n", origin="upload", **acting)
    paper = add_source(study, "p.pdf", pdf("one", "two"), origin="upload", **acting)
    claimed = add_source(study, "c.tex", None, sha256="a" * 64, origin="imported", **acting)
    add_excerpt(study, claimed, "quoted", "quote", {"exact": "as written"}, text="as written", **acting)
    add_source(study, "a.json", b'{"rows": 995, "of": [1]}', origin="upload", reason="counted twice", **acting)
    found = {"notes": notes, "json": first, "csv": table, "pdf": paper, "claimed": claimed}
    return {name: f"/sources/{version.source.uid}/" for name, version in found.items()}


def main() -> None:
    """Make the database, print addresses as one line of JSON, serve until killed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from tests.template import copy_to_home

    copy_to_home()
    print(json.dumps(populate()), flush=True)
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main()
