"""Hand-made probe records: two tasks, a decision each, every number small enough to count."""

from __future__ import annotations

from typing import Any

from workbench.contracts.probe import (
    CORRUPT,
    DELETE,
    FACTUAL,
    MEASURED,
    PARAPHRASE,
    RANDOM,
    READ,
    UNAVAILABLE,
    ProbeCost,
    ProbedDecision,
    ProbeRecord,
    ProbeRepeat,
    ProbeSample,
    ProbeStatement,
    ProbeTask,
    ProbeThought,
    ProbeTrial,
    ProbeTurn,
)
from workbench.contracts.records import Identities


def call(name: str) -> dict[str, Any]:
    """A canonical tool action."""
    return {"tool": name, "arguments": {}}


def answer(text: str | None) -> dict[str, Any] | None:
    """A final answer; None for none."""
    return None if text is None else {"answer": text, "citations": []}


def sample(action: str | None, final: str | None, *, success: bool = False, forced: int = 0) -> ProbeSample:
    """One call (or an unparseable turn of text ``?``), then a Finish with ``final``; 3 ids a turn."""
    given = None if action is None else call(action)
    turns = [ProbeTurn(0, (1, 2, 3), forced, "need", action or "?", given, None if action else "no action", "seen")]
    if final is not None:
        turns.append(ProbeTurn(1, (4, 5, 6), 0, "found", final, answer(final), None, None))
    terminal = "finish" if final is not None else "policy_error"
    return ProbeSample("valid", None, terminal, tuple(turns), answer(final), success)


def trial(kind: str, made: ProbeSample | None, *, states: str | None = None, reason: str | None = None) -> ProbeTrial:
    """A measured trial, or an unavailable one where there is no sample."""
    state = MEASURED if made is not None else UNAVAILABLE
    stated = None if states is None else call(states)
    return ProbeTrial(kind, state, reason, "text", (7,), stated, made)


def decision(factual: ProbeSample | None, *others: tuple[ProbeSample | None, str | None]) -> ProbedDecision:
    """Decision 0; ``others``: (sample, stated action) of delete, corrupt, paraphrase, random."""
    kinds = (DELETE, CORRUPT, PARAPHRASE, RANDOM)
    found = [trial(kind, made, states=states) for kind, (made, states) in zip(kinds, others, strict=True)]
    return ProbedDecision(0, 2, (trial(FACTUAL, factual), *found))


def thought(
    think: str | None, action: str | None, agrees: bool | None, *holds: bool | None, state: str = READ
) -> ProbeThought:
    """One read think segment with facts that hold or not."""
    facts = tuple(ProbeStatement("fact", item) for item in holds)
    return ProbeThought(0, 0, state, None, think, action, agrees, facts)


def task(
    repeats: list[ProbeSample],
    thoughts: list[ProbeThought] | None = None,
    decisions: list[ProbedDecision] | None = None,
) -> ProbeTask:
    """One task."""
    rows = tuple(ProbeRepeat(index, str(index), item) for index, item in enumerate(repeats))
    return ProbeTask("task", "0" * 64, "family", rows, tuple(thoughts or ()), tuple(decisions or ()))


def record(*tasks: ProbeTask, cost: ProbeCost | None = None, **changes: Any) -> ProbeRecord:
    """A probe of these tasks; its cost is counted from them unless given."""
    trials = [item for each in tasks for probed in each.decisions for item in probed.trials]
    made = [item.sample for item in trials if item.sample is not None]
    rollouts = [item.sample for each in tasks for item in each.repeats]
    tokens = sum(len(turn.generated_ids) - turn.forced for each in (*rollouts, *made) for turn in each.turns)
    names = (
        "base_model",
        "adapter",
        "tokenizer",
        "formatter",
        "environment",
        "harness",
        "runtime",
        "reward",
        "task_set",
    )
    values: dict[str, Any] = {
        "uid": "00000000-0000-5000-8000-000000000001", "run_uid": "00000000-0000-5000-8000-000000000002",
        "plan_sha256": "0" * 64, "batch": 4, "split": "validation", "settings": {}, "sampling": {}, "max_decisions": 5,
        "identities": Identities(**dict.fromkeys(names, "x"), policy_version=4), "tasks": tuple(tasks),
        "unavailable": (), "cost": cost or ProbeCost(len(rollouts), len(made), tokens, 0),
    }  # fmt: skip
    return ProbeRecord(**{**values, **changes})
