"""No room to write: the machine's fault, over once somebody makes room; so nothing of an experiment ends with it."""

from __future__ import annotations

import errno
import os

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})  # no space, no quota, mounted read-only


def no_room(error: BaseException | None) -> int | None:
    """The error number where ``error``, or what it was raised from, could not write for want of room; else None."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return error.errno
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def why_no_room(code: int) -> str:
    """The cause in words, without a path: it goes into receipts."""
    return f"no room to write in the data directory: {os.strerror(code)} (errno {code})"
