"""Canonical bytes, digests and derived identities.

RFC 8785 (JSON Canonicalization Scheme) with three restrictions, so that every reader rebuilds the
same bytes: integers lie within +-(2**53 - 1) (larger ones are decimal strings), floats are finite
(others are written as ``{"nonfinite": "nan" | "inf" | "-inf"}``), and keys are strings.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Mapping
from typing import Any

import rfc8785

from .errors import CanonicalError

MAX_SAFE_INTEGER = 2**53 - 1
NONFINITE = "nonfinite"
_quote = json.encoder.encode_basestring  # RFC 8785 strings: quotes, backslash and control characters escaped, no others
UID_NAMESPACE = uuid.UUID("6f0a7a52-3f0e-5d0c-9a53-0b7a1f6f5e11")


def _check(value: Any, path: str) -> None:
    if value is None or isinstance(value, bool | str):
        return
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise CanonicalError(f"{path}: got {value}, expected an integer within 2**53 - 1 or a decimal string")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CanonicalError(f'{path}: got {value}, expected a finite number or {{"nonfinite": ...}}')
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise CanonicalError(f"{path}: got key {key!r}, expected a string key")
            _check(item, f"{path}.{key}")
        return
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check(item, f"{path}[{position}]")
        return
    raise CanonicalError(f"{path}: got {type(value).__name__}, expected null, bool, number, string, list or object")


class _NotPlain(Exception):
    """A value that the direct writer leaves to the library and to ``_check``, which names what is wrong with it."""


def _text(value: Any) -> str:
    """RFC 8785 text of a tree of exact built-in types, in one pass; the library's own writer is ten times slower.

    Keys sort by UTF-16 code units, which for ASCII is the order of ``sorted``. Between 1e-4 and 1e16 the
    shortest digits of Python are those of ECMAScript, unless the number is whole.
    """
    kind = type(value)
    if kind is str:
        return _quote(value)
    if kind is dict:
        try:
            is_ascii = "".join(value).isascii()
        except TypeError:
            raise _NotPlain from None
        keys = sorted(value) if is_ascii else sorted(value, key=lambda key: key.encode("utf-16-be"))
        parts = []
        for key in keys:
            item = value[key]
            parts.append(f"{_quote(key)}:{_quote(item) if type(item) is str else _text(item)}")
        return "{" + ",".join(parts) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([_quote(item) if type(item) is str else _text(item) for item in value]) + "]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return repr(value)
    if kind is float and 1e-4 <= abs(value) < 1e16 and not value.is_integer():
        return repr(value)
    if kind is float and math.isfinite(value):
        return rfc8785.dumps(value).decode()
    raise _NotPlain


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 bytes of ``value``. Raises ``CanonicalError`` naming the path of what has none."""
    try:
        return _text(value).encode("utf-8")
    except (_NotPlain, UnicodeEncodeError, RecursionError):
        pass  # the slow way below serves rare types, and names what is wrong
    try:
        _check(value, "$")
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise CanonicalError(f"$: {error}, expected text that UTF-8 can carry") from error
    except RecursionError as error:
        raise CanonicalError("$: got values nested too deeply, expected what the parser can read back") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for position, key in enumerate(names) if key in names[:position])
        raise CanonicalError(f"{twice}: got the key twice, expected it once")
    return found


def _refuse_constant(text: str) -> Any:
    raise CanonicalError(f'$: got {text}, expected a finite number or {{"nonfinite": ...}}')


def _integer(text: str) -> int | float:
    """An integer literal. Beyond 2**53 - 1 it must be the canonical form of a float, which has no point below 1e21."""
    if len(text) <= 17 and abs(value := int(text)) <= MAX_SAFE_INTEGER:
        return value
    if len(text) <= 22 and rfc8785.dumps(number := float(text)) == text.encode():
        return number
    raise CanonicalError(f"$: got {text[:40]}, expected an integer within 2**53 - 1 or a decimal string")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text[:40])


def parse_json(data: bytes | str) -> Any:
    """Strict JSON: UTF-8, no duplicate keys, no NaN or Infinity, no number that changes. Raises ``CanonicalError``."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        return json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CanonicalError(f"$: {error}, expected UTF-8 JSON") from error


def parse_bound(data: bytes) -> Any:
    """Parse JSON whose very bytes the caller checks, by a hash or by writing them again; several times as fast.

    Takes more than ``parse_json`` does (a key twice, a number that is rounded): never for bytes from outside.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return parse_json(data)  # which says what is wrong


def parse_canonical(data: bytes) -> Any:
    """Parse bytes that must already be canonical; raises ``CanonicalError`` where they are not.

    What ``parse_bound`` takes too lightly does not come back as the same bytes; ``parse_json`` says what is wrong.
    """
    try:
        if canonical_bytes(value := parse_bound(data)) == data:
            return value
    except CanonicalError:
        pass
    value = parse_json(data)
    if canonical_bytes(value) != data:
        raise CanonicalError("$: got JSON that is not in canonical form, expected RFC 8785 bytes")
    return value


def sha256_hex(data: bytes) -> str:
    """SHA-256 as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes of ``value``."""
    return sha256_hex(canonical_bytes(value))


def encode_float(value: float | None) -> float | dict[str, str] | None:
    """A float as canonical JSON carries it; ``None`` stays ``None`` (not measured)."""
    if value is None or math.isfinite(value):
        return value
    return {NONFINITE: "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")}


def decode_float(value: Any) -> float | None:
    """The inverse of ``encode_float``."""
    if value is None:
        return None
    if isinstance(value, dict):
        if set(value) != {NONFINITE} or value[NONFINITE] not in ("nan", "inf", "-inf"):
            raise CanonicalError(f'$: got {value!r}, expected {{"nonfinite": "nan" | "inf" | "-inf"}}')
        return float(value[NONFINITE])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CanonicalError(f"$: got {value!r}, expected a number")
    return float(value)


def derive_uid(parent: uuid.UUID | str | None, natural_key: str) -> uuid.UUID:
    """UUIDv5 of (parent uid, natural key): the same content has the same uid in every database."""
    namespace = UID_NAMESPACE if parent is None else uuid.UUID(str(parent))
    return uuid.uuid5(namespace, natural_key)
