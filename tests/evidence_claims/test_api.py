"""Claims and links over the API: the same refusals as on the pages, as problems that name every fault."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from evidence.actions.reviews import KINDS
from evidence.models import Claim, ClaimVersion, FigureVersion, Link
from runs.api.schema import document
from runs.models import Membership
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller
from tests.evidence_claims.build import Desk


@pytest.fixture
def mara(desk: Desk) -> Api:
    """A researcher of the study."""
    return make_caller("mara", desk.study)


def new(desk: Desk, api: Api, **more: Any) -> Any:
    """POST of a new claim."""
    body = {"key": "c1", "kind": "description", "text_en": "Runs were made.", **more}
    return api.post(f"studies/{desk.study.slug}/claims", body)


def test_a_claim_is_written_read_and_listed(desk: Desk, mara: Api) -> None:
    desk.figure("n")
    answer = new(desk, mara, text_en="Counted: [[n]].", text_zh="计数为[[n]]。")
    assert answer.status_code == 201, answer.content
    found = answer.json()
    assert answer["Location"] == f"/api/v1/claims/{found['uid']}"
    assert (found["status"], found["cap"], found["current"]["number"]) == ("not_established", "not_established", 1)
    assert [item["code"] for item in found["reasons"]] == ["no_support", "unreviewed"]
    assert [(item["language"], item["key"], item["value"]) for item in found["figures"]] == [
        ("en", "n", "13/27"), ("zh", "n", "13/27"),
    ]  # fmt: skip
    assert mara.read(f"claims/{found['uid']}") == found
    assert [item["key"] for item in mara.read("claims?status=not_established&kind=description")["items"]] == ["c1"]
    assert mara.read("claims?stale=true")["items"] == []
    assert new(desk, mara).status_code == 409


def test_the_same_request_is_done_once(desk: Desk, mara: Api) -> None:
    body = {"key": "c1", "kind": "description", "text_en": "Runs were made."}
    path = f"studies/{desk.study.slug}/claims"
    first = mara.post(path, body, Idempotency_Key="k1")
    again = mara.post(path, body, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201) and first.json() == again.json()
    assert ClaimVersion.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"text_en": "Recovery rose by 12 points."}, "text_en", "/figures/new/"),
        ({"text_zh": "三个任务成功。"}, "text_zh", "/figures/new/"),
        ({"text_en": "It improves recovery."}, "text_en", "kind improvement"),
        ({"kind": "improvement", "text_en": "It improves."}, "plan_version", "no regression was observed"),
        ({"kind": "equivalence", "text_en": "They are equivalent."}, "plan_version", "equivalence interval"),
        ({"kind": "non_inferiority", "text_en": "It is not worse."}, "plan_version", "a margin"),
        ({"kind": "no_regression", "text_en": "Nothing regressed."}, "text_en", "no regression was observed"),
        ({"text_en": ""}, "text_en", "a sentence"),
        ({"key": "a b"}, "key", "letters, digits"),
        ({"kind": "truth"}, "kind", "not a valid choice"),
        ({"status": "supported"}, "status", "one of"),
        ({"text_en": 5}, "text_en", "text"),
    ],
)
def test_each_refusal_names_its_field_and_what_to_do(
    desk: Desk, mara: Api, change: dict[str, Any], field: str, said: str
) -> None:
    answer = new(desk, mara, **change)
    assert answer.status_code == 422 and field in fields(answer), answer.content
    assert any(item["field"] == field and said in item["expected"] for item in answer.json()["errors"])
    assert not Claim.objects.exists()


def test_every_fault_of_a_sentence_is_named_at_once(desk: Desk, mara: Api) -> None:
    answer = new(desk, mara, text_en="It proves 5 things and is safe.")
    assert answer.status_code == 422
    assert {item["got"] for item in answer.json()["errors"]} == {"proves", "5", "safe"}


def test_an_effect_cell_refuses_a_mechanism_figure(desk: Desk, mara: Api) -> None:
    desk.figure("cut", "13/27", kind="mechanism")
    desk.pending("effect")
    body = {
        "kind": "improvement", "plan_version": str(desk.version.uid), "endpoint": "recovery",
        "text_en": "It improves recovery: [[cut]].",
    }  # fmt: skip
    answer = new(desk, mara, **body)
    assert answer.status_code == 422 and "of kind mechanism, expected an effect" in answer.json()["detail"]
    assert new(desk, mara, **{**body, "text_en": "It improves recovery: [[effect]]."}).status_code == 201
    claim = Claim.objects.get()
    answer = mara.post(f"claims/{claim.uid}/links", {"figure": "cut", "relation": "supports"})
    assert answer.status_code == 422 and fields(answer) == ["figure"]
    assert mara.post(f"claims/{claim.uid}/links", {"figure": "cut", "relation": "background"}).status_code == 201


def test_a_claim_is_revised_lowered_and_withdrawn(desk: Desk, mara: Api) -> None:
    uid = new(desk, mara).json()["uid"]
    words = {"kind": "description", "text_en": "Other words."}
    assert fields(mara.post(f"claims/{uid}/revise", words)) == ["reason"]
    found = mara.post(f"claims/{uid}/revise", {**words, "reason": "clearer"}).json()
    assert [item["number"] for item in found["versions"]] == [2, 1]
    same = mara.post(f"claims/{uid}/revise", {**words, "reason": "again"}).json()
    assert same["current"]["number"] == 2
    raised = mara.post(f"claims/{uid}/lower", {"status": "supported", "reason": "sure"})
    assert raised.status_code == 422 and fields(raised) == ["status"]
    assert "No link supports it." in raised.json()["detail"]
    assert mara.post(f"claims/{uid}/lower", {"status": "refuted", "reason": "a mistake"}).json()["status"] == "refuted"
    assert mara.post(f"claims/{uid}/lower", {"status": "not_established", "reason": "back"}).json()["status"] == (
        "not_established"
    )
    assert mara.post(f"claims/{uid}/withdraw", {"reason": "wrong"}).json()["status"] == "withdrawn"
    assert mara.post(f"claims/{uid}/withdraw", {"reason": "wrong"}).status_code == 422
    assert mara.post(f"claims/{uid}/revise", {**words, "reason": "again"}).status_code == 422


def test_a_revision_of_a_version_that_is_no_longer_the_newest_is_answered_409(desk: Desk, mara: Api) -> None:
    uid = new(desk, mara).json()["uid"]
    words = {"kind": "description", "text_en": "Other words.", "reason": "clearer"}
    assert mara.post(f"claims/{uid}/revise", {**words, "base": 1}).status_code == 200
    answer = mara.post(f"claims/{uid}/revise", {**words, "text_en": "My words.", "base": 1})
    assert answer.status_code == 409 and fields(answer) == ["base"]
    assert "got version 1, expected version 2" in answer.json()["detail"]
    assert "text_en is now “Other words.”" in answer.json()["detail"]
    assert Claim.objects.get(uid=uid).versions.count() == 2
    unknown = mara.post(f"claims/{uid}/revise", {**words, "text_en": "My words.", "base": 9})
    assert unknown.status_code == 422 and fields(unknown) == ["base"]
    assert mara.post(f"claims/{uid}/revise", {**words, "text_en": "My words.", "base": 2}).status_code == 200


def test_links_are_added_listed_and_withdrawn(desk: Desk, mara: Api) -> None:
    claim, excerpt = desk.claim(), desk.excerpt()
    path = f"claims/{claim.uid}/links"
    assert fields(mara.post(path, {"excerpt": "none", "relation": "supports"})) == ["excerpt"]
    assert fields(mara.post(path, {"relation": "supports"})) == ["evidence"]
    assert fields(mara.post(path, {"excerpt": excerpt.key, "relation": "proves"})) == ["relation"]
    found = mara.post(path, {"excerpt": excerpt.key, "relation": "supports", "reach_en": "no more"}).json()
    assert (found["excerpt_key"], found["figure"], found["withdrawn"]) == (excerpt.key, None, False)
    assert mara.post(path, {"excerpt": excerpt.key, "relation": "supports"}).status_code == 422
    status = mara.read(f"claims/{claim.uid}/status")
    assert (status["status"], status["cap"], status["accepted"]) == ("partly", "partly", "")
    assert status["reasons"][0]["lifted_by"] == "an acceptance by an independent reviewer"
    assert [item["uid"] for item in mara.read(f"links?claim={claim.uid}&withdrawn=false")["items"]] == [found["uid"]]
    gone = mara.post(f"links/{found['uid']}/withdraw", {"reason": "a mistake"}).json()
    assert gone["withdrawn"] and gone["withdrawn_reason"] == "a mistake"
    assert mara.post(f"links/{found['uid']}/withdraw", {"reason": "a mistake"}).status_code == 422
    assert mara.read("links?withdrawn=false")["items"] == []
    assert mara.post(path, {"excerpt": excerpt.key, "relation": "supports"}).status_code == 201
    assert Link.objects.count() == 2


def test_a_sentence_is_checked_without_being_written(desk: Desk, mara: Api) -> None:
    found = mara.post(f"studies/{desk.study.slug}/claims/check", {"text": "它提升恢复率。", "language": "zh"}).json()
    assert [(item["code"], item["text"], item["start"]) for item in found["troubles"]] == [("phrase", "提升", 1)]
    assert not Claim.objects.exists()


def test_who_may_not_write_evidence_changes_nothing(desk: Desk, mara: Api) -> None:
    claim = desk.claim()
    viewer = make_caller("vera", desk.study, Membership.VIEWER)
    reader = make_caller("mara", desk.study, scopes=("read",))
    for api, code in ((viewer, 403), (reader, 403), (Api(""), 401)):
        assert new(desk, api, key="c2").status_code == code
        assert api.post(f"claims/{claim.uid}/lower", {"status": "refuted", "reason": "no"}).status_code == code
    type(desk.study).objects.filter(pk=desk.study.pk).update(visibility="private")
    assert make_caller("omar").get(f"claims/{claim.uid}").status_code == 404
    assert make_caller("omar").read("claims")["items"] == []
    assert ClaimVersion.objects.count() == 1


def test_a_list_takes_as_many_queries_for_many_claims(
    desk: Desk, mara: Api, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        desk.claim(f"k{number}")
    with django_assert_max_num_queries(12):
        assert len(mara.read("claims")["items"]) == 30


def test_if_match_lets_through_whoever_saw_what_stands(desk: Desk, mara: Api) -> None:
    """Version 1 is read and revised to 2: a second writer with "1" is answered 412 for every change, with "2" not."""
    uid = new(desk, mara).json()["uid"]
    words = {"kind": "description", "text_en": "Other words.", "reason": "clearer"}
    assert mara.get(f"claims/{uid}")["ETag"] == '"1"'
    first = mara.post(f"claims/{uid}/revise", words, If_Match='"1"')
    assert (first.status_code, first["ETag"]) == (200, '"2"')
    changes: list[tuple[str, dict[str, Any]]] = [
        ("revise", {**words, "text_en": "My words."}),
        ("lower", {"status": "refuted", "reason": "a mistake"}),
        ("withdraw", {"reason": "wrong"}),
    ]
    for name, body in changes:
        late = mara.post(f"claims/{uid}/{name}", body, If_Match='"1"')
        assert (late.status_code, late["ETag"], fields(late)) == (412, '"2"', ["If-Match"]), name
        assert late.json()["detail"].startswith("If-Match: got version 1, expected version 2, which mara wrote since")
    assert Claim.objects.get(uid=uid).versions.count() == 2
    for number, (name, body) in enumerate(changes, start=2):
        answer = mara.post(f"claims/{uid}/{name}", body, If_Match=f'"{number}"')
        assert (answer.status_code, answer["ETag"]) == (200, f'"{number + 1}"'), name


@pytest.mark.parametrize("value", ["", '"', "*", 'W/"1"', '"0"', '"-1"', '"1", "2"', "one", '"٣"', '"99999999999"'])
def test_an_if_match_that_is_no_version_is_named(desk: Desk, mara: Api, value: str) -> None:
    uid = new(desk, mara).json()["uid"]
    words = {"kind": "description", "text_en": "Other words.", "reason": "clearer"}
    answer = mara.post(f"claims/{uid}/revise", words, If_Match=value.encode().decode("latin-1"))
    assert answer.status_code == 422 and fields(answer) == ["If-Match"]
    assert Claim.objects.get(uid=uid).versions.count() == 1


def test_if_match_and_base_must_not_differ_and_one_of_the_future_is_none(desk: Desk, mara: Api) -> None:
    uid = new(desk, mara).json()["uid"]
    words = {"kind": "description", "text_en": "Other words.", "reason": "clearer"}
    both = mara.post(f"claims/{uid}/revise", {**words, "base": 2}, If_Match='"1"')
    assert both.status_code == 422 and "the same as base, 2" in both.json()["detail"]
    assert mara.post(f"claims/{uid}/withdraw", {"reason": "wrong"}, If_Match='"7"').status_code == 422


def test_the_schema_tells_of_if_match_where_it_is_read(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for name in ("revise", "lower", "withdraw"):
        found = next(item["post"] for path, item in paths.items() if path.endswith(f"/claims/{{uid}}/{name}"))
        (header,) = [item for item in found["parameters"] if item["name"] == "If-Match"]
        assert header["in"] == "header" and not header.get("required") and "412" in found["responses"]
    others = [path for path, item in paths.items() for told in item.values() if isinstance(told, dict)
              for header in told.get("parameters", []) if header["name"] == "If-Match" and "post" in item]  # fmt: skip
    assert len(others) == 3


def test_every_choice_of_evidence_has_a_name_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """The generator warns of nothing; no name is made of a field's name with a piece of a hash."""
    document.cache_clear()
    parts = document()["components"]["schemas"]
    assert capsys.readouterr().err == ""
    named = {name: item["enum"] for name, item in parts.items() if "enum" in item}
    assert not [name for name in named if re.search(r"[0-9A-F][0-9a-f]{2}Enum$", name)]
    assert named["ClaimKindEnum"] == list(ClaimVersion.KINDS) and named["FigureKindEnum"] == list(FigureVersion.KINDS)
    assert named["QueueKindEnum"] == [kind for kind in KINDS if kind != "answer"]
    assert named["SettlementEnum"] == ["confirmed", "rebound"]
    assert "ClaimKindEnum" in str(parts["ReviseBody"]["properties"]["kind"])
