"""Batched multi-turn sampler: rows keep their KV slots across turns, finished rows leave the batch.

A row's turn ends with a stop id or its token budget; ``generate`` hands back finished turns while the
others stay half way and go on with the next call. The noise of a row depends on (seed, decision,
token index) alone, so results differ from those of another batch composition by rounding only, and
the same calls give identical values again.

Recorded log-probabilities are those of the untempered, untruncated distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workbench.contracts.errors import EngineFault

from . import fastpath
from .noise import uniforms
from .records import GeneratedTurn, RowStart, SamplingConfig
from .slots import SlotBackend, TransformersSlots

INGEST_WIDTH = 256  # tokens of one row that enter in one pass


@dataclass
class _Row:
    seed: str
    decision: int
    token: int  # noise counter at which the current decision starts
    ids: list[int]  # whole context
    slot: int
    stored: int = 0  # leading ids whose keys and values are in the slot
    prompt_length: int | None = None  # None: between turns
    noise: list[float] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)


def choose(logits_BV: Tensor, uniforms_B: Tensor, sampling: SamplingConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Sampled ids, their raw log-probabilities and the raw entropies (nats), each [rows].

    Inverse of the cumulative distribution at ``uniforms_B`` (float64 in [0, 1)); temperature 0 takes
    the most probable id. Truncation keeps the ``top_k`` greatest, then the smallest set that reaches
    ``top_p``.
    """
    shifted = (logits_BV - logits_BV.amax(-1, keepdim=True)).clamp_min_(-1e4)
    weights = shifted.exp()
    total_B = weights.sum(-1)
    log_total_B = total_B.log()
    entropy_B = log_total_B - (weights * shifted).sum(-1) / total_B
    if sampling.temperature == 0:
        ids_B = shifted.argmax(-1)
    else:
        if sampling.temperature != 1.0:
            weights = (shifted / sampling.temperature).exp()
        if sampling.truncates:
            weights = _truncate(weights, sampling)
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        ids_B = torch.searchsorted(cumulative, (uniforms_B * cumulative[:, -1])[:, None], right=True)[:, 0]
    logprob_B = shifted.gather(-1, ids_B[:, None])[:, 0] - log_total_B
    return ids_B, logprob_B, entropy_B


def _truncate(weights: Tensor, sampling: SamplingConfig) -> Tensor:
    order = weights.argsort(dim=-1, descending=True, stable=True)
    ranked = weights.gather(-1, order)
    keep = torch.ones_like(ranked, dtype=torch.bool)
    if sampling.top_k:
        keep[:, sampling.top_k :] = False
    if sampling.top_p < 1.0:
        before = ranked.cumsum(-1, dtype=torch.float64) - ranked
        keep &= before < sampling.top_p * ranked.sum(-1, keepdim=True, dtype=torch.float64)
    return torch.zeros_like(weights).scatter_(-1, order, ranked * keep)


