"""Functions of the code bases: a specification as a comment, a sound body, and defects of it.

``{k}``, ``{n}`` stand for small constants that a task draws. A defect replaces one line of the body. The value of a
sound function is computed from its own source, so that specification, source and expected value cannot part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Template:
    """``defects``: (line of the body from 0, text that stands there instead). ``needs``: function it calls."""

    name: str
    parameters: str
    comment: str
    body: tuple[str, ...]
    defects: tuple[tuple[int, str], ...]
    draw: Callable[[Random], Arguments]
    needs: str | None = None

    def lines(self, constants: dict[str, int], defect: int | None = None) -> list[str]:
        """Source lines, with a defect or sound."""
        body = list(self.body)
        if defect is not None:
            place, text = self.defects[defect]
            body[place] = text
        head = f"def {self.name}({self.parameters}):  # {self.comment}"
        return [line.format(**constants) for line in [head, *(f"    {line}" for line in body)]]


def number(random: Random) -> int:
    """A small number that a tiny vocabulary holds."""
    return random.randint(0, 20)


def pair(random: Random) -> Arguments:
    """Two different numbers."""
    first, second = random.sample(range(21), 2)
    return first, second


def one(random: Random) -> Arguments:
    """One number."""
    return (number(random),)


def numbers(random: Random) -> Arguments:
    """A list of three to five different numbers, in no order."""
    return (random.sample(range(21), random.randint(3, 5)),)


WORDS = ("Ada", "boB", "cLeo", "Dina", "eMil", "Fay", "giL", "hUgo", "Ines", "joE")  # of both cases; few


def word(random: Random) -> Arguments:
    """A word of both cases."""
    return (random.choice(WORDS),)


def words(random: Random) -> Arguments:
    """A list of two to four different words."""
    return (random.sample(WORDS, random.randint(2, 4)),)


LEDGER = (
    Template(
        "order", "a, k", "min of a and k", ("return min(a, k)",), ((0, "return max(a, k)"), (0, "return a")), pair
    ),
    Template("fee", "a", "a plus {k}", ("return a + {k}",), ((0, "return a - {k}"), (0, "return a + {n}")), one),
    Template("total", "xs", "sum of xs", ("return sum(xs)",), ((0, "return len(xs)"), (0, "return max(xs)")), numbers),
    Template("due", "a, b", "a minus b", ("return a - b",), ((0, "return b - a"), (0, "return a + b")), pair),
    Template(
        "charge",
        "a",
        "fee of a, times {n}",
        ("c = fee(a)", "return c * {n}"),
        ((1, "return c + {n}"), (0, "c = fee({k})")),
        one,
        "fee",
    ),
    Template(
        "owes", "a, b", "whether a is over b", ("return a > b",), ((0, "return a < b"), (0, "return a == b")), pair
    ),
)
ROSTER = (
    Template("label", "s", "s in upper case", ("return s.upper()",), ((0, "return s.lower()"), (0, "return s")), word),
    Template(
        "plain", "s", "s in lower case", ("return s.lower()",), ((0, "return s.swapcase()"), (0, "return s")), word
    ),
    Template("initial", "s", "first letter of s", ("return s[0]",), ((0, "return s[1]"), (0, "return s[-1]")), word),
    Template(
        "crew", "xs", "number of xs", ("return len(xs)",), ((0, "return len(xs) - 1"), (0, "return len(xs[0])")), words
    ),
    Template(
        "badge",
        "s",
        "label of s without its last letter",
        ("t = label(s)", "return t[:-1]"),
        ((1, "return t[1:]"), (0, "t = plain(s)")),
        word,
        "label",
    ),
    Template("lead", "xs", "first of xs", ("return xs[0]",), ((0, "return xs[-1]"), (0, "return xs[1]")), words),
)
STOCK = (
    Template("peak", "xs", "max of xs", ("return max(xs)",), ((0, "return min(xs)"), (0, "return xs[0]")), numbers),
    Template("least", "xs", "min of xs", ("return min(xs)",), ((0, "return max(xs)"), (0, "return xs[-1]")), numbers),
    Template(
        "count", "xs", "number of xs", ("return len(xs)",), ((0, "return sum(xs)"), (0, "return len(xs) + 1")), numbers
    ),
    Template(
        "rest", "xs", "xs without the first", ("return xs[1:]",), ((0, "return xs[:-1]"), (0, "return xs[2:]")), numbers
    ),
    Template(
        "span",
        "xs",
        "peak of xs minus min of xs",
        ("top = peak(xs)", "return top - min(xs)"),
        ((1, "return top + min(xs)"), (0, "top = len(xs)")),
        numbers,
        "peak",
    ),
    Template("pack", "a, b", "a times b", ("return a * b",), ((0, "return a + b"), (0, "return a * a")), pair),
)
SIGNAL = (
    Template("gain", "a", "a times {n}", ("return a * {n}",), ((0, "return a + {n}"), (0, "return a * {k}")), one),
    Template("top", "a, b", "max of a and b", ("return max(a, b)",), ((0, "return min(a, b)"), (0, "return b")), pair),
    Template("last", "xs", "last of xs", ("return xs[-1]",), ((0, "return xs[0]"), (0, "return xs[-2]")), numbers),
    Template(
        "head", "xs", "first two of xs", ("return xs[:2]",), ((0, "return xs[:1]"), (0, "return xs[1:2]")), numbers
    ),
    Template(
        "lift",
        "a",
        "gain of a, plus {k}",
        ("g = gain(a)", "return g + {k}"),
        ((1, "return g - {k}"), (0, "g = a")),
        one,
        "gain",
    ),
    Template(
        "same", "a, b", "whether a equals b", ("return a == b",), ((0, "return a != b"), (0, "return a > b")), pair
    ),
)
CODE_BASES: dict[str, tuple[Template, ...]] = {"ledger": LEDGER, "roster": ROSTER, "stock": STOCK, "signal": SIGNAL}
