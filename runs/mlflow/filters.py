"""The filter language of run searches: ``metrics.loss < 0.5 and params.lr = '0.1' and attributes.status = 'FINISHED'``.

Comparisons are joined by ``and`` alone, as in MLflow. Keys with other characters stand in backticks or double
quotes. LIKE and ILIKE know ``%`` and ``_``. A comparison with a key that a run does not have is false, also !=.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runs.mlflow.errors import MlflowError, invalid

METRIC, PARAM, TAG, ATTRIBUTE = "metric", "param", "tag", "attribute"
ENTITIES = {
    "metric": METRIC, "metrics": METRIC, "param": PARAM, "params": PARAM, "parameter": PARAM, "parameters": PARAM,
    "tag": TAG, "tags": TAG, "attribute": ATTRIBUTE, "attributes": ATTRIBUTE, "attr": ATTRIBUTE, "run": ATTRIBUTE,
}  # fmt: skip
ATTRIBUTES = {
    "run_id": "run_id", "run_name": "run_name", "run name": "run_name", "run id": "run_id", "name": "run_name",
    "status": "status", "start_time": "start_time", "created": "start_time", "end_time": "end_time",
    "user_id": "user_id", "artifact_uri": "artifact_uri",
}  # fmt: skip
NUMBERS = {"start_time", "end_time"}
ORDERED, TEXTUAL = {"=", "!=", ">", ">=", "<", "<="}, {"=", "!=", "LIKE", "ILIKE", "IN", "NOT IN"}
LENGTH_MOST, CLAUSES_MOST = 6000, 50

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*'|"[^"]*"|`[^`]*`)
      | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w./]))
      | (?P<operator><=|>=|!=|<>|=|<|>)
      | (?P<mark>[(),.])
      | (?P<word>[^\s'"`<>=!(),.]+(?:\.[^\s'"`<>=!(),.]+)*)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Comparison:
    """One comparison. ``operator``: = != < <= > >= LIKE ILIKE IN, NOT IN, IS NULL, IS NOT NULL."""

    entity: str
    key: str
    operator: str
    value: Any


@dataclass(frozen=True)
class Order:
    """One key of the order."""

    entity: str
    key: str
    descending: bool


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str, field: str) -> list[_Token]:
    if len(text) > LENGTH_MOST:
        raise invalid(field, f"{len(text)} characters", f"at most {LENGTH_MOST}")
    found, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise invalid(field, text[place : place + 60], "a comparison such as metrics.loss < 0.5")
        found.append(_Token(match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


class _Reader:
    """Reads tokens one after the other."""

    def __init__(self, text: str, field: str) -> None:
        self.text, self.field, self.place = text, field, 0
        self.tokens = _tokens(text, field)

    def fail(self, expected: str) -> MlflowError:
        """The error at this place."""
        rest = " ".join(token.text for token in self.tokens[self.place : self.place + 4]) or "the end"
        return invalid(self.field, f"{rest!r} in {self.text[:200]!r}", expected)

    def peek(self) -> _Token:
        """The next token; an empty one at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else _Token("end", "")

    def take(self) -> _Token:
        """The next token, taken."""
        token = self.peek()
        self.place += 1
        return token

    def took(self, word: str) -> bool:
        """Whether the next token is a word or mark, which is then taken."""
        token = self.peek()
        if token.kind in ("word", "mark") and token.text.upper() == word:
            self.place += 1
            return True
        return False

    def name(self) -> tuple[str, str]:
        """(entity, key)."""
        token = self.take()
        if token.kind == "text" and token.text[0] in '`"':
            return _checked(ATTRIBUTE, token.text[1:-1], self)
        if token.kind != "word":
            self.place -= 1
            raise self.fail("metrics, params, tags or attributes and a key")
        prefix, _, rest = token.text.partition(".")
        entity = ENTITIES.get(prefix.lower())
        if entity is None or (not rest and self.peek().text != "."):
            return _checked(ATTRIBUTE, token.text, self)
        if rest:
            return _checked(entity, rest, self)
        self.take()
        quoted = self.take()
        if quoted.kind == "text" and quoted.text[0] in '`"':
            return _checked(entity, quoted.text[1:-1], self)
        self.place -= 1
        raise self.fail("a key in backticks or double quotes after the dot")

    def value(self) -> Any:
        """A number or a text."""
        token = self.take()
        if token.kind == "number":
            return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
        if token.kind == "text" and token.text[0] in "'\"":
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        self.place -= 1
        raise self.fail("a number, or text in quotes")

    def values(self) -> tuple[str, ...]:
        """A list of texts in parentheses."""
        if not self.took("("):
            raise self.fail("a list in parentheses")
        found = [self.value()]
        while self.took(","):
            found.append(self.value())
        if not self.took(")") or not all(isinstance(item, str) for item in found):
            raise self.fail("texts in quotes, and a closing parenthesis")
        return tuple(found)


