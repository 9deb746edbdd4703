"""Names of sources: their path in the project, what form their bytes have, and the media type."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from evidence.models import Source
from runs.actions.tracked_files import checked_path
from runs.errors import DomainError

PATH_MOST = 500
OWN = "receipts"  # the folder of what our own executions recorded: nobody else writes there
_REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,31}")
_SUFFIXES = {
    ".txt": "text", ".log": "text", ".py": "text", ".yaml": "text", ".yml": "text", ".toml": "text",
    ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".bib": "latex", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".csv": "csv", ".pdf": "pdf",
}  # fmt: skip
MEDIA_TYPES = {
    "text": "text/plain", "markdown": "text/markdown", "latex": "application/x-tex", "json": "application/json",
    "jsonl": "application/jsonl", "csv": "text/csv", "pdf": "application/pdf", "binary": "application/octet-stream",
}  # fmt: skip
_MEDIA = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,37}")


def source_path(text: str) -> str:
    """A path in the project, NFC: relative, of plain parts, without control or invisible characters.

    Idempotent. It names a row and never a file of this machine. Raises ``DomainError`` for any other.
    """
    try:
        path = checked_path(unicodedata.normalize("NFC", text))
    except UnicodeEncodeError as error:
        raise DomainError("path: got a lone surrogate, expected text") from error
    if len(path) > PATH_MOST:
        raise DomainError(f"path: got {len(path)} characters, expected at most {PATH_MOST}")
    if any(unicodedata.category(item) in ("Cf", "Co", "Cn") for item in path):
        raise DomainError(f"path: got {path[:120]!r}, expected no invisible or private character")
    if any(part != part.strip() for part in path.split("/")):
        raise DomainError(f"path: got {path[:120]!r}, expected no space at either end of a part")
    return path


def reference_name(text: str) -> str:
    """A short name such as R1, or nothing. Raises ``DomainError``."""
    if text and not _REFERENCE.fullmatch(text):
        raise DomainError(f"reference: got {text[:80]!r}, expected a letter and up to 31 letters, digits, dots, dashes")
    return text


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without U+0000."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\x00" not in data


def form_of(path: str, data: bytes | None, given: str = "") -> str:
    """One of ``Source.FORMS``: the given one, else by the suffix; bytes that are no text have the form binary.

    Raises ``DomainError`` for a form that does not exist or that the bytes do not have.
    """
    if given and given not in Source.FORMS:
        raise DomainError(f"form: got {given[:80]!r}, expected one of {', '.join(Source.FORMS)}")
    found = given or _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "")
    if data is None:
        return found or "binary"
    fits = data.startswith(b"%PDF-") if found == "pdf" else found == "binary" or is_text(data)
    if given and not fits:
        raise DomainError(f"form: got {given}, expected binary: the bytes are not of that form")
    return (found or "text") if fits else "binary"


def media_type_of(form: str, given: str = "") -> str:
    """The given media type, else that of the form. Raises ``DomainError`` for a text that is none."""
    if given and not _MEDIA.fullmatch(given):
        raise DomainError(f"media_type: got {given[:80]!r}, expected a media type such as text/plain")
    return given or MEDIA_TYPES[form]
