"""State tables: pure data. A transition that is not listed here does not exist.

``runs.actions`` moves a head by compare-and-set and appends the transition's row in one transaction.
"""

from __future__ import annotations

PLAN_TRANSITIONS: dict[str, frozenset[str]] = {
    "draft": frozenset({"frozen"}),
    "frozen": frozenset({"superseded"}),
    "superseded": frozenset(),
}

# An execution carries a frozen plan from its first probe to its closure manifest.
EXECUTION_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"running", "cancelled"}),
    "running": frozenset({"paused", "interrupted", "stopped", "cancelled", "closed"}),
    "paused": frozenset({"running", "cancelled"}),
    "interrupted": frozenset({"running", "cancelled"}),
    "stopped": frozenset(),  # by a frozen gate: the experiment's own end
    "cancelled": frozenset(),
    "closed": frozenset(),
}
EXECUTION_PHASES = ("preflight", "train", "close", "done")

RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"running", "paused", "refused", "stopped", "cancelled"}),
    "running": frozenset({"paused", "interrupted", "stopped", "partial_invalid", "cancelled", "completed"}),
    "paused": frozenset({"running", "pending", "stopped", "partial_invalid", "cancelled"}),
    "interrupted": frozenset({"running", "stopped", "cancelled"}),  # another runtime identity; needs a recovery plan
    "refused": frozenset(),  # its gate was not met: never run, proves nothing about the arm
    "stopped": frozenset(),  # the experiment's own end: preflight or error-rate gate
    "partial_invalid": frozenset(),  # broken by an error; keeps what it committed, never merged
    "cancelled": frozenset(),
    "completed": frozenset(),
}
RUN_PHASES = ("train", "evaluate", "done")

JOB_TRANSITIONS: dict[str, frozenset[str]] = {
    "queued": frozenset({"leased", "cancelled"}),
    "leased": frozenset({"succeeded", "failed", "errored", "queued", "cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),  # the work broke a rule of the experiment
    "errored": frozenset(),  # our code or machine broke
    "cancelled": frozenset(),
}

TABLES = {
    "plan": PLAN_TRANSITIONS,
    "execution": EXECUTION_TRANSITIONS,
    "run": RUN_TRANSITIONS,
    "job": JOB_TRANSITIONS,
}


def is_terminal(table: str, state: str) -> bool:
    """True where no transition leaves ``state``."""
    return not TABLES[table][state]


def allowed(table: str, from_state: str, to_state: str) -> bool:
    """Whether the table lists this transition. Unknown states are an error, not a refusal."""
    transitions = TABLES[table]
    if from_state not in transitions or to_state not in transitions:
        raise KeyError(f"{table}: got {from_state!r} -> {to_state!r}, expected states of {sorted(transitions)}")
    return to_state in transitions[from_state]
