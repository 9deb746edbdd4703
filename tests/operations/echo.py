"""A plain application for the tests of the web server: it reads the body and says how long it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Length of the body; below /slow after a pause."""
    body = environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/slow":
        time.sleep(2.5)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(len(body)).encode()]
