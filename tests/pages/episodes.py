"""Scripted episodes for page tests: turns with think, action and Observation, under a failure profile."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.failures import PROFILES

SYSTEM = (
    "<|system|> You answer from retrieved documents only. Tools: search, open. If the latest Observation is "
    "retryable and budget remains, do not finish for that alone. <|user|> "
)
TASKS = [
    ("opened-vial-days", "How many days may an opened vial of L 14 be kept at room temperature? Cite the document."),
    ("dose-unit-conflict", "Which unit does the label of K 2 use for its dose? Cite the document."),
    ("recall-batch-range", "Which batches of M 7 were recalled? Cite the notice."),
    ("label-storage-temp", "At what temperature is the opened L 14 stored? Cite the label."),
    ("reg-id-lookup", "What is the registration number of M 7? Cite the register."),
    ("trial-arm-count", "How many arms did the trial of K 2 have? Cite the report."),
]
THINK = [
    "Need the storage section of the label. Start with the label family.",
    "r 3 is the newest revision, open section 6.",
    "Retryable. Try again.",
    "Other source: the notice may repeat it.",
    "Once more on the label, older revision.",
    "Enough evidence, answer now.",
]


@dataclass
class Step:
    """One decision. ``status`` None: no call was executed."""

    think: str
    action: str
    tool: str | None
    arguments: dict[str, Any]
    status: str | None
    text: str
    injected: bool = False
    finish: dict[str, Any] | None = None
    error: str | None = None


@dataclass
class Episode:
    """One slot's steps with its outcome."""

    steps: list[Step]
    terminal: str
    injections: list[dict[str, Any]]
    fatal_start: int | None
    fatal_confirmed: int | None
    components: list[tuple[str, float, float | None]]
    gate: float
    reward: float
    success: bool
    failures: int
    recovered: bool | None
    extras: dict[str, Any] = field(default_factory=dict)


def _call(rng: random.Random, index: int, task: str, failed: bool) -> Step:
    if index % 2 == 0:
        arguments: dict[str, Any] = {"q": f"{task.split('-')[0]} storage days", "family": "label"}
        tool = "search"
    else:
        arguments, tool = {"doc": f"label/L-14/r{rng.choice([2, 3])}", "sec": 6}, "open"
    action = json.dumps({"tool": tool, "args": arguments}, separators=(",", ":"))
    text = (
        "error: timeout, retryable=true"
        if failed
        else rng.choice(
            ["ok: 3 hits. label/L-14/r3, label/L-14/r2, notice/0417", 'ok: "After first opening: 28 days below 25 C."']
        )
    )
    return Step(THINK[min(index, 4)], action, tool, arguments, "timeout" if failed else "ok", text, failed)


def play(rng: random.Random, task: str, profile: str, skill: float, budget: int = 6) -> Episode:
    """One episode; ``skill`` in 0..1 is how likely it ends with a good Finish."""
    injected, steps, streak, start, confirmed, failures, recovered = PROFILES[profile], [], 0, None, None, 0, None
    depth = rng.choice([1, 2, 3, 5])
    parse_error = rng.random() < 0.08 * (1.3 - skill)
    for index in range(min(depth + len(injected), budget - 1)):
        failed = index in injected
        steps.append(_call(rng, index, task, failed))
        failures += failed
        streak = streak + 1 if failed else 0
        recovered = (recovered or False) or (not failed and failures > 0) if failures else None
        if streak == 3 and confirmed is None:
            start, confirmed = index - 2, index
    calls = len(steps)
    if parse_error:
        steps.append(
            Step(
                "Open it.",
                '{"tool":"open","args":',
                None,
                {},
                None,
                "",
                error="action: got an unfinished object, expected one JSON object",
            )
        )
        terminal = "policy_error"
    elif rng.random() < 0.9:
        cited = ["label/L-14/r2"] if rng.random() < skill else []
        finish = {"answer": "28 days, below 25 C", "citations": cited}
        steps.append(
            Step(
                THINK[5],
                json.dumps({"finish": {"answer": finish["answer"], "cite": cited}}, separators=(",", ":")),
                None,
                {},
                None,
                "",
                finish=finish,
            )
        )
        terminal = "finish"
    else:
        terminal = "budget_exhausted"
    good = bool(steps[-1].finish and steps[-1].finish["citations"])
    evidence = round(rng.choice([0.6, 0.8, 1.0]), 2) if good else round(rng.choice([0.0, 0.2, 0.4]), 2)
    process = 1.0 if terminal == "finish" else 0.35
    efficiency = max(0.0, 1 - 0.2 * calls)
    gate = 0.0 if parse_error else 1.0
    components = [
        ("evidence", 0.45, evidence),
        ("process", 0.45, process),
        ("efficiency", 0.1, efficiency),
        ("medical_correctness", 0.0, None),
        ("safety", 0.0, None),
    ]
    total = gate * min(1.0, 0.45 * evidence + 0.45 * process + 0.1 * efficiency)
    injections = [
        {
            "ordinal": o,
            "state": "realized" if o < calls else "scheduled_but_unreached",
            "decision": o if o < calls else None,
        }
        for o in injected
    ]
    return Episode(
        steps,
        terminal,
        injections,
        start,
        confirmed,
        components,
        gate,
        round(total, 4),
        good and terminal == "finish",
        failures,
        recovered,
    )
