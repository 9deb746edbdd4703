"""Step 10 of ``verify``: play every recorded trajectory again in its environment, without the policy.

The recorded actions go into a fresh session; Observations, states, outcome facts, injections, reward,
success and eligibility must come out as recorded, and every prompt must continue the turn before it.
What this machine cannot play again is named as not checked: the environment or the reward does not load here, its code
is not the code that the plan binds, or it lacks something (a sandbox to run tests in). What needs no environment is
checked all the same. A record that names other code than its plan binds is a disagreement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evidence.report import NotChecked
from runs.actions.plans import plan_body
from runs.actions.record_trials import parse_trials
from runs.models import Document, PlanVersion
from runs.models import Task as TaskRow
from workbench.contracts import layout
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.failures import injected_ordinals
from workbench.contracts.records import FINISH, VALID, GroupRecord, TrajectoryRecord, TurnRecord
from workbench.contracts.trials import TRIALS, tree_digest, trials_uid
from workbench.contracts.wire import to_wire
from worker.engine.outcomes import eligibility, injection_records, outcome_facts
from worker.engine.trial_choice import choices
from worker.environments.base import Environment, FinishAction, Session, Task, ToolAction, artefacts_of
from worker.environments.code import CodeIdentity, changes
from worker.environments.registry import (
    RewardRules,
    environment_code,
    get_environment,
    reward_code,
    reward_code_sha256,
    reward_rules,
)

Difference = tuple[str, str, Any, Any]  # subject uid, what, expected, got


@dataclass(frozen=True)
class _World:
    """What a plan's records are played in: environment and reward rules as they are here."""

    environment: Environment
    rules: RewardRules


@lru_cache(maxsize=16)
def _body(plan_sha256: str) -> dict[str, Any]:
    """Frozen body of a plan."""
    return plan_body(PlanVersion.objects.get(sha256=plan_sha256))


@lru_cache(maxsize=16)
def _world(plan_sha256: str) -> _World | NotChecked:
    """The plan's world, or why its records cannot be played again here and what to do."""
    body = _body(plan_sha256)
    name, reward = str(body["plan"]["environment"]["id"]), str(body["plan"]["reward"]["id"])
    try:
        environment = get_environment(name, body["plan"]["environment"]["config"])
        code, outside = environment_code(environment), reward_code(environment, reward)
        own = reward_code_sha256(environment, reward)
        world = _World(environment, reward_rules(environment, reward))
    except Exception as error:  # an own module may raise anything while it is loaded, or while it makes its object
        return NotChecked(
            f"environment {name!r} with reward {reward!r} does not load here; put its package on PYTHONPATH, or install"
            f" it, as where the records were made ({error})"
        )
    noted = _changes(body["bindings"]["environment"], code)
    tried_by = (body["bindings"]["environment"].get("verifier"), getattr(environment, "verifier", None))
    if noted is None and tried_by[0] != tried_by[1]:  # it belongs to no environment's package
        noted = f"verifier {tried_by[1]} is here, not {tried_by[0]}"
    if noted is not None:
        return NotChecked(f"other code here than the plan binds; put that back (environment {name!r}: {noted})")
    bound = body["bindings"]["reward"]
    if outside is not None:
        noted = _changes(bound, outside)
    elif bound.get("code"):
        noted = "got nothing under this name here, expected a reward of its own"
    elif own != bound["code_sha256"]:
        noted = f"got {own}, expected {bound['code_sha256']}"
    if noted is not None:
        return NotChecked(f"other code here than the plan binds; put that back (reward {reward!r}: {noted})")
    return world


def _changes(bound: Mapping[str, Any], here: CodeIdentity) -> str | None:
    """How the code here differs from an identity that a plan binds, whose own ``version`` is not the distribution's."""
    return changes({"code_sha256": bound["code_sha256"], **bound.get("code", {})}, here)


