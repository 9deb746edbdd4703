"""Tasks of ``code_repair``: propose -> prune -> build -> test -> refine, each step counted.

A proposal draws a code base, four or five functions (one module may hold two), constants and two or three
defects in different files. Pruned: what another proposal says already, and what differs in name alone from a task of
another split. Built: files, visible and hidden tests, gold patch, negative controls. Tested: the sound tree passes
everything, the broken one fails something and keeps something, each control behaves as it must. Refined: a proposal
that fails for its arguments draws others, at most ``REDRAWS`` times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from types import CodeType
from typing import Any

from workbench.contracts.canonical import digest
from workbench.contracts.seeds import derive_seed

from .templates import CODE_BASES, Template

TESTS_EACH, VISIBLE_SHARE, REDRAWS = 2, 0.92, 5
TWO_IN_ONE = 0.25


@dataclass(frozen=True)
class Case:
    """One hidden test: a call in a module and what the sound tree gives."""

    id: str
    module: str
    function: str
    arguments: tuple[Any, ...]
    expected: Any

    def as_json(self) -> dict[str, Any]:
        """As a task's hidden part holds it."""
        return {
            "id": self.id, "module": self.module, "function": self.function, "arguments": list(self.arguments),
            "expected": self.expected,
        }  # fmt: skip


@dataclass(frozen=True)
class Built:
    """A task as it is made. ``files`` are broken, ``gold`` sound; ``controls``: three more trees by kind.

    Kinds: step_removed (the gold patch without one of its lines: must fail), surface_only (the comments changed and
    nothing repaired: must fail), other_form (the gold tree written another way: must pass).
    """

    code_base: str
    files: Mapping[str, str]
    gold: Mapping[str, str]
    visible: tuple[Case, ...]
    hidden: tuple[Case, ...]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    controls: Mapping[str, Mapping[str, str]]

    def identity(self) -> str:
        """Goal, initial state, hidden verification: what two tasks may not share."""
        return digest({"files": dict(self.files), "hidden": [case.as_json() for case in self.hidden]})

    def shape(self) -> str:
        """What is broken and how, whatever the constants and arguments: for leakage between splits."""
        return digest(
            {
                "base": self.code_base,
                "broken": sorted(path for path in self.files if self.files[path] != self.gold[path]),
                "files": {path: _without_numbers(text) for path, text in self.files.items()},
            }
        )


def _without_numbers(text: str) -> str:
    return "".join("#" if letter.isdigit() else letter for letter in text)


@dataclass
class Funnel:
    """How many proposals came through each step, and why the others did not."""

    proposed: int = 0
    pruned: Counter[str] = field(default_factory=Counter)
    built: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refined: int = 0
    kept: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """For receipts and pages."""
        return {
            "proposed": self.proposed, "pruned": dict(self.pruned), "built": self.built,
            "refused": dict(self.refused), "refined": self.refined, "kept": dict(self.kept),
        }  # fmt: skip


def _chosen(random: Random, base: tuple[Template, ...]) -> list[Template]:
    """Four or five functions; what one of them calls is among them, before it."""
    picked = random.sample(base, random.choice((4, 5)))
    names = {template.name for template in picked}
    for template in list(picked):
        if template.needs is not None and template.needs not in names:
            picked.append(next(item for item in base if item.name == template.needs))
            names.add(template.needs)
    return sorted(picked, key=lambda item: (item.needs is not None, item.name))


def _layout(random: Random, chosen: list[Template]) -> dict[str, list[Template]]:
    """Functions by file; at most one file of a task holds two: two in a file invite edits of the wrong one."""
    files: dict[str, list[Template]] = {}
    waiting: str | None = None
    has_two = False
    for template in chosen:
        if waiting is not None and template.needs is None:
            files[waiting].append(template)
            waiting, has_two = None, True
            continue
        path = f"{template.name}.py"
        files[path] = [template]
        can_wait = template.needs is None and not has_two
        waiting = path if can_wait and random.random() < TWO_IN_ONE else None
    return files


def _text(
    layout: list[Template], where: Mapping[str, str], constants: dict[str, int], broken: Mapping[str, int]
) -> str:
    lines: list[str] = []
    for template in layout:
        if template.needs is not None and where[template.needs] != where[template.name]:
            lines.append(f"from {where[template.needs][:-3]} import {template.needs}")
    for template in layout:
        lines += template.lines(constants, broken.get(template.name))
    return "\n".join(lines) + "\n"


def evaluate(files: Mapping[str, str], module: str, function: str, arguments: tuple[Any, ...]) -> Any:
    """Value of a call in a tree that this generator wrote; an exception's name where it raises."""
    loaded: dict[str, dict[str, Any]] = {}

    def load(path: str) -> dict[str, Any]:
        if path not in loaded:
            space: dict[str, Any] = {}
            loaded[path] = space
            for line in files[path].splitlines():
                if line.startswith("from "):
                    _, name, _, wanted = line.split()
                    space[wanted] = load(f"{name}.py")[wanted]
            source = "\n".join(line for line in files[path].splitlines() if not line.startswith("from "))
            exec(_compiled(source), space)  # our own templates, never a policy's text
        return loaded[path]

    try:
        return load(module)[function](*arguments)
    except Exception as error:
        return {"raised": type(error).__name__}


