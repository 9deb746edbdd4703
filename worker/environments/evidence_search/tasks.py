"""The task set: which entities and attribute combinations each split holds.

Splits are disjoint by content. Entities are partitioned between the five splits, so no document is
needed by tasks of two splits. What varies per split:

- ``train``, ``validation``, ``test``: other entities, the same question patterns;
- ``out_of_distribution``: other entities *and* unseen patterns: attribute pairs that occur in no
  other split and in no demonstration (``held_out_pair``), and the same attribute of two entities
  (``two_entities``);
- ``anchor``: other entities, single-document questions only: the easiest pattern, watched for regression.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from workbench.contracts.seeds import derive_seed
from worker.environments.base import Task

from .lexicon import ATTRIBUTES, HELD_OUT_PAIRS, KNOWN_PAIRS, NAMES
from .world import World

TOOLS = ("search", "open")
SPLIT_ENTITIES = {"train": 10, "validation": 4, "test": 5, "out_of_distribution": 4, "anchor": 3}


def split_entities(seed: str | int) -> dict[str, tuple[str, ...]]:
    """The entities of each split: a seeded partition of the first names of a shuffled list."""
    names = list(NAMES)
    random.Random(int(derive_seed("evidence_search.entities", str(seed)))).shuffle(names)
    chosen, start = {}, 0
    for split, count in SPLIT_ENTITIES.items():
        chosen[split] = tuple(names[start : start + count])
        start += count
    return chosen


def make_task(world: World, split: str, family: str, wanted: Sequence[tuple[str, str]]) -> Task:
    """The task that asks for ``wanted`` (entity, attribute) facts, in that order."""
    asked = [f"{entity} {attribute} in {ATTRIBUTES[attribute]}" for entity, attribute in wanted]
    return Task(
        key="+".join(f"{entity}.{attribute}" for entity, attribute in wanted),
        split=split,
        family=family,
        prompt=f"Find {' and '.join(asked)}.",
        initial_state={"corpus_sha256": world.sha256},
        hidden={"documents": [world.by_fact[fact].reference() for fact in wanted]},
        tools=TOOLS,
    )


def _patterns(split: str, entities: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    if split == "out_of_distribution":
        for entity in entities:
            for pair in sorted(HELD_OUT_PAIRS):
                yield "held_out_pair", [(entity, attribute) for attribute in pair]
        for left, right in zip(entities, [*entities[1:], entities[0]], strict=True):
            for attribute in sorted(ATTRIBUTES):
                yield "two_entities", [(left, attribute), (right, attribute)]
        return
    for entity in entities:
        for attribute, family in ATTRIBUTES.items():
            yield f"single_{family}", [(entity, attribute)]
        if split != "anchor":
            for pair in KNOWN_PAIRS:
                yield "two_sources", [(entity, attribute) for attribute in pair]


def build_tasks(world: World, seed: str | int) -> tuple[Task, ...]:
    """Every task, split by split, in a seeded order within a split (any prefix of it is a fair sample)."""
    tasks: list[Task] = []
    for split, entities in split_entities(seed).items():
        rng = random.Random(int(derive_seed("evidence_search.tasks", str(seed), split)))
        found = []
        for family, wanted in _patterns(split, entities):
            asked = list(reversed(wanted)) if rng.random() < 0.5 else wanted
            found.append(make_task(world, split, family, asked))
        rng.shuffle(found)
        tasks += found
    return tuple(tasks)
