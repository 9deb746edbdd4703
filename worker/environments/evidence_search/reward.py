"""Reward v2.1, success and premature finish: functions of the task and the recorded turns alone.

``total = gate * clip(0.45 * evidence + 0.45 * process + 0.10 * efficiency, 0, 1)``

The formula and the three components are those of reward v2.1; the sub-scores below are this
environment's own definitions, stored in each component's ``detail``. No call for recovery or Fatal
adds or subtracts anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.contracts.records import FINISH, OK, UNPARSEABLE, RewardComponent, RewardRecord, TurnRecord
from worker.environments.base import Task

REWARD_ID, REWARD_VERSION = "evidence_search.reward", "2.1"
SUCCESS_DEFINITION = "evidence_search.success/1"
WEIGHTS = {"evidence": 0.45, "process": 0.45, "efficiency": 0.10}
EVIDENCE_WEIGHTS = {"source": 0.25, "proximity": 0.5, "citation": 0.25}
EXTRA_CALL_COST = 0.25  # share of the efficiency component lost with each call after coverage
SAME_SOURCE, SAME_ENTITY = 0.5, 0.25  # graded proximity of a document that is not the needed one


def read_documents(turns: Sequence[TurnRecord]) -> dict[str, dict[str, str]]:
    """Documents whose text an ``ok`` Observation showed, by id (retrieved; a heading alone is not)."""
    found: dict[str, dict[str, str]] = {}
    for turn in turns:
        if turn.observation is not None and turn.observation.status == OK:
            for item in turn.observation.facts.get("documents", []):
                found.setdefault(item["id"], item)
    return found


def _finish(turns: Sequence[TurnRecord]) -> dict[str, Any] | None:
    return turns[-1].finish if turns else None


def _citations(turns: Sequence[TurnRecord]) -> tuple[str, ...]:
    finish = _finish(turns)
    return tuple(dict.fromkeys(finish["citations"])) if finish else ()


def _grade(needed: dict[str, str], document: dict[str, str]) -> float:
    if document["id"] == needed["id"]:
        return 1.0
    if document["entity"] != needed["entity"]:
        return 0.0
    return SAME_SOURCE if document["family"] == needed["family"] else SAME_ENTITY


def _evidence(task: Task, turns: Sequence[TurnRecord]) -> tuple[float, dict[str, Any]]:
    """0.25 * source + 0.5 * proximity + 0.25 * citation, each in [0, 1].

    ``source``     share of needed (entity, family) pairs of which a document was retrieved.
    ``proximity``  half: sum over needed documents of the best grade among cited and retrieved ones
                   (1 itself, 0.5 same entity and family, 0.25 same entity), over
                   max(needed, cited) so that citing everything is no remedy; half: share of needed
                   values that the answer states.
    ``citation``   share of cited ids that were retrieved; 0 where nothing is cited.
    """
    needed, read, cited = task.hidden["documents"], read_documents(turns), _citations(turns)
    finish = _finish(turns)
    pairs = {(item["entity"], item["family"]) for item in needed}
    met = {(item["entity"], item["family"]) for item in read.values()} & pairs
    valid = [read[item] for item in cited if item in read]
    grades = [max((_grade(item, document) for document in valid), default=0.0) for item in needed]
    words = str(finish["answer"]).split() if finish else []
    stated = sum(item["value"] in words for item in needed) / len(needed)
    detail = {
        "source": len(met) / len(pairs),
        "proximity": 0.5 * sum(grades) / max(len(needed), len(cited)) + 0.5 * stated,
        "citation": len(valid) / len(cited) if cited else 0.0,
        "answer_stated": stated,
        "cited": len(cited),
        "cited_retrieved": len(valid),
        "needed": len(needed),
        "needed_retrieved": sum(item["id"] in read for item in needed),
    }
    return sum(weight * detail[name] for name, weight in EVIDENCE_WEIGHTS.items()), detail


def _executed(turns: Sequence[TurnRecord]) -> list[TurnRecord]:
    return [turn for turn in turns if turn.tool_call is not None and turn.tool_call.executed and turn.observation]


def _productive(task: Task, executed: Sequence[TurnRecord]) -> list[bool]:
    """Per executed call: it showed a needed document, or its heading, for the first time."""
    needed = {item["id"] for item in task.hidden["documents"]}
    read: set[str] = set()
    listed: set[str] = set()
    productive = []
    for turn in executed:
        facts = turn.observation.facts if turn.observation and turn.observation.status == OK else {}
        new_read = {item["id"] for item in facts.get("documents", [])} & needed - read
        new_listed = {item["id"] for item in facts.get("listed", [])} & needed - read - listed
        productive.append(bool(new_read or new_listed))
        read |= new_read
        listed |= new_listed
    return productive


def _process(task: Task, turns: Sequence[TurnRecord], terminal: str) -> tuple[float, dict[str, Any]]:
    """Mean of three sub-scores in [0, 1]; none of them asks for evidence.

    ``legal_finish``  1 where the episode ended by a legal Finish.
    ``non_repeated``  1 - (calls repeated after the same call had already succeeded) / calls; 0
                      without any call. Trying a failed call again is no repeat: the instructions ask for it.
    ``productive``    productive calls / calls that the backend answered; 0 where it answered none.
    """
    executed = _executed(turns)
    answered: list[TurnRecord] = []
    done: list[tuple[str, Any]] = []
    repeats = 0
    for turn in executed:
        call, observation = turn.tool_call, turn.observation
        assert call is not None and observation is not None
        repeats += (call.tool, call.arguments) in done
        if observation.status == OK:
            done.append((call.tool, call.arguments))
        if call.backend_called:
            answered.append(turn)
    productive = sum(_productive(task, executed))
    detail = {
        "legal_finish": float(terminal == FINISH and _finish(turns) is not None),
        "non_repeated": 1 - repeats / len(executed) if executed else 0.0,
        "productive": productive / len(answered) if answered else 0.0,
        "calls": len(executed),
        "needless_repeats": repeats,
        "answered_calls": len(answered),
        "productive_calls": productive,
    }
    return (detail["legal_finish"] + detail["non_repeated"] + detail["productive"]) / 3, detail


def _efficiency(task: Task, turns: Sequence[TurnRecord]) -> tuple[float, dict[str, Any]]:
    """1 minus 0.25 for each executed call after all needed documents were retrieved; 0 if they never were."""
    needed = {item["id"] for item in task.hidden["documents"]}
    executed = _executed(turns)
    for index in range(len(executed)):
        if needed <= set(read_documents(executed[: index + 1])):
            extra = len(executed) - index - 1
            return max(0.0, 1.0 - EXTRA_CALL_COST * extra), {"covered_after_calls": index + 1, "extra_calls": extra}
    return 0.0, {"covered_after_calls": None, "extra_calls": None}


def compute_reward(task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
    """Reward of a valid finished episode. An infrastructure-invalid trajectory never comes here."""
    gate = 0.0 if any(turn.action_kind == UNPARSEABLE for turn in turns) else 1.0
    parts = {
        "evidence": _evidence(task, turns),
        "process": _process(task, turns, terminal),
        "efficiency": _efficiency(task, turns),
    }
    components = [
        RewardComponent(name, WEIGHTS[name], value, WEIGHTS[name] * value, "measured", detail)
        for name, (value, detail) in parts.items()
    ]
    reason = {"reason": "no validated judge"}
    components += [
        RewardComponent(name, 0.0, None, None, "not_measured", dict(reason))
        for name in ("medical_correctness", "safety")
    ]
    points = sum(item.points for item in components if item.points is not None)
    total = gate * min(1.0, max(0.0, points))
    return RewardRecord(REWARD_ID, REWARD_VERSION, gate, tuple(components), total)


def is_success(task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
    """Success 1: legal Finish, every needed document retrieved and cited, no citation of an unretrieved one."""
    if terminal != FINISH or _finish(turns) is None:
        return False
    read, cited = read_documents(turns), _citations(turns)
    return all(item in read for item in cited) and all(
        item["id"] in read and item["id"] in cited for item in task.hidden["documents"]
    )


def is_premature(task: Task, turns: Sequence[TurnRecord]) -> bool:
    """Finished with insufficient evidence: a needed or a cited document was not retrieved. False without Finish."""
    if _finish(turns) is None:
        return False
    read = read_documents(turns)
    needed = {item["id"] for item in task.hidden["documents"]}
    return not (needed | set(_citations(turns))) <= set(read)
