"""Sources over the API."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evidence.actions.sources import add_source
from evidence.models import Source, SourceVersion
from runs.actions.tokens import issue_token
from runs.models import Membership, Study, User
from runs.storage import blob_store
from tests.api.calls import Api, content, fields
from tests.evidence_sources.conftest import AT

DATA = b'{"rows": 999}\n'
SHA = hashlib.sha256(DATA).hexdigest()


def caller(user: User, *scopes: str) -> Api:
    """Requests with a new token of a user."""
    return Api(issue_token(user, name="test", scopes=scopes, expires_at=None, at=AT)[1])


@pytest.fixture
def mara(person: User) -> Api:
    """The researcher, who may read and write."""
    cache.clear()
    return caller(person, "read", "write")


def body(**given: Any) -> dict[str, Any]:
    """A source to take in."""
    return {"path": "r/a.json", "data_base64": base64.b64encode(DATA).decode(), **given}


def multipart(parts: dict[str, tuple[str, bytes]]) -> tuple[bytes, str]:
    """(body, its type): name -> (file name or "", bytes)."""
    found = b""
    for name, (file, data) in parts.items():
        label = f'; filename="{file}"' if file else ""
        found += f'--edge\r\nContent-Disposition: form-data; name="{name}"{label}\r\n\r\n'.encode() + data + b"\r\n"
    return found + b"--edge--\r\n", "multipart/form-data; boundary=edge"


def test_taken_in_read_listed(mara: Api, study: Study) -> None:
    """201 with the source and its place; the same again is 200 and adds nothing."""
    address = f"studies/{study.slug}/sources"
    response = mara.post(address, body(reference="R1", cutoff="2026-05-04"))
    made = response.json()
    assert response.status_code == 201 and response["Location"] == f"/api/v1/sources/{made['uid']}"
    assert (made["path"], made["state"], made["form"], made["origin"]) == ("r/a.json", "verified", "json", "upload")
    assert made["current"]["sha256"] == SHA and made["current"]["cutoff"] == "2026-05-04"
    assert mara.read(f"sources/{made['uid']}") == made
    assert mara.read("sources?state=verified")["items"] == [made]
    assert mara.read("sources?state=claimed")["items"] == []
    assert mara.read("sources?fields=path,state")["items"] == [{"path": "r/a.json", "state": "verified"}]
    assert mara.post(address, body()).status_code == 200 and SourceVersion.objects.count() == 1


def test_multipart_with_a_file(mara: Api, study: Study) -> None:
    """The file's name is not used; its bytes need not be text; a repeat with the key is the same answer."""
    raw, kind = multipart({"path": ("", b"w.bin"), "file": ("../../x.sh", b"\xff\x00\xfe")})
    for replayed in (False, True):
        response = mara.call(
            "POST", f"studies/{study.slug}/sources", raw=raw, **{"Content-Type": kind, "Idempotency-Key": "k1"}
        )
        assert response.status_code == 201 and ("Idempotency-Replayed" in response) == replayed
    assert response.json()["path"] == "w.bin" and response.json()["form"] == "binary"
    assert response.json()["current"]["sha256"] == hashlib.sha256(b"\xff\x00\xfe").hexdigest()


@pytest.mark.parametrize(
    "parts",
    [
        {"path": ("", b"a"), "other": ("f", b"x")},
        {"path": ("", b"a"), "file": ("f", b"x"), "data_base64": ("", b"eA==")},
    ],
)
def test_multipart_with_other_files_is_refused(mara: Api, study: Study, parts: dict[str, tuple[str, bytes]]) -> None:
    """One file under its name, and not both ways at once."""
    raw, kind = multipart(parts)
    response = mara.call("POST", f"studies/{study.slug}/sources", raw=raw, **{"Content-Type": kind})
    assert response.status_code == 400 and fields(response) == ["file"]


