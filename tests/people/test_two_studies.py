"""Two studies: who belongs to one finds nothing of the other, whichever way they ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.access import Principal, capabilities, study_of, visible
from runs.actions.members import add_role, remove_role
from runs.actions.plans import save_draft
from runs.actions.studies import set_visibility
from runs.actions.tokens import issue_token, revoke_token
from runs.models import Job, Plan, Receipt, Run, RunHead, Study, Turn, UpdateBatch, User
from runs.presenters.search import find
from runs.streams import study_of_stream
from runs.visibility import visible_checkpoints, visible_heads, visible_receipts
from tests.people.conftest import Place
from tests.sweeps import sweep

pytestmark = pytest.mark.django_db
Ask = Callable[[str], Any]
LISTS = (
    "/",
    "/now/live/",
    "/plans/",
    "/runs/",
    "/evaluations/",
    "/checkpoints/",
    "/receipts/",
    "/jobs/",
    "/task-sets/",
    "/environments/",
    "/models/",
    "/compare/",
    "/groups/",
    "/trajectories/",
    "/tasks/",
)
API_LISTS = (
    "studies",
    "plans",
    "executions",
    "runs",
    "jobs",
    "groups",
    "trajectories",
    "captures",
    "checkpoints",
    "evaluations",
    "task-sets",
    "tasks",
    "receipts",
    "streams",
)
# Names of ``Place.parts`` that tell of the private study.
TELLING = (
    "study", "study_uid", "plan_uid", "plan_sha", "execution", "run", "run_name", "group", "trajectory", "capture",
    "receipt", "adapter", "job", "task_set", "task",
)  # fmt: skip


@pytest.fixture
def stranger(place: Place) -> Client:
    """Signed in; admin of the other study."""
    client = Client()
    client.force_login(place.people["stranger"])
    return client


def _told(place: Place, answer: Any, *, asked: str = "") -> list[str]:
    """What the body says of the private study. ``asked``: a text that the page repeats from its own address."""
    text = answer.content.decode()
    for example in (
        "study run fatal-mask-pair",
        "study:fatal-mask-pair",
        "run:e3-s17",
    ):  # of a command and of a query: fixed texts
        text = text.replace(example, "")
    return [n for n in TELLING if str(place.parts[n]) in text and str(place.parts[n]) not in asked]


@pytest.mark.parametrize("address", LISTS)
def test_lists_tell_nothing(place: Place, stranger: Client, client: Client, address: str) -> None:
    for caller in (stranger, client):
        answer = caller.get(address)
        assert answer.status_code == 200 and _told(place, answer) == []


@pytest.mark.parametrize("address", LISTS)
def test_the_same_lists_tell_a_member(place: Place, address: str) -> None:
    """The check above can fail: a viewer's pages name at least one of the same things."""
    member = Client()
    member.force_login(place.people["viewer"])
    if address not in ("/now/live/",):
        assert _told(place, member.get(address))


def test_counts_in_the_rail_are_of_what_one_sees(place: Place, stranger: Client) -> None:
    """The stranger's study holds one receipt and no more; the private study's hundreds of rows count nothing."""
    frame = stranger.get("/runs/").context["frame"]
    counts = {str(item.url): item.count for item in frame.nav}
    assert [study.slug for study in frame.studies] == ["elsewhere"]
    assert (counts["/runs/"], counts["/plans/"], counts["/evaluations/"], counts["/checkpoints/"]) == (0, 0, 0, 0)
    assert counts["/receipts/"] == 1 and counts["/jobs/"] == 0 and counts["/"] is None


@pytest.mark.parametrize("name", sweep(TELLING, ("study", "run_name", "group", "adapter")))
def test_search_finds_nothing_by_name_uid_or_hash(place: Place, stranger: Client, name: str) -> None:
    text = str(place.parts[name])
    nobody, member = Principal(None), Principal(place.people["viewer"])
    for query in (text, text[:12]):
        assert find(Principal(place.people["stranger"]), query) == []
        assert find(nobody, query) == []
        assert _told(place, stranger.get("/search/", {"q": query}), asked=query) == []
    if name not in ("study_uid", "plan_uid", "execution", "task_set", "task"):
        assert find(member, text)


@pytest.mark.parametrize(
    "query",
    sweep(
        [
            "state=running",
            "state=errored",
            "q=is:running",
            "q=arm:e3",
            "q=has:fatal",
            "condition=stress",
            "arm=e3&split=test",
            "stream=",
            "q=stream:run:*",
            "q=is:held",
            "q=sort:-created",
        ],
        ("state=errored", "q=arm:e3", "stream=", "q=is:held"),
    ),
)
def test_filters_open_no_door(place: Place, stranger: Client, query: str) -> None:
    lists = ("runs", "jobs", "evaluations", "receipts", "groups", "trajectories", "tasks", "checkpoints")
    for address in (f"/{name}/" for name in lists):
        assert _told(place, stranger.get(f"{address}?{query}")) == []


