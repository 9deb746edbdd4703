"""The warm start: recipe identity, copying, gate, cache; the whole recipe once, marked slow."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.warm import warm_base_model
from workbench.contracts.canonical import digest, parse_canonical
from workbench.contracts.errors import EnvironmentFault
from worker.engine import warmstart
from worker.engine.compact import CompactFormatter
from worker.engine.identities import model_folder_sha256, tokenizer_folder_sha256
from worker.engine.tiny_config import Initialisation, TinyShape, build_model, tiny_config
from worker.engine.warmstart import QUICK, STANDARD, BaseModel, WarmStartRefused, ensure_base_model, recipe_sha256
from worker.engine.warmstart_train import SftStage, copy_accuracy, copy_batch, direct_loss, rate_factor, weighted_loss
from worker.environments.registry import get_environment

__all__ = ["warm_base_model"]
ENVIRONMENT = get_environment("evidence_search", {})
VOCABULARY = list(range(8, 600))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    return ensure_base_model("evidence_search", {}, tmp_path_factory.mktemp("cache"), recipe=QUICK)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != warmstart.TIMING}


def tiny(induction: bool, seed: int = 1) -> torch.nn.Module:
    shape = TinyShape()
    return build_model(tiny_config(600, shape, 0, 1, 7), shape, Initialisation(induction=induction), seed)


def test_induction_copies_before_any_training() -> None:
    """Fresh weights rank most copyable tokens first; without the heads they rank next to none."""
    assert copy_accuracy(tiny(True), 3, VOCABULARY) > 0.6
    assert copy_accuracy(tiny(False), 3, VOCABULARY) < 0.05


def test_heads_attend_one_and_two_tokens_back() -> None:
    """Layer 0: the heads of key group 0 give most of their weight to i - 1, those of group 1 to i - 2."""
    shape = TinyShape()
    settings = tiny_config(600, shape, 0, 1, 7)
    settings._attn_implementation = "eager"
    model = build_model(settings, shape, Initialisation(), 1)
    ids, _ = copy_batch(random.Random(0), VOCABULARY, 4, 48)
    with torch.no_grad():
        weights = model.model(input_ids=ids, output_attentions=True).attentions[0]
    for head, offset in ((0, 1), (1, 1), (2, 2), (3, 2)):
        assert float(torch.diagonal(weights[:, head], -offset, 1, 2).mean()) > 0.9, head


def test_weights_are_a_function_of_the_seed() -> None:
    state = torch.get_rng_state()
    first, again, other = tiny(True, 1), tiny(True, 1), tiny(True, 2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))
    torch.set_rng_state(state)


def test_copy_batch_marks_what_can_be_copied() -> None:
    """Where the weight is 1, the same two-token step (previous token, this token) stands earlier in the row."""
    ids, weights = copy_batch(random.Random(5), VOCABULARY, 16, 48)
    assert ids.shape == weights.shape == (16, 48)
    for row, weight in zip(ids.tolist(), weights.tolist(), strict=True):
        for place, value in enumerate(weight):
            if value:
                earlier = list(itertools.pairwise(row[:place]))
                assert (row[place - 1], row[place]) in earlier
    assert 0.2 < float(weights.mean()) < 0.8


def test_weighted_loss_by_hand() -> None:
    """Two weighted targets, weights 1 and 0.5: (1*l1 + 0.5*l2) / 1.5 of the model's own log-probabilities;
    right padding changes nothing."""
    model = tiny(True)
    ids = torch.tensor([[9, 10, 11, 12]])
    weights = torch.tensor([[0.0, 0.0, 1.0, 0.5]])
    with torch.no_grad():
        logprobs = model(input_ids=ids).logits.log_softmax(-1)
        expected = -(logprobs[0, 1, 11] + 0.5 * logprobs[0, 2, 12]) / 1.5
        found = weighted_loss(model, ids, weights)
        padded = weighted_loss(
            model, torch.tensor([[9, 10, 11, 12, 0, 0]]), torch.tensor([[0.0, 0.0, 1.0, 0.5, 0.0, 0.0]])
        )
    assert float(found) == pytest.approx(float(expected), abs=1e-5)
    assert float(padded) == pytest.approx(float(expected), abs=1e-5)


def test_the_direct_loss_and_its_gradient_are_those_of_the_plain_one() -> None:
    """Uneven rows, weights 0, 0.3 and 1."""
    model = tiny(True)
    ids, _ = copy_batch(random.Random(5), VOCABULARY, 4, 30)
    weights = torch.ones(4, 30)
    weights[:2, 20:] = 0.0
    weights[:, 5:9] = 0.3
    found = []
    for loss_of in (weighted_loss, direct_loss):
        model.zero_grad()
        loss = loss_of(model, ids, weights)
        loss.backward()
        found.append((float(loss.detach()), [parameter.grad.clone() for parameter in model.parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-5)
    for plain, direct in zip(found[0][1], found[1][1], strict=True):
        assert float((plain - direct).abs().max()) <= 1e-4 * float(plain.abs().max()) + 1e-8


def test_rate_factor_by_hand() -> None:
    """100 steps, warm-up 20, decay over the last 40: 1/20 at step 0, 1 at 19 and 60, 20/40 at 80, floor .03."""
    stage = SftStage(steps=100, warmup=20, decay_share=0.4, final_share=0.03)
    assert [rate_factor(step, stage) for step in (0, 19, 60, 80, 99)] == pytest.approx([0.05, 1.0, 1.0, 0.5, 0.03])


def test_recipe_hash_covers_recipe_environment_and_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    base = recipe_sha256(STANDARD, ENVIRONMENT, {})
    assert recipe_sha256(STANDARD, ENVIRONMENT, {}) == base
    assert recipe_sha256(replace(STANDARD, seed=2), ENVIRONMENT, {}) != base
    assert recipe_sha256(replace(STANDARD, sft=replace(STANDARD.sft, steps=241)), ENVIRONMENT, {}) != base
    assert recipe_sha256(STANDARD, ENVIRONMENT, {"world_seed": 12}) != base
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    assert recipe_sha256(STANDARD, ENVIRONMENT, {}) == base, "a build always runs on one thread"
    torch.set_num_threads(threads)
    monkeypatch.setattr(warmstart, "runtime_facts", lambda dtype: {"torch": "another"})
    assert recipe_sha256(STANDARD, ENVIRONMENT, {}) != base


def test_quick_build_loads_and_says_what_it_is(quick: BaseModel) -> None:
    folder = Path(quick.path)
    assert quick.base_model_sha256 == model_folder_sha256(folder)
    assert quick.tokenizer_sha256 == tokenizer_folder_sha256(folder)
    written = parse_canonical((folder / warmstart.REPORT).read_bytes())
    assert written == {**quick.report, "report_sha256": digest(quick.report)}
    assert quick.report["gate"] == {"measure": "probe.valid_actions", "minimum": None, "is_gated": False}
    assert quick.timing["cached"] is False and quick.timing["seconds"] > 0
    assert "seconds" not in json.dumps(quick.report), "nothing that is hashed may hold a time"
    model = AutoModelForCausalLM.from_pretrained(quick.path)
    tokenizer = AutoTokenizer.from_pretrained(quick.path)
    assert CompactFormatter(tokenizer).identity() == quick.report["formatter"]
    assert model.config.vocab_size == len(tokenizer) == quick.report["vocabulary"]
    assert sum(quick.report["coverage"].values()) > 0
    assert quick.report["state_coverage"]["read 0/1 after 0"] > 0


def test_two_builds_are_equal_byte_by_byte(quick: BaseModel, tmp_path: Path) -> None:
    state = torch.get_rng_state()
    torch.manual_seed(123)  # a build must not read the global generator
    again = ensure_base_model("evidence_search", {}, tmp_path, recipe=QUICK)
    torch.set_rng_state(state)
    assert again.path != quick.path
    assert files(Path(again.path)) == files(Path(quick.path))
    assert again.base_model_sha256 == quick.base_model_sha256 and again.report == quick.report


def test_a_cached_build_is_reused(quick: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmstart, "_build", lambda *_: pytest.fail("built again"))
    found = ensure_base_model("evidence_search", {}, Path(quick.path).parent, recipe=QUICK)
    assert found.timing["cached"] is True
    assert (found.path, found.base_model_sha256, found.report) == (quick.path, quick.base_model_sha256, quick.report)


@pytest.mark.parametrize("damage", ["model.safetensors", "tokenizer.json", warmstart.REPORT])
def test_a_damaged_cache_is_built_again(quick: BaseModel, tmp_path: Path, damage: str) -> None:
    """One changed byte in model, tokenizer or report: never loaded, built anew."""
    place = tmp_path / Path(quick.path).name
    place.mkdir()
    for name, data in files(Path(quick.path)).items():
        (place / name).write_bytes(data)
    (place / warmstart.TIMING).write_text("{}")
    data = bytearray((place / damage).read_bytes())
    data[-2] ^= 1
    (place / damage).write_bytes(bytes(data))
    found = ensure_base_model("evidence_search", {}, tmp_path, recipe=QUICK)
    assert found.timing["cached"] is False and found.base_model_sha256 == quick.base_model_sha256
    assert files(place) == files(Path(quick.path))


def test_the_gate_refuses_a_bad_policy_and_keeps_nothing(tmp_path: Path) -> None:
    """Six SFT steps do not make legal actions: with the product's gate the build fails and leaves no model."""
    gated = replace(QUICK, name="quick-gated", minimum_valid_actions=0.90)
    with pytest.raises(
        WarmStartRefused, match=r"valid_actions: got 0\.\d+ of \d+ sampled decisions, expected at least 0.90"
    ):
        ensure_base_model("evidence_search", {}, tmp_path, recipe=gated)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_unknown_environment_and_configuration(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="'nothing'"):
        ensure_base_model("nothing", {}, tmp_path, recipe=QUICK)
    with pytest.raises(EnvironmentFault, match="colour"):
        ensure_base_model("evidence_search", {"colour": 1}, tmp_path, recipe=QUICK)


