"""Documents parsed once: by hash, never another content, never more of them than said."""

from __future__ import annotations

import pytest

from runs.errors import DomainError
from runs.parsed import Parsed
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.errors import CanonicalError


def test_read_once_for_each_hash_and_dropped_when_others_came() -> None:
    kept, reads = Parsed("kind", most=2), []

    def get(n: int) -> dict[str, int]:
        data = canonical_bytes({"n": n})
        return kept.get(sha256_hex(data), lambda: reads.append(n) or data)  # type: ignore[func-returns-value]

    assert [get(1), get(1), get(2), get(1), get(3)] == [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 1}, {"n": 3}]
    assert reads == [1, 2, 3] and len(kept) == 2
    get(1), get(2)  # 2 was the one that had rested longest when 3 came
    assert reads == [1, 2, 3, 2]


def test_bytes_of_another_hash_are_refused_and_not_kept() -> None:
    kept, data = Parsed("aggregate", most=2), canonical_bytes({"n": 1})
    with pytest.raises(DomainError, match="aggregate: its bytes hash to"):
        kept.get(sha256_hex(data), lambda: data + b" ")
    loose = b'{"b": 1}'
    with pytest.raises(CanonicalError):
        kept.get(sha256_hex(loose), lambda: loose)
    assert len(kept) == 0 and kept.get(sha256_hex(data), lambda: data) == {"n": 1}
