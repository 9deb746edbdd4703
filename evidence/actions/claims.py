"""Claims: written, revised, lowered, withdrawn. Versions only grow; the status is derived, never typed.

Callers check the right ``evidence.write`` in the study first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from evidence import wording
from evidence.actions.record import append, lock_evidence, record_uid
from evidence.actions.stale import rebind
from evidence.binding.tokens import FIGURE, Trouble, check_text, figure_keys, parse_text
from evidence.models import Claim, ClaimFigure, ClaimVersion, Figure, FigureVersion
from evidence.registered import carries_endpoint, compared, facts_of, promises_endpoint
from evidence.status import derive, rank, refresh_claim
from runs.errors import DomainError, StaleTransition
from runs.models import Actor, PlanVersion, Study

LANGUAGES = ("en", "zh")
KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
TEXT_MOST, REASON_LEAST, REASON_MOST = 4000, 3, 4000
PROSE = ("text", "scope", "denominator", "missing")  # each in both languages, in the grammar of texts
WORDED = ("text",)  # those that assert, and whose words are held against the kind
BY_CODE = {"plan": "plan_version", "endpoint": "endpoint", "interval": "kind"}  # troubles that no text has
# Kinds whose claim is an effect, and figure kinds that cannot carry one.
EFFECTS = (*wording.RULED, wording.NO_REGRESSION)
NO_CARRIERS = ("mechanism", "parameter_change")
SETTABLE = (Claim.REFUTED, Claim.PENDING, Claim.NOT_ESTABLISHED, Claim.PARTLY, Claim.SUPPORTED)


@dataclass(frozen=True)
class Fault:
    """What one field of a claim may not hold: ``got`` of it, ``message`` says what to do, at code points of a text."""

    field: str
    code: str
    got: str
    message: str
    start: int = 0
    stop: int = 0

    @property
    def told(self) -> str:
        """In one line, in the form that every refusal has."""
        if self.message.startswith("got "):
            return f"{self.field}: {self.message}"
        return f"{self.field}: got {self.got[:120] or 'nothing'!r}, {self.message}"


class ClaimRefused(DomainError):
    """Everything that is wrong with a claim, field by field. Nothing was changed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(item.told for item in faults))


class ClaimMoved(StaleTransition):
    """Somebody else wrote a version since the one that the writer saw. Nothing was changed.

    ``number``: of the version that stands; ``changed``: field -> what it says by now, of those that changed since.
    """

    def __init__(self, seen: int, now: ClaimVersion, changed: Mapping[str, str]) -> None:
        self.number, self.changed = now.number, dict(changed)
        told = "; ".join(f"{name} is now “{text[:200]}”" for name, text in changed.items()) or "its standing changed"
        super().__init__(
            f"base: got version {seen}, expected version {now.number}, which {now.actor.name} wrote since: {told}"
        )


def _must_have_seen(before: ClaimVersion, base: int | None) -> None:
    """Raise ``ClaimMoved`` where the writer saw another version than the one that stands."""
    if base is None or base == before.number:
        return
    names = [*(f"{name}_{language}" for name in PROSE for language in LANGUAGES), "kind", "endpoint", "held_to"]
    seen = ClaimVersion.objects.select_related("plan_version").filter(claim=before.claim_id, number=base).first()
    if seen is None:
        raise DomainError(f"base: got {base}, expected the number of a version, 1 to {before.number}")
    changed = {name: getattr(before, name) for name in names if getattr(before, name) != getattr(seen, name)}
    if seen.plan_version_id != before.plan_version_id:
        changed["plan_version"] = str(before.plan_version.uid) if before.plan_version is not None else ""
    raise ClaimMoved(base, before, changed)


def _faults(field: str, troubles: Iterable[Trouble]) -> list[Fault]:
    return [
        Fault(
            BY_CODE.get(item.code, field),
            item.code,
            item.text,
            item.message.removeprefix("text: "),
            item.start,
            item.stop,
        )
        for item in troubles
    ]


