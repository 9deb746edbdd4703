"""One loader for every policy: base model, adapter, tokenizer, formatter and their identities.

A base model with its (empty) adapter stays resident in the process; loading a checkpoint copies its
tensors in. The model is always in evaluation mode: there is no dropout anywhere, so that the
log-probabilities of a forward pass with gradients equal those of one without.
"""

from __future__ import annotations

import importlib
import json
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from workbench.contracts.canonical import derive_uid, digest, sha256_hex
from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.jobs import PolicyRef
from workbench.contracts.seeds import derive_seed
from worker.environments import registry

from . import fastpath
from .checkpoint import adapter_bytes, checked, load_adapter
from .identities import model_folder_sha256, tokenizer_folder_sha256
from .render import Formatter

EMBEDDED_PREFIX = "embedded-"
RESIDENT_MODELS = 2
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_LINEAR_HEADS = frozenset({"qwen2", "qwen3", "llama", "mistral", "qwen3_vl", "qwen3_vl_text", "qwen2_moe", "qwen3_moe"})
_residents: OrderedDict[str, _Resident] = OrderedDict()


@dataclass(frozen=True)
class BaseFiles:
    """Where a base model lies on this machine, with its identities. ``report``: warm-start facts, or empty."""

    path: Path
    base_model_sha256: str
    tokenizer_sha256: str
    report: dict[str, Any]


@dataclass
class _Resident:
    """A loaded model. ``adapter_sha256`` None: the trainable tensors are in no known state."""

    model: Any
    tokenizer: Any
    trainable: dict[str, nn.Parameter]
    parameters: int
    adapter_sha256: str | None = None
    merged: tuple[str, fastpath.Qwen3Weights | None] | None = None
    formatters: dict[tuple[str, str], Formatter] = field(default_factory=dict)


@dataclass
class Policy:
    """A policy ready to sample and to train. Producer: ``load_policy``.

    ``trainable``: parameters by canonical name. ``adapter_sha256``: identity of their present values.
    ``report``: facts of the base model's warm start, or empty.
    """

    ref: PolicyRef
    base_model_sha256: str
    tokenizer_sha256: str
    adapter_sha256: str
    tokenizer: Any
    formatter: Formatter
    resident: _Resident = field(repr=False)
    report: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def trainable(self) -> dict[str, nn.Parameter]:
        return self.resident.trainable

    def causal_model(self) -> Any:
        """The transformers model, LoRA layers inside."""
        model = self.resident.model
        return model.get_base_model() if hasattr(model, "get_base_model") else model

    def fast_weights(self) -> fastpath.Qwen3Weights | None:
        """Merged weights of the present adapter, or None where only the general path applies."""
        if self.resident.merged is None or self.resident.merged[0] != self.adapter_sha256:
            model = self.causal_model()
            weights = fastpath.merge_weights(model) if fastpath.supports(model) is None else None
            self.resident.merged = (self.adapter_sha256, weights)
        return self.resident.merged[1]

    def demonstrated_states(self) -> frozenset[str]:
        """State labels that the warm start's demonstrations visit; empty where nothing is known of them."""
        return frozenset(self.report.get("state_coverage", {}))

    def context(self) -> int:
        """Most ids that the model attends to."""
        return int(getattr(self.causal_model().config.get_text_config(), "max_position_embeddings", 1 << 20))

    def disturb(self) -> None:
        """Say that the trainable tensors are about to change: the next load copies its adapter in again."""
        self.resident.adapter_sha256, self.resident.merged = None, None

    def adapter_blob(self) -> bytes:
        """Deterministic bytes of the present trainable tensors."""
        return adapter_bytes(self.trainable)

    def has_linear_head(self) -> bool:
        """Whether logits are the output embedding of the decoder's last hidden state, with nothing after it."""
        return getattr(self.causal_model().config, "model_type", "") in _LINEAR_HEADS


def _registry_path(cache_dir: Path, base_model_sha256: str) -> Path:
    return cache_dir / "base_models" / f"{base_model_sha256}.json"


def embedded_environment(model: str) -> str | None:
    """Environment that an embedded profile is warm-started on: ``embedded-`` and its id or dotted path; else None."""
    if not model.startswith(EMBEDDED_PREFIX):
        return None
    name = model.removeprefix(EMBEDDED_PREFIX)
    return name.replace("-", "_") if name.replace("-", "_") in registry.BUILT_IN else name


