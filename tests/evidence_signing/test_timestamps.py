"""RFC 3161 stamps: asked of the configured server alone, and kept only where they verify."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from evidence.actions.signing import anchor_now, exported
from evidence.models import SignedHead, TimeStamp
from evidence.outward.timestamps import StampRefused, check_token, stamp_head, stamp_newest, trusted_roots
from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from tests.evidence_signing.tsa import Authority, authority, make_certificates
from workbench.settings_outward import time_stamp_server

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    with authority(tmp_path_factory.mktemp("tsa")) as found:
        yield found


@pytest.fixture
def tsa(served: Authority, settings: Any) -> Authority:
    """The authority, configured and in order."""
    settings.TSA_URL, settings.TSA_ROOTS = served.url, served.roots
    served.status, served.answer = 200, None
    served.asked.clear()
    return served


@pytest.fixture
def head(db: None) -> SignedHead:
    with transaction.atomic():
        append_receipt("alpha", "test.wrote", None, {}, actor=service_actor("test"), at=AT)
    return anchor_now(at=AT)


def message(head: SignedHead) -> bytes:
    return bytes(head.bytes) + bytes(head.signature)


def test_a_head_is_stamped_once(tsa: Authority, head: SignedHead) -> None:
    stamp = stamp_head(head, at=AT)
    assert stamp.server == tsa.url and stamp_head(head, at=AT) == stamp and len(tsa.asked) == 1
    given = check_token(bytes(stamp.token), message(head), trusted_roots())
    assert abs(given - datetime.now(UTC)) < timedelta(hours=1)
    assert exported(head)["heads"][0]["time_stamps"][0]["token"] == bytes(stamp.token).hex()


def test_a_stamp_of_another_head_is_refused(tsa: Authority, head: SignedHead) -> None:
    stamp = stamp_head(head, at=AT)
    with pytest.raises(StampRefused, match="Mismatch"):
        check_token(bytes(stamp.token), b"another", trusted_roots())


def test_an_answer_sent_again_is_refused_by_its_nonce(tsa: Authority, head: SignedHead) -> None:
    tsa.answer = bytes(stamp_head(head, at=AT).token)
    with transaction.atomic():
        append_receipt("alpha", "test.wrote", None, {}, actor=service_actor("test"), at=AT)
    with pytest.raises(StampRefused):
        stamp_head(anchor_now(at=AT), at=AT)
    assert TimeStamp.objects.count() == 1


def test_a_stamp_under_another_root_is_refused(tsa: Authority, head: SignedHead, tmp_path: Path, settings: Any) -> None:
    make_certificates(tmp_path)
    settings.TSA_ROOTS = tmp_path / "ca.pem"
    with pytest.raises(StampRefused):
        stamp_head(head, at=AT)
    assert not TimeStamp.objects.exists()


@pytest.mark.parametrize(("status", "answer"), [(500, b""), (302, b""), (200, b"no stamp"), (200, b"x" * 300_000)])
def test_what_is_no_stamp_is_not_kept(tsa: Authority, head: SignedHead, status: int, answer: bytes) -> None:
    tsa.status, tsa.answer = status, answer
    with pytest.raises(StampRefused, match="expected"):
        stamp_head(head, at=AT)
    assert not TimeStamp.objects.exists() and len(tsa.asked) == 1


def test_nothing_is_asked_where_no_server_is_configured(served: Authority, head: SignedHead, settings: Any) -> None:
    settings.TSA_URL = ""
    served.asked.clear()
    with pytest.raises(StampRefused, match="WORKBENCH_TSA_URL"):
        stamp_head(head, at=AT)
    assert stamp_newest(at=AT) is None and served.asked == []


def test_a_server_that_does_not_answer_is_named(head: SignedHead, served: Authority, settings: Any) -> None:
    settings.TSA_URL, settings.TSA_ROOTS = "http://127.0.0.1:9/", served.roots
    with pytest.raises(StampRefused, match="time stamp server"):
        stamp_newest(at=AT)


def test_settings_refuse_an_address_without_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_TSA_URL", "https://stamps.example/")
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_TSA_ROOTS"):
        time_stamp_server()
    roots = tmp_path / "roots.pem"
    roots.write_text("")
    monkeypatch.setenv("WORKBENCH_TSA_ROOTS", str(roots))
    assert time_stamp_server() == ("https://stamps.example/", roots)
    monkeypatch.setenv("WORKBENCH_TSA_URL", "ftp://stamps.example/")
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_TSA_URL"):
        time_stamp_server()
    monkeypatch.setenv("WORKBENCH_TSA_URL", "")
    assert time_stamp_server() == ("", None)