def _checked(entity: str, key: str, reader: _Reader) -> tuple[str, str]:
    if not key or "\x00" in key or len(key) > 500:
        raise reader.fail("a key of 1 to 500 characters")
    if entity == ATTRIBUTE:
        known = ATTRIBUTES.get(key.lower())
        if known is None:
            raise invalid(
                reader.field, f"attribute {key[:80]!r}", f"one of {', '.join(sorted(set(ATTRIBUTES.values())))}"
            )
        return entity, known
    return entity, key


def parse_filter(text: str) -> list[Comparison]:
    """Comparisons of a filter; empty text has none. Raises ``MlflowError`` saying what stands where."""
    reader = _Reader(text, "filter")
    found: list[Comparison] = []
    while reader.peek().kind != "end":
        if found and not reader.took("AND"):
            raise reader.fail("and (comparisons are joined by and alone)")
        found.append(_comparison(reader))
        if len(found) > CLAUSES_MOST:
            raise invalid("filter", f"more than {CLAUSES_MOST} comparisons", f"at most {CLAUSES_MOST}")
    return found


def _comparison(reader: _Reader) -> Comparison:
    entity, key = reader.name()
    if reader.took("IS"):
        operator = "IS NOT NULL" if reader.took("NOT") else "IS NULL"
        if not reader.took("NULL"):
            raise reader.fail("NULL")
        return Comparison(entity, key, operator, None)
    token = reader.take()
    operator = token.text.upper().replace("<>", "!=")
    if operator == "NOT" and reader.took("IN"):
        operator = "NOT IN"
    is_number = entity == METRIC or (entity == ATTRIBUTE and key in NUMBERS)
    allowed = ORDERED if is_number else TEXTUAL
    if operator not in allowed:
        reader.place -= 1
        raise reader.fail(f"one of {', '.join(sorted(allowed))}")
    value: Any = reader.values() if operator in ("IN", "NOT IN") else reader.value()
    if is_number and isinstance(value, str):
        value = _number(reader, value)
    if not is_number and isinstance(value, int | float):
        raise reader.fail(f"text in quotes for {entity} {key}")
    return Comparison(entity, key, operator, value)


def _number(reader: _Reader, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise reader.fail("a number") from error


def parse_order(texts: Any) -> list[Order]:
    """The keys of ``order_by``. Raises ``MlflowError``."""
    texts = texts or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) > CLAUSES_MOST:
        raise invalid("order_by", texts, "a list of texts such as metrics.loss ASC")
    found = []
    for text in texts:
        reader = _Reader(text, "order_by")
        entity, key = reader.name()
        descending = reader.took("DESC")
        if not descending:
            reader.took("ASC")
        if reader.peek().kind != "end":
            raise reader.fail("ASC or DESC and the end")
        found.append(Order(entity, key, descending))
    return found


def is_like(text: str, pattern: str) -> bool:
    """SQL's LIKE: ``%`` any text, ``_`` one character; time grows with length times length at most."""
    place = mark = 0
    star = back = -1
    while place < len(text):
        if mark < len(pattern) and pattern[mark] != "%" and pattern[mark] in ("_", text[place]):
            place, mark = place + 1, mark + 1
        elif mark < len(pattern) and pattern[mark] == "%":
            star, back, mark = mark, place, mark + 1
        elif star >= 0:
            back += 1
            place, mark = back, star + 1
        else:
            return False
    return all(item == "%" for item in pattern[mark:])
