"""Episodes of prime-rl and verifiers: a message graph per trace, one rollout per root-to-leaf branch.

A node adds ``token_ids`` to the sequence; ``mask`` says which of them the policy sampled; ``logprobs``
and ``advantages`` have one entry for each sampled token (or, in older files, for each token). Grade A
only where the episode's policy has one version from start to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .items import Item, RolloutItem
from .limits import Limits
from .reading import At, Record
from .scratch import Scratch
from .values import Misread, grade, indicator, integer, integers, is_number, key, number, numbers, step_of

_NODE_ARRAYS = ("token_ids", "mask", "logprobs", "advantages", "is_content", "trainer_logprobs", "entropies")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Misread(what, value, "an object")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Misread(what, value, "a list")
    return value


def branches_of(nodes: list[Any]) -> list[list[int]]:
    """Node indices of every root-to-leaf path, in the order of the leaves. Raises ``Misread`` for a cycle."""
    parents: list[int | None] = []
    for place, node in enumerate(nodes):
        parent = integer(_mapping(node, f"nodes[{place}]").get("parent"), f"nodes[{place}].parent")
        if parent is not None and not 0 <= parent < len(nodes):
            raise Misread(f"nodes[{place}].parent", parent, f"an index below {len(nodes)}")
        parents.append(parent)
    inner = {parent for parent in parents if parent is not None}
    if nodes and len(inner) == len(nodes):
        raise Misread("nodes", "a cycle", "a leaf")
    paths: list[list[int]] = []
    for leaf in range(len(nodes)):
        if leaf in inner:
            continue
        path: list[int] = []
        node_at: int | None = leaf
        while node_at is not None:
            if len(path) >= len(nodes):
                raise Misread(f"nodes[{leaf}].parent", "a cycle", "a path to a root")
            path.append(node_at)
            node_at = parents[node_at]
        paths.append(path[::-1])
    return paths


def _spread(values: list[float | None] | None, mask: list[bool], what: str) -> list[float | None]:
    """Per-token values of a node: one entry a sampled token, or already one a token; None where there is none."""
    if not values:
        return [None] * len(mask)
    if len(values) == len(mask) and len(values) != sum(mask):
        return [value if mine else None for value, mine in zip(values, mask, strict=True)]
    if len(values) != sum(mask):
        raise Misread(f"length of {what}", len(values), f"{sum(mask)}, the sampled tokens of the node")
    rest = iter(values)
    return [next(rest) if mine else None for mine in mask]


def _tokens(nodes: list[dict[str, Any]], path: list[int]) -> dict[str, Any]:
    """Arrays of a branch; ``ids`` None where any node on it carries no ids although it has a message."""
    ids: list[int] = []
    mine: list[bool] = []
    logprobs: list[float | None] = []
    advantages: list[float | None] = []
    has_advantages = False
    for place in path:
        node, what = nodes[place], f"nodes[{place}]"
        piece = integers(node.get("token_ids"), f"{what}.token_ids") or []
        mask = indicator(node.get("mask"), f"{what}.mask") or [False] * len(piece)
        if len(mask) != len(piece):
            raise Misread(f"length of {what}.mask", len(mask), f"{len(piece)}, as token_ids")
        credit = numbers(node.get("advantages"), f"{what}.advantages")
        has_advantages = has_advantages or credit is not None
        ids += piece
        mine += mask
        logprobs += _spread(numbers(node.get("logprobs"), f"{what}.logprobs"), mask, f"{what}.logprobs")
        advantages += _spread(credit, mask, f"{what}.advantages")
    if not ids:
        return {"token_ids": None, "is_policy_token": None, "logprobs": None, "advantages": None}
    return {
        "token_ids": ids, "is_policy_token": mine, "logprobs": logprobs,
        "advantages": advantages if has_advantages else None,
    }  # fmt: skip


def _rewards(trace: dict[str, Any]) -> tuple[float | None, dict[str, float | None]]:
    """Weighted sum and scores by name; None where no reward was scored."""
    scores: dict[str, float | None] = {}
    total: float | None = None
    for name, value in _mapping(trace.get("rewards"), "rewards").items():
        if isinstance(value, dict):
            score, weight = (
                number(value.get("score"), f"rewards.{name}"),
                number(value.get("weight", 1.0), f"{name}.weight"),
            )
        else:
            score, weight = number(value, f"rewards.{name}"), 1.0
        scores[key(name, "rewards")] = score
        if score is not None and weight is not None:
            total = (total or 0.0) + score * weight
    if total is None:
        total = number(trace.get("reward"), "reward")
    metrics = _mapping(trace.get("metrics"), "metrics")
    return total, scores | {key(name, "metrics"): number(v, name) for name, v in metrics.items() if is_number(v)}


def _work(episode: dict[str, Any], step: int | None) -> tuple[int | None, int | None, int | None, str]:
    """Step, policy version at the start and at the end, kind of work."""
    work = _mapping(_mapping(episode.get("run"), "run").get("work"), "run.work")
    policy = _mapping(work.get("policy"), "run.work.policy")
    own = step_of(work.get("step"), "run.work.step")
    start, end = integer(policy.get("start"), "policy.start"), integer(policy.get("end"), "policy.end")
    return step if own is None else own, start, end, key(work.get("type"), "run.work.type")


def _annotation(scratch: Scratch | None, trace_id: str, branch: int) -> dict[str, Any]:
    """Entry of the newest annotation of a branch, with the name of its producer."""
    found: dict[str, Any] = {}
    for row in scratch.get("annotations", trace_id) if scratch is not None and trace_id else ():
        for entry in row["branches"]:
            if entry.get("index") == branch:
                found = {**found, **entry, "producer": row["producer"]}
    found.pop("index", None)
    return found


def _branch(
    at: At, trace: dict[str, Any], index: int, path: list[int], shared: dict[str, Any], scratch: Scratch | None
) -> Iterator[Item]:
    nodes = trace["nodes"]
    annotation = _annotation(scratch, shared["trace"], index)
    try:
        arrays = _tokens(nodes, path)
        credit, mine = numbers(annotation.get("advantages"), "annotation.advantages"), arrays["is_policy_token"]
        if credit is not None and arrays["advantages"] is None and mine:
            arrays["advantages"] = _spread(credit, mine, "annotation.advantages")
    except Misread as error:  # the messages are sound, the arrays are not
        yield at.problem(f"traces.{error.what}", error.got, error.expected)
        arrays = dict.fromkeys(("token_ids", "is_policy_token", "logprobs", "advantages"))
    start, end = shared["version_start"], shared["version_end"]
    distinct = {value for value in arrays["advantages"] or () if value is not None}
    extra = shared["extra"] | ({"annotation": annotation} if annotation else {})
    yield RolloutItem(
        at.next(),
        grade(arrays["token_ids"], arrays["is_policy_token"], arrays["logprobs"], start, end),
        step=shared["step"], group_key=shared["group"], sample_key=f"{shared['trace']}/{index}"[:300],
        messages=[_mapping(nodes[place], "nodes").get("message") for place in path],
        version_start=start, version_end=end, reward=shared["reward"], rewards=shared["rewards"],
        advantage=distinct.pop() if len(distinct) == 1 else None, stop_reason=shared["stop"],
        extra=extra, **arrays,
    )  # fmt: skip


def _without_nodes(trace: dict[str, Any]) -> dict[str, Any]:
    kept = (
        "agent",
        "calls",
        "info",
        "errors",
        "is_completed",
        "is_truncated",
        "is_timeout",
        "ok",
        "timing",
        "root_reply",
    )
    return {name: trace[name] for name in kept if trace.get(name) not in (None, [], {})}


def episode_items(record: Record, step: int | None, limits: Limits, scratch: Scratch | None = None) -> Iterator[Item]:
    """Rollouts of one episode. ``step``: from the file's path, where the episode has none of its own."""
    episode, at = record.payload, record.at
    try:
        if not isinstance(episode.get("traces"), list):
            raise Misread("traces", episode.get("traces"), "a list")
        own_step, start, end, kind = _work(episode, step)
        group = key(_mapping(episode.get("group"), "group").get("id"), "group.id")
        about = {"episode": key(episode.get("id"), "id"), "env": episode.get("env"), "task": episode.get("task"),
                 "work": kind, "ok": episode.get("ok"), "errors": episode.get("errors")}  # fmt: skip
        about = {name: value for name, value in about.items() if value not in (None, "", [])}
        if scratch is not None and next(scratch.get("effective", about.get("episode", "")), None):
            about["effective"] = True
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    if not episode["traces"]:
        yield at.left_out(
            "episode", f"no trace ({'; '.join(map(str, episode.get('errors') or ['no error']))})", "a trace"
        )
    for trace in episode["traces"]:
        try:
            if not isinstance(trace, dict):
                raise Misread("traces", trace, "objects")
            reward, rewards = _rewards(trace)
            is_policy = _mapping(trace.get("agent"), "agent").get("trainable") is not False  # a judge has no version
            shared = {"step": own_step, "group": group, "trace": key(trace.get("id"), "traces.id"), "reward": reward,
                      "rewards": rewards, "version_start": start if is_policy else None,
                      "version_end": end if is_policy else None,
                      "stop": key(trace.get("stop_condition"), "stop_condition", 100),
                      "extra": about | _without_nodes(trace)}  # fmt: skip
            trace["nodes"] = _list(trace.get("nodes"), "nodes")
            paths = branches_of(trace["nodes"])
            size = sum(
                len(_list(trace["nodes"][place].get("token_ids"), "token_ids")) + 1 for path in paths for place in path
            )
            if size > limits.values:
                yield at.refused("tokens of all branches", size, f"at most {limits.values}")
                continue
        except Misread as error:
            yield at.problem(error.what, error.got, error.expected)
            continue
        for index, path in enumerate(paths):
            yield from _branch(at, trace, index, path, shared, scratch)
