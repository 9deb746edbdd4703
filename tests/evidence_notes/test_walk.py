"""The walk itself: what is planted on a page is found, of every kind and place."""

from __future__ import annotations

import pytest

from evidence.models import Figure

from .build import Desk
from .test_page import read
from .walk import walk_page


@pytest.mark.parametrize(
    "planted, found",
    [
        ("<p>It gained 12 points.</p>", "'12'"),
        ("<p>It gained twelve points.</p>", "'twelve'"),
        ("<p>提升了两成。</p>", "两"),
        ("<svg><text>92</text></svg>", "'92'"),
        ('<svg aria-label="up by 92"></svg>', "'92'"),
        ('<img alt="92 of them">', "'92'"),
        ('<i title="a third">x</i>', "third"),
        ("<p>９２</p>", "９２"),
    ],
)
def test_a_number_that_nothing_binds_is_found(written: Desk, planted: str, found: str) -> None:
    walked = walk_page(written.study, read().replace("<h1>", f"{planted}<h1>", 1))
    assert [item for item in walked.loose if found in item] and not walked.wrong


@pytest.mark.parametrize(
    "planted",
    [
        '<b data-walk="ordinal">twelve</b>',
        '<b data-walk="label">[R92]</b>',
        '<b data-walk="hash">0123456789ab</b>',
        '<b data-walk="count" data-count="figures:bound">92</b>',
        '<b data-walk="name">92 points</b>',
        '<b data-walk="path">92</b>',
        '<b data-walk="anything">92</b>',
        '<span data-declared="name">92</span>',
        "<time>92</time>",
        '<a data-figure="00000000-0000-0000-0000-000000000000" data-shown="92">92</a>',
    ],
)
def test_a_mark_is_no_way_past_the_walk(written: Desk, planted: str) -> None:
    assert walk_page(written.study, read().replace("<h1>", f"{planted}<h1>", 1)).wrong


def test_a_chip_that_shows_another_value_is_found(written: Desk) -> None:
    html = read().replace('<span class="fig-value">244</span>', '<span class="fig-value">245</span>', 1)
    assert walk_page(written.study, html).wrong == ["pilot.usable: shows '245', its record says '244'"]


def test_a_stored_value_that_computes_to_another_is_found(written: Desk) -> None:
    """A figure whose bytes are gone from under it: the page shows what is stored, the walk computes again."""
    html = read()
    other = Figure.objects.get(study=written.study, key="pilot.nonzero")
    Figure.objects.filter(study=written.study, key="pilot.usable").update(current=other.current)
    assert any(item.startswith("pilot.usable: shows '244'") for item in walk_page(written.study, html).wrong)
