"""Loading: deterministic adapters, identities, refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engine.support import LORA, MemoryStore, write_model
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.errors import EngineFault
from worker.engine import checkpoint, policy, train
from worker.engine.identities import model_folder_sha256, runtime_identity, tokenizer_folder_sha256
from worker.engine.policy import load_policy


def test_fresh_adapter_is_a_function_of_its_seed(make_world: Callable[..., Any]) -> None:
    """Equal seed, equal bytes in a second process state; another seed, another adapter; B starts at 0."""
    first = make_world().described.parent_adapter_sha256
    torch.manual_seed(99)
    again = make_world()
    assert again.described.parent_adapter_sha256 == first
    assert make_world({**LORA, "seed": "8"}).described.parent_adapter_sha256 != first
    tensors = checkpoint.read_tensors(again.store.get(first), "adapter")
    assert all(float(value.abs().max()) == 0.0 for name, value in tensors.items() if ".lora_B." in name)
    assert all(float(value.abs().max()) > 0.0 for name, value in tensors.items() if ".lora_A." in name)


def test_loading_switches_adapters_exactly(make_world: Callable[..., Any]) -> None:
    world = make_world()
    parent = load_policy(world.policy_ref(), world.store, cache_dir=world.cache_dir)
    with torch.no_grad():
        for parameter in parent.trainable.values():
            parameter.add_(0.25)
    parent.disturb()
    other = world.store.put(parent.adapter_blob())
    for wanted in (other, world.described.parent_adapter_sha256, other):
        found = load_policy(world.policy_ref(wanted), world.store, cache_dir=world.cache_dir)
        assert found.adapter_sha256 == wanted == sha256_hex(found.adapter_blob())
        assert not found.causal_model().training


def test_no_adapter_reference_means_the_fresh_one(make_world: Callable[..., Any]) -> None:
    world = make_world()
    loaded = load_policy(world.policy_ref(), world.store, cache_dir=world.cache_dir)
    with torch.no_grad():
        next(iter(loaded.trainable.values())).add_(1.0)
    loaded.disturb()
    ref = replace(world.policy_ref(), adapter_sha256=None)
    assert (
        load_policy(ref, world.store, cache_dir=world.cache_dir).adapter_sha256 == world.described.parent_adapter_sha256
    )


def test_full_fine_tuning_saves_every_weight_once(make_world: Callable[..., Any]) -> None:
    """Tied embeddings are one tensor; trainable equals all parameters."""
    world = make_world({"kind": "full"})
    assert world.described.trainable_parameters == world.described.parameters
    tensors = checkpoint.read_tensors(world.store.get(world.described.parent_adapter_sha256), "adapter")
    assert "model.embed_tokens.weight" in tensors and "lm_head.weight" not in tensors


def test_adapter_bytes_are_sorted_and_bare() -> None:
    """Insertion order does not matter; no metadata."""
    a, b = torch.ones(2, 2), torch.zeros(3)
    assert checkpoint.tensor_bytes({"a": a, "b": b}) == checkpoint.tensor_bytes({"b": b, "a": a})
    assert b"__metadata__" not in checkpoint.tensor_bytes({"a": a})


def test_wrong_identities_are_refused(make_world: Callable[..., Any]) -> None:
    world = make_world()
    ref = world.policy_ref()
    for name in ("base_model_sha256", "tokenizer_sha256"):
        with pytest.raises(EngineFault, match=f"{name}: got .*, expected {'0' * 64}"):
            load_policy(replace(ref, **{name: "0" * 64}), world.store, cache_dir=world.cache_dir)
    with pytest.raises(EngineFault, match=r"adapter: .* expected blob 1111"):
        load_policy(replace(ref, adapter_sha256="1" * 64), world.store, cache_dir=world.cache_dir)
    with pytest.raises(EngineFault, match="formatter: got 'html'"):
        load_policy(replace(ref, formatter="html"), world.store, cache_dir=world.cache_dir)
    with pytest.raises(EngineFault, match=r"adaptation\.kind: got 'prefix'"):
        load_policy(replace(ref, adaptation={"kind": "prefix"}), world.store, cache_dir=world.cache_dir)


def test_altered_adapter_bytes_are_refused(make_world: Callable[..., Any]) -> None:
    """A store that hands out other bytes under the name: the hash is checked again."""
    world = make_world()
    name = world.store.put(checkpoint.tensor_bytes({"x": torch.ones(1)}))
    with pytest.raises(EngineFault, match="other parameter names"):
        load_policy(world.policy_ref(name), world.store, cache_dir=world.cache_dir)
    policy.clear_residents()
    world.store.blobs[name] = world.store.get(world.described.parent_adapter_sha256)
    with pytest.raises(EngineFault, match="got bytes with hash"):
        load_policy(world.policy_ref(name), world.store, cache_dir=world.cache_dir)


def test_folder_identities_follow_their_files(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    model, tokenizer = model_folder_sha256(folder), tokenizer_folder_sha256(folder)
    (folder / "tokenizer_config.json").write_text("{}")
    assert model_folder_sha256(folder) == model and tokenizer_folder_sha256(folder) != tokenizer
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    assert model_folder_sha256(folder) != model
    with pytest.raises(EngineFault, match="without safetensors"):
        model_folder_sha256(tmp_path)


def test_threads_are_part_of_the_runtime_identity() -> None:
    one = runtime_identity()
    assert runtime_identity("bfloat16") != one
    torch.set_num_threads(2)
    try:
        assert runtime_identity() != one
    finally:
        torch.set_num_threads(1)
    assert runtime_identity() == one


def test_describe_binds_tasks_and_vocabulary(make_world: Callable[..., Any]) -> None:
    world = make_world()
    tasks = parse_canonical(world.store.get(world.described.task_set_sha256))
    assert len(tasks) == 6 and set(tasks[0]) == {
        "key",
        "split",
        "family",
        "prompt",
        "initial_state",
        "hidden",
        "tools",
        "uid",
    }
    vocabulary = parse_canonical(world.store.get(world.described.vocabulary_sha256))
    assert vocabulary[:3] == ["a", "b", "c"]
    assert world.described.success_definition == "tiny.success/1"


def test_service_takes_and_gives_wire_values(make_world: Callable[..., Any]) -> None:
    from workbench.contracts.wire import to_wire
    from worker.engine.service import handle

    world = make_world()
    seen: list[dict[str, Any]] = []
    spec = to_wire(world.collect_spec(groups=1))
    answer = handle("collect", spec, store=world.store, cache_dir=str(world.cache_dir), progress=seen.append)
    direct = train.collect(world.collect_spec(groups=1), world.store, cache_dir=world.cache_dir)
    assert answer["groups"][0]["record_sha256"] == direct.groups[0].record_sha256
    assert seen and {"stage", "finished", "total", "turns"} == set(seen[-1])
    with pytest.raises(EngineFault, match="op: got 'train'"):
        handle("train", {}, store=MemoryStore(), cache_dir=world.cache_dir, progress=seen.append)


@pytest.mark.gate
def test_engine_imports_neither_django_nor_celery() -> None:
    code = (
        "import sys, worker.engine.service as s, worker.engine.update; print({'django', 'celery'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