def _task(uid: str) -> Task:
    row = TaskRow.objects.get(uid=uid)
    return Task(row.key, row.split, row.family, row.prompt, row.initial_state, row.hidden, tuple(row.tools))


def _max_decisions(body: dict[str, Any], record: GroupRecord) -> int:
    """The budget that the group ran under: its arm's, or the plan's for probes and evaluation."""
    if record.purpose == "train":
        for arm in body["arms"]:
            version = PlanVersion.objects.get(sha256=record.plan_sha256)
            if any(layout.run_uid(str(version.uid), arm["key"], seed) == record.run_uid for seed in arm["seeds"]):
                return int(arm["config"]["rollout"]["max_decisions"])
    return int(body["plan"]["rollout"]["max_decisions"])


def recompute(record: GroupRecord, captures: Mapping[str, bytes]) -> Iterator[Difference]:
    """Differences between a group's record and its replay. ``captures``: bytes by capture hash."""
    body = _body(record.plan_sha256)
    for name in ("environment", "reward"):
        bound, recorded = body["bindings"].get(name, {}).get("code_sha256"), getattr(record.identities, name)
        if recorded != bound:
            yield record.uid, f"{name} code", bound, recorded
            return
    world = _world(record.plan_sha256)
    task, budget = _task(record.task_uid), _max_decisions(body, record)
    for item in record.trajectories:
        yield from _carried(item, captures)
        if item.status == VALID and isinstance(world, NotChecked):
            yield item.uid, "replay", "computed again", world
        elif item.status == VALID and isinstance(world, _World):
            yield from _tolerant(item.uid, "replay", _replayed(item, task, world.environment, budget))
            yield from _tolerant(item.uid, "outcome", _outcome(item, task, world.environment, world.rules))
        expected = injection_records(injected_ordinals(record.failure_profile), item.turns)
        if item.turns and expected != item.injections:
            yield item.uid, "injections", to_wire(expected), to_wire(item.injections)
    if isinstance(world, _World):
        yield from _tried(record, task, world.environment)
    elif Document.objects.filter(kind=TRIALS, subject_uid=trials_uid(record.uid)).exists():
        yield record.uid, "trials", "computed again", world
    if record.purpose != "evaluate":
        expected_eligible = eligibility(record.trajectories, len(record.trajectories))[0]
        if expected_eligible != record.eligible:
            yield record.uid, "eligible", expected_eligible, record.eligible


def _tolerant(uid: str, what: str, found: Iterator[Difference]) -> Iterator[Difference]:
    """What the environment could compute, and what it could not from there on."""
    try:
        yield from found
    except EnvironmentFault as error:
        yield uid, what, "computed again", NotChecked(str(error))


def _tried(record: GroupRecord, task: Task, environment: Environment) -> Iterator[Difference]:
    """Trees, blocks, eligibility and the draw of a group that was tried, from its actions; no test runs."""
    document = Document.objects.filter(kind=TRIALS, subject_uid=trials_uid(record.uid)).first()
    artefacts = artefacts_of(environment)
    if document is None:
        return
    stored = parse_trials(bytes(document.bytes))
    if artefacts is None:
        yield record.uid, "trials", "an environment that keeps artefacts", environment.id
        return
    if stored.unavailable is not None:
        return
    for name, expected, got in zip(
        ("fail_to_pass", "pass_to_pass"), artefacts.lists(task), (stored.fail_to_pass, stored.pass_to_pass), strict=True
    ):
        if tuple(expected) != got:
            yield record.uid, f"trials {name}", expected, got
    try:
        chosen = choices(record, artefacts, task, stored.seed)
    except EnvironmentFault as error:  # no test runs here: the recorded actions do not lead to the recorded states
        yield record.uid, "trials", "trees that the recorded actions lead to", str(error)
        return
    for item, choice in zip(stored.interventions, chosen, strict=True):
        plan, trees = choice.plan, choice.trees
        pairs: list[tuple[str, Any, Any]] = [
            ("blocks", choice.blocks, item.blocks),
            ("selected", None if plan is None or plan.block is None else plan.block.decision, item.selected),
            ("final_tree_sha256", tree_digest(trees[-1]) if trees else None, item.final_tree_sha256),
        ]
        for what, expected, got in pairs:
            if to_wire(expected) != to_wire(got):
                yield item.trajectory_uid, f"intervention {what}", to_wire(expected), to_wire(got)


