"""5,000 sources, 10,000 excerpts and figures, 10,000 claims with 100,000 links and 20,000 reviews, in bulk SQL.

Every tenth source holds bytes (one text, written once); the rest are claimed. Rows carry no receipts: they are
there to be read. Claims are dealt out over the studies of the world, every fourth to the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models

from evidence import models as e
from evidence.waiting import rebuild
from runs.actions.actors import service_actor
from runs.models import Study
from runs.storage import blob_store
from workbench.contracts.canonical import derive_uid
from workbench.db import drop_triggers, install_triggers

AT = datetime(2026, 11, 1, tzinfo=UTC)
SOURCES, CLAIMS, LINKS = 5_000, 10_000, 10  # links a claim
# What changes something, writes a file of a whole study, or shows a mark, of which this world has none.
UNMEASURED_EVIDENCE = frozenset({
    "evidence:claim_check", "evidence:claim_link", "evidence:claim_lower", "evidence:claim_withdraw", "evidence:export",
    "evidence:figure_check", "evidence:figure_recompute", "evidence:folder_scan", "evidence:folder_stop",
    "evidence:journal_draft", "evidence:journal_note", "evidence:link_withdraw", "evidence:notes_check",
    "evidence:notes_contract", "evidence:review_answer", "evidence:review_record", "evidence:review_release",
    "evidence:review_reserve", "evidence:review_take", "evidence:source_check", "evidence:source_from_git",
    "evidence:source_quote",
    "evidence:source_take_in", "evidence:source_watch", "evidence:stale_confirm", "evidence:stale_record",
    "evidence_api:claim_check", "evidence_api:claim_create", "evidence_api:claim_lower", "evidence_api:claim_review",
    "evidence_api:claim_revise", "evidence_api:claim_withdraw", "evidence_api:derivation_check",
    "evidence_api:excerpt_create", "evidence_api:export_bundle", "evidence_api:export_crate",
    "evidence_api:export_site", "evidence_api:figure_bind", "evidence_api:figure_check",
    "evidence_api:figure_recompute", "evidence_api:journal_notes", "evidence_api:link_create",
    "evidence_api:link_withdraw", "evidence_api:notes_check", "evidence_api:notes_contracts",
    "evidence_api:review_answer", "evidence_api:review_release", "evidence_api:review_reserve",
    "evidence_api:review_take", "evidence_api:source_check", "evidence_api:source_create", "evidence_api:stale_mark",
    "evidence_api:stale_settle", "evidence:journal_day", "evidence_api:notes", "evidence_api:notes_version",
})  # fmt: skip
TEXT = "".join(f"line {n}: of {n + 40} cases {n % 41} were counted\n" for n in range(400))


def uid(kind: str, number: int) -> Any:
    """Uid number ``number`` of a kind."""
    return derive_uid(None, f"load:{kind}:{number}")


def _insert(model: type[models.Model], rows: Iterable[models.Model]) -> list[Any]:
    before = model._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0
    model._default_manager.bulk_create(rows, batch_size=1_000)
    return list(model._default_manager.filter(pk__gt=before).order_by("pk"))


def add_evidence(sources: int = SOURCES, claims: int = CLAIMS) -> int:
    """Fill once; the number of links that were written. 0: they are there already."""
    if e.Link.objects.exists():
        return 0
    drop_triggers(connection)
    try:
        return _fill(sources, claims)
    finally:
        install_triggers(connection)


def _study_of(studies: list[Study], number: int) -> Study:
    return studies[0] if number % 4 == 0 else studies[number % len(studies)]


def _fill(sources: int, claims: int) -> int:
    studies = list(Study.objects.filter(slug__startswith="study-").order_by("pk"))
    by, held = service_actor("load"), blob_store().put(TEXT.encode())
    owners = [_study_of(studies, n) for n in range(claims)]

    def common(study: Study, n: int) -> dict[str, Any]:
        return {"study": study, "actor": by, "at": AT + timedelta(seconds=n)}

    heads = _insert(
        e.Source,
        (
            e.Source(
                uid=uid("source", n), study=owners[n], path=f"results/{n:05}.txt", form="text", origin="upload",
                state="verified" if n % 10 == 0 else "claimed", created_at=AT,
            )
            for n in range(sources)
        ),
    )  # fmt: skip
    versions = _insert(
        e.SourceVersion,
        (
            e.SourceVersion(
                uid=uid("version", n), source=head, number=1, sha256=held if n % 10 == 0 else f"{n:064x}",
                size=len(TEXT), media_type="text/plain", held=n % 10 == 0, captured_at=AT, **common(head.study, n),
            )
            for n, head in enumerate(heads)
        ),
    )  # fmt: skip
    for head, version in zip(heads, versions, strict=True):
        head.current = version
    e.Source.objects.bulk_update(heads, ["current"], batch_size=500)
    excerpts, figures = _figures(owners, versions, common)
    return _claims(owners, excerpts, figures, common, by)


def _figures(owners: list[Study], versions: list[Any], common: Any) -> tuple[list[Any], list[Any]]:
    count, line = len(owners), TEXT.splitlines()
    of = [versions[n % len(versions)] for n in range(count)]
    excerpts = _insert(
        e.Excerpt,
        (
            e.Excerpt(
                uid=uid("excerpt", n), version=of[n], key=f"x{n}", form="quote",
                selector={"exact": line[n % 400], "prefix": "", "suffix": "", "line": n % 400 + 1},
                kind="matched" if of[n].held else "transcribed", text=line[n % 400], **common(of[n].study, n),
            )
            for n in range(count)
        ),
    )  # fmt: skip
    e.ExcerptHead.objects.bulk_create(
        (
            e.ExcerptHead(
                excerpt=row, state="found" if row.kind == "matched" else "transcribed", first_line=n % 400 + 1,
                last_line=n % 400 + 1, checked_at=AT,
            )
            for n, row in enumerate(excerpts)
        ),
        batch_size=1_000,
    )  # fmt: skip
    heads = _insert(
        e.Figure,
        (
            e.Figure(uid=uid("figure", n), study=row.study, key=f"count.{n}", state="bound", checked_at=AT)
            for n, row in enumerate(excerpts)
        ),
    )
    bound = _insert(
        e.FigureVersion,
        (
            e.FigureVersion(
                uid=uid("bound", n), figure=head, number=1, title_en=f"cases counted in line {n}",
                title_zh=f"第 {n} 行的计数", kind="mechanism", origin="native", excerpt=excerpts[n],
                source_version=of[n], value=str(n % 400 + 40),
                binding={"type": "excerpt", "excerpt": f"x{n}", "number": str(n % 400 + 40), "occurrence": 1},
                **common(head.study, n),
            )
            for n, head in enumerate(heads)
        ),
    )  # fmt: skip
    for head, version in zip(heads, bound, strict=True):
        head.current = version
    e.Figure.objects.bulk_update(heads, ["current"], batch_size=500)
    return excerpts, heads


def _claims(owners: list[Study], excerpts: list[Any], figures: list[Any], common: Any, by: Any) -> int:
    own: dict[int, list[int]] = {}
    for n, figure in enumerate(figures):
        own.setdefault(figure.study_id, []).append(n)
    heads = _insert(
        e.Claim,
        (
            e.Claim(
                uid=uid("claim", n), study=study, key=f"c{n}", author=by, status="partly", cap="partly", created_at=AT,
                provisional=n % 7 == 0, disputed=n % 50 == 0, stale=n % 90 == 0,
            )
            for n, study in enumerate(owners)
        ),
    )  # fmt: skip
    used = [figures[own[study.pk][n % len(own[study.pk])]] for n, study in enumerate(owners)]
    words = _insert(
        e.ClaimVersion,
        (
            e.ClaimVersion(
                uid=uid("words", n), claim=head, number=1, kind="mechanism",
                text_en=f"In [[{used[n].key}]] cases the count was read.",
                text_zh=f"读到计数的情形有 [[{used[n].key}]] 个。",
                **common(head.study, n),
            )
            for n, head in enumerate(heads)
        ),
    )  # fmt: skip
    for head, version in zip(heads, words, strict=True):
        head.current = version
    e.Claim.objects.bulk_update(heads, ["current"], batch_size=500)
    e.ClaimFigure.objects.bulk_create(
        (
            e.ClaimFigure(
                version=version, language=language, ordinal=0, figure=used[n], figure_version_id=used[n].current_id
            )
            for n, version in enumerate(words)
            for language in ("en", "zh")
        ),
        batch_size=1_000,
    )
    links = _links(owners, heads, words, excerpts, own, common)
    e.Review.objects.bulk_create(
        (
            e.Review(
                uid=uid("review", n), claim=link.claim, claim_version=link.claim_version, link=link,
                verdict=("accept", "accept", "dispute")[n % 3], reason="The sentence says what stands there.",
                looked_at=["quotation"], independence="independent", **common(link.study, n),
            )
            for n, link in enumerate(links[:: LINKS // 2])
        ),
        batch_size=1_000,
    )  # fmt: skip
    for study in {head.study_id: head.study for head in heads}.values():
        rebuild(study)
    return len(links)


def _links(
    owners: list[Study], heads: list[Any], words: list[Any], excerpts: list[Any], own: dict[int, list[int]], common: Any
) -> list[Any]:
    def of(n: int) -> Any:
        places = own[owners[n // LINKS].pk]
        return excerpts[places[(n * 7) % len(places)]]

    return _insert(
        e.Link,
        (
            e.Link(
                uid=uid("link", n), claim=heads[n // LINKS], claim_version=words[n // LINKS], excerpt=of(n),
                relation=("supports", "supports", "bounds", "background")[n % 4],
                reach_en="One count of one file; nothing about others.", **common(owners[n // LINKS], n),
            )
            for n in range(len(heads) * LINKS)
        ),
    )  # fmt: skip


def evidence_addresses() -> dict[str, str]:
    """Name -> address of every page and list of the evidence. Needs the rows above."""
    source = e.Source.objects.filter(state="verified", study__slug="study-0").order_by("pk")[1]
    claim = e.Claim.objects.filter(study=source.study).order_by("pk")[3]
    link = e.Waiting.objects.filter(kind="link", study=source.study).order_by("pk")[0].link
    figure = e.Figure.objects.filter(study=source.study).order_by("pk")[2]
    excerpt = e.Excerpt.objects.filter(version__source=source).order_by("pk")[0]
    review = e.Review.objects.filter(study=source.study).order_by("pk")[0]
    slug = source.study.slug
    pages = [
        "/claims/", "/claims/?page=100", "/claims/?q=count", "/claims/?status=partly", f"/claims/?study={slug}",
        f"/claims/{claim.uid}/", f"/claims/{claim.uid}/revise/", f"/claims/new/?study={slug}", "/sources/",
        "/sources/?page=40", "/sources/?q=results/04", "/sources/?state=verified", f"/sources/{source.uid}/",
        "/sources/new/", f"/sources/{source.uid}/diff/1/1/", "/figures/", "/figures/?page=100", "/figures/?q=count.99",
        f"/figures/{figure.uid}/", f"/figures/{figure.uid}/card/", f"/figures/new/?study={slug}",
        f"/figures/search.json?study={slug}&q=count.1", "/reviews/", f"/reviews/link:{link.uid}/", "/stale/",
        f"/stale/graph/source/{source.uid}/", f"/studies/{slug}/export/", f"/studies/{slug}/journal/",
        f"/studies/{slug}/notes/", f"/studies/{slug}/notes/en/",
        f"/studies/{slug}/notes/zh/", f"/studies/{slug}/notes/edit/", f"/studies/{slug}/notes/versions/",
        f"/sources/{source.uid}/bytes/1/", "/search/?q=count",
    ]  # fmt: skip
    names = [
        "claims?limit=500", f"claims?study={slug}&limit=500", f"claims/{claim.uid}", f"claims/{claim.uid}/status",
        "links?limit=500", f"links/{link.uid}", "sources?limit=500", f"sources/{source.uid}", "figures?limit=500",
        f"figures/{figure.uid}", "excerpts?limit=500", f"excerpts/{excerpt.uid}", "reviews?limit=500",
        "reviews/queue", "stale-marks?limit=500", f"dependants?kind=source&uid={source.uid}", f"reviews/{review.uid}",
        f"sources/{source.uid}/versions", f"sources/{source.uid}/versions/1/bytes",
        f"sources/{source.uid}/difference?before=1&after=1", f"studies/{slug}/notes/versions",
        f"studies/{slug}/journal", "heads", "signing-key",
    ]  # fmt: skip
    return {f"evidence: {item}": item for item in pages} | {
        f"evidence api: {item}": f"/api/v1/{item}" for item in names
    }
