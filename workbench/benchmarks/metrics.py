"""Logging, history, chart and search: our server against a real MLflow server, in CPU seconds of the servers.

Each round asks both, one after the other and in turn, so that a busy machine slows both alike. Ratios are
MLflow's CPU / ours within a round: higher is better.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from workbench.benchmarks.seeding import NAME, SPIKE, START_MS, Contents, contents, fill_mlflow
from workbench.benchmarks.servers import (
    MLFLOW_VERSION,
    BenchmarkError,
    Say,
    Server,
    manage,
    mlflow_python,
    mlflow_server,
    our_server,
)

API = "/api/2.0/mlflow/"
PAGE = 25_000  # points of a page of history: what MLflow's client asks for
SHOWN = 2000
GOALS = {  # CPU seconds of ours, and the least ratio
    "log_batch_1000": (0.020, 5.0),
    "log_batch_40": (0.005, 5.0),
    "history_1m": (1.0, None),
    "chart_1m": (0.1, None),
    "search_10k": (0.27, None),
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured. ``requests``: writes in one round."""

    repeats: int = 5
    requests: int = 20
    points: int = 1_000_000
    runs: int = 10_000
    seed: int = 20261130


@dataclass(frozen=True)
class Side:
    """One server with what the requests name."""

    server: Server
    experiment: str
    long: str
    is_ours: bool

    def new_run(self) -> str:
        """A run to write into."""
        body = {"experiment_id": self.experiment, "run_name": "written", "start_time": START_MS}
        return str(self.server.post(f"{API}runs/create", body)["run"]["info"]["run_id"])


def cost(side: Side, call: Callable[[], Any], times: int = 1) -> tuple[float, float, Any]:
    """(server CPU seconds, wall seconds) of one of ``times`` calls, and what the last one gave."""
    before, started = side.server.cpu_seconds(), time.perf_counter()
    result = None
    for _ in range(times):
        result = call()
    return (side.server.cpu_seconds() - before) / times, (time.perf_counter() - started) / times, result


def batches(run: str, keys: int, steps: int, first: int) -> Iterator[bytes]:
    """Bodies of log-batch: ``keys`` metrics at ``steps`` steps each, going on for ever."""
    while True:
        metrics = [
            {"key": f"train/metric_{key}", "value": key + step / 7, "timestamp": START_MS + step, "step": step}
            for step in range(first, first + steps)
            for key in range(keys)
        ]
        yield orjson.dumps({"run_id": run, "metrics": metrics, "params": [], "tags": []})
        first += steps


def writer(side: Side, keys: int, steps: int) -> Callable[[], Any]:
    """A call that sends the next batch into a run of its own."""
    bodies = batches(side.new_run(), keys, steps, 0)
    return lambda: side.server.call("POST", f"{API}runs/log-batch", next(bodies))


def history_pages(side: Side) -> int:
    """Every point of the long metric over MLflow's protocol, page by page; how many came."""
    token, count = "", 0
    while True:
        query = {
            "run_id": side.long,
            "metric_key": NAME,
            "max_results": PAGE,
            **({"page_token": token} if token else {}),
        }
        found = side.server.get(f"{API}metrics/get-history?{urlencode(query)}")
        count += len(found["metrics"])
        token = found.get("next_page_token", "")
        if not token:
            return count


def history_arrow(side: Side) -> int:
    """Every point of the long metric as Arrow; how many came."""
    import pyarrow as pa

    data = side.server.call("GET", f"/api/v1/logged-runs/{uuid.UUID(side.long)}/history.arrow?name={NAME}")
    return int(pa.ipc.open_stream(data).read_all().num_rows)


