"""Steps 12 and 13: held bytes of sources hashed again, and every excerpt looked for in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from evidence.actions.versions import examine
from evidence.binding.places import Kept, find_in, held, place_of
from evidence.hashing import Held, hash_held
from evidence.models import Excerpt, ExcerptHead, Source, SourceCheck, SourceVersion
from evidence.report import StepLog
from runs.models import Study
from workbench.blobs import BlobStore
from workbench.contracts.errors import ContractError

CHUNK = 500
Hashed = dict[str, Held]


def hash_missing(hashed: Hashed, names: Iterable[str], store: BlobStore) -> Hashed:
    """Hash what has not been hashed yet in this verification; each blob once."""
    wanted = dict.fromkeys(name for name in names if name not in hashed)
    for found in hash_held(store, wanted):
        hashed[found.sha256] = found
    return hashed


def state_of(version: SourceVersion, held: Held | None) -> str:
    """State of a version's bytes as they lie in the store."""
    if not version.held or held is None:
        return Source.CLAIMED
    if held.found is None:
        return Source.MISSING
    return Source.VERIFIED if held.intact else Source.DRIFTED


def versions() -> QuerySet[SourceVersion]:
    """Every version with its source, oldest first."""
    return SourceVersion.objects.select_related("source", "source__study", "study").order_by("pk")


def newest_checks() -> dict[int, SourceCheck]:
    """The newest check of each version that has one."""
    return {row.version_id: row for row in SourceCheck.objects.order_by("pk").iterator(chunk_size=CHUNK)}


def state_now(version: SourceVersion, hashed: Hashed, last: SourceCheck | None) -> str:
    """State of a version: of its bytes, and of the watched file of the newest one."""
    state = state_of(version, hashed.get(version.sha256))
    source = version.source
    if state == Source.VERIFIED and source.origin == Source.WATCHED and source.current_id == version.pk:
        return examine(version, last).state
    return state


def check_sources(log: StepLog, store: BlobStore, hashed: Hashed) -> None:
    """Held bytes hash to their name; the stored state is what was found. Claimed bytes stay claimed."""
    names = SourceVersion.objects.filter(held=True).order_by("pk").values_list("sha256", flat=True)
    hash_missing(hashed, names.iterator(chunk_size=CHUNK), store)
    last = newest_checks()
    for version in versions().iterator(chunk_size=CHUNK):
        log.count()
        with log.reading("evidence_sourceversion", version.uid):
            state = state_now(version, hashed, last.get(version.pk))
            found = hashed.get(version.sha256)
            if state in (Source.DRIFTED, Source.MISSING):
                got = "missing" if found is None or found.found is None else f"drifted: {found.found}"
                if found is not None and found.intact:
                    got = "drifted: the watched file differs"
                log.problem("evidence_sourceversion", version.source.path, "bytes", expected=version.sha256, got=got)
            if found is not None and found.intact and version.held and version.size != found.size:
                log.problem("evidence_sourceversion", version.uid, "size", expected=found.size, got=version.size)
            if version.source.current_id == version.pk:
                log.compare("evidence_source", version.source.path, {"state": state}, version.source)


def excerpts_by_source(study: Study | None = None) -> Iterator[tuple[Excerpt, Kept]]:
    """Excerpts (of one study) with a cache of bytes that is emptied when the source changes."""
    rows = Excerpt.objects.select_related("version__source__current", "version__source__study", "head", "study")
    if study is not None:
        rows = rows.filter(study=study)
    cache: Kept = {}
    source = None
    for excerpt in rows.order_by("version__source", "version", "pk").iterator(chunk_size=CHUNK):
        if excerpt.version.source_id != source:
            cache, source = {}, excerpt.version.source_id
        yield excerpt, cache


def check_excerpts(log: StepLog) -> None:
    """An excerpt stands in the bytes that it was taken from, exactly once; its head says where it stands now."""
    for excerpt, cache in excerpts_by_source():
        log.count()
        with log.reading("evidence_excerpt", excerpt.key):
            place = place_of(excerpt, cache)
            head: Any = getattr(excerpt, "head", None)
            if head is None:
                log.problem("evidence_excerpthead", excerpt.key, "state", expected=place.state, got=None)
            else:
                expected: dict[str, Any] = {"state": place.state}
                if place.state in (ExcerptHead.FOUND, ExcerptHead.MOVED):
                    expected |= {"first_line": place.first_line, "last_line": place.last_line}
                log.compare("evidence_excerpthead", excerpt.key, expected, head)
            _origin(log, excerpt, cache)


def _origin(log: StepLog, excerpt: Excerpt, cache: Kept) -> None:
    """What an excerpt says, in the very version that it was taken from."""
    version = excerpt.version
    if excerpt.kind == Excerpt.TRANSCRIBED:
        if version.held:
            log.problem(
                "evidence_excerpt", excerpt.key, "kind", expected="matched: the bytes are held", got=excerpt.kind
            )
        return
    found = held(version, cache)
    if found is None:
        log.problem("evidence_excerpt", excerpt.key, "text", expected="bytes to search", got="unavailable")
        return
    try:
        text, _span = find_in(excerpt.form, excerpt.selector, found)
    except ContractError as error:
        log.problem("evidence_excerpt", excerpt.key, "text", expected="found exactly once", got=f"orphan: {error}")
        return
    if text != excerpt.text:
        log.problem("evidence_excerpt", excerpt.key, "text", expected=text, got=excerpt.text)
    elif not found.own:
        log.problem("evidence_excerpt", excerpt.key, "text", expected=f"bytes of {version.sha256}", got="moved")
