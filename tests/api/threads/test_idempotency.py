"""Idempotency keys under races: many requests at once, a server that died, a slow request that was taken over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from runs.api import idempotency
from runs.models import IdempotencyRecord, Study, User
from tests.api.calls import Api

Caller = Callable[..., Api]
BODY = {"slug": "race-study", "title_en": "Race"}


def at_once(number: int, work: Callable[[int], Any]) -> list[Any]:
    """Results of ``work`` in as many threads, which begin together."""
    gate, found = threading.Barrier(number), [None] * number

    def run(n: int) -> None:
        try:
            gate.wait(10)
            found[n] = work(n)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def again(secret: str) -> Api:
    """A client of its own for each thread."""
    return Api(secret)


def test_eight_requests_at_once_found_one_study(caller: Caller) -> None:
    """One does it; the others get its answer, or 409 while it is in progress. Sent again, all agree."""
    secret = caller("mara").secret
    found = at_once(8, lambda _n: again(secret).post("studies", BODY, Idempotency_Key="race"))
    codes = [response.status_code for response in found]
    assert set(codes) <= {201, 409} and codes.count(201) >= 1
    first = [r for r in found if r.status_code == 201 and "Idempotency-Replayed" not in r.headers]
    assert len(first) == 1 and Study.objects.filter(slug="race-study").count() == 1
    for response in found:
        if response.status_code == 409:
            assert response["Retry-After"] == "1" and "in progress" in response.json()["detail"]
    repeat = again(secret).post("studies", BODY, Idempotency_Key="race")
    assert repeat["Idempotency-Replayed"] == "true" and repeat.content == first[0].content
    assert repeat["Location"] == first[0]["Location"]


def test_two_bodies_at_once_under_one_key(caller: Caller) -> None:
    """One of them wins; the other is told that the key is taken, and does nothing."""
    secret = caller("mara").secret
    found = at_once(2, lambda n: again(secret).post("studies", {**BODY, "slug": f"race-{n}"}, Idempotency_Key="one"))
    codes = sorted(response.status_code for response in found)
    assert codes == [201, 422] and Study.objects.filter(slug__startswith="race-").count() == 1


def test_a_key_belongs_to_its_user(caller: Caller) -> None:
    assert caller("mara").post("studies", BODY, Idempotency_Key="k").status_code == 201
    other = caller("ivo").post("studies", {**BODY, "slug": "other-study"}, Idempotency_Key="k")
    assert other.status_code == 201 and "Idempotency-Replayed" not in other.headers


def left_behind(api: Api, age: timedelta) -> None:
    """What a server that died leaves of a request: its record, entered and never answered."""
    IdempotencyRecord.objects.all().delete()
    marks: list[str] = []
    real = idempotency.fingerprint

    def noted(request: Any) -> str:
        marks.append(real(request))
        return marks[-1]

    def die(record: IdempotencyRecord, response: Any) -> None:
        raise RuntimeError("the server died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idempotency, "fingerprint", noted)
        patch.setattr(idempotency, "_keep", die)
        assert api.post("studies", BODY, Idempotency_Key="dead").status_code == 500
    assert not Study.objects.filter(slug="race-study").exists() and not IdempotencyRecord.objects.exists()
    IdempotencyRecord.objects.create(
        user=User.objects.get(username="mara"), key="dead", fingerprint=marks[0], created_at=timezone.now() - age
    )


def test_a_record_of_a_dead_server_is_taken_over_after_a_while(caller: Caller) -> None:
    """Younger than the time it is a conflict; older, the request is done under the same record."""
    api = caller("mara")
    left_behind(api, idempotency.ABANDONED - timedelta(seconds=20))
    young = api.post("studies", BODY, Idempotency_Key="dead")
    assert young.status_code == 409 and young["Retry-After"] == "1"
    left_behind(api, idempotency.ABANDONED + timedelta(seconds=1))
    taken = api.post("studies", BODY, Idempotency_Key="dead")
    assert taken.status_code == 201 and "Idempotency-Replayed" not in taken.headers
    assert api.post("studies", BODY, Idempotency_Key="dead")["Idempotency-Replayed"] == "true"


def test_only_one_of_many_takes_over(caller: Caller) -> None:
    api = caller("mara")
    left_behind(api, idempotency.ABANDONED + timedelta(seconds=1))
    found = at_once(4, lambda _n: again(api.secret).post("studies", BODY, Idempotency_Key="dead"))
    done = [r for r in found if r.status_code == 201 and "Idempotency-Replayed" not in r.headers]
    assert len(done) == 1 and {r.status_code for r in found} <= {201, 409}
    assert Study.objects.filter(slug="race-study").count() == 1


def test_a_slow_request_that_was_taken_over_changes_nothing(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer finds the record in other hands: the whole change is rolled back, and the record stays."""
    api = caller("mara")
    real = idempotency._keep

    def late(record: IdempotencyRecord, response: Any) -> None:
        IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=timezone.now() + timedelta(seconds=1))
        real(record, response)

    monkeypatch.setattr(idempotency, "_keep", late)
    slow = api.post("studies", BODY, Idempotency_Key="slow")
    assert slow.status_code == 409 and not Study.objects.filter(slug="race-study").exists()


def test_old_answers_are_forgotten(caller: Caller) -> None:
    api = caller("mara")
    api.post("studies", BODY, Idempotency_Key="old")
    IdempotencyRecord.objects.update(created_at=timezone.now() - idempotency.KEPT - timedelta(hours=1))
    answer = api.post("studies", BODY, Idempotency_Key="old")
    assert answer.status_code == 409  # done anew: the name is taken
    assert "Idempotency-Replayed" not in answer.headers


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb", "schlüssel"])
def test_a_key_that_is_no_token_is_refused(caller: Caller, key: str) -> None:
    response = caller("mara").post("studies", BODY, Idempotency_Key=key)
    assert response.status_code == 400 and response.json()["errors"][0]["field"] == "Idempotency-Key"
