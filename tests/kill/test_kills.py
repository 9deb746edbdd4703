"""kill -9 at every named point, at random instants, and of the processes around the workers.

Each disturbed run must end as the undisturbed one did: same plan, captures, adapters, updates, metrics
and closure manifest by hash; nothing twice, nothing lost, nothing left running; ``verify`` agrees.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.tiny import Ran, client, differences, facts, rows, verified
from tests.kill.conftest import COUNTS, Say
from tests.kill.harness import CHILDREN, Kill, check_ledger, draw, fire

pytestmark = pytest.mark.kill
SEEDS = (7, 17, 42)
AT_RANDOM = 7  # in each of the three runs: 21 in all


def endure(tmp_path: Path, cache: Path, say: Say, undisturbed: Ran, seed: int, kills: list[Kill]) -> None:
    """Run the tiny study under ``kills`` and hold it against the undisturbed one."""
    home = tmp_path / "home"
    with fire(home, cache, say, COUNTS, seed) as burning, client(home, cache, tmp_path) as study:
        burning.run(kills)
        summary = study.finish(60)
        lost = check_ledger(home)
        say(f"attempts lost: {dict(lost)}")
        burning.stop()
    assert lost.total() > 0, "no kill hit a job: this run has shown nothing"
    assert not differences(undisturbed.facts, facts(lambda text: rows(home, text)))
    assert summary["closure"] == undisturbed.summary["closure"]
    verified(home, cache)


@pytest.mark.parametrize("seed", SEEDS)
def test_kills_at_every_point_and_at_random_change_nothing(
    tmp_path: Path, cache: Path, say: Say, undisturbed: Ran, seed: int
) -> None:
    """Seven points once in each of three runs, and seven kills of worker processes at drawn instants."""
    kills = draw(seed, at_random=AT_RANDOM)
    say(f"seed {seed}: {', '.join(f'{kill.what}@{kill.after}+{kill.delay}' for kill in kills)}")
    endure(tmp_path, cache, say, undisturbed, seed, kills)


def test_kills_of_web_broker_and_supervisor_change_nothing(
    tmp_path: Path, cache: Path, say: Say, undisturbed: Ran
) -> None:
    """Each twice during one run; after the supervisor's death ``up`` starts again on the same home."""
    kills = [
        Kill(name, 2 + 3 * position + 9 * again, 0.4) for again in (0, 1) for position, name in enumerate(CHILDREN)
    ]
    endure(tmp_path, cache, say, undisturbed, 1, kills)