def check_claim(
    study: Study,
    words: Mapping[str, str],
    kind: str,
    plan_version: PlanVersion | None = None,
    endpoint: str = "",
) -> list[Fault]:
    """Everything that is wrong with the words of a claim. Reads, changes nothing.

    ``words``: text_en … missing_zh; what is absent is empty.
    """
    if kind not in ClaimVersion.KINDS:
        return [Fault("kind", "kind", kind, _("expected one of %s") % ", ".join(ClaimVersion.KINDS))]
    found = _of_words(study, words)
    if not any(words.get(f"text_{language}", "").strip() for language in LANGUAGES):
        found.append(Fault("text_en", "empty", "", _("expected a sentence in English or Chinese")))
    if plan_version is not None and plan_version.plan.study_id != study.pk:
        found.append(Fault("plan_version", "plan", str(plan_version.uid), _("expected a frozen plan of this study")))
        plan_version = None
    if endpoint and plan_version is None:
        found.append(Fault("endpoint", "endpoint", endpoint, _("expected a frozen plan that registered it")))
    shown = _current_figures(study, (words.get(f"text_{language}", "") for language in LANGUAGES)).values()
    facts = facts_of(
        plan_version, endpoint, compared(shown, ClaimVersion(plan_version=plan_version, endpoint=endpoint))
    )
    if endpoint and plan_version is not None and not facts.endpoint:
        found.append(Fault("endpoint", "endpoint", endpoint, _("expected the id of an endpoint of that plan")))
    for language in LANGUAGES:
        text = words.get(f"text_{language}", "")
        if text.strip():
            found += _faults(f"text_{language}", wording.check(kind, text, language))
    missing = wording.lacking(kind, facts)
    if missing is not None and not any(item.field == BY_CODE[missing.code] for item in found):
        found += _faults("kind", [missing])
    return found + _of_figures(study, words, kind, plan_version, endpoint)


def _of_words(study: Study, words: Mapping[str, str]) -> list[Fault]:
    found = []
    for name in PROSE:
        for language in LANGUAGES:
            field, text = f"{name}_{language}", words.get(f"{name}_{language}", "")
            if len(text) > TEXT_MOST or "\x00" in text:
                found.append(Fault(field, "length", f"{len(text)} characters", _("expected at most %d") % TEXT_MOST))
            elif text:
                found += _faults(field, check_text(study, text, language))
    return found


def _of_figures(
    study: Study, words: Mapping[str, str], kind: str, plan_version: PlanVersion | None, endpoint: str
) -> list[Fault]:
    """Figures of a wrong kind in the words of an effect, and the effect figure that a ruled kind must show."""
    if kind not in EFFECTS:
        return []
    found: list[Fault] = []
    draft = ClaimVersion(kind=kind, plan_version=plan_version, endpoint=endpoint)
    for language in LANGUAGES:
        field, text = f"text_{language}", words.get(f"text_{language}", "")
        if not text.strip():
            continue
        current = _current_figures(study, [text])
        for piece in parse_text(text):
            figure = current.get(piece.value) if piece.kind == FIGURE else None
            if figure is not None and figure.kind in NO_CARRIERS:
                why = _(
                    "this figure is of kind %s, expected an effect: what a mechanism shows is no effect; bind "
                    "the effect that a closed execution measured, or make the claim one of kind mechanism"
                )
                found.append(Fault(field, "figure_kind", piece.raw, why % figure.kind, piece.start, piece.stop))
        shown = any(carries_endpoint(item, draft) or promises_endpoint(item, draft) for item in current.values())
        if kind in wording.RULED and plan_version is not None and endpoint and not shown:
            why = _("got no effect figure of endpoint %s, expected one in the sentence: a figure that its closed "
                    "execution filled, or one that is pending on it")  # fmt: skip
            found.append(Fault(field, "no_effect", endpoint, why % endpoint))
    return found


def _current_figures(study: Study, texts: Iterable[str]) -> dict[str, FigureVersion]:
    keys = figure_keys(texts)
    rows = Figure.objects.filter(study=study, key__in=keys, current__isnull=False).select_related("current")
    return {row.key: row.current for row in rows if row.current is not None} if keys else {}


