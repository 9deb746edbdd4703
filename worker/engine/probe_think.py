"""Interventions on a think segment: which decisions, what stands in the segment's place, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.capture import SEGMENT_THINK
from workbench.contracts.probe import (
    ABSENT,
    CORRUPT,
    DELETE,
    FACTUAL,
    FAILED,
    INTERVENTIONS,
    MEASURED,
    PARAPHRASE,
    RANDOM,
    READ,
    UNAVAILABLE,
    UNREADABLE,
    ProbeStatement,
    ProbeThought,
)
from workbench.contracts.records import TurnRecord
from workbench.contracts.seeds import derive_seed
from worker.environments.base import THOUGHT_MEMBERS, Environment, FinishAction, Session, Task, Thoughts, ToolAction

from .noise import uniforms
from .policy import Policy
from .render import ForcesThink
from .rollout import describe_error

NO_FORCE = "the formatter {name} cannot force a think segment"
UNREADABLE_BYTES = "\ufffd"
DRAWS = 64  # random ids that are looked at for each one wanted: far more than any vocabulary refuses


@dataclass(frozen=True)
class Forced:
    """What one trial puts in the segment's place. ``prefix``: leading ids of the turn, marks included.

    ``prefix`` is None where there is nothing to force; ``state`` and ``reason`` then say why.
    """

    intervention: str
    state: str
    reason: str | None
    text: str | None
    ids: tuple[int, ...]
    prefix: tuple[int, ...] | None
    states_action: dict[str, Any] | None


def action_value(action: ToolAction | FinishAction | None) -> dict[str, Any] | None:
    """Canonical value of an action: tool with arguments, or answer with citations; None stays None."""
    if action is None:
        return None
    if isinstance(action, FinishAction):
        return {"answer": action.answer, "citations": list(action.citations)}
    return {"tool": action.tool, "arguments": dict(action.arguments)}


def turn_action(turn: TurnRecord) -> ToolAction | FinishAction | None:
    """The action of a recorded turn; None for an unparseable one."""
    if turn.finish is not None:
        return FinishAction(turn.finish["answer"], tuple(turn.finish["citations"]))
    if turn.tool_call is not None:
        return ToolAction(turn.tool_call.tool, turn.tool_call.arguments)
    return None


def thoughts_of(environment: Environment) -> tuple[Thoughts | None, str | None]:
    """The environment's reading of think segments, or None with the reason."""
    missing = [name for name in THOUGHT_MEMBERS if not callable(getattr(environment, name, None))]
    if missing:
        return None, f"the environment {environment.id} has no {', '.join(missing)}"
    return environment, None  # type: ignore[return-value]


def chosen_decisions(turns: Sequence[TurnRecord], most: int) -> list[int]:
    """At most ``most`` decisions with a think segment and a legal action, spread evenly from the first to the last."""
    found = [turn.decision for turn in turns if turn.think_text and turn_action(turn) is not None]
    if len(found) <= most:
        return found
    if most == 1:
        return found[:1]
    return [found[round(index * (len(found) - 1) / (most - 1))] for index in range(most)]


def think_length(segments: Sequence[int]) -> int:
    """Leading ids of a turn that belong to its think segment, marks included."""
    return next((index for index, kind in enumerate(segments) if kind != SEGMENT_THINK), len(segments))


def random_ids(policy: Policy, count: int, seed: str) -> tuple[int, ...]:
    """``count`` ids drawn evenly from the vocabulary; neither special ids nor parts of a character."""
    tokenizer = policy.tokenizer
    excluded = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_encoder", {}).values()}
    found: list[int] = []
    for value in uniforms(seed, 0, 0, DRAWS * count).tolist():
        token = int(value * len(tokenizer))
        if token not in excluded and UNREADABLE_BYTES not in tokenizer.decode([token]):
            found.append(token)
            if len(found) == count:
                break
    return tuple(found)


