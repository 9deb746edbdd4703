"""Pages of the account, of users, members, studies and the audit log: what they show and what they change."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.actions.tokens import issue_token, token_of
from runs.models import ApiToken, AuditEntry, Membership, Receipt, Study, User
from runs.presenters.people import outcome
from runs.presenters.receipts import check_chain
from tests.people.conftest import PASSWORD, Place

pytestmark = pytest.mark.django_db
PEOPLE = "/studies/fatal-mask-pair/people/"


def as_(place: Place, role: str) -> Client:
    """A browser in which this person is signed in."""
    client = Client()
    client.force_login(place.people[role])
    return client


def confirmed(place: Place, role: str = "site") -> Client:
    """One that has given the password a moment ago."""
    client = as_(place, role)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/users/"})
    return client


def said(client: Client, address: str) -> str:
    """The page's text after a redirect to it."""
    return client.get(address).content.decode()


def test_a_token_is_shown_once_and_works(place: Place) -> None:
    client = as_(place, "viewer")
    answer = client.post("/account/tokens/", {"name": "night", "scopes": ["read", "log"], "expiry": "30"})
    found = re.findall(r"wb_[A-Za-z0-9]{8}_[A-Za-z0-9]{43}", answer.content.decode())
    assert answer.status_code == 201 and len(set(found)) == 1
    token = token_of(found[0], timezone.now())
    assert token is not None and token.scopes == ["read", "log"] and token.user == place.people["viewer"]
    assert token.expires_at is not None and timedelta(days=29) < token.expires_at - timezone.now() < timedelta(days=30)
    page = said(client, "/account/")
    assert found[0] not in page and f"wb_{token.prefix}" in page and "night" in page


def test_sending_the_form_again_makes_no_second_token(place: Place) -> None:
    """A reload of the answer sends the same name: refused, with the name still in the form."""
    client, form = as_(place, "viewer"), {"name": "night", "scopes": ["read"], "expiry": "never"}
    assert client.post("/account/tokens/", form).status_code == 201
    again = client.post("/account/tokens/", form)
    assert again.status_code == 422 and 'value="night"' in again.content.decode()
    assert ApiToken.objects.filter(name="night").count() == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": ""}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"expiry": "9999"}, "expiry"),
    ],
)
def test_a_wrong_token_form_names_the_field(place: Place, change: dict[str, Any], word: str) -> None:
    form = {"name": "n", "scopes": ["read"], "expiry": "30", **change}
    answer = as_(place, "viewer").post("/account/tokens/", form)
    assert answer.status_code == 422 and f"{word}: " in answer.content.decode()


def test_my_token_is_revoked_and_nobody_elses(place: Place) -> None:
    viewer, theirs = place.people["viewer"], ApiToken.objects.get(user=place.people["admin"])
    token, secret = issue_token(viewer, name="n", scopes=["read"], expires_at=None, at=timezone.now())
    client = as_(place, "viewer")
    assert client.post(f"/account/tokens/{theirs.prefix}/revoke/").status_code == 404
    assert client.post(f"/account/tokens/{token.prefix}/revoke/").status_code == 302
    assert token_of(secret, timezone.now()) is None and "revoked" in said(client, "/account/")
    theirs.refresh_from_db()
    assert theirs.revoked_at is None


def test_the_account_lists_my_studies_with_my_roles(place: Place) -> None:
    assert "reviewer" in said(as_(place, "reviewer"), "/account/")
    assert "/studies/fatal-mask-pair/audit/" in said(as_(place, "reviewer"), "/account/")
    assert "/studies/fatal-mask-pair/audit/" not in said(as_(place, "viewer"), "/account/")
    assert "fatal-mask-pair" not in said(as_(place, "stranger"), "/account/")
    assert 'href="/users/"' in said(as_(place, "site"), "/account/")
    assert 'href="/users/"' not in said(as_(place, "admin"), "/account/")


