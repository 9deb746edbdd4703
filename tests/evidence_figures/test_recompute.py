"""What rests on a figure is computed again at once, keeps its kind, and is confirmed only while it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evidence.actions.claims import add_claim
from evidence.actions.figures import refresh_figure
from evidence.actions.sources import add_source
from evidence.actions.stale import open_marks, settle
from evidence.actions.versions import check_version
from evidence.binding.figures import recompute
from evidence.models import Figure, FigureVersion, StaleMark
from evidence.presenters.chips import chips_for
from evidence.verify import verify
from runs.errors import DomainError
from runs.storage import blob_store
from workbench.db import drop_triggers, install_triggers

from .desk import AT, DATA, Desk
from .test_change import of, overwrite


def pointer(where: str, source: str = "data.json") -> dict[str, Any]:
    """A binding to a number of the JSON source."""
    return {"type": "pointer", "source": source, "pointer": where}


def states(*keys: str) -> list[str]:
    """Stored states, which are what a recomputation finds."""
    for key in keys:
        assert of(key).state == recompute(of(key)).state, key
    return [of(key).state for key in keys]


@pytest.fixture
def chain(desk: Desk) -> Desk:
    """a = 244 of the JSON; d = a * 1; e = d + 0."""
    desk.bind("a", pointer("/counts/usable"))
    desk.derive("d", "a * 1", {"a": "a"})
    desk.derive("e", "d + 0", {"d": "d"})
    return desk


def marks(key: str) -> StaleMark:
    """The open mark of a figure."""
    return open_marks().get(target_uid=of(key).uid)


def test_a_rebound_figure_recomputes_what_is_derived_from_it(chain: Desk) -> None:
    """a: 244 -> 92. d and e still store 244: drifted at once; bound anew, each is 92 and bound."""
    assert states("a", "d", "e") == ["bound"] * 3
    chain.bind("a", pointer("/counts/nonzero"), reason="the other count")
    assert states("a", "d", "e") == ["bound", "drifted", "drifted"]
    assert of("d").stale and of("e").stale
    chain.derive("d", "a * 1", {"a": "a"}, reason="follows a")
    chain.derive("e", "d + 0", {"d": "d"}, reason="follows d")
    assert states("a", "d", "e") == ["bound"] * 3 and not of("e").stale
    assert of("e").current.value == "92"  # type: ignore[union-attr]


def test_a_figure_that_computes_to_another_value_is_not_confirmed(chain: Desk) -> None:
    """244 is stored, 92 is what d gives: nobody confirms it. Back at 244, a person may."""
    chain.bind("a", pointer("/counts/nonzero"), reason="the other count")
    with pytest.raises(DomainError, match=r"\(d: value: recomputes to 92, stored is 244\).*bind the figure"):
        settle(marks("d"), "confirmed", "It still holds.", by=chain.by, at=AT)
    assert of("d").stale
    chain.bind("a", pointer("/counts/usable"), reason="it was right")
    assert states("a", "d", "e") == ["bound"] * 3 and of("d").stale
    settle(marks("d"), "confirmed", "It still holds.", by=chain.by, at=AT)
    assert not of("d").stale


def test_a_new_version_of_a_source_recomputes_at_once(chain: Desk) -> None:
    """An honest correction, 244 -> 240: stored and rebuilt states agree, and a person cannot wave it through."""
    newer = DATA.replace("244", "240").encode()
    add_source(chain.study, "data.json", newer, origin="upload", by=chain.by, at=AT, reason="recounted")
    assert states("a", "d", "e") == ["drifted"] * 3
    faults = [item for item in verify(store=blob_store(), steps=[14]).faults if item.column == "state"]
    assert faults == []
    with pytest.raises(DomainError, match="a: value: recomputes to 240, stored is 244"):
        settle(marks("a"), "confirmed", "It still holds.", by=chain.by, at=AT)


def test_a_new_version_with_the_same_number_may_be_confirmed(chain: Desk) -> None:
    """Another field changed: a is 244 as before, so its mark is confirmed with a note."""
    newer = DATA.replace("pilot", "pilot 2").encode()
    add_source(chain.study, "data.json", newer, origin="upload", by=chain.by, at=AT, reason="renamed")
    assert states("a", "d", "e") == ["bound"] * 3 and of("a").stale
    settle(marks("a"), "confirmed", "Only the name has changed.", by=chain.by, at=AT)
    assert not of("a").stale


def test_drifted_bytes_reach_every_derived_figure_and_heal(chain: Desk) -> None:
    """244 -> 245 on the disk, then back."""
    version = chain.sources["data.json"]
    overwrite(version, DATA.replace("244", "245").encode())
    check_version(version, by=chain.by, at=AT)
    assert states("a", "d", "e") == ["drifted"] * 3
    overwrite(version, DATA.encode())
    check_version(version, by=chain.by, at=AT)
    assert states("a", "d", "e") == ["bound"] * 3 and not open_marks().exists()


def test_refreshing_one_figure_refreshes_those_above_it(chain: Desk) -> None:
    """The first figure of the chain is looked at; d and e follow in the same pass, and heal with it."""
    version = chain.sources["data.json"]
    overwrite(version, DATA.replace("244", "245").encode())
    assert refresh_figure(of("a"), by=chain.by, at=AT).state == "drifted"
    assert states("a", "d", "e") == ["drifted"] * 3 and of("e").stale
    overwrite(version, DATA.encode())
    assert refresh_figure(of("a"), by=chain.by, at=AT).state == "bound"
    assert states("a", "d", "e") == ["bound"] * 3 and not open_marks().exists()


def test_many_dependants_cost_few_queries(chain: Desk) -> None:
    """Computing again: as many queries with thirty dependants as with two, but for the records of the marks."""
    for number in range(28):
        chain.derive(f"n{number}", "a * 2", {"a": "a"})
    figure = of("a")
    refresh_figure(figure, by=chain.by, at=AT)
    with CaptureQueriesContext(connection) as queries:
        refresh_figure(figure, by=chain.by, at=AT)
    assert len(queries) < 25


def test_a_claims_words_are_not_confirmed_while_they_show_an_old_value(chain: Desk) -> None:
    """The claim shows a as 244; a is 92 by now."""
    claim = add_claim(chain.study, "rows", text_en="Rows: [[a]].", kind="description", by=chain.by, at=AT)
    chain.bind("a", pointer("/counts/nonzero"), reason="the other count")
    mark = open_marks().get(target_kind="claim", target_uid=claim.claim.uid)
    with pytest.raises(DomainError, match="a: the words show 244, it is 92 now"):
        settle(mark, "confirmed", "It still holds.", by=chain.by, at=AT)
    chain.bind("a", pointer("/counts/usable"), reason="it was right")
    settle(mark, "confirmed", "It still holds.", by=chain.by, at=AT)


def test_the_page_and_the_card_say_which_constants_a_figure_holds(chain: Desk, client: Client) -> None:
    """a / 2 + 0.50 holds 2 and 0.50; a plain quotient says nothing of constants."""
    chain.derive("half", "a / 2 + 0.50", {"a": "a"}, digits=1)
    chain.derive("plain", "a / d", {"a": "a", "d": "d"})
    chain.study.visibility = "public"
    chain.study.save()
    for key, said in (("half", True), ("plain", False)):
        page = client.get(f"/figures/{of(key).uid}/").content.decode()
        assert ("holds the constants 2, 0.50" in page) == said
        card = [str(value) for _name, value in chips_for(chain.study, [key])[key].rows("en")]
        assert ("holds the constants 2, 0.50" in card) == said


def imported(desk: Desk, key: str, number: str, **given: Any) -> None:
    """An effect of somebody else's paper."""
    desk.number(key, number, "theirs", kind="effect", origin="imported", **given)


