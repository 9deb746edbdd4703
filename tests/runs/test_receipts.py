"""Receipts: chains that verify, damage that is found, and appends at the same time that lose nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.checks.chains import check_chains
from evidence.report import StepLog, VerifyReport
from runs.actions.actors import person_actor, service_actor
from runs.actions.receipts import ANCHOR_GENESIS, anchor_heads, append_receipt
from runs.models import Anchor, Receipt, StreamHead, User
from tests.runs.builders import AT
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.chain import genesis
from workbench.contracts.errors import CanonicalError
from workbench.db import drop_triggers

STREAMS = ("plan:1", "run:1", "run:2")


def problems() -> list[tuple[str, str]]:
    """(table, column) of everything that step 1 finds."""
    report = VerifyReport({1: "receipt chains"})
    check_chains(StepLog(report, 1))
    return [(item.table, item.column) for item in report.problems]


def test_bytes_say_what_the_columns_say(database: BaseDatabaseWrapper) -> None:
    """First receipt: seq 1, prev = H(domain, stream); second: prev = sha256 of the first's bytes."""
    with transaction.atomic():
        first = append_receipt(
            "run:1", "run.started", "00000000-0000-5000-8000-000000000001", {"n": 1}, actor=service_actor("w"), at=AT
        )
        second = append_receipt("run:1", "run.ended", None, {}, actor=service_actor("w"), at=AT)
    assert first.prev == genesis("run:1") == sha256_hex(b"workbench.receipt.genesis/1\x00run:1")
    assert (second.seq, second.prev) == (2, sha256_hex(bytes(first.bytes)))
    assert parse_canonical(bytes(Receipt.objects.get(seq=1).bytes)) == {
        "schema": "workbench.receipt/1", "stream": "run:1", "seq": 1, "prev": first.prev, "kind": "run.started",
        "subject": "00000000-0000-5000-8000-000000000001", "body": {"n": 1}, "actor": str(service_actor("w").uid),
        "at": "2030-01-02T03:04:05.678901Z",
    }  # fmt: skip
    assert genesis("run:2") != genesis("run:1")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_refusals(database: BaseDatabaseWrapper) -> None:
    """No transaction, no canonical form, no time zone: nothing is stored."""
    actor = service_actor("w")
    with pytest.raises(transaction.TransactionManagementError, match=r"expected transaction\.atomic"):
        append_receipt("s", "k", None, {}, actor=actor, at=AT)
    with pytest.raises(CanonicalError, match=r"\$\.body\.x: got nan"), transaction.atomic():
        append_receipt("s", "k", None, {"x": float("nan")}, actor=actor, at=AT)
    with pytest.raises(ValueError, match="without a time zone"), transaction.atomic():
        append_receipt("s", "k", None, {}, actor=actor, at=datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="expected a stored user"):
        person_actor(User(username="nobody"))
    assert Receipt.objects.count() == 0 and StreamHead.objects.count() == 0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_rollback_leaves_no_hole(database: BaseDatabaseWrapper) -> None:
    """A transaction that fails after its receipt takes head and receipt back with it."""
    actor = service_actor("w")
    with transaction.atomic():
        append_receipt("s", "k", None, {"n": 1}, actor=actor, at=AT)
    with pytest.raises(RuntimeError), transaction.atomic():
        append_receipt("s", "k", None, {"n": 2}, actor=actor, at=AT)
        raise RuntimeError
    with transaction.atomic():
        append_receipt("s", "k", None, {"n": 3}, actor=actor, at=AT)
    assert list(Receipt.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2]
    assert problems() == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_person_and_service_actors(database: BaseDatabaseWrapper) -> None:
    """One actor a name; a person's has the login."""
    user = User.objects.create(username="ada")
    assert person_actor(user) == person_actor(user) != service_actor("ada")
    assert (person_actor(user).kind, person_actor(user).user) == ("person", user)
    assert (service_actor("ada").kind, service_actor("ada").user) == ("service", None)


# --- any sequence of appends verifies, any damage is found ----------------------------------------

body = st.dictionaries(st.text(max_size=4), st.integers(-5, 5) | st.text(max_size=4) | st.none(), max_size=2)
appends = st.lists(st.tuples(st.sampled_from(STREAMS), body), min_size=2, max_size=6)


def rolled_back(work: Callable[[], None]) -> None:
    """Run on the test's database and take everything back."""
    with transaction.atomic():
        work()
        transaction.set_rollback(True)