@lru_cache(maxsize=4096)
def _compiled(source: str) -> CodeType:
    return compile(source, "task", "exec")


def propose(seed: str, number: int) -> tuple[str, Random]:
    """The code base of a proposal and its random stream."""
    random = Random(int(derive_seed("code-repair", seed, number)))
    return random.choice(sorted(CODE_BASES)), random


def build(code_base: str, random: Random) -> Built:
    """Files, tests and controls of a proposal. Pure: the same stream gives the same task."""
    chosen = _chosen(random, CODE_BASES[code_base])
    layout = _layout(random, chosen)
    where = {template.name: path for path, items in layout.items() for template in items}
    k, n = random.sample(range(2, 10), 2)
    constants = {"k": k, "n": n}
    places = random.sample(sorted(layout), min(len(layout), random.choice((2, 2, 3))))
    broken = {
        template.name: random.randrange(len(template.defects))
        for template in (random.choice(layout[path]) for path in places)
    }
    gold = {path: _text(items, where, constants, {}) for path, items in layout.items()}
    files = {path: _text(items, where, constants, broken) for path, items in layout.items()}
    hidden, visible = [], []
    for template in chosen:
        for number in range(TESTS_EACH):
            arguments = template.draw(random)
            module = where[template.name]
            value = evaluate(gold, module, template.name, arguments)
            hidden.append(Case(f"{template.name}_{number + 1}", module, template.name, arguments, value))
        if random.random() < VISIBLE_SHARE:
            arguments = template.draw(random)
            value = evaluate(gold, where[template.name], template.name, arguments)
            visible.append(Case(f"{template.name}_v", where[template.name], template.name, arguments, value))
    status = {case.id: evaluate(files, case.module, case.function, case.arguments) == case.expected for case in hidden}
    return Built(
        code_base,
        files,
        gold,
        tuple(visible),
        tuple(hidden),
        tuple(case.id for case in hidden if not status[case.id]),
        tuple(case.id for case in hidden if status[case.id]),
        _controls(files, gold),
    )


def _controls(files: Mapping[str, str], gold: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    repaired = [path for path in sorted(files) if files[path] != gold[path]]
    step = {**gold, repaired[0]: files[repaired[0]]} if repaired else dict(gold)
    surface = {path: text.replace("  # ", "  # checked: ") for path, text in files.items()}
    other = {path: text.replace("    return ", "    result = ").rstrip("\n") for path, text in gold.items()}
    other = {path: _with_return(text) for path, text in other.items()}
    return {"step_removed": step, "surface_only": surface, "other_form": other}


def _with_return(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if line.startswith("    result = "):
            lines.append("    return result")
    return "\n".join(lines) + "\n"


def _passes(built: Built, tree: Mapping[str, str]) -> bool:
    return all(evaluate(tree, case.module, case.function, case.arguments) == case.expected for case in built.hidden)


def trouble(built: Built) -> str | None:
    """Why a built task may not be kept; None where it may."""
    if not _passes(built, built.gold):
        return "gold_fails"
    broken = [path for path in built.files if built.files[path] != built.gold[path]]
    if len(broken) < 2:
        return "fewer_than_two_broken_files"
    for path in broken:
        healed = {**built.gold, path: built.files[path]}
        if _passes(built, healed):
            return "a_defect_that_no_test_sees"
    if not built.pass_to_pass:
        return "nothing_left_to_break"
    for kind in ("step_removed", "surface_only"):
        if _passes(built, built.controls[kind]):
            return f"control_{kind}_passes"
    return None if _passes(built, built.controls["other_form"]) else "control_other_form_fails"


def generate(seed: str, wanted: Mapping[str, int]) -> tuple[dict[str, list[Built]], Funnel]:
    """Tasks by split, ``wanted`` of each, and the funnel. The same seed gives the same tasks."""
    funnel, found = Funnel(), {split: list[Built]() for split in wanted}
    identities: set[str] = set()
    shapes: dict[str, str] = {}
    for number, split in enumerate(_splits(wanted, found)):
        funnel.proposed += 1
        built = _kept(seed, number, funnel)
        if built is None:
            continue
        if built.identity() in identities:
            funnel.pruned["said_already"] += 1
            continue
        shape = built.shape()
        if shapes.setdefault(shape, split) != split:
            funnel.pruned["of_another_split"] += 1
            continue
        identities.add(built.identity())
        found[split].append(built)
        funnel.kept[split] += 1
    return found, funnel


def _splits(wanted: Mapping[str, int], found: Mapping[str, list[Built]]) -> Iterator[str]:
    """The split that is furthest from its number, until all are full."""
    for _ in range(200 * sum(wanted.values())):
        open_splits = [split for split in wanted if len(found[split]) < wanted[split]]
        if not open_splits:
            return
        yield max(open_splits, key=lambda split: wanted[split] - len(found[split]))
    raise ValueError(f"tasks: got { ({split: len(items) for split, items in found.items()}) }, expected {dict(wanted)}")


def _kept(seed: str, number: int, funnel: Funnel) -> Built | None:
    code_base, random = propose(seed, number)
    for attempt in range(REDRAWS):
        built = build(code_base, random)
        funnel.built += 1
        why = trouble(built)
        if why is None:
            funnel.refined += attempt > 0
            return built
        funnel.refused[why] += 1
    return None
