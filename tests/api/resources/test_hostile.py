"""Hostile input is answered with a named field, and never with a server error."""

from __future__ import annotations

from typing import Any

import pytest

from runs.api.parsing import MAX_BYTES
from runs.models import Plan, Study
from tests.api.calls import Api, fields
from tests.pages.state import World

DEEP = b'{"slug":' + b"[" * 4000 + b"]" * 4000 + b"}"
LONG = b'{"slug":[' + b"1," * 9_999 + b"1]}"

BODIES: list[tuple[str, bytes, int]] = [
    ("not JSON", b"{", 400),
    ("no UTF-8", b'{"slug":"\xff"}', 400),
    ("UTF-16", '{"slug":"a"}'.encode("utf-16"), 400),
    ("duplicate keys", b'{"slug":"a","slug":"b"}', 400),
    ("NaN", b'{"slug":NaN}', 400),
    ("infinity", b'{"slug":-Infinity}', 400),
    ("a number beyond doubles", b'{"slug":1e999}', 400),
    ("an integer beyond 2**53", b'{"slug":9007199254740993}', 400),
    ("a huge integer", b'{"slug":' + b"9" * 5000 + b"}", 400),
    ("a lone surrogate", b'{"slug":"\\ud800"}', 400),
    ("a lone surrogate as key", b'{"\\udfff":1}', 400),
    ("U+0000", b'{"slug":"a\\u0000b"}', 400),
    ("deep nesting", DEEP, 400),
    ("10,000 items", LONG, 413),
    ("a list", b"[]", 400),
    ("a text", b'"slug"', 400),
    ("null", b"null", 400),
    ("two values", b"{}{}", 400),
]