def fill(sequence: list[tuple[str, dict[str, Any]]]) -> None:
    actor = service_actor("w")
    for number, (stream, value) in enumerate(sequence):
        append_receipt(stream, "kind", None, value, actor=actor, at=AT + timedelta(seconds=number))
    anchor_heads()
    assert problems() == []
    drop_triggers(connection)


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=appends, data=st.data())
def test_any_changed_byte_is_found(sequence: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
    """Flip one bit of one receipt: its hash disagrees."""

    def work() -> None:
        fill(sequence)
        receipt = data.draw(st.sampled_from(list(Receipt.objects.order_by("id"))))
        content = bytearray(receipt.bytes)
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        connection.cursor().execute("UPDATE runs_receipt SET bytes = %s WHERE id = %s", [bytes(content), receipt.pk])
        assert ("runs_receipt", "sha256") in problems()

    rolled_back(work)


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=appends, data=st.data())
def test_any_removed_tail_is_found(sequence: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
    """Cut the last receipts of a stream and set its head back as a forger would: the anchor names the hole."""

    def work() -> None:
        fill(sequence)
        stream = data.draw(st.sampled_from(sorted({stream for stream, _ in sequence})))
        chain = list(Receipt.objects.filter(stream=stream).order_by("seq"))
        kept = data.draw(st.integers(0, len(chain) - 1))
        cursor = connection.cursor()
        cursor.execute("DELETE FROM runs_receipt WHERE stream = %s AND seq > %s", [stream, kept])
        assert ("runs_streamhead", "seq") in problems()
        last = chain[kept - 1].sha256 if kept else genesis(stream)
        StreamHead.objects.filter(stream=stream).update(seq=kept, sha256=last)
        assert problems() == [("runs_receipt", "sha256")]

    rolled_back(work)


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(body, min_size=2, max_size=5), data=st.data())
def test_any_reordering_is_found(values: list[dict[str, Any]], data: st.DataObject) -> None:
    """Two receipts of a stream change places, numbers and all: links and contents disagree."""

    def work() -> None:
        fill([("run:1", value) for value in values])
        first, second = data.draw(st.sampled_from([(a, b) for a in range(1, len(values) + 1) for b in range(1, a)]))
        cursor = connection.cursor()
        for old, new in ((first, 100), (second, first), (100, second)):
            cursor.execute("UPDATE runs_receipt SET seq = %s WHERE seq = %s", [new, old])
        assert ("runs_receipt", "prev") in problems()

    rolled_back(work)


# --- at the same time -----------------------------------------------------------------------------

THREADS, EACH = 4, 12


def test_concurrent_appends_lose_nothing(database: BaseDatabaseWrapper) -> None:
    """4 threads x 12 transactions on one new stream, each also on a stream of its own: 48 + 4 x 12 receipts."""
    actor, errors = service_actor("w"), []
    start = threading.Barrier(THREADS)

    def work(index: int) -> None:
        try:
            start.wait()
            for number in range(EACH):
                with transaction.atomic():
                    append_receipt("shared", "k", None, {"thread": index, "n": number}, actor=actor, at=AT)
                    append_receipt(f"own:{index}", "k", None, {"n": number}, actor=actor, at=AT)
        except Exception as error:  # any error fails the test below, in the main thread
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    shared = Receipt.objects.filter(stream="shared").order_by("seq")
    assert [receipt.seq for receipt in shared] == list(range(1, THREADS * EACH + 1))
    said = [(value["thread"], value["n"]) for value in (parse_canonical(bytes(r.bytes))["body"] for r in shared)]
    assert sorted(said) == [(index, number) for index in range(THREADS) for number in range(EACH)]
    assert Receipt.objects.count() == 2 * THREADS * EACH
    assert problems() == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_anchors_are_chained(database: BaseDatabaseWrapper) -> None:
    """Two anchors: seq 1 from the genesis, seq 2 from the first; each lists [stream, seq, head] by stream."""
    with transaction.atomic():
        receipt = append_receipt("b", "k", None, {}, actor=service_actor("w"), at=AT)
        other = append_receipt("a", "k", None, {}, actor=service_actor("w"), at=AT)
        anchor_heads()
        anchor_heads()
    first, second = Anchor.objects.order_by("seq")
    assert (first.prev, second.prev) == (ANCHOR_GENESIS, first.sha256)
    assert parse_canonical(bytes(first.bytes))["heads"] == [["a", 1, other.sha256], ["b", 1, receipt.sha256]]
