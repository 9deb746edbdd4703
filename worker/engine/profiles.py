"""Model profiles: which policy, in which numbers, adapted how, spoken to through which formatter.

A profile is data. The named ones stand in ``PROFILES``; an installed distribution may register
others, a dotted path names one in a module, and any local folder or hub id becomes a generic one. A
profile loads nothing by itself: ``worker.engine.policy`` does, and what a profile says about sizes is
computed on the meta device, without weights.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.contracts.errors import EngineFault
from worker.engine.quantized import LORA_TARGETS, add_lora, auto_class, explain_load_failure, load_config
from worker.environments import loading
from worker.environments.code import CodeIdentity, code_identity

FLOAT32, BFLOAT16, NF4 = "float32", "bfloat16", "nf4"
EMBEDDED, LOCAL, HUB = "embedded", "local", "hub"
COMPACT, CHAT = "compact", "chat"
LORA, FULL = "lora", "full"
_MODEL_FILES = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class UnknownProfile(EngineFault):
    """A name that is no profile, no folder and no hub id; the message lists the known profiles."""


class DeviceMissing(EngineFault):
    """A profile needs a device that this machine does not have; the message says what helps."""


@dataclass(frozen=True)
class ModelProfile:
    """One policy as data. Filled here; read by the policy loader, ``describe``, ``doctor`` and pages.

    ``model``           local folder or hub id; for ``source`` embedded the recipe's name.
    ``source``          embedded | local | hub.
    ``dtype``           float32 | bfloat16 | nf4: how base weights are held.
    ``compute_dtype``   float32 | bfloat16: dtype of products, embeddings and norms.
    ``adaptation``      {"kind": "lora", "rank", "alpha", "targets", "seed"} or {"kind": "full"}.
    ``formatter``       compact | chat.
    ``history``         refuse | branch: what ``chat`` does with a template that rewrites history.
    ``device``          cpu | cuda | any.
    ``micro_batch``     trajectories in one forward of an update.
    ``configuration``   ``model_type`` and fields of a transformers configuration, written out so
                        that sizes can be checked without files; None: read from ``model``.
    ``expected``        sizes that ``check_counts`` holds the profile to; empty: nothing promised.
    ``not_tested``      what nobody has run yet, in sentences for pages and documents.
    """

    name: str
    model: str
    source: str
    dtype: str
    compute_dtype: str
    adaptation: dict[str, Any]
    formatter: str
    history: str = "refuse"
    device: str = "any"
    micro_batch: int = 1
    gradient_checkpointing: bool = False
    configuration: dict[str, Any] | None = None
    expected: dict[str, int] = field(default_factory=dict)
    not_tested: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choices = {
            "source": (EMBEDDED, LOCAL, HUB),
            "dtype": (FLOAT32, BFLOAT16, NF4),
            "compute_dtype": (FLOAT32, BFLOAT16),
            "formatter": (COMPACT, CHAT),
            "history": ("refuse", "branch"),
            "device": ("cpu", "cuda", "any"),
        }
        for name, legal in choices.items():
            if getattr(self, name) not in legal:
                raise EngineFault(f"{name}: got {getattr(self, name)!r}, expected one of {', '.join(legal)}")
        kind = self.adaptation.get("kind")
        if kind not in (LORA, FULL):
            raise EngineFault(f"adaptation.kind: got {kind!r}, expected {LORA} or {FULL}")
        if kind == LORA and (missing := {"rank", "alpha", "targets", "seed"} - set(self.adaptation)):
            raise EngineFault(f"adaptation.{min(missing)}: got nothing, expected a value")
        if self.dtype == NF4 and kind == FULL:
            raise EngineFault("adaptation.kind: got full, expected lora (NF4 weights are frozen)")
        if self.formatter == COMPACT and self.source != EMBEDDED:
            raise EngineFault(f"formatter: got compact, expected chat ({self.model!r} has its own tokenizer)")
        if self.micro_batch < 1:
            raise EngineFault(f"micro_batch: got {self.micro_batch}, expected at least 1")

    def meta_model(self) -> Any:
        """The base model on the meta device: every shape, no weight. Raises ``ModelUnavailable``."""
        import torch
        from transformers import AutoConfig

        if self.source == EMBEDDED:
            raise EngineFault(f"profile {self.name!r}: got an embedded recipe, expected a transformers configuration")
        config = AutoConfig.for_model(**self.configuration) if self.configuration else load_config(self.model)
        with torch.device("meta"):
            return auto_class(config).from_config(config)

    def counts(self) -> dict[str, int]:
        """``parameters`` of the base model, ``lora_modules`` and ``trainable_parameters``, without weights."""
        model = self.meta_model()
        parameters = sum(parameter.numel() for parameter in model.parameters())
        if self.adaptation["kind"] == FULL:
            return {"parameters": parameters, "lora_modules": 0, "trainable_parameters": parameters}
        adapted = add_lora(model, self.adaptation)
        return {
            "parameters": parameters,
            "lora_modules": sum(1 for name, _ in adapted.named_modules() if name.endswith(".lora_A.default")),
            "trainable_parameters": sum(item.numel() for item in adapted.parameters() if item.requires_grad),
        }

    def check_counts(self) -> dict[str, int]:
        """``counts()``, held to ``expected``. Raises ``EngineFault`` naming the size that differs."""
        found = self.counts()
        for name, value in self.expected.items():
            if found[name] != value:
                raise EngineFault(f"profile {self.name!r}.{name}: got {found[name]}, expected {value}")
        return found


def lora(
    rank: int = 8, alpha: int = 16, targets: tuple[str, ...] | str = LORA_TARGETS, seed: str = "0"
) -> dict[str, Any]:
    """A LoRA adaptation as data; by default on the seven attention and MLP projections of a layer."""
    names = targets if isinstance(targets, str) else list(targets)
    return {"kind": LORA, "rank": rank, "alpha": alpha, "targets": names, "seed": seed}


# Sizes of Qwen3-VL-2B, written down so that they can be checked without its files.
QWEN3_VL_2B: dict[str, Any] = {
    "model_type": "qwen3_vl",
    "tie_word_embeddings": True,
    "text_config": {
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5000000,
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
        },
    },
    "vision_config": {
        "depth": 24,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_heads": 16,
        "in_channels": 3,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 2048,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [5, 11, 17],
    },
}

PROFILES: Mapping[str, ModelProfile] = {
    "embedded-evidence-search": ModelProfile(
        name="embedded-evidence-search",
        model="embedded-evidence-search",
        source=EMBEDDED,
        dtype=FLOAT32,
        compute_dtype=FLOAT32,
        adaptation=lora(),
        formatter=COMPACT,
        device="cpu",
        micro_batch=16,
    ),
    "embedded-code-repair": ModelProfile(
        name="embedded-code-repair",
        model="embedded-code-repair",
        source=EMBEDDED,
        dtype=FLOAT32,
        compute_dtype=FLOAT32,
        adaptation={"kind": FULL},
        formatter=COMPACT,
        device="cpu",
        micro_batch=16,
    ),
    "qwen3-vl-2b-nf4": ModelProfile(
        name="qwen3-vl-2b-nf4",
        model="Qwen/Qwen3-VL-2B-Instruct",
        source=HUB,
        dtype=NF4,
        compute_dtype=BFLOAT16,
        adaptation=lora(),
        formatter=CHAT,
        device="cuda",
        gradient_checkpointing=True,
        configuration=QWEN3_VL_2B,
        expected={"lora_modules": 196, "trainable_parameters": 8_716_288},
        not_tested=(
            "No rollout or update of this model has been run: its sizes are checked on the meta device.",
            "The fit in 8 GB is computed, not measured.",
            "Text input only: images are not passed to the model.",
        ),
    ),
}


def get_profile(name: str, **changes: Any) -> ModelProfile:
    """The profile of a known or registered name, a dotted path, a local folder or a hub id, with ``changes`` applied.

    ``changes`` are fields of ``ModelProfile`` (``dtype``, ``adaptation``, ``formatter``, …); for NF4
    ``compute_dtype`` becomes bfloat16 unless given. Generic profiles start as float32 LoRA through
    the chat formatter. Raises ``UnknownProfile``, or ``EngineFault`` for an illegal combination.
    """
    if name in PROFILES:
        profile = PROFILES[name]
    elif (own := own_profile(name)) is not None:
        profile = own[0]
    elif Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            raise UnknownProfile(f"model: got the folder {name!r} without config.json, expected a transformers model")
        profile = _generic(name, LOCAL)
    elif _HUB_ID.fullmatch(name):
        profile = _generic(name, HUB)
    else:
        known = ", ".join(sorted({*PROFILES, *loading.entry_point_names(loading.MODELS)}))
        raise UnknownProfile(
            f"model: got {name!r}, expected a profile ({known}), package.module:NAME, "
            "a local folder or a hub id owner/name"
        )
    if "dtype" in changes and "compute_dtype" not in changes:
        changes["compute_dtype"] = FLOAT32 if changes["dtype"] == FLOAT32 else BFLOAT16
    try:
        return replace(profile, **changes)
    except TypeError as error:
        raise EngineFault(
            f"profile {name!r}: got {sorted(changes)}, expected fields of ModelProfile ({error})"
        ) from error


def own_profile(name: str) -> tuple[ModelProfile, CodeIdentity] | None:
    """A profile from outside, by entry point (``workbench.models``) or dotted path, and its code; else None.

    Raises ``EnvironmentFault`` where the path loads nothing and ``UnknownProfile`` where it is no ``ModelProfile``.
    """
    path = loading.entry_point_path(loading.MODELS, name)
    if path is None and not loading.is_dotted_path(name):
        return None
    found = loading.load_object(path or name, "model")
    if not isinstance(found, ModelProfile):
        raise UnknownProfile(f"model: got {type(found).__name__} at {path or name!r}, expected a ModelProfile")
    return found, code_identity(sys.modules[(path or name).partition(":")[0]])


def _generic(model: str, source: str) -> ModelProfile:
    return ModelProfile(
        name=model,
        model=model,
        source=source,
        dtype=FLOAT32,
        compute_dtype=FLOAT32,
        adaptation=lora(),
        formatter=CHAT,
        not_tested=("This model has not been run by the project.",),
    )


def model_folder(profile: ModelProfile) -> Path:
    """Folder with the model's and the tokenizer's files, fetched from the hub where needed.

    Raises ``ModelUnavailable`` with what helps where the hub is switched off, unreachable or has no such model.
    """
    from huggingface_hub import snapshot_download

    if profile.source == EMBEDDED:
        raise EngineFault(f"profile {profile.name!r}: got an embedded recipe, expected a local folder or a hub id")
    if profile.source == LOCAL:
        return Path(profile.model)
    try:
        return Path(snapshot_download(profile.model, allow_patterns=list(_MODEL_FILES)))
    except (OSError, ValueError) as error:
        raise explain_load_failure(profile.model, error) from error


def require_device(profile: ModelProfile, *, cuda_available: bool | None = None) -> str:
    """The torch device that ``profile`` runs on here. Raises ``DeviceMissing``.

    ``cuda_available``: None asks torch.
    """
    import torch

    has_cuda = torch.cuda.is_available() if cuda_available is None else cuda_available
    if profile.device == "cuda" and not has_cuda:
        alternatives = ", ".join(sorted(name for name, other in PROFILES.items() if other.device != "cuda"))
        raise DeviceMissing(
            f"device: got no CUDA device (torch {torch.__version__}), expected one for profile {profile.name!r}; run "
            f"it on a machine with an NVIDIA GPU and a CUDA build of torch, or choose {alternatives}"
        )
    return "cuda" if profile.device == "cuda" or (profile.device == "any" and has_cuda) else "cpu"
