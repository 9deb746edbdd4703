"""Every format: recognised, read whole, read in two parts, read truncated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.samples import SOURCES
from workbench.importers import (
    FORMATS,
    LOSSES,
    Cursor,
    ImportRefused,
    Item,
    ProblemItem,
    RolloutItem,
    detect,
    open_import,
)

FORMAT_NAMES = sorted(SOURCES)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: write(tmp_path_factory.mktemp(name)) for name, write in SOURCES.items()}


def losses(items: list[Item]) -> list[ProblemItem]:
    """Problems that make an import partial."""
    return [item for item in items if isinstance(item, ProblemItem) and item.kind in LOSSES]


def test_every_format_has_a_source_here() -> None:
    assert set(SOURCES) == set(FORMATS)


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_recognised_and_read_without_loss(name: str, sources: dict[str, Path]) -> None:
    assert detect(sources[name]) == name
    items = list(open_import(sources[name], name))
    assert items and not losses(items), [str(item) for item in losses(items)]
    assert {item.grade for item in items if isinstance(item, RolloutItem)} <= set(FORMATS[name].grades)


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_the_rest_by_cursor_equals_the_whole(name: str, sources: dict[str, Path]) -> None:
    """Stopping behind any item and going on by its cursor, as stored, gives the items that are missing."""
    whole = [repr(item) for item in open_import(sources[name], name)]
    items = list(open_import(sources[name], name))
    for place, item in enumerate(items):
        cursor = Cursor.from_json(item.cursor.to_json())
        rest = [repr(other) for other in open_import(sources[name], name, cursor)]
        assert whole[: place + 1] + rest == whole, f"after item {place}: {item}"


@pytest.mark.parametrize(
    "name", [name for name in FORMAT_NAMES if name not in ("trl-completions", "telescope", "inspect")]
)
@given(share=st.floats(0.0, 1.0), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_that_grew_goes_on_by_cursor(
    name: str, share: float, data: st.DataObject, sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A prefix of the last file, then the whole by the prefix's last cursor: together the items of the whole.

    The prefix's own complaint of being cut off is not repeated.
    """
    source, copy = sources[name], tmp_path_factory.mktemp("copy")
    copy = copy / source.name
    shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    if not source.is_dir() and (source.parent / "STABLE").exists():
        shutil.copy(source.parent / "STABLE", copy.parent / "STABLE")
    whole = [repr(item) for item in open_import(copy, name)]
    last = list(open_import(copy, name))[-1].cursor.file
    path = copy / last if copy.is_dir() else copy
    full = path.read_bytes()
    path.write_bytes(full[: int(share * len(full))])
    before = list(open_import(copy, name))
    kept = [item for item in before if not (isinstance(item, ProblemItem) and item.kind == "truncated")]
    path.write_bytes(full)
    cursor = before[-1].cursor if before else None
    rest = [repr(item) for item in open_import(copy, name, cursor)]
    assert [repr(item) for item in kept] + rest == whole


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_cut_off_files_give_what_is_sound_and_say_where(name: str, tmp_path: Path) -> None:
    """The largest file of the source cut at many places: never an error, fewer items, the cut is named."""
    source = SOURCES[name](tmp_path)
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    path = max(files, key=lambda file: file.stat().st_size)
    full = path.read_bytes()
    whole = {repr(item) for item in open_import(source, name) if not isinstance(item, ProblemItem)}
    named = 0
    for cut in range(1, len(full) - 1, max(1, len(full) // 40)):
        path.write_bytes(full[:cut])
        items = list(open_import(source, name))
        sound = {repr(item) for item in items if not isinstance(item, ProblemItem)}
        if name == "inspect":  # without a header the settings come from the journal
            sound = {text for text in sound if text.startswith("RolloutItem")}
        assert sound <= whole
        found = losses(items)
        assert all(path.name in item.cursor.file for item in found)
        at_an_end = full[:cut].endswith(b"\n") or full[cut : cut + 1] == b"\n"
        assert found or at_an_end or sound == whole or name == "tensorboard", f"cut at {cut}"
        named += bool(found)
    assert named


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_refusals_name_what_was_expected(name: str, sources: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"cursor\.file: got 'elsewhere'"):
        list(open_import(sources[name], name, Cursor("elsewhere", 1, 0, 0)))
    with pytest.raises(ImportRefused, match="does not exist"):
        list(open_import(tmp_path / "missing", name))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportRefused, match=f"without a file of {name}"):
        list(open_import(tmp_path / "empty", name))


def test_nothing_recognised_is_none_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert detect(tmp_path) is None
    with pytest.raises(ImportRefused, match="format: got 'wandb', expected one of"):
        open_import(tmp_path, "wandb")
    with pytest.raises(ValueError, match="cursor: got"):
        Cursor.from_json({"file": "a", "number": -1, "offset": 0, "part": 0})