@pytest.mark.parametrize(
    ("given", "field", "status"),
    [
        ({"path": "../x"}, "path", 422),
        ({"path": None}, "path", 422),
        ({"data_base64": "***"}, "data_base64", 422),
        ({"data_base64": None}, "sha256", 422),
        ({"sha256": "0" * 64}, "sha256", 422),
        ({"size": 1}, "size", 422),
        ({"size": "many"}, "size", 422),
        ({"form": "word"}, "form", 422),
        ({"cutoff": "yesterday"}, "cutoff", 422),
        ({"title_en": 5}, "title_en", 422),
        ({"origin": "closure"}, "origin", 422),
        ({"note": "a\u0000b"}, "$.note", 400),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    mara: Api, study: Study, given: dict[str, Any], field: str, status: int
) -> None:
    """A problem that names the field; nothing is stored. The origin is not the caller's to say."""
    response = mara.post(f"studies/{study.slug}/sources", body(**given))
    assert response.status_code == status and fields(response) == [field]
    assert not Source.objects.exists()


def test_a_next_version_needs_a_reason(mara: Api, study: Study) -> None:
    """And both versions are listed, the newest first."""
    address = f"studies/{study.slug}/sources"
    uid = mara.post(address, body()).json()["uid"]
    other = base64.b64encode(DATA.replace(b"999", b"995")).decode()
    assert fields(mara.post(address, body(data_base64=other))) == ["reason"]
    assert mara.post(address, body(data_base64=other, reason="counted twice")).status_code == 201
    versions = mara.read(f"sources/{uid}/versions")["items"]
    assert [(item["number"], item["reason"]) for item in versions] == [(2, "counted twice"), (1, "")]
    found = mara.read(f"sources/{uid}/difference?before=1&after=2")
    assert found["values"] == [{"pointer": "/rows", "before": "999", "after": "995"}] and not found["equal"]
    assert [line["kind"] for line in found["lines"]] == ["removed", "added"]
    for query, status in (("", 400), ("?before=1&after=x", 400), ("?before=1&after=7", 404), ("?a=1", 400)):
        assert mara.get(f"sources/{uid}/difference{query}").status_code == status


def test_bytes_with_a_range(mara: Api, study: Study, acting: dict[str, Any]) -> None:
    """The whole, a part, not changed; 404 for a version that is not held or not there."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    address = f"sources/{version.source.uid}/versions/1/bytes"
    whole = mara.get(address)
    assert content(whole) == DATA and whole["X-Data-SHA256"] == SHA and whole["X-Content-Type-Options"] == "nosniff"
    assert whole["Content-Disposition"].startswith("attachment")
    part = mara.get(address, Range="bytes=2-5")
    assert part.status_code == 206 and content(part) == DATA[2:6]
    assert mara.get(address, If_None_Match=f'"{SHA}"').status_code == 304
    assert mara.get(f"sources/{version.source.uid}/versions/2/bytes").status_code == 404
    claimed = add_source(study, "b.json", None, sha256="a" * 64, origin="imported", **acting)
    assert mara.get(f"sources/{claimed.source.uid}/versions/1/bytes").status_code == 404


def test_a_check_says_what_it_found(mara: Api, study: Study, acting: dict[str, Any]) -> None:
    """Changed bytes: drifted with their hash."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    address = f"sources/{version.source.uid}/check"
    assert mara.post(address).json()["state"] == "verified"
    path = blob_store().path(SHA)
    path.chmod(0o644)
    path.write_bytes(b"other")
    found = mara.post(address).json()
    assert (found["state"], found["found_sha256"]) == ("drifted", hashlib.sha256(b"other").hexdigest())
    assert found["source"]["state"] == "drifted"
    assert mara.post(address, {"version": 4}).status_code == 404


def test_rights(study: Study, person: User, mara: Api, acting: dict[str, Any]) -> None:
    """Nobody: 401; a token that only reads, or a reviewer: 403; outside the study: 404 alike for absent and hidden."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    create, check = f"studies/{study.slug}/sources", f"sources/{version.source.uid}/check"
    reviewer, outside = User.objects.create(username="ada"), User.objects.create(username="eve")
    Membership.objects.create(study=study, user=reviewer, role=Membership.REVIEWER)
    for api, status in ((Api(""), 401), (caller(person, "read"), 403), (caller(reviewer, "read", "review"), 403)):
        assert api.post(create, body()).status_code == api.post(check).status_code == status
    stranger = caller(outside, "read", "write")
    assert stranger.post(create, body()).status_code == stranger.post(check).status_code == 404
    for path in ("", "/versions", "/versions/1/bytes", "/difference?before=1&after=1"):
        assert stranger.get(f"sources/{version.source.uid}{path}").status_code == 404
    assert stranger.read("sources")["items"] == [] and SourceVersion.objects.count() == 1


def test_a_longer_list_needs_no_more_queries(mara: Api, study: Study, acting: dict[str, Any]) -> None:
    """Thirty sources or one."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            mara.read("sources")
        return len(caught)

    add_source(study, "a.json", DATA, origin="upload", **acting)
    queries()
    few = queries()
    for number in range(30):
        add_source(study, f"b{number}.json", DATA, origin="upload", **acting)
    assert queries() == few <= 15
