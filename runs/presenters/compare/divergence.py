"""Where two trajectories of one task part: the first token that differs, and both sides turn by turn.

Ids are those that the captures recorded. Two trajectories that never differ say so; where one simply
goes on after the other has ended, the first token that only one of them has is the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Trajectory
from runs.presenters.tokens import (
    ACTION,
    OBSERVATION,
    PROMPT,
    THINK,
    TokenSequence,
    first_difference,
    group_captures,
    read_trace,
    sequence_of,
    vocabulary,
)
from workbench.blobs import BlobError
from workbench.contracts.errors import ContractError
from workbench.tracefile import Trace

CONTEXT = 24  # tokens shown one by one before the first difference, and after it
FOLD = 60  # shared tokens of a segment that are shown without folding


@dataclass(frozen=True)
class Token:
    """One recorded token. ``text`` None without a vocabulary. Probabilities None where nobody recorded them."""

    index: int
    id: int
    text: str | None
    kind: int
    sampled: bool
    engine: float | None
    old: float | None
    new: float | None
    ratio: float | None
    entropy: float | None

    @property
    def shown(self) -> str:
        """The text with visible line ends, else the id."""
        return str(self.id) if self.text is None else self.text.replace("\n", "⏎").replace("\t", "⇥")

    @property
    def logprob(self) -> float | None:
        """The teacher-forced value where an update recorded one, else the sampler's."""
        return self.old if self.old is not None else self.engine

    @property
    def probability(self) -> float | None:
        """exp of ``logprob``."""
        return None if self.logprob is None else math.exp(min(0.0, self.logprob))


@dataclass(frozen=True)
class Piece:
    """One segment of one side: its place and its text."""

    start: int
    end: int
    text: str

    @property
    def length(self) -> int:
        """Tokens."""
        return self.end - self.start


@dataclass(frozen=True)
class TurnRow:
    """One segment of both sides. ``state``: shared (equal, before the difference), parts (holds it), equal, differs.

    ``left`` or ``right`` None: that side has no such segment.
    """

    label: str
    kind: int
    decision: int | None
    left: Piece | None
    right: Piece | None
    state: str

    @property
    def fold(self) -> bool:
        """Whether a shared segment is long enough to fold."""
        return self.state == "shared" and self.left is not None and self.left.length > FOLD


@dataclass(frozen=True)
class Side:
    """One trajectory: its tokens in order, with what was recorded of each."""

    row: Trajectory
    sequence: TokenSequence
    tokens: list[Token]


@dataclass(frozen=True)
class Divergence:
    """The comparison. ``index`` None: every token is the same. ``before``: shared tokens just before it."""

    left: Side
    right: Side
    index: int | None
    rows: list[TurnRow]
    before: list[Token]
    after: tuple[list[Token], list[Token]]
    place: str

    @property
    def pair(self) -> tuple[Token | None, Token | None]:
        """The first tokens that differ; None where a side has ended."""
        if self.index is None:
            return None, None
        return _at(self.left.tokens, self.index), _at(self.right.tokens, self.index)


def _at(tokens: Sequence[Token], index: int) -> Token | None:
    return tokens[index] if index < len(tokens) else None


def _label(kind: int, decision: int | None) -> str:
    if kind == PROMPT:
        return _("prompt")
    if kind == OBSERVATION:
        return _("Observation %(d)s") % {"d": decision}
    return _("d%(d)s think") % {"d": decision} if kind == THINK else _("d%(d)s action") % {"d": decision}


def _side(row: Trajectory, captures: dict[str, Any], texts: tuple[str, ...] | None) -> Side:
    sequence = sequence_of(captures[str(row.uid)])
    trace, _steps, _why = read_trace(row, None)
    traced = _traced(sequence, trace)
    policy = set(sequence.policy)
    tokens = [
        Token(
            index,
            token,
            texts[token] if texts is not None and 0 <= token < len(texts) else None,
            sequence.kinds[index],
            index in policy,
            _finite(sequence.sampler.get(index)),
            *traced.get(index, (None, None, None, None)),
        )
        for index, token in enumerate(sequence.ids)
    ]
    return Side(row, sequence, tokens)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _traced(sequence: TokenSequence, trace: Trace | None) -> dict[int, tuple[float | None, ...]]:
    if trace is None or len(trace.decisions) != len(sequence.policy):
        return {}
    arrays = (trace.old_logprobs, trace.new_logprobs, trace.ratios, trace.entropies)
    return {
        index: tuple(_finite(float(values[place])) for values in arrays) for place, index in enumerate(sequence.policy)
    }


