"""Changes: rights, drafts with ETags, once-only POSTs, controls, and bodies that are refused by field."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from runs.actions import inspection
from runs.actions.drafts import StaleDraft
from runs.actions.tokens import issue_token, revoke_token
from runs.api import plans as plans_api
from runs.models import ApiToken, IdempotencyRecord, Membership, Plan, Run, Study, User
from tests.api.basics.conftest import Caller
from tests.pages.world import World
from worker.study import load_study

DOCUMENT = json.dumps({**load_study("fatal-mask-pair", "tiny")[1], "name": "mine"})


def create(caller: Caller, slug: str = "mine", text: str = DOCUMENT, **headers: str) -> tuple[int, Any, Any]:
    return caller.call("POST", "studies/fatal-mask-pair/plans", {"slug": slug, "text": text}, **headers)


@pytest.mark.parametrize(
    ("role", "status"),
    [("nobody", 401), ("stranger", 403), ("viewer", 403), ("reviewer", 403), ("worker", 403), ("researcher", 201),
     ("admin", 201), ("site", 201)],
)  # fmt: skip
def test_who_may_write_a_plan(world: World, callers: dict[str, Caller], role: str, status: int) -> None:
    before = Plan.objects.count()
    assert create(callers[role])[0] == status
    assert Plan.objects.count() == before + (status == 201)


def test_a_draft_is_saved_over_the_revision_that_was_read(world: World, callers: dict[str, Caller]) -> None:
    caller = callers["researcher"]
    _, plan, response = create(caller)
    assert response["ETag"] == '"draft-1"' and response["Location"] == f"/api/v1/plans/{plan['uid']}"
    path = f"plans/{plan['uid']}"
    assert caller.call("PUT", path, {"text": "a: 1"})[0] == 428
    status, value, response = caller.call("PUT", path, {"text": "a: 1"}, If_Match='"draft-1"')
    assert (status, value["revision"], response["ETag"]) == (200, 2, '"draft-2"')
    status, value, response = caller.call("PUT", path, {"text": "b: 1"}, If_Match='"draft-1"')
    assert status == 412 and value["errors"][0]["expected"] == '"draft-2"'
    assert caller.get(path)["draft_text"] == "a: 1"
    assert callers["viewer"].call("PUT", path, {"text": "c: 1"}, If_Match='"draft-2"')[0] == 403


def test_every_fault_of_a_document_is_listed(world: World, callers: dict[str, Caller]) -> None:
    _, plan, _ = create(callers["researcher"])
    document = json.loads(DOCUMENT)
    document["optimizer"]["learning_rate"] = "fast"
    document["surprise"] = 1
    status, value, _ = callers["viewer"].call("POST", f"plans/{plan['uid']}/validate", {"text": json.dumps(document)})
    assert status == 200 and not value["valid"]
    assert {"surprise", "optimizer.learning_rate"} <= {item["field"] for item in value["problems"]}
    assert callers["researcher"].call("POST", f"plans/{plan['uid']}/validate", {"text": DOCUMENT})[1]["valid"]


def test_documents_are_parsed_before_the_transaction(
    world: World, callers: dict[str, Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text may take seconds to parse, and on SQLite the transaction holds the only write lock."""
    caller, depths = callers["researcher"], []
    _, plan, _ = create(caller)

    def noting(real: Any) -> Any:
        def noted(*given: Any) -> Any:
            depths.append(len(connection.savepoint_ids))
            return real(*given)

        return noted

    monkeypatch.setattr(plans_api, "check_draft", noting(plans_api.check_draft))
    monkeypatch.setattr(inspection, "parse_plan_text", noting(inspection.parse_plan_text))
    outside = len(connection.savepoint_ids)
    path = f"plans/{plan['uid']}"
    assert caller.call("POST", f"{path}/validate", {"text": DOCUMENT}, Idempotency_Key="v")[0] == 200
    status, job, _ = caller.call("POST", f"{path}/inspect", {}, Idempotency_Key="i")
    assert status == 202 and depths == [outside, outside]
    Plan.objects.filter(uid=plan["uid"]).update(draft_text="no: plan")  # a repeat gets its answer all the same
    assert caller.call("POST", f"{path}/inspect", {}, Idempotency_Key="i")[:2] == (202, job)
    assert caller.call("POST", f"{path}/inspect", {})[0] == 422


def test_an_inspection_of_a_draft_that_was_saved_meanwhile_is_refused(world: World, callers: dict[str, Caller]) -> None:
    _, made, _ = create(callers["researcher"])
    plan = Plan.objects.get(uid=made["uid"])
    read = inspection.read_draft(plan)
    Plan.objects.filter(pk=plan.pk).update(draft_revision=2)
    with pytest.raises(StaleDraft, match="got revision 1, expected 2"):
        inspection.request_inspection(plan, by=plan.study.created_by, at=timezone.now(), draft=read)