class Sampler:
    """Sampler of one policy with a fixed number of slots. Not shared between threads."""

    def __init__(
        self,
        policy: Any,
        sampling: SamplingConfig,
        *,
        rows: int,
        stop_ids: Sequence[int],
        context: int,
        fast: bool = True,
    ):
        """``policy``: a ``Policy``. ``context``: most ids of a row, prompt and generated together."""
        self.sampling = sampling
        self.context = context
        self._stop = frozenset(stop_ids)
        self._order: list[int | None] = [None] * rows  # slot -> row handle
        self._rows: dict[int, _Row] = {}
        self._next = 0
        weights = policy.fast_weights() if fast else None
        self.backend: SlotBackend = (
            fastpath.Qwen3Slots(weights, rows)
            if weights is not None
            else TransformersSlots(policy.causal_model(), rows)
        )
        self.policy_tokens = 0
        self.ingested_tokens = 0

    @torch.inference_mode()
    def open(self, starts: Sequence[RowStart]) -> list[int]:
        """Open rows; their handles, in order. Raises ``EngineFault`` when the slots do not suffice."""
        free = [slot for slot, handle in enumerate(self._order) if handle is None]
        if len(starts) > len(free):
            raise EngineFault(f"rows: got {len(starts)} to open, expected at most {len(free)}")
        handles = []
        for start, slot in zip(starts, free[: len(starts)], strict=True):
            if not start.prompt_ids:
                raise EngineFault("prompt_ids: got none, expected at least one id")
            handle, self._next = self._next, self._next + 1
            self._rows[handle] = _Row(start.seed, start.decision, start.token, list(start.prompt_ids), slot)
            self._order[slot] = handle
            handles.append(handle)
        if starts:
            self.backend.clear([self._rows[handle].slot for handle in handles])
        return handles

    def continue_from(self, ids: Sequence[int], seed: str, *, decision: int = 0, token: int = 0) -> int:
        """Open one row on an arbitrary context, its noise counter at (decision, token).

        ``token`` ids of the decision's budget are spent: what is left is ``max_new_tokens - token``.
        """
        return self.open([RowStart(tuple(ids), seed, decision, token)])[0]

    def append(self, row: int, ids: Sequence[int]) -> None:
        """Add ids (an Observation) to a row between turns; they enter with the next ``generate``."""
        found = self._rows[row]
        if found.prompt_length is not None:
            raise EngineFault(f"row {row}: got ids within a turn, expected the turn to be finished")
        found.ids.extend(ids)

    def close(self, rows: Sequence[int]) -> None:
        """Give the slots of ``rows`` back."""
        for row in rows:
            self._order[self._rows.pop(row).slot] = None

    def ids(self, row: int) -> tuple[int, ...]:
        """Whole context of a row."""
        return tuple(self._rows[row].ids)

    def room(self, row: int) -> int:
        """Ids that still fit in the context of a row."""
        return self.context - len(self._rows[row].ids)

    @torch.inference_mode()
    def generate(self, rows: Sequence[int], *, until: int | None = None) -> list[GeneratedTurn]:
        """Go on with ``rows`` until at least ``until`` turns are finished (all of them by default).

        Turns come back in the order in which they finished; unfinished rows keep their state.
        """
        until = len(rows) if until is None else max(1, min(until, len(rows)))
        finished: list[GeneratedTurn] = []
        active = list(rows)
        for row in active:
            self._begin(row)
        self._ingest([row for row in active if len(self._rows[row].ids) - self._rows[row].stored > 1], finished)
        done = {turn.row for turn in finished}
        active = [row for row in active if row not in done]
        while active and len(finished) < until:
            active = self._decode(active, until - len(finished), finished)
        return finished

    def _begin(self, handle: int) -> None:
        row = self._rows[handle]
        if row.prompt_length is not None:
            return
        budget = min(self.sampling.max_new_tokens - row.token, self.context - len(row.ids))
        if budget < 1:
            raise EngineFault(
                f"row {handle}: got {len(row.ids)} ids and token {row.token}, expected fewer than the context of "
                f"{self.context} and than {self.sampling.max_new_tokens} tokens of a turn"
            )
        row.prompt_length = len(row.ids)
        row.noise = uniforms(row.seed, row.decision, row.token, budget).tolist()
        row.logprobs, row.entropies = [], []

    def _place(self, rows: Sequence[int]) -> None:
        """Bring ``rows`` into slots 0 to len(rows) - 1, moving as few slots as possible."""
        wanted = set(rows)
        holes = [slot for slot in range(len(rows)) if self._order[slot] not in wanted]
        movers = [self._rows[row].slot for row in rows if self._rows[row].slot >= len(rows)]
        if not holes:
            return
        targets, sources = holes + movers, movers + holes
        longest = max(
            (self._rows[handle].stored for slot in sources if (handle := self._order[slot]) is not None), default=0
        )
        self.backend.permute(targets, sources, longest)
        held = [self._order[slot] for slot in sources]
        for slot, handle in zip(targets, held, strict=True):
            self._order[slot] = handle
            if handle is not None:
                self._rows[handle].slot = slot

    def _ordered(self, count: int) -> list[_Row]:
        return [self._rows[handle] for handle in self._order[:count] if handle is not None]

    def _ingest(self, rows: list[int], finished: list[GeneratedTurn]) -> None:
        """Enter all new ids of ``rows`` and draw their first tokens. Equal new rows are computed once."""
        if not rows:
            return
        leaders: dict[tuple[int, ...], int] = {}
        followers: dict[int, list[int]] = {}
        for handle in rows:
            key = tuple(self._rows[handle].ids) if self._rows[handle].stored == 0 else (-1, handle)
            leader = leaders.setdefault(key, handle)
            if leader != handle:
                followers.setdefault(leader, []).append(handle)
        waiting = list(leaders.values())
        last: dict[int, Tensor] = {}
        while waiting:
            self._place(waiting)
            batch = self._ordered(len(waiting))
            handles = [handle for handle in self._order[: len(waiting)] if handle is not None]
            pending = [row.ids[row.stored : row.stored + INGEST_WIDTH] for row in batch]
            logits = self._forward(batch, pending)
            for handle, row, part, logits_V in zip(handles, batch, pending, logits, strict=True):
                row.stored += len(part)
                if row.stored == len(row.ids):
                    last[handle] = logits_V
            waiting = [handle for handle in handles if handle not in last]
        for leader, copies in followers.items():
            source = self._rows[leader]
            slots = [self._rows[handle].slot for handle in copies]
            self.backend.permute(slots, [source.slot] * len(slots), source.stored)
            for handle in copies:
                self._rows[handle].stored = source.stored
                last[handle] = last[leader]
        self._draw(rows, torch.stack([last[handle] for handle in rows]), finished)

    def _forward(self, batch: list[_Row], pending: list[list[int]]) -> Tensor:
        width = max(len(part) for part in pending)
        ids_BT = torch.tensor([part + [0] * (width - len(part)) for part in pending])
        length = max(row.stored for row in batch) + width
        self.backend.reserve(length)
        self.ingested_tokens += sum(len(part) for part in pending)
        return self.backend.forward(
            ids_BT, torch.tensor([row.stored for row in batch]), torch.tensor([len(part) for part in pending]), length
        )

    def _draw(self, handles: Sequence[int], logits_BV: Tensor, finished: list[GeneratedTurn]) -> list[int]:
        """Sample one token of every row; rows whose turn goes on."""
        rows = [self._rows[handle] for handle in handles]
        noise_B = torch.tensor([row.noise[len(row.logprobs)] for row in rows], dtype=torch.float64)
        ids_B, logprobs_B, entropies_B = choose(logits_BV, noise_B, self.sampling)
        self.policy_tokens += len(rows)
        going = []
        for handle, row, token, logprob, entropy in zip(
            handles, rows, ids_B.tolist(), logprobs_B.tolist(), entropies_B.tolist(), strict=True
        ):
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.entropies.append(entropy)
            if token in self._stop or len(row.logprobs) == len(row.noise):
                finished.append(self._finish(handle, row, token in self._stop))
            else:
                going.append(handle)
        return going

    def _finish(self, handle: int, row: _Row, stopped: bool) -> GeneratedTurn:
        start = row.prompt_length or 0
        turn = GeneratedTurn(
            handle,
            row.decision,
            tuple(row.ids[:start]),
            tuple(row.ids[start:]),
            tuple(row.logprobs),
            tuple(row.entropies),
            stopped,
        )
        row.prompt_length, row.token = None, 0
        row.decision += 1
        return turn

    def _decode(self, active: list[int], needed: int, finished: list[GeneratedTurn]) -> list[int]:
        """One-token steps with a fixed set of rows, until any of them finishes."""
        self._place(active)
        handles = [handle for handle in self._order[: len(active)] if handle is not None]
        batch = [self._rows[handle] for handle in handles]
        longest = max(row.stored for row in batch)
        starts_B = torch.tensor([row.stored for row in batch])
        ones_B = torch.ones(len(batch), dtype=torch.long)
        going = handles
        while len(going) == len(handles):
            longest += 1
            self.backend.reserve(longest)
            ids_B1 = torch.tensor([[row.ids[-1]] for row in batch])
            logits_BV = self.backend.forward(ids_B1, starts_B, ones_B, longest)
            starts_B = starts_B + 1
            for row in batch:
                row.stored += 1
            going = self._draw(handles, logits_BV, finished)
        return going