def find_base(
    model: str,
    cache_dir: Path,
    *,
    environment_config: dict[str, Any] | None = None,
    expected: str | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> BaseFiles:
    """Files of a model profile, a local folder or a hub id. An embedded profile is built when absent."""
    if expected is not None and _registry_path(cache_dir, expected).exists():
        kept = json.loads(_registry_path(cache_dir, expected).read_text())
        if Path(kept["path"]).is_dir():
            return BaseFiles(Path(kept["path"]), expected, kept["tokenizer_sha256"], kept["report"])
    environment_id = embedded_environment(model)
    if environment_id is not None:
        from worker.engine import warmstart

        try:
            registry.environment_path(environment_id)
        except EnvironmentFault as error:
            expected = f"{EMBEDDED_PREFIX} and an environment's id or dotted path"
            raise EngineFault(f"policy.model: got {model!r}, expected {expected} ({error})") from error
        built = warmstart.ensure_base_model(environment_id, environment_config or {}, cache_dir, progress)
        files = BaseFiles(Path(built.path), built.base_model_sha256, built.tokenizer_sha256, dict(built.report))
    else:
        from worker.engine import profiles

        folder = profiles.model_folder(profiles.get_profile(model))
        files = BaseFiles(folder, model_folder_sha256(folder), tokenizer_folder_sha256(folder), {})
    _remember(files, cache_dir)
    return files


def _remember(files: BaseFiles, cache_dir: Path) -> None:
    """Note where a base model lies: an update job knows its identity only."""
    place = _registry_path(cache_dir, files.base_model_sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    note = {"path": str(files.path.resolve()), "tokenizer_sha256": files.tokenizer_sha256, "report": files.report}
    temporary = place.with_suffix(f".{derive_uid(None, str(note)).hex}")
    temporary.write_text(json.dumps(note))
    temporary.replace(place)


def make_formatter(name: str, tokenizer: Any, *, history: str = "refuse") -> Formatter:
    """``compact``, ``chat``, or a dotted path ``module:Class`` to a formatter of the same interface.

    ``history``: what ``chat`` does with a template that rewrites history, refuse or branch.
    """
    if name == "compact":
        from worker.engine.compact import CompactFormatter

        return CompactFormatter(tokenizer)
    if name == "chat":
        from worker.engine.chat import ChatFormatter

        return ChatFormatter(tokenizer, history=history)
    module, _, attribute = name.partition(":")
    if not attribute:
        raise EngineFault(f"formatter: got {name!r}, expected compact, chat or module:Class")
    formatter: Formatter = getattr(importlib.import_module(module), attribute)(tokenizer)
    return formatter


def _load_model(path: Path, dtype: str) -> Any:
    if dtype == "nf4":
        from worker.engine import quantized

        return quantized.load_nf4(path)
    if dtype not in _DTYPES:
        raise EngineFault(f"dtype: got {dtype!r}, expected float32, bfloat16 or nf4")
    from transformers.utils import logging

    from worker.engine.quantized import auto_class, load_config

    logging.disable_progress_bar()  # a worker's log is no terminal
    return auto_class(load_config(path)).from_pretrained(path, dtype=_DTYPES[dtype], attn_implementation="sdpa")


def _canonical_name(name: str) -> str:
    return name.removeprefix("base_model.model.").replace(".default.", ".")


def adapt(model: Any, adaptation: dict[str, Any]) -> tuple[Any, dict[str, nn.Parameter]]:
    """Model with its trainable parameters by canonical name: LoRA matrices, or all of them.

    LoRA A is uniform within 1 / sqrt(fan in), from a generator seeded by (seed, parameter name); B is
    0, so that the fresh adapter is the base model itself.
    """
    kind = adaptation.get("kind")
    if kind == "lora":
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=adaptation["rank"],
            lora_alpha=adaptation["alpha"],
            target_modules=adaptation["targets"]
            if isinstance(adaptation["targets"], str)
            else list(adaptation["targets"]),
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the library calls a property that transformers renamed
            model = get_peft_model(model, config)
    elif kind == "full":
        model.requires_grad_(True)
    else:
        raise EngineFault(f"adaptation.kind: got {kind!r}, expected lora or full")
    found = {_canonical_name(name): value for name, value in model.named_parameters() if value.requires_grad}
    trainable = dict(sorted(found.items()))
    if kind == "lora":
        seed_lora(trainable, str(adaptation.get("seed", "0")))
    model.eval()
    return model, trainable


def seed_lora(trainable: dict[str, nn.Parameter], seed: str) -> None:
    """Fresh LoRA values, a function of (seed, name, shape) alone."""
    with torch.no_grad():
        for name, parameter in trainable.items():
            if ".lora_B." in name:
                parameter.zero_()
                continue
            generator = torch.Generator().manual_seed(int(derive_seed("lora_init", seed, name)) % 2**63)
            bound = 1.0 / math.sqrt(parameter.shape[1])
            values: Tensor = (torch.rand(parameter.shape, generator=generator) * 2 - 1) * bound
            parameter.copy_(values)


def _resident(files: BaseFiles, ref: PolicyRef) -> _Resident:
    key = digest({"base": files.base_model_sha256, "dtype": ref.dtype, "adaptation": ref.adaptation})
    if key in _residents:
        _residents.move_to_end(key)
        return _residents[key]
    from transformers import AutoTokenizer

    found = model_folder_sha256(files.path)
    if found != files.base_model_sha256:
        raise EngineFault(f"base_model_sha256: got files that hash to {found}, expected {files.base_model_sha256}")
    base = _load_model(files.path, ref.dtype)
    parameters = base.num_parameters()
    model, trainable = adapt(base, ref.adaptation)
    tokenizer = AutoTokenizer.from_pretrained(files.path)
    initial = sha256_hex(adapter_bytes(trainable))
    resident = _Resident(model, tokenizer, trainable, parameters, initial)
    _residents[key] = resident
    while len(_residents) > RESIDENT_MODELS:
        _residents.popitem(last=False)
    return resident


def initial_adapter(ref: PolicyRef, cache_dir: Path, *, environment_config: dict[str, Any] | None = None) -> bytes:
    """Bytes of the freshly initialised adapter of a base model; in full fine-tuning, of the base itself."""
    files = find_base(
        ref.model, cache_dir, environment_config=environment_config, expected=ref.base_model_sha256 or None
    )
    resident = _resident(files, ref)
    _reset(resident, files, ref)
    return adapter_bytes(resident.trainable)


def _reset(resident: _Resident, files: BaseFiles, ref: PolicyRef) -> None:
    resident.adapter_sha256, resident.merged = None, None
    if ref.adaptation["kind"] == "lora":
        seed_lora(resident.trainable, str(ref.adaptation.get("seed", "0")))
    else:
        base = dict(_load_model(files.path, ref.dtype).named_parameters())
        with torch.no_grad():
            for name, parameter in resident.trainable.items():
                parameter.copy_(base[name])
    resident.adapter_sha256 = sha256_hex(adapter_bytes(resident.trainable))


def _history(model: str) -> str:
    """What the model's own profile says about templates that rewrite history; without one they are refused."""
    from worker.engine import profiles

    own = profiles.own_profile(model)
    return "refuse" if own is None else own[0].history


def _formatter(resident: _Resident, name: str, history: str) -> Formatter:
    """The resident's formatter; one from outside is made again, since its code may have changed."""
    if ":" in name:
        return make_formatter(name, resident.tokenizer, history=history)
    found = resident.formatters.get((name, history))
    if found is None:
        found = resident.formatters[name, history] = make_formatter(name, resident.tokenizer, history=history)
    return found


def load_policy(
    ref: PolicyRef, store: Any, *, cache_dir: Path, environment_config: dict[str, Any] | None = None
) -> Policy:
    """The policy that ``ref`` names, every identity checked.

    ``store``: ``get(sha256) -> bytes``. Raises ``EngineFault`` where base model, tokenizer or adapter
    on this machine differ from the reference.
    """
    files = find_base(ref.model, cache_dir, environment_config=environment_config, expected=ref.base_model_sha256)
    for name in ("base_model_sha256", "tokenizer_sha256"):
        if getattr(files, name) != getattr(ref, name):
            raise EngineFault(f"{name}: got {getattr(files, name)}, expected {getattr(ref, name)}")
    resident = _resident(files, ref)
    if ref.adapter_sha256 is None:
        _reset(resident, files, ref)
    elif resident.adapter_sha256 != ref.adapter_sha256:
        data = checked(store, ref.adapter_sha256, "adapter")
        resident.adapter_sha256, resident.merged = None, None
        load_adapter(resident.trainable, data)
        resident.adapter_sha256 = ref.adapter_sha256
    adapter = str(resident.adapter_sha256)
    formatter = _formatter(resident, ref.formatter, _history(ref.model))
    return Policy(
        ref,
        files.base_model_sha256,
        files.tokenizer_sha256,
        adapter,
        resident.tokenizer,
        formatter,
        resident,
        files.report,
    )


def clear_residents() -> None:
    """Let every resident model go."""
    _residents.clear()