def test_kind_and_origin_stay_while_others_rest_on_them(desk: Desk) -> None:
    """g1 is an effect over g0: g0 cannot become a mechanism figure of the same value."""
    desk.transcribe("theirs", "Then 8 of 244 rows.")
    imported(desk, "g0", "244")
    desk.derive("g1", "a * 1", {"a": "g0"}, kind="effect", origin="imported")
    with pytest.raises(DomainError, match="kind: got mechanism for g0, on which the effect figures g1 rest"):
        desk.bind("g0", pointer("/counts/usable"), reason="measured here")
    assert of("g0").current.kind == "effect"  # type: ignore[union-attr]
    desk.bind("own", pointer("/counts/usable"))
    desk.derive("next", "a * 1", {"a": "own"})
    with pytest.raises(DomainError, match="origin: got imported for own, on which the native figures next rest"):
        desk.number("own", "244", "theirs", origin="imported", reason="theirs")
    desk.derive("g1", "a * 1", {"a": "own"}, kind="mechanism", reason="no effect")
    desk.bind("g0", pointer("/counts/usable"), reason="measured here")
    assert of("g0").current.kind == "mechanism"  # type: ignore[union-attr]


@pytest.mark.parametrize("given", [{"kind": "cost"}, {"unit": "rows"}])
def test_a_change_of_kind_or_unit_marks_what_rests_on_it(chain: Desk, given: dict[str, Any]) -> None:
    """The value is 244 as before; a new title alone marks nothing."""
    chain.bind("a", pointer("/counts/usable"), title_en="Rows", reason="a better title")
    assert not of("d").stale
    chain.bind("a", pointer("/counts/usable"), reason="what it is", **given)
    assert of("d").stale and of("e").stale


