"""Series of logged runs by name: identity, row numbers, and a memory of them for the hot path."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from django.db import connection, transaction

from runs.models import MetricSeries, Run
from workbench.contracts.canonical import derive_uid

LOGGED = "logged/1"  # definition of a series that a trainer named itself
KEPT_RUNS, KEPT_NAMES = 512, 20_000  # whose names one process remembers; a run with more names is looked up


def logged_series_uid(run_uid: str, segment: str, name: str) -> str:
    """Identity of a logged series: its run, attempt and name as received."""
    return str(derive_uid(run_uid, f"logged:{segment}:{name}"))


class _Memory:
    """Row numbers of committed series. They never change, so what is known stays true as long as the database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str, str], dict[str, int]] = OrderedDict()

    def known(self, key: tuple[str, str, str]) -> Mapping[str, int]:
        """What is known of a run's attempt."""
        with self._lock:
            found = self._runs.get(key)
            if found is None:
                return {}
            self._runs.move_to_end(key)
            return found

    def learn(self, key: tuple[str, str, str], keys: Mapping[str, int]) -> None:
        """Remember committed rows."""
        with self._lock:
            merged = {**self._runs.get(key, {}), **keys}
            if len(merged) > KEPT_NAMES:
                return
            self._runs[key] = merged
            self._runs.move_to_end(key)
            while len(self._runs) > KEPT_RUNS:
                self._runs.popitem(last=False)


_memory = _Memory()


def series_keys(run: Run, segment: str, names: Sequence[str]) -> dict[str, int]:
    """Row numbers by name, made where they are missing. Call with the run's head locked, in a transaction."""
    key = (str(connection.settings_dict["NAME"]), str(run.uid), segment)
    known = _memory.known(key)
    found = {name: known[name] for name in names if name in known}
    if len(found) == len(names):
        return found
    left = [name for name in names if name not in found]
    found.update(_stored(run, segment, left))
    missing = [name for name in left if name not in found]
    made = [
        MetricSeries(
            uid=logged_series_uid(str(run.uid), segment, name), run=run, definition=LOGGED, phase="", split="",
            labels={}, labels_key="{}", segment=segment, name=name,
        )
        for name in missing
    ]  # fmt: skip
    for start in range(0, len(made), 500):
        for row in MetricSeries.objects.bulk_create(made[start : start + 500]):
            found[row.name] = row.pk
    transaction.on_commit(lambda: _memory.learn(key, found))
    return found


def _stored(run: Run, segment: str, names: Sequence[str]) -> dict[str, int]:
    mine = MetricSeries.objects.filter(run=run, segment=segment, definition=LOGGED)
    found: dict[str, int] = {}
    for start in range(0, len(names), 500):
        found.update(mine.filter(name__in=names[start : start + 500]).values_list("name", "pk"))
    return found
