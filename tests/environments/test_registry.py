"""Environments by id or path, and the hash of their code."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EnvironmentFault
from worker.environments import evidence_search, registry
from worker.environments.registry import environment_code_sha256, get_environment, reward_code_sha256

PACKAGE = Path(evidence_search.__file__).parent
PATH = "worker.environments.evidence_search.environment"


def test_id_colon_path_and_dotted_path_name_the_same_class() -> None:
    kinds = {
        type(get_environment(name, {}))
        for name in ("evidence_search", f"{PATH}:EvidenceSearch", f"{PATH}.EvidenceSearch")
    }
    assert len(kinds) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", r"expected one of \[.*evidence_search"),
        ("no.such.module:Kind", "expected an importable class"),
        (f"{PATH}:Nothing", "expected an importable class"),
    ],
)
def test_unknown_environments_are_refused(name: str, expected: str) -> None:
    with pytest.raises(EnvironmentFault, match=expected):
        get_environment(name, {})


def test_a_refused_configuration_names_the_environment() -> None:
    with pytest.raises(EnvironmentFault, match=r"'evidence_search'.*world_seed"):
        get_environment("evidence_search", {"world_seed": -1})


def copied(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the package under another name, importable; its environment's code hash."""
    root = folder / name
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(str(folder))
    try:
        return environment_code_sha256(get_environment(f"{name}.environment:EvidenceSearch", {}))
    finally:
        for module in [item for item in sys.modules if item.split(".")[0] == name]:
            del sys.modules[module]


def test_code_hash_covers_every_file_by_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files elsewhere hash alike; one changed byte in any file changes the hash."""
    original = environment_code_sha256(get_environment("evidence_search", {}))
    assert copied(tmp_path / "one", "copied_environment", monkeypatch) == original
    changed = tmp_path / "two" / "changed_environment"
    copied(tmp_path / "two", "changed_environment", monkeypatch)
    with (changed / "lexicon.py").open("a") as handle:
        handle.write("# one more line\n")
    monkeypatch.syspath_prepend(str(tmp_path / "two"))
    assert environment_code_sha256(get_environment("changed_environment.environment:EvidenceSearch", {})) != original


def test_reward_code_hash_is_that_of_its_module() -> None:
    expected = sha256_hex((PACKAGE / "reward.py").read_bytes())
    assert reward_code_sha256(get_environment("evidence_search", {})) == expected


def test_a_class_beside_the_registry_is_its_own_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lone:
        def __init__(self, config: dict[str, object]) -> None:
            self.config = config

    lone = Lone({})
    digest = environment_code_sha256(lone)  # type: ignore[arg-type]
    assert digest == environment_code_sha256(Lone({"other": 1}))  # type: ignore[arg-type]
    assert digest != environment_code_sha256(get_environment("evidence_search", {}))
    assert registry.BUILT_IN.keys() == {"code_repair", "evidence_search"}
