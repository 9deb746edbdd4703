"""Excerpts and figures over the API: the rules of the pages, as problems that name the field."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.models import Excerpt, Figure
from runs.models import Membership, User
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller

from .desk import Desk


@pytest.fixture
def api(desk: Desk) -> Api:
    """A researcher of the study with every scope."""
    return make_caller("mara", desk.study, Membership.RESEARCHER)


def take(api: Api, key: str = "counts", exact: str = "Of 244 usable rows 92 were nonzero", **given: Any) -> Any:
    """Take an excerpt of the held text."""
    body = {"key": key, "source": "pilot.md", "form": "quote", "selector": {"exact": exact}, **given}
    return api.post("studies/pilot/excerpts", body)


def bind(api: Api, key: str, number: str, **given: Any) -> Any:
    """Bind a number of the excerpt ``counts``."""
    binding = {"type": "excerpt", "excerpt": "counts", "number": number}
    body = {"key": key, "binding": binding, "kind": "mechanism", "title_en": key, **given}
    return api.post("studies/pilot/figures", body)


def test_from_a_source_to_a_derived_figure(api: Api) -> None:
    """Taken, bound twice, derived: 92 / 244 = 23/61; read back with its versions."""
    made = take(api)
    assert made.status_code == 201 and made.json()["state"] == "found" and made.json()["first_line"] == 3
    assert bind(api, "usable", "244").status_code == bind(api, "nonzero", "92").status_code == 201
    derived = {"type": "derivation", "expression": "n / of", "figures": {"n": "nonzero", "of": "usable"}}
    body = {"key": "share", "binding": derived, "kind": "mechanism", "title_en": "Share", "style": "ratio"}
    share = api.post("studies/pilot/figures", body)
    assert share.status_code == 201, share.content
    found = api.read(share["Location"].removeprefix("/api/v1/"))
    assert (found["shown"], found["current"]["value"], len(found["versions"])) == ("92/244", "23/61", 1)
    assert [item["key"] for item in api.read("figures?study=pilot&kind=mechanism")["items"]] == [
        "share", "nonzero", "usable",
    ]  # fmt: skip
    assert api.read("excerpts?study=pilot")["items"][0]["key"] == "counts"
    assert api.read(f"excerpts/{made.json()['uid']}")["text"] == "Of 244 usable rows 92 were nonzero"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"exact": "of 244 usable"}, "got no place"),
        ({"exact": "4"}, "got 4 places"),
        ({"exact": ""}, "expected the quoted text"),
        ({"source": "absent.md"}, "the path of a source"),
        ({"selector": {"exact": "17 hours", "start": 5}}, "got an unknown member"),
        ({"selector": {"pointer": "/a"}, "form": "pointer"}, "no JSON"),
        ({"source": "claimed.pdf"}, "expected 1 to 200"),
        ({"source": "claimed.pdf", "selector": {}, "text": "x" * 201}, "got 201 characters"),
    ],
)
def test_refused_excerpts(api: Api, given: dict[str, Any], message: str) -> None:
    """Found exactly once, or not at all."""
    answer = take(api, **given)
    assert answer.status_code == 422 and message in answer.json()["detail"], answer.content
    assert not Excerpt.objects.exists()


def test_a_claimed_source_is_transcribed(api: Api) -> None:
    """At most 200 characters, and its state says so."""
    answer = take(api, source="claimed.pdf", selector={}, text="x" * 200)
    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (201, "transcribed", "transcribed")


def test_the_same_again_is_the_same(api: Api) -> None:
    """One excerpt and one version; another content under the key is refused, or needs a reason."""
    assert take(api).json()["uid"] == take(api).json()["uid"]
    assert "names another excerpt" in take(api, exact="17 hours").json()["detail"]
    assert bind(api, "usable", "244").json()["current"]["uid"] == bind(api, "usable", "244").json()["current"]["uid"]
    refused = bind(api, "usable", "92")
    assert refused.status_code == 422 and fields(refused) == ["reason"]
    again = bind(api, "usable", "92", reason="the wrong number was bound")
    assert [version["value"] for version in again.json()["versions"]] == ["244", "92"]


def test_a_value_cannot_be_given(api: Api) -> None:
    """Neither beside the binding nor in it; nor a kind that the binding does not carry."""
    take(api)
    assert fields(bind(api, "usable", "244", value="500")) == ["value"]
    assert fields(bind(api, "usable", "244", kind="effect")) == ["kind"]
    assert fields(bind(api, "usable", "244", kind="typed")) == ["kind"]
    assert not Figure.objects.exists()


def test_checks_store_nothing(api: Api) -> None:
    """A binding and a derivation can be tried; faults are problems."""
    take(api)
    bind(api, "usable", "244")
    tried = {"expression": "usable / 2 + 1", "figures": {"usable": "usable"}}
    assert api.post("studies/pilot/derivations/check", tried).json()["value"] == "123"
    zero = {"expression": "usable / (usable - usable)", "figures": {"usable": "usable"}}
    answer = api.post("studies/pilot/derivations/check", zero)
    assert answer.status_code == 422 and "divisor of 0" in answer.json()["detail"]
    absent = {"expression": "other + 1", "figures": {"other": "other"}}
    assert "expected the key of a figure" in api.post("studies/pilot/derivations/check", absent).json()["detail"]
    body = {"key": "x", "binding": {"type": "excerpt", "excerpt": "counts", "number": "92"}, "kind": "mechanism"}
    assert api.post("studies/pilot/figures/check", body).json()["shown"] == "92"
    assert Figure.objects.count() == 1


def test_recomputed_over_the_api(api: Api) -> None:
    """State and value now, and what is stored."""
    take(api)
    uid = bind(api, "usable", "244").json()["uid"]
    answer = api.post(f"figures/{uid}/recompute")
    assert answer.json() == {"state": "bound", "value": "244", "stored": "244", "trouble": ""}


def test_who_may(desk: Desk, api: Api) -> None:
    """A viewer reads, a stranger sees nothing, nobody is asked to sign in, a token without write is refused."""
    take(api)
    uid = bind(api, "usable", "244").json()["uid"]
    viewer = make_caller("vera", desk.study, Membership.VIEWER)
    assert viewer.get(f"figures/{uid}").status_code == 200
    assert take(viewer, "more").status_code == bind(viewer, "more", "92").status_code == 403
    assert viewer.post(f"figures/{uid}/recompute").status_code == 403
    User.objects.create_user("eve")
    stranger = make_caller("eve")
    assert stranger.get(f"figures/{uid}").status_code == take(stranger, "more").status_code == 404
    assert stranger.read("figures")["items"] == stranger.read("excerpts")["items"] == []
    assert take(make_caller(), "more").status_code == 401
    narrow = make_caller("mara", desk.study, Membership.RESEARCHER, scopes=("read",))
    assert take(narrow, "more").status_code == 403
