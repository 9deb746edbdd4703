"""A web of evidence: two sources, three excerpts, a derivation, claims and notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from evidence.models import StaleMark
from tests.evidence_stale.rows import Web
from workbench.blobs import BlobStore

TEXT = b"# Pilot\n\nOf 244 usable rows 92 were nonzero.\nThe run took 17 hours.\n"


@pytest.fixture
def web(db: None, tmp_path: Path, settings: LazySettings) -> Web:
    """pilot.md holds usable, nonzero and hours; rate = nonzero / usable; claim ``share`` shows rate and usable.

    Notes: ``results`` names the rate, ``meaning`` the claim, ``sources`` the reference, ``why`` nothing.
    """
    settings.BLOB_ROOT = str(tmp_path / "blobs")
    made = Web.make(BlobStore(tmp_path / "blobs"))
    pilot = made.source("pilot.md", TEXT, "R1")
    made.source("other.md", b"Nothing rests on this.", "R2")
    usable = made.excerpt(pilot, "usable", "244 usable")
    nonzero = made.excerpt(pilot, "nonzero", "92 were nonzero")
    hours = made.excerpt(pilot, "hours", "17 hours")
    made.quoted("usable", usable, "244")
    made.quoted("nonzero", nonzero, "92")
    made.quoted("hours", hours, "17")
    rate = {
        "type": "derivation",
        "expression": "nonzero / usable",
        "figures": {"nonzero": "nonzero", "usable": "usable"},
    }
    made.figure("rate", rate, "23/61")
    made.claim("share", "A share of [[rate]] of [[usable]] rows.", ["rate", "usable"])
    linked = made.claim("linked", "Rows were read.", [])
    made.link(linked, excerpt=hours)
    made.claim("apart", "Nothing is bound here.", [])
    made.notes(
        [
            {"id": "why", "blocks": []},
            {"id": "results", "blocks": [{"type": "paragraph", "text": {"en": "It was [[rate]]."}, "sources": []}]},
            {"id": "meaning", "blocks": [{"type": "claims", "items": ["share"]}]},
            {"id": "sources", "blocks": [{"type": "paragraph", "text": {"en": "See [@R1]."}, "sources": ["R1"]}]},
        ]
    )
    assert not StaleMark.objects.exists()
    return made
