"""Receipt chains: lists, entries, verifying again."""

from __future__ import annotations

import json

from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from runs.models import Receipt, StreamHead
from runs.presenters.receipts import check_chain, subject_link
from tests.pages.state import World


def _stream(world: World) -> str:
    return f"run:{world.runs['e3-s17'].uid}"


def test_chains_and_one_chain(client: Client, world: World, db: None) -> None:
    assert "run e3-s17" in client.get("/receipts/").content.decode()
    answer = client.get("/receipts/", {"stream": _stream(world)})
    assert [row.seq for row in answer.context["listing"]] == [2, 1]


def test_entry_shows_the_exact_bytes(client: Client, world: World, db: None) -> None:
    receipt = Receipt.objects.filter(stream=_stream(world)).first()
    assert receipt is not None
    answer = client.get(f"/receipts/{receipt.sha256}/")
    assert answer.context["text"].encode() == bytes(receipt.bytes)
    assert json.loads(answer.context["readable"]) == json.loads(bytes(receipt.bytes))


def test_chains_are_named_by_what_they_are(client: Client, world: World, db: None) -> None:
    """Breadcrumb, entry and subject say run, plan and execution; the stream's own name stands in the facts."""
    slug, results = world.plan.slug, reverse("runs:results", args=[world.study.slug, world.plan.slug])
    for stream, name in (
        (_stream(world), f"run e3-s17 · {slug}"),
        (f"plan:{world.plan.uid}", f"plan {slug}"),
        (f"execution:{world.execution.uid}", f"execution of {slug}"),
    ):
        receipt = Receipt.objects.filter(stream=stream).earliest("seq")
        assert client.get("/receipts/", {"stream": stream}).context["frame"].crumbs[-1].word == name
        answer = client.get(f"/receipts/{receipt.sha256}/")
        assert answer.context["frame"].crumbs[1].word == name and stream in answer.content.decode()
    assert subject_link(Receipt(subject_uid=world.execution.uid)) == (f"execution of {slug}", results)
    assert subject_link(Receipt(subject_uid=world.plan.uid)) == (
        slug,
        reverse("runs:plan", args=[world.study.slug, slug]),
    )


def test_intact_chains_verify(signed_in: Client, world: World) -> None:
    answer = signed_in.post("/receipts/verify/")
    assert all(check.holds for check in answer.context["checks"])
    assert answer.context["checked"] == Receipt.objects.count()


def _break(sql: str, arguments: list[object]) -> None:
    """Change history behind the application's back, as an attacker with database access would."""
    table = Receipt._meta.db_table
    with connection.cursor() as cursor:
        for name in ("no_update", "no_delete"):
            cursor.execute(f'DROP TRIGGER "{table}_{name}"')
        cursor.execute(sql.format(table=table), arguments)


def test_changed_bytes_break_at_their_step(signed_in: Client, world: World) -> None:
    stream = _stream(world)
    receipt = Receipt.objects.get(stream=stream, seq=1)
    _break('UPDATE "{table}" SET bytes = %s WHERE id = %s', [bytes(receipt.bytes).replace(b"0", b"1"), receipt.pk])
    answer = signed_in.post("/receipts/verify/", {"stream": stream})
    (check,) = answer.context["checks"]
    assert (check.broken_at, check.holds) == (1, False)
    assert "the bytes hash to" in check.problem
    assert "first broken step: #1" in answer.content.decode()


def test_a_cut_tail_is_found_by_the_head(world: World, db: None) -> None:
    stream = _stream(world)
    last = Receipt.objects.get(stream=stream, seq=2)
    _break('DELETE FROM "{table}" WHERE id = %s', [last.pk])
    check = check_chain(stream)
    assert not check.holds and "the tail is cut" in check.problem


def test_a_missing_entry_is_found(world: World, db: None) -> None:
    stream = _stream(world)
    _break('DELETE FROM "{table}" WHERE id = %s', [Receipt.objects.get(stream=stream, seq=1).pk])
    check = check_chain(stream)
    assert check.broken_at == 1 and "an entry is missing" in check.problem


def test_a_row_that_contradicts_its_bytes_is_found(world: World, db: None) -> None:
    stream = _stream(world)
    _break('UPDATE "{table}" SET kind = %s WHERE stream = %s AND seq = 2', ["other.kind", stream])
    check = check_chain(stream)
    assert check.broken_at == 2 and "kind" in check.problem


def test_verifying_needs_a_login(client: Client, world: World, db: None) -> None:
    assert client.post("/receipts/verify/")["Location"].startswith("/accounts/login/")
    assert client.get("/receipts/verify/").status_code in (404, 405)


def test_unknown_stream_and_entry(client: Client, signed_in: Client, world: World) -> None:
    assert client.get("/receipts/", {"stream": "run:none"}).status_code == 404
    assert client.get(f"/receipts/{'0' * 64}/").status_code == 404
    assert signed_in.post("/receipts/verify/", {"stream": "run:none"}).status_code == 404


def test_query_count_is_bounded(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    assert StreamHead.objects.count() > 3
    with django_assert_max_num_queries(25):
        client.get("/receipts/")


def test_entries_under_a_query(client: Client, world: World, db: None) -> None:
    """The page narrows as every list does, and says in how many chains it looked."""
    found = client.get("/receipts/", {"q": "kind:run.*"}).context["listing"]
    assert found.count == Receipt.objects.filter(kind__startswith="run.").count() > 0
    assert {row.kind.partition(".")[0] for row in found} == {"run"}
    wrong = client.get("/receipts/", {"q": "knd:run.*"})
    assert wrong.status_code == 400 and "kind:run.*" in wrong.content.decode()
    assert b"Nothing that you can see meets" in client.get("/receipts/", {"q": "kind:none.such"}).content


def test_a_stream_is_asked_for_by_either_way(client: Client, world: World, db: None) -> None:
    """``?stream=`` of other pages and the term name the same chain; a beginning names many and shows no head."""
    stream = _stream(world)
    for given in ({"stream": stream}, {"q": f"stream:{stream}"}):
        answer = client.get("/receipts/", given)
        assert answer.context["head"].stream == stream and answer.context["listing"].text == f"stream:{stream}"
        assert {row.stream for row in answer.context["listing"]} == {stream}
    answer = client.get("/receipts/", {"q": "stream:run:*"})
    assert answer.context["head"] is None
    assert answer.context["listing"].count == Receipt.objects.filter(stream__startswith="run:").count() > 2
    assert client.get("/receipts/", {"q": "stream:run:none"}).context["listing"].count == 0


def test_pages_of_entries_hold_each_once(client: Client, world: World, db: None) -> None:
    found, seen = client.get("/receipts/").context["listing"], []
    while True:
        seen += [row.pk for row in found]
        if not found.next_url:
            break
        found = client.get(found.next_url).context["listing"]
    assert seen == sorted(Receipt.objects.values_list("pk", flat=True), reverse=True)


def test_search_leads_to_entries(client: Client, world: World, db: None) -> None:
    routes = client.get("/search/", {"q": "kind:run.*"}).context["found"].routes
    (route,) = [route for route in routes if route.url.startswith("/receipts/")]
    assert client.get(route.url).context["listing"].total == route.total
