"""The plan editor: both sides, problems in their places, saving under a revision, refusals that lose nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from runs.actions.plans import parse_plan_text, save_draft
from runs.models import Plan, User
from tests.pages.catalogue_people import client_of, draft, hidden_study, member, minimal, posted
from tests.pages.state import World

EDIT = "/studies/fatal-mask-pair/plans/mine/edit/"
NEW = "/studies/fatal-mask-pair/plans/new/"


@pytest.fixture
def researcher(world: World, db: None) -> Client:
    return client_of(member(world.study, "researcher"))


def _stored() -> Plan:
    return Plan.objects.get(slug="mine")


def test_a_change_in_the_form_reaches_the_text_and_is_saved(researcher: Client, world: World) -> None:
    """The comment that the text begins with stays."""
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), rollout__max_decisions="5")
    answer = researcher.post(EDIT, {**data, "do": "save"}, follow=True)
    assert "Saved as revision 2. Nothing keeps it from being frozen." in answer.content.decode()
    saved = _stored()
    assert saved.draft_revision == 2
    assert saved.draft_text == plan.draft_text.replace("max_decisions: 7", "max_decisions: 5")
    assert saved.draft_text.startswith("# The least")


def test_a_problem_stands_beside_its_field_and_its_line(researcher: Client, world: World) -> None:
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), rollout__group_size="1")
    answer = researcher.post(EDIT, data)
    (problem,) = answer.context["editor"].problems
    line = answer.context["editor"].text.splitlines()[problem.line - 1]
    assert line == "  group_size: 1"
    text = answer.content.decode()
    assert f'id="line-{problem.line}"' in text and 'id="field-rollout-group_size-problems"><p' in text
    assert "got 1, expected a whole number, 2 to 32" in text
    assert _stored().draft_revision == 1  # a check saves nothing


def test_a_draft_with_problems_is_saved_and_says_so(researcher: Client, world: World) -> None:
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), optimizer__learning_rate="fast")
    answer = researcher.post(EDIT, {**data, "do": "save"}, follow=True)
    assert "Saved as revision 2, with 1 problems" in answer.content.decode()
    assert "learning_rate: fast" in _stored().draft_text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [", 1),
        ("a: 1\nb: 2\na: 3", 3),
        ("x: 1\na: &x [1]\nb: *x", 3),
        ("\n".join(["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]), 2),
        ("[1, 2]", 1),
    ],
    ids=["open list", "key twice", "alias", "alias bomb", "no object"],
)  # fmt: skip
def test_an_unreadable_text_keeps_both_sides(researcher: Client, world: World, text: str, line: int) -> None:
    """The form's change waits, and joins as soon as the text can be read again."""
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), seeds="5")
    answer = researcher.post(EDIT, {**data, "yaml": text})
    editor = answer.context["editor"]
    assert editor.text == text and editor.base == plan.draft_text
    assert editor.problems[0].line == line
    assert 'name="f:seeds" value="5"' in answer.content.decode()
    assert "both stay as you typed them" in answer.content.decode()
    again = researcher.post(EDIT, {**data, "base": editor.base}).context["editor"]
    assert parse_plan_text(again.text)["seeds"] == ["5"] and again.problems == []


def test_an_unreadable_text_is_saved_as_it_is(researcher: Client, world: World) -> None:
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text))
    researcher.post(EDIT, {**data, "yaml": "a: [\r\nb", "do": "save"})
    assert _stored().draft_text == "a: [\nb"
    assert "cannot be read from line" in researcher.get(EDIT).content.decode()


@pytest.mark.parametrize(("text", "got"), [("a: \0", "U+0000"), ("a" * 1_000_001, "1000001 characters")])
def test_a_text_that_cannot_be_kept_is_refused_and_shown_again(
    researcher: Client, world: World, text: str, got: str
) -> None:
    draft(world)
    answer = researcher.post(EDIT, {"yaml": text, "base": "", "revision": "1", "do": "save"})
    assert answer.status_code == 422 and got in answer.content.decode()
    assert answer.context["editor"].text == text and _stored().draft_revision == 1


def test_a_stale_revision_saves_nothing_and_shows_both(researcher: Client, world: World) -> None:
    """The other's text beside the difference, mine in the editor; saving again is then a choice."""
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), seeds="5")
    theirs = plan.draft_text.replace("batches: 2", "batches: 3")
    save_draft(world.study, "mine", theirs, by=world.plan.current_version.created_by, at=world.clock)
    answer = researcher.post(EDIT, {**data, "do": "save"})
    text = answer.content.decode()
    assert answer.status_code == 409 and "Someone saved revision 2 while you edited revision 1" in text
    assert answer.context["theirs"]["text"] == theirs == _stored().draft_text
    assert ("removed", "  batches: 3") in answer.context["theirs"]["lines"]
    mine = answer.context["editor"].text
    assert "seeds: ['5']" in mine and 'name="revision" value="2"' in text
    document = parse_plan_text(mine)
    researcher.post(EDIT, {**posted(mine, document, revision=2), "do": "save"})
    assert _stored().draft_text == mine and _stored().draft_revision == 3


