"""The cache that several web servers share: Redis, and this process's memory while Redis does not answer.

Throttles stand on it. Without Redis each process counts for itself: logins stay throttled and nobody is
locked out because a cache is down.
"""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
SAID_EVERY = 60.0  # seconds between two lines that say that Redis is away
WAIT = 0.5  # seconds; a login must not wait longer for a counter
RETRY_EVERY = 5.0  # seconds without asking a Redis that has just not answered


def redis_address(url: str) -> str:
    """The client's form of a broker address: ``redis+socket:///path?virtual_host=1`` is ``unix:///path?db=1``."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    database = parse_qs(parts.query).get("virtual_host", ["0"])[0].lstrip("/") or "0"
    return f"unix://{parts.path}?db={database}"


class SharedCache(RedisCache):
    """Redis, with memory in its place while it does not answer."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        limits = {"socket_timeout": WAIT, "socket_connect_timeout": WAIT}
        given = dict(params)
        given["OPTIONS"] = {**limits, **given.get("OPTIONS", {})}
        super().__init__(redis_address(server), given)
        self._memory = LocMemCache("workbench-without-redis", {k: v for k, v in params.items() if k != "OPTIONS"})
        self._away_until = 0.0
        self._said = 0.0

    def _ask(self, name: str, *args: Any, **options: Any) -> Any:
        now = time.monotonic()
        if now >= self._away_until:
            try:
                return getattr(RedisCache, name)(self, *args, **options)
            except (RedisError, OSError) as error:
                self._away_until = now + RETRY_EVERY
                if now - self._said >= SAID_EVERY or not self._said:
                    self._said = now
                    log.warning("the shared cache does not answer, this process counts for itself: %s", error)
        return getattr(self._memory, name)(*args, **options)

    def add(self, *args: Any, **options: Any) -> Any:
        """Store where nothing is stored."""
        return self._ask("add", *args, **options)

    def get(self, *args: Any, **options: Any) -> Any:
        """The stored value."""
        return self._ask("get", *args, **options)

    def set(self, *args: Any, **options: Any) -> Any:
        """Store a value."""
        return self._ask("set", *args, **options)

    def touch(self, *args: Any, **options: Any) -> Any:
        """Give a value a new time to live."""
        return self._ask("touch", *args, **options)

    def delete(self, *args: Any, **options: Any) -> Any:
        """Forget a value."""
        return self._ask("delete", *args, **options)

    def incr(self, *args: Any, **options: Any) -> Any:
        """Add to a stored number."""
        return self._ask("incr", *args, **options)

    def has_key(self, *args: Any, **options: Any) -> Any:
        """Whether a value is stored."""
        return self._ask("has_key", *args, **options)

    def get_many(self, *args: Any, **options: Any) -> Any:
        """Stored values by key."""
        return self._ask("get_many", *args, **options)

    def set_many(self, *args: Any, **options: Any) -> Any:
        """Store values by key."""
        return self._ask("set_many", *args, **options)

    def delete_many(self, *args: Any, **options: Any) -> Any:
        """Forget values."""
        return self._ask("delete_many", *args, **options)

    def clear(self) -> Any:
        """Forget everything."""
        return self._ask("clear")