def test_difference_names_members(world: World, callers: dict[str, Caller]) -> None:
    changed = json.loads(DOCUMENT)
    changed["optimizer"]["learning_rate"] = 0.5
    _, first, _ = create(callers["researcher"])
    _, second, _ = create(callers["researcher"], "second", json.dumps(changed))
    value = callers["researcher"].get(f"plans/{first['uid']}/difference?against={second['uid']}")
    assert [item[0] for item in value["differences"]] == ["optimizer.learning_rate"] and not value["equal"]
    assert callers["researcher"].call("GET", f"plans/{first['uid']}/difference?against=zz")[0] == 400


def test_freezing_needs_an_inspection_and_a_frozen_plan_refuses_changes(
    world: World, callers: dict[str, Caller]
) -> None:
    caller = callers["researcher"]
    _, plan, _ = create(caller)
    path = f"plans/{plan['uid']}"
    status, value, _ = caller.call("POST", f"{path}/freeze", {})
    assert status == 409 and "inspection" in value["detail"]
    status, job, _ = caller.call("POST", f"{path}/inspect", {})
    assert status == 202 and job["kind"] == "inspect_plan"
    assert caller.call("GET", f"{path}/preview")[0] == 409
    assert callers["viewer"].call("POST", f"{path}/inspect", {})[0] == 403
    frozen = f"plans/{world.plan.uid}"
    assert caller.call("PUT", frozen, {"text": "a: 1"}, If_Match='"frozen-1"')[0] == 409
    assert caller.call("POST", f"{frozen}/freeze", {})[0] == 409
    status, value, _ = caller.call("POST", f"{frozen}/supersede", {})
    assert status == 422 and value["errors"][0]["field"] == "reason"
    assert caller.call("POST", f"{frozen}/supersede", {"reason": "a better one"})[1]["state"] == "superseded"


def test_controls(world: World, callers: dict[str, Caller]) -> None:
    run = world.runs["e3-s17"]
    for verb in ("pause", "resume"):
        assert callers["viewer"].call("POST", f"runs/{run.uid}/{verb}", {})[0] == 403
    assert callers["researcher"].call("POST", f"runs/{run.uid}/pause", {})[1]["state"] == "paused"
    assert callers["researcher"].call("POST", f"runs/{run.uid}/pause", {})[0] == 409
    assert callers["researcher"].call("POST", f"runs/{run.uid}/resume", {})[1]["state"] == "running"
    assert callers["researcher"].call("POST", f"runs/{run.uid}/explode", {})[0] == 404
    assert Run.objects.get(pk=run.pk).head.state == "running"


def test_a_study_is_founded(world: World, callers: dict[str, Caller]) -> None:
    body = {"slug": "own-study", "title_en": "Own"}
    assert callers["nobody"].call("POST", "studies", body)[0] == 401
    status, value, _ = callers["stranger"].call("POST", "studies", body)
    assert (status, value["visibility"]) == (201, "private")
    assert callers["stranger"].call("GET", "studies/own-study")[0] == 200
    assert callers["viewer"].call("GET", "studies/own-study")[0] == 404
    assert callers["viewer"].call("POST", "studies", body)[0] == 409
    assert (
        callers["viewer"].call("POST", "studies", {"slug": "A B", "title_en": "x"})[1]["errors"][0]["field"] == "slug"
    )


def test_a_repeat_gets_the_first_answer(world: World, callers: dict[str, Caller]) -> None:
    caller = callers["researcher"]
    first, again = create(caller, Idempotency_Key="k"), create(caller, Idempotency_Key="k")
    assert (again[0], again[1]) == (201, first[1]) and again[2]["Idempotency-Replayed"] == "true"
    assert again[2]["ETag"] == first[2]["ETag"]
    status, value, _ = create(caller, "other", Idempotency_Key="k")
    assert status == 422 and value["errors"][0]["field"] == "Idempotency-Key"
    assert create(callers["admin"], "theirs", Idempotency_Key="k")[0] == 201  # keys are a user's own
    assert caller.call("POST", "studies", {"slug": "s-1", "title_en": "x"}, Idempotency_Key="\x7f")[0] == 400


def test_a_repeat_needs_the_right_as_the_first_did(
    world: World, callers: dict[str, Caller], people: dict[str, User]
) -> None:
    """Without the role 403, without sight of the study 404; with the role again the stored answer."""
    caller, run = callers["researcher"], world.runs["e3-s17"].uid
    requests: list[tuple[str, Any]] = [
        ("studies/fatal-mask-pair/plans", {"slug": "mine", "text": DOCUMENT}),
        (f"plans/{world.plan.uid}/validate", {"text": DOCUMENT}),
        (f"runs/{run}/pause", None),
        (f"executions/{world.execution.uid}/pause", None),
    ]
    first = [caller.call("POST", path, body, Idempotency_Key=path) for path, body in requests]
    done = [
        (path, body, value) for (path, body), (status, value, _) in zip(requests, first, strict=True) if status < 300
    ]
    assert len(done) >= 2 and done[0][0].startswith("studies/")
    Membership.objects.filter(user=people["researcher"]).delete()
    for path, body, _value in done:
        expected = 200 if path.endswith("/validate") else 403  # whoever reads the public study may check a document
        assert caller.call("POST", path, body, Idempotency_Key=path)[0] == expected, path
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    for path, body, _value in done:
        assert caller.call("POST", path, body, Idempotency_Key=path)[0] == 404, path
    Membership.objects.create(study=world.study, user=people["researcher"], role="researcher")
    for path, body, value in done:
        status, again, response = caller.call("POST", path, body, Idempotency_Key=path)
        assert again == value and response["Idempotency-Replayed"] == "true", (path, status)


