"""The edits of one trajectory: turns and blocks, the difference of files, which tests flipped, D."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Intervention, Trajectory, Trial, TrialSet, Turn
from runs.presenters.told import told
from runs.presenters.trials.words import CAUSE, REASON, STATUS
from runs.storage import blob_store
from runs.templatetags.ui import format_number
from workbench.blobs import BlobError
from workbench.contracts.errors import ContractError
from workbench.contracts.trials import (
    FACTUAL_REPLAY,
    INTERVENTION,
    INTERVENTION_REPEAT,
    ORIGINAL,
    PASSED,
    Snapshots,
    read_snapshots,
)

MOST_BYTES, MOST_LINES = 200_000, 600  # of one file, of one drawn difference


@dataclass(frozen=True)
class Block:
    """All file changes of one turn, as the record holds them. ``is_chosen``: the one that was taken back."""

    decision: int
    paths: list[str]
    before: dict[str, str | None]
    after: dict[str, str | None]
    eligible: bool
    why: Any
    is_chosen: bool


@dataclass(frozen=True)
class TurnCell:
    """One turn. ``x``, ``width``: its policy tokens in a bar of 1,000 units; ``block`` None: it changed no file."""

    turn: Turn
    tool: str
    x: float
    width: float
    block: Block | None


@dataclass(frozen=True)
class DiffLine:
    """``sign``: "+", "-", " " or "@" between hunks; line numbers None where the line is not on that side."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True)
class FileDifference:
    """One path of a block. ``lines`` empty with ``why``: what kept the bytes from being shown."""

    path: str
    before: str | None
    after: str | None
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    cut: int
    why: str


@dataclass(frozen=True)
class TestLine:
    """One hidden test in both verdicts. Statuses None: not observed, which is no failure."""

    test: str
    is_target: bool
    original: str | None
    original_cause: Any
    without: str | None
    without_cause: Any

    @property
    def flipped(self) -> bool:
        """Whether taking the block back changed it."""
        return self.original is not None and self.without is not None and self.original != self.without

    @property
    def to_pass(self) -> bool:
        """Whether it passes without the block."""
        return self.without == PASSED


def blocks_of(item: Intervention) -> list[Block]:
    """Blocks by decision."""
    return [
        Block(
            block["decision"], list(block["paths"]), block["before"], block["after"], block["eligible"],
            REASON.get(block["reason"], block["reason"]), block["decision"] == item.selected,
        )
        for block in sorted(item.blocks, key=lambda block: int(block["decision"]))
    ]  # fmt: skip


def turn_cells(trajectory: Trajectory, blocks: Sequence[Block]) -> list[TurnCell]:
    """Turns in order with their blocks. Needs ``turns__tool_call`` prefetched."""
    turns = sorted(trajectory.turns.all(), key=lambda turn: turn.decision)
    total = sum(turn.policy_tokens for turn in turns)
    by_decision = {block.decision: block for block in blocks}
    found, x = [], 0.0
    for turn in turns:
        call = getattr(turn, "tool_call", None)
        word = call.tool if call is not None else _("finish") if turn.finish else _("unparseable")
        width = 1000.0 * turn.policy_tokens / total if total else 0.0
        found.append(TurnCell(turn, word, x, width, by_decision.get(turn.decision)))
        x += width
    return found


def snapshots_of(made: TrialSet) -> tuple[Snapshots | None, str]:
    """Trees and contents of the group, or why they cannot be read."""
    if made.snapshots_sha256 is None:
        return None, _("no tree was rebuilt")
    try:
        return read_snapshots(blob_store().get(made.snapshots_sha256)), ""
    except (BlobError, ContractError) as error:
        return None, told(error)


def _text(snapshots: Snapshots, sha256: str | None) -> tuple[str | None, str]:
    """Text of a content ("" for no file), or why it is not shown."""
    if sha256 is None:
        return "", ""
    data = snapshots.contents.get(sha256)
    if data is None:
        return None, _("its content is not in the snapshots")
    if len(data) > MOST_BYTES:
        return None, _("%(n)s bytes: too long to be shown") % {"n": format_number(len(data))}
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return None, _("not text")


