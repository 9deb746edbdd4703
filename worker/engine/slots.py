"""KV slots over any transformers causal model with full attention, and the interface of both kinds.

Each slot has its own length; new tokens of several slots enter in one forward pass with their own
position ids and one explicit attention mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from workbench.contracts.errors import EngineFault

from .fastpath import GROW


class SlotBackend(Protocol):
    """What the sampler drives. Slots 0 to rows - 1 take part in a forward pass."""

    capacity: int

    def reserve(self, capacity: int) -> None: ...

    def permute(self, targets: Sequence[int], sources: Sequence[int], length: int) -> None: ...

    def clear(self, slots: Sequence[int]) -> None: ...

    def forward(self, ids_BT: Tensor, starts_B: Tensor, counts_B: Tensor, length: int) -> Tensor: ...


class _SlotLayer(CacheLayerMixin):
    """Keys and values of one layer, [slot, head, position, head_dim]; allocated at the first update."""

    is_sliding = False

    def __init__(self, owner: TransformersSlots):
        super().__init__()
        self.owner = owner
        self.keys: Any = None
        self.values: Any = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        slots, capacity = self.owner.slots, self.owner.capacity
        self.keys = key_states.new_zeros((slots, key_states.shape[1], capacity, key_states.shape[3]))
        self.values = value_states.new_zeros((slots, value_states.shape[1], capacity, value_states.shape[3]))
        self.is_initialized = True

    def grow(self) -> None:
        if self.keys is None:
            return
        extra = self.owner.capacity - self.keys.shape[2]
        pad = (0, 0, 0, extra)
        self.keys = torch.nn.functional.pad(self.keys, pad)
        self.values = torch.nn.functional.pad(self.values, pad)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if self.keys is None:
            self.lazy_initialization(key_states, value_states)
        rows, owner = key_states.shape[0], self.owner
        row_B1 = torch.arange(rows, device=key_states.device)[:, None]
        self.keys[row_B1, :, owner.positions_BT] = key_states.transpose(1, 2)
        self.values[row_B1, :, owner.positions_BT] = value_states.transpose(1, 2)
        return self.keys[:rows, :, : owner.length], self.values[:rows, :, : owner.length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.owner.length, 0

    def get_seq_length(self) -> int:
        return self.owner.length

    def get_max_length(self) -> int:
        return -1


class TransformersSlots:
    """``SlotBackend`` through the model's own forward pass."""

    def __init__(self, model: Any, slots: int):
        kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"}:
            raise EngineFault(f"layer_types: got {sorted(kinds)}, expected full_attention in every layer")
        self.model = model
        self.slots = slots
        self.capacity = 0
        self.length = 0
        self.positions_BT = torch.zeros(0, 0, dtype=torch.long)
        self.layers = [_SlotLayer(self) for _ in range(model.config.get_text_config().num_hidden_layers)]
        self.cache = Cache(layers=list(self.layers))
        accepted = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._device = next(model.parameters()).device
        self._dtype = model.get_input_embeddings().weight.dtype

    def reserve(self, capacity: int) -> None:
        if capacity > self.capacity:
            self.capacity = -(-capacity // GROW) * GROW
            for layer in self.layers:
                layer.grow()

    def permute(self, targets: Sequence[int], sources: Sequence[int], length: int) -> None:
        to, origin = torch.tensor(targets), torch.tensor(sources)
        for layer in self.layers:
            if layer.keys is not None:
                layer.keys[to, :, :length] = layer.keys[origin, :, :length]
                layer.values[to, :, :length] = layer.values[origin, :, :length]

    def clear(self, slots: Sequence[int]) -> None:
        """Nothing to do: the mask of a pass admits only positions written by the slot's own row."""

    def forward(self, ids_BT: Tensor, starts_B: Tensor, counts_B: Tensor, length: int) -> Tensor:
        rows, width = ids_BT.shape
        device = self._device
        self.positions_BT = (starts_B[:, None] + torch.arange(width)).to(device)
        self.length = length
        seen = torch.arange(length, device=device) <= self.positions_BT[:, :, None]
        lowest = torch.finfo(self._dtype).min
        mask = torch.where(seen, 0.0, lowest).to(self._dtype)[:, None]
        output = self.model(
            input_ids=ids_BT.to(device),
            attention_mask=mask,
            position_ids=self.positions_BT,
            use_cache=True,
            **{self._cache_name: self.cache},
        )
        last = output.logits[torch.arange(rows, device=device), counts_B.to(device) - 1]
        return last.float().cpu()