def _stands(before: ClaimVersion, values: Mapping[str, Any], key: str, base: int | None) -> bool:
    """Whether the newest version says this already. Raises for a withdrawn claim and for one that the writer missed."""
    if before.held_to == Claim.WITHDRAWN:
        raise ClaimRefused([Fault("key", "withdrawn", key, _("this claim was withdrawn; expected a new key"))])
    if _same(before, values) and not _outdated(before):
        return True
    _must_have_seen(before, base)
    return False


def add_claim(
    study: Study,
    key: str,
    *,
    text_en: str = "",
    text_zh: str = "",
    kind: str,
    by: Actor,
    at: datetime,
    scope_en: str = "",
    scope_zh: str = "",
    denominator_en: str = "",
    denominator_zh: str = "",
    missing_en: str = "",
    missing_zh: str = "",
    plan_version: PlanVersion | None = None,
    endpoint: str = "",
    reason: str = "",
    base: int | None = None,
) -> ClaimVersion:
    """Write a claim, or revise it: the key's next version, with a reason. The same words again are no new version.

    A revision keeps what a person lowered the claim to; acceptances of other words no longer count. ``base``: the
    number of the version that the writer saw. Raises ``ClaimMoved`` where that is not the newest, ``ClaimRefused``
    with every fault of the words, ``DomainError`` for a key, a reason or a withdrawn claim.
    """
    words = {
        "text_en": text_en.strip(), "text_zh": text_zh.strip(), "scope_en": scope_en.strip(),
        "scope_zh": scope_zh.strip(), "denominator_en": denominator_en.strip(),
        "denominator_zh": denominator_zh.strip(), "missing_en": missing_en.strip(), "missing_zh": missing_zh.strip(),
    }  # fmt: skip
    if not KEY.fullmatch(key):
        raise ClaimRefused([Fault("key", "key", key, _("expected 1 to 64 letters, digits, dots and dashes"))])
    with transaction.atomic():
        lock_evidence(study)
        claim = (
            Claim.objects.select_for_update(of=("self",)).select_related("current").filter(study=study, key=key).first()
        )
        before = claim.current if claim is not None else None
        values: dict[str, Any] = {**words, "kind": kind, "plan_version": plan_version, "endpoint": endpoint}
        if before is not None and _stands(before, values, key, base):
            return before
        faults = check_claim(study, words, kind, plan_version, endpoint)
        if before is not None and len(reason.strip()) < REASON_LEAST:
            faults.append(Fault("reason", "reason", reason, _("expected why the words change")))
        if faults:
            raise ClaimRefused(faults)
        if claim is None:
            claim = Claim.objects.create(
                uid=record_uid(study.uid, "claim", key), study=study, key=key, author=by, created_at=at,
                status=Claim.NOT_ESTABLISHED, cap=Claim.NOT_ESTABLISHED,
            )  # fmt: skip
        held = before.held_to if before is not None else ""
        version = _append_version(claim, before, {**values, "held_to": held, "reason": reason.strip()}, by=by, at=at)
        _bind_words(version)
        rebind("claim", claim.uid, by=by, at=at)
        refresh_claim(claim, at=at)
    return version


def _same(version: ClaimVersion, values: Mapping[str, Any]) -> bool:
    return all(getattr(version, name) == value for name, value in values.items() if name != "plan_version") and (
        version.plan_version_id == (values["plan_version"].pk if values["plan_version"] else None)
    )


def _outdated(version: ClaimVersion) -> bool:
    """Whether a figure that the words show has been bound again since they were written."""
    return ClaimFigure.objects.filter(version=version).exclude(figure_version=F("figure__current")).exists()


def _append_version(
    claim: Claim, before: ClaimVersion | None, values: Mapping[str, Any], *, by: Actor, at: datetime
) -> ClaimVersion:
    """The next version; the head follows."""
    number = before.number + 1 if before is not None else 1
    uid = record_uid(claim.uid, "claim_version", str(number))
    version = append(ClaimVersion(uid=uid, study=claim.study, actor=by, at=at, claim=claim, number=number, **values))
    Claim.objects.filter(pk=claim.pk).update(current=version)
    claim.current = version
    return version


