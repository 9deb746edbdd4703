"""Python client of the REST API: ``from workbench.client import Workbench``.

Needs httpx and the contracts of this package; neither Django nor Celery nor torch. Tables come as
Arrow or pandas where those are installed.
"""

from __future__ import annotations

from .errors import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    Gone,
    IntegrityError,
    Invalid,
    NotFound,
    PreconditionFailed,
    ProblemError,
    RateLimited,
    ServerError,
    Unauthorized,
    WaitTimeout,
    WorkbenchError,
)
from .workbench import Workbench

__all__ = [
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "Gone",
    "IntegrityError",
    "Invalid",
    "NotFound",
    "PreconditionFailed",
    "ProblemError",
    "RateLimited",
    "ServerError",
    "Unauthorized",
    "WaitTimeout",
    "Workbench",
    "WorkbenchError",
]
