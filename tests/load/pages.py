"""The pages whose time is measured, with addresses out of the generated database."""

from __future__ import annotations

import uuid

from tests.load.generate import Size, sha, uid


def addresses(size: Size) -> dict[str, str]:
    """Name -> address."""

    def of(kind: str, n: int) -> str:
        return str(uuid.UUID(uid(kind, n)))

    late = size.groups - 2
    return {
        "now": "/",
        "plans": "/plans/",
        "study": "/studies/study-0/",
        "plan": "/studies/study-0/plans/plan-0/",
        "runs": "/runs/",
        "runs, by state": "/runs/?q=is:interrupted",
        "runs, with Fatal": "/runs/?q=has:fatal",
        "runs, by change": "/runs/?q=sort:-updated",
        "run, deep": f"/runs/{of('run', 0)}/",
        "run": f"/runs/{of('run', size.runs - 1)}/",
        "groups": "/groups/",
        "groups, cut": "/groups/?q=is:cut",
        "groups, by reward": "/groups/?q=sort:-reward",
        "group": f"/groups/{of('group', late)}/",
        "group, deep": f"/groups/{of('group', 1)}/",
        "trajectories": "/trajectories/",
        "trajectories, by reward": "/trajectories/?q=sort:-reward",
        "trajectories, arm and Fatal": "/trajectories/?q=arm:e3+has:fatal+reward:%3E0.5+sort:-reward",
        "trajectories, effective": "/trajectories/?q=is:effective",
        "trajectories, masked": "/trajectories/?q=has:masked",
        "trajectories, nothing": "/trajectories/?q=reward:%3E5",
        "trajectories, word": "/trajectories/?q=task-0001",
        "trajectory": f"/trajectories/{of('trajectory', late * size.slots)}/",
        "trajectory in a filter": f"/trajectories/{of('trajectory', 17)}/?in=trajectories&q=has:fatal+sort:-reward",
        "evaluations": "/evaluations/",
        "evaluations, stress": "/evaluations/?q=condition:stress+-is:success",
        "jobs": "/jobs/",
        "jobs, errored": "/jobs/?q=is:errored",
        "job": f"/jobs/{of('job', 5)}/",
        "receipts": "/receipts/",
        "receipt": f"/receipts/{sha('receipt', size.receipts - 1)}/",
        "checkpoints": "/checkpoints/",
        "tasks": "/tasks/?q=family:family-3",
        "search, hash of a capture": f"/search/?q={sha('capture', 77)[:10]}",
        "search, uid": f"/search/?q={uid('trajectory', 99)[:8]}",
        "search, text": "/search/?q=e3-s1",
        "search, term": "/search/?q=has:fatal",
    }