def test_roles_are_given_and_taken_with_receipts(place: Place) -> None:
    client, stream = as_(place, "admin"), f"study:{place.world.study.uid}"
    before = Receipt.objects.filter(stream=stream).count()
    client.post(f"{PEOPLE}add/", {"user": " STRANGER ", "role": "reviewer"})
    assert Membership.objects.filter(user=place.people["stranger"], role="reviewer").exists()
    client.post(f"{PEOPLE}add/", {"user": "stranger", "role": "reviewer"})  # held already: changes nothing
    client.post(f"{PEOPLE}remove/", {"user": "stranger", "role": "reviewer"})
    kinds = list(Receipt.objects.filter(stream=stream).order_by("seq").values_list("kind", flat=True))[before:]
    assert kinds == ["member.added", "member.removed"] and check_chain(stream).holds
    page = said(client, f"/receipts/?stream={stream}")
    assert "study fatal-mask-pair" in page and "member.removed" in page
    last = Receipt.objects.filter(stream=stream).latest("seq")
    assert 'href="/studies/fatal-mask-pair/"' in said(client, f"/receipts/{last.sha256}/").split("<dl", 1)[1]
    entry = AuditEntry.objects.filter(route="member.removed").latest("pk")
    assert entry.study == place.world.study and entry.subject == "stranger reviewer" and entry.channel == "page"
    assert entry.request_id == AuditEntry.objects.filter(route__startswith="runs:member_remove").latest("pk").request_id


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"user": "nobody-here", "role": "viewer"}, "expected the name of an active account"),
        ({"user": "stranger", "role": "owner"}, "role: got"),
        ({"user": "", "role": "viewer"}, "expected the name of an active account"),
    ],
)
def test_a_role_that_cannot_be_given_is_refused_in_words(place: Place, form: dict[str, str], words: str) -> None:
    client, before = as_(place, "admin"), Membership.objects.count()
    assert words in client.post(f"{PEOPLE}add/", form, follow=True).content.decode()
    assert Membership.objects.count() == before


def test_the_last_admin_of_a_study_stays(place: Place) -> None:
    """Alone: refused. With a second one: allowed, and who leaves sees the study no more."""
    client = as_(place, "admin")
    form = {"user": "admin", "role": "admin"}
    assert "last active admin" in client.post(f"{PEOPLE}remove/", form, follow=True).content.decode()
    client.post(f"{PEOPLE}add/", {"user": "researcher", "role": "admin"})
    gone = client.post(f"{PEOPLE}remove/", form)
    assert gone["Location"] == "/account/" and client.get(PEOPLE).status_code == 404


def test_a_deactivated_admin_does_not_count_as_one(place: Place) -> None:
    client = as_(place, "admin")
    client.post(f"{PEOPLE}add/", {"user": "researcher", "role": "admin"})
    User.objects.filter(username="researcher").update(is_active=False)
    text = client.post(f"{PEOPLE}remove/", {"user": "admin", "role": "admin"}, follow=True).content.decode()
    assert "last active admin" in text


def test_members_see_each_other_and_only_admins_see_forms(place: Place) -> None:
    viewer, admin = said(as_(place, "viewer"), PEOPLE), said(as_(place, "admin"), PEOPLE)
    assert "researcher" in viewer and "/people/add/" not in viewer and "/people/remove/" not in viewer
    assert "/people/add/" in admin and "/people/remove/" in admin


def test_visibility_changes_with_a_receipt(place: Place) -> None:
    client, stream = as_(place, "admin"), f"study:{place.world.study.uid}"
    client.post("/studies/fatal-mask-pair/visibility/", {"visibility": "internal"})
    assert Study.objects.get(slug="fatal-mask-pair").visibility == "internal"
    last = Receipt.objects.filter(stream=stream).latest("seq")
    assert last.kind == "study.visibility" and b'"from":"private","to":"internal"' in bytes(last.bytes)
    client.post("/studies/fatal-mask-pair/visibility/", {"visibility": "internal"})
    assert Receipt.objects.filter(stream=stream).latest("seq") == last
    text = client.post("/studies/fatal-mask-pair/visibility/", {"visibility": "open"}, follow=True).content.decode()
    assert "visibility: got" in text