def _carried(item: TrajectoryRecord, captures: Mapping[str, bytes]) -> Iterator[Difference]:
    """Ids carried verbatim: each prompt begins with the prompt and the generated ids of the turn before."""
    context: list[int] = []
    for turn in item.turns:
        if turn.capture_sha256 not in captures:
            yield item.uid, f"turn {turn.decision} capture", "the capture's bytes", "none"
            return
        capture = Capture.from_bytes(captures[turn.capture_sha256])
        prompt = list(capture.prompt_ids)
        if prompt[: len(context)] != context:
            first = next((i for i, (a, b) in enumerate(zip(prompt, context, strict=False)) if a != b), len(prompt))
            yield item.uid, f"turn {turn.decision} prompt token {first}", "the ids of the turn before", "other ids"
        if capture.seed != item.seed or capture.state_sha256 != turn.state_before_sha256:
            got = f"{capture.seed}, {capture.state_sha256}"
            yield item.uid, f"turn {turn.decision} capture", f"{item.seed}, {turn.state_before_sha256}", got
        context = prompt + list(capture.generated_ids)


def _replayed(item: TrajectoryRecord, task: Task, environment: Environment, budget: int) -> Iterator[Difference]:
    session = environment.reset(task)
    if session.state_hash() != item.initial_state_sha256:
        yield item.uid, "initial_state_sha256", session.state_hash(), item.initial_state_sha256
    for turn in item.turns:
        if session.state_hash() != turn.state_before_sha256:
            yield item.uid, f"turn {turn.decision} state before", session.state_hash(), turn.state_before_sha256
        yield from _turn(item.uid, turn, session, environment, budget)
        if session.state_hash() != turn.state_after_sha256:
            yield item.uid, f"turn {turn.decision} state after", session.state_hash(), turn.state_after_sha256
    if session.state_hash() != item.final_state_sha256:
        yield item.uid, "final_state_sha256", session.state_hash(), item.final_state_sha256


def _turn(uid: str, turn: TurnRecord, session: Session, environment: Environment, budget: int) -> Iterator[Difference]:
    if turn.action_kind == FINISH and turn.finish is not None:
        session.finish(FinishAction(turn.finish["answer"], tuple(turn.finish["citations"])))
    call, seen = turn.tool_call, turn.observation
    if call is None or seen is None:
        return
    action = ToolAction(call.tool, call.arguments)
    if seen.injected:
        observation = environment.injected_failure(action, budget - turn.decision - 1)
    else:
        observation = session.step(action)
    expected = (observation.status, observation.retryable, observation.text, dict(observation.facts))
    got = (seen.status, seen.retryable, seen.text, seen.facts)
    if to_wire(expected) != to_wire(got):
        yield uid, f"turn {turn.decision} observation", expected, got
    if observation.is_productive != call.is_productive:
        yield uid, f"turn {turn.decision} is_productive", observation.is_productive, call.is_productive


def _outcome(item: TrajectoryRecord, task: Task, environment: Environment, rules: RewardRules) -> Iterator[Difference]:
    turns: Sequence[TurnRecord] = item.turns
    terminal = str(item.terminal)
    reward = rules.reward(task, turns, terminal)
    pairs: list[tuple[str, Any, Any]] = [
        ("facts", outcome_facts(turns, terminal, environment.is_premature(task, turns)), item.facts),
        ("reward", reward, item.reward),
        ("success", environment.success(task, turns, terminal), item.success),
    ]
    for what, expected, got in pairs:
        if to_wire(expected) != to_wire(got):
            yield item.uid, what, to_wire(expected), to_wire(got)
