"""Ten thousand claims, a hundred thousand links, five thousand sources: pages in time, with few queries."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evidence.actions.stale import mark_changed, open_marks
from evidence.models import Claim, ClaimVersion, Excerpt, ExcerptHead, Link, Source, SourceVersion
from evidence.propagation import dependants
from tests.evidence_stale.rows import AT, Web
from workbench.contracts.canonical import derive_uid

SOURCES, CLAIMS, LINKS, HOT = 5_000, 10_000, 100_000, 400


def uid(kind: str, number: int) -> Any:
    return derive_uid(None, f"large:{kind}:{number}")


def grow(web: Web) -> None:
    """Rows without receipts, for reading alone. Source 0 carries ``HOT`` claims, the others about twenty each."""
    common = {"study": web.study, "actor": web.by, "at": AT}
    Source.objects.bulk_create(
        Source(uid=uid("source", n), study=web.study, path=f"s/{n}.md", form="text", origin="upload", created_at=AT)
        for n in range(SOURCES)
    )
    sources = list(Source.objects.filter(path__startswith="s/").order_by("pk"))
    SourceVersion.objects.bulk_create(
        SourceVersion(
            uid=uid("version", n), source=source, number=1, sha256=f"{n:064x}", size=1, media_type="text/plain",
            held=False, captured_at=AT, **common,
        )
        for n, source in enumerate(sources)
    )  # fmt: skip
    versions = list(SourceVersion.objects.filter(source__path__startswith="s/").order_by("pk"))
    Excerpt.objects.bulk_create(
        Excerpt(
            uid=uid("excerpt", n), version=version, key=f"x{n}", form="quote", selector={"exact": "x"},
            kind="transcribed", text="x", **common,
        )
        for n, version in enumerate(versions)
    )  # fmt: skip
    excerpts = list(Excerpt.objects.filter(key__regex="^x[0-9]+$").order_by("pk"))
    ExcerptHead.objects.bulk_create(ExcerptHead(excerpt=row, state="transcribed", checked_at=AT) for row in excerpts)
    Claim.objects.bulk_create(
        Claim(
            uid=uid("claim", n), study=web.study, key=f"c{n}", author=web.by, status="partly", cap="partly",
            created_at=AT,
        )
        for n in range(CLAIMS)
    )  # fmt: skip
    claims = list(Claim.objects.filter(key__regex="^c[0-9]+$").order_by("pk"))
    ClaimVersion.objects.bulk_create(
        ClaimVersion(uid=uid("words", n), claim=claim, number=1, text_en="Words.", kind="description", **common)
        for n, claim in enumerate(claims)
    )
    words = dict(ClaimVersion.objects.filter(claim__in=claims[:1]).values_list("claim", "pk"))
    first = ClaimVersion.objects.get(pk=words[claims[0].pk])
    Link.objects.bulk_create(
        (
            Link(
                uid=uid("link", n), claim=claims[n % CLAIMS], claim_version=first, relation="supports",
                excerpt=excerpts[0] if n < HOT else excerpts[1 + n % (SOURCES - 1)], **common,
            )
            for n in range(LINKS)
        ),
        batch_size=2000,
    )  # fmt: skip


@pytest.mark.slow
def test_pages_stay_quick(web: Web) -> None:
    """Processor time of the server for one page is under 300 ms; queries do not depend on what is stored."""
    grow(web)
    hot = Source.objects.get(path="s/0.md")
    started = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        found = dependants("source", hot.uid)
    walked = time.process_time() - started
    assert len([path for path in found if path.kind == "claim"]) == HOT
    assert len(queries) < 20
    started = time.process_time()
    mark_changed("source", hot.uid, "superseded", by=web.by, at=AT + timedelta(minutes=1))
    marking = time.process_time() - started
    assert open_marks(web.study).count() == HOT
    times = {}
    for address in ("/stale/", f"/stale/graph/source/{hot.uid}/", "/api/v1/stale-marks"):
        client = Client()
        client.get(address)
        started = time.process_time()
        assert client.get(address).status_code == 200
        times[address] = time.process_time() - started
    print({"walk": walked, "marking": marking, **times})
    assert walked < 0.3
    assert max(times.values()) < 0.3