def difference_of(path: str, before: str, after: str) -> tuple[DiffLine, ...]:
    """Unified difference with line numbers of both sides and three lines around each change."""
    left, right = before.splitlines(), after.splitlines()
    found: list[DiffLine] = []
    for group in difflib.SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(3):
        found.append(DiffLine("@", None, None, _("line %(n)d") % {"n": group[0][3] + 1}))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [DiffLine(" ", i + 1, j1 + i - i1 + 1, left[i]) for i in range(i1, i2)]
                continue
            found += [DiffLine("-", i + 1, None, left[i]) for i in range(i1, i2)]
            found += [DiffLine("+", None, j + 1, right[j]) for j in range(j1, j2)]
    return tuple(found)


def files_of(block: Block, snapshots: Snapshots | None, trouble: str) -> list[FileDifference]:
    """What the block did to each of its paths."""
    found = []
    for path in block.paths:
        before, after = block.before.get(path), block.after.get(path)
        why, lines, cut = trouble, tuple[DiffLine, ...](), 0
        if snapshots is not None:
            (old, lost), (new, lost_too) = _text(snapshots, before), _text(snapshots, after)
            why = lost or lost_too
            if old is not None and new is not None:
                lines = difference_of(path, old, new)
        added, removed = (sum(line.sign == sign for line in lines) for sign in "+-")
        cut = max(0, len(lines) - MOST_LINES)
        found.append(FileDifference(path, before, after, lines[:MOST_LINES], added, removed, cut, why))
    return found


def _statuses(trial: Trial | None) -> Mapping[str, Mapping[str, Any]]:
    return {} if trial is None else {item["test"]: item for item in trial.observed}


def test_lines(made: TrialSet, original: Trial | None, without: Trial | None) -> list[TestLine]:
    """Every hidden test of the task, those that flipped first."""
    old, new = _statuses(original), _statuses(without)
    found = []
    for names, is_target in ((made.fail_to_pass, True), (made.pass_to_pass, False)):
        for name in names:
            left, right = old.get(name, {}), new.get(name, {})
            found.append(
                TestLine(
                    name, is_target, left.get("status"), CAUSE.get(left.get("cause") or "", left.get("cause")),
                    right.get("status"), CAUSE.get(right.get("cause") or "", right.get("cause")),
                )
            )  # fmt: skip
    return sorted(found, key=lambda line: not line.flipped)


@dataclass(frozen=True)
class Verdicts:
    """Trials of one trajectory by kind; None: there is none."""

    original: Trial | None
    without: Trial | None
    again: list[Trial]

    @property
    def all(self) -> list[Trial]:
        """In the order of their kinds."""
        return [trial for trial in (self.original, self.without) if trial is not None] + self.again


def verdicts_of(trajectory: Trajectory) -> Verdicts:
    """One query."""
    rows = list(Trial.objects.filter(trajectory=trajectory).order_by("pk"))
    first = {row.kind: row for row in rows if row.kind in (ORIGINAL, INTERVENTION)}
    again = [row for row in rows if row.kind in (FACTUAL_REPLAY, INTERVENTION_REPEAT)]
    return Verdicts(first.get(ORIGINAL), first.get(INTERVENTION), again)


def headline(item: Intervention, tests: Sequence[TestLine]) -> str:
    """The sentence that opens the page."""
    if item.difference is not None:
        parts = {
            "decision": item.selected,
            "old": format_number(item.original_utility, 3, signed=True),
            "new": format_number(item.without_utility, 3, signed=True),
            "d": format_number(item.difference, 3, signed=True),
            "n": sum(line.flipped for line in tests),
            "of": len(tests),
        }
        if item.difference:
            return (
                _(
                    "Without the edit of decision %(decision)s, U goes from %(old)s to %(new)s: D = %(d)s; "
                    "%(n)d of %(of)d tests flip."
                )
                % parts
            )
        return (
            _(
                "Taking back the edit of decision %(decision)s leaves U at %(old)s: D = 0, measured; "
                "%(n)d of %(of)d tests flip."
            )
            % parts
        )
    word, why = STATUS[item.status]
    return _("No difference is known: %(word)s, %(why)s.") % {"word": word, "why": why}