def test_a_stale_revision_of_the_stored_text_is_no_conflict(researcher: Client, world: World) -> None:
    """Equal texts, whoever saved first: told as saved, nothing stored anew; another text still conflicts."""
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), seeds="5")
    assert researcher.post(EDIT, {**data, "do": "save"}).status_code == 302 and _stored().draft_revision == 2
    again = researcher.post(EDIT, {**data, "do": "save"}, follow=True)
    assert again.redirect_chain and "Saved as revision 2." in again.content.decode()
    assert _stored().draft_revision == 2
    other = posted(plan.draft_text, parse_plan_text(plan.draft_text), seeds="6")
    assert researcher.post(EDIT, {**other, "do": "save"}).status_code == 409


def test_a_fragment_never_saves(researcher: Client, world: World) -> None:
    """What the editor asks while a person types is a question, whichever button was clicked last."""
    plan = draft(world)
    data = posted(plan.draft_text, parse_plan_text(plan.draft_text), seeds="5")
    answer = researcher.post(EDIT, {**data, "do": "save"}, headers={"HX-Request": "true"})
    assert answer.status_code == 200 and _stored().draft_revision == 1


def test_items_are_added_and_removed(researcher: Client, world: World) -> None:
    plan = draft(world)
    document = parse_plan_text(plan.draft_text)
    added = researcher.post(EDIT, {**posted(plan.draft_text, document), "do": "add:arms"}).context["editor"]
    after = parse_plan_text(added.text)
    assert len(after["arms"]) == 2 and added.text.startswith("# The least")
    removed = researcher.post(EDIT, {**posted(added.text, after), "do": "remove:arms[1]"}).context["editor"]
    assert removed.text == plan.draft_text
    for wrong in ("remove:arms[9]", "remove:title", "remove:", "add:nothing", "explode"):
        assert researcher.post(EDIT, {**posted(plan.draft_text, document), "do": wrong}).context["editor"].text == (
            plan.draft_text
        )


