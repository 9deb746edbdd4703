"""Derivations: a small expression language over bound figures. Exact rational arithmetic, with units; no ``eval``.

Grammar: numbers, names of figures, + - * / and parentheses, unary minus, and the functions of ``FUNCTIONS``.
A sum needs equal units; a quotient has the quotient of units. The same text over the same figures gives the
same value on every machine.

Text is ASCII without comments, so that what a page shows is all that is computed and no two names look alike.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.contracts.errors import ContractError

LONGEST, DEEPEST, DIGITS = 2000, 40, 60
_FOREIGN = re.compile(r"\w*[^\x00-\x7f]\w*")
Unit = tuple[tuple[str, int], ...]  # sorted (name, exponent); empty: a plain number


class ExpressionError(ContractError):
    """A derivation that cannot be read, names what is not there, or mixes units."""


@dataclass(frozen=True)
class Quantity:
    """An exact value with its unit."""

    value: Fraction
    unit: Unit = ()


def parse_unit(text: str) -> Unit:
    """``tokens``, ``tokens/s``, ``nats*tokens^2``: names joined by * and /, powers with ^. Empty: a plain number."""
    found: dict[str, int] = {}
    for position, part in enumerate(text.replace("*", " *").replace("/", " /").split()):
        sign = -1 if part.startswith("/") else 1
        name, raised, power = part.lstrip("*/").partition("^")
        if (position == 0 and part[0] in "*/") or not name or (raised and not (power.isascii() and power.isdigit())):
            raise ExpressionError(f"unit: got {text[:80]!r}, expected names joined by * or /, powers with ^")
        found[name] = found.get(name, 0) + sign * int(power or 1)
    return tuple(sorted((name, power) for name, power in found.items() if power))


def show_unit(unit: Unit) -> str:
    """A unit as ``parse_unit`` reads it."""
    above = [name if power == 1 else f"{name}^{power}" for name, power in unit if power > 0]
    below = [name if power == -1 else f"{name}^{-power}" for name, power in unit if power < 0]
    return "*".join(above or (["1"] if below else [])) + "".join(f"/{name}" for name in below)


def number(text: str) -> Fraction:
    """A decimal number as written, exactly. Raises ``ExpressionError`` for anything else."""
    try:
        if not text.isascii() or len(text) > DIGITS or "/" in text or "_" in text or text != text.strip():
            raise ValueError(text)
        if abs(int(text.lower().partition("e")[2] or 0)) > DIGITS:  # a tiny text must not become a huge number
            raise ValueError(text)
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ExpressionError(f"number: got {text[:80]!r}, expected a decimal number") from error


def _same(values: Sequence[Quantity], where: str) -> Unit:
    units = {item.unit for item in values}
    if len(units) != 1:
        shown = " and ".join(sorted(show_unit(unit) or "a plain number" for unit in units))
        raise ExpressionError(f"{where}: got {shown or 'nothing'}, expected one unit")
    return units.pop()


def _combine(first: Unit, second: Unit, sign: int) -> Unit:
    found = dict(first)
    for name, power in second:
        found[name] = found.get(name, 0) + sign * power
    return tuple(sorted((name, power) for name, power in found.items() if power))


def _sum(values: Sequence[Quantity]) -> Quantity:
    return Quantity(sum((item.value for item in values), Fraction(0)), _same(values, "sum"))


def _mean(values: Sequence[Quantity]) -> Quantity:
    return Quantity(_sum(values).value / len(values), _same(values, "mean"))


FUNCTIONS: Mapping[str, Callable[[Sequence[Quantity]], Quantity]] = {
    "sum": _sum,
    "mean": _mean,
    "min": lambda values: Quantity(min(item.value for item in values), _same(values, "min")),
    "max": lambda values: Quantity(max(item.value for item in values), _same(values, "max")),
    "count": lambda values: Quantity(Fraction(len(values))),
}


def _binary(node: ast.BinOp, first: Quantity, second: Quantity) -> Quantity:
    match node.op:
        case ast.Add():
            return Quantity(first.value + second.value, _same((first, second), "+"))
        case ast.Sub():
            return Quantity(first.value - second.value, _same((first, second), "-"))
        case ast.Mult():
            return Quantity(first.value * second.value, _combine(first.unit, second.unit, 1))
        case ast.Div():
            if second.value == 0:
                raise ExpressionError("/: got a divisor of 0, expected another; a rate without cases has no value")
            return Quantity(first.value / second.value, _combine(first.unit, second.unit, -1))
    raise ExpressionError(f"operator: got {type(node.op).__name__}, expected one of + - * /")


def parse(text: str) -> ast.expr:
    """The tree of an expression. Raises ``ExpressionError`` for what the grammar does not hold."""
    if len(text) > LONGEST:
        raise ExpressionError(f"expression: got {len(text)} characters, expected at most {LONGEST}")
    if "#" in text:
        comment = text[text.index("#") :][:40]
        raise ExpressionError(
            f"expression: got the comment {comment!r}, expected none; the reason of a figure says why"
        )
    foreign = _FOREIGN.search(text)
    if foreign:
        raise ExpressionError(f"expression: got {foreign.group()[:40]!r}, expected names and numbers in ASCII letters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"expression: got {text[:80]!r}, expected an expression") from error
    names(tree)
    return tree


def names(tree: ast.expr, depth: int = 0) -> set[str]:
    """Figures that an expression names; checks the whole tree on the way."""
    if depth > DEEPEST:
        raise ExpressionError(f"expression: got more than {DEEPEST} levels, expected fewer")
    match tree:
        case ast.Constant() if type(tree.value) in (int, float):
            return set()
        case ast.Name():
            return {tree.id}
        case ast.UnaryOp(op=ast.USub()):
            return names(tree.operand, depth + 1)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            return names(tree.left, depth + 1) | names(tree.right, depth + 1)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS and tree.args:
            return set().union(*(names(item, depth + 1) for item in tree.args))
    got = ast.unparse(tree)[:80]
    raise ExpressionError(f"expression: got {got!r}, expected numbers, figures, + - * / and {', '.join(FUNCTIONS)}")


def evaluate(text: str, figures: Mapping[str, Quantity]) -> Quantity:
    """Value of an expression over figures. Raises ``ExpressionError`` naming the figure, unit or part that is wrong."""
    source = text.strip()
    tree = parse(source)
    unknown = sorted(names(tree) - set(figures))
    if unknown:
        raise ExpressionError(f"figure: got {unknown[0]!r}, expected one that is bound")

    def walk(node: Any) -> Quantity:
        match node:
            case ast.Constant():
                return Quantity(number(ast.get_source_segment(source, node) or ""))
            case ast.Name():
                return figures[node.id]
            case ast.UnaryOp():
                inner = walk(node.operand)
                return Quantity(-inner.value, inner.unit)
            case ast.BinOp():
                return _binary(node, walk(node.left), walk(node.right))
        return FUNCTIONS[node.func.id]([walk(item) for item in node.args])

    return walk(tree)


# Constants that a derivation of a claim-carrying kind may hold, and the only places where they may stand: they turn
# a rate into its complement, a quotient into a relative change and a share into percent. Any other number is one that
# somebody typed, and a typed number has no place in an effect.
CONSTANT_FORMS: Mapping[str, tuple[str, ...]] = {
    "1": ("1 - x", "x - 1", "1 * x", "x * 1"),
    "100": ("100 * x", "x * 100", "x / 100"),
}
MOST_CONSTANTS, MOST_USES = 2, 2
_SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def constants(text: str) -> list[str]:
    """Numbers that an expression holds, as they are written, in order, each once."""
    source = text.strip()
    found = [node for node in ast.walk(parse(source)) if isinstance(node, ast.Constant)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(ast.get_source_segment(source, node) or "" for node in found))


def check_constants(text: str, keys: Mapping[str, str]) -> Counter[str]:
    """Refuse an expression that holds a number of its own, by its text alone; how often it names each figure.

    ``keys``: name -> key of the figure that it stands for (two names may share one). Its constants stand in
    ``CONSTANT_FORMS``, at most ``MOST_CONSTANTS`` of them; each figure stands in it at most ``MOST_USES`` times, a
    lone one once (``(a + a + a) / (a + a)`` types 1.5 without a digit). Raises ``ExpressionError`` naming the constant
    or the figure.
    """
    source = text.strip()
    tree = parse(source)
    _check_forms(source, tree)
    nodes = list(ast.walk(tree))
    held = [node for node in nodes if isinstance(node, ast.Constant)]
    if len(held) > MOST_CONSTANTS:
        raise ExpressionError(f"expression: got {len(held)} constants, expected at most {MOST_CONSTANTS} in an effect")
    uses = Counter(keys[node.id] for node in nodes if isinstance(node, ast.Name) and node.id in keys)
    most = MOST_USES if len(uses) > 1 else 1
    for key, count in sorted(uses.items()):
        if count > most:
            raise ExpressionError(f"expression: got {key} {count} times, expected it at most {most} times in an effect")
    return uses


def check_measured(text: str, figures: Mapping[str, Quantity], keys: Mapping[str, str]) -> None:
    """Refuse an expression that brings in a number of its own: what a claim-carrying kind may be derived by.

    ``check_constants``, and its value changes with each figure. ``figures``: name -> value. Raises
    ``ExpressionError`` naming the constant or the figure.
    """
    uses = check_constants(text, keys)
    place = {key: Fraction(2 * number + 3, 1009) for number, key in enumerate(sorted(uses))}
    elsewhere = {  # a rate of no case, 0 / n, depends on its n all the same
        name: Quantity(item.value + place.get(keys[name], 0), item.unit) for name, item in figures.items()
    }
    for key in sorted(uses):
        mine = [name for name in figures if keys[name] == key]
        if not any(_depends(text, base, mine) for base in (figures, elsewhere)):
            raise ExpressionError(
                f"expression: got {key}, on which the value does not depend, expected figures that each change it"
            )


def _check_forms(source: str, tree: ast.expr) -> None:
    placed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "count":
            raise ExpressionError("expression: got count, which is a number of its own; bind it as a figure of its own")
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) != isinstance(node.right, ast.Constant):
            sign, first = _SIGNS[type(node.op)], isinstance(node.left, ast.Constant)
            constant = node.left if first else node.right
            written = ast.get_source_segment(source, constant) or ""
            form = f"{written} {sign} x" if first else f"x {sign} {written}"
            if form in CONSTANT_FORMS.get(written, ()):
                placed.add(id(constant))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in placed:
            forms = ", ".join(form for every in CONSTANT_FORMS.values() for form in every)
            raise ExpressionError(
                f"expression: got the constant {ast.get_source_segment(source, node)}, expected none in an effect but "
                f"in {forms}; bind it as a figure of its own"
            )


def _depends(text: str, figures: Mapping[str, Quantity], mine: Sequence[str]) -> bool:
    """Whether the value changes when the figure that ``mine`` name does: a little, and beyond every other figure."""
    try:
        before = evaluate(text, figures).value
    except ExpressionError:
        return False  # a divisor of 0 at this place; the other place tells
    far = 1 + 7 * sum((abs(item.value) for item in figures.values()), Fraction(0))
    for step in (Fraction(1, 1009), Fraction(-1, 1013), far, -far):
        moved = {name: Quantity(figures[name].value + step, figures[name].unit) for name in mine}
        try:
            if evaluate(text, {**figures, **moved}).value != before:
                return True
        except ExpressionError:
            continue  # a divisor of 0 there says nothing
    return False


def shown(value: Fraction, digits: int) -> str:
    """A value rounded half to even at ``digits`` decimal places, as text."""
    scaled = round(value * 10**digits)
    sign, whole = ("-" if scaled < 0 else ""), abs(scaled)
    if not digits:
        return f"{sign}{whole}"
    return f"{sign}{whole // 10**digits}.{whole % 10**digits:0{digits}d}"