def test_a_refusal_keeps_no_key_and_a_pending_one_is_a_conflict(world: World, callers: dict[str, Caller]) -> None:
    caller = callers["researcher"]
    assert create(caller, "A B", Idempotency_Key="k")[0] == 422
    assert not IdempotencyRecord.objects.exists()
    assert create(caller, Idempotency_Key="k")[0] == 201
    IdempotencyRecord.objects.update(status=None, created_at=timezone.now())
    status, _, response = create(caller, Idempotency_Key="k")
    assert (status, response["Retry-After"]) == (409, "1")
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    assert create(caller, Idempotency_Key="k")[0] == 409  # taken over, done anew: the name is in use now
    assert Plan.objects.filter(slug="mine").count() == 1


HOSTILE = [
    (b'{"text": "a", "text": "b"}', 400, "text"), (b'{"text": NaN}', 400, "$"), (b"[1]", 400, "$"), (b"{", 400, "$"),
    (b'{"text": "\\ud800"}', 400, "$.text"), (b'{"text": "a\\u0000"}', 400, "$.text"),
    (b'{"zzz": 1}', 422, "zzz"), (b'{"text": 5}', 422, "text"), (b'{"text": null}', 422, "text"), (b"{}", 422, "text"),
    (b'{"text": ' + b"[" * 60 + b"]" * 60 + b"}", 400, None), (b'{"text": ' + b"[" * 90_000 + b"}", 400, None),
    (b'{"text": 1' + b"0" * 400 + b"}", 400, "$"), (b'{"text": 1e999}', 400, "$"), (b"\xff\xfe", 400, "$"),
    (b'{"text": [' + b"1," * 9_999 + b"1]}", 413, "$.text"), (b'{"text": "' + b"x" * 4_300_000 + b'"}', 413, None),
    (b'{"__proto__": {}, "text": "../../etc/passwd"}', 422, "__proto__"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "field"), HOSTILE)
def test_hostile_bodies_are_refused_by_field(
    world: World, callers: dict[str, Caller], body: bytes, status: int, field: str | None
) -> None:
    found, value, response = callers["researcher"].call("POST", f"plans/{world.plan.uid}/validate", body)
    assert (found, response["Content-Type"]) == (status, "application/problem+json"), value
    assert field is None or value["errors"][0]["field"] == field


def test_tokens(world: World, people: dict[str, User], client: Any) -> None:
    token, secret = issue_token(people["researcher"], name="t", scopes=["read"], expires_at=None, at=timezone.now())
    reader = Caller(None)
    reader.headers["Authorization"] = f"Bearer {secret}"
    assert reader.get("me")["user"] == "researcher" and secret not in json.dumps(reader.get("me"))
    assert create(reader)[0] == 403  # the role would do, the scope does not
    assert reader.call("POST", "me/tokens", {"name": "x", "scopes": ["admin"]})[0] == 403
    revoke_token(token, by=people["researcher"], at=timezone.now())
    status, _, response = reader.call("GET", "me")
    assert status == 401 and response["WWW-Authenticate"].startswith("Bearer")
    client.force_login(people["viewer"])
    made = client.post("/api/v1/me/tokens", {"name": "x", "scopes": ["read"]}, content_type="application/json")
    assert made.status_code == 201 and made.json()["secret"].startswith("wb_")
    assert ApiToken.objects.get(prefix=made.json()["prefix"]).user == people["viewer"]


def test_a_session_needs_its_csrf_token(world: World, people: dict[str, User]) -> None:
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(people["researcher"])
    body = {"slug": "mine", "text": DOCUMENT}
    answer = client.post("/api/v1/studies/fatal-mask-pair/plans", body, content_type="application/json")
    assert answer.status_code == 403 and not Plan.objects.filter(slug="mine").exists()
    assert Study.objects.exists()


def test_an_expired_token_is_nobody_and_is_refused(world: World, people: dict[str, User]) -> None:
    """Before its end it reads; at its end the same request is 401, on a public study too."""
    now = timezone.now()
    token, secret = issue_token(
        people["researcher"], name="t", scopes=["read", "write"], expires_at=now + timedelta(hours=1), at=now
    )
    caller = Caller(None)
    caller.headers["Authorization"] = f"Bearer {secret}"
    assert caller.get("me")["user"] == "researcher"
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    for method, path, body in (("GET", "me", None), ("GET", "plans", None), ("POST", "studies/x/plans", {})):
        status, _, response = caller.call(method, path, body)
        assert status == 401 and "Bearer" in response["WWW-Authenticate"], path
