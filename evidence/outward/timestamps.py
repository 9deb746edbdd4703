"""RFC 3161 time stamps over signed heads, from the one server that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import httpx
from cryptography.x509 import Certificate, load_pem_x509_certificates
from django.conf import settings
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from evidence.models import SignedHead, TimeStamp
from runs.errors import DomainError

MOST_BYTES = 256 * 1024  # of an answer; a token with its certificates has a few thousand


class StampRefused(DomainError):
    """The server answered with something that is no valid stamp over what was sent, or did not answer."""


def trusted_roots() -> list[Certificate]:
    """Certificates that the configured server is trusted by."""
    if settings.TSA_ROOTS is None:
        raise StampRefused("WORKBENCH_TSA_ROOTS: got none, expected a PEM file of certificates")
    return load_pem_x509_certificates(settings.TSA_ROOTS.read_bytes())


def check_token(token: bytes, message: bytes, roots: Sequence[Certificate], nonce: int | None = None) -> datetime:
    """The time that a stamp gives to ``message``. Raises ``StampRefused``."""
    try:
        answer = decode_timestamp_response(token)
        builder = VerifierBuilder(nonce=nonce, roots=list(roots))
        builder.build().verify_message(answer, message)
        return answer.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        raise StampRefused(f"time stamp: {error}, expected a valid stamp over the signed head") from error


def _ask(url: str, request: bytes) -> bytes:
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    try:
        with httpx.stream(
            "POST", url, content=request, headers=headers, timeout=settings.TSA_TIMEOUT_S, follow_redirects=False
        ) as response:
            if response.status_code != 200:
                raise StampRefused(f"time stamp server: got status {response.status_code}, expected 200")
            data = b""
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MOST_BYTES:
                    raise StampRefused(f"time stamp server: got more than {MOST_BYTES} bytes, expected a stamp")
            return data
    except httpx.HTTPError as error:
        raise StampRefused(f"time stamp server: {type(error).__name__}: {error}, expected an answer") from error


def stamp_head(head: SignedHead, *, at: datetime) -> TimeStamp:
    """Have a signed head stamped by the configured server, and keep the verified answer.

    A head that the server has stamped before is not sent again. Raises ``StampRefused``; nothing is then stored.
    """
    url = settings.TSA_URL
    if not url:
        raise StampRefused("WORKBENCH_TSA_URL: got none, expected the address of a time stamp server")
    found = head.time_stamps.filter(server=url[:300]).first()
    if found is not None:
        return found
    message = bytes(head.bytes) + bytes(head.signature)
    request = (
        TimestampRequestBuilder().data(message).hash_algorithm(HashAlgorithm.SHA256).cert_request(cert_request=True)
    ).build()
    roots = trusted_roots()
    token = _ask(url, request.as_bytes())
    check_token(token, message, roots, request.nonce)
    return TimeStamp.objects.create(head=head, server=url[:300], token=token, at=at)


def stamp_newest(*, at: datetime) -> TimeStamp | None:
    """Stamp the newest signed head where a server is configured: it covers every receipt before it."""
    if not settings.TSA_URL:
        return None
    head = SignedHead.objects.order_by("-anchor__seq", "-pk").first()
    return None if head is None else stamp_head(head, at=at)
