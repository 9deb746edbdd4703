"""Pages and API of what is stale: chains, the graph, settling, rights, a number of queries that does not grow."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evidence import recording
from evidence.actions.stale import mark_changed, open_marks
from evidence.models import ExcerptHead, Figure, Source, StaleMark, StaleResolution
from evidence.presenters.claim_links import link_views
from runs.models import Membership, User
from tests.evidence_stale.rows import AT, Web


def signed_in(web: Web, name: str, role: str) -> Client:
    user = User.objects.get_or_create(username=name)[0]
    Membership.objects.get_or_create(study=web.study, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def author(web: Web) -> Client:
    cache.clear()
    return signed_in(web, "author", Membership.RESEARCHER)


@pytest.fixture
def marked(web: Web) -> Web:
    """pilot.md is superseded; nine marks."""
    newer = web.source("pilot.md", b"Of 240 usable rows.", reason="corrected")
    mark_changed("source", newer.source.uid, "superseded: the count was wrong <b>", by=web.by, at=AT)
    return web


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content[:500]
    return answer.content.decode()


def test_empty_list_says_what_fills_it(web: Web) -> None:
    html = page(Client(), "/stale/")
    assert "Nothing is stale." in html
    assert "No mark is open" in html


def test_list_shows_chains_from_cause_to_effect(marked: Web) -> None:
    """The chain of the derivation, with links; text of people is escaped; a visitor sees no form."""
    html = page(Client(), "/stale/")
    assert "Stale: 4 figures, 2 claims, 3 sections" in html
    assert "the count was wrong &lt;b&gt;" in html
    row = next(part for part in html.split("<tr>") if f"{marked.figures['rate'].uid}/" in part and "chain" in part)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row.split('<ol class="chain">')[1].split("</ol>")[0])).strip()
    assert words == "source R1 quotation usable figure usable figure rate"
    assert reverse("evidence:figure", args=[marked.figures["rate"].uid]) in row
    assert 'name="mark"' not in html
    assert "Sign in" in html


def test_kinds_states_and_studies_narrow(marked: Web, author: Client) -> None:
    html = page(author, "/stale/?kind=claim")
    assert html.count('name="mark"') == 2
    assert page(author, "/stale/?study=web&kind=section").count('name="mark"') == 3
    assert "No mark has been settled yet." in page(author, "/stale/?state=settled")
    for wrong in ("?kind=planet", "?state=maybe", "?study=none"):
        assert author.get(f"/stale/{wrong}").status_code == 404


def test_a_person_confirms_several_with_one_note(marked: Web, author: Client) -> None:
    marked.source("pilot.md", b"As before: 244 usable, 92 were nonzero, 17 hours.", reason="put right")
    chosen = list(open_marks().filter(target_kind="claim"))
    body = {"mark": [str(mark.uid) for mark in chosen], "note": "The sentences stand.", "next": "/stale/?kind=claim"}
    answer = author.post("/stale/confirm/", body, follow=True)
    assert answer.redirect_chain == [("/stale/?kind=claim", 302)]
    assert "2 marks are settled." in answer.content.decode()
    assert set(StaleResolution.objects.values_list("how", "note")) == {("confirmed", "The sentences stand.")}
    html = page(author, "/stale/?state=settled")
    assert "The sentences stand." in html
    again = author.post("/stale/confirm/", body, follow=True).content.decode()
    assert "which is settled" in again


@pytest.mark.parametrize(
    ("body", "said"),
    [({"note": "fine"}, "choose what you confirm"), ({"mark": "MARK", "note": " "}, "note: got 0 characters")],
)
def test_refusals_change_nothing(marked: Web, author: Client, body: dict[str, str], said: str) -> None:
    given = {name: str(open_marks()[0].uid) if value == "MARK" else value for name, value in body.items()}
    assert said in author.post("/stale/confirm/", given, follow=True).content.decode()
    assert not StaleResolution.objects.exists()


def test_who_may_settle(marked: Web) -> None:
    """A visitor signs in first; a viewer is refused; an address elsewhere is not followed."""
    marked.source("pilot.md", b"As before: 244 usable, 92 were nonzero, 17 hours.", reason="put right")
    body = {"mark": str(open_marks()[0].uid), "note": "fine by me", "next": "https://example.org/"}
    assert Client().post("/stale/confirm/", body).status_code == 302
    assert signed_in(marked, "viewer", Membership.VIEWER).post("/stale/confirm/", body).status_code == 403
    assert not StaleResolution.objects.exists()
    assert signed_in(marked, "other", Membership.RESEARCHER).post("/stale/confirm/", body).url == "/stale/"  # type: ignore[attr-defined]
    assert StaleResolution.objects.count() == 1


def test_what_has_lost_its_quotation_is_not_confirmed(marked: Web, author: Client) -> None:
    """``usable`` and ``linked`` rest on quotations that version 2 does not hold: page and API say what to do."""
    for key, uid in (("usable", marked.figures["usable"].uid), ("linked", marked.claims["linked"].uid)):
        mark = open_marks().get(target_uid=uid)
        body = {"mark": [str(mark.uid)], "note": "It stands."}
        said = author.post("/stale/confirm/", body, follow=True).content.decode()
        assert "bind the figure to what it is now" in said, key
        answer = post(author, f"/api/v1/stale-marks/{mark.uid}/settle", {"note": "It stands."}, key)
        assert answer.status_code == 422 and "expected rebound" in answer.content.decode()
    assert not StaleResolution.objects.exists()


def test_nothing_is_called_right_while_a_figure_does_not_recompute(web: Web) -> None:
    Figure.objects.filter(key="usable").update(state=Figure.DRIFTED)
    html = page(Client(), "/stale/")
    assert "No mark is open, but 1 figure does not recompute, 1 claim rests on lost evidence." in html
    assert "Nothing is stale" not in html and "rests on what it was bound to" not in html


def test_a_claim_shows_a_lost_quotation_as_orphan(web: Web) -> None:
    claim = web.claims["linked"]
    (before,) = link_views(claim)
    assert before.state is not None and before.state.tone == "verified"
    ExcerptHead.objects.filter(excerpt__key="hours").update(state=ExcerptHead.ORPHAN)
    (after,) = link_views(claim)
    assert after.state is not None and (after.state.tone, "not found" in str(after.state.word)) == ("failed", True)


def test_the_first_page_names_changed_evidence_to_who_may_bind_it(marked: Web, author: Client) -> None:
    html = page(author, "/")
    assert "4 stale or drifted figures" in html and "2 stale claims" in html and "Nothing needs a look." not in html
    assert "stale or drifted figure" not in page(signed_in(marked, "viewer", Membership.VIEWER), "/")


def test_graph_is_drawn_linked_and_told(marked: Web) -> None:
    """Ten boxes (one is the cause), an edge to each of the others, links with names, the same as a list."""
    source = Source.objects.get(path="pilot.md")
    html = page(Client(), f"/stale/graph/source/{source.uid}/")
    assert "9 things rest on R1" in html
    assert html.count('<path class="edge"') == 12  # three quotations and nine dependants
    assert html.count('<g class="node') == 13
    assert html.count("marked") >= 9
    assert 'aria-label="claim share, stale"' in html
    assert html.count('<ol class="chain">') == 9
    assert "style=" not in html.split("<main")[1]


def test_graph_of_what_carries_nothing_and_of_nothing(web: Web) -> None:
    assert "Nothing rests on hours" in page(Client(), f"/stale/graph/figure/{web.figures['hours'].uid}/")
    assert Client().get(f"/stale/graph/planet/{web.study.uid}/").status_code == 404
    assert Client().get(f"/stale/graph/figure/{web.study.uid}/").status_code == 404


def test_hidden_studies_stay_hidden(marked: Web) -> None:
    marked.study.visibility = "private"
    marked.study.save()
    source = Source.objects.get(path="pilot.md")
    assert "Nothing is stale." in page(Client(), "/stale/")
    assert Client().get(f"/stale/graph/source/{source.uid}/").status_code == 404
    assert Client().get(f"/api/v1/dependants?kind=source&uid={source.uid}").status_code == 404
    assert Client().get("/api/v1/stale-marks").json()["items"] == []


def test_queries_do_not_grow_with_marks(marked: Web, author: Client) -> None:
    """One more chain of twenty derivations costs no query more, on the list and on the graph."""
    source = Source.objects.get(path="pilot.md")
    addresses = ("/stale/", f"/stale/graph/source/{source.uid}/", "/api/v1/stale-marks")

    def measured() -> list[int]:
        found = []
        for address in addresses:
            author.get(address)
            with CaptureQueriesContext(connection) as queries:
                author.get(address)
            found.append(len(queries))
        return found

    before = measured()
    last = "rate"
    for number in range(20):
        binding = {"type": "derivation", "expression": "x", "figures": {"x": last}}
        last = f"d{number}"
        marked.figure(last, binding, "1")
    assert mark_changed("source", source.uid, "once more", by=marked.by, at=AT) == 20
    assert measured() == before


def test_recording_is_asked_for(web: Web, author: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button sends a message for one study; a viewer may not."""
    sent: list[Any] = []
    monkeypatch.setattr(recording.app, "send_task", lambda name, args, **more: sent.append((name, args)))
    monkeypatch.setattr(recording.transaction, "on_commit", lambda function, robust: function())
    assert "Look at the evidence now" in page(author, "/stale/?study=web")
    assert author.post("/stale/record/", {"study": "web"}).status_code == 302
    assert sent == [("worker.tasks.record_evidence", [web.study.pk, web.by.pk])]
    assert signed_in(web, "viewer", Membership.VIEWER).post("/stale/record/", {"study": "web"}).status_code == 403
    assert author.post("/stale/record/", {}).status_code == 404
    assert len(sent) == 1


