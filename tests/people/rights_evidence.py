"""The expected rights of the pages of evidence, written by hand; letters and columns as in ``rights``.

Members read. Researchers and admins change (``evidence.write``); reviewers judge (``review.write``), and nobody else,
a site admin neither: whoever also writes does not judge. For a stranger a private study's evidence does not exist.
"""

from __future__ import annotations

from tests.people.rights_row import EVERYONE, READERS, WRITERS, Row

_REVIEWERS = "lnffofff"
_REVIEWERS_AND_WRITERS = "lnfoofoo"  # notes of the journal
_EXPORTERS = "lnfoofoo"  # whoever writes or audits: an export names machines and people
_SOMEBODY_READS = "lnoooooo"
_NOTES = "/studies/{study}/notes/"
_JOURNAL = "/studies/{study}/journal/"
_OWN = {"study": "{study}"}

SOURCES = [
    Row("evidence:sources", "GET", "/sources/", EVERYONE),
    # The form offers the studies that the caller writes in, none to a stranger; the study comes with the POST.
    Row("evidence:source_new", "GET", "/sources/new/", "looooooo"),
    Row("evidence:source_new", "POST", "/sources/new/", WRITERS, {**_OWN, "path": "new.md", "sha256": "cd" * 32}),
    Row("evidence:source_from_git", "POST", "/sources/new/git/", WRITERS, _OWN),
    Row("evidence:source_watch", "POST", "/sources/new/folder/", WRITERS, _OWN),
    Row("evidence:folder_scan", "POST", "/sources/folders/{folder}/scan/", WRITERS),
    Row("evidence:folder_stop", "POST", "/sources/folders/{folder}/stop/", WRITERS),
    Row("evidence:source", "GET", "/sources/{source}/", READERS),
    Row("evidence:source_quote", "POST", "/sources/{source}/quote/", WRITERS),
    Row("evidence:source_check", "POST", "/sources/{source}/check/", WRITERS),
    Row("evidence:source_take_in", "POST", "/sources/{source}/take-in/", WRITERS),
    Row("evidence:source_bytes", "GET", "/sources/{source}/bytes/1/", READERS),
    Row("evidence:source_difference", "GET", "/sources/{source}/diff/1/2/", READERS),
]

STALE = [
    Row("evidence:stale", "GET", "/stale/", EVERYONE),
    Row("evidence:stale", "GET", "/stale/?study={study}", READERS),
    Row("evidence:stale_confirm", "POST", "/stale/confirm/", WRITERS, {"mark": "{mark}", "note": "read again, holds"}),
    Row("evidence:stale_record", "POST", "/stale/record/", WRITERS, _OWN),
    Row("evidence:stale_graph", "GET", "/stale/graph/source/{source}/", READERS),
    Row("evidence:stale_graph", "GET", "/stale/graph/figure/{figure}/", READERS),
    Row("evidence:stale_graph", "GET", "/stale/graph/claim/{claim}/", READERS),
    Row("evidence:stale_graph", "GET", "/stale/graph/excerpt/{excerpt}/", READERS),
    Row("evidence:stale_graph", "GET", "/stale/graph/plan/{version_uid}/", READERS),
]

FIGURES = [
    Row("evidence:figures", "GET", "/figures/", EVERYONE),
    Row("evidence:figures", "GET", "/figures/?study={study}", READERS),
    Row("evidence:figure_new", "GET", "/figures/new/?study={study}", WRITERS),
    Row("evidence:figure_new", "POST", "/figures/new/", WRITERS, _OWN),
    Row("evidence:figure_search", "GET", "/figures/search.json?study={study}&q=pilot", READERS),
    Row("evidence:figure_check", "GET", "/figures/check.json?study={study}&key=a", "nnfoffoo"),
    Row("evidence:figure", "GET", "/figures/{figure}/", READERS),
    Row("evidence:figure_card", "GET", "/figures/{figure}/card/", READERS),
    Row("evidence:figure_recompute", "POST", "/figures/{figure}/recompute/", WRITERS),
]

