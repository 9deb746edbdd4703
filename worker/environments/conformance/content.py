"""Checks of what an environment declares: interface, tools, tasks, hidden references, demonstrations."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.plan_schema import SPLITS
from workbench.contracts.wire import to_wire
from worker.engine.toolschema import check_schema
from worker.environments.base import FinishAction, Task, ToolAction, ToolSpec
from worker.environments.registry import get_environment

from .episodes import first_demonstrations, read_action, shown
from .processes import run_apart
from .subject import Broken, Subject, expect, leaves, require_text

SECONDS = 120  # for another process, which loads the environment and plays the sample episodes
BEFORE, SHOWN = 20, 80  # characters of a text that differs: before the difference, in all
MINIMUM_LEGAL = 0.9  # share of demonstrated decisions that a strict reader accepts
ROOT = Path(__file__).resolve().parents[3]


def interface(subject: Subject) -> str:
    """Members, types of the plain ones, and a configuration that refuses what it does not know."""
    item = subject.environment
    for name in ("id", "version"):
        require_text(getattr(item, name), name)
    for name, value in (("instructions()", item.instructions()), ("success_definition()", item.success_definition())):
        require_text(value, name)
    expect("<|" not in item.instructions(), "instructions()", "a special token", "plain text")
    return f"{item.id} {item.version}"


def configuration(subject: Subject) -> str:
    """An unknown setting is refused: a typing error in a plan must not be ignored."""
    try:
        get_environment(subject.name, {**subject.config, "no_such_setting": 1})
    except EnvironmentFault:
        return "an unknown setting is refused"
    raise Broken("config.no_such_setting: got accepted, expected ValueError for a setting that does not exist")


def tools(subject: Subject) -> str:
    """At least one tool, each name once, schemas made of keywords that are enforced."""
    expect(bool(subject.tools), "tools()", "none", "at least one ToolSpec")
    for item in subject.tools:
        expect(isinstance(item, ToolSpec), "tools()", type(item).__name__, "ToolSpec")
        require_text(item.description, f"tool {item.name}.description")
        check_schema(item.parameters, item.name)
    names = [item.name for item in subject.tools]
    expect(len(set(names)) == len(names), "tools()", names, "each name once")
    return ", ".join(names)


def tasks(subject: Subject) -> str:
    """Tasks in known splits, each task in one split only, with tools that exist and canonical content."""
    expect(bool(subject.tasks), "tasks()", "none", "tasks")
    known, where = {item.name for item in subject.tools}, dict[str, Task]()
    for task in subject.tasks:
        expect(isinstance(task, Task), "tasks()", type(task).__name__, "Task")
        at = f"task {task.key}"
        expect(task.split in SPLITS, f"{at}.split", repr(task.split), f"one of {', '.join(SPLITS)}")
        require_text(task.prompt, f"{at}.prompt")
        expect("<|" not in task.prompt, f"{at}.prompt", "a special token", "plain text")
        expect(bool(task.tools) and set(task.tools) <= known, f"{at}.tools", task.tools, f"tools of {sorted(known)}")
        canonical_bytes({"initial_state": task.initial_state, "hidden": task.hidden})
        other = where.setdefault(task.identity(), task)
        same = f"the same task as {other.key} in {other.split}"
        expect(other is task, f"{at} in {task.split}", same, "each task once, in one split")
    again = [(item.identity(), item.split) for item in subject.build().tasks()]
    same_order = again == [(item.identity(), item.split) for item in subject.tasks]
    expect(same_order, "tasks()", "other tasks in a second instance", "equal tasks in equal order")
    counts = Counter(item.split for item in subject.tasks)
    expect(counts["train"] > 0 and len(counts) > 1, "tasks()", dict(counts), "a train split and one to evaluate on")
    return ", ".join(f"{split} {count}" for split, count in counts.items())


def hidden(subject: Subject) -> str:
    """No part of the hidden reference stands in a prompt, but what the environment lists in ``named_in_prompt``."""
    named, checked = subject.named_in_prompt, 0
    for task in subject.tasks:
        for path, key, text in leaves(task.hidden, "hidden", ""):
            if key in named:
                continue
            checked += 1
            if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", task.prompt):
                raise Broken(
                    f"task {task.key}.prompt: got {path} = {text!r} in it, expected nothing of the hidden reference "
                    f"(where a question has to name it, list {key!r} in the class's named_in_prompt)"
                )
    return f"{checked} hidden values in {len(subject.tasks)} tasks" + (f", named: {sorted(named)}" if named else "")


def demonstrations(subject: Subject) -> str:
    """Equal for a seed, other for another, mostly legal, and every tool is used but those listed in
    ``undemonstrated``."""
    first, again = first_demonstrations(subject.environment), first_demonstrations(subject.build())
    if not first:
        return "none: chat models need none, the embedded policy cannot be warm-started here"
    expect(to_wire(first) == to_wire(again), "demonstrations(seed)", "two streams", "one stream for a seed")
    other = first_demonstrations(subject.environment, seed=1)
    expect(to_wire(first) != to_wire(other), "demonstrations(seed)", "one stream for two seeds", "another stream")
    read = [read_action(turn.action, subject.tools) for item in first for turn in item.turns]
    legal = sum(item is not None for item in read) / max(1, len(read))
    wanted = f"at least {MINIMUM_LEGAL:.0%} legal: {{'tool': name, arguments}} or {{'finish': text, 'cite': [ids]}}"
    expect(legal >= MINIMUM_LEGAL, "demonstrations()", f"{legal:.0%} legal decisions", wanted)
    used = {item.tool for item in read if isinstance(item, ToolAction)}
    left_out = set(getattr(subject.environment, "undemonstrated", ()))
    unused = sorted({item.name for item in subject.tools} - used - left_out)
    expect(not unused, "demonstrations()", f"none that calls {', '.join(unused)}", "every tool shown")
    shown_all_the_same = sorted(left_out & used)
    expect(not shown_all_the_same, "undemonstrated", ", ".join(shown_all_the_same), "tools that no demonstration calls")
    expect(any(isinstance(item, FinishAction) for item in read), "demonstrations()", "none that finishes", "a Finish")
    coverage = sorted({name for item in first for name in item.coverage})
    return f"{len(first)} episodes, {legal:.0%} legal, coverage {', '.join(coverage) or 'not named'}"


def purity(subject: Subject) -> str:
    """The global random state is left alone, and other processes with other hash seeds show the same bytes."""
    state = random.getstate()
    here = list(shown(subject.build()))
    expect(random.getstate() == state, "random", "a changed global state", "a generator of the environment's own")
    for seed in ("1", "2"):
        where = f"another process (PYTHONHASHSEED={seed})"
        there = _shown_elsewhere(subject, seed, where)
        for (what, text), (other, found) in zip(here, there, strict=False):
            if (what, text) != (other, found):
                mine, theirs = _difference(text, found) if what == other else (what, other)
                raise Broken(f"{where}: {what}: got {theirs}, expected {mine} as here: the order of a set leaks, say")
        expect(len(here) == len(there), where, f"{len(there)} parts", f"{len(here)}")
    return "equal in three processes"


def _difference(here: str, there: str) -> tuple[str, str]:
    """Both texts from a little before where they part."""
    parted = next(
        (at for at, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there))
    )
    start = max(0, parted - BEFORE)
    mine, theirs = (f"{'…' if start else ''}{text[start : start + SHOWN]}" for text in (here, there))
    return mine, theirs


def _shown_elsewhere(subject: Subject, hash_seed: str, where: str) -> list[tuple[str, str]]:
    paths = os.pathsep.join(item for item in sys.path if item)
    module = "worker.environments.conformance.episodes"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "shown.json"
        status, errors = run_apart(
            [sys.executable, "-m", module, subject.name, json.dumps(subject.config), str(out)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            cwd=ROOT,
            seconds=SECONDS,
        )
        if status is None:
            raise Broken(f"{where}: got no end within {SECONDS} seconds, expected the sample episodes played")
        if status != 0 or not out.exists():
            raise Broken(f"{where}: got exit status {status}: {errors.strip()[-200:]}, expected it to load and play")
        return [(what, text) for what, text in json.loads(out.read_text(encoding="utf-8"))]