def _ask(place: Place, role: str, path: str) -> Any:
    return Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {place.secrets[role]}"})


@pytest.mark.parametrize("path", API_LISTS)
def test_api_lists_tell_nothing(place: Place, path: str) -> None:
    answer = _ask(place, "stranger", path)
    assert answer.status_code == 200 and _told(place, answer) == []
    assert Client().get(f"/api/v1/{path}").json()["items"] == []
    assert json.loads(_ask(place, "viewer", path).content)["items"]


@pytest.mark.parametrize(
    "query",
    [
        "groups?run={run}",
        "trajectories?group={group}",
        "jobs?run={run}",
        "jobs?execution={execution}",
        "runs?plan={plan_uid}",
        "evaluations?run={run}",
        "checkpoints?run={run}",
        "receipts?stream=run:{run}",
        "tasks?task_set={task_set_uid}",
        "captures?trajectory={trajectory}",
        "events?run={run}",
        "events?plan={plan_uid}",
        "events?study={study}",
        "events?execution={execution}",
        "plans/{plan_uid}/difference?against={draft_uid}",
    ],
)
def test_api_filters_and_events_tell_nothing(place: Place, query: str) -> None:
    """An empty list, a 404 or a refused filter; never a row, and the same for what does not exist."""
    asked = query.format(**place.parts)
    answer = _ask(place, "stranger", asked)
    assert answer.status_code in (200, 400, 404)
    assert _told(place, answer, asked=f"{asked}{answer.request['PATH_INFO']}") == []
    if answer.status_code == 200:
        assert answer.json().get("items", answer.json().get("events")) == []


def test_what_is_hidden_is_answered_like_what_is_absent(place: Place, stranger: Client) -> None:
    """Status and body are the same, so that asking tells nothing."""
    absent = "00000000-0000-5000-8000-000000000000"
    for address in ("/runs/{}/", "/groups/{}/", "/trajectories/{}/", "/jobs/{}/"):
        hidden = stranger.get(
            address.format(place.parts[address.split("/")[1].rstrip("s").replace("trajectorie", "trajectory")])
        )
        nothing = stranger.get(address.format(absent))
        assert hidden.status_code == nothing.status_code == 404
        assert hidden.content == nothing.content
    hidden = _ask(place, "stranger", f"runs/{place.parts['run']}")
    nothing = _ask(place, "stranger", f"runs/{absent}")
    assert hidden.json()["detail"] == nothing.json()["detail"]


def test_a_member_of_this_study_sees_nothing_of_the_other(place: Place) -> None:
    """The other way round: the admin of the private study asks for the stranger's draft."""
    other = Study.objects.get(slug="elsewhere")
    by = other.created_by
    plan = save_draft(other, "theirs", "secret: text-of-elsewhere", by=by, at=timezone.now())
    admin = Client()
    admin.force_login(place.people["admin"])
    assert admin.get(f"/studies/elsewhere/plans/{plan.slug}/").status_code == 404
    assert admin.get("/studies/elsewhere/people/").status_code == 404
    assert admin.post("/studies/elsewhere/people/add/", {"user": "admin", "role": "admin"}).status_code == 404
    assert admin.get("/studies/elsewhere/audit/").status_code == 404
    assert admin.get(f"/receipts/?stream=study:{other.uid}").status_code == 404
    assert "theirs" not in admin.get("/plans/").content.decode()
    assert _ask(place, "admin", f"plans/{plan.uid}").status_code == 404
    assert not capabilities(Principal(place.people["admin"]), other)


def test_internal_is_for_whoever_signs_in_and_public_for_all(place: Place, client: Client, stranger: Client) -> None:
    run, site = f"/runs/{place.parts['run']}/", place.people["site"]
    for value, signed_in, anonymous in (("internal", 200, 404), ("public", 200, 200), ("private", 404, 404)):
        set_visibility(place.world.study, value, by=site, at=timezone.now())
        assert (stranger.get(run).status_code, client.get(run).status_code) == (signed_in, anonymous), value
        assert stranger.post(f"{run}pause/").status_code == (404 if value == "private" else 403)
    assert RunHead.objects.get(run__uid=place.parts["run"]).state == "running"


def test_a_role_that_is_lost_is_lost_to_the_token_too(place: Place) -> None:
    """Rights are looked up with every request, so no token outlives the role behind it."""
    site, viewer = place.people["site"], place.people["viewer"]
    assert _ask(place, "viewer", f"runs/{place.parts['run']}").status_code == 200
    remove_role(place.world.study, viewer, "viewer", by=site, at=timezone.now())
    assert _ask(place, "viewer", f"runs/{place.parts['run']}").status_code == 404
    add_role(place.world.study, viewer, "viewer", by=site, at=timezone.now())
    assert _ask(place, "viewer", f"runs/{place.parts['run']}").status_code == 200


