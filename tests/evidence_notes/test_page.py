"""The notes page: every section from the database, every number bound, marked where its evidence has changed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from evidence.actions.notes import accept_contract
from evidence.models import Figure
from evidence.notes import shapes
from runs.models import Job, Study

from .build import Desk, number, said, whole
from .walk import Element, parse, walk_page

PAGE = "/studies/pilot/notes/"


def read(path: str = f"{PAGE}en/", client: Client | None = None, **query: Any) -> str:
    """The HTML of a page that answers."""
    answer = (client or Client()).get(path, query)
    assert answer.status_code == 200
    return answer.content.decode()


def find(html: str, identity: str) -> Element:
    """The element with an id."""
    return next(item for item in parse(html).all() if item.attributes.get("id") == identity)


def plain(element: Element) -> str:
    """Its text on one line."""
    return " ".join(element.text().split())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_on_the_page_is_bound_and_right(written: Desk, language: str) -> None:
    html = read(f"{PAGE}{language}/")
    found = walk_page(written.study, html, language)
    assert found.clean, [*found.loose, *found.wrong]
    assert {"pilot.usable", "pilot.nonzero", "pilot.share", "pilot.lost", "effect"} == set(found.chips)
    assert found.exempt["quotation"] == 2 and found.exempt["ordinal"] >= 2 * len(shapes.SECTIONS)


def test_sections_come_in_order_numbered_with_permalinks(written: Desk) -> None:
    html = read()
    sections = [item for item in parse(html).all() if "data-section" in item.attributes]
    assert [item.attributes["id"] for item in sections] == list(shapes.SECTIONS)
    contents = [item for item in parse(html).all() if "data-contents" in item.attributes]
    assert [item.attributes["href"] for item in contents] == [f"#{name}" for name in shapes.SECTIONS]
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids)), "permalinks lead to one place each"
    assert plain(find(html, "why-1-2")).startswith("Of 244 queries, 92 differ.")
    assert 'href="#why-1-2"' in html and 'href="#why"' in html


def test_the_head_says_what_kind_of_page_this_is(written: Desk) -> None:
    html = read()
    for words in ("evidence snapshot, not live status", "Effect open", "2026-11-01", "2026-10-01", "record ends"):
        assert words in html
    tallies = [plain(item) for item in parse(html).all() if item.attributes.get("class") == "tally"]
    assert tallies == [
        "3 bound and recomputed", "1 bound, bytes not held", "1 pending", "1 verified", "1 by hash only",
    ]  # fmt: skip


def test_each_language_has_its_address_and_the_plain_one_follows_the_session(written: Desk) -> None:
    assert '<html lang="zh-Hans"' in read(f"{PAGE}zh/") and "编辑的信用" in read(f"{PAGE}zh/")
    client = Client()
    assert '<html lang="en"' in read(PAGE, client)
    client.post("/i18n/setlang/", {"language": "zh-hans"})
    html = read(PAGE, client)
    assert '<html lang="zh-Hans"' in html and 'hreflang="en" href="/studies/pilot/notes/en/"' in html
    assert '<html lang="en"' in read(f"{PAGE}en/", client), "an address with a language keeps it"
    assert client.get(f"{PAGE}en/").headers["Content-Language"] == "en"


def test_a_text_without_its_language_is_said_to_be_in_the_other(desk: Desk) -> None:
    desk.save(whole(subtitle=said("Only English")))
    assert '<span lang="en">Only English</span>' in read(f"{PAGE}zh/")


def test_what_an_author_wrote_is_escaped(desk: Desk) -> None:
    desk.save(whole(title=said("<script>alert(this)</script> & more")))
    html = read()
    assert "<script>alert" not in html and "&lt;script&gt;alert(this)&lt;/script&gt; &amp; more" in html


def test_pending_is_a_dash_with_what_would_fill_it(written: Desk) -> None:
    cards = [item for item in parse(read()).all() if item.attributes.get("class", "").startswith("figure-card ")]
    assert [plain(card).split()[0] for card in cards] == ["244", "—"]
    assert "the held-out evaluation" in plain(cards[1]) and "pending" in plain(cards[1])


def test_bars_are_as_long_as_the_values_say(written: Desk) -> None:
    """92 of 244 on a scale of 244: 684 * 92 / 244 = 257.9; the pending one has no bar."""
    html = read()
    widths = dict(re.findall(r'<rect class="(whole|value) ?[^"]*" x="0" y="[^"]*" width="([\d.]+)"', html))
    assert widths == {"whole": "684", "value": "257.9"}
    assert html.count('class="none" d=') == 1
    assert 'width="257.9"' in read(f"{PAGE}zh/"), "geometry is the same in every language"


def test_claims_come_with_verdict_evidence_and_what_is_missing(written: Desk) -> None:
    row = plain(find(read(), "meaning-1-signal"))
    assert row.startswith("92 queries carry a signal.") and "37.7 %" in row and "an independent repetition" in row


def test_problems_are_ordered_by_category_and_priority(written: Desk) -> None:
    text = plain(find(read(), "problems"))
    places = [text.index(word) for word in ("Execution", "Recovery", "Later", "Writing", "Words")]
    assert places == sorted(places) and "Done whenbound" in text


def test_sources_carry_hash_day_state_and_marked_excerpts(written: Desk) -> None:
    html = read()
    held, claimed = find(html, "source-R1"), find(html, "source-R2")
    assert "verified" in plain(held) and "hash only" in plain(claimed)
    marks = [plain(item) for item in held.all() if item.tag == "mark"]
    assert marks == ["244", "92"], "the numbers that figures take from the excerpt"
    notes = [item.attributes["data-note"] for item in find(html, "why").all() if "data-note" in item.attributes]
    assert notes == ["R2", "R1"], "margin notes in the order in which a reader meets the sources"


def test_a_corrected_figure_keeps_its_old_value_struck_but_legible(desk: Desk) -> None:
    desk.save()
    desk.replace("# Pilot\n\nOf 250 usable rows 92 were nonzero.\n")
    from evidence.actions.excerpts import add_excerpt
    from evidence.models import Source

    version = Source.objects.get(study=desk.study, path="pilot.md").current
    assert version is not None
    add_excerpt(desk.study, version, "counts.2", "quote", {"exact": "Of 250 usable rows"}, by=desk.by, at=desk.tick())
    number(desk, "pilot.usable", "250", "counts.2", reason="the record was corrected")
    html = read()
    struck = [plain(item) for item in find(html, "versions").all() if item.tag == "s"]
    assert struck == ["244"] and "250" in plain(find(html, "versions"))
    found = walk_page(desk.study, html)
    assert not found.loose


def test_a_changed_source_marks_the_page_and_its_sections(written: Desk) -> None:
    assert "has changed since it was written" not in read()
    written.replace("# Pilot\n\nOf 244 usable rows 93 were nonzero.\n")
    assert Figure.objects.get(study=written.study, key="pilot.nonzero").stale
    html = read()
    assert "has changed since it was written" in html
    for name in ("why", "results", "meaning"):
        assert "stale" in find(html, name).attributes["class"].split(), name
    assert "stale" not in find(html, "milestones").attributes["class"].split()
    assert find(html, "meaning-1-signal").attributes["class"].split()[-1] == "stale"


def test_an_imported_record_says_so_at_the_top_and_at_the_foot(desk: Desk) -> None:
    desk.save(whole(imported={"of": said("The record of others", "他人的记录"), "note": said("Not measured here")}))
    html = read()
    assert html.index("An imported record") < html.index("<h1>") < html.index("Imported record:")
    assert html.count("The record of others") == 2


def test_an_earlier_version_stays_readable_and_says_what_it_is(written: Desk) -> None:
    written.save(whole(subtitle=said("Another", "另外")), "clearer")
    assert "An earlier version" not in read()
    html = read(version="1")
    assert "An earlier version" in html and "A pilot" in html and "clearer" in html
    for number_ in ("3", "x", "-1"):
        assert Client().get(f"{PAGE}en/", {"version": number_}).status_code == 404


def test_a_draft_that_was_accepted_is_no_readiness(written: Desk) -> None:
    accept_contract(written.study, status="accepted", assurance="draft", by=written.by, at=written.tick())
    assert "accepted as a draft, which is no readiness" in read()


def test_a_hidden_study_has_no_page_and_reading_starts_nothing(written: Desk) -> None:
    read()
    assert not Job.objects.exists()
    assert Client().post(f"{PAGE}en/").status_code == 405
    Study.objects.filter(pk=written.study.pk).update(visibility=Study.PRIVATE)
    assert {Client().get(f"{PAGE}{part}").status_code for part in ("", "en/", "zh/", "versions/")} == {404}


def test_a_study_without_notes_says_what_would_fill_the_page(desk: Desk) -> None:
    html = read(PAGE)
    assert "No research note yet" in html and "manage.py notes import" in html


def test_versions_show_what_differs_word_by_word(written: Desk) -> None:
    written.save(whole(subtitle=said("A pilot study", "先导")), "clearer")
    html = read(f"{PAGE}versions/")
    assert "From version 1 to version 2" in html and "<code>subtitle.en</code>" in html
    assert re.search(r"A pilot<ins> study</ins>", html)


def test_the_page_takes_as_many_queries_however_much_it_holds(
    written: Desk, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """Study, notes, claims and links, figures and operands, sources, excerpts, what they bind, marks, history."""
    client = Client()
    read(client=client)
    with django_assert_max_num_queries(15) as first:
        read(client=client)
    document = whole()
    document["sections"][0]["blocks"] += document["sections"][0]["blocks"][:1] * 40
    for at in range(20):
        number(written, f"more.{at}", "92")
        document["sections"][3]["blocks"][0]["items"].append({"figure": f"more.{at}"})
    written.save(document, "more")
    with django_assert_max_num_queries(15) as second:
        read(client=client)
    assert len(second.captured_queries) == len(first.captured_queries)
