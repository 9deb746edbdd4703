"""The task set: sizes, splits by content, and hidden references that no prompt contains."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict

import pytest

from tests.environments.episodes import ENVIRONMENT
from worker.environments.evidence_search.environment import RECOVERY_INSTRUCTION, EvidenceSearch
from worker.environments.evidence_search.lexicon import ATTRIBUTES, FAMILIES, HELD_OUT_PAIRS, KNOWN_PAIRS, VALUES
from worker.environments.evidence_search.world import Document, World

SPLITS = ("train", "validation", "test", "out_of_distribution", "anchor")


def test_sizes() -> None:
    """26 entities x 9 attributes = 234 documents; 10 x 27 train tasks, 4 x 27 validation, 5 x 27 test,
    4 x (9 held-out pairs + 9 two-entity) out of distribution, 3 x 9 anchor = 612 tasks."""
    assert len(ENVIRONMENT.world.documents) == 234
    assert {item.family for item in ENVIRONMENT.world.documents} == set(FAMILIES) and len(FAMILIES) == 3
    assert Counter(task.split for task in ENVIRONMENT.tasks()) == {
        "train": 270, "validation": 108, "test": 135, "out_of_distribution": 72, "anchor": 27,
    }  # fmt: skip
    assert sum(len(task.hidden["documents"]) == 2 for task in ENVIRONMENT.tasks()) > 300


def test_splits_share_no_entity_and_no_document() -> None:
    entities, documents = defaultdict(set), defaultdict(set)
    for task in ENVIRONMENT.tasks():
        entities[task.split] |= {item["entity"] for item in task.hidden["documents"]}
        documents[task.split] |= {item["id"] for item in task.hidden["documents"]}
    assert set(entities) == set(SPLITS)
    for left, right in itertools.combinations(SPLITS, 2):
        assert not entities[left] & entities[right], (left, right)
        assert not documents[left] & documents[right], (left, right)


def test_out_of_distribution_patterns_occur_nowhere_else() -> None:
    """Held-out attribute pairs and two-entity questions: only there, and there nothing else."""
    for task in ENVIRONMENT.tasks():
        attributes = tuple(sorted((item["attribute"] for item in task.hidden["documents"]), key=list(ATTRIBUTES).index))
        entities = {item["entity"] for item in task.hidden["documents"]}
        is_unseen = attributes in HELD_OUT_PAIRS or len(entities) == 2
        assert is_unseen == (task.split == "out_of_distribution"), task.key
    assert len(HELD_OUT_PAIRS) == 9 and len(KNOWN_PAIRS) == 18


def test_identities_are_distinct_and_bound_to_content() -> None:
    tasks = ENVIRONMENT.tasks()
    assert len({task.identity() for task in tasks}) == len(tasks)
    other = EvidenceSearch({"world_seed": 12}).tasks()
    assert not {task.identity() for task in tasks} & {task.identity() for task in other}
    assert [task.identity() for task in EvidenceSearch({}).tasks()] == [task.identity() for task in tasks]


def test_no_prompt_contains_a_hidden_reference() -> None:
    """Neither ids nor values stand in a prompt or in the instructions, as words; nor any value of the vocabulary."""
    values = {value for family in VALUES.values() for found in family.values() for value in found}
    instructions = set(re.findall(r"\w+", ENVIRONMENT.instructions()))
    assert not instructions & values
    for task in ENVIRONMENT.tasks():
        words = set(re.findall(r"\w+", task.prompt)) | instructions
        assert not words & values, task.prompt
        assert not any(word.isdigit() for word in words), task.prompt
        for item in task.hidden["documents"]:
            assert item["id"] not in words and item["value"] not in words


def test_instructions_carry_the_recovery_instruction() -> None:
    assert RECOVERY_INSTRUCTION in ENVIRONMENT.instructions()
    assert "retry or change the query or source" in RECOVERY_INSTRUCTION


def test_a_prefix_of_a_split_mixes_its_families() -> None:
    """A plan may take the first N tasks of a split: each family is there in its first 32."""
    for split in ("train", "validation", "test"):
        first = [task.family for task in ENVIRONMENT.tasks() if task.split == split][:32]
        assert {"single_label", "single_notice", "single_registry", "two_sources"} == set(first)


def test_search_shows_the_right_document_among_two_and_not_always_first() -> None:
    places = Counter()
    for item in ENVIRONMENT.world.documents:
        hits = ENVIRONMENT.world.search(item.family, f"{item.entity} {item.attribute}")
        assert len(hits) == 2 and item in hits and [hit.id for hit in hits] == sorted(hit.id for hit in hits)
        places[hits.index(item)] += 1
    assert min(places.values()) > 234 / 5


def test_a_world_refuses_repeated_documents() -> None:
    one = Document("100", "label", "Zorvex", "dose", "10")
    with pytest.raises(ValueError, match="repeated id"):
        World([one, Document("100", "label", "Zorvex", "route", "oral")])
    with pytest.raises(ValueError, match="repeated id"):
        World([one, Document("101", "label", "Zorvex", "dose", "20")])


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"seed": 1}, "got \\['seed'\\]"),
        ({"world_seed": "7"}, "world_seed: got '7'"),
        ({"max_decisions": 0}, "max_decisions: got 0"),
        ({"max_decisions": True}, "max_decisions: got True"),
    ],
)
def test_configuration_is_strict(config: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        EvidenceSearch(config)