@pytest.mark.parametrize(
    ("scopes", "reads", "pauses"),
    [(["read"], 200, 403), (["log"], 200, 403), (["review"], 200, 403), (["admin"], 200, 403), (["write"], 200, 200)],
)
def test_scopes_narrow_what_a_token_may_do(place: Place, scopes: list[str], reads: int, pauses: int) -> None:
    """The researcher may pause a run; a token of theirs only with the scope write."""
    now = timezone.now()
    secret = issue_token(place.people["researcher"], name="n", scopes=scopes, expires_at=None, at=now)[1]
    headers = {"Authorization": f"Bearer {secret}"}
    run = f"/api/v1/runs/{place.parts['run']}"
    assert Client().get(run, headers=headers).status_code == reads
    assert Client().post(f"{run}/pause", content_type="application/json", headers=headers).status_code == pauses


def test_a_site_admin_without_the_scope_admin_is_an_ordinary_member(place: Place) -> None:
    """A token of scope read reads, and manages nothing: not even its owner's site."""
    now = timezone.now()
    token, _secret = issue_token(place.people["site"], name="n", scopes=["read"], expires_at=None, at=now)
    principal = Principal(place.people["site"], token)
    assert not principal.is_site_admin
    assert capabilities(principal, place.world.study) == {"study.read", "audit.read"}


@pytest.mark.parametrize(
    ("person", "scopes", "account", "acts"),
    [
        ("site", ["read", "write"], True, False), ("site", ["read", "admin"], True, True),
        ("researcher", ["read", "admin"], False, False),
    ],
)  # fmt: skip
def test_me_says_what_the_account_is_and_what_its_token_may(
    place: Place, person: str, scopes: list[str], account: bool, acts: bool
) -> None:
    """An administrator who holds a token of scopes read and write is told both, not that she is none."""
    owner = place.people[person]
    _token, secret = issue_token(owner, name="n", scopes=scopes, expires_at=None, at=timezone.now())
    found = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (found["account_site_admin"], found["site_admin"]) == (account, acts)
    assert sorted(found["token"]["scopes"]) == sorted(scopes) and found["user"] == owner.get_username()
    assert Client().get("/api/v1/me").json()["account_site_admin"] is False


@pytest.mark.parametrize("end", ["revoked", "expired", "deactivated", "unknown"])
def test_a_dead_token_is_refused_and_never_treated_as_nobody(place: Place, end: str) -> None:
    """401 on a public study too: the caller must learn that the token opens nothing."""
    now, person = timezone.now(), place.people["researcher"]
    set_visibility(place.world.study, "public", by=place.people["site"], at=now)
    early = now - timedelta(hours=2)
    token, secret = issue_token(person, name="n", scopes=["read"], expires_at=early + timedelta(hours=1), at=early)
    if end == "revoked":
        token, secret = issue_token(person, name="m", scopes=["read"], expires_at=None, at=now)
        revoke_token(token, by=person, at=now)
    elif end == "deactivated":
        token, secret = issue_token(person, name="m", scopes=["read"], expires_at=None, at=now)
        User.objects.filter(pk=person.pk).update(is_active=False)
    elif end == "unknown":
        secret = "wb_aaaaaaaa_" + "b" * 43
    answer = Client().get("/api/v1/runs", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401 and "WWW-Authenticate" in answer.headers
    assert secret not in answer.content.decode()


def test_streams_name_their_study(place: Place) -> None:
    parts = place.parts
    for stream in (f"run:{parts['run']}", f"plan:{parts['plan_uid']}", f"execution:{parts['execution']}",
                   f"study:{parts['study_uid']}"):  # fmt: skip
        assert study_of_stream(stream) == place.world.study
    for stream in ("run:none", "other:00000000-0000-5000-8000-000000000000", "", "workbench.anchors", "run:"):
        assert study_of_stream(stream) is None


def test_rows_over_a_detour_follow_their_study(place: Place) -> None:
    """Parents of runs are seen by those who see the runs; streams and heads likewise."""
    member, other = Principal(place.people["viewer"]), Principal(place.people["stranger"])
    assert visible_checkpoints(member).filter(run=None).exists() and not visible_checkpoints(other).exists()
    assert visible_checkpoints(Principal(place.people["site"])).count() >= visible_checkpoints(member).count()
    assert [head.stream.partition(":")[0] for head in visible_heads(other)] == ["study"]
    assert {row.stream for row in visible_receipts(other)} == {head.stream for head in visible_heads(other)}
    everything = visible_heads(Principal(place.people["site"])).values_list("stream", flat=True)
    assert set(everything) == set(Receipt.objects.values_list("stream", flat=True))
    for model in (Run, Plan, Turn, UpdateBatch):
        assert visible(member, model._default_manager.all()).exists()  # type: ignore[type-var]
        assert not visible(other, model._default_manager.all()).exists()  # type: ignore[type-var]
    job = Job.objects.get(uid=place.parts["job"])
    assert study_of(job) == place.world.study