@pytest.mark.parametrize("expression", ["0.178 * a / a", "a * 6.328888888", "0.95 + 0 * a", "a * count(a)"])
def test_a_typed_number_becomes_no_effect(desk: Desk, expression: str) -> None:
    """As a mechanism figure the same expression stands, and holds its constants for all to see."""
    desk.transcribe("theirs", "Then 8 of 244 rows.")
    imported(desk, "g0", "8")
    with pytest.raises(DomainError, match="bind it as a figure of its own"):
        desk.derive("typed", expression, {"a": "g0"}, kind="effect", origin="imported", digits=9)
    assert not Figure.objects.filter(key="typed").exists()
    desk.derive("typed", expression, {"a": "g0"}, origin="imported", digits=9)
    desk.derive("percent", "100 * a", {"a": "g0"}, kind="effect", origin="imported")


def rewrite(version: FigureVersion | None, **columns: Any) -> None:
    """Change a stored version as someone with access to the database would, or as one from before a rule stands."""
    assert version is not None
    drop_triggers(connection)
    names = ", ".join(f"{name} = %s" for name in columns)
    values = [json.dumps(value) if isinstance(value, dict) else value for value in columns.values()]
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE evidence_figureversion SET {names} WHERE id = %s", [*values, version.pk])
    install_triggers(connection)


@pytest.mark.parametrize(
    ("expression", "value", "said"),
    [
        ("100 * a", "800", ""),
        ("a * 2", "16", "the constant 2"),
        ("1 - a + 20.5", "27/2", "the constant 20.5"),
        ("a * count(a)", "8", "got count"),
        ("a / a", "1", "g0 2 times"),
    ],
)
def test_verify_names_a_stored_effect_that_holds_a_typed_number(
    desk: Desk, expression: str, value: str, said: str
) -> None:
    """An effect of 8 rows from before the rule; 100 * a alone is no number of somebody's own."""
    desk.transcribe("theirs", "Then 8 of 244 rows.")
    imported(desk, "g0", "8")
    version = desk.derive("typed", "100 * a", {"a": "g0"}, kind="effect", origin="imported")
    rewrite(version, binding={**version.binding, "expression": expression}, value=value)
    found = [item for item in verify(store=blob_store(), steps=[14]).faults if item.column == "binding"]
    assert [item.row for item in found] == (["typed"] if said else [])
    assert all(said in str(item.got) for item in found)
    rewrite(version, kind="mechanism")
    assert not [item for item in verify(store=blob_store(), steps=[14]).faults if item.column == "binding"]


def test_verify_judges_the_text_alone_where_an_operand_has_no_value(desk: Desk) -> None:
    """Its drift is named for what it is; the constant still is for what it is."""
    desk.transcribe("theirs", "Then 8 of 244 rows.")
    imported(desk, "g0", "8")
    imported(desk, "g1", "244")
    version = desk.derive("share", "a / b", {"a": "g0", "b": "g1"}, kind="effect", origin="imported", digits=3)
    rewrite(of("g1").current, value=None)
    assert "binding" not in {item.column for item in verify(store=blob_store(), steps=[14]).faults}
    rewrite(version, binding={**version.binding, "expression": "a / b + 7"})
    assert "binding" in {item.column for item in verify(store=blob_store(), steps=[14]).faults}


def test_verify_names_an_imported_effect_of_another_kind_and_a_native_figure_of_imported_ones(desk: Desk) -> None:
    """What may not be bound is named where it stands."""
    desk.transcribe("theirs", "Then 8 of 244 rows.")
    imported(desk, "g0", "8")
    version = desk.derive("percent", "100 * a", {"a": "g0"}, kind="effect", origin="imported")
    rewrite(of("g0").current, kind="mechanism")
    assert [(item.row, item.column) for item in verify(store=blob_store(), steps=[14]).faults] == [("percent", "kind")]
    rewrite(version, kind="mechanism", origin="native")
    faults = verify(store=blob_store(), steps=[14]).faults
    assert [(item.row, item.column) for item in faults] == [("percent", "origin")]
