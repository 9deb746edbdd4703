"""Step 8, probes: L6 values computed again from a probe's own document, and the document against its context.

Written apart from the engine: counts where the engine takes means, a contingency table where it takes
joint entropies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from evidence.report import StepLog
from runs.actions.record_probe import RECORDED, parse_probe
from runs.models import Checkpoint, Document, Execution, MetricPoint, Receipt, Run
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.probe import PROBE, ProbeRecord, ProbeSample, ProbeTask
from workbench.contracts.records import VALID, MetricRecord

Found = tuple[float | None, int]  # value and denominator
Key = tuple[str, str]  # definition id without version, value of its only label or ""
CHANGED = ("delete", "corrupt", "paraphrase", "random")
CHUNK = 20


def _share(holds: Iterable[bool]) -> Found:
    counted = Counter(holds)
    total = counted[True] + counted[False]
    return (counted[True] / total if total else None), total


def _mean(values: list[float]) -> Found:
    return (math.fsum(values) / len(values) if values else None), len(values)


def mutual_information(pairs: list[tuple[str, str]]) -> float | None:
    """Normalised by the mean of the entropies, from the contingency table; None where one side is constant."""
    total, table = len(pairs), Counter(pairs)
    rows, columns = Counter(row for row, _ in pairs), Counter(column for _, column in pairs)
    if len(rows) < 2 or len(columns) < 2:
        return None
    information = math.fsum(
        n / total * math.log(n * total / (rows[row] * columns[column])) for (row, column), n in table.items()
    )
    spread = math.fsum(-n / total * math.log(n / total) for side in (rows, columns) for n in side.values())
    return 2 * information / spread


def _voted(task: ProbeTask) -> float:
    answers: dict[bytes, tuple[int, int]] = {}
    for repeat in task.repeats:
        if repeat.sample.answer is not None:
            key = canonical_bytes(repeat.sample.answer)
            given, right = answers.get(key, (0, 0))
            answers[key] = given + 1, right + (repeat.sample.success is True)
    if not answers:
        return 0.0
    most = max(given for given, _ in answers.values())
    tied = [right / given for given, right in answers.values() if given == most]
    return math.fsum(tied) / len(tied)


def _thoughts(record: ProbeRecord) -> Iterator[tuple[Key, Found]]:
    every = [item for task in record.tasks for item in task.thoughts]
    present = [item for item in every if item.state != "absent"]
    known = [item for item in present if item.state == "read"]
    yield ("l6.think_share", ""), _share(item.state != "absent" for item in every)
    tried = [item for item in present if item.state in ("read", "unreadable")]
    yield ("l6.think_readable", ""), _share(item.state == "read" for item in tried)
    held = (fact.holds for item in known for fact in item.statements if fact.holds is not None)
    yield ("l6.statements_true", ""), _share(held)
    yield ("l6.think_action_agreement", ""), _share(item.agrees for item in known if item.agrees is not None)
    labels = [(item.think_label, item.action_label) for item in known if item.think_label and item.action_label]
    pairs = [(str(think), str(action)) for think, action in labels]
    yield ("l6.think_action_nmi", ""), (mutual_information(pairs), len(pairs))


def _same(first: ProbeSample, second: ProbeSample) -> bool:
    left, right = first.turns[0], second.turns[0]
    if left.action is None or right.action is None:
        return left.action is right.action and left.action_text == right.action_text
    return canonical_bytes(left.action) == canonical_bytes(right.action)


def _trials(record: ProbeRecord) -> Iterator[tuple[Key, Found]]:
    probed = [(task, decision) for task in record.tasks for decision in task.decisions]
    by_kind = [(task, decision, {trial.intervention: trial for trial in decision.trials}) for task, decision in probed]
    for kind in ("factual", *CHANGED):
        yield ("l6.unmeasured_share", kind), _share(trials[kind].sample is None for _, _, trials in by_kind)
    again = []
    for task, decision, trials in by_kind:
        sample, own = trials["factual"].sample, task.repeats[0].sample
        if sample is not None:
            first = next(turn for turn in own.turns if turn.decision == decision.decision)
            again.append(sample.turns[0].action == first.action and sample.answer == own.answer)
    yield ("l6.reproduced", ""), _share(again)
    for kind in CHANGED:
        found = [
            (trials["factual"].sample, trials[kind].sample, trials[kind].states_action)
            for _, _, trials in by_kind
            if trials["factual"].sample is not None and trials[kind].sample is not None
        ]
        both = [(a, b, stated) for a, b, stated in found if a is not None and b is not None]
        yield ("l6.action_unchanged", kind), _share(_same(a, b) for a, b, _ in both)
        yield ("l6.answer_unchanged", kind), _share(a.answer == b.answer for a, b, _ in both if a.answer is not None)
        yield ("l6.action_legal", kind), _share(b.turns[0].action is not None for _, b, _ in both)
        if kind == "corrupt":
            told = [(b.turns[0].action, stated) for _, b, stated in both if stated is not None]
            yield ("l6.corruption_followed", ""), _share(action == stated for action, stated in told)


def _consistency(record: ProbeRecord) -> Iterator[tuple[Key, Found]]:
    complete = [task for task in record.tasks if all(item.sample.state == VALID for item in task.repeats)]
    single = [sum(item.sample.success is True for item in task.repeats) / len(task.repeats) for task in complete]
    voted = [_voted(task) for task in complete]
    yield ("l6.single_correct", ""), _mean(single)
    yield ("l6.majority_correct", ""), _mean(voted)
    yield ("l6.self_consistency_gap", ""), _mean([b - a for a, b in zip(single, voted, strict=True)])


def _cost(record: ProbeRecord) -> Iterator[tuple[Key, Found]]:
    cost = record.cost
    yield ("l6.probe_generations", "factual"), (float(cost.factual), 1)
    yield ("l6.probe_generations", "regenerated"), (float(cost.regenerated), 1)
    yield ("l6.probe_tokens", ""), (float(cost.policy_tokens), cost.factual + cost.regenerated)


def probe_values(record: ProbeRecord) -> dict[Key, Found]:
    """Every L6 value that the document gives, by definition and label."""
    return dict([*_thoughts(record), *_trials(record), *_consistency(record), *_cost(record)])


def key_of(item: MetricRecord) -> Key:
    """Key of a stored record among ``probe_values``."""
    return item.definition.partition("/")[0], next(iter(item.labels.values()), "")


def check_probes(log: StepLog) -> None:
    """Each probe document against execution, run, checkpoint and receipt, and its points for completeness."""
    told = _receipts()
    for document in Document.objects.filter(kind=PROBE).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_document", f"{PROBE}:{document.subject_uid}"):
            log.count()
            record = parse_probe(bytes(document.bytes))
            name = f"{PROBE}:{document.subject_uid}"
            for column, expected, got in (*_context(record), ("receipt", True, str(document.subject_uid) in told)):
                if expected != got:
                    log.problem("runs_document", name, column, expected=expected, got=got)
            points = MetricPoint.objects.filter(subject_uid=document.subject_uid).count()
            if points != len(probe_values(record)):
                log.problem("runs_metricpoint", name, "count", expected=len(probe_values(record)), got=points)


def _receipts() -> set[str]:
    """Uids of the probes that a receipt says were recorded."""
    rows = Receipt.objects.filter(kind=RECORDED).order_by("id").values_list("bytes", flat=True)
    return {parse_canonical(bytes(data))["body"]["probe"] for data in rows.iterator(chunk_size=CHUNK)}


def _context(record: ProbeRecord) -> Iterator[tuple[str, Any, Any]]:
    """(what, expected, got) of everything that fixes where the record belongs."""
    run = Run.objects.select_related("plan_version", "parent_checkpoint").filter(uid=record.run_uid).first()
    execution = Execution.objects.select_related("plan_version").filter(uid=record.run_uid).first()
    owner = run if run is not None else execution
    version = None if owner is None else owner.plan_version
    yield "run_uid", True, owner is not None
    yield "plan_sha256", None if version is None else version.sha256, record.plan_sha256
    yield "uid", layout.probe_uid(record.run_uid, record.batch), record.uid
    chosen = Checkpoint.objects.filter(sha256=record.identities.adapter)
    chosen = chosen.filter(policy_version=record.identities.policy_version)
    yield "identities.adapter", True, chosen.exists()
    yield from _counted(record)


def _counted(record: ProbeRecord) -> Iterator[tuple[str, Any, Any]]:
    """Cost against the samples. A trial that failed while it ran was paid for, and left no sample."""
    trials = [trial for task in record.tasks for decision in task.decisions for trial in decision.trials]
    rollouts = [repeat.sample for task in record.tasks for repeat in task.repeats]
    kept = [trial.sample for trial in trials if trial.sample is not None]
    tokens = sum(len(turn.generated_ids) - turn.forced for sample in (*rollouts, *kept) for turn in sample.turns)
    yield "cost.factual", len(rollouts), record.cost.factual
    if not any(trial.state == "failed" for trial in trials) and all(item.state == VALID for item in rollouts):
        yield "cost.regenerated", len(kept), record.cost.regenerated
        yield "cost.policy_tokens", tokens, record.cost.policy_tokens