def _fragment(client: Client, data: dict[str, str]) -> tuple[bool, bool]:
    """Whether the answer writes to (form, text)."""
    text = client.post(EDIT, data, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text and 'id="problem-list"' in text and 'id="plan-base"' in text
    return 'id="form-pane"' in text, 'id="plan-text"' in text


def test_the_fragment_answers_only_what_has_to_change(researcher: Client, world: World) -> None:
    """The side that a person writes in is left alone unless the other side had changed too."""
    plan = draft(world)
    plain = posted(plan.draft_text, parse_plan_text(plan.draft_text))
    text = {"yaml": plan.draft_text.replace("batches: 2", "batches: 9")}
    form = {"f:seeds": "5"}
    assert _fragment(researcher, {**plain, **form, "side": "form"}) == (False, True)
    assert _fragment(researcher, {**plain, **text, "side": "yaml"}) == (True, False)
    assert _fragment(researcher, {**plain, **form, **text, "side": "form"}) == (True, True)
    assert _fragment(researcher, {**plain, **form, **text, "side": "yaml"}) == (True, True)
    assert _fragment(researcher, {**plain, "do": "add:arms", "side": "form"}) == (True, True)
    assert _fragment(researcher, {**plain, **form, "yaml": "a: [", "side": "form"}) == (False, False)


def test_study_and_name_must_be_where_the_plan_is_saved(researcher: Client, world: World) -> None:
    draft(world, minimal(study="elsewhere", name="other"))
    fields = {problem.field for problem in researcher.get(EDIT).context["editor"].problems}
    assert fields == {"study", "name"}


def test_a_strict_pair_and_an_endpoint_are_placed(researcher: Client, world: World) -> None:
    """Undeclared difference: beside the pair's treatment. Endpoint: by its id."""
    document = json.loads(world.plan.draft_text)
    document |= {"name": "mine"}
    document["strict_pairs"][0]["treatment"] = ["objective.clip_low"]
    document["endpoints"][0] |= {"direction": "none"}
    draft(world, json.dumps(document, indent=1))
    editor = researcher.get(EDIT).context["editor"]
    places = {(problem.field.split(":")[0], problem.anchor) for problem in editor.problems}
    assert places == {
        ("strict_pairs[0]", "field-strict_pairs-0-treatment"),
        ("strict_pairs[0].treatment", "field-strict_pairs-0-treatment"),
        ("endpoints.recovery.direction", "field-endpoints-0-direction"),
    }
    assert all('"' in editor.text.splitlines()[problem.line - 1] for problem in editor.problems)


def test_a_frozen_plan_is_not_edited(researcher: Client, world: World) -> None:
    address = "/studies/fatal-mask-pair/plans/small/edit/"
    assert researcher.get(address).headers["Location"] == "/studies/fatal-mask-pair/plans/small/"
    answer = researcher.post(address, {"yaml": "kept: 1", "base": "", "revision": "1", "do": "save"})
    assert answer.status_code == 409 and answer.context["editor"].text == "kept: 1"
    world.plan.refresh_from_db()
    assert "kept" not in world.plan.draft_text


@pytest.mark.parametrize("role", ["viewer", "reviewer", "worker"])
def test_other_roles_are_refused(world: World, db: None, role: str) -> None:
    draft(world)
    client = client_of(member(world.study, role))
    assert [client.get(EDIT).status_code, client.post(EDIT, {"yaml": "a: 1"}).status_code] == [403, 403]
    assert [client.get(NEW).status_code, client.post(NEW, {"name": "x"}).status_code] == [403, 403]


def test_nobody_signs_in_first_and_hidden_studies_do_not_exist(
    client: Client, world: World, person: User, db: None
) -> None:
    plan = draft(world)
    assert client.post(EDIT, {"yaml": "a: 1", "do": "save"}).headers["Location"].startswith("/accounts/login/")
    study = hidden_study(person)
    Plan.objects.filter(pk=plan.pk).update(study=study)
    stranger = client_of(person)
    for address in ("/studies/secret/plans/mine/edit/", "/studies/secret/plans/new/"):
        assert [stranger.get(address).status_code, stranger.post(address).status_code] == [404, 404]
    assert stranger.get("/studies/secret/plans/mine/difference/").status_code == 404


@pytest.mark.parametrize("start", ["minimal", "bundled:fatal-mask-pair:tiny", "plan:fatal-mask-pair/small"])
def test_a_new_plan_begins_valid(researcher: Client, world: World, start: str) -> None:
    answer = researcher.post(NEW, {"name": "mine", "start": start}, follow=True)
    assert answer.redirect_chain[-1][0] == EDIT
    assert answer.context["editor"].problems == []


@pytest.mark.parametrize(
    ("data", "status", "said"),
    [
        ({"name": "new", "start": "minimal"}, 422, "not the word new"),
        ({"name": "a b", "start": "minimal"}, 422, "letters, digits"),
        ({"name": "x" * 65, "start": "minimal"}, 422, "at most 64"),
        ({"name": "", "start": "minimal"}, 422, "letters, digits"),
        ({"name": "small", "start": "minimal"}, 409, "expected one that no plan of study fatal-mask-pair has"),
    ],
)
def test_a_name_that_cannot_be_used(
    researcher: Client, world: World, data: dict[str, Any], status: int, said: str
) -> None:
    answer = researcher.post(NEW, data)
    assert answer.status_code == status and said in answer.content.decode()
    assert not Plan.objects.filter(slug=data["name"]).exclude(slug="small").exists()


def test_a_template_that_cannot_be_seen_does_not_exist(researcher: Client, world: World, person: User) -> None:
    plan = draft(world, name="theirs")
    Plan.objects.filter(pk=plan.pk).update(study=hidden_study(person))
    for start in ("plan:secret/theirs", "plan:none/none", "bundled:none", "../../etc/passwd"):
        assert researcher.post(NEW, {"name": "mine", "start": start}).status_code == 404
    assert "plan:secret/" not in researcher.get(NEW).content.decode()


def test_difference_field_by_field_and_line_by_line(client: Client, world: World, db: None) -> None:
    """One changed value, one added arm: nothing else differs, and no arm shifts another."""
    document = json.loads(world.plan.draft_text)
    document["optimizer"]["learning_rate"] = 0.5
    document["arms"].insert(0, {"key": "first", "title": {"en": "First"}, "role": "context"})
    draft(world, json.dumps(document, indent=1))
    answer = client.get("/studies/fatal-mask-pair/plans/mine/difference/", {"with": "fatal-mask-pair/small"})
    rows = {row.path: (row.left, row.right, row.here, row.there) for row in answer.context["compared"].different}
    assert rows["optimizer.learning_rate"] == (0.003, 0.5, True, True)
    assert {path for path in rows if not path.startswith("arms[first]")} == {"optimizer.learning_rate"}
    by_hash = client.get("/studies/fatal-mask-pair/plans/mine/difference/", {"with": world.version.sha256[:12]})
    assert len(by_hash.context["compared"].different) == len(rows)
    assert ("added", "  learning_rate: 0.5") not in (answer.context["compared"].lines or [])  # one text is JSON
    for wrong in ("none/none", "1234567", "0" * 64):
        assert client.get("/studies/fatal-mask-pair/plans/mine/difference/", {"with": wrong}).status_code == 404


def test_a_difference_with_an_unreadable_draft_is_shown(client: Client, world: World, db: None) -> None:
    draft(world, "a: [")
    answer = client.get("/studies/fatal-mask-pair/plans/mine/difference/", {"with": "fatal-mask-pair/small"})
    assert answer.status_code == 200 and "an unreadable text counts as empty" in answer.content.decode()
