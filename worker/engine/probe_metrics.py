"""L6 quantities of one probe record. ``evidence.checks.probes`` computes them again, written apart.

A share is None with count 0 where its condition never occurred (no corrupted segment, say).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.probe import (
    ABSENT,
    CORRUPT,
    FACTUAL,
    INTERVENTIONS,
    MEASURED,
    PROBE,
    READ,
    UNREADABLE,
    ProbeRecord,
    ProbeSample,
    ProbeTask,
    ProbeThought,
    ProbeTrial,
    next_action,
    same_action,
)
from workbench.contracts.records import VALID, MetricRecord

from .metrics import MetricSink, mean


def entropy(counts: Sequence[int]) -> float:
    """Shannon entropy (nats) of a distribution given by counts."""
    total = sum(counts)
    return -math.fsum(count / total * math.log(count / total) for count in counts if count)


def normalised_mutual_information(first: Sequence[str], second: Sequence[str]) -> float | None:
    """I(X;Y) over the arithmetic mean of H(X) and H(Y), in [0, 1]; None where either does not vary."""
    left, right = entropy(list(Counter(first).values())), entropy(list(Counter(second).values()))
    if not left or not right:
        return None
    both = entropy(list(Counter(zip(first, second, strict=True)).values()))
    return min(1.0, max(0.0, 2.0 * (left + right - both) / (left + right)))


def majority_correct(samples: Sequence[ProbeSample]) -> float:
    """Correctness of the most frequent final answer; tied answers count with their mean, no answer at all as wrong.

    The correctness of an answer is the share of successes among the samples that gave it.
    """
    voters: dict[bytes, list[bool]] = {}
    for sample in samples:
        if sample.answer is not None:
            voters.setdefault(canonical_bytes(sample.answer), []).append(bool(sample.success))
    if not voters:
        return 0.0
    most = max(len(votes) for votes in voters.values())
    shares = [sum(votes) / len(votes) for votes in voters.values() if len(votes) == most]
    return math.fsum(shares) / len(shares)


def probe_metrics(record: ProbeRecord) -> tuple[MetricRecord, ...]:
    """Every L6 value of a probe. Its seconds stand in the receipt: no hashed content holds a time."""
    sink = MetricSink(PROBE, record.split, record.identities.policy_version, record.batch)
    thoughts = [thought for task in record.tasks for thought in task.thoughts]
    _thought_metrics(sink, thoughts, record.uid)
    _trial_metrics(sink, record.tasks, record.uid)
    _consistency_metrics(sink, record.tasks, record.uid)
    for kind, count in (("factual", record.cost.factual), ("regenerated", record.cost.regenerated)):
        sink.add("l6.probe_generations", count, 1, record.uid, kind=kind)
    sink.add("l6.probe_tokens", record.cost.policy_tokens, record.cost.factual + record.cost.regenerated, record.uid)
    return tuple(sink.records)


def _thought_metrics(sink: MetricSink, thoughts: Sequence[ProbeThought], uid: str) -> None:
    present = [item for item in thoughts if item.state != ABSENT]
    known = [item for item in present if item.state == READ]
    sink.mean("l6.think_share", (item.state != ABSENT for item in thoughts), uid)
    tried = [item for item in present if item.state in (READ, UNREADABLE)]
    sink.mean("l6.think_readable", (item.state == READ for item in tried), uid)
    held = [statement.holds for item in known for statement in item.statements if statement.holds is not None]
    sink.mean("l6.statements_true", held, uid)
    sink.mean("l6.think_action_agreement", (item.agrees for item in known if item.agrees is not None), uid)
    labels = [
        (item.think_label, item.action_label) for item in known if item.think_label and item.action_label is not None
    ]
    left, right = [pair[0] for pair in labels], [pair[1] for pair in labels]
    sink.add("l6.think_action_nmi", normalised_mutual_information(left, right), len(labels), uid)


def pairs(tasks: Sequence[ProbeTask], intervention: str) -> Iterator[tuple[ProbeSample, ProbeSample, ProbeTrial]]:
    """(factual sample, sample, trial) of every measured trial of a kind whose factual trial is measured too."""
    for task in tasks:
        for decision in task.decisions:
            factual = next(item for item in decision.trials if item.intervention == FACTUAL)
            trial = next(item for item in decision.trials if item.intervention == intervention)
            if factual.sample is not None and trial.sample is not None:
                yield factual.sample, trial.sample, trial


def _trial_metrics(sink: MetricSink, tasks: Sequence[ProbeTask], uid: str) -> None:
    sink.mean("l6.reproduced", _reproduced(tasks), uid)
    for name in (FACTUAL, *INTERVENTIONS):
        trials = [
            item for task in tasks for decision in task.decisions for item in decision.trials
            if item.intervention == name
        ]  # fmt: skip
        sink.mean("l6.unmeasured_share", (item.state != MEASURED for item in trials), uid, intervention=name)
    for name in INTERVENTIONS:
        found = list(pairs(tasks, name))
        sink.mean("l6.action_unchanged", (same_action(a, b) for a, b, _ in found), uid, intervention=name)
        answers = (a.answer == b.answer for a, b, _ in found if a.answer is not None)
        sink.mean("l6.answer_unchanged", answers, uid, intervention=name)
        sink.mean("l6.action_legal", (next_action(b) is not None for _, b, _ in found), uid, intervention=name)
    followed = (
        next_action(b) == trial.states_action
        for _, b, trial in pairs(tasks, CORRUPT)
        if trial.states_action is not None
    )
    sink.mean("l6.corruption_followed", followed, uid)


def _reproduced(tasks: Sequence[ProbeTask]) -> Iterator[bool]:
    """Whether the forced, untouched segment gave the rollout's own ids, decision by decision."""
    for task in tasks:
        for decision in task.decisions:
            sample = next(item.sample for item in decision.trials if item.intervention == FACTUAL)
            if sample is None:
                continue
            own = task.repeats[0].sample
            first = next(item for item in own.turns if item.decision == decision.decision)
            yield sample.turns[0].action == first.action and sample.answer == own.answer


def _consistency_metrics(sink: MetricSink, tasks: Sequence[ProbeTask], uid: str) -> None:
    """Over the tasks all of whose repeats are valid."""
    complete = [
        [item.sample for item in task.repeats]
        for task in tasks
        if all(item.sample.state == VALID for item in task.repeats)
    ]
    single = [mean([float(bool(item.success)) for item in samples]) or 0.0 for samples in complete]
    voted = [majority_correct(samples) for samples in complete]
    sink.mean("l6.single_correct", single, uid)
    sink.mean("l6.majority_correct", voted, uid)
    sink.mean("l6.self_consistency_gap", (b - a for a, b in zip(single, voted, strict=True)), uid)
