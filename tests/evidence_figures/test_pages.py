"""Pages of figures: what each says, what it refuses, and how many queries it takes."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evidence.models import Figure
from evidence.presenters.chips import chips_for
from runs.models import User

from .desk import Desk


@pytest.fixture
def signed_in(client: Client, desk: Desk) -> Client:
    """The founder of the study."""
    client.force_login(desk.user)
    return client


class Text(HTMLParser):
    """The words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        """One run of text."""
        self.parts.append(data)


def words(response: object) -> str:
    """All words of an answer."""
    return " ".join("".join(Text(response.content.decode()).parts).split())  # type: ignore[attr-defined]


def test_a_figure_says_how_it_is_bound(signed_in: Client, bound: Desk) -> None:
    """The derivation, its operands with their values, and the value computed again."""
    response = signed_in.get(f"/figures/{Figure.objects.get(key='pilot.share').uid}/")
    text = words(response)
    assert response.status_code == 200
    for part in ("37.7 %", "nonzero / usable", "pilot.nonzero", "244", "23/61", "equal to what is stored"):
        assert part in text
    usable = words(signed_in.get(f"/figures/{Figure.objects.get(key='pilot.usable').uid}/"))
    assert "Of 244 usable rows 92 were nonzero" in usable and "What rests on it1 place derived figure" in usable


def test_old_values_are_struck_and_legible(signed_in: Client, bound: Desk) -> None:
    """A corrected figure keeps its versions."""
    bound.number("pilot.nonzero", "92", unit="rows", digits=1, reason="shown with a digit")
    page = signed_in.get(f"/figures/{Figure.objects.get(key='pilot.nonzero').uid}/").content.decode()
    assert "<s>92</s>" in page and "<b>92.0</b>" in page and "shown with a digit" in page


def test_a_hidden_figure_is_absent(client: Client, bound: Desk) -> None:
    """Nobody sees a private study's figure, and a stranger neither."""
    uid = Figure.objects.get(key="pilot.share").uid
    addresses = (f"/figures/{uid}/", f"/figures/{uid}/card/", "/figures/search.json?study=pilot&q=")
    assert {client.get(address).status_code for address in addresses} == {404}
    client.force_login(User.objects.create_user("eve"))
    assert {client.get(address).status_code for address in addresses} == {404}
    assert "pilot.share" not in client.get("/figures/").content.decode()


def test_the_list_filters(signed_in: Client, bound: Desk) -> None:
    """By words, kind and state; counts stand beside the filters."""
    bound.bind("waiting", {"type": "pending", "fills": {"words_en": "a run"}}, kind="effect")
    assert "4 figures" in words(signed_in.get("/figures/?study=pilot"))
    text = words(signed_in.get("/figures/?state=pending"))
    assert "1 figure" in text and "waiting" in text and "pilot.share" not in text
    assert "pilot.share" in words(signed_in.get("/figures/?q=share&kind=mechanism"))
    assert "No figure that you can see" in words(signed_in.get("/figures/?q=absent"))


def test_the_list_costs_the_same_with_more_figures(signed_in: Client, bound: Desk) -> None:
    """No query a row."""

    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert signed_in.get("/figures/").status_code == 200
        return len(queries)

    count()
    few = count()
    for number in range(20):
        bound.number(f"more.n{number}", "92")
        bound.derive(f"more.d{number}", "n + n", {"n": f"more.n{number}"})
    assert count() == few


def test_chips_cost_two_queries(bound: Desk, django_assert_num_queries: object) -> None:
    """However many keys a page names."""
    from evidence.presenters.chips import chips_for

    with django_assert_num_queries(2):  # type: ignore[operator]
        chips = chips_for(bound.study, ["pilot.share", "pilot.usable", "pilot.nonzero"])
        assert [chip.source_name for chip in chips.values()] and chips["pilot.share"].rows("zh")


def test_a_form_binds_and_refuses(signed_in: Client, bound: Desk) -> None:
    """The live check says what would be bound; a wrong number comes back with what was typed."""
    given = {
        "study": "pilot", "key": "pilot.again", "type": "excerpt", "excerpt.excerpt": "counts",
        "excerpt.number": "93", "kind": "mechanism", "title_en": "Again",
    }  # fmt: skip
    refused = signed_in.post("/figures/new/", given)
    assert refused.status_code == 422 and "of which the excerpt holds 0" in words(refused)
    assert 'value="93"' in refused.content.decode() and not Figure.objects.filter(key="pilot.again").exists()
    checked = signed_in.get("/figures/check.json", {**given, "excerpt.number": "92"}).json()
    assert (checked["ok"], checked["shown"], checked["state"]) == (True, "92", "bound")
    assert signed_in.post("/figures/new/", {**given, "excerpt.number": "92"}).status_code == 302
    assert Figure.objects.get(key="pilot.again").current.value == "92"  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["pointer", "cell", "derivation", "pending", "unavailable", "endpoint", "typed"])
