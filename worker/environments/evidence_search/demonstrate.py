"""Demonstrations for the warm start: a scripted, deliberately noisy policy in fresh random worlds.

Each world has new ids and values, so that a learner must copy what it reads and cannot memorise it.
The noise gives a warm-started policy the variance that group advantages live on; injected time-outs
(one, the first three, one success then three) teach what may follow a failure: retry, switch or stop.
Held-out patterns and two-entity questions never occur here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.contracts.seeds import derive_seed
from worker.environments.base import Demonstration, DemonstrationTurn, Task

from .lexicon import ATTRIBUTES, FAMILIES, KNOWN_PAIRS, NAMES
from .tasks import make_task
from .world import Document, World, call_result

WORLD_ENTITIES, TASKS_PER_WORLD = 12, 8


@dataclass(frozen=True)
class Noise:
    """Probabilities of the scripted policy's departures from the ideal episode."""

    wrong_source: float = 0.12
    skip_second: float = 0.25
    repeat: float = 0.10
    cite_all: float = 0.15
    cite_wrong: float = 0.12
    cite_none: float = 0.05
    malformed: float = 0.006  # per decision
    wrong_answer: float = 0.10
    retry: float = 0.64  # after a time-out; the rest of the three stops
    switch: float = 0.24


NOISE = Noise()


def timeout_text(calls_left: int) -> str:
    """What the policy sees of an injected time-out."""
    return f"timeout retryable left {calls_left}"


def search_text(source: str, query: str) -> str:
    """The canonical action text of a search."""
    return _compact({"tool": "search", "source": source, "query": query})


def open_text(identifier: str) -> str:
    """The canonical action text of an open."""
    return _compact({"tool": "open", "id": identifier})


def finish_text(answer: str, citations: list[str]) -> str:
    """The canonical action text of a Finish."""
    return _compact({"finish": answer, "cite": citations})


def state_name(read: int, needed: int, calls: int) -> str:
    """Coarse name of a state: needed documents read so far, and executed calls."""
    return f"read {read}/{needed} after {calls}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _injected_ordinals(rng: random.Random) -> frozenset[int]:
    draw = rng.random()
    if draw < 0.50:
        return frozenset()
    if draw < 0.65:
        return frozenset({0, 1, 2})
    if draw < 0.85:
        return frozenset({1, 2, 3})
    return frozenset({rng.choice((0, 1, 1, 2))})


