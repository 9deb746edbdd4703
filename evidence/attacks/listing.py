"""The list of attacks as the documentation shows it."""

from __future__ import annotations

from evidence.attacks import on_chains, on_evidence, on_records, on_runs
from evidence.attacks.attack import Attack
from evidence.attacks.suite import ELSEWHERE

PARTS: tuple[tuple[str, tuple[Attack, ...]], ...] = (
    ("Asked for by the front door (page, API, command)", on_evidence.ATTACKS),
    ("On stored evidence: by SQL, or by forged records with receipts of their own", on_records.ATTACKS),
    ("On receipts, heads, anchors and signatures", on_chains.ATTACKS),
    ("On plans, captures, adapters, rows, metrics and closures", on_runs.ATTACKS),
)
HEAD = """# Attack suite

`manage.py attack` builds a small world in a temporary folder (a closed study with captures, an update, an
evaluation and logged metrics; sources, excerpts, figures, claims, reviews and a notes page on top), tries each
attack below on it, takes it back, and exits 1 if one goes unfound. `--json` prints the message of each check.
The tests switch each check off and see its attack go unfound.

"Found" means: the named check says so, in the named place. An attack that fails for another reason counts as
unfound.
"""


def listing() -> str:
    """Markdown of every attack with what finds it. ``docs/attacks.md`` is this text."""
    lines = [HEAD]
    for title, attacks in PARTS:
        lines += [f"## {title}", "", "| attack | what is tried | found by |", "|---|---|---|"]
        lines += [f"| `{item.key}` | {item.title} | {item.found_by()} |" for item in attacks]
        lines.append("")
    lines += ["## What this world cannot try", ""]
    lines += [f"- {what}: {why}" for what, why in ELSEWHERE]
    count = sum(len(attacks) for _title, attacks in PARTS)
    lines += ["", f"{count} attacks, {count} found."]
    return "\n".join(lines) + "\n"
