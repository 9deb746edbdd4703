"""Page tokens: an offset, and for runs the newest run that the walk may show."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from runs.mlflow.errors import invalid


def token_of(offset: int, upto: int = 0) -> str:
    """Opaque text of a position."""
    return base64.urlsafe_b64encode(f"{offset}:{upto}".encode()).decode()


def position_of(given: dict[str, Any]) -> tuple[int, int]:
    """(offset, upper bound; 0 for none yet) of ``page_token``. Raises ``MlflowError`` for another's token."""
    text = given.get("page_token")
    if text in (None, ""):
        return 0, 0
    try:
        offset, upto = base64.b64decode(str(text), altchars=b"-_", validate=True).decode("ascii").split(":")
        if not (offset.isdigit() and upto.isdigit() and len(offset) < 18 and len(upto) < 18):
            raise ValueError(text)
        return int(offset), int(upto)
    except (ValueError, binascii.Error, UnicodeError) as error:
        raise invalid("page_token", text, "the next_page_token of an earlier answer") from error


def offset_of(given: dict[str, Any]) -> int:
    """The offset alone."""
    return position_of(given)[0]