def post(client: Client, address: str, body: dict[str, Any], key: str) -> Any:
    return client.post(
        address, json.dumps(body), content_type="application/json", headers={"Idempotency-Key": f"key-{key}"}
    )


def test_api_lists_reads_and_settles(marked: Web, author: Client) -> None:
    """The same rules as on the page: a note, a person, open marks only."""
    marked.source("pilot.md", b"As before: 244 usable, 92 were nonzero, 17 hours.", reason="put right")
    items = author.get("/api/v1/stale-marks?target_kind=claim&open=true").json()["items"]
    assert {item["cause_kind"] for item in items} == {"source"}
    assert len(items) == 2
    uid = items[0]["uid"]
    refused = post(author, f"/api/v1/stale-marks/{uid}/settle", {"how": "confirmed"}, "none")
    assert (refused.status_code, "note: got 0 characters" in refused.content.decode()) == (422, True)
    rebound = post(author, f"/api/v1/stale-marks/{uid}/settle", {"how": "rebound"}, "rebound")
    assert (rebound.status_code, "still rests on what changed" in rebound.content.decode()) == (422, True)
    settled = post(author, f"/api/v1/stale-marks/{uid}/settle", {"note": "It stands."}, "settled")
    assert settled.status_code == 200, settled.content
    assert settled.json()["resolution"]["how"] == "confirmed"
    assert author.get(f"/api/v1/stale-marks/{uid}").json()["resolution"]["note"] == "It stands."
    assert len(author.get("/api/v1/stale-marks?open=false").json()["items"]) == 1
    viewer = signed_in(marked, "viewer", Membership.VIEWER)
    other = StaleMark.objects.filter(resolution__isnull=True)[0].uid
    assert post(viewer, f"/api/v1/stale-marks/{other}/settle", {"note": "It stands."}, "viewer").status_code == 403


def test_api_says_what_rests_on_it(web: Web) -> None:
    uid = web.figures["usable"].uid
    found = Client().get(f"/api/v1/dependants?kind=figure&uid={uid}").json()
    assert {item["kind"] for item in found["dependants"]} == {"figure", "claim", "section"}
    assert all(item["path"][0] == ["figure", str(uid)] for item in found["dependants"])
    assert Client().get("/api/v1/dependants?kind=figure").status_code == 400
    assert Client().get(f"/api/v1/dependants?kind=planet&uid={uid}").status_code == 400
