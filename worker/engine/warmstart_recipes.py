"""Recipes of the embedded base models, as data: tokenizer, shape, initialisation, stages, probes and gates.

Which environment has which is said here too; a recipe without an environment of its own is ``STANDARD``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from worker.environments.registry import BUILT_IN, environment_path

from .tiny_config import Initialisation, TinyShape
from .tokenizer_build import TextPieces
from .warmstart_probe import ProbeStage
from .warmstart_train import CopyStage, SftStage


@dataclass(frozen=True)
class WarmStartRecipe:
    """Everything that decides a base model, beside environment, code and runtime.

    ``logit_scale``: factor on the last norm's gain after SFT. A briefly trained model spreads too
    much probability over wrong tokens; this sharpens its sampling at temperature 1.
    ``minimum_valid_actions``: gate on the share of *sampled* decisions that are legal; None builds
    without a gate, and the report says so. ``minimum_copy_accuracy``: gate before SFT, where a later one would cost the
    whole build. ``minimum_success``: gate on the share of sampled episodes that succeed: legal actions alone are no
    policy to train. ``stress``: a second, reported, ungated probe under time-outs; None: none.
    """

    name: str = "standard"
    seed: int = 1
    vocab_size: int = 1024
    tokenizer_demonstrations: int = 1500
    pieces: TextPieces = field(default_factory=TextPieces)
    shape: TinyShape = field(default_factory=TinyShape)
    initialisation: Initialisation = field(default_factory=Initialisation)
    copying: CopyStage = field(default_factory=CopyStage)
    sft: SftStage = field(default_factory=SftStage)
    logit_scale: float = 1.2
    probe: ProbeStage = field(default_factory=ProbeStage)
    stress: ProbeStage | None = field(default_factory=lambda: ProbeStage(prompts=16, injected=(1, 2, 3)))
    minimum_valid_actions: float | None = 0.90
    minimum_copy_accuracy: float | None = None
    minimum_success: float | None = None


STANDARD = WarmStartRecipe()
QUICK = WarmStartRecipe(
    name="quick",
    tokenizer_demonstrations=400,
    shape=TinyShape(hidden_size=64, head_dim=16, feed_forward=64),
    initialisation=Initialisation(match_dims=12, slow_from=3),
    copying=CopyStage(steps=4, batch=8),
    sft=SftStage(steps=6, batch=4, bucket_batches=2, demonstrations=32, warmup=2),
    probe=ProbeStage(prompts=2, group=2, max_new_tokens=24, max_decisions=2),
    stress=ProbeStage(prompts=2, group=2, max_new_tokens=24, max_decisions=2, injected=(0, 1, 2)),
    minimum_valid_actions=None,
)


CODE_PIECES = TextPieces(
    pattern=r"[A-Za-z]+|\d{1,2}|\s|[^\sA-Za-z0-9]",
    whole=(
        '{"tool":"test"}',
        '{"tool":"read","path":"',
        '{"tool":"edit","path":"',
        '","line":',
        ',"text":"',
        '"}',
        '{"finish":"',
        '","cite":[]}',
        "    ",
        "     ",
        "def ",
        "return ",
        "from ",
        " import ",
        "):  # ",
        ".py",
        ", ",
        " = ",
        " == ",
        " != ",
        " > ",
        " < ",
        " + ",
        " - ",
        " * ",
        " gives ",
        " not ",
        " of ",
        " pass",
        "Repair ",
        "edited ",
        " fails",
        " plus ",
        " minus ",
        " times ",
        " and ",
        " is over ",
        " equals ",
        "whether ",
        " in upper case",
        " in lower case",
        " without the first",
        " without its last letter",
    ),
    is_system_whole=True,
)
CODE_REPAIR = WarmStartRecipe(
    name="code-repair",
    vocab_size=520,
    tokenizer_demonstrations=800,
    pieces=CODE_PIECES,
    shape=TinyShape(layers=3),
    sft=SftStage(
        steps=320, batch=16, demonstrations=4000, muon_lr=0.015, adamw_lr=0.005, observation_weight=0.3, is_direct=True
    ),
    logit_scale=1.0,
    probe=ProbeStage(prompts=12, group=8, max_new_tokens=96, max_decisions=14),
    stress=None,
    minimum_copy_accuracy=0.9,
    minimum_success=0.05,
)
OF_ENVIRONMENT: Mapping[str, WarmStartRecipe] = {"code_repair": CODE_REPAIR}


def recipe_of(environment_id: str) -> WarmStartRecipe:
    """The recipe that a policy of an environment (id, entry point or dotted path) is built by."""
    path = environment_path(environment_id)
    return next((recipe for name, recipe in OF_ENVIRONMENT.items() if BUILT_IN[name] == path), STANDARD)
