"""Build a study to review in its own data directory and serve it: ``python -m tests.evidence_reviews.serve PORT``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

PASSWORD = "correct horse battery"
NOTE = """# Held-out evaluation, closure of the first pair

Same paired tasks for both checkpoints, same seeds, same failure
schedule. The checkpoint is the only variable. No training mask here.

## STRESS, outcome counts

| outcome                   | E2F   | E3    |
| ------------------------- | ----- | ----- |
| finish                    |  8/27 | 27/27 |
| parser or policy failure  | 19/27 |  0/27 |
| repeat calls              |  3/27 | 14/27 |

Successful recovery over all paired tasks was 1/27 for E2F and 13/27
for E3. Over exposed tasks it was 1/11 and 13/15; the two exposure
counts differ because E2F mostly stops at the parser before a third
failure can occur.

E3 is not the arm with fewer Fatals: 9/27 against 0/27, and in all nine
the policy continued. Seven later had a successful tool result; two of
those went on to Finish. E2F's zero should be read as parser collapse,
not as safety.

## What this section may be used for

Failure-conditioned structural resilience under the frozen, injected
protocol. Not general ability, not correctness of the answers, not
behaviour under natural failures.
"""
RECOVERY = "Successful recovery over all paired tasks was 1/27 for E2F and 13/27\nfor E3."
SENTENCE = (
    "Under STRESS, {{name:E3}} recovered from an injected failure in [[recovery.e3]] paired tasks and {{name:E2F}} in "
    "[[recovery.e2f]], on the same tasks and under the same failures."
)


def populate() -> dict[str, str]:
    """Three links of two claims, a claimed source, people with logins; addresses by name."""
    from evidence.actions.reviews import item_of
    from runs.models import Membership, User
    from tests.evidence_claims.build import desk as make

    desk = make()
    for name, role in (("mara", Membership.RESEARCHER), ("lea", Membership.REVIEWER), ("rui", Membership.REVIEWER)):
        user = User.objects.create_user(name, password=PASSWORD)
        Membership.objects.create(study=desk.study, user=user, role=role)
    author = User.objects.get(username="author")
    author.set_password(PASSWORD)
    author.save()
    note = desk.source("eval/closure_1.md", NOTE.encode(), reference="R2", title_en="Evaluation note")
    recovery = desk.excerpt("recovery", RECOVERY, version=note)
    exposed = desk.excerpt("exposed", "Over exposed tasks it was 1/11 and 13/15", version=note)
    fatals = desk.excerpt("fatals", "fewer Fatals: 9/27 against 0/27", version=note)
    more: dict[str, Any] = {"excerpt": recovery, "denominator_en": "paired tasks"}
    desk.figure("recovery.e3", "13/27", **more)
    desk.figure("recovery.e2f", "1/27", **more)
    desk.figure("fatals.e3", "9/27", excerpt=fatals)
    desk.pending("fatals.difference", kind="environment")
    reach = "Recovery is structural: it says nothing of the correctness of the answers, and the schedule was injected."
    first = desk.claim("stress-recovery", SENTENCE, text_en=SENTENCE)
    link = desk.link(first, excerpt=recovery, reach_en=reach)
    desk.link(first, "bounds", excerpt=exposed, reach_en="Exposure differs between the arms.")
    sentence = "{{name:E3}} met a Fatal in [[fatals.e3]] of the paired tasks; the difference is [[fatals.difference]]."
    second = desk.claim("fatals-not-fewer", sentence, text_en=sentence)
    other = desk.link(second, excerpt=fatals, reach_en="It says nothing of severity.")
    paper = desk.source("papers/protocol.pdf", None, sha256="ab" * 32, reference="R5")
    quoted = desk.excerpt("protocol", "failures are injected by schedule", version=paper,
                          text="failures are injected by schedule")  # fmt: skip
    desk.link(second, "background", excerpt=quoted)
    return {
        "link": f"/reviews/{item_of('link', link.uid)}/",
        "second": f"/reviews/{item_of('link', other.uid)}/",
        "claim": f"/reviews/{item_of('claim', first.uid)}/",
        "second_claim": str(second.uid),
    }


def main(port: str) -> None:
    """Migrate, build, write the addresses to standard output, serve until ended."""
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
