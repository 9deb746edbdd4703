"""What changes under a figure: bytes flipped and restored, sources superseded, values bound anew, circles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evidence.actions.excerpts import add_excerpt, check_excerpt
from evidence.actions.figures import bind_figure, refresh_figure
from evidence.actions.sources import add_source
from evidence.binding.figures import Resolver, check_binding, recompute
from evidence.models import Excerpt, Figure, SourceVersion, StaleMark
from evidence.presenters.chips import chips_for
from runs.errors import DomainError
from runs.storage import blob_store

from .desk import AT, NOTES, Desk


def overwrite(version: SourceVersion, data: bytes) -> None:
    """Put other bytes under a hash, as a broken disk or a hand would."""
    path: Path = blob_store().path(version.sha256)
    path.chmod(0o644)
    path.write_bytes(data)


def of(key: str) -> Figure:
    """The figure of a key."""
    return Figure.objects.select_related("current", "study").get(key=key)


def test_a_flipped_byte_is_drift_and_restored_bytes_heal(bound: Desk) -> None:
    """244 becomes 245: the excerpt is orphan, the figure and the share drift; restored, both hold again."""
    version = bound.sources["pilot.md"]
    overwrite(version, NOTES.replace("244", "245").encode())
    assert check_excerpt(Excerpt.objects.get(key="counts"), at=AT).state == "orphan"
    for key in ("pilot.usable", "pilot.share"):
        found = recompute(of(key))
        assert found.state == "drifted" and found.trouble
    assert refresh_figure(of("pilot.usable"), by=bound.by, at=AT).state == "drifted"
    assert of("pilot.usable").state == "drifted" and of("pilot.share").stale
    assert StaleMark.objects.filter(target_uid=of("pilot.share").uid, resolution=None).exists()
    assert chips_for(bound.study, ["pilot.usable"])["pilot.usable"].look.tone == "drifted"
    overwrite(version, NOTES.encode())
    assert check_excerpt(Excerpt.objects.get(key="counts"), at=AT).state == "found"
    assert refresh_figure(of("pilot.usable"), by=bound.by, at=AT).state == "bound"
    assert of("pilot.usable").state == "bound" and not of("pilot.share").stale


def test_a_flipped_byte_elsewhere_moves_the_excerpt(bound: Desk) -> None:
    """The quotation still stands, in bytes that are not those of the hash: it shows nothing until they are."""
    overwrite(bound.sources["pilot.md"], NOTES.replace("17 hours", "18 hours").encode())
    assert check_excerpt(Excerpt.objects.get(key="counts"), at=AT).state == "moved"
    assert recompute(of("pilot.usable")).state == "drifted"


def test_bytes_that_are_gone_prove_nothing(bound: Desk) -> None:
    """Neither bound nor zero: the stored value stays, claimed."""
    blob_store().path(bound.sources["pilot.md"].sha256).unlink()
    found = recompute(of("pilot.usable"))
    assert (found.state, found.value) == ("claimed", "244") and "gone" in found.trouble
    assert check_excerpt(Excerpt.objects.get(key="counts"), at=AT).state == "unavailable"
    with pytest.raises(DomainError, match="not here now"):
        bound.quote("late", "17 hours")


def test_a_newer_version_moves_or_orphans(bound: Desk) -> None:
    """A line put before the quotation moves it; another number in it makes it orphan, and the figures stale."""
    newer = f"A new line.\n{NOTES}".encode()
    add_source(bound.study, "pilot.md", newer, origin="upload", by=bound.by, at=AT, reason="a line was added")
    excerpt = Excerpt.objects.select_related("version__source").get(key="counts")
    head = check_excerpt(excerpt, at=AT)
    assert (head.state, head.first_line) == ("moved", 4)
    assert of("pilot.usable").stale and recompute(of("pilot.usable")).state == "bound"
    other = NOTES.replace("92 were", "93 were").encode()
    add_source(bound.study, "pilot.md", other, origin="upload", by=bound.by, at=AT, reason="recounted")
    excerpt = Excerpt.objects.select_related("version__source").get(key="counts")
    assert check_excerpt(excerpt, at=AT).state == "orphan"
    assert recompute(of("pilot.nonzero")).state == "drifted"


def test_a_pointer_follows_the_newest_bytes(desk: Desk) -> None:
    """999 was corrected to 995: the figure recomputes to it, and stays 999 until it is bound anew."""
    add_source(desk.study, "sum.json", b'{"raw": 999}', origin="upload", by=desk.by, at=AT)
    binding = {"type": "pointer", "source": "sum.json", "pointer": "/raw"}
    desk.bind("raw", binding)
    add_source(desk.study, "sum.json", b'{"raw": 995}', origin="upload", by=desk.by, at=AT, reason="corrected")
    found = recompute(of("raw"))
    assert (found.state, found.value) == ("drifted", "995") and "stored is 999" in found.trouble
    assert of("raw").stale and of("raw").current.value == "999"  # type: ignore[union-attr]
    desk.bind("raw", binding, reason="the aggregate was corrected")
    figure = of("raw")
    assert not figure.stale and [row.value for row in figure.versions.order_by("number")] == ["999", "995"]
    assert recompute(figure) == ("bound", "995", "")


def test_a_corrected_operand_marks_what_is_derived(bound: Desk) -> None:
    """The share stays what it was, marked; bound anew it is 17/244."""
    bound.quote("lost", "44 were lost")
    bound.number("pilot.nonzero", "44", "lost", unit="rows", reason="the wrong count")
    assert of("pilot.share").stale and recompute(of("pilot.share")).value == "11/61"  # 44 / 244
    operands = {"nonzero": "pilot.nonzero", "usable": "pilot.usable"}
    bound.derive("pilot.share", "nonzero / usable", operands, style="percent", digits=1, reason="recounted")
    assert not of("pilot.share").stale and of("pilot.share").current.value == "11/61"  # type: ignore[union-attr]


def test_a_circle_is_refused_by_name(bound: Desk) -> None:
    """share rests on usable, so usable cannot rest on share; nor a figure on itself."""
    with pytest.raises(DomainError, match=r"circle pilot\.usable -> pilot.share -> pilot.usable"):
        bound.derive("pilot.usable", "share * 2", {"share": "pilot.share"}, reason="a circle")
    with pytest.raises(DomainError, match=r"circle pilot\.share -> pilot.share"):
        bound.derive("pilot.share", "share * 2", {"share": "pilot.share"}, reason="a circle")
    with pytest.raises(DomainError, match="expected the key of a figure"):
        bound.derive("own", "own * 2", {"own": "own"})


def test_a_circle_in_stored_rows_ends(bound: Desk) -> None:
    """Rows that a hand has written in a circle are an error by name, not a hang."""
    share = of("pilot.share")
    assert share.current is not None
    usable = of("pilot.usable")
    assert usable.current is not None
    resolver = Resolver(bound.study)
    resolver.load([share, usable])
    usable.current.binding = check_binding(
        {"type": "derivation", "expression": "share + share", "figures": {"share": "pilot.share"}}
    )
    found = recompute(share, resolver)
    assert found.state == "drifted" and "circle pilot.share -> pilot.usable -> pilot.share" in found.trouble


def test_a_long_chain_ends(bound: Desk) -> None:
    """Each figure is one more than the one before: 244 + 30; a chain beyond the limit is refused by name."""
    bound.number("n0", "244")
    for number in range(1, 31):
        bound.derive(f"n{number}", "n + 1", {"n": f"n{number - 1}"})
    assert of("n30").current.value == "274"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("expression", "figures", "message"),
    [
        ("usable / (usable - usable)", {"usable": "pilot.usable"}, "divisor of 0"),
        ("usable + wait", {"usable": "pilot.usable", "wait": "waiting"}, "wait: got waiting, which has no value"),
        ("usable + gone", {"usable": "pilot.usable", "gone": "gone"}, "gone: got gone, which has no value"),
        ("usable + hours", {"usable": "pilot.usable", "hours": "hours"}, "expected one unit"),
        ("usable", {"usable": "pilot.usable", "more": "hours"}, "that the expression does not use"),
        ("usable + more", {"usable": "pilot.usable"}, "got none for 'more'"),
        ("__import__('os')", {"usable": "pilot.usable"}, "expected numbers, figures"),
        ("usable / 1000000000", {"usable": "pilot.usable"}, "would show as 0"),
    ],
)
def test_derivations_that_give_nothing(bound: Desk, expression: str, figures: dict[str, str], message: str) -> None:
    """Each error names what is wrong; nothing is stored, and nothing is shown as 0."""
    bound.quote("time", "The run took 17 hours")
    bound.number("hours", "17", "time", unit="h")
    bound.bind("waiting", {"type": "pending", "fills": {"words_en": "a run"}})
    bound.bind("gone", {"type": "unavailable", "reason_en": "never recorded"})
    with pytest.raises(DomainError, match=message.replace("(", r"\(").replace(")", r"\)")):
        bound.derive("derived", expression, figures)
    assert not Figure.objects.filter(key="derived").exists()


def test_pending_and_unavailable_say_so_and_never_zero(desk: Desk) -> None:
    """An em dash with what would fill it; the word, with why."""
    words = {"words_en": "a held-out evaluation", "words_zh": "留出评测"}
    desk.bind("wait", {"type": "pending", "fills": words})
    desk.bind("gone", {"type": "unavailable", "reason_en": "never recorded", "reason_zh": "未记录"})
    chips = chips_for(desk.study, ["wait", "gone"])
    assert chips["wait"].shown == "—" and chips["gone"].shown == "unavailable"
    assert chips["wait"].why("zh") == "留出评测" and chips["gone"].why("en") == "never recorded"
    assert [recompute(of(key)).value for key in ("wait", "gone")] == [None, None]


def test_imported_numbers_stay_imported(desk: Desk) -> None:
    """A transcription is claimed; what is derived from it is imported too; ours cannot rest on it unsaid."""
    desk.transcribe("theirs", "With it 8 of 27 finished")
    first = desk.number("theirs.n", "8", "theirs", kind="effect", origin="imported")
    desk.number("theirs.of", "27", "theirs", kind="effect", origin="imported")
    assert first.figure.state == "claimed" and recompute(first.figure).state == "claimed"
    operands = {"n": "theirs.n", "of": "theirs.of"}
    with pytest.raises(DomainError, match="expected imported"):
        desk.derive("theirs.rate", "n / of", operands, kind="effect")
    rate = desk.derive("theirs.rate", "n / of", operands, kind="effect", origin="imported", style="ratio")
    assert rate.figure.state == "claimed"
    with pytest.raises(DomainError, match="expected endpoint or cell_rate of a closed execution"):
        desk.number("ours", "8", "theirs", kind="effect")


def test_excerpts_of_another_study_are_refused(desk: Desk) -> None:
    """Neither its sources nor its excerpts."""
    from runs.actions.studies import create_study

    other = create_study("other", title={"en": "Other"}, summary={}, by=desk.user, at=AT)
    with pytest.raises(DomainError, match="source of another study"):
        add_excerpt(
            other, desk.sources["pilot.md"], "theirs", "quote", {"exact": "17 hours"}, by=desk.by, at=AT
        )  # fmt: skip
    desk.quote("mine", "17 hours")
    binding = {"type": "excerpt", "excerpt": "mine", "number": "17"}
    with pytest.raises(DomainError, match="expected the key of an excerpt of this study"):
        bind_figure(other, "x", binding, title_en="x", kind="mechanism", by=desk.by, at=AT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"title_en": ""}, "title_en: got nothing"), ({"title_en": "x" * 301}, "at most 300"),
        ({"digits": 13}, "from 0 to 12"), ({"digits": True}, "from 0 to 12"), ({"style": "bold"}, "style: got"),
        ({"style": "ratio"}, "without numerator and denominator"), ({"unit": "a b/"}, "unit: got"),
        ({"origin": "theirs"}, "origin: got"), ({"scope_en": "a\x00b"}, "scope_en: got"),
    ],
)  # fmt: skip
def test_columns_are_checked(bound: Desk, given: dict[str, Any], message: str) -> None:
    """Each by its field."""
    with pytest.raises(DomainError, match=message):
        bound.number("more", "92", **given)


@pytest.mark.parametrize("key", ["", "a b", "-a", "a]", "[[a]]", "a" * 101, "ä", "a/b"])
def test_keys_are_plain(bound: Desk, key: str) -> None:
    """What a text could not name is no key."""
    with pytest.raises(DomainError, match="key: got"):
        bound.number(key, "92", title_en="a title")
