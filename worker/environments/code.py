"""Identity of code that a plan binds: the distribution that brought it, and the hash of each of its files.

Own environments, rewards and model profiles live outside the product, so their hash says what ran.
A file that differs from the plan's stops the execution, and the message names it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.errors import EngineFault

PRODUCT = "worker"  # top-level package of what is bundled
_HERE = Path(__file__).resolve().parent


class CodeChanged(EngineFault):
    """Bound code differs from the code here: the execution is interrupted, nothing has been computed."""


@dataclass(frozen=True)
class CodeIdentity:
    """Code as it lies on disk now. ``files``: (relative name, SHA-256), sorted by name.

    ``distribution`` and ``version`` are None for code that no installed distribution owns (and for
    what is bundled: the product's own version says nothing that the files do not).
    """

    distribution: str | None
    version: str | None
    files: tuple[tuple[str, str], ...]

    def sha256(self) -> str:
        """Digest over the files and, where there is one, the distribution's name and version."""
        files = [list(item) for item in self.files]
        if self.distribution is None:
            return digest(files)
        return digest({"distribution": self.distribution, "version": self.version, "files": files})

    def value(self) -> dict[str, Any]:
        """What a plan binds and a page shows: distribution, version, hash of each file."""
        return {"distribution": self.distribution, "version": self.version, "files": dict(self.files)}


def code_identity(thing: Any) -> CodeIdentity:
    """Identity of the code of a module, of a class or a function, or (by its type) of an object.

    Code of an installed distribution consists of its whole top-level package, data files included.
    Other code consists of the package folder that holds the module, or of the module alone where that
    folder is no package (or is the folder of this interface).
    """
    owner, folder, files = code_place(module_of(thing))
    distribution, version = owner if owner is not None else (None, None)
    return CodeIdentity(distribution, version, _hashes(folder, files))


def code_place(module: ModuleType) -> tuple[tuple[str, str] | None, Path, list[Path]]:
    """(distribution and version, root folder, files) of the code that ``module`` belongs to."""
    top = module.__name__.partition(".")[0]
    is_product = module.__name__ == "__main__" or top == PRODUCT
    owner = None if is_product else _distribution_of(top)
    root = sys.modules.get(top)
    is_packed = owner is not None and getattr(root, "__file__", None) is not None
    return owner, *module_files(root if is_packed and root is not None else module)


def module_of(thing: Any) -> ModuleType:
    if inspect.ismodule(thing):
        return thing
    owner = thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing)
    module = inspect.getmodule(owner)
    if module is None or getattr(module, "__file__", None) is None:
        raise EngineFault(f"code: got {thing!r}, which comes from no file; expected Python source")
    return module


def module_files(module: ModuleType) -> tuple[Path, list[Path]]:
    """Root folder and files of the package (or the single module) that ``module`` belongs to."""
    source = Path(str(module.__file__)).resolve()
    folder = source.parent
    if not (folder / "__init__.py").is_file() or folder == _HERE:
        return folder, [source]
    return folder, sorted(_files_below(folder))


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        is_cache = path.suffix in (".pyc", ".pyo") or "__pycache__" in parts
        if path.is_file() and not is_cache and not any(part.startswith(".") for part in parts):
            yield path


def _hashes(folder: Path, files: list[Path]) -> tuple[tuple[str, str], ...]:
    found = ((path.relative_to(folder).as_posix(), sha256_hex(path.read_bytes())) for path in files)
    return tuple(sorted(found))


@lru_cache(maxsize=64)
def _distribution_of(top: str) -> tuple[str, str] | None:
    """(name, version) of the installed distribution that brings the top-level package; None where none does."""
    names = sorted(set(metadata.packages_distributions().get(top, ())))
    if not names:
        return None
    if len(names) > 1:
        raise EngineFault(f"package {top}: got the distributions {', '.join(names)}, expected one that owns it")
    return names[0], metadata.version(names[0])


def changes(bound: Mapping[str, Any], found: CodeIdentity) -> str | None:
    """How code differs from the code that ``bound`` names, file by file; None where it does not.

    ``bound``: ``code_sha256`` and, in plans that know them, ``files``, ``distribution`` and ``version``.
    """
    if found.sha256() == bound["code_sha256"]:
        return None
    now, then = dict(found.files), dict(bound.get("files") or {})
    notes = []
    if then:
        notes += [f"{name} changed" for name in sorted(now.keys() & then.keys()) if now[name] != then[name]]
        notes += [f"{name} is gone" for name in sorted(then.keys() - now.keys())]
        notes += [f"{name} is new" for name in sorted(now.keys() - then.keys())]
    before = (bound.get("distribution"), bound.get("version"))
    after = (found.distribution, found.version)
    if then and before != after:
        notes.append(f"{_owner(after)} is installed, not {_owner(before)}")
    return "; ".join(notes) or f"got {found.sha256()}, expected {bound['code_sha256']}"


def require_unchanged(what: str, bound: Mapping[str, Any], found: CodeIdentity) -> None:
    """Refuse code that is not the code which ``bound`` names (see ``changes``). Raises ``CodeChanged``."""
    noted = changes(bound, found)
    if noted is not None:
        raise CodeChanged(f"{what}: {noted}. Put back what the plan binds, or freeze a new plan with the changed code.")


def _owner(pair: tuple[str | None, str | None]) -> str:
    return "no distribution" if pair[0] is None else f"{pair[0]} {pair[1]}"
