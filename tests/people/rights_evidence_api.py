"""The expected rights of the API of evidence but reviews, written by hand; letters and columns as in ``rights``."""

from __future__ import annotations

from tests.people.rights_row import EVERYONE, READERS, READERS_SIGNED_IN, WRITERS, Row

_API = "/api/v1/"
_STUDY = _API + "studies/{study}/"
_REVIEWERS_AND_WRITERS = "lnfoofoo"
_EXPORTERS = "nnfoofoo"
_WORDS = {"text_en": "Rows were read.", "kind": "description"}
_BINDING = {"key": "new", "kind": "mechanism", "binding": {"type": "excerpt", "excerpt": "counts", "number": "244"}}
_REASON = {"reason": "it was not so"}

EVIDENCE_API = [
    Row("evidence_api:sources", "GET", _API + "sources", EVERYONE),
    Row("evidence_api:source", "GET", _API + "sources/{source}", READERS),
    Row("evidence_api:source_versions", "GET", _API + "sources/{source}/versions", READERS),
    Row("evidence_api:source_bytes", "GET", _API + "sources/{source}/versions/1/bytes", READERS),
    Row("evidence_api:source_difference", "GET", _API + "sources/{source}/difference?before=1&after=2", READERS),
    Row("evidence_api:source_check", "POST", _API + "sources/{source}/check", WRITERS),
    Row("evidence_api:source_create", "POST", _STUDY + "sources", WRITERS, {"path": "new.md", "sha256": "cd" * 32}),
    Row("evidence_api:stale_marks", "GET", _API + "stale-marks", EVERYONE),
    Row("evidence_api:stale_mark", "GET", _API + "stale-marks/{mark}", READERS),
    Row("evidence_api:stale_settle", "POST", _API + "stale-marks/{mark}/settle", WRITERS, {"note": "read, it holds"}),
    Row("evidence_api:dependants", "GET", _API + "dependants?kind=source&uid={source}", READERS),
    Row("evidence_api:dependants", "GET", _API + "dependants?kind=excerpt&uid={excerpt}", READERS),
    Row("evidence_api:dependants", "GET", _API + "dependants?kind=plan&uid={version_uid}", READERS),
    Row("evidence_api:excerpts", "GET", _API + "excerpts", EVERYONE),
    Row("evidence_api:excerpt", "GET", _API + "excerpts/{excerpt}", READERS),
    Row(
        "evidence_api:excerpt_create",
        "POST",
        _STUDY + "excerpts",
        WRITERS,
        {"key": "new", "source": "pilot.md", "form": "quote", "selector": {"exact": "244 usable rows"}},
    ),
    Row("evidence_api:figures", "GET", _API + "figures", EVERYONE),
    Row("evidence_api:figure", "GET", _API + "figures/{figure}", READERS),
    Row("evidence_api:figure_recompute", "POST", _API + "figures/{figure}/recompute", WRITERS),
    Row("evidence_api:figure_bind", "POST", _STUDY + "figures", WRITERS, _BINDING),
    Row("evidence_api:figure_check", "POST", _STUDY + "figures/check", WRITERS, _BINDING),
    Row(
        "evidence_api:derivation_check",
        "POST",
        _STUDY + "derivations/check",
        WRITERS,
        {"expression": "a", "figures": {"a": "pilot.usable"}},
    ),
    Row("evidence_api:claims", "GET", _API + "claims", EVERYONE),
    Row("evidence_api:claim", "GET", _API + "claims/{claim}", READERS),
    Row("evidence_api:claim_status", "GET", _API + "claims/{claim}/status", READERS),
    Row("evidence_api:claim_create", "POST", _STUDY + "claims", WRITERS, {**_WORDS, "key": "new"}),
    Row("evidence_api:claim_check", "POST", _STUDY + "claims/check", READERS_SIGNED_IN, {"text": "Rows were read."}),
    Row("evidence_api:claim_revise", "POST", _API + "claims/{claim}/revise", WRITERS, {**_WORDS, **_REASON}),
    Row("evidence_api:claim_lower", "POST", _API + "claims/{claim}/lower", WRITERS, {**_REASON, "status": "observed"}),
    Row("evidence_api:claim_withdraw", "POST", _API + "claims/{claim}/withdraw", WRITERS, _REASON),
    Row(
        "evidence_api:link_create",
        "POST",
        _API + "claims/{claim}/links",
        WRITERS,
        {"figure": "pilot.usable", "relation": "qualifies"},
    ),
    Row("evidence_api:links", "GET", _API + "links", EVERYONE),
    Row("evidence_api:link", "GET", _API + "links/{link}", READERS),
    Row("evidence_api:link_withdraw", "POST", _API + "links/{link}/withdraw", WRITERS, _REASON),
    Row("evidence_api:notes", "GET", _STUDY + "notes", READERS),
    Row("evidence_api:notes", "PUT", _STUDY + "notes", WRITERS, {"document": {}}),
    Row("evidence_api:notes_versions", "GET", _STUDY + "notes/versions", READERS),
    Row("evidence_api:notes_versions", "POST", _STUDY + "notes/versions", WRITERS, {"document": {}}),
    Row("evidence_api:notes_version", "GET", _STUDY + "notes/versions/1", READERS),
    Row("evidence_api:notes_check", "POST", _STUDY + "notes/check", WRITERS, {"document": {}}),
    Row("evidence_api:notes_contracts", "GET", _STUDY + "notes/contracts", READERS),
    Row(
        "evidence_api:notes_contracts",
        "POST",
        _STUDY + "notes/contracts",
        WRITERS,
        {"status": "proposed", "assurance": "draft"},
    ),
    # The public half of a key pair is for whoever checks a bundle.
    Row("evidence_api:signing_key", "GET", _API + "signing-key", EVERYONE),
    # Heads, and so the anchors of a bundle, count the streams of the whole site, the stranger's private study too.
    Row("evidence_api:heads", "GET", _API + "heads", "lffffffo"),
    Row("evidence_api:export_bundle", "GET", _STUDY + "export/bundle", "nnfffffo"),
    Row("evidence_api:export_crate", "GET", _STUDY + "export/crate", "nnfffffo"),
    Row("evidence_api:export_site", "GET", _STUDY + "export/site", _EXPORTERS),
    Row("evidence_api:journal", "GET", _STUDY + "journal", READERS),
    Row("evidence_api:journal", "POST", _STUDY + "journal", WRITERS, {"day": "{day}"}),
    Row("evidence_api:journal_notes", "GET", _STUDY + "journal/notes", READERS),
    Row(
        "evidence_api:journal_notes",
        "POST",
        _STUDY + "journal/notes",
        _REVIEWERS_AND_WRITERS,
        {"day": "{day}", "text": "Read again.", "language": "en"},
    ),
]