@pytest.mark.parametrize(("raw", "status"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
@pytest.mark.parametrize("path", ["studies", "studies/fatal-mask-pair/plans"])
def test_a_malformed_body_is_refused_with_a_field(world: World, mara: Api, path: str, raw: bytes, status: int) -> None:
    before = (Study.objects.count(), Plan.objects.count())
    response = mara.call("POST", path, raw=raw)
    assert response.status_code == status and fields(response), response.content[:300]
    assert (Study.objects.count(), Plan.objects.count()) == before


def test_a_body_above_the_limit_is_refused(world: World, mara: Api) -> None:
    response = mara.call("POST", "studies", raw=b'{"slug":"' + b"a" * MAX_BYTES + b'"}')
    assert response.status_code == 413 and response.json()["detail"].startswith("body: got")


VALUES: list[tuple[str, Any]] = [
    ("slug", 1), ("slug", None), ("slug", True), ("slug", []), ("slug", {}), ("slug", ""), ("slug", "../../etc/passwd"),
    ("slug", "a\nb"), ("slug", "a\x07b"), ("slug", "x" * 10_000), ("slug", "ＡＢＣ"), ("slug", "new"),
    ("title_en", 1), ("title_en", ""), ("title_en", "x" * 301), ("title_en", ["x"]),
    ("summary_zh", {"zh": "x"}), ("visibility", "secret"), ("visibility", 0), ("visibility", ["public"]),
    ("__class__", "x"), ("constructor", {"prototype": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_a_wrong_member_is_named(world: World, mara: Api, name: str, value: Any) -> None:
    response = mara.post("studies", {"slug": "good-name", "title_en": "Good", name: value})
    assert response.status_code == 422 and fields(response) == [name], response.content


def test_every_wrong_member_is_named_at_once(world: World, mara: Api) -> None:
    response = mara.post("studies", {"visibility": "secret", "title_en": 3})
    assert response.status_code == 422 and sorted(fields(response)) == ["slug", "title_en", "visibility"]


@pytest.mark.parametrize(
    "text", ["", "- a\n- b", "a: *b", "a: &x [*x]", "!!python/object:os.system x", "? [a]\n: 1", "\ta: 1", "seeds: [1]",
             "a: 1\na: 2", "x: " + "[" * 300 + "]" * 300, "a: .nan", "a: 99999999999999999999999", "{", "schema: 1"],
)  # fmt: skip
def test_a_document_with_any_text_is_checked_and_never_breaks(world: World, mara: Api, text: str) -> None:
    """validate lists the problems; a draft may be kept as it is written, and a difference still answers."""
    response = mara.post(f"plans/{world.plan.uid}/validate", {"text": text})
    assert response.status_code in (200, 422), response.content
    if response.status_code == 200:
        body = response.json()
        assert not body["valid"] and all(item["field"] and item["expected"] for item in body["problems"])
    made = mara.post(f"studies/{world.study.slug}/plans", {"slug": "odd", "text": text})
    if made.status_code == 201:
        assert mara.get(f"plans/{made.json()['uid']}/difference?against={world.plan.uid}").status_code in (200, 422)
        refused = mara.post(f"plans/{made.json()['uid']}/inspect")
        assert refused.status_code == 422 and fields(refused)


@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=0", "limit"), ("limit=501", "limit"), ("limit=1e2", "limit"), ("limit=٣", "limit"), ("limit=-1", "limit"),
     ("limit=" + "9" * 400, "limit"), ("cursor=%00", "cursor"), ("cursor=bmV3ZXN0OjE6eA", "cursor"),
     ("order=random", "order"), ("fields=secret", "fields"), ("fields=__class__", "fields"), ("run=1", "run"),
     ("run=%7B%7D", "run"), ("min_reward=nan", "min_reward"), ("min_reward=1e999", "min_reward"),
     ("min_reward=x", "min_reward"), ("success=maybe", "success"), ("status=%00", "status"),
     ("status=" + "x" * 301, "status"), ("purpose=theft", "purpose"), ("group__run__uid=1", "group__run__uid"),
     ("format=xml", "format"), ("pk=1", "pk")],
)  # fmt: skip
def test_a_wrong_query_is_named(world: World, mara: Api, query: str, field: str) -> None:
    response = mara.get(f"trajectories?{query}")
    assert response.status_code == 400 and fields(response) == [field], response.content


def test_numbers_at_the_edge_are_numbers(world: World, mara: Api) -> None:
    assert mara.read(f"groups?min_ordinal={2**53 - 1}")["items"] == []
    assert fields(mara.get(f"groups?min_ordinal={2**53}")) == ["min_ordinal"]
    assert len(mara.read(f"groups?min_ordinal=-{2**53 - 1}&limit=3")["items"]) == 3


@pytest.mark.parametrize(
    "path",
    ["", "nothing", "runs/", "runs/1", "runs/..%2f..%2fetc", "captures/" + "f" * 63, "captures/" + "F" * 64,
     "studies/%00", "plans/00000000-0000-4000-8000-000000000000", "captures/" + "f" * 64, "receipts/" + "0" * 64,
     "runs/00000000-0000-4000-8000-000000000000/explode", "../v2/runs"],
)  # fmt: skip
def test_an_address_that_does_not_exist_is_a_problem(world: World, mara: Api, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert mara.call(method, path, **{"X-CSRFToken": "x"}).status_code in (404, 405)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_another_method_is_named(world: World, mara: Api, method: str) -> None:
    response = mara.call(method, "runs")
    assert response.status_code == 405 and "GET" in response["Allow"]


def test_other_representations(world: World, mara: Api) -> None:
    assert mara.get("runs", Accept="text/csv").status_code == 406
    assert mara.get("runs", Accept="application/problem+json").status_code == 200
    assert mara.get("runs", Accept="text/html, */*;q=0.1").status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "nonsense"):
        response = mara.call("POST", "studies", raw=b"slug=a", **{"Content-Type": kind})
        assert response.status_code == 415, kind


@pytest.mark.parametrize(
    "header",
    ["Basic bWFyYTp4", "Bearer", "Bearer ", "Bearer wb_x", "Bearer wb_" + "a" * 8 + "_" + "b" * 43, "bearer\twb_x",
     "Bearer " + "x" * 7000, "Bearer wb_é", "Token x"],
)  # fmt: skip
def test_a_wrong_token_is_refused_and_never_nobody(world: World, caller: Any, header: str) -> None:
    """The public study could be read without a token; with a wrong one it cannot."""
    response = caller().get("runs", Authorization=header)
    assert response.status_code == 401 and response["WWW-Authenticate"].startswith("Bearer")


def test_a_host_that_is_not_allowed_is_a_problem(world: World, caller: Any) -> None:
    response = caller().get("runs", Host="evil.example")
    assert response.status_code == 400
