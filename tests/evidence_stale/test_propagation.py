"""What rests on what: each dependant once, by a shortest path, in a number of queries that does not grow."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evidence.models import LinkWithdrawal, Source, StaleMark
from evidence.propagation import Path, dependants, named_in, section_uid
from runs.errors import DomainError
from tests.evidence_stale.rows import Web


def keys(web: Web, paths: list[Path]) -> dict[str, list[str]]:
    """Target -> path, in keys instead of uids."""
    named = {str(figure.uid): f"figure {key}" for key, figure in web.figures.items()}
    named |= {str(claim.uid): f"claim {key}" for key, claim in web.claims.items()}
    for source in Source.objects.all():
        named[str(source.uid)] = f"source {source.path}"
        named |= {str(version.uid): f"version {source.path}#{version.number}" for version in source.versions.all()}
    for name in ("why", "results", "meaning", "sources", "page"):
        named[str(section_uid(web.study, name))] = f"section {name}"
    from evidence.models import Excerpt

    named |= {str(item.uid): f"excerpt {item.key}" for item in Excerpt.objects.all()}
    return {named[path.uid]: [named[uid] for _, uid in path.steps] for path in paths}


def test_source_reaches_figures_claims_and_sections(web: Web) -> None:
    """pilot.md: three figures, the derivation, two claims, three sections; nothing of the rest."""
    found = keys(web, dependants("source", Source.objects.get(path="pilot.md").uid))
    assert found.keys() == {
        "figure usable", "figure nonzero", "figure hours", "figure rate", "claim share", "claim linked",
        "section results", "section meaning", "section sources",
    }  # fmt: skip
    assert found["figure rate"] == ["source pilot.md", "excerpt usable", "figure usable", "figure rate"]
    assert found["claim linked"] == ["source pilot.md", "excerpt hours", "claim linked"]
    assert found["claim share"][-2:] == ["figure usable", "claim share"]  # the shortest: not by the derivation
    assert found["section results"][-2:] == ["figure rate", "section results"]
    assert found["section sources"] == ["source pilot.md", "section sources"]


def test_source_that_nothing_names(web: Web) -> None:
    assert dependants("source", Source.objects.get(path="other.md").uid) == []


def test_figure_reaches_what_shows_it_and_not_itself(web: Web) -> None:
    """``hours`` is in no text; ``usable`` is in the derivation, the claim and two sections."""
    assert keys(web, dependants("figure", web.figures["hours"].uid)) == {}
    assert keys(web, dependants("figure", web.figures["usable"].uid)).keys() == {
        "figure rate", "claim share", "section results", "section meaning"
    }  # fmt: skip


def test_only_what_counts_now(web: Web) -> None:
    """A withdrawn link and an older version of a claim carry nothing."""
    link = web.claims["linked"].links.get()
    web.record(LinkWithdrawal(**web.common(link.uid, "link_withdrawal", "1"), link=link, reason="wrong place"))
    web.claim("share", "A share of rows.", [])
    found = keys(web, dependants("source", Source.objects.get(path="pilot.md").uid))
    assert "claim linked" not in found
    assert "claim share" not in found
    assert "section meaning" not in found
    assert "section results" in found


def test_superseded_only_leaves_the_newest_version_out(web: Web) -> None:
    """A figure bound to version 2 rests on the source, not on what was superseded."""
    newer = web.source("pilot.md", b"Of 240 usable rows.", reason="corrected")
    uid = newer.source.uid
    web.quoted("usable", web.excerpt(newer, "usable2", "240 usable"), "240")
    web.quoted("hours", web.excerpt(newer, "hours2", "240"), "240")
    assert "figure hours" in keys(web, dependants("source", uid))
    older = keys(web, dependants("source", uid, superseded_only=True))
    assert "figure usable" not in older
    assert older["figure rate"][-2:] == ["figure nonzero", "figure rate"]


def test_queries_do_not_grow_and_depth_has_no_limit(web: Web) -> None:
    """A chain of derivations, each of the one before it: the same number of queries as a short one."""
    pilot = Source.objects.get(path="pilot.md").uid

    def measured() -> tuple[int, int]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            found = len(dependants("source", pilot))
        return found, len(queries)

    before, few = measured()
    last = "rate"
    for number in range(60):
        key = f"d{number}"
        web.figure(key, {"type": "derivation", "expression": "x", "figures": {"x": last}}, "1")
        last = key
    after, many = measured()
    assert after == before + 60
    assert many == few


def test_unknown_cause_is_refused(web: Web) -> None:
    with pytest.raises(DomainError, match="kind: got 'planet'"):
        dependants("planet", web.study.uid)
    with pytest.raises(DomainError, match="expected the uid of a figure"):
        dependants("figure", web.study.uid)
    assert not StaleMark.objects.exists()


def test_names_at_any_depth() -> None:
    """Cells, bars with a denominator, corrections, folded details and texts; words in brackets are no names."""
    found = named_in(
        {
            "blocks": [
                {"type": "details", "blocks": [{"type": "table", "rows": [[{"figure": "a.b"}, {"claim": "c"}]]}]},
                {"type": "bars", "items": [{"figure": "n", "of": "m"}]},
                {"type": "corrections", "items": [{"figures": ["old"], "what": {"en": "[[x]] and [@R3] [no]"}}]},
                {"type": "claims", "items": ["k1"]},
            ]
        }
    )
    assert found.figures == {"a.b", "n", "m", "old", "x"}
    assert found.claims == {"c", "k1"}
    assert found.sources == {"R3"}
