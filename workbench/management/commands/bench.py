"""``manage.py bench``: the engine against TRL, `transformers` and the ideal; logging against a real MLflow server;
isolation of a trial against a bare process."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from workbench.home import initialise

NAMES = (
    "update_vs_trl_cpu",
    "loss_difference",
    "rollout_vs_generate_one",
    "rollout_vs_generate_batched",
    "update_vs_ideal",
    "product_share",
)
STUDY = "fatal-mask-pair"


def text(result: dict[str, Any]) -> str:
    """The result as lines for people."""
    lines = []
    for name in NAMES:
        item = result[name]
        if item["median"] is None:
            lines.append(f"{name:<28} not measured: {item['reason']}")
            continue
        goal = result["goals"].get(name)
        verdict = "" if goal is None else f"  goal {goal['goal']}: {'met' if goal['met'] else 'MISSED'}"
        spread = f"{item['median']:.3g} ({item['low']:.3g} to {item['high']:.3g}, {item['repeats']} repeats)"
        lines.append(f"{name:<28} {spread}{verdict}")
    facts = result["machine"]
    lines.append(f"{facts['cores']} cores, {facts['threads']} thread, torch {facts['torch']}, load {facts['load']}")
    return "\n".join(lines)


class Command(BaseCommand):
    """Measures on the bundled study's policy and settings; results on standard output, progress on standard error."""

    help = "Measure the engine, logging (bench metrics) or the sandbox against their references."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("subject", choices=("engine", "metrics", "sandbox"), help="what to measure")
        parser.add_argument("--repeats", type=int, default=9, help="interleaved repeats of every comparison")
        parser.add_argument("--trials", type=int, default=200, help="sandbox: trials in a row")
        parser.add_argument("--points", type=int, default=1_000_000, help="metrics: points of the long metric")
        parser.add_argument("--runs", type=int, default=10_000, help="metrics: runs to search")
        parser.add_argument("--no-mlflow", action="store_true", help="metrics: ours alone")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["repeats"] < 1:
            raise CommandError(f"repeats: got {options['repeats']}, expected at least 1")
        if options["subject"] == "metrics":
            self._metrics(**options)
        elif options["subject"] == "sandbox":
            self._sandbox(**options)
        else:
            self._engine(**options)

    def _metrics(self, **options: Any) -> None:
        from workbench.benchmarks.metrics import GOALS, Sizes, benchmark

        sizes = Sizes(options["repeats"], points=options["points"], runs=options["runs"])
        if sizes.points < 1000 or sizes.runs < 1:
            raise CommandError(f"got {sizes.points} points and {sizes.runs} runs, expected at least 1000 and 1")
        result = benchmark(sizes, settings.CACHE_HOME, self._say, with_mlflow=not options["no_mlflow"])
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        for name in GOALS:
            item = result[name]
            theirs = "not measured" if item["mlflow"] is None else f"{item['mlflow'] * 1000:.1f} ms"
            met = "met" if item["goal"]["met"] else "MISSED"
            ratio = "—" if item["ratio"] is None else f"{item['ratio']:.1f}"
            ours = f"{item['ours'] * 1000:.1f} ms"
            self.stdout.write(f"{name:<16} ours {ours}, MLflow {theirs}, ratio {ratio}  goal {met}")

    def _sandbox(self, **options: Any) -> None:
        from worker.benchmarks.sandbox import benchmark
        from worker.sandbox.base import SandboxFault
        from worker.sandbox.choose import get_sandbox

        try:
            result = benchmark(get_sandbox(), options["trials"], self._say)
        except (SandboxFault, ValueError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(result))
            return
        for name in ("overhead", "trial", "bare"):
            values = f"median {result[f'{name}_median_ms']:.1f} ms, p95 {result[f'{name}_p95_ms']:.1f} ms"
            self.stdout.write(f"{name:<9} {values}")
        level, goal = result["level"], result["goal"]
        isolation = "unisolated" if level["unisolated"] else "isolated"
        met = "met" if goal["met"] else "MISSED"
        self.stdout.write(
            f"{level['backend']} {level['version']} ({isolation}; processes by {level['process_bound']}, memory by "
            f"{level['memory_bound']}); {result['complete']} of {result['trials']} complete, {result['reports']} "
            f"different report(s); left behind {sum(result['left'].values())}; goal "
            f"{goal['overhead_median_ms']} ms: {met}"
        )

    def _engine(self, **options: Any) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"  # before torch is loaded
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        initialise(settings.HOME)
        from workbench.contracts.spec import complete_plan
        from worker.benchmarks.engine import benchmark
        from worker.benchmarks.product import newest_closed, product_share
        from worker.benchmarks.trl_step import TrlMissing
        from worker.benchmarks.world import Sizes
        from worker.study import load_study

        plan = complete_plan(load_study(STUDY, "full")[1])
        try:
            result = benchmark(plan, Sizes(repeats=options["repeats"]), settings.CACHE_HOME, self._say)
        except TrlMissing as error:
            raise CommandError(str(error)) from error
        result["product_share"] = product_share(newest_closed(), result["collect_tokens_per_wall_second"]["median"])
        self.stdout.write(json.dumps(result) if options["json"] else text(result))

    def _say(self, line: str) -> None:
        self.stderr.write(line, lambda value: value)
        self.stderr.flush()