class Script:
    """One scripted episode: decides, meets Observations, collects turns and the states visited."""

    def __init__(self, world: World, task: Task, rng: random.Random, max_decisions: int):
        self.world, self.task, self.rng, self.max_decisions = world, task, rng, max_decisions
        self.injected = _injected_ordinals(rng)
        self.turns: list[DemonstrationTurn] = []
        self.coverage: list[str] = []
        self.states: list[str] = []
        self.read: list[Document] = []
        self.listed: list[Document] = []
        self.calls = self.executed = self.failures = 0
        wanted = [world.by_id[item["id"]] for item in task.hidden["documents"]]
        if len(wanted) > 1 and rng.random() < NOISE.skip_second:
            self.coverage.append("skip_second")
            wanted = wanted[:1]
        self.pending = wanted
        self.detour = rng.random() < NOISE.wrong_source

    def run(self) -> Demonstration:
        """The whole episode."""
        while len(self.turns) < self.max_decisions and not self._decide():
            pass
        return Demonstration(self.task.prompt, tuple(self.turns), tuple(self.coverage), tuple(self.states))

    def _decide(self) -> bool:
        """One decision; True ends the episode."""
        needed = {item["id"] for item in self.task.hidden["documents"]}
        self.states.append(state_name(len(needed & {item.id for item in self.read}), len(needed), self.executed))
        if self.rng.random() < NOISE.malformed:
            return self._malformed()
        if len(self.turns) == self.max_decisions - 1:
            return self._finish()  # a call on the last decision would never be executed
        if self.failures:
            return self._after_failure()
        if not self.pending:
            if self.read and self.rng.random() < NOISE.repeat:
                self.coverage.append("repeat")
                self._search(self.read[-1], self.read[-1].family, "check")
                return False
            return self._finish()
        self._pursue("need")
        return False

    def _pursue(self, verb: str) -> None:
        """The next call towards the first pending document."""
        target = self.pending[0]
        if self.detour:
            self.detour = False
            self.coverage.append("wrong_source")
            self._search(target, self.rng.choice([item for item in FAMILIES if item != target.family]), verb)
        elif target in self.listed:
            self._call(f"open {target.heading()}", open_text(target.id), "open", {"id": target.id})
        else:
            self._search(target, target.family, verb)

    def _after_failure(self) -> bool:
        """Retry the same aim, switch to another, or stop."""
        self.coverage.append(f"timeouts_{min(self.failures, 4)}")
        draw = self.rng.random()
        if draw < NOISE.retry and self.pending:
            self.coverage.append("retry")
            self._pursue("retry")
        elif draw < NOISE.retry + NOISE.switch and self.pending:
            self.coverage.append("switch")
            if len(self.pending) > 1:
                self.pending.append(self.pending.pop(0))
                self._pursue("switch")
            else:
                other = self.rng.choice([item for item in FAMILIES if item != self.pending[0].family])
                self._search(self.pending[0], other, "switch")
        else:
            self.coverage.append("stop_after_failure")
            return self._finish()
        return False

    def _search(self, target: Document, source: str, verb: str) -> None:
        query = f"{target.entity} {target.attribute}"
        self._call(
            f"{verb} {query} in {source}", search_text(source, query), "search", {"source": source, "query": query}
        )

    def _call(self, think: str, action: str, tool: str, arguments: dict[str, str]) -> None:
        ordinal, self.calls = self.calls, self.calls + 1
        if ordinal in self.injected:
            self.failures += 1
            self.turns.append(DemonstrationTurn(think, action, timeout_text(self.max_decisions - self.calls)))
            return
        if self.failures >= 3:
            self.coverage.append("continued_after_fatal")
        self.coverage.append("recovered" if self.failures else f"{tool}_ok")
        self.failures = 0
        self.executed += 1
        _, text, read, listed = call_result(self.world, tool, arguments)
        self.turns.append(DemonstrationTurn(think, action, text))
        self.read += [item for item in read if item not in self.read]
        self.listed += [item for item in listed if item not in self.listed]
        self.pending = [item for item in self.pending if item not in self.read]

    def _malformed(self) -> bool:
        """A decision that the strict parser refuses."""
        self.coverage.append("malformed")
        target = self.world.by_id[self.task.hidden["documents"][0]["id"]]
        query = f"{target.entity} {target.attribute}"
        action = self.rng.choice(
            [
                _compact({"tool": "search", "source": target.family}),
                _compact({"tool": "search", "query": query}),
                search_text(target.family, query)[:-1],
                _compact({"tool": "open", "query": query}),
            ]
        )
        self.turns.append(DemonstrationTurn(f"need {query} in {target.family}", action, None))
        return True

    def _finish(self) -> bool:
        """Finish with the found documents, noisily; without any, honestly cite nothing."""
        needed = {item["id"] for item in self.task.hidden["documents"]}
        found = [item for item in self.read if item.id in needed]
        if not found:
            self.coverage.append("finish_without_evidence")
            self.turns.append(DemonstrationTurn("found none", finish_text("none", []), None))
            return True
        others = [item for item in self.read if item.id not in needed]
        chosen, cited, draw = list(found), list(found), self.rng.random()
        if draw < NOISE.cite_all:
            cited, label = list(self.read), "cite_all"
        elif draw < NOISE.cite_all + NOISE.cite_wrong and others:
            chosen[-1] = cited[-1] = self.rng.choice(others)
            label = "cite_wrong"
        elif draw < NOISE.cite_all + NOISE.cite_wrong + NOISE.cite_none:
            cited, label = [], "cite_none"
        else:
            label = "finish_complete" if len(found) == len(needed) else "finish_partial"
        values = [item.value for item in chosen]
        if others and self.rng.random() < NOISE.wrong_answer:
            values[-1] = self.rng.choice(others).value
        self.coverage.append(label)
        think = "found " + " and ".join(item.line() for item in (chosen if label != "cite_all" else cited))
        self.turns.append(DemonstrationTurn(think, finish_text(" ".join(values), [item.id for item in cited]), None))
        return True


def demonstrations(seed: int, max_decisions: int) -> Iterator[Demonstration]:
    """An endless stream of scripted episodes; equal seeds give equal streams."""
    rng = random.Random(int(derive_seed("evidence_search.demonstrations", seed)))
    attributes = tuple(ATTRIBUTES)
    while True:
        world = World.build(rng.getrandbits(48), rng.sample(NAMES, WORLD_ENTITIES))
        entities = sorted({item.entity for item in world.documents})
        for _ in range(TASKS_PER_WORLD):
            entity = rng.choice(entities)
            if rng.random() < 0.45:
                wanted, family = [(entity, rng.choice(attributes))], "single"
            else:
                wanted, family = [(entity, attribute) for attribute in rng.choice(KNOWN_PAIRS)], "two_sources"
                rng.shuffle(wanted)
            yield Script(world, make_task(world, "demonstration", family, wanted), rng, max_decisions).run()
