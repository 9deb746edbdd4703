"""The shared cache: Redis where it answers, this process's memory where it does not."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench.caches import SharedCache, redis_address
from workbench.settings_accounts import cache_backend, read_number


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("redis://host:6379/1", "redis://host:6379/1"),
        ("rediss://u:p@host/0", "rediss://u:p@host/0"),
        ("redis+socket:///run/redis.sock?virtual_host=3", "unix:///run/redis.sock?db=3"),
        ("redis+socket:///run/redis.sock", "unix:///run/redis.sock?db=0"),
    ],
)
def test_addresses(given: str, expected: str) -> None:
    assert redis_address(given) == expected


def test_the_backend_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory without a broker; Redis with one, the broker's own variable first."""
    assert cache_backend()["BACKEND"].endswith("LocMemCache")
    monkeypatch.setenv("REDIS_URL", "redis://b/0")
    assert cache_backend()["LOCATION"] == "redis://b/0"
    monkeypatch.setenv("WORKBENCH_BROKER_URL", "redis://a/0")
    found = cache_backend()
    assert (found["BACKEND"], found["LOCATION"]) == ("workbench.caches.SharedCache", "redis://a/0")


def test_without_redis_the_process_counts_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    """Counting goes on, quickly, and is said once."""
    cache = SharedCache("redis://127.0.0.1:1/0", {})
    assert cache.get("k", 7) == 7
    assert cache.add("k", 1) and not cache.add("k", 2)
    assert cache.incr("k", 2) == 3 and cache.has_key("k")
    cache.set_many({"a": 1, "b": 2})
    assert cache.get_many(["a", "b"]) == {"a": 1, "b": 2}
    cache.delete_many(["a"])
    assert cache.touch("b", 5) and cache.delete("b") and cache.get("b") is None
    cache.clear()
    assert cache.get("k") is None
    assert caplog.text.count("does not answer") == 1


def test_two_processes_share_one_count(redis_url: str) -> None:
    one, two = SharedCache(redis_url, {}), SharedCache(redis_url, {})
    one.clear()
    one.set("k", [1.5], 60)
    assert two.get("k") == [1.5]
    assert not two.add("k", [], 60)
    one.clear()


@pytest.mark.parametrize("value", ["-1", "x", "11", "1.5", "٣"])
def test_numbers_of_the_environment_are_checked(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WORKBENCH_TRUSTED_PROXIES", value)
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_TRUSTED_PROXIES: got"):
        read_number("WORKBENCH_TRUSTED_PROXIES", 0, 10)
