"""The list of sources."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evidence.actions.sources import add_source
from evidence.models import Excerpt, Source, SourceVersion
from evidence.presenters.sources import choices, chosen_from, visible_sources
from runs.access import Principal
from runs.models import Study, User
from tests.evidence_sources.conftest import AT
from workbench.contracts.canonical import derive_uid


def text_of(response: Any) -> str:
    """The page's markup."""
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.fixture
def three(study: Study, acting: dict[str, Any]) -> None:
    """One verified, one claimed, one of another origin."""
    add_source(study, "notes/a.md", b"one", origin="upload", reference="R1", title_en="First <b>notes</b>", **acting)
    add_source(study, "notes/b.tex", None, sha256="ab" * 32, origin="imported", **acting)
    add_source(study, "receipts/x.json", b"{}", origin="closure", **acting)


def test_rows_say_their_state_in_words(signed_in: Client, three: None) -> None:
    """Counts in the heading; titles escaped; hash with a button that copies."""
    page = text_of(signed_in.get("/sources/"))
    assert "3 sources" in page and "2 verified" in page and "1 claimed" in page
    assert "First &lt;b&gt;notes&lt;/b&gt;" in page and "<b>notes" not in page
    assert f'data-copy="{"ab" * 32}"' in page and "our own closure" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=claimed", ["notes/b.tex"]),
        ("origin=closure", ["receipts/x.json"]),
        ("q=notes", ["notes/a.md", "notes/b.tex"]),
        ("q=first", ["notes/a.md"]),
        ("q=R1", ["notes/a.md"]),
        ("q=abababab", ["notes/b.tex"]),
        ("q=notes+tex", ["notes/b.tex"]),
        ("study=edit-credit&state=verified", ["notes/a.md", "receipts/x.json"]),
        ("state=nonsense", ["notes/a.md", "notes/b.tex", "receipts/x.json"]),
        ("q=nowhere", []),
        ("study=other", []),
        ("q=%00", ["notes/a.md", "notes/b.tex", "receipts/x.json"]),
    ],
)
def test_filters_and_search(signed_in: Client, three: None, query: str, found: list[str]) -> None:
    """Each narrows; a value that does not exist narrows nothing."""
    page = text_of(signed_in.get(f"/sources/?{query}"))
    shown = sorted(path for path in ("notes/a.md", "notes/b.tex", "receipts/x.json") if f">{path}<" in page)
    assert shown == found


def test_hidden_studies_stay_hidden(client: Client, three: None) -> None:
    """Nobody signed in sees nothing of a private study, its counts included."""
    page = text_of(client.get("/sources/"))
    assert "0 sources" in page and "notes/" not in page and "New source" not in page


def test_an_empty_list_says_what_would_fill_it(signed_in: Client) -> None:
    """Nothing yet: how sources come about."""
    assert "No source yet" in text_of(signed_in.get("/sources/"))


def test_five_thousand_sources_need_no_more_queries_than_fifty(
    signed_in: Client, study: Study, acting: dict[str, Any]
) -> None:
    """The same queries for a page of the list however many sources and quotations there are."""
    first = add_source(study, "a.md", b"one", origin="upload", **acting)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            text_of(signed_in.get("/sources/?q=a"))
        return len(caught)

    few = queries()
    uids = [derive_uid(study.uid, f"bulk:{n}") for n in range(5000)]
    Source.objects.bulk_create(
        Source(uid=uid, study=study, path=f"bulk/{n}.md", form="text", origin="upload", state="verified", created_at=AT)
        for n, uid in enumerate(uids)
    )  # fmt: skip
    made = {source.path: source for source in Source.objects.filter(path__startswith="bulk/")}
    SourceVersion.objects.bulk_create(
        [
            SourceVersion(
                uid=derive_uid(source.uid, "v"), study=study, actor=first.actor, at=AT, source=source, number=1,
                sha256=first.sha256, size=3, media_type="text/plain", held=True, captured_at=AT,
            )
            for source in made.values()
        ]
    )  # fmt: skip
    versions = {version.source_id: version for version in SourceVersion.objects.exclude(pk=first.pk)}
    for source in made.values():
        source.current = versions[source.pk]
    Source.objects.bulk_update(made.values(), ["current"], batch_size=500)
    Excerpt.objects.bulk_create(
        [
            Excerpt(
                uid=derive_uid(version.uid, "e"), study=study, actor=first.actor, at=AT, version=version,
                key=f"k{version.pk}", form="quote", selector={"exact": "one"}, kind="matched", text="one",
            )
            for version in versions.values()
        ]
    )  # fmt: skip
    assert queries() == few <= 30


def test_filters_count_beside_one_another(three: None, person: User) -> None:
    """With state claimed chosen, states count every state, origins only the claimed ones."""
    rows = visible_sources(Principal(person))
    found = choices(rows, chosen_from({"state": "claimed"}))
    assert [(item.value, item.count, item.chosen) for item in found["state"]] == [
        ("verified", 2, False), ("claimed", 1, True),
    ]  # fmt: skip
    assert [(item.value, item.count) for item in found["origin"]] == [("imported", 1)]
    assert [(item.value, item.count) for item in found["study"]] == [("edit-credit", 1)]