def _both_captures(left: Trajectory, right: Trajectory) -> dict[str, Any]:
    if left.group_id == right.group_id:
        return group_captures(left.group.capture_blob_sha256, [str(left.uid), str(right.uid)])
    return {
        **group_captures(left.group.capture_blob_sha256, [str(left.uid)]),
        **group_captures(right.group.capture_blob_sha256, [str(right.uid)]),
    }


def divergence_of(left: Trajectory, right: Trajectory) -> Divergence:
    """Both sides aligned. Needs ``group`` loaded. Raises ``BlobError`` or ``ContractError`` for unreadable captures."""
    captures = _both_captures(left, right)
    texts = vocabulary(left.group.identities.get("tokenizer", ""))
    other = (
        texts
        if right.group.identities.get("tokenizer") == left.group.identities.get("tokenizer")
        else vocabulary(right.group.identities.get("tokenizer", ""))
    )
    a, b = _side(left, captures, texts), _side(right, captures, other)
    index = first_difference(a.sequence.ids, b.sequence.ids)
    rows = align(a, b, index)
    stop = index if index is not None else len(a.tokens)
    at = next((row for row in rows if row.state == "parts"), None)
    return Divergence(
        a,
        b,
        index,
        rows,
        a.tokens[max(0, stop - CONTEXT) : stop],
        (a.tokens[stop + 1 : stop + 1 + CONTEXT], b.tokens[stop + 1 : stop + 1 + CONTEXT]),
        at.label if at is not None else "",
    )


def _text(side: Side, start: int, end: int) -> str:
    if any(token.text is None for token in side.tokens[start:end]):
        return " ".join(str(token.id) for token in side.tokens[start:end])
    return "".join(token.text or "" for token in side.tokens[start:end])


def align(left: Side, right: Side, index: int | None) -> list[TurnRow]:
    """Segments of both sides by decision and class, in the order in which they stand."""
    pieces = [_pieces(side) for side in (left, right)]
    order: dict[tuple[int, int, int], None] = {}
    for found in pieces:
        order.update(dict.fromkeys(found))
    rows = []
    parted = False
    for key in sorted(order):
        a, b = pieces[0].get(key), pieces[1].get(key)
        kind = _KINDS[key[1]]
        decision = None if key[0] < 0 else key[0]
        state = _state(a, b, index)
        if state == "parts":
            state = "differs" if parted else "parts"
            parted = True
        rows.append(TurnRow(_label(kind, decision), kind, decision, a, b, state))
    return rows


_ORDER = {PROMPT: 0, THINK: 1, ACTION: 2, OBSERVATION: 3}
_KINDS = {rank: kind for kind, rank in _ORDER.items()}


def _pieces(side: Side) -> dict[tuple[int, int, int], Piece]:
    """Segments by (decision, class, place among those of the class): a class may come twice in a turn."""
    found: dict[tuple[int, int, int], Piece] = {}
    for segment in side.sequence.segments:
        decision = -1 if segment.decision is None else segment.decision
        rank = _ORDER[segment.kind]
        place = sum(key[:2] == (decision, rank) for key in found)
        found[decision, rank, place] = Piece(segment.start, segment.end, _text(side, segment.start, segment.end))
    return found


def _state(a: Piece | None, b: Piece | None, index: int | None) -> str:
    if index is None:
        return "shared"
    if a is not None and b is not None and a.end <= index and b.end <= index:
        return "shared"
    holds = [piece for piece in (a, b) if piece is not None and piece.start <= index < piece.end]
    if holds:
        return "parts"
    if a is not None and b is not None and a.text == b.text:
        return "equal"
    return "differs"


def headline(found: Divergence) -> str:
    """The sentence that opens the page."""
    parts = {"n": found.index, "place": found.place}
    if found.index is None:
        return _("Token for token the same: %(n)d recorded ids on both sides.") % {"n": len(found.left.tokens)}
    a, b = found.pair
    if a is None or b is None:
        ended = _("The first") if a is None else _("The second")
        return _("%(ended)s ends after %(n)d shared tokens; the other goes on.") % {**parts, "ended": ended}
    parts |= {"a": a.shown.strip() or "␣", "b": b.shown.strip() or "␣"}
    sampled = a.sampled and b.sampled
    if sampled:
        return _("They share %(n)d tokens and part in %(place)s: “%(a)s” against “%(b)s”.") % parts
    return _("They share %(n)d tokens and part in %(place)s, which no policy wrote: “%(a)s” against “%(b)s”.") % parts


READ_ERRORS = (BlobError, ContractError)
