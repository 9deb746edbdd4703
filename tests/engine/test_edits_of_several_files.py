"""One turn that edits several files: its think and action as ids, a demonstration of it, its block and its D."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.engine import trial_world as world
from tests.engine.test_trials import seed_that_draws, tried
from tests.engine.trial_world import BREAK_C, MEND_A, READ, SUBMIT, TASK, episode
from worker.engine.compact import CompactFormatter
from worker.engine.warmstart import _tokenizer
from worker.engine.warmstart_recipes import CODE_REPAIR
from worker.engine.warmstart_train import encode_demonstrations
from worker.environments.base import Demonstration, DemonstrationTurn, FinishAction, ToolAction
from worker.environments.code_repair.environment import CodeRepair

ENVIRONMENT = world.environment()
THINK = "add(x, y):  # x plus y\n2     return x - y"
BOTH = ToolAction(
    "edit",
    {
        "edits": [
            {"path": "a.py", "line": 2, "text": "return x + y"},
            {"path": "b.py", "line": "return x * 3", "text": "return x * 2"},
        ]
    },
)
TEXT = json.dumps({"tool": BOTH.tool, **BOTH.arguments}, separators=(",", ":"))


@pytest.fixture(scope="module")
def formatter() -> CompactFormatter:
    return CompactFormatter(_tokenizer(CODE_REPAIR, ENVIRONMENT))


def test_a_thought_and_an_edit_of_two_files_are_read_back_as_one_action(formatter: CompactFormatter) -> None:
    found = formatter.read(formatter.write(THINK, TEXT), ENVIRONMENT.tools())
    assert (found.think_text, found.action, found.error) == (THINK, BOTH, None)
    for broken in (TEXT.replace('"path":"b.py",', ""), TEXT.replace('"line":2', '"line":0'), TEXT[:-1]):
        refused = formatter.read(formatter.write(THINK, broken), ENVIRONMENT.tools())
        assert refused.action is None and refused.error


def test_a_demonstration_of_it_trains_its_thought_and_its_action(formatter: CompactFormatter) -> None:
    """What the session answered is context; of the two turns every id is a target and nothing else is."""
    seen = ENVIRONMENT.reset(TASK).step(BOTH)
    assert (seen.status, seen.text) == ("ok", "edited a.py b.py")
    turns = (
        DemonstrationTurn(THINK, TEXT, seen.text),
        DemonstrationTurn("done", '{"finish":"done","cite":[]}', None),
    )
    environment = CodeRepair({})
    environment.demonstrations = lambda seed: iter([Demonstration(TASK.prompt, turns, ("several",))])  # type: ignore
    ((ids, weights),), coverage, _ = encode_demonstrations(environment, formatter, 1, 1, 0.0)
    written = [index for turn in turns for index in formatter.write(turn.think, turn.action)]
    assert [index for index, weight in zip(ids, weights, strict=True) if weight] == written
    assert coverage == {"several": 1}
    last = formatter.read(formatter.write(turns[1].think, turns[1].action), ENVIRONMENT.tools())
    assert last.action == FinishAction("done", ())


@pytest.mark.parametrize(("decision", "without", "difference"), [(1, -1.0, 1.0), (2, 1.0, -1.0)])
def test_both_files_are_one_block_and_go_together(decision: int, without: float, difference: float) -> None:
    """Both mended, c broken: U = 2/2 - 1 = 0. Without the mends: 0/2 - 1 = -1, D = 1. Without the harm: 1, D = -1.

    Three paths differ in the end: the first block touches two of them, the second one.
    """
    item = episode(0, [READ, BOTH, BREAK_C, SUBMIT])
    (record,) = tried([item], seed=seed_that_draws(item, decision))[0].interventions
    assert [(block.decision, block.paths, block.eligible) for block in record.blocks] == [
        (1, ("a.py", "b.py"), True), (2, ("c.py",), True),
    ]  # fmt: skip
    assert (record.original_utility, record.without_utility, record.difference) == (0.0, without, difference)
    assert (record.final_paths, record.touched_share) == (3, {1: 2 / 3, 2: 1 / 3}[decision])
    assert record.is_empty_patch is False and (record.policy_tokens, record.selected_tokens) == (26, 5 + decision)


def test_one_file_of_it_written_again_later_keeps_the_whole_block() -> None:
    """a is edited again: the block of both is no candidate, though nobody touched b since."""
    item = episode(0, [BOTH, world.edit("a.py", "return y + x"), SUBMIT])
    (record,) = tried([item])[0].interventions
    assert [(block.decision, block.reason) for block in record.blocks] == [(0, "overwritten"), (1, None)]
    assert record.selected == 1 and record.difference == 0.0  # y + x is x + y: measured, and no difference


def test_an_edit_of_two_files_is_done_whole_or_not_at_all() -> None:
    """The second of its edits names no line: nothing of the call was done, and there is no block."""
    spoilt = replace(BOTH, arguments={"edits": [MEND_A.arguments, {"path": "b.py", "line": 9, "text": "x"}]})
    (record,) = tried([episode(0, [spoilt, SUBMIT])])[0].interventions
    assert record.blocks == () and record.status == "no_eligible_block" and record.difference is None