def chart(side: Side) -> list[float]:
    """Values that a chart of the long metric draws."""
    if side.is_ours:
        found = side.server.get(f"/api/v1/logged-runs/{uuid.UUID(side.long)}/chart?name={NAME}&limit={SHOWN}")
        return [float(value) for value in found["value"]]
    query = urlencode({"run_ids": side.long, "metric_key": NAME, "max_results": SHOWN})
    found = side.server.get(f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?{query}")
    return [float(item["value"]) for item in found["metrics"]]


SEARCHES: dict[str, dict[str, Any]] = {
    "first_100": {},
    "filtered": {"filter": "metrics.loss < 0.5 and params.lr = '3e-4'"},
    "ordered_by_a_metric": {"order_by": ["metrics.loss ASC"]},
}


def search(side: Side, given: dict[str, Any]) -> int:
    """The first 100 runs of a search; how many came."""
    body = {"experiment_ids": [side.experiment], "max_results": 100, **given}
    return len(side.server.post(f"{API}runs/search", body).get("runs", []))


def compared(ours: list[float], theirs: list[float], **more: Any) -> dict[str, Any]:
    """Medians, and the median of the ratios within a round; ``mlflow`` and ``ratio`` None where it did not run."""
    ratios = [other / max(mine, 1e-6) for mine, other in zip(ours, theirs, strict=False)]
    return {
        "ours": round(statistics.median(ours), 6),
        "mlflow": round(statistics.median(theirs), 6) if theirs else None,
        "ratio": round(statistics.median(ratios), 2) if ratios else None,
        "repeats": [len(ours), len(theirs)],
        "unit": "CPU seconds of the server for one operation",
        **more,
    }


def _rounds(sides: list[Side], calls: Sequence[Callable[[], Any]], repeats: int, times: int) -> list[list[float]]:
    """CPU seconds by side: ``repeats`` rounds, both in each, after one round that does not count."""
    for call in calls:
        call()
    found: list[list[float]] = [[] for _ in sides]
    for repeat in range(repeats):
        order = list(range(len(sides)))
        for place in order if repeat % 2 == 0 else reversed(order):
            found[place].append(cost(sides[place], calls[place], times)[0])
    return [*found, *([[]] if len(found) == 1 else [])]


def measure_writes(sides: list[Side], sizes: Sizes, say: Say) -> dict[str, Any]:
    """Batches of 1000 points (50 names, 20 steps) and of 40 names."""
    found = {}
    for name, keys, steps, times in (
        ("log_batch_1000", 50, 20, sizes.requests),
        ("log_batch_40", 40, 1, sizes.requests * 3),
    ):
        calls = [writer(side, keys, steps) for side in sides]
        ours, theirs = _rounds(sides, calls, sizes.repeats, times)
        found[name] = compared(ours, theirs, points_per_cpu_second=round(keys * steps / statistics.median(ours)))
        say(f"{name}: {found[name]['ours'] * 1000:.2f} ms, ratio {found[name]['ratio']}")
    return found


def measure_search(sides: list[Side], sizes: Sizes, say: Say) -> dict[str, Any]:
    """Three searches; the result is their sum, the parts stand beside."""
    parts: dict[str, dict[str, Any]] = {}
    sums: list[list[float]] = [[0.0] * sizes.repeats for _ in range(2)]
    for name, given in SEARCHES.items():
        calls = [partial(search, side, given) for side in sides]
        counts = [call() for call in calls]
        if len(set(counts)) != 1:
            raise BenchmarkError(f"search {name}: got {counts} runs, expected equal numbers")
        ours, theirs = _rounds(sides, calls, sizes.repeats, 1)
        parts[name] = compared(ours, theirs, found=counts[0])
        for total, values in zip(sums, (ours, theirs), strict=True):
            for place, value in enumerate(values):
                total[place] += value
        say(f"search {name}: {parts[name]['ours'] * 1000:.1f} ms, ratio {parts[name]['ratio']}")
    return compared(sums[0], sums[1] if len(sides) == 2 else [], parts=parts)


def measure_history(sides: list[Side], sizes: Sizes, say: Say) -> dict[str, Any]:
    """Every point: ours as Arrow (and over MLflow's protocol), MLflow's page by page once, since it takes minutes."""
    arrow, theirs, pages = [], [], []
    for _ in range(sizes.repeats):
        cpu, _, count = cost(sides[0], lambda: history_arrow(sides[0]))
        arrow.append(cpu)
        _all(count, sizes)
    cpu, _, count = cost(sides[0], lambda: history_pages(sides[0]))
    _all(count, sizes)
    pages.append(cpu)
    for side in sides[1:]:
        cpu, _, count = cost(side, partial(history_pages, side))
        _all(count, sizes)
        theirs.append(cpu)
    found = compared(
        arrow, theirs, how="ours as Arrow, MLflow in pages of 25,000", ours_over_mlflows_protocol=round(pages[0], 4),
        ratio_over_mlflows_protocol=round(theirs[0] / pages[0], 2) if theirs else None,
    )  # fmt: skip
    say(f"history: {found['ours']:.3f} s as Arrow, {pages[0]:.3f} s over MLflow's protocol, ratio {found['ratio']}")
    return found


def _all(count: int, sizes: Sizes) -> None:
    if count != sizes.points:
        raise BenchmarkError(f"history: got {count} points, expected {sizes.points}")


def measure_chart(sides: list[Side], sizes: Sizes, first: tuple[float, float], say: Say) -> dict[str, Any]:
    """A chart of every point. ``first``: (CPU, wall) seconds of the first request after a start of our server."""
    calls = [partial(chart, side) for side in sides]
    kept = [SPIKE in call() for call in calls]
    ours, theirs = _rounds(sides, calls, sizes.repeats, 1)
    found = compared(
        ours, theirs, spike_kept=kept[0], mlflow_spike_kept=kept[1] if len(kept) == 2 else None,
        first_request_cpu=round(first[0], 4), first_request_wall=round(first[1], 4),
    )  # fmt: skip
    say(f"chart: {found['ours'] * 1000:.1f} ms, first request {first[1] * 1000:.0f} ms wall, ratio {found['ratio']}")
    return found


def _seeded(home: Path, sizes: Sizes) -> tuple[str, str, str]:
    manage(home, "migrate", "--verbosity", "0")
    script = (
        "from workbench.benchmarks.seeding import contents, fill_ours\nimport json\n"
        f"print(json.dumps(fill_ours(contents({sizes.runs}, {sizes.points}, {sizes.seed}))))\n"
    )
    done = manage(home, "shell", "--no-imports", "-c", script)
    experiment, long, token = json.loads(done.decode().strip().splitlines()[-1])
    return experiment, long, token


@contextmanager
def both(folder: Path, sizes: Sizes, python: Path | None, what: Contents, say: Say) -> Iterator[tuple[list[Side], Any]]:
    """The servers with their contents, and the cost of our first chart after a start."""
    home = folder / "home"
    home.mkdir()
    say(f"filling both with {sizes.runs} runs and {sizes.points} points")
    experiment, long, token = _seeded(home, sizes)
    with our_server(home, token) as server:  # a process of its own: nothing that it keeps is warm
        server.get("/api/v1/me")
        first = cost(Side(server, experiment, long, True), lambda: chart(Side(server, experiment, long, True)))
    with ExitStack() as stack:
        sides = [Side(stack.enter_context(our_server(home, token)), experiment, long, True)]
        if python is not None:
            theirs = folder / "mlflow"
            theirs.mkdir()
            with mlflow_server(python, theirs):
                pass  # it makes its tables
            long = fill_mlflow(theirs / "mlflow.db", what)
            sides.append(Side(stack.enter_context(mlflow_server(python, theirs)), "0", long, False))
        yield sides, first[:2]


def benchmark(sizes: Sizes, cache: Path, say: Say, *, with_mlflow: bool = True) -> dict[str, Any]:
    """Every comparison. Without MLflow (``with_mlflow`` False, or it cannot be installed) its half is None."""
    reason = None if with_mlflow else "not asked for"
    python = None
    if with_mlflow:
        try:
            python = mlflow_python(cache, say)
        except BenchmarkError as error:
            reason = str(error)
            say(reason)
    what = contents(sizes.runs, sizes.points, sizes.seed)
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder, ExitStack() as stack:
        sides, first = stack.enter_context(both(Path(folder), sizes, python, what, say))
        found = measure_writes(sides, sizes, say)
        found["search_10k"] = measure_search(sides, sizes, say)
        found["chart_1m"] = measure_chart(sides, sizes, first, say)
        found["history_1m"] = measure_history(sides, sizes, say)
    for name, (most, least) in GOALS.items():
        ratio = found[name]["ratio"]
        met = found[name]["ours"] <= most and (least is None or ratio is None or ratio >= least)
        found[name]["goal"] = {"ours_at_most": most, "ratio_at_least": least, "met": met}
    facts = {"cores": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)}
    facts |= {"mlflow": MLFLOW_VERSION if python is not None else None, "mlflow_missing": reason}
    return {**found, "points": sizes.points, "runs": sizes.runs, "machine": facts}
