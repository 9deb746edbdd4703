"""What a binding may hold, by type: its members, and what each of them must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidence.binding.closed import PARTS, QUANTITIES
from evidence.binding.expressions import names, parse
from runs.errors import DomainError

MOST_OPERANDS, MOST_TEXT = 64, 2000
# Type -> members that it needs, and those that it may have; hashes that a binding was pinned to included.
_PINS = {"plan_sha256", "aggregate_sha256", "closure_sha256"}
MEMBERS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "excerpt": (frozenset({"excerpt", "number"}), frozenset({"occurrence"})),
    "pointer": (frozenset({"source", "pointer"}), frozenset()),
    "cell": (frozenset({"source", "column", "key_column", "key"}), frozenset()),
    "derivation": (frozenset({"expression", "figures"}), frozenset()),
    "receipt": (frozenset({"sha256", "pointer"}), frozenset()),
    "endpoint": (frozenset({"endpoint", "quantity"}), frozenset({"arms", *_PINS})),
    "cell_rate": (frozenset({"checkpoint", "condition", "split", "outcome"}), frozenset({"part", *_PINS})),
    "pending": (frozenset({"fills"}), frozenset()),
    "unavailable": (frozenset({"reason_en"}), frozenset({"reason_zh"})),
}
CLOSED_TYPES = ("endpoint", "cell_rate")


class BindingError(DomainError):
    """A binding that cannot be read, or that leads to no number."""


def check_binding(binding: Any) -> dict[str, Any]:
    """A binding with its members checked. Raises ``BindingError`` naming the one that is wrong."""
    form = binding.get("type") if isinstance(binding, dict) else None
    if not isinstance(form, str) or form not in MEMBERS:
        got = binding.get("type") if isinstance(binding, dict) else type(binding).__name__
        raise BindingError(f"binding.type: got {str(got)[:80]!r}, expected one of {', '.join(MEMBERS)}")
    needed, free = MEMBERS[binding["type"]]
    given = set(binding) - {"type"}
    for name in sorted(needed - given):
        raise BindingError(f"binding.{name}: got nothing, expected it in a binding of type {binding['type']}")
    for name in sorted(given - needed - free, key=str):
        expected = ", ".join(sorted((needed | free) - _PINS))
        raise BindingError(f"binding.{str(name)[:80]}: got an unknown member, expected {expected}")
    for name in given - {"occurrence", "figures", "fills", "arms"}:
        value = binding[name]
        if not isinstance(value, str) or len(value) > MOST_TEXT or "\x00" in value:
            raise BindingError(f"binding.{name}: got {str(value)[:80]!r}, expected a text of at most {MOST_TEXT}")
    _PARTICULAR.get(binding["type"], lambda _binding: None)(binding)
    return dict(binding)


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most and "\x00" not in value


def _check_excerpt(binding: dict[str, Any]) -> None:
    occurrence = binding.get("occurrence", 1)
    if not isinstance(occurrence, int) or isinstance(occurrence, bool) or not 1 <= occurrence <= 1000:
        raise BindingError(f"binding.occurrence: got {str(occurrence)[:80]!r}, expected a whole number from 1")


def _check_derivation(binding: dict[str, Any]) -> None:
    figures = binding["figures"]
    if not isinstance(figures, dict) or not 1 <= len(figures) <= MOST_OPERANDS:
        raise BindingError(f"binding.figures: got {str(figures)[:80]!r}, expected 1 to {MOST_OPERANDS} names with keys")
    for name, key in figures.items():
        if not isinstance(name, str) or not name.isidentifier() or not _is_text(key, 100):
            raise BindingError(f"binding.figures: got {str(name)[:40]!r}: {str(key)[:80]!r}, expected a name and a key")
        if not name.isascii():
            raise BindingError(f"binding.figures: got the name {name[:40]!r}, expected one in ASCII letters")
    used = names(parse(binding["expression"]))
    unused = sorted(set(figures) - used)
    if unused:
        raise BindingError(f"binding.figures.{unused[0]}: got a figure that the expression does not use, expected none")
    missing = sorted(used - set(figures))
    if missing:
        raise BindingError(f"binding.figures: got none for {missing[0]!r} of the expression, expected the figure's key")


def _check_closed(binding: dict[str, Any]) -> None:
    arms = binding.get("arms")
    if arms is not None and (not isinstance(arms, list) or not all(_is_text(arm, 100) for arm in arms)):
        raise BindingError(f"binding.arms: got {str(arms)[:80]!r}, expected a list of arms")
    if "quantity" in binding and binding["quantity"] not in QUANTITIES:
        got = binding["quantity"][:80]
        raise BindingError(f"binding.quantity: got {got!r}, expected one of {', '.join(QUANTITIES)}")
    if binding.get("part", "n") not in PARTS:
        raise BindingError(f"binding.part: got {binding['part'][:80]!r}, expected n, of, or nothing for the rate")


def _check_pending(binding: dict[str, Any]) -> None:
    fills = binding["fills"]
    members = set(fills) if isinstance(fills, dict) else set()
    in_words = bool(members) and members <= {"words_en", "words_zh"}
    of_plan = {"plan", "endpoint"} <= members <= {"plan", "endpoint", "quantity", "arms"}
    texts = all(_is_text(fills[name], MOST_TEXT) for name in members - {"arms"})
    if not (in_words or of_plan) or not texts:
        raise BindingError(
            f"binding.fills: got {str(fills)[:120]}, expected a plan with its endpoint, or words that say what fills it"
        )
    _check_closed({name: fills[name] for name in members & {"quantity", "arms"}})


def _check_unavailable(binding: dict[str, Any]) -> None:
    if not binding["reason_en"].strip() and not binding.get("reason_zh", "").strip():
        raise BindingError("binding.reason_en: got nothing, expected why there is no value")


_PARTICULAR: Mapping[str, Any] = {
    "excerpt": _check_excerpt, "derivation": _check_derivation, "endpoint": _check_closed, "cell_rate": _check_closed,
    "pending": _check_pending, "unavailable": _check_unavailable,
}  # fmt: skip


def fills_words(binding: Mapping[str, Any], chinese: bool = False) -> str:
    """What fills a pending figure, in words."""
    fills = binding["fills"]
    if "plan" in fills:
        return f"{fills['plan']}: {fills['endpoint']}"
    first, second = ("words_zh", "words_en") if chinese else ("words_en", "words_zh")
    return str(fills.get(first) or fills.get(second) or "")
