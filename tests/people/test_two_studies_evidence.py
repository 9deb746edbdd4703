"""Two studies and their evidence: who belongs to one finds, counts and follows nothing of the other's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evidence import queue
from evidence.actions.claims import add_claim
from evidence.actions.figures import bind_figure
from evidence.actions.links import add_link
from evidence.actions.sources import add_source, check_version
from evidence.frame import counts
from evidence.models import Claim, Excerpt, Figure, Link, NotesVersion, Review, Source, StaleMark
from runs.access import Principal, visible
from runs.actions.actors import person_actor
from runs.errors import DomainError
from runs.models import PlanVersion, Receipt, Study
from runs.presenters.search import find
from tests.people.conftest import Place
from tests.sweeps import sweep

pytestmark = pytest.mark.django_db
PAGES = ("/sources/", "/figures/", "/claims/", "/reviews/", "/stale/", "/now/live/", "/")
LISTS = ("sources", "excerpts", "figures", "claims", "links", "reviews", "reviews/queue", "stale-marks")
# Names of ``Place.parts`` that tell of the private study's evidence, and words of it.
NAMES = (
    "study", "source", "source_sha", "excerpt", "figure", "claim", "link", "review", "mark", "notes_sha", "figure_key",
)  # fmt: skip
WORDS = ("usable rows", "carry a signal", "Credit for edits", "does not reach that far")
ABSENT = "00000000-0000-5000-8000-000000000000"


@pytest.fixture
def stranger(place: Place) -> Client:
    """Signed in; admin of the other study."""
    client = Client()
    client.force_login(place.people["stranger"])
    return client


@pytest.fixture
def other(place: Place) -> Study:
    """The stranger's own study."""
    return Study.objects.get(slug="elsewhere")


def _by(place: Place) -> dict[str, Any]:
    return {"by": person_actor(place.people["stranger"]), "at": timezone.now()}


def _told(place: Place, answer: Any, asked: str = "") -> list[str]:
    """What the body says of the private study's evidence, but what the caller asked for by name."""
    text = answer.content.decode().replace("study run fatal-mask-pair", "").replace("study:fatal-mask-pair", "")
    found = [name for name in NAMES if str(place.parts[name]) in text and str(place.parts[name]) not in asked]
    return found + [word for word in WORDS if word in text and word not in asked]


