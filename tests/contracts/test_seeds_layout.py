"""Seeds and layout: equal in every arm and for every checkpoint, and fixed by the frozen plan alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.scripted_plan import document
from workbench.contracts import layout
from workbench.contracts.failures import PROFILES, injected_ordinals, profile_of, schedule_document
from workbench.contracts.seeds import derive_seed, evaluation_seed, order_seed, slot_seed
from workbench.contracts.spec import freeze_body

SHA = "c" * 64


def body(tasks: int = 5, **changes: Any) -> dict[str, Any]:
    splits = {
        split: [{"uid": f"{split}-{i}", "sha256": "d" * 64, "family": "f"} for i in range(tasks)]
        for split in ("train", "test")
    }
    return freeze_body(document(**changes), {"task_set": {"sha256": "e" * 64, "splits": splits}})


@given(st.text(max_size=5), st.integers(0, 9), st.integers(0, 9))
def test_a_seed_is_a_decimal_string_of_64_bits(run_seed: str, ordinal: int, slot: int) -> None:
    seed = slot_seed(SHA, run_seed, "train", ordinal, "task", slot)
    assert str(int(seed)) == seed and 0 <= int(seed) < 2**64


def test_seeds_are_fixed_for_all_time() -> None:
    """First 8 bytes, big-endian, of SHA-256 over ["workbench.seed/1", purpose, [parts as text]]."""
    import hashlib

    data = b'["workbench.seed/1","slot:train",["p","7","3","t","1"]]'
    expected = str(int.from_bytes(hashlib.sha256(data).digest()[:8], "big"))
    assert slot_seed("p", "7", "train", 3, "t", 1) == expected


def test_parts_do_not_run_into_each_other() -> None:
    assert derive_seed("a", "12", "3") != derive_seed("a", "1", "23")
    assert len({slot_seed(SHA, "1", "train", g, "t", s) for g in range(20) for s in range(8)}) == 160
    assert slot_seed(SHA, "1", "preflight", 0, "t", 0) != slot_seed(SHA, "1", "train", 0, "t", 0)
    assert evaluation_seed(SHA, "standard", "t", 0) != evaluation_seed(SHA, "stress", "t", 0)
    assert order_seed(SHA, "1") != order_seed(SHA, "2")


def test_two_arms_face_the_same_tasks_seeds_and_injections() -> None:
    frozen = body(failure={"train_cycle": ["control", "prefix_fatal_opportunity"], "stress_cycle": ["control"]})
    for batch in range(4):
        left = layout.training_groups(frozen, SHA, "00000000-0000-4000-8000-000000000001", "V", "1", batch)
        right = layout.training_groups(frozen, SHA, "00000000-0000-4000-8000-000000000002", "F", "1", batch)
        for a, b in zip(left, right, strict=True):
            assert (a.ordinal, a.task_uid, a.failure_profile) == (b.ordinal, b.task_uid, b.failure_profile)
            assert [slot.seed for slot in a.slots] == [slot.seed for slot in b.slots]
            assert a.group_uid != b.group_uid


def test_two_run_seeds_differ_in_every_slot() -> None:
    frozen, run = body(), "00000000-0000-4000-8000-000000000001"
    one, two = (layout.training_groups(frozen, SHA, run, "V", seed, 0) for seed in ("1", "2"))
    assert not {s.seed for g in one for s in g.slots} & {s.seed for g in two for s in g.slots}


def test_evaluation_seeds_do_not_depend_on_the_checkpoint() -> None:
    frozen = body()
    first, second = (
        layout.evaluation_shards(frozen, SHA, f"00000000-0000-4000-8000-00000000000{i}", "stress", "test")
        for i in (1, 2)
    )
    seeds = [[(g.task_uid, s.seed, g.injected_ordinals) for g in shard for s in g.slots] for shard in first]
    assert seeds == [[(g.task_uid, s.seed, g.injected_ordinals) for g in shard for s in g.slots] for shard in second]
    assert first[0][0].slots[0].trajectory_uid != second[0][0].slots[0].trajectory_uid


def test_a_pass_meets_every_task_once_and_each_pass_has_its_own_order() -> None:
    frozen = body(tasks=7)
    order = [layout.training_task(frozen, SHA, "1", "train", i)["uid"] for i in range(14)]
    assert sorted(order[:7]) == sorted(order[7:]) == sorted(f"train-{i}" for i in range(7))
    assert order[:7] != order[7:]


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 32))
def test_shards_hold_every_cell_once_within_their_rows(repeats: int, tasks: int, rows: int) -> None:
    rows = max(rows, repeats, 2)
    frozen = body(
        tasks=9, runtime={"shard_rows": rows},
        evaluation={"splits": [{"split": "test", "tasks": tasks}], "repeats": repeats},
    )  # fmt: skip
    uid = "00000000-0000-4000-8000-000000000001"
    shards = layout.evaluation_shards(frozen, SHA, uid, "standard", "test")
    assert len(shards) == layout.evaluation_shard_count(frozen, "test")
    assert all(sum(len(g.slots) for g in shard) <= rows for shard in shards)
    assert [g.ordinal for shard in shards for g in shard] == list(range(tasks))


def test_profiles_and_their_ordinals() -> None:
    """One success then three; the first three; one; none."""
    assert injected_ordinals("prefix_fatal_opportunity") == (1, 2, 3)
    assert injected_ordinals("immediate_fatal_opportunity") == (0, 1, 2)
    assert injected_ordinals("isolated_recoverable_failure") == (0,)
    assert injected_ordinals("control") == ()
    assert [profile_of(["a", "b"], i) for i in range(5)] == ["a", "b", "a", "b", "a"]
    assert profile_of([], 3) == "control"
    assert set(schedule_document([], [])["profiles"]) == set(PROFILES)
    with pytest.raises(KeyError):
        injected_ordinals("none")