def test_a_study_is_founded_and_its_founder_is_its_admin(place: Place) -> None:
    client = as_(place, "viewer")
    form = {"slug": "my-line", "title_en": "My line", "title_zh": "我的", "visibility": "private"}
    assert client.post("/studies/new/", form)["Location"] == "/studies/my-line/"
    study = Study.objects.get(slug="my-line")
    assert list(study.memberships.values_list("user__username", "role")) == [("viewer", "admin")]
    assert check_chain(f"study:{study.uid}").holds
    assert client.get("/studies/my-line/").status_code == 200
    assert as_(place, "researcher").get("/studies/my-line/").status_code == 404


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"slug": "new"}, "slug: got"),
        ({"slug": "Upper"}, "slug: got"),
        ({"slug": "a"}, "slug: got"),
        ({"slug": "elsewhere"}, "which is taken"),
        ({"slug": "../x"}, "slug: got"),
        ({"title_en": "  "}, "title: got"),
        ({"title_en": "x" * 301}, "title: got"),
        ({"summary_en": "x" * 4001}, "summary: got"),
        ({"title_en": "a\x00b"}, "title: got"),
        ({"visibility": "open"}, "visibility: got"),
    ],
)
def test_a_wrong_study_form_names_the_field_and_keeps_what_was_typed(
    place: Place, change: dict[str, str], word: str
) -> None:
    form = {"slug": "my-line", "title_en": "A title of mine", "visibility": "private", **change}
    answer = as_(place, "viewer").post("/studies/new/", form)
    assert answer.status_code == 422 and word in answer.content.decode()
    assert not Study.objects.filter(slug="my-line").exists()
    if "title_en" not in change:
        assert "A title of mine" in answer.content.decode()


def test_an_account_is_made_with_a_password_that_is_shown_once(place: Place) -> None:
    client = confirmed(place)
    answer = client.post("/users/new/", {"name": "noor"})
    text = answer.content.decode()
    assert answer.status_code == 201 and "shown once" in text
    password = re.findall(r'data-copy="([A-Za-z0-9_-]{20})"', text)
    assert len(password) == 1 and User.objects.get(username="noor").check_password(password[0])
    assert Client().post("/accounts/login/", {"username": "noor", "password": password[0]}).status_code == 302
    assert password[0] not in said(client, "/users/")
    again = client.post("/users/new/", {"name": "NOOR"})
    assert again.status_code == 422 and "which is taken" in again.content.decode()
    assert client.post("/users/new/", {"name": "a b"}).status_code == 422


def test_before_that_the_password_is_asked_once_more(place: Place) -> None:
    """An open browser is not enough: the request waits, and is done after the right password."""
    client = as_(place, "site")
    asked = client.post("/users/new/", {"name": "noor"})
    assert asked.status_code == 302 and asked["Location"].startswith("/accounts/reauthenticate/")
    assert "Your password once more." in said(client, asked["Location"])
    wrong = client.post(asked["Location"], {"password": "no", "next": "/users/new/"})
    assert "wrong" in wrong.content.decode() and not User.objects.filter(username="noor").exists()
    assert client.post(asked["Location"], {"password": PASSWORD, "next": "/users/new/"}).status_code == 201
    assert User.objects.filter(username="noor").exists()


def test_deactivating_ends_sessions_and_tokens(place: Place) -> None:
    client, hers, pk = confirmed(place), as_(place, "viewer"), place.people["viewer"].pk
    assert hers.get("/account/").status_code == 200
    client.post(f"/users/{pk}/deactivate/")
    assert hers.get("/account/").status_code == 302 and token_of(place.secrets["viewer"], timezone.now()) is None
    client.post(f"/users/{pk}/activate/")
    assert token_of(place.secrets["viewer"], timezone.now()) is not None
    routes = AuditEntry.objects.filter(method="change").order_by("-pk").values_list("route", flat=True)
    assert list(routes[:2]) == ["user.activated", "user.deactivated"]


def test_the_last_site_admin_stays_one(place: Place) -> None:
    User.objects.filter(is_superuser=True).exclude(username="site").update(is_superuser=False)
    client, pk = confirmed(place), place.people["site"].pk
    for verb in ("deactivate", "take-admin"):
        assert "last active site admin" in client.post(f"/users/{pk}/{verb}/", follow=True).content.decode()
    site = User.objects.get(pk=pk)
    assert site.is_active and site.is_superuser
    client.post(f"/users/{place.people['admin'].pk}/make-admin/")
    client.post(f"/users/{pk}/take-admin/")
    assert client.get("/users/").status_code == 404