def _ask(place: Place, role: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {place.secrets[role]}"}
    if body is None:
        return Client().get(f"/api/v1/{path}", headers=headers)
    return Client().post(f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=headers)


@pytest.mark.parametrize("address", PAGES)
def test_pages_tell_nothing(place: Place, stranger: Client, client: Client, address: str) -> None:
    for caller in (stranger, client):
        answer = caller.get(address)
        assert answer.status_code == 200 and _told(place, answer) == []


@pytest.mark.parametrize("address", PAGES[:5])
def test_the_same_pages_tell_a_member(place: Place, address: str) -> None:
    """The check above can fail."""
    member = Client()
    member.force_login(place.people["viewer"])
    assert _told(place, member.get(address))


@pytest.mark.parametrize(
    "address",
    [
        "/sources/?state=claimed", "/sources/?q=pilot", "/figures/?q=usable", "/figures/?state=drifted",
        "/claims/?q=signal", "/claims/?flag=stale", "/reviews/?kind=link", "/stale/?state=settled",
        "/figures/search.json?study=elsewhere&q=pilot", "/figures/new/?study=elsewhere&figure=pilot.share",
        "/figures/new/?study=elsewhere&excerpt=counts", "/sources/new/", "/claims/new/?study=elsewhere",
        "/studies/elsewhere/notes/", "/studies/elsewhere/notes/edit/", "/studies/elsewhere/journal/",
        "/studies/elsewhere/export/",
    ],
)  # fmt: skip
def test_filters_and_own_pages_open_no_door(place: Place, stranger: Client, address: str) -> None:
    answer = stranger.get(address)
    assert answer.status_code == 200
    assert _told(place, answer, asked=address) == []


@pytest.mark.parametrize("path", LISTS)
def test_api_lists_tell_nothing(place: Place, path: str) -> None:
    answer = _ask(place, "stranger", path)
    assert answer.status_code == 200 and answer.json()["items"] == [] and _told(place, answer) == []
    assert Client().get(f"/api/v1/{path}").json()["items"] == []
    assert _ask(place, "viewer", path).json()["items"]


@pytest.mark.parametrize(
    "path",
    [
        "sources?study={study}", "sources?sha256={source_sha}", "excerpts?source={source}", "figures?key={figure_key}",
        "claims?study={study}", "links?claim={claim}", "reviews?claim={claim}", "stale-marks?cause={source}",
    ],
)  # fmt: skip
def test_api_filters_tell_nothing(place: Place, path: str) -> None:
    asked = path.format(**place.parts)
    answer = _ask(place, "stranger", asked)
    assert answer.status_code == 200 and answer.json()["items"] == []
    assert answer.json()["upto"] == 0 and _told(place, answer) == []


def test_counts_are_of_what_one_sees(place: Place, stranger: Client) -> None:
    """The stranger's study has no evidence: rail, queue and rows of every kind count nothing."""
    principal = Principal(place.people["stranger"])
    assert set(counts(principal).values()) <= {0, None}
    assert sum(queue.counts(principal).values()) == 0 and sum(queue.counts(Principal(None)).values()) == 0
    assert sum(queue.counts(Principal(place.people["viewer"])).values()) > 0
    assert _ask(place, "stranger", "reviews/queue").json()["counts"].keys() == {*queue.KINDS}
    assert set(_ask(place, "stranger", "reviews/queue").json()["counts"].values()) == {0}
    models: tuple[Any, ...] = (Source, Excerpt, Figure, Claim, Link, Review, StaleMark, NotesVersion)
    for model in models:
        assert visible(Principal(place.people["viewer"]), model._default_manager.all(), "study").exists()
        assert not visible(principal, model._default_manager.all(), "study").exists()


@pytest.mark.parametrize("name", sweep(NAMES, 4))
def test_search_finds_nothing(place: Place, stranger: Client, name: str) -> None:
    text = str(place.parts[name])
    for query in (text, text[:12]):
        assert find(Principal(place.people["stranger"]), query) == [] and find(Principal(None), query) == []
        assert _told(place, stranger.get("/search/", {"q": query}), asked=query) == []


def test_what_is_hidden_is_answered_like_what_is_absent(place: Place, stranger: Client) -> None:
    """Status and body are the same, so that asking tells nothing."""
    for name, address in (
        ("source", "/sources/{}/"), ("figure", "/figures/{}/"), ("figure", "/figures/{}/card/"),
        ("claim", "/claims/{}/"), ("link", "/reviews/link:{}/"), ("review", "/reviews/answer:{}/"),
        ("source", "/stale/graph/source/{}/"), ("excerpt", "/stale/graph/excerpt/{}/"),
        ("figure", "/stale/graph/figure/{}/"), ("claim", "/stale/graph/claim/{}/"),
        ("version_uid", "/stale/graph/plan/{}/"),
    ):  # fmt: skip
        hidden, nothing = stranger.get(address.format(place.parts[name])), stranger.get(address.format(ABSENT))
        assert hidden.status_code == nothing.status_code == 404, address
        assert hidden.content == nothing.content, address
    for name, path in (
        ("source", "sources/{}"), ("excerpt", "excerpts/{}"), ("figure", "figures/{}"), ("claim", "claims/{}"),
        ("link", "links/{}"), ("review", "reviews/{}"), ("mark", "stale-marks/{}"),
        ("source", "dependants?kind=source&uid={}"), ("claim", "dependants?kind=claim&uid={}"),
    ):  # fmt: skip
        hidden, nothing = (
            _ask(place, "stranger", path.format(place.parts[name])),
            _ask(place, "stranger", path.format(ABSENT)),
        )
        assert hidden.status_code == nothing.status_code == 404, path
        assert hidden.json()["detail"].replace(str(place.parts[name]), ABSENT) == nothing.json()["detail"], path


def test_no_evidence_of_one_study_is_used_in_the_other(place: Place, other: Study) -> None:
    """Names, rows, receipts and plans of the private study are as if they did not exist."""
    parts, by = place.parts, _by(place)
    receipt = Receipt.objects.filter(stream=f"run:{parts['run']}").first()
    assert receipt is not None
    for binding in (
        {"type": "excerpt", "excerpt": "counts", "number": "244"},
        {"type": "pointer", "source": "pilot.md", "pointer": "/a"},
        {"type": "derivation", "expression": "a", "figures": {"a": "pilot.usable"}},
        {"type": "receipt", "sha256": receipt.sha256, "pointer": "/seq"},
    ):
        with pytest.raises(DomainError) as refused:
            bind_figure(other, "theirs", binding, title_en="Theirs", kind="mechanism", **by)
        assert "fatal-mask-pair" not in str(refused.value)
    version = PlanVersion.objects.get(sha256=parts["plan_sha"])
    fills = {"type": "pending", "fills": {"words_en": "later"}}
    with pytest.raises(DomainError, match="plan_version"):
        bind_figure(other, "theirs", fills, title_en="T", kind="effect", plan_version=version, **by)
    with pytest.raises(DomainError, match="plan_version"):
        add_claim(other, "theirs", text_en="Rows were read.", kind="description", plan_version=version, **by)
    with pytest.raises(DomainError, match=r"pilot\.usable"):
        add_claim(other, "theirs", text_en="[[pilot.usable]] rows were read.", kind="description", **by)
    claim = add_claim(other, "theirs", text_en="Rows were read.", kind="description", **by).claim
    with pytest.raises(DomainError, match="another study"):
        add_link(claim, figure=Figure.objects.get(uid=parts["figure"]), relation="background", **by)
    for body in ({"excerpt": "counts"}, {"figure": "pilot.usable"}):
        answer = _ask(place, "stranger", f"claims/{claim.uid}/links", {**body, "relation": "background"})
        assert answer.status_code == 422 and _told(place, answer, asked=str(body)) == []
    answer = _ask(
        place, "stranger", f"claims/{claim.uid}/links", {"figure": str(parts["figure"]), "relation": "background"}
    )
    assert answer.status_code == 422


def test_a_hash_of_the_other_study_opens_no_bytes(place: Place, stranger: Client, other: Study) -> None:
    """Naming the hash of bytes that the store holds for another study records a claim, and shows no byte."""
    sha256 = place.parts["source_sha"]
    version = add_source(other, "guess.md", None, origin=Source.IMPORTED, sha256=sha256, **_by(place))
    assert not version.held and check_version(version, **_by(place)) == Source.CLAIMED
    page = stranger.get(f"/sources/{version.source.uid}/")
    assert page.status_code == 200 and "usable rows" not in page.content.decode()
    assert stranger.get(f"/sources/{version.source.uid}/bytes/1/").status_code == 404
    assert _ask(place, "stranger", f"sources/{version.source.uid}/versions/1/bytes").status_code == 404
    body = {"key": "guess", "source": "guess.md", "form": "quote", "selector": {"exact": "244 usable rows"}}
    made = _ask(place, "stranger", "studies/elsewhere/excerpts", body)
    assert made.status_code == 422, "an excerpt of bytes that are not held is transcribed, never matched"
    assert _told(place, stranger.get(f"/stale/graph/source/{version.source.uid}/")) == []


def test_anchors_of_the_other_study_leave_in_no_export(place: Place, stranger: Client) -> None:
    """Heads, bundles and crates count every stream of the server; a site holds only the study."""
    for path in ("heads", "studies/elsewhere/export/bundle", "studies/elsewhere/export/crate"):
        answer = _ask(place, "stranger", path)
        assert answer.status_code == 403 and str(place.parts["run"]) not in answer.content.decode()
    for form in ("bundle", "crate"):
        assert stranger.post(f"/studies/elsewhere/export/{form}/").status_code == 403
    answer = _ask(place, "stranger", "studies/elsewhere/export/site")
    data = b"".join(answer.streaming_content)
    assert answer.status_code == 200
    assert not [name for name in NAMES if str(place.parts[name]).encode() in data]


def test_the_stranger_may_settle_and_take_nothing(place: Place, stranger: Client) -> None:
    """Forms that name rows of the other study in their body, beside an own study in the address."""
    answer = stranger.post("/stale/confirm/", {"mark": [str(place.parts["mark"])], "note": "it still holds"})
    assert answer.status_code == 404
    stranger.post("/reviews/take/", {})
    assert not StaleMark.objects.filter(resolution__isnull=False, uid=place.parts["mark"]).exists()
    taken = _ask(place, "stranger", "reviews/queue/take", {})
    assert taken.status_code in (403, 404) and _told(place, taken) == []
