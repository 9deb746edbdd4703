"""Edit blocks of a finished trajectory, which of them may be removed, and the tree without one.

A tree is {path: sha256 of the content}; a missing path is a missing file. ``trees`` are the snapshots before each
decision and the final one, in order. Everything here reads snapshots alone: no function takes a verifier's result,
so no selection can have seen one.

The difference D = U(final) - U(without the block) conditions on the other finished files. It is no action value,
no Shapley share and no outcome of a natural continuation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.contracts.errors import EngineFault
from workbench.contracts.seeds import derive_seed
from workbench.contracts.trials import (
    FORMAT_ERROR,
    NO_CHANGE,
    NO_CONTENT,
    NO_ELIGIBLE_BLOCK,
    OVERWRITTEN,
    TEST_PATHS_ONLY,
)

Tree = Mapping[str, str]


@dataclass(frozen=True)
class EditBlock:
    """All file changes of one generating turn. ``before`` and ``after``: hash by path, None where there is no file."""

    decision: int
    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str | None], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """What the block touches, sorted."""
        return tuple(path for path, _ in self.before)


def edit_blocks(trees: Sequence[Tree]) -> list[EditBlock]:
    """The blocks of a trajectory, by decision: decision k leads from ``trees[k]`` to ``trees[k + 1]``.

    Attribution is temporal: what a background process wrote meanwhile belongs to the turn too.
    """
    found = []
    for decision, (old, new) in enumerate(itertools.pairwise(trees)):
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        if paths:
            before = tuple((path, old.get(path)) for path in paths)
            found.append(EditBlock(decision, before, tuple((path, new.get(path)) for path in paths)))
    return found


def without_block(final: Tree, block: EditBlock) -> dict[str, str]:
    """The final tree with the block's paths as they were before it; later turns are not generated again."""
    tree = dict(final)
    for path, sha256 in block.before:
        if sha256 is None:
            tree.pop(path, None)
        else:
            tree[path] = sha256
    return dict(sorted(tree.items()))


def judged_blocks(
    trees: Sequence[Tree], is_test_path: Callable[[str], bool], *, has_content: Callable[[str], bool] = lambda _: True
) -> list[tuple[EditBlock, str | None]]:
    """Every block with why it may not be removed, None where it may.

    It may where at least one path is no test; no later turn overwrote a path (last touch); the content before is in
    the snapshots (``has_content`` by hash); and removing it changes the final tree. Relative to the tree before the
    block, not to the final difference: a block may repair earlier damage.
    """
    blocks = edit_blocks(trees)
    last: dict[str, int] = {path: block.decision for block in blocks for path in block.paths}

    def reason(block: EditBlock) -> str | None:
        if all(is_test_path(path) for path in block.paths):
            return TEST_PATHS_ONLY
        if any(last[path] != block.decision for path in block.paths):
            return OVERWRITTEN
        if any(sha256 is not None and not has_content(sha256) for _, sha256 in block.before):
            return NO_CONTENT
        return NO_CHANGE if without_block(trees[-1], block) == dict(sorted(trees[-1].items())) else None

    return [(block, reason(block)) for block in blocks]


def eligible_blocks(
    trees: Sequence[Tree], is_test_path: Callable[[str], bool], *, has_content: Callable[[str], bool] = lambda _: True
) -> list[EditBlock]:
    """The blocks that may be removed, by decision; see ``judged_blocks``."""
    return [block for block, reason in judged_blocks(trees, is_test_path, has_content=has_content) if reason is None]


def select_block(blocks: Sequence[EditBlock], own_seed: str, seed: str) -> EditBlock | None:
    """One eligible block by a seeded draw over their order of decisions; None of none.

    ``own_seed``: the seed that the trajectory was sampled with. Arms of one run seed share it, so that a trajectory
    that two arms have in common loses the same block in both.
    """
    if not blocks:
        return None
    ordered = sorted(blocks, key=lambda block: block.decision)
    if len({block.decision for block in ordered}) != len(ordered):
        raise EngineFault("blocks: got two of one decision, expected one a turn")
    return ordered[int(derive_seed("edit-block", seed, own_seed)) % len(ordered)]


@dataclass(frozen=True)
class Intervention:
    """What is asked of the verifier for one trajectory: the tree without ``block``; or why there is none."""

    block: EditBlock | None
    tree: Mapping[str, str] | None
    unavailable: str | None
    eligible: int
    blocks: int
    final_paths: int  # that differ from the first tree
    touched_share: float | None  # of those, that the block touches; None where nothing differs in the end
    is_empty_patch: bool  # without the block the tree is the first one again: nothing of the patch is left


def plan_intervention(
    trees: Sequence[Tree],
    *,
    own_seed: str,
    seed: str,
    has_format_error: bool,
    is_test_path: Callable[[str], bool],
    has_content: Callable[[str], bool] = lambda _: True,
) -> Intervention:
    """The one intervention of a trajectory, at most. Reads no reward, no verdict and no other trajectory."""
    blocks = edit_blocks(trees)
    eligible = eligible_blocks(trees, is_test_path, has_content=has_content)
    changed = (
        {path for path in {*trees[0], *trees[-1]} if trees[0].get(path) != trees[-1].get(path)} if trees else set()
    )
    if has_format_error:
        return Intervention(None, None, FORMAT_ERROR, len(eligible), len(blocks), len(changed), None, False)
    block = select_block(eligible, own_seed, seed)
    if block is None:
        return Intervention(None, None, NO_ELIGIBLE_BLOCK, len(eligible), len(blocks), len(changed), None, False)
    tree = without_block(trees[-1], block)
    share = len(changed & set(block.paths)) / len(changed) if changed else None
    is_empty = tree == dict(trees[0])
    return Intervention(block, tree, None, len(eligible), len(blocks), len(changed), share, is_empty)
