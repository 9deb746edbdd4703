"""Signed heads: every anchor is signed with its counts, so that a truncated tail is found against a copy elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from evidence.models import SignedHead
from evidence.outward.keys import Head, SignatureError, fingerprint, head_bytes, public_pem, read_head, signing_key
from runs.actions.receipts import anchor_heads
from runs.errors import DomainError
from runs.models import Anchor, Receipt, StreamHead
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.chain import time_text
from workbench.contracts.errors import ContractError

HEADS_SCHEMA = "workbench.heads/1"


def sign_anchor(anchor: Anchor, *, at: datetime) -> SignedHead:
    """Sign an anchor with this home's key; again: the signature that is there."""
    key = signing_key(settings.HOME)
    name = fingerprint(key.public_key())
    with transaction.atomic():
        Anchor.objects.select_for_update().get(pk=anchor.pk)  # two signers of one anchor queue here
        found = SignedHead.objects.filter(anchor=anchor, fingerprint=name).first()
        if found is not None:
            return found
        heads = parse_canonical(bytes(anchor.bytes))["heads"]
        data = head_bytes(anchor.seq, anchor.sha256, heads, key.public_key())
        return SignedHead.objects.create(anchor=anchor, fingerprint=name, bytes=data, signature=key.sign(data), at=at)


def sign_missing(*, at: datetime) -> int:
    """Sign every anchor without a signature: a process that died between anchor and signature leaves one."""
    rows = Anchor.objects.filter(signatures__isnull=True).order_by("seq")
    count = 0
    for anchor in rows:
        sign_anchor(anchor, at=at)
        count += 1
    return count


def anchor_now(*, at: datetime) -> SignedHead:
    """Anchor and sign what stands now; where nothing was appended since the newest anchor, that one."""
    with transaction.atomic():
        last = Anchor.objects.order_by("-seq").first()
        now = sorted(list(item) for item in StreamHead.objects.filter(seq__gt=0).values_list("stream", "seq", "sha256"))
        if last is None or parse_canonical(bytes(last.bytes))["heads"] != now:
            last = anchor_heads()
    sign_missing(at=at)
    return sign_anchor(last, at=at)


def newest_head() -> SignedHead | None:
    """The signature over the newest signed anchor."""
    return SignedHead.objects.select_related("anchor").order_by("-anchor__seq", "-pk").first()


def head_entry(head: SignedHead) -> dict[str, Any]:
    """One signed head as files and the API carry it: the signed text itself, signature and stamps in hexadecimal."""
    stamps = head.time_stamps.order_by("pk")
    return {
        "signed": bytes(head.bytes).decode(),
        "signature": bytes(head.signature).hex(),
        "at": time_text(head.at),
        "time_stamps": [
            {"server": item.server, "token": bytes(item.token).hex(), "at": time_text(item.at)} for item in stamps
        ],
    }


def exported(head: SignedHead) -> dict[str, Any]:
    """The file to keep elsewhere: one signed head, the public key and its fingerprint."""
    public = signing_key(settings.HOME).public_key()
    return {
        "schema": HEADS_SCHEMA,
        "fingerprint": head.fingerprint,
        "public_key": public_pem(public) if fingerprint(public) == head.fingerprint else None,
        "heads": [head_entry(head)],
    }


@dataclass(frozen=True)
class Trouble:
    """One disagreement of a kept copy with what is here. ``kind``: signature, key, anchor, truncated, forged."""

    kind: str
    subject: str
    got: str
    expected: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: got {self.got}, expected {self.expected}"


def read_copy(value: Any) -> list[tuple[bytes, bytes]]:
    """(signed bytes, signature) of each head of an exported file. Raises ``DomainError`` naming what is wrong."""
    try:
        if value["schema"] != HEADS_SCHEMA:
            raise DomainError(f"schema: got {value['schema']!r}, expected {HEADS_SCHEMA}")
        found = [(item["signed"].encode(), bytes.fromhex(item["signature"])) for item in value["heads"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DomainError(f"file: {type(error).__name__}: {error}, expected an export of signed heads") from error
    if not found:
        raise DomainError("heads: got none, expected at least one signed head")
    return found


def check_copy(value: Any, *, key: str = "") -> list[Trouble]:
    """Compare a copy kept elsewhere with the receipts here: every kept head must still be a receipt of its stream.

    ``key``: the fingerprint that the copy must be signed by; by default this home's own.
    """
    expected = key or fingerprint(signing_key(settings.HOME).public_key())
    troubles: list[Trouble] = []
    for data, signature in read_copy(value):
        try:
            head = read_head(data, signature)
        except SignatureError as error:
            troubles.append(Trouble("signature", "signed head", str(error), "a signature that holds"))
            continue
        if head.fingerprint != expected:
            troubles.append(Trouble("key", f"anchor {head.anchor_seq}", head.fingerprint, expected))
        troubles += _anchor(head)
        troubles += _streams(head)
    return troubles


def _anchor(head: Head) -> list[Trouble]:
    row = Anchor.objects.filter(seq=head.anchor_seq).first()
    if row is None:
        return [Trouble("anchor", f"anchor {head.anchor_seq}", "none", head.anchor_sha256)]
    found = sha256_hex(bytes(row.bytes))
    if found != head.anchor_sha256 or row.sha256 != head.anchor_sha256:
        return [Trouble("anchor", f"anchor {head.anchor_seq}", found, head.anchor_sha256)]
    return []


def _streams(head: Head) -> list[Trouble]:
    troubles = []
    lengths = dict(StreamHead.objects.values_list("stream", "seq"))
    for stream, count, sha256 in head.heads:
        row = Receipt.objects.filter(stream=stream, seq=count).first()
        held = Receipt.objects.filter(stream=stream, seq__lte=count).count()
        if row is None or held != count or lengths.get(stream, 0) < count:
            troubles.append(Trouble("truncated", stream, f"{held} receipts up to the head", f"{count}"))
        elif sha256_hex(bytes(row.bytes)) != sha256 or row.sha256 != sha256:
            troubles.append(Trouble("forged", f"{stream}#{count}", sha256_hex(bytes(row.bytes)), sha256))
    return troubles


def check_signed(head: SignedHead) -> str:
    """What is wrong with a stored signature, against its anchor; empty where it holds."""
    try:
        found = read_head(bytes(head.bytes), bytes(head.signature))
        heads = parse_canonical(bytes(head.anchor.bytes))["heads"]
    except (ContractError, KeyError, TypeError) as error:
        return str(error)
    told = (found.anchor_seq, found.anchor_sha256, found.heads, found.fingerprint)
    kept = (head.anchor.seq, sha256_hex(bytes(head.anchor.bytes)), heads, head.fingerprint)
    return "" if told == kept else f"it speaks of anchor {found.anchor_seq} and other heads than are stored"
