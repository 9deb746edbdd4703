"""Notes over the API: read, checked, saved once, listed; refusals name every fault."""

from __future__ import annotations

import pytest

from evidence.models import AcceptanceContract, NotesVersion
from runs.models import Membership
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller

from .build import Desk, said, whole

NOTES = "studies/pilot/notes"


@pytest.fixture
def api(written: Desk) -> Api:
    """A researcher of the study with every scope."""
    return make_caller("mara", written.study, Membership.RESEARCHER)


def test_notes_are_read_put_and_listed(api: Api) -> None:
    found = api.read(NOTES)
    assert found["number"] == 1 and found["document"]["schema"] == "workbench.notes/1"
    changed = whole(subtitle=said("Another", "另外"))
    made = api.call("PUT", NOTES, {"document": changed, "reason": "clearer", "base": 1})
    assert made.status_code == 200 and made.json()["number"] == 2
    assert [row["number"] for row in api.read(f"{NOTES}/versions")["items"]] == [2, 1]
    assert api.read(f"{NOTES}/versions/1")["document"]["subtitle"]["en"] == "A pilot"
    assert api.get(f"{NOTES}/versions/3").status_code == 404


def test_a_post_saves_once_for_each_key(api: Api) -> None:
    body = {"document": whole(subtitle=said("Another")), "reason": "clearer", "base": 1}
    first = api.post(f"{NOTES}/versions", body, Idempotency_Key="one")
    again = api.post(f"{NOTES}/versions", body, Idempotency_Key="one")
    assert first.status_code == again.status_code == 201 and first.json() == again.json()
    assert first["Location"] == f"/api/v1/{NOTES}/versions/2" and NotesVersion.objects.count() == 2


def test_every_fault_is_named_and_nothing_is_stored(api: Api) -> None:
    wrong = whole(title=said("It gained 12 points", "提升了两成"))
    for answer in (api.call("PUT", NOTES, {"document": wrong}), api.post(f"{NOTES}/versions", {"document": wrong})):
        assert answer.status_code == 422 and fields(answer) == ["title.en", "title.zh"]
    checked = api.post(f"{NOTES}/check", {"document": wrong}).json()
    assert not checked["valid"] and [item["field"] for item in checked["problems"]] == ["title.en", "title.zh"]
    assert api.post(f"{NOTES}/check", {"document": whole()}).json() == {"valid": True, "problems": []}
    assert fields(api.post(f"{NOTES}/versions", {"document": "x"})) == ["document"]
    assert NotesVersion.objects.count() == 1


def test_another_version_meanwhile_is_a_conflict(api: Api) -> None:
    body = {"document": whole(subtitle=said("Mine")), "reason": "mine", "base": 0}
    assert api.call("PUT", NOTES, body).status_code == 409
    assert api.post(f"{NOTES}/versions", body).status_code == 409


def test_a_reader_may_not_write_and_a_stranger_sees_nothing(api: Api, written: Desk) -> None:
    reader = make_caller("rui", written.study, Membership.REVIEWER)
    body = {"document": whole(subtitle=said("Mine")), "reason": "mine"}
    assert reader.read(NOTES)["number"] == 1
    assert reader.call("PUT", NOTES, body).status_code == reader.post(f"{NOTES}/versions", body).status_code == 403
    assert Api("").call("PUT", NOTES, body).status_code == 401
    written.study.visibility = "private"
    written.study.save(update_fields=["visibility"])
    assert Api("").get(NOTES).status_code == 404


def test_contracts_are_recorded_and_listed(api: Api) -> None:
    refused = api.post(f"{NOTES}/contracts", {"status": "accepted", "assurance": "results"})
    assert refused.status_code == 422 and fields(refused) == ["manuscript_sha256"]
    made = api.post(
        f"{NOTES}/contracts", {"status": "accepted", "assurance": "results", "manuscript_sha256": "ab" * 32}
    )
    assert made.status_code == 201 and api.read(f"{NOTES}/contracts")["items"][0]["uid"] == made.json()["uid"]
    assert AcceptanceContract.objects.count() == 1
