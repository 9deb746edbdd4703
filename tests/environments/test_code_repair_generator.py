"""Generated repair tasks: counts of every step, identities, splits, tests, controls; a sample in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from worker.environments.code_repair.generator import Built, Case, build, evaluate, generate, propose, trouble
from worker.environments.code_repair.templates import CODE_BASES
from worker.sandbox.choose import get_sandbox
from worker.verifiers.trial import HiddenTest, run_trial, utility

WANTED = {"train": 24, "dev": 8, "test": 12}


@pytest.fixture(scope="module")
def made() -> tuple[dict[str, list[Built]], dict[str, object]]:
    found, funnel = generate("17", WANTED)
    return found, funnel.as_json()


def everything(found: Mapping[str, list[Built]]) -> list[Built]:
    return [built for items in found.values() for built in items]


def test_the_funnel_accounts_for_every_proposal(made: tuple[dict[str, list[Built]], dict[str, object]]) -> None:
    """Proposed = kept + pruned + given up; built = kept + pruned + refused."""
    found, funnel = made
    kept, pruned, refused = (sum(funnel[name].values()) for name in ("kept", "pruned", "refused"))  # type: ignore[attr-defined]
    assert funnel["kept"] == WANTED == {split: len(items) for split, items in found.items()}
    assert funnel["built"] == kept + pruned + refused
    assert kept + pruned <= funnel["proposed"] <= kept + pruned + refused  # type: ignore[operator]
    assert refused > 0  # the tests do find something


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others() -> None:
    first, again, other = (generate(seed, {"train": 6})[0]["train"] for seed in ("1", "1", "2"))
    assert [item.identity() for item in first] == [item.identity() for item in again]
    assert not {item.identity() for item in first} & {item.identity() for item in other}


def test_no_identity_twice_and_no_shape_in_two_splits(made: tuple[dict[str, list[Built]], dict[str, object]]) -> None:
    found = made[0]
    identities = [built.identity() for built in everything(found)]
    assert len(set(identities)) == len(identities)
    shapes = {split: {built.shape() for built in items} for split, items in found.items()}
    assert not shapes["train"] & shapes["test"] and not shapes["train"] & shapes["dev"]
    assert not shapes["dev"] & shapes["test"]


def test_a_shape_forgets_constants_and_remembers_the_defect() -> None:
    """Two tasks that differ in constants alone are one shape; another broken file is another shape."""
    case = Case("fee_1", "fee.py", "fee", (1,), 4)

    def task(constant: int, broken: str) -> Built:
        gold = {
            "fee.py": f"def fee(a):  # a plus {constant}\n    return a + {constant}\n",
            "b.py": "def b(x):\n    return x\n",
        }
        files = {**gold, broken: gold[broken].replace("return", "return -")}
        return Built("ledger", files, gold, (), (case,), ("fee_1",), (), {})

    assert task(3, "fee.py").shape() == task(7, "fee.py").shape() != task(3, "b.py").shape()
    assert task(3, "fee.py").identity() != task(7, "fee.py").identity()


def test_every_code_base_is_used_and_every_task_is_what_it_must_be(
    made: tuple[dict[str, list[Built]], dict[str, object]],
) -> None:
    tasks = everything(made[0])
    assert {built.code_base for built in tasks} == set(CODE_BASES) and len(CODE_BASES) >= 4
    for built in tasks:
        assert trouble(built) is None
        assert 3 <= len(built.files) <= 7 and built.fail_to_pass and built.pass_to_pass
        assert {*built.fail_to_pass, *built.pass_to_pass} == {case.id for case in built.hidden}
        broken = [path for path in built.files if built.files[path] != built.gold[path]]
        assert 2 <= len(broken) <= 3
        for path in broken:  # one line differs in each
            pairs = zip(built.files[path].splitlines(), built.gold[path].splitlines(), strict=True)
            assert sum(old != new for old, new in pairs) == 1
        assert set(built.controls) == {"step_removed", "surface_only", "other_form"}
        hidden = {(case.function, str(case.arguments)) for case in built.hidden}
        assert len(hidden) >= len(built.hidden) - 2  # two draws may fall together


def test_what_is_refused_is_named() -> None:
    """A gold tree that fails; a defect that no test sees: min and max of equal numbers are equal."""
    code_base, random = propose("17", 0)
    built = build(code_base, random)
    wrong = Case("x", built.hidden[0].module, built.hidden[0].function, built.hidden[0].arguments, "never")
    broken = Built(**{**built.__dict__, "hidden": (*built.hidden, wrong)})
    assert trouble(broken) == "gold_fails"
    gold = {
        "a.py": "def a(x, y):\n    return min(x, y)\n",
        "b.py": "def b(x):\n    return x\n",
        "c.py": "def c(x):\n    return x\n",
    }
    files = {
        **gold,
        "a.py": gold["a.py"].replace("min", "max"),
        "b.py": gold["b.py"].replace("return x", "return x + 1"),
    }
    cases = (Case("a", "a.py", "a", (4, 4), 4), Case("b", "b.py", "b", (1,), 1), Case("c", "c.py", "c", (1,), 1))
    blind = Built("ledger", files, gold, (), cases, ("b",), ("a", "c"), {})
    assert trouble(blind) == "a_defect_that_no_test_sees"


def test_evaluation_follows_imports_and_names_what_is_raised() -> None:
    files = {"a.py": "def a(x):\n    return x[0]\n", "b.py": "from a import a\ndef b(x):\n    return a(x) + 1\n"}
    assert evaluate(files, "b.py", "b", ([4],)) == 5
    assert evaluate(files, "b.py", "b", ([],)) == {"raised": "IndexError"}


def verdict(built: Built, tree: Mapping[str, str]) -> object:
    """U in the sandbox."""
    tests = [HiddenTest(case.id, case.module, case.function, case.arguments, case.expected) for case in built.hidden]
    report = run_trial(get_sandbox(), {path: text.encode() for path, text in tree.items()}, tests)
    assert report.complete, report.unknown
    return utility(report, built.fail_to_pass, built.pass_to_pass)


def test_the_sandbox_agrees_on_one_task_of_each_code_base(
    made: tuple[dict[str, list[Built]], dict[str, object]],
) -> None:
    """Gold 1, the broken tree (a no-op agent) 0, an empty artefact -1, controls as they must be."""
    one_each = {built.code_base: built for built in everything(made[0])}
    for built in one_each.values():
        assert verdict(built, built.gold) == 1
        assert verdict(built, built.files) == 0
        assert verdict(built, {}) == -1
        assert verdict(built, built.controls["step_removed"]) != 1
        assert verdict(built, built.controls["surface_only"]) == 0
        assert verdict(built, built.controls["other_form"]) == 1


@pytest.mark.slow
def test_the_sandbox_agrees_on_every_task(made: tuple[dict[str, list[Built]], dict[str, object]]) -> None:
    for built in everything(made[0]):
        found = [verdict(built, tree) for tree in (built.gold, built.files, {}, built.controls["other_form"])]
        assert found == [1, 0, -1, 1]
        assert (
            verdict(built, built.controls["step_removed"]) != 1 and verdict(built, built.controls["surface_only"]) == 0
        )
