"""Checking the bytes of versions again."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from evidence.actions.excerpts import add_excerpt
from evidence.actions.figures import bind_figure
from evidence.actions.sources import BytesUnavailable, add_source, check_all, check_version, read_version
from evidence.models import ExcerptHead, Figure, Source, SourceCheck, SourceVersion
from runs.models import Study
from runs.storage import blob_store

DATA = b'{"nonzero": 92}'


def damage(version: SourceVersion, data: bytes | None) -> None:
    """Put other bytes, or none, under a version's name."""
    path = blob_store().path(version.sha256)
    path.chmod(0o644)
    path.unlink() if data is None else path.write_bytes(data)


def test_equal_bytes_stay_verified_and_record_nothing(study: Study, acting: dict[str, Any]) -> None:
    """A check that finds what the one before it found is no event."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    assert check_version(version, **acting) == "verified" and not SourceCheck.objects.exists()


def test_one_flipped_byte_is_drift_and_the_bytes_back_heal_it(study: Study, acting: dict[str, Any]) -> None:
    """Each change of state is one record with the hash that was found."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    other = DATA.replace(b"92", b"93")
    damage(version, other)
    assert check_version(version, **acting) == check_version(version, **acting) == "drifted"
    with pytest.raises(BytesUnavailable, match="expected those of"):
        read_version(version)
    check = SourceCheck.objects.get()
    assert (check.state, check.found_sha256) == ("drifted", hashlib.sha256(other).hexdigest())
    assert Source.objects.get().state == "drifted"
    damage(version, DATA)
    assert check_version(version, **acting) == "verified"
    assert [row.state for row in SourceCheck.objects.order_by("id")] == ["drifted", "verified"]
    assert Source.objects.get().state == "verified"


def test_bytes_that_are_gone_are_missing(study: Study, acting: dict[str, Any]) -> None:
    """Gone differs from changed and from never held."""
    version = add_source(study, "a.json", DATA, origin="upload", **acting)
    damage(version, None)
    assert check_version(version, **acting) == "missing"
    with pytest.raises(BytesUnavailable, match=r"^bytes: got none"):
        read_version(version)


def test_an_older_version_is_checked_without_touching_the_head(study: Study, acting: dict[str, Any]) -> None:
    """The head shows the newest version's bytes."""
    old = add_source(study, "a.json", DATA, origin="upload", **acting)
    add_source(study, "a.json", b"{}", origin="upload", reason="emptied", **acting)
    damage(old, b"?")
    assert check_all(study, **acting) == {"drifted": 1, "verified": 1}
    assert Source.objects.get().state == "verified" and SourceCheck.objects.get().version == old


def test_a_claimed_version_stays_claimed(study: Study, acting: dict[str, Any]) -> None:
    """Even where bytes of that hash lie in the store for another reason, this version does not hold them."""
    add_source(study, "a.json", DATA, origin="upload", **acting)
    claimed = add_source(study, "b.json", None, sha256=hashlib.sha256(DATA).hexdigest(), origin="imported", **acting)
    assert check_version(claimed, **acting) == "claimed" and not SourceCheck.objects.exists()


def test_what_rests_on_changed_bytes_is_marked_and_heals(study: Study, acting: dict[str, Any]) -> None:
    """An excerpt is an orphan, its figure and a rate over it drift and are stale; the bytes back, all heal."""
    version = add_source(study, "a.md", b"92 of 244 edits", origin="upload", **acting)
    excerpt = add_excerpt(study, version, "counts", "quote", {"exact": "92 of 244"}, **acting)
    titles: dict[str, Any] = {"title_en": "Edits", "kind": "mechanism", **acting}
    for key, number in (("nonzero", "92"), ("usable", "244")):
        bind_figure(study, key, {"type": "excerpt", "excerpt": "counts", "number": number, "occurrence": 1}, **titles)
    figures = {"n": "nonzero", "of": "usable"}
    bind_figure(study, "rate", {"type": "derivation", "expression": "n / of", "figures": figures}, digits=3, **titles)

    def states() -> list[tuple[str, bool]]:
        return list(Figure.objects.order_by("key").values_list("state", "stale"))

    sound = states()
    assert sound == [("bound", False)] * 3
    damage(version, b"93 of 244 edits")
    check_version(version, **acting)
    assert ExcerptHead.objects.get(excerpt=excerpt).state == "orphan"
    assert states() == [("drifted", True)] * 3
    damage(version, b"92 of 244 edits")
    check_version(version, **acting)
    assert ExcerptHead.objects.get(excerpt=excerpt).state == "found" and states() == sound
