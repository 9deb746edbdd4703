"""Finds own classes and objects: by entry point, or by a dotted path ``package.module:Name``.

A path is imported in the process that needs it. A package whose files changed since this process
loaded it is loaded again, so that what runs is what was hashed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from workbench.contracts.errors import EngineFault, EnvironmentFault

from .code import PRODUCT, CodeIdentity, code_identity, code_place

ENVIRONMENTS, REWARDS, MODELS = "workbench.environments", "workbench.rewards", "workbench.models"
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_loaded: dict[str, CodeIdentity] = {}


def is_dotted_path(name: str) -> bool:
    """Whether ``name`` has the form ``package.module:Name``."""
    return _PATH.fullmatch(name) is not None


@functools.lru_cache(maxsize=8)
def _registered(group: str, folders: tuple[tuple[str, int | None], ...]) -> tuple[tuple[str, str], ...]:
    """(name, value) of the entry points of a group, read again when a folder of ``sys.path`` has changed."""
    return tuple(sorted({(item.name, item.value) for item in metadata.entry_points(group=group)}))


def _modified(folder: str) -> int | None:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return None


def _entry_points(group: str) -> tuple[tuple[str, str], ...]:
    return _registered(group, tuple((folder, _modified(folder)) for folder in sys.path))


def entry_point_names(group: str) -> list[str]:
    """Names that installed distributions register in a group, sorted, each once."""
    return sorted({name for name, _ in _entry_points(group)})


def entry_point_path(group: str, name: str) -> str | None:
    """The dotted path that ``name`` stands for in a group, or None. Two different ones are refused."""
    found = sorted({value for known, value in _entry_points(group) if known == name})
    if len(found) > 1:
        raise EngineFault(f"{name!r} in {group}: got {', '.join(found)}, expected one distribution to register it")
    return found[0].replace(" ", "") if found else None


def load_object(path: str, what: str) -> Any:
    """The object at ``package.module:Name``. Raises ``EnvironmentFault`` naming path and cause."""
    module_name, _, name = path.partition(":")
    found = _imported(module_name, name, path, what)
    if module_name.partition(".")[0] == PRODUCT:
        return found
    module = sys.modules[module_name]
    _, folder, files = code_place(module)
    key = str(folder if len(files) != 1 else files[0])
    now = code_identity(module)
    if _loaded.setdefault(key, now) != now:
        _forget({str(path) for path in files})
        del _loaded[key]
        found = _imported(module_name, name, path, what)
        _loaded[key] = code_identity(sys.modules[module_name])
    return found


def _imported(module_name: str, name: str, path: str, what: str) -> Any:
    try:
        return getattr(importlib.import_module(module_name), name)
    except Exception as error:  # an own module may raise anything while it is imported
        cause = f"{type(error).__name__}: {error}"
        raise EnvironmentFault(f"{what}: got {path!r}, expected an importable class ({cause})") from error


def _forget(files: set[str]) -> None:
    """Drop every loaded module that comes from one of the files, compiled files included."""
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if source is not None and name != "__main__" and str(Path(source).resolve()) in files:
            Path(importlib.util.cache_from_source(source)).unlink(missing_ok=True)
            del sys.modules[name]
    importlib.invalidate_caches()


def require_members(kind: Any, names: Iterable[str], what: str) -> type:
    """``kind``, if it is a class that has every member; it is not called before that.

    Raises ``EnvironmentFault`` listing everything that is missing: a path to some other callable of
    this machine is never executed.
    """
    if not isinstance(kind, type):
        raise EnvironmentFault(f"{what}: got {type(kind).__name__}, expected a class")
    missing = [name for name in names if not hasattr(kind, name)]
    if missing:
        raise EnvironmentFault(
            f"{what}: got {kind.__module__}.{kind.__qualname__} without {', '.join(missing)}, expected "
            "every member of the interface"
        )
    return kind
