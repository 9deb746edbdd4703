"""Evidence of every kind in a study, made by the actions themselves."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.reviews import review
from evidence.actions.sources import add_source
from evidence.models import Claim, Figure
from runs.actions.actors import person_actor
from runs.models import Execution, Membership, Receipt, Study, User

AT = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)
RESULTS = json.dumps({"usable": 244, "nonzero": 92}, indent=1).encode()
TABLE = b"arm,tasks\nV,12\nM,27\n"
PAPER = b"The pilot kept 244 usable groups.\nOf these, 92 were not zero.\n"


def add_evidence(study: Study, execution: Execution) -> dict[str, Any]:
    """Three held sources and a claimed one, three excerpts, figures of every type, a claim with links and a review."""
    author = User.objects.create(username="mara")
    Membership.objects.create(study=study, user=author, role=Membership.RESEARCHER)
    reader = User.objects.create(username="rolf")
    Membership.objects.create(study=study, user=reader, role=Membership.REVIEWER)
    acting: dict[str, Any] = {"by": person_actor(author), "at": AT}
    add_source(study, "pilot/results.json", RESULTS, origin="upload", reference="R1", title_en="Pilot", **acting)
    add_source(study, "pilot/table.csv", TABLE, origin="upload", **acting)
    paper = add_source(
        study, "pilot/paper.md", PAPER, origin="upload", reference="R2", cutoff=date(2026, 5, 1), **acting
    )
    claimed = add_source(study, "other/report.md", None, origin="imported", sha256="ab" * 32, size=10, **acting)
    quote = add_excerpt(study, paper, "paper.nonzero", "quote", {"exact": "Of these, 92 were not zero."}, **acting)
    add_excerpt(study, claimed, "report.said", "quote", {"exact": "seven of 9."}, text="seven of 9.", **acting)
    bind(study, "pilot.usable", {"type": "pointer", "source": "pilot/results.json", "pointer": "/usable"}, acting)
    bind(study, "pilot.nonzero", {"type": "excerpt", "excerpt": "paper.nonzero", "number": "92"}, acting)
    bind(
        study,
        "pilot.tasks",
        {"type": "cell", "source": "pilot/table.csv", "column": "tasks", "key_column": "arm", "key": "M"},
        acting,
    )
    share = {"nonzero": "pilot.nonzero", "usable": "pilot.usable"}
    bind(study, "pilot.share", {"type": "derivation", "expression": "nonzero / usable", "figures": share}, acting)
    closing = Receipt.objects.get(kind="execution.closed")
    bind(study, "run.items", {"type": "receipt", "sha256": closing.sha256, "pointer": "/body/counts/items"}, acting)
    bind(study, "report.seven", {"type": "excerpt", "excerpt": "report.said", "number": "9"}, acting)
    bind(study, "later", {"type": "unavailable", "reason_en": "not measured"}, acting)
    text = "Of [[pilot.usable]] groups [[pilot.nonzero]] gave a signal [@R2]."
    claim_version = add_claim(
        study, "pilot", text_en=text, text_zh="[[pilot.nonzero]] 组给出信号。", kind="description", **acting
    )
    claim: Claim = claim_version.claim
    add_link(claim, excerpt=quote, relation="supports", **acting)
    add_link(claim, figure=Figure.objects.get(study=study, key="pilot.share"), relation="supports", **acting)
    claim.refresh_from_db()
    review(claim, verdict="accept", reason="Read.", looked_at=["quotation"], by=person_actor(reader), at=AT)
    return {"claim": claim, "author": author, "reader": reader, "acting": acting}


def bind(study: Study, key: str, binding: dict[str, Any], acting: dict[str, Any]) -> None:
    """A figure of the mechanism."""
    bind_figure(
        study, key, binding, title_en=key, kind="mechanism", digits=2 if "derivation" in str(binding) else 0, **acting
    )
