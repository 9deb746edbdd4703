"""Deterministic bytes of adapters and optimizer states.

An adapter is the trainable parameters alone (LoRA matrices, or every weight in full fine-tuning) as
safetensors with sorted names and no metadata; its SHA-256 is the checkpoint's identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EngineFault

_STATE_NAMES = ("exp_avg", "exp_avg_sq", "step")


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Safetensors bytes; equal tensors under equal names give equal bytes."""
    return save({name: tensors[name].detach().cpu().contiguous().clone() for name in sorted(tensors)})


def read_tensors(data: bytes, what: str) -> dict[str, Tensor]:
    """Tensors of safetensors bytes; raises ``EngineFault`` naming what could not be read."""
    try:
        return load(data)
    except Exception as error:  # the library raises its own untyped errors
        raise EngineFault(f"{what}: {error}, expected safetensors bytes") from error


def adapter_bytes(trainable: Mapping[str, Tensor]) -> bytes:
    """Bytes of the trainable parameters; their SHA-256 is the adapter identity."""
    return tensor_bytes(trainable)


def load_adapter(trainable: Mapping[str, Tensor], data: bytes) -> None:
    """Copy adapter bytes into the parameters, in place. Names and shapes must match exactly."""
    tensors = read_tensors(data, "adapter")
    if sorted(tensors) != sorted(trainable):
        difference = sorted(set(tensors) ^ set(trainable))[:4]
        raise EngineFault(f"adapter: got other parameter names ({difference}), expected those of the policy")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != trainable[name].shape:
                raise EngineFault(f"adapter.{name}: got {list(tensor.shape)}, expected {list(trainable[name].shape)}")
            trainable[name].copy_(tensor)


def optimizer_bytes(optimizer: torch.optim.Optimizer, trainable: Mapping[str, Tensor]) -> bytes:
    """State of AdamW as bytes, by parameter name."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in trainable.items():
        for key, value in optimizer.state[parameter].items():
            tensors[f"{key}.{name}"] = torch.as_tensor(value)
    return tensor_bytes(tensors)


def load_optimizer(optimizer: torch.optim.Optimizer, trainable: Mapping[str, Tensor], data: bytes) -> None:
    """Put the state back; raises ``EngineFault`` unless it names exactly the policy's parameters."""
    tensors = read_tensors(data, "optimizer")
    expected = sorted(f"{key}.{name}" for key in _STATE_NAMES for name in trainable)
    if sorted(tensors) != expected:
        raise EngineFault(
            f"optimizer: got {len(tensors)} tensors, expected {len(expected)} for this policy's parameters"
        )
    for name, parameter in trainable.items():
        state: dict[str, Any] = {}
        for key in _STATE_NAMES:
            value = tensors[f"{key}.{name}"]
            if key != "step" and value.shape != parameter.shape:
                raise EngineFault(f"optimizer.{key}.{name}: got {list(value.shape)}, expected {list(parameter.shape)}")
            state[key] = value.clone() if key == "step" else value.to(parameter.device).clone()
        optimizer.state[parameter] = state


def checked(store: Any, sha256: str, what: str) -> bytes:
    """Bytes from the store whose hash is ``sha256``; raises ``EngineFault`` where they are missing or altered."""
    try:
        data: bytes = store.get(sha256)
    except Exception as error:  # the store has its own error classes
        raise EngineFault(f"{what}: {error}, expected blob {sha256} in the store") from error
    if sha256_hex(data) != sha256:
        raise EngineFault(f"{what}: got bytes with hash {sha256_hex(data)}, expected {sha256}")
    return data
