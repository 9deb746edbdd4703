"""Code identity: what it covers, what changes it, and that a changed package is loaded again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own.example import write_package
from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.errors import EngineFault, EnvironmentFault
from worker.environments import code, loading
from worker.environments.code import CodeChanged, CodeIdentity, code_identity, require_unchanged
from worker.environments.registry import outside_reward, record_id, reward_code


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No package of one test is seen by the next."""
    before = set(sys.modules)
    code._distribution_of.cache_clear()
    yield
    code._distribution_of.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_package_without_distribution_is_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digest over [[name, sha256], ...]; compiled and hidden files do not count, data files do."""
    package = write_package(tmp_path, "loose_rules")
    monkeypatch.syspath_prepend(str(tmp_path))
    rules = outside_reward("loose_rules.rules:Fixed")
    found = code_identity(type(rules))
    (package / ".hidden").write_text("x")
    assert code_identity(type(rules)) == found and (found.distribution, found.version) == (None, None)
    names = ["__init__.py", "rules.py", "table.json"]
    assert found.sha256() == digest([[name, sha256_hex((package / name).read_bytes())] for name in names])
    assert record_id("loose_rules.rules:Fixed") == "loose_rules.fixed"


def test_a_distribution_adds_its_name_and_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point's name finds the class; equal files under another version are other code."""
    write_package(tmp_path / "one", "packed_rules", version="1.0")
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    found = reward_code(None, "packed_rules.fixed")  # type: ignore[arg-type]
    assert found is not None and (found.distribution, found.version) == ("packed_rules", "1.0")
    assert [name for name, _ in found.files] == ["__init__.py", "rules.py", "table.json"]
    other = CodeIdentity("packed_rules", "2.0", found.files)
    bare = CodeIdentity(None, None, found.files)
    assert len({found.sha256(), other.sha256(), bare.sha256()}) == 3
    assert outside_reward("packed_rules.absent") is None and outside_reward("evidence_search.reward") is None


def test_two_distributions_under_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "first_rules", version="1")
    write_package(tmp_path, "second_rules", version="1")
    text = "[workbench.rewards]\nfirst_rules.fixed = second_rules.rules:Fixed\n"
    (tmp_path / "second_rules-1.dist-info" / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EngineFault, match=r"first_rules.rules:Fixed, second_rules.rules:Fixed, expected one"):
        outside_reward("first_rules.fixed")


def test_a_changed_package_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same size in the same second: the compiled file must not be taken for the new source."""
    write_package(tmp_path, "moving_rules", weight=0.25)
    monkeypatch.syspath_prepend(str(tmp_path))
    first = outside_reward("moving_rules.rules:Fixed")
    assert outside_reward("moving_rules.rules:Fixed").__class__ is first.__class__  # unchanged: not loaded again
    write_package(tmp_path, "moving_rules", weight=0.75)
    second = outside_reward("moving_rules.rules:Fixed")
    totals = [item.score(None, (), "finish").total for item in (first, second)]  # type: ignore[union-attr,arg-type]
    assert totals == [0.25, 0.75]


def test_what_does_not_load_is_named_with_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write_package(tmp_path, "torn_rules")
    (package / "rules.py").write_text("def broken(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EnvironmentFault, match=r"'torn_rules.rules:Fixed'.*SyntaxError"):
        outside_reward("torn_rules.rules:Fixed")
    (package / "rules.py").write_text("class Fixed:\n    id, version = 'a', '1'\n")
    with pytest.raises(EnvironmentFault, match="without score"):
        outside_reward("torn_rules.rules:Fixed")


@pytest.mark.parametrize("path", ["os:system", "a b:c", "module", "x:y:z", "../evil:C", ":C", "a..b:C"])
def test_only_package_module_name_is_a_path(path: str) -> None:
    assert loading.is_dotted_path(path) is (path == "os:system")
    if path == "os:system":
        with pytest.raises(EnvironmentFault, match="expected a class"):
            outside_reward(path)
    else:
        assert outside_reward(path) is None


BOUND = CodeIdentity("owner", "1.0", (("a.py", "1"), ("b.py", "2")))
VALUE = {"code_sha256": BOUND.sha256(), **BOUND.value()}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (CodeIdentity("owner", "1.0", (("a.py", "9"), ("b.py", "2"))), "a.py changed"),
        (CodeIdentity("owner", "1.0", (("a.py", "1"),)), "b.py is gone"),
        (CodeIdentity("owner", "1.0", (*BOUND.files, ("c.py", "3"))), "c.py is new"),
        (CodeIdentity("owner", "1.1", BOUND.files), "owner 1.1 is installed, not owner 1.0"),
        (CodeIdentity(None, None, BOUND.files), "no distribution is installed, not owner 1.0"),
    ],
)
def test_a_difference_is_named(found: CodeIdentity, said: str) -> None:
    require_unchanged("environment 'x'", VALUE, BOUND)
    with pytest.raises(CodeChanged, match=f"environment 'x': {said}"):
        require_unchanged("environment 'x'", VALUE, found)


def test_an_older_plan_without_files_still_refuses() -> None:
    with pytest.raises(CodeChanged, match=f"got {BOUND.sha256()}, expected 0000"):
        require_unchanged("environment 'x'", {"code_sha256": "0000"}, BOUND)