def test_each_type_of_the_form(signed_in: Client, bound: Desk, form: str) -> None:
    """Every panel says a binding; one that is not complete is refused by name, and nothing crashes."""
    complete = {
        "pointer": {"pointer.source": "data.json", "pointer.pointer": "/counts/usable"},
        "cell": {"cell.source": "table.csv", "cell.column": "n", "cell.key_column": "arm", "cell.row": "masked"},
        "derivation": {"derivation.expression": "a - b", "derivation.operands": "a = pilot.usable\nb = pilot.nonzero"},
        "pending": {"pending.words_en": "a run"},
        "unavailable": {"unavailable.reason_en": "never recorded"},
    }
    given = {"study": "pilot", "key": f"by.{form}", "type": form, "kind": "mechanism", "title_en": "Form"}
    assert signed_in.post("/figures/new/", given).status_code == 422
    if form in complete:
        assert signed_in.post("/figures/new/", {**given, **complete[form]}).status_code == 302
        figure = Figure.objects.get(key=f"by.{form}")
        page = signed_in.get(f"/figures/new/?study=pilot&figure={figure.key}").content.decode()
        assert all(f'name="{name}"' in page for name in complete[form])
        assert signed_in.get(f"/figures/{figure.uid}/").status_code == 200


def test_who_may_bind(client: Client, bound: Desk) -> None:
    """A reader of a public study sees a figure and may not bind one."""
    bound.study.visibility = "public"
    bound.study.save()
    client.force_login(User.objects.create_user("reader"))
    share = Figure.objects.get(key="pilot.share")
    page = client.get(f"/figures/{share.uid}/")
    assert page.status_code == 200 and "Bind anew" not in page.content.decode()
    assert client.get("/figures/new/?study=pilot").status_code == 403
    assert client.post("/figures/new/", {"study": "pilot"}).status_code == 403
    assert client.post(f"/figures/{share.uid}/recompute/").status_code == 403


def test_the_editor_finds_figures_and_excerpts(signed_in: Client, bound: Desk) -> None:
    """By key and by words, with the token to write."""
    found = signed_in.get("/figures/search.json", {"study": "pilot", "q": "nonzero"}).json()
    assert [item["token"] for item in found["figures"]] == ["[[pilot.nonzero]]"]
    assert [item["key"] for item in found["excerpts"]] == ["counts"]
    assert signed_in.get("/figures/search.json", {"study": "absent", "q": ""}).status_code == 404


def test_a_text_shows_chips_and_escapes_the_rest(bound: Desk) -> None:
    """A chip carries its card; prose, names and titles are escaped."""
    bound.transcribe("claimed", "“5” of <b>them</b>")
    bound.number("hostile", "5", "claimed", title_en='<img src=x onerror="x">', origin="imported")
    text = "<script>x</script> [[pilot.share]] of [[hostile]], [[absent]], [@R1], {{name:<i>E2F</i>}}"
    page = Template("{% load evidence_text %}{% evidence_text text study 'en' %}").render(
        Context({"text": {"en": text, "zh": ""}, "study": bound.study})
    )
    assert "<script>" not in page and "<img" not in page and "<i>" not in page and "<b>" not in page
    assert 'data-shown="37.7 %"' in page and "is-claimed" in page and "is-unknown" in page and "[R1]" in page
    card = page.split('data-card="')[1].split('"')[0].replace("&quot;", '"').replace("&#x27;", "'")
    assert ["Exact value", "92/244"] in json.loads(card)


def test_a_corrected_value_stands_struck_beside_the_new_one(bound: Desk, client: Client) -> None:
    """244 -> 92 rows: on the page, on the card and in the chip's own attribute; a new title alone strikes nothing."""
    bound.study.visibility = "public"
    bound.study.save()
    figure = Figure.objects.get(key="pilot.usable")
    bound.number("pilot.usable", "244", unit="rows", title_en="Usable rows", reason="a better title")
    addresses = (f"/figures/{figure.uid}/", f"/figures/{figure.uid}/card/")
    assert not any("<s" in client.get(address).content.decode() for address in addresses[1:])
    bound.number("pilot.usable", "92", unit="rows", title_en="Usable rows", reason="the other count")
    page, card = (client.get(address).content.decode() for address in addresses)
    assert '<s title="before it was bound anew">244</s> 92' in page and "<s>244</s> 92" in card
    assert chips_for(bound.study, ["pilot.usable", "pilot.share"])["pilot.usable"].earlier == ("244",)
    listing = client.get("/figures/").content.decode()
    assert "data-earlier=&quot;" not in listing and 'data-earlier="[&quot;244&quot;]"' in listing


def test_a_filled_figure_was_not_corrected(desk: Desk) -> None:
    """Pending has no value, and is no 0: once it is bound nothing stands struck."""
    desk.bind("a", {"type": "pending", "fills": {"words_en": "a count"}})
    desk.bind("a", {"type": "pointer", "source": "data.json", "pointer": "/counts/usable"}, reason="counted")
    assert chips_for(desk.study, ["a"])["a"].earlier == ()
