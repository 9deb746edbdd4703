"""``manage.py bench engine`` on a tiny random model: the structure of its result, and its refusals."""

from __future__ import annotations

import json
import sys
import uuid
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from tests.engine.support import LORA, write_model
from workbench.contracts.spec import complete_plan
from workbench.management.commands import bench
from worker.benchmarks import engine, product
from worker.benchmarks.engine import GOALS, benchmark, is_met
from worker.benchmarks.measure import Timed, cpu_ratio, interleave, rate_ratio
from worker.benchmarks.trl_step import TrlMissing, require_trl
from worker.benchmarks.world import Sizes
from worker.engine import policy as policy_module
from worker.study import load_study

TINY = Sizes(repeats=2, group_size=2, rollout_groups=2, update_groups=2, equal_groups=2, equal_tokens=8)


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    """The bundled study's settings over a tiny random model and the scripted environment of the engine tests."""
    policy_module.clear_residents()
    found = complete_plan(load_study("fatal-mask-pair", "full")[1])
    folder = write_model(tmp_path / "model")
    found["policy"] |= {"model": str(folder), "formatter": "tests.engine.support:TinyFormatter", "adaptation": LORA}
    found["environment"] = {"id": "tests.engine.support:TinyEnvironment", "config": {}}
    found["reward"] = {"id": "tiny", "version": "1"}
    found["rollout"] |= {"max_decisions": 3, "sampling": {**found["rollout"]["sampling"], "max_new_tokens": 8}}
    return found


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore")  # the libraries that are compared with warn about their own defaults
def test_every_comparison_is_measured(plan: dict[str, Any], tmp_path: Path) -> None:
    """Ratios with their spread, losses equal to 1e-6, gradients to 1e-5 of the greatest, and the machine."""
    said: list[str] = []
    result = benchmark(plan, TINY, tmp_path / "cache", said.append)
    for name in GOALS:
        item = result[name]
        assert item["low"] <= item["median"] <= item["high"]
        assert item["unit"] and item["how"]
        assert result["goals"][name]["met"] is is_met(name, item["median"])
    assert result["loss_difference"]["median"] <= 1e-6
    assert result["gradient_difference"]["median"] <= 1e-6
    assert result["update_vs_trl_cpu"]["repeats"] == 2
    assert result["update_vs_trl_cpu"]["median"] > 0
    assert result["machine"]["threads"] == 1
    assert set(result["machine"]) >= {"cores", "torch", "threads", "load", "load_after"}
    assert any("rollouts 2/2" in line for line in said)
    json.dumps(result, allow_nan=False)


def test_threads_are_set_back(plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        assert torch.get_num_threads() == 1
        raise RuntimeError("no world")

    monkeypatch.setattr(engine, "BenchWorld", broken)
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError, match="no world"):
            benchmark(plan, TINY, tmp_path, lambda line: None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_goals_have_a_direction() -> None:
    assert is_met("update_vs_trl_cpu", 0.5) and not is_met("update_vs_trl_cpu", 0.51)
    assert is_met("rollout_vs_generate_one", 6.0) and not is_met("rollout_vs_generate_one", 5.9)


def test_ratios_are_taken_within_a_repeat() -> None:
    """CPU 1/2, 2/2, 3/4: median 0.75, though the medians' own ratio is 1. Rates 4/1 per 1 and 8/2 per 2: 4, 2."""
    ours, theirs = [Timed(c, c, 4.0) for c in (1.0, 2.0, 3.0)], [Timed(c, c, 4.0) for c in (2.0, 2.0, 4.0)]
    found = cpu_ratio(ours, theirs, "")
    assert (found["median"], found["low"], found["high"], found["repeats"]) == (0.75, 0.5, 1.0, 3)
    rates = rate_ratio([Timed(1.0, 1.0, 4.0), Timed(2.0, 2.0, 8.0)], [Timed(1.0, 9.0, 1.0), Timed(1.0, 9.0, 2.0)], "")
    assert (rates["low"], rates["high"]) == (2.0, 4.0)


def test_the_order_of_arms_turns() -> None:
    """One untimed round in the given order, then ab, ba."""
    called: list[str] = []

    def arm(name: str) -> Any:
        return lambda: called.append(name) or 1.0

    interleave({"a": arm("a"), "b": arm("b")}, 2, lambda line: None, "x")
    assert "".join(called) == "ab" + "ab" + "ba"


def test_without_trl_nothing_starts(plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trl", None)
    with pytest.raises(TrlMissing, match="make bench"):
        benchmark(plan, TINY, tmp_path / "cache", lambda line: None)
    assert not (tmp_path / "cache").exists()


def test_another_major_version_of_trl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trl", SimpleNamespace(__version__="0.29.0"))
    with pytest.raises(TrlMissing, match=r"got version 0\.29\.0, expected 1\.x"):
        require_trl()


def test_command_refuses_no_repeats() -> None:
    with pytest.raises(CommandError, match="repeats: got 0"):
        call_command("bench", "engine", "--repeats", "0")


@pytest.mark.django_db
def test_command_prints_one_object_on_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"median": 0.4, "low": 0.3, "high": 0.6, "repeats": 3, "unit": "", "how": ""}
    result = {name: item for name in GOALS} | {
        "goals": {name: {"goal": "at most 0.5", "met": False} for name in GOALS},
        "collect_tokens_per_wall_second": item,
        "machine": {"cores": 2, "threads": 1, "torch": "2", "load": 0.1},
    }
    monkeypatch.setattr(bench, "initialise", lambda home: None)
    monkeypatch.setattr(engine, "benchmark", lambda *_: dict(result))
    output = StringIO()
    call_command("bench", "engine", "--json", stdout=output)
    (line,) = output.getvalue().splitlines()
    found = json.loads(line)
    assert set(found) >= set(bench.NAMES)
    assert found["product_share"] == {"median": None, "reason": "no closed execution in this home"}
    output = StringIO()
    call_command("bench", "engine", stdout=output)
    assert "update_vs_trl_cpu            0.4 (0.3 to 0.6, 3 repeats)  goal at most 0.5: MISSED" in output.getvalue()
    assert "product_share                not measured: no closed execution" in output.getvalue()


@pytest.mark.django_db
def test_product_share_reads_the_receipts_of_one_execution() -> None:
    """100 tokens in 1 s and 300 in 2 s over 200 a second: 0.5 and 0.75 a job, 400 / 3 / 200 together."""
    own, run, other = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    execution: Any = SimpleNamespace(uid=own, runs=SimpleNamespace(values_list=lambda *_, **__: [run]))
    for stream, kind, timing in (
        (f"execution:{own}", "shard.collected", {"policy_tokens": 100, "seconds": 1.0}),
        (f"run:{run}", "shard.collected", {"policy_tokens": 300, "seconds": 2.0}),
        (f"run:{run}", "shard.lost", {}),
        (f"run:{other}", "shard.collected", {"policy_tokens": 900, "seconds": 1.0}),
    ):
        with transaction.atomic():
            append_receipt(
                stream, kind, None, {"machine": {"timing": timing}}, actor=service_actor("worker"), at=timezone.now()
            )
    found = product.product_share(execution, 200.0)
    assert (found["low"], found["high"], found["repeats"]) == (0.5, 0.75, 2)
    assert found["study"] == pytest.approx(400 / 3 / 200)


@pytest.mark.django_db
def test_product_share_of_an_execution_without_timings_is_not_measured() -> None:
    execution: Any = SimpleNamespace(uid=uuid.uuid4(), runs=SimpleNamespace(values_list=lambda *_, **__: []))
    assert product.product_share(execution, 200.0)["median"] is None