def _bind_words(version: ClaimVersion) -> None:
    """Keep which version of each figure the texts show as they are written."""
    texts = {language: getattr(version, f"text_{language}") for language in LANGUAGES}
    current = _current_figures(version.study, texts.values())
    for language, text in texts.items():
        keys = [piece.value for piece in parse_text(text) if piece.kind == FIGURE]
        _show(version, ((language, at, current[key].figure_id, current[key].pk) for at, key in enumerate(keys)))


def _show(version: ClaimVersion, rows: Iterable[tuple[str, int, int, int]]) -> None:
    ClaimFigure.objects.bulk_create(
        ClaimFigure(version=version, language=language, ordinal=ordinal, figure_id=figure, figure_version_id=shown)
        for language, ordinal, figure, shown in rows
    )


def _same_words_again(claim: Claim, *, by: Actor, at: datetime, **changed: Any) -> ClaimVersion:
    """A version of the same words on the same figure versions, with another standing: it binds nothing anew."""
    assert claim.current_id is not None
    before = ClaimVersion.objects.select_related("plan_version").get(pk=claim.current_id)
    names = [f"{name}_{language}" for name in PROSE for language in LANGUAGES]
    values = {name: getattr(before, name) for name in (*names, "kind", "plan_version", "endpoint")}
    version = _append_version(claim, before, {**values, **changed}, by=by, at=at)
    shown = ClaimFigure.objects.filter(version=before)
    _show(version, shown.values_list("language", "ordinal", "figure_id", "figure_version_id"))
    refresh_claim(claim, at=at)
    return version


def _reason(reason: str) -> str:
    text = reason.strip()
    if not REASON_LEAST <= len(text) <= REASON_MOST or "\x00" in text:
        raise DomainError(f"reason: got {len(text)} characters, expected {REASON_LEAST} to {REASON_MOST}")
    return text


def _locked(claim: Claim, base: int | None = None) -> Claim:
    """The claim, locked, with words, as the writer saw it and not withdrawn. Call after ``lock_evidence``."""
    row = Claim.objects.select_for_update(of=("self",)).select_related("study", "current").get(pk=claim.pk)
    if row.current is None:
        raise DomainError(f"claim: got {row.key}, which has no words, expected a claim with a version")
    if row.current.held_to == Claim.WITHDRAWN:
        raise DomainError(f"claim: got {row.key}, which is withdrawn, expected a claim that is still made")
    _must_have_seen(row.current, base)
    return row


def lower_claim(
    claim: Claim, status: str, *, reason: str, by: Actor, at: datetime, base: int | None = None
) -> ClaimVersion:
    """Set the status by hand, at or below what evidence, reviews and the plan's rules allow; never above it.

    Setting the cap itself takes an earlier lowering back. ``base``: as in ``add_claim``. Raises ``DomainError`` that
    names the cap and what lifts it.
    """
    if status not in SETTABLE:
        raise DomainError(f"status: got {status[:32]!r}, expected one of {', '.join(SETTABLE)}")
    said = _reason(reason)
    with transaction.atomic():
        lock_evidence(claim.study)
        claim = _locked(claim, base)
        found = derive(claim)
        if rank(status) > rank(found.cap):
            capping = next(item for item in found.reasons if item.at_most == found.cap)
            raise DomainError(
                f"status: got {status}, expected at most {found.cap}: {capping.text} "
                f"What lifts that: {capping.lifted_by}. A status is lowered by hand, never raised above its cap"
            )
        held = "" if status == found.cap else status
        assert claim.current is not None
        if held == claim.current.held_to:
            raise DomainError(f"status: got {status}, which it is already, expected another one")
        return _same_words_again(claim, held_to=held, reason=said, by=by, at=at)


def withdraw_claim(claim: Claim, *, reason: str, by: Actor, at: datetime, base: int | None = None) -> ClaimVersion:
    """Take a claim back for good. Its versions, links and reviews stay readable. ``base``: as in ``add_claim``."""
    said = _reason(reason)
    with transaction.atomic():
        lock_evidence(claim.study)
        claim = _locked(claim, base)
        return _same_words_again(claim, held_to=Claim.WITHDRAWN, reason=said, by=by, at=at)
