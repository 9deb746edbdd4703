"""The formats by name, how each is recognised, and the one way to read any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import inspect_log, nemo, primerl, skyrl, telescope, tensorboard, tinker, trl, verifiers, verl
from .items import Cursor, Item
from .limits import LIMITS, ImportRefused, Limits
from .reading import Found, Unit, drive, list_files, problem_units

_PEEK = 1 << 20


@dataclass(frozen=True)
class Format:
    """One importable format. ``framework`` chooses the mapping table; ``grades`` are those that can occur."""

    name: str
    title: str
    framework: str
    grades: str
    units: Callable[[list[Found], Limits], Iterator[Unit]]


FORMATS: dict[str, Format] = {
    item.name: item
    for item in (
        Format("tensorboard", "TensorBoard event files", "", "", tensorboard.units),
        Format("trl-completions", "TRL completions (Parquet)", "trl", "C", trl.units),
        Format("verl-rollouts", "veRL rollouts (JSON lines)", "verl", "C", verl.units),
        Format("prime-rl", "prime-rl or verifiers run directory", "prime-rl", "ABC", primerl.units),
        Format("prime-rl-tokens", "prime-rl token exports", "prime-rl", "B", primerl.export_units),
        Format("tinker", "Tinker wire rows (JSON lines)", "tinker", "AB", tinker.units),
        Format("telescope", "telescope tables (zip of Parquet)", "", "C", telescope.units),
        Format("verifiers", "verifiers results (JSON lines)", "", "C", verifiers.units),
        Format("skyrl", "SkyRL evaluation dumps (JSON lines)", "skyrl", "C", skyrl.units),
        Format("nemo-rl", "NeMo-RL batches (JSON lines)", "nemo-rl", "BC", nemo.units),
        Format("inspect", "Inspect logs (.eval)", "", "C", inspect_log.units),
    )
}


def _first_object(path: Path) -> dict[str, object]:
    """The first JSON line of a file as far as it is short enough to look at; {} for none."""
    with path.open("rb") as stream:
        line = stream.readline(_PEEK)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names_in(path: Path) -> set[str]:
    """Key names at the front of a first line that is too long to parse: enough to tell formats apart."""
    with path.open("rb") as stream:
        head = stream.readline(_PEEK).decode("utf-8", "replace")
    known = {
        *tinker.FIELDS,
        *primerl.EXPORT_FIELDS,
        *verl.FIELDS,
        *skyrl.FIELDS,
        *verifiers.FIELDS,
        "traces",
        "content",
    }
    return {name for name in known if f'"{name}"' in head}


def _of_lines(path: Path, name: str) -> str | None:
    fields = set(_first_object(path)) or _names_in(path)
    if set(tinker.FIELDS) <= fields:
        return "tinker"
    if {"schema_version", "token_ids", "loss_mask"} <= fields or primerl.EXPORT.search(name):
        return "prime-rl-tokens"
    if "traces" in fields or primerl.METRICS.search(name) or primerl.TRACES.search(name):
        return "prime-rl"
    if set(verl.FIELDS) <= fields:
        return "verl-rollouts"
    if set(skyrl.FIELDS) <= fields or path.name == skyrl.AGGREGATED:
        return "skyrl"
    if set(verifiers.FIELDS) <= fields or path.name == verifiers.RESULTS:
        return "verifiers"
    if nemo.is_dump(name) or {"token_ids", "token_loss_mask"} <= fields:
        return "nemo-rl"
    return None


def _of_file(path: Path, name: str, limits: Limits) -> str | None:
    if tensorboard.is_event_file(name):
        return "tensorboard"
    if name.endswith(inspect_log.SUFFIX):
        return "inspect"
    if name.endswith(".zip"):
        return "telescope" if telescope.holds_tables(path, limits) else None
    if name.endswith(".parquet"):
        return "trl-completions"
    if name.endswith(skyrl.PICKLES):
        return "skyrl"
    if name.endswith(".jsonl"):
        return _of_lines(path, name)
    return "tensorboard" if tensorboard.looks_like_events(path) else None


def detect(path: Path, limits: Limits = LIMITS) -> str | None:
    """Name of the format of a file or folder; None where nothing is recognised.

    Raises ``ImportRefused`` for a path that does not exist.
    """
    if not path.exists():
        raise ImportRefused(f"path: got {path.name!r}, which does not exist, expected a file or folder")
    files, _ = list_files(path, limits)
    names = [found.name for found in files]
    if path.is_dir():
        beside = any(
            "token_exports/" in name or primerl.METRICS.search(name) or primerl.TRACES.search(name) for name in names
        )
        if beside:
            return "prime-rl"
        if any(found.path.name == verifiers.RESULTS for found in files):
            return "verifiers"
    for found in files:
        name = _of_file(found.path, found.name, limits)
        if name is not None:
            return name
    return None


def open_import(path: Path, format: str, resume: Cursor | None = None, limits: Limits = LIMITS) -> Iterator[Item]:
    """Items of a source in a fixed order, those after ``resume`` where one is given.

    Lazy; memory is bounded by ``limits`` whatever the files hold. The same files give the same items. A
    file that has grown goes on where it was cut. Raises ``ImportRefused`` for an unknown format, a missing
    path, a source without a file of the format, or a cursor that is not of this source.
    """
    if format not in FORMATS:
        raise ImportRefused(f"format: got {format!r}, expected one of {', '.join(FORMATS)}")
    if not path.exists():
        raise ImportRefused(f"path: got {path.name!r}, which does not exist, expected a file or folder")
    files, problems = list_files(path, limits)

    def units() -> Iterator[Unit]:
        count = 0
        for unit in FORMATS[format].units(files, limits):
            count += 1
            yield unit
        if not count:
            raise ImportRefused(f"path: got {path.name!r} without a file of {format}, expected at least one")
        yield from problem_units(problems)

    return drive(units(), resume)
