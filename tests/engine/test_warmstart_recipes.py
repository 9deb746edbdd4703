"""Recipes by environment, the gates before and after SFT, and the previous-token head by arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.warm import warm_cache
from worker.engine import warmstart
from worker.engine.policy import embedded_environment
from worker.engine.profiles import get_profile
from worker.engine.tiny_config import Initialisation, TinyShape, build_model, offset_vectors, tiny_config
from worker.engine.warmstart import WarmStartRefused, ensure_base_model
from worker.engine.warmstart_recipes import CODE_REPAIR, QUICK, STANDARD, recipe_of


def test_each_environment_has_its_recipe() -> None:
    """By id, by dotted path, and the standard one where an environment names none."""
    assert recipe_of("code_repair") is CODE_REPAIR
    assert recipe_of("worker.environments.code_repair.environment:CodeRepair") is CODE_REPAIR
    assert recipe_of("evidence_search") is STANDARD
    assert recipe_of("worker.environments.code_repair.environment:Another") is STANDARD


def test_the_profile_is_tied_to_the_environment() -> None:
    profile = get_profile("embedded-code-repair")
    assert embedded_environment(profile.model) == "code_repair"
    assert (profile.source, profile.formatter, profile.device) == ("embedded", "compact", "cpu")


def turned(vector: torch.Tensor, place: int, frequencies: torch.Tensor) -> torch.Tensor:
    """A query or key at a place, rotated in pairs (i, i + half)."""
    half = len(frequencies)
    cosine, sine = (place * frequencies).cos(), (place * frequencies).sin()
    first, second = vector[:half], vector[half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine])


@pytest.mark.parametrize("offset", [1, 2])
def test_the_score_of_an_offset_head_peaks_that_far_back(offset: int) -> None:
    """Rotated query at i, key at j: the score is sum w^2 cos((i - j - offset) f), largest at j = i - offset."""
    shape, start = TinyShape(), Initialisation()
    query, key = offset_vectors(shape, start, offset)
    half = shape.head_dim // 2
    frequencies = shape.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    scores = [float(turned(query, 20, frequencies) @ turned(key, place, frequencies)) for place in range(21)]
    by_hand = [
        sum(
            w * w * math.cos((20 - place - offset) * float(f))
            for w, f in zip(start.offset_weights, frequencies[:4], strict=True)
        )
        for place in range(21)
    ]
    assert scores == pytest.approx(by_hand, abs=1e-4)
    assert max(range(21), key=scores.__getitem__) == 20 - offset
    assert scores[20 - offset] == pytest.approx(1.0 + 1.0 + 0.64 + 0.36, abs=1e-4)


def test_the_recipe_starts_with_a_head_on_the_previous_token() -> None:
    """The shape of the code-repair recipe: layer 0, first key group, more than 0.9 of the weight on i - 1."""
    settings = tiny_config(600, CODE_REPAIR.shape, 0, 1, 7)
    settings._attn_implementation = "eager"
    model = build_model(settings, CODE_REPAIR.shape, CODE_REPAIR.initialisation, CODE_REPAIR.seed)
    ids = torch.randint(8, 600, (2, 200), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        weights = model.model(input_ids=ids, output_attentions=True).attentions[0]
    for head in range(CODE_REPAIR.shape.heads // CODE_REPAIR.shape.kv_heads):
        assert float(torch.diagonal(weights[:, head], -1, 1, 2).mean()) > 0.9


def refused(recipe: Any, folder: Path) -> tuple[str, list[str]]:
    """Why a build is refused, and the parts that it came to."""
    seen: list[str] = []
    with pytest.raises(WarmStartRefused) as caught:
        ensure_base_model("evidence_search", {}, folder, lambda item: seen.append(item["part"]), recipe)
    assert not [path for path in folder.iterdir() if path.is_dir()]
    return str(caught.value), seen


def test_a_policy_that_cannot_copy_is_refused_before_sft(tmp_path: Path) -> None:
    message, seen = refused(replace(QUICK, name="c", minimum_copy_accuracy=0.999), tmp_path)
    assert message.startswith("warm start 'c', copy_accuracy_before_sft: got 0.") and "at least 1.00" in message
    assert "copy" in seen and "sft" not in seen


def test_a_policy_that_never_succeeds_is_refused(tmp_path: Path) -> None:
    message, seen = refused(replace(QUICK, name="s", minimum_success=0.05), tmp_path)
    assert message == "warm start 's', probe.success: got 0.000, expected at least 0.05"
    assert "probe" in seen


def test_what_the_gates_asked_is_in_the_report(tmp_path: Path) -> None:
    recipe = replace(QUICK, name="g", minimum_copy_accuracy=0.1, minimum_success=0.0, stress=None)
    report = ensure_base_model("evidence_search", {}, tmp_path, None, recipe).report
    assert report["further_gates"] == [
        {"measure": "copy_accuracy_before_sft", "minimum": 0.1},
        {"measure": "probe.success", "minimum": 0.0},
    ]
    assert "stress" not in report


@pytest.mark.slow
def test_the_code_repair_recipe_passes_its_gates() -> None:
    """Copies before SFT; then legal, some success and some failure, two edits and more, groups with a signal."""
    assert CODE_REPAIR.minimum_success is not None and CODE_REPAIR.minimum_valid_actions is not None
    report = ensure_base_model("code_repair", {}, warm_cache()).report
    probe = report["probe"]
    assert report["parameters"] < 600_000
    assert report["copy_accuracy_before_sft"] > 0.9
    assert probe["valid_actions"] >= CODE_REPAIR.minimum_valid_actions
    assert CODE_REPAIR.minimum_success <= probe["success"] < 0.6
    assert probe["zero_variance_groups"] < 0.4
    assert warmstart.REPORT == "warm_start.json"