def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    ensure_base_model("evidence_search", {}, tmp_path, progress=seen.append, recipe=replace(QUICK, seed=3))
    assert {item["stage"] for item in seen} == {"warm_start"}
    assert [item["part"] for item in seen if item["part"] in ("tokenizer", "probe", "stress")] == [
        "tokenizer", "probe", "stress",
    ]  # fmt: skip
    assert {"stage": "warm_start", "part": "sft", "done": 6, "total": 6} in seen


def _build_in_child(folder: str, pause: float) -> None:
    def wait(value: dict[str, object]) -> None:
        if value["part"] == "sft" and value["done"] == 2:
            (Path(folder) / f"reached-{os.getpid()}").touch()
            time.sleep(pause)

    torch.set_num_threads(1)
    ensure_base_model("evidence_search", {}, folder, progress=wait, recipe=QUICK)


def _await(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_killed_build_leaves_nothing_usable_and_the_next_one_succeeds(quick: BaseModel, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_build_in_child, args=(str(tmp_path), 60.0))
    child.start()
    _await(lambda: list(tmp_path.glob("reached-*")))
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and not path.name.startswith(".")] == []
    built = ensure_base_model("evidence_search", {}, tmp_path, recipe=QUICK)
    assert built.base_model_sha256 == quick.base_model_sha256 and built.timing["cached"] is False
    assert list(tmp_path.glob(".*.partial")) == [], "what the killed build left is cleared"