def test_a_reset_password_is_shown_once_and_ends_sessions(place: Place) -> None:
    client, hers = confirmed(place), as_(place, "viewer")
    answer = client.post(f"/users/{place.people['viewer'].pk}/reset-password/")
    password = re.findall(r'data-copy="([A-Za-z0-9_-]{20})"', answer.content.decode())
    assert User.objects.get(username="viewer").check_password(password[0])
    assert hers.get("/account/").status_code == 302
    assert client.post(f"/users/{place.people['viewer'].pk}/explode/").status_code == 404
    assert client.post("/users/999999/deactivate/").status_code == 404


def test_the_audit_log_goes_on_by_cursor_and_loses_nothing(place: Place) -> None:
    """70 lines in pages of 50: every one once, newest first, also when lines are added meanwhile."""
    client = as_(place, "admin")
    for n in range(70):
        AuditEntry.objects.create(
            at=timezone.now(), channel="api", method="POST", route=f"r{n}", status=200, study=place.world.study
        )
    page = client.get("/studies/fatal-mask-pair/audit/?channel=api")
    AuditEntry.objects.create(
        at=timezone.now(), channel="api", method="POST", route="later", status=200, study=place.world.study
    )
    older = re.findall(r'href="(\?[^"]*before=[^"]*)"', page.content.decode())
    assert len(older) == 1
    second = client.get("/studies/fatal-mask-pair/audit/" + older[0].replace("&amp;", "&"))
    seen = [line.entry.route for answer in (page, second) for line in answer.context["lines"]]
    mine = [route for route in seen if re.fullmatch(r"r\d+", route)]
    assert mine == [f"r{n}" for n in range(69, -1, -1)] and "later" not in seen


@pytest.mark.parametrize(
    ("query", "routes"),
    [
        ("who=viewer", {"a"}),
        ("who=VIEWER", {"a"}),
        ("outcome=refused", {"b", "d"}),
        ("outcome=failed", {"c"}),
        ("about=thing", {"a"}),
        ("about=wb_tokentok", {"b"}),
        ("about=request-12345", {"c"}),
        ("channel=command", {"d"}),
        ("who=%00", set()),
        ("before=9999999999999999999999", {"a", "b", "c", "d"}),
        ("before=x", {"a", "b", "c", "d"}),
        ("before=1", set()),
    ],
)
def test_the_audit_log_is_narrowed(place: Place, query: str, routes: set[str]) -> None:
    AuditEntry.objects.all()
    actor = place.people["viewer"].actors.first() or _actor(place.people["viewer"])
    common = {"at": timezone.now(), "study": Study.objects.get(slug="elsewhere")}
    base = AuditEntry.objects.create(channel="page", method="POST", route="a", status=302, actor=actor,
                                     subject="thing", **common).pk  # fmt: skip
    AuditEntry.objects.create(channel="api", method="POST", route="b", status=403, token_prefix="tokentok", **common)
    AuditEntry.objects.create(channel="api", method="POST", route="c", status=500, request_id="request-12345", **common)
    AuditEntry.objects.create(channel="command", method="command", route="d", status=1, **common)
    answer = as_(place, "stranger").get(f"/studies/elsewhere/audit/?{query}")
    assert {line.entry.route for line in answer.context["lines"] if line.entry.pk >= base} == routes


def _actor(user: User) -> Any:
    from runs.actions.actors import person_actor

    return person_actor(user)


@pytest.mark.parametrize(
    ("method", "status", "word"),
    [
        ("POST", 200, "done"),
        ("POST", 302, "done"),
        ("POST", 404, "refused"),
        ("PUT", 503, "failed"),
        ("change", 0, "done"),
        ("command", 1, "refused"),
    ],
)
def test_outcomes(method: str, status: int, word: str) -> None:
    assert outcome(AuditEntry(method=method, status=status)) == word


def test_the_site_log_shows_all_studies_and_one(place: Place) -> None:
    client = as_(place, "site")
    as_(place, "stranger").post("/studies/elsewhere/visibility/", {"visibility": "internal"})
    assert "elsewhere" in said(client, "/audit/")
    only = client.get("/audit/?study=fatal-mask-pair")
    assert all(line.entry.study == place.world.study for line in only.context["lines"])
    assert client.get("/audit/?study=%00").status_code == 200
