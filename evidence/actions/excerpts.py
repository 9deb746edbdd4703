"""Takes excerpts from sources: exact or refused, and checked again whenever bytes change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.binding.places import (
    MOST_MATCHED,
    MOST_TRANSCRIBED,
    Held,
    around_span,
    around_transcribed,
    check_edges,
    check_selector,
    find_in,
    place_of,
)
from evidence.binding.tokens import KEY
from evidence.models import Excerpt, ExcerptHead, SourceVersion
from runs.errors import DomainError
from runs.models import Actor, Study
from workbench.contracts.errors import ContractError


def check_key(name: str, key: str) -> str:
    """A key as texts write it. Raises ``DomainError``."""
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise DomainError(
            f"{name}: got {str(key)[:120]!r}, expected 1 to 100 letters, digits, dots, dashes and underscores"
        )
    return key


def _plain(name: str, text: str, most: int) -> str:
    if not isinstance(text, str) or len(text) > most or "\x00" in text:
        got = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise DomainError(f"{name}: got {got}, expected text of at most {most} without U+0000")
    return text


def _matched(version: SourceVersion, form: str, selector: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(text, selector with its line) of an excerpt in held bytes."""
    from evidence.actions.sources import BytesUnavailable, read_version

    try:
        data = read_version(version)
    except BytesUnavailable as error:
        raise DomainError(
            f"version: got {version}, whose bytes are not here now ({error}); expected bytes to search"
        ) from error
    place = Held(data, True, version.source.form)
    try:
        text, span = find_in(form, selector, place)
    except ContractError as error:
        raise DomainError(f"{version.source.path}: {error}") from error
    if span is not None:
        check_edges(text, around_span(place.text, span))
    if not text or len(text) > MOST_MATCHED:
        raise DomainError(f"excerpt: got {len(text)} characters, expected 1 to {MOST_MATCHED}; choose a smaller place")
    return text, (selector if span is None else {**selector, "line": span.first_line})


def _transcribed(form: str, selector: Any, text: str) -> dict[str, Any]:
    """The selector of an excerpt whose source's bytes are not held; its text is the quotation itself."""
    if not text.strip() or len(text) > MOST_TRANSCRIBED:
        raise DomainError(
            f"text: got {len(text)} characters, expected 1 to {MOST_TRANSCRIBED}: the bytes of this source are not "
            "held, so the quotation has to be transcribed"
        )
    if form == Excerpt.QUOTE:
        given = {**selector, "exact": selector.get("exact") or text} if isinstance(selector, dict) else selector
        selector = check_selector(form, given)
        if selector["exact"] != text:
            raise DomainError("selector.exact: got another text than the transcription, expected the same")
        check_edges(text, around_transcribed(selector))
        return selector
    return check_selector(form, selector)


def add_excerpt(
    study: Study,
    version: SourceVersion,
    key: str,
    form: str,
    selector: dict[str, Any],
    *,
    by: Actor,
    at: datetime,
    text: str = "",
    language: str = "",
    note: str = "",
) -> Excerpt:
    """Take an excerpt. In held bytes it is found exactly once, or refused; from claimed ones ``text`` transcribes it.

    The same content under the same key is the same excerpt; another under a taken key is refused. Raises
    ``DomainError`` naming the field, for a place that is none or not the only one as well.
    """
    check_key("key", key)
    if version.source.study_id != study.pk:
        raise DomainError(f"version: got a source of another study, expected one of {study.slug}")
    language, note = _plain("language", language, 16), _plain("note", note, 4000)
    text = _plain("text", text, MOST_MATCHED)
    try:
        if version.held:
            found, selector = _matched(version, form, check_selector(form, selector))
            if text and text != found:
                raise DomainError(f"text: got {text[:80]!r}, expected what stands there: {found[:80]!r}")
            kind, text = Excerpt.MATCHED, found
        else:
            kind, selector = Excerpt.TRANSCRIBED, _transcribed(form, selector, text)
    except ContractError as error:
        raise DomainError(str(error)) from error
    with transaction.atomic():
        lock_evidence(study)
        known = Excerpt.objects.filter(study=study, key=key).first()
        if known is not None:
            same = (known.version_id, known.form, known.selector, known.text) == (version.pk, form, selector, text)
            if same:
                return known
            raise DomainError(f"key: got {key!r}, which names another excerpt, expected a new one")
        row = append(
            Excerpt(
                uid=record_uid(study.uid, Excerpt.KIND, key), study=study, actor=by, at=at, version=version, key=key,
                form=form, selector=selector, kind=kind, text=text, language=language, note=note,
            )
        )  # fmt: skip
        check_excerpt(row, at=at)
    return row


def check_excerpt(excerpt: Excerpt, *, at: datetime) -> ExcerptHead:
    """Search an excerpt again and keep what was found; its head is a projection and no record."""
    place = place_of(excerpt)
    head, _new = ExcerptHead.objects.update_or_create(
        excerpt=excerpt,
        defaults={
            "state": place.state, "first_line": place.first_line, "last_line": place.last_line, "checked_at": at,
        },
    )  # fmt: skip
    return head