CLAIMS = [
    Row("evidence:claims", "GET", "/claims/", EVERYONE),
    Row("evidence:claims", "GET", "/claims/?study={study}", READERS),
    Row("evidence:claim_new", "GET", "/claims/new/?study={study}", WRITERS),
    Row("evidence:claim_new", "POST", "/claims/new/", WRITERS, _OWN),
    Row("evidence:claim", "GET", "/claims/{claim}/", READERS),
    Row("evidence:claim_revise", "GET", "/claims/{claim}/revise/", WRITERS),
    Row("evidence:claim_revise", "POST", "/claims/{claim}/revise/", WRITERS),
    Row("evidence:claim_lower", "POST", "/claims/{claim}/lower/", WRITERS),
    Row("evidence:claim_withdraw", "POST", "/claims/{claim}/withdraw/", WRITERS, {"reason": "it was not so"}),
    Row("evidence:claim_link", "POST", "/claims/{claim}/links/", WRITERS),
    Row("evidence:link_withdraw", "POST", "/claims/links/{link}/withdraw/", WRITERS, {"reason": "it was not so"}),
    # Looks at a sentence and writes nothing; reads the keys of the study.
    Row("evidence:claim_check", "POST", "/claims/check.json", _SOMEBODY_READS, {**_OWN, "text": "E"}, json=True),
]

# What ``rights_reviews`` lists of one item, for the items of other kinds.
ITEMS = [
    Row("evidence:reviews", "GET", "/reviews/?study={study}", READERS),
    Row("evidence:review_take", "POST", "/reviews/take/", "looooooo"),  # of no study: the first where one reviews
    Row("evidence:review_item", "GET", "/reviews/{answer_item}/", READERS),
    Row("evidence:review_item", "GET", "/reviews/source:{source}/", READERS),
    Row("evidence:review_item", "GET", "/reviews/figure:{figure}/", READERS),
    Row("evidence:review_item", "GET", "/reviews/claim:{claim}/", READERS),
    Row("evidence:review_reserve", "POST", "/reviews/source:{source}/reserve/", _REVIEWERS),
]

NOTES = [
    Row("evidence:notes", "GET", _NOTES, READERS),
    Row("evidence:notes_en", "GET", _NOTES + "en/", READERS),
    Row("evidence:notes_zh", "GET", _NOTES + "zh/", READERS),
    Row("evidence:notes_versions", "GET", _NOTES + "versions/", READERS),
    Row("evidence:notes_edit", "GET", _NOTES + "edit/", WRITERS),
    Row("evidence:notes_edit", "POST", _NOTES + "edit/", WRITERS),
    Row("evidence:notes_check", "POST", _NOTES + "check/", WRITERS, {"text": "E", "language": "en"}),
    Row("evidence:notes_contract", "POST", _NOTES + "contract/", WRITERS),
]

OUTWARD = [
    Row("evidence:exports", "GET", "/studies/{study}/export/", READERS),
    Row("evidence:export", "POST", "/studies/{study}/export/site/", _EXPORTERS),
    Row("evidence:export", "POST", "/studies/{study}/export/bundle/", "lnfffffo"),  # its anchors count every stream
    Row("evidence:journal", "GET", _JOURNAL, READERS),
    Row("evidence:journal_day", "GET", _JOURNAL + "{day}/", READERS),
    Row("evidence:journal_draft", "POST", _JOURNAL + "draft/", WRITERS, {"day": "{day}"}),
    Row(
        "evidence:journal_note",
        "POST",
        _JOURNAL + "note/",
        _REVIEWERS_AND_WRITERS,
        {"day": "{day}", "text": "Read again.", "language": "en"},
    ),
]

EVIDENCE = SOURCES + STALE + FIGURES + CLAIMS + ITEMS + NOTES + OUTWARD