def interventions(
    policy: Policy,
    thoughts: Thoughts | None,
    missing: str | None,
    task: Task,
    session: Session,
    turn: TurnRecord,
    ids: Sequence[int],
    segments: Sequence[int],
    seed: str,
) -> Iterator[Forced]:
    """The factual segment and every intervention on it, in the order of the record.

    ``ids`` and ``segments`` of the whole factual turn; ``missing``: why ``thoughts`` is None.
    """
    formatter = policy.formatter
    length, text = think_length(segments), str(turn.think_text)
    if not isinstance(formatter, ForcesThink):
        reason = NO_FORCE.format(name=formatter.name)
        yield from (Forced(name, UNAVAILABLE, reason, None, (), None, None) for name in (FACTUAL, *INTERVENTIONS))
        return
    inner = length - len(formatter.force_think([]))
    factual = tuple(ids[:length])
    yield Forced(FACTUAL, MEASURED, None, text, factual, factual, _stated(thoughts, task, session, text))
    for name in INTERVENTIONS:
        try:
            changed = _changed(name, policy, formatter, thoughts, task, session, text, inner, derive_seed(name, seed))
        except Exception as error:  # code of an environment from outside
            yield Forced(name, FAILED, describe_error(name, error), None, (), None, None)
            continue
        if changed is None:
            reason = missing or "the environment has none for this think segment"
            yield Forced(name, UNAVAILABLE, reason, None, (), None, None)
            continue
        inside, shown = changed
        stated = _stated(thoughts, task, session, shown) if name in (CORRUPT, PARAPHRASE) else None
        yield Forced(name, MEASURED, None, shown, tuple(inside), tuple(formatter.force_think(inside)), stated)


def _changed(
    name: str,
    policy: Policy,
    formatter: ForcesThink,
    thoughts: Thoughts | None,
    task: Task,
    session: Session,
    text: str,
    length: int,
    seed: str,
) -> tuple[list[int], str] | None:
    """(ids, text) of the changed segment; None where the environment has none."""
    if name == DELETE:
        return [], ""
    if name == RANDOM:
        drawn = random_ids(policy, length, seed)
        if not drawn:
            raise ValueError(f"random ids: got none of {length}, expected at least one")
        return list(drawn), str(policy.tokenizer.decode(list(drawn)))
    if thoughts is None:
        return None
    if name == CORRUPT:
        other = thoughts.corrupt_thought(task, session.fork(), text, seed)
    else:
        other = thoughts.paraphrase_thought(task, session.fork(), text)
    if other is None:
        return None
    if other == text:
        raise ValueError(f"{name}_thought: got the segment itself, expected another text")
    return formatter.encode(other), other


def _stated(thoughts: Thoughts | None, task: Task, session: Session, text: str) -> dict[str, Any] | None:
    """Action that a text states, by the environment; None where it states none or cannot be read."""
    if thoughts is None:
        return None
    try:
        found = thoughts.read_thought(task, session.fork(), text)
    except Exception:  # told by the thought itself: ``read`` notes the failure of the same call
        return None
    return None if found is None else action_value(found.action)


def read(thoughts: Thoughts | None, missing: str | None, task: Task, session: Session, turn: TurnRecord, repeat: int
         ) -> ProbeThought:  # fmt: skip
    """One think segment as the environment reads it, beside the action that followed."""
    if not turn.think_text:
        return ProbeThought(repeat, turn.decision, ABSENT, None, None, None, None, ())
    action, found, label = turn_action(turn), None, None
    state, reason = UNREADABLE, "of no form that the environment reads"
    if thoughts is None:
        state, reason = UNAVAILABLE, str(missing)
    else:
        try:
            found = thoughts.read_thought(task, session.fork(), turn.think_text)
            label = thoughts.action_label(action) if action is not None else None
        except Exception as error:  # code of an environment from outside
            found, label, state, reason = None, None, FAILED, describe_error("environment", error)
    if found is None:
        return ProbeThought(repeat, turn.decision, state, reason, None, label, None, ())
    agrees = None if found.action is None else action_value(found.action) == action_value(action)
    statements = tuple(ProbeStatement(item.text, item.holds) for item in found.statements)
    return ProbeThought(repeat, turn.decision, READ, None, found.label, label, agrees, statements)