@pytest.mark.slow
def test_two_processes_build_once(quick: BaseModel, tmp_path: Path) -> None:
    """A second process waits at the lock and finds the finished build: its progress never reaches the SFT stage."""
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_build_in_child, args=(str(tmp_path), 0.5)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0]
    assert len(list(tmp_path.glob("reached-*"))) == 1
    assert files(tmp_path / Path(quick.path).name) == files(Path(quick.path))


@pytest.mark.slow
def test_the_standard_recipe_passes_its_gate(warm_base_model: BaseModel) -> None:
    """What a study starts from: legal when sampled, rewarded, with variance inside groups, and Fatal under stress."""
    report = warm_base_model.report
    assert report["gate"] == {"measure": "probe.valid_actions", "minimum": 0.9, "is_gated": True}
    assert report["recipe"] == "standard" and report["parameters"] < 600_000
    assert report["copy_accuracy_before_sft"] > 0.9 and report["copy_accuracy_initial"] > 0.5
    probe, stress = report["probe"], report["stress"]
    assert probe["episodes"] == 128 and probe["valid_actions"] >= 0.90
    assert probe["reward_mean"] > 0.45 and probe["zero_variance_groups"] < 0.3
    assert 0.05 < probe["success"] < 0.9, "there must be something left to learn"
    assert stress["exposed"] > 0.3 and stress["fatal_with_prefix"] > 0 and stress["recovered"] > 0
