"""Environments by id or dotted path, and the hash of the code that an environment consists of."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any, cast

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.errors import EnvironmentFault

from .base import Environment

BUILT_IN = {"evidence_search": "worker.environments.evidence_search.environment:EvidenceSearch"}


def get_environment(id_or_dotted_path: str, config: dict[str, Any]) -> Environment:
    """Build an environment from its id (``evidence_search``) or ``package.module:Class``.

    Raises ``EnvironmentFault`` naming the id where nothing loads under it or where the
    configuration is refused.
    """
    path = BUILT_IN.get(id_or_dotted_path, id_or_dotted_path)
    module_name, separator, class_name = path.partition(":")
    if not separator:
        module_name, _, class_name = path.rpartition(".")
    if not module_name or not class_name:
        known = ", ".join(sorted(BUILT_IN))
        raise EnvironmentFault(
            f"environment: got {id_or_dotted_path!r}, expected one of [{known}] or a dotted path package.module:Class"
        )
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise EnvironmentFault(
            f"environment: got {id_or_dotted_path!r}, expected an importable class ({error})"
        ) from error
    try:
        return cast(Environment, kind(config))
    except (TypeError, ValueError) as error:
        raise EnvironmentFault(f"environment {id_or_dotted_path!r}: its configuration was refused: {error}") from error


def _module_files(kind: type) -> tuple[Path, list[Path]]:
    """Root folder and source files of the package (or the single module) that defines ``kind``."""
    source = Path(inspect.getfile(kind)).resolve()
    folder = source.parent
    is_package = (folder / "__init__.py").is_file() and folder != Path(__file__).resolve().parent
    return folder, sorted(folder.rglob("*.py")) if is_package else [source]


def environment_code_sha256(environment: Environment) -> str:
    """Digest over (relative name, file hash) of every source file of the environment's package.

    A class that lies beside this registry, or outside any package, consists of its own file alone.
    """
    folder, files = _module_files(type(environment))
    return digest([[path.relative_to(folder).as_posix(), sha256_hex(path.read_bytes())] for path in files])


def reward_code_sha256(environment: Environment) -> str:
    """Hash of the module that holds the reward rules (``reward.py`` of the package, else the class's own file)."""
    folder, files = _module_files(type(environment))
    rules = folder / "reward.py"
    return sha256_hex((rules if rules in files else files[0]).read_bytes())
