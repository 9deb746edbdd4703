"""Counterfactual trials of a group: edit blocks, the chosen one, what the verifier said with and without it.

Producer: ``worker.engine.trials``. Consumers: the update (through ``UpdateGroup.trials_json``), the rows, ``verify``
and pages. Nothing here holds a time: seconds travel beside, in ``TrialTiming``, and stand in rows.

D = U(final tree) - U(tree without the block). It conditions on the other finished files: no action value, no Shapley
share, no outcome of a natural continuation.
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .canonical import canonical_bytes, derive_uid, parse_canonical, sha256_hex
from .errors import CanonicalError, RecordError
from .jobs import EnvironmentRef, PolicyRef
from .seeds import derive_seed

TRIALS = "trials"  # kind of the document
PASSED, FAILED = "PASSED", "FAILED"

ORIGINAL, INTERVENTION = "original", "intervention"
FACTUAL_REPLAY, INTERVENTION_REPEAT = "factual_replay", "intervention_repeat"
KINDS = (ORIGINAL, INTERVENTION, FACTUAL_REPLAY, INTERVENTION_REPEAT)

AVAILABLE, SELECTED = "available", "selected"
FORMAT_ERROR = "format_error"
NO_ELIGIBLE_BLOCK = "no_eligible_block"
NO_ORIGINAL_UTILITY = "no_original_utility"
TRIAL_INCOMPLETE = "trial_incomplete"
UNAVAILABLE = (FORMAT_ERROR, NO_ELIGIBLE_BLOCK, NO_ORIGINAL_UTILITY, TRIAL_INCOMPLETE)
STATUSES = (AVAILABLE, SELECTED, *UNAVAILABLE)

EXECUTE, SELECT = "execute", "select"  # modes: run the chosen intervention, or choose it alone (arm E)
TEST_PATHS_ONLY, OVERWRITTEN = "test_paths_only", "overwritten"  # why a block is not eligible
NO_CONTENT, NO_CHANGE = "no_content", "no_change"

SNAPSHOTS = "workbench.snapshots/1"


@dataclass(frozen=True)
class TestObservation:
    """What one hidden test showed. ``cause`` None where it passed; ``detail`` is the raw word, empty where unknown."""

    __test__ = False  # no test class, whatever its name

    test: str
    status: str  # PASSED | FAILED
    cause: str | None  # assertion | import_error | timeout | exit
    detail: str


@dataclass(frozen=True)
class TrialRecord:
    """One verdict on one tree. ``original`` is the reward's own verdict, copied: nothing was executed for it.

    ``utility`` and ``success`` None: the report is not complete, and ``unknown`` says why; that is no failure and no
    zero. ``exit_code`` and ``signal`` None together with ``stdout_sha256`` None: not executed. ``level``: how well
    the sandbox separates, empty where not executed. ``repeated``: test ids whose status a later line overwrote.
    """

    uid: str
    trajectory_uid: str
    kind: str
    repeat: int
    tree_sha256: str
    verifier: str
    complete: bool
    utility: float | None
    success: bool | None
    unknown: str | None
    observed: tuple[TestObservation, ...]
    exit_code: int | None
    signal: int | None
    stdout_sha256: str | None
    stderr_sha256: str | None
    level: dict[str, Any]
    repeated: tuple[str, ...]


@dataclass(frozen=True)
class EditBlockRecord:
    """All file changes of one generating turn. Hash by path; None where there is no file.

    ``reason`` None exactly where ``eligible``: else test_paths_only | overwritten | no_content | no_change.
    """

    decision: int
    paths: tuple[str, ...]
    before: dict[str, str | None]
    after: dict[str, str | None]
    eligible: bool
    reason: str | None


@dataclass(frozen=True)
class InterventionRecord:
    """The one intervention of a trajectory, or why there is none.

    ``status``: available (executed, complete), selected (chosen, not executed), or why unavailable; ``detail`` says
    more, None where there is nothing to say. ``selected``: decision of the chosen block, drawn from snapshots alone;
    it may stand beside no_original_utility and trial_incomplete. ``selected_tokens`` and ``without_tree_sha256``
    None: none was chosen. ``final_tree_sha256``, ``final_paths`` None: trees were not rebuilt. ``final_paths``:
    paths that differ from the first tree; ``touched_share``: of those, that the block touches (None of none).
    ``is_empty_patch``: without the block the tree is the first one again; None where none was chosen.
    ``difference`` = original - without, signed, None unless available: never a zero in its place.
    ``replays`` and ``repeats`` count complete reports; ``*_agree``: of those, with the same status of every test.
    """

    trajectory_uid: str
    slot: int
    status: str
    detail: str | None
    blocks: tuple[EditBlockRecord, ...]
    selected: int | None
    policy_tokens: int
    selected_tokens: int | None
    final_tree_sha256: str | None
    without_tree_sha256: str | None
    final_paths: int | None
    touched_share: float | None
    is_empty_patch: bool | None
    original_utility: float | None
    without_utility: float | None
    difference: float | None
    replays_agree: int
    replays: int
    repeats_agree: int
    repeats: int


@dataclass(frozen=True)
class GroupTrials:
    """The trials of one group: one intervention a slot, in order; trials by slot, kind and repeat.

    ``seed``: of the selection, decimal string. ``settings``: {"mode", "replays", "repeats"}. The test lists are the
    task's. ``snapshots_sha256`` names the blob of trees and contents (``Snapshots``), None where no tree was rebuilt.
    ``unavailable``: why no intervention of the group could be tried (its job broke); None otherwise.
    """

    uid: str
    group_uid: str
    run_uid: str
    plan_sha256: str
    ordinal: int
    purpose: str  # preflight | train
    verifier: str
    seed: str
    settings: dict[str, Any]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    snapshots_sha256: str | None
    unavailable: str | None
    interventions: tuple[InterventionRecord, ...]
    trials: tuple[TrialRecord, ...]


@dataclass(frozen=True)
class TrialTiming:
    """Seconds of one execution. ``queue_s``: from when its job could be claimed to its start; ``service_s``: set-up,
    verification and clean-up, without waiting. Hashed nowhere."""

    trial_uid: str
    queue_s: float
    setup_s: float
    run_s: float
    cleanup_s: float
    service_s: float


@dataclass(frozen=True)
class TrialsSpec:
    """``run_trials``: the trials of one recorded group. ``seed``: of the selection (``selection_seed``).

    ``settings``: {"mode": execute | select, "replays", "repeats"}. ``policy`` and ``reward`` say what the group was
    collected with; no policy is loaded.
    """

    trials_uid: str
    run_uid: str
    plan_sha256: str
    record_json: str  # canonical text of the GroupRecord
    record_sha256: str
    policy: PolicyRef
    environment: EnvironmentRef
    reward: dict[str, Any]
    seed: str
    settings: dict[str, Any]
    runtime: str


@dataclass(frozen=True)
class TrialsResult:
    """Answer to ``TrialsSpec``: canonical ``GroupTrials`` text; its snapshots lie in the store."""

    record_json: str
    record_sha256: str
    snapshots_bytes: int
    timings: tuple[TrialTiming, ...]
    timing: dict[str, float]


def selection_seed(plan_seed: str, run_seed: str) -> str:
    """Seed of the draws of one run: H(plan.trials.seed, run seed, "edit-block"). Preflight: run seed 0."""
    return derive_seed("edit-block", plan_seed, run_seed)


def trials_uid(group_uid: str) -> str:
    """Uid of the trials of a group."""
    return str(derive_uid(group_uid, TRIALS))


def trial_uid(trajectory_uid: str, kind: str, repeat: int) -> str:
    """Uid of one trial."""
    return str(derive_uid(trajectory_uid, f"trial:{kind}:{repeat}"))


def utility_of_statuses(
    status: Mapping[str, str], fail_to_pass: Sequence[str], pass_to_pass: Sequence[str]
) -> Fraction | None:
    """U = passed fail-to-pass / all - 1[some pass-to-pass fails], in [-1, 1]; None where a test has no status.

    Raises ``RecordError`` where no fail-to-pass test is named.
    """
    if not fail_to_pass:
        raise RecordError("fail_to_pass: got none, expected at least one test")
    if any(name not in status for name in [*fail_to_pass, *pass_to_pass]):
        return None
    passed = sum(status[name] == PASSED for name in fail_to_pass)
    broken = any(status[name] != PASSED for name in pass_to_pass)
    return Fraction(passed, len(fail_to_pass)) - (1 if broken else 0)


def status_of(trial: TrialRecord) -> dict[str, str]:
    """PASSED or FAILED by test."""
    return {item.test: item.status for item in trial.observed}


@dataclass(frozen=True)
class Snapshots:
    """Trees and contents of a group. ``initial``: {path: hash}, shared; ``changes``: by trajectory, what each decision
    changed, {path: hash or None}; ``contents``: bytes by hash of every file that a block touched."""

    initial: dict[str, str]
    changes: dict[str, tuple[dict[str, str | None], ...]]
    contents: dict[str, bytes]

    def trees(self, trajectory_uid: str) -> list[dict[str, str]]:
        """Trees before each decision and the final one. Raises ``RecordError`` for an unknown trajectory."""
        if trajectory_uid not in self.changes:
            raise RecordError(f"snapshots: got {trajectory_uid}, expected a trajectory whose trees are kept")
        found = [dict(self.initial)]
        for changed in self.changes[trajectory_uid]:
            tree = dict(found[-1])
            for path, sha256 in changed.items():
                if sha256 is None:
                    tree.pop(path, None)
                else:
                    tree[path] = sha256
            found.append(tree)
        return found


def tree_digest(tree: Mapping[str, str]) -> str:
    """Identity of a tree: digest of {path: hash of the content}."""
    return sha256_hex(canonical_bytes(dict(tree)))


def pack_snapshots(trees: Mapping[str, Sequence[Mapping[str, str]]], contents: Mapping[str, bytes]) -> bytes:
    """Canonical bytes of the trees of each trajectory (at least the initial one, equal in all) and of contents.

    Raises ``RecordError`` where first trees differ or a content is missing.
    """
    initial: dict[str, str] | None = None
    changes: dict[str, list[dict[str, str | None]]] = {}
    needed: set[str] = set()
    for uid, sequence in trees.items():
        if not sequence or (initial is not None and dict(sequence[0]) != initial):
            raise RecordError(f"snapshots: got other first trees in {uid}, expected one task's initial tree")
        initial = dict(sequence[0])
        changes[uid] = []
        for old, new in itertools.pairwise(sequence):
            paths = [path for path in {*old, *new} if old.get(path) != new.get(path)]
            changes[uid].append({path: new.get(path) for path in paths})
            needed |= {sha256 for path in paths for sha256 in (old.get(path), new.get(path)) if sha256 is not None}
    missing = needed - contents.keys()
    if missing:
        raise RecordError(f"snapshots: got no content of {min(missing)}, expected every content that a block touches")
    return canonical_bytes(
        {
            "schema": SNAPSHOTS,
            "initial": initial or {},
            "changes": changes,
            "contents": {sha256: base64.b64encode(contents[sha256]).decode() for sha256 in needed},
        }
    )


def read_snapshots(data: bytes) -> Snapshots:
    """The inverse of ``pack_snapshots``. Raises ``RecordError`` for other bytes or a content with another hash."""
    try:
        value = parse_canonical(data)
        if not isinstance(value, dict) or value.get("schema") != SNAPSHOTS:
            raise RecordError(f"snapshots: got another document, expected {SNAPSHOTS}")
        contents = {key: base64.b64decode(text, validate=True) for key, text in value["contents"].items()}
        found = Snapshots(value["initial"], {uid: tuple(item) for uid, item in value["changes"].items()}, contents)
    except (CanonicalError, KeyError, AttributeError, TypeError, binascii.Error) as error:
        raise RecordError(f"snapshots: {error}, expected {SNAPSHOTS}") from error
    for key, content in found.contents.items():
        if sha256_hex(content) != key:
            raise RecordError(f"snapshots.contents: got bytes of {sha256_hex(content)}, expected {key}")
    return found


def trials_of(trials: Iterable[TrialRecord], trajectory_uid: str, kind: str) -> list[TrialRecord]:
    """The trials of one trajectory and kind, by repeat."""
    return sorted(
        (item for item in trials if item.trajectory_uid == trajectory_uid and item.kind == kind),
        key=lambda item: item.repeat,
    )
