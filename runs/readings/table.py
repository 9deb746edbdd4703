# ruff: noqa: E501 - one text a line
"""The readings as data: what each means, what else it could be, what it cannot tell, and what would tell.

A reading is a hypothesis. Signals of KL, entropy and advantage audit well afterwards and warn poorly early,
and the texts say so. ``{name}`` is filled in from an outcome's facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.readings import rules

WARNING, HEALTHY = "warning", "healthy"
Text = str | Promise


@dataclass(frozen=True)
class Reading:
    """``kind``: warning or healthy. ``hypotheses`` compete; ``experiment`` is the smallest that tells them apart.

    ``why``: what makes it fire, with the reason of its thresholds, for the reader.
    """

    id: str
    layer: str
    kind: str
    title: Text
    statement: Text
    hypotheses: tuple[Text, ...]
    limits: Text
    experiment: Text
    why: Text
    rule: rules.Rule
    thresholds: Mapping[str, float]


READINGS: tuple[Reading, ...] = (
    Reading(
        "narrow_mode", "L1", WARNING,
        _("Pulled against a narrow mode"),
        _("Entropy fell from {first_from} to {first_to} nats while the share clipped on the high side rose from {second_from:.2%} to {second_to:.2%}."),
        (_("The policy concentrates on few actions and updates push against the clip."), _("The step is too large: the same would show at high entropy.")),
        _("Both signals describe the past steps; they warn poorly early."),
        _("Repeat the last 10 batches from the same checkpoint with half the learning rate and compare the clip share."),
        _("Both lines have a trend (Mann-Kendall, |z| at least 2.5: one in eighty by chance), in opposite directions."),
        rules.narrow_mode, {"least_change": 0.0},
    ),
    Reading(
        "concentrating", "L3", WARNING,
        _("Concentrating, not discovering"),
        _("Mean reward rose from {first_from} to {first_to} while pass@k went from {second_from:.0%} to {second_to:.0%}."),
        (_("Probability moves to solutions that sampling found before."), _("k is too small to see discoveries."), _("The tasks that remain are out of reach.")),
        _("pass@k at the group size says nothing of larger k."),
        _("Evaluate parent and current checkpoint at a larger k on the same held-out tasks."),
        _("Reward has a rising trend of at least 0.02; pass@k, below its ceiling of 0.95, rose by less than 0.02 between the first and the last third: smaller steps than one task in fifty."),
        rules.concentrating, {"least_change": 0.02, "flat_change": 0.02, "ceiling": 0.95},
    ),
    Reading(
        "padding", "L2", WARNING,
        _("Padding or overthinking"),
        _("Response length rose from {first_from} to {first_to} tokens while success went from {second_from:.0%} to {second_to:.0%}."),
        (_("Tokens without use are not punished by this objective."), _("Longer answers are on their way to better ones."), _("Tasks of the later batches are harder.")),
        _("The mean hides which segment grew."),
        _("Compare segment lengths, and the same tasks at both checkpoints."),
        _("Length has a rising trend; success has none and rose by less than 0.05 between the first and the last third."),
        rules.padding, {"least_change": 0.0, "flat_change": 0.05},
    ),
    Reading(
        "mechanical_calls", "L2", WARNING,
        _("Mechanical repetition of calls"),
        _("{calls:.2f} calls a trajectory of {budget} allowed, {repeats:.0%} of them repeats, and the reward does not mind."),
        (_("Repeats cost nothing in this reward."), _("Injected failures make retries reasonable.")),
        _("A retry after a retryable failure counts as a repeat."),
        _("Compare repeats after a failure with repeats after a success, or evaluate with half the budget."),
        _("Over the last 10 steps calls reach 80 % of the budget and a fifth of them are repeats; the reward does not fall."),
        rules.mechanical_calls, {"window": 10, "budget_share": 0.8, "repeat_rate": 0.2},
    ),
    Reading(
        "all_right", "L3", WARNING,
        _("Curriculum outdated"),
        _("{share:.0%} of the eligible groups of the last {steps} steps are all successful and train nothing."),
        (_("The tasks have become easy."), _("The verifier lets too much through.")),
        _("An all-right group may hide weak solutions that the verifier cannot see."),
        _("Run the negative controls on the verifier, then evaluate on harder tasks."),
        _("Half of the eligible groups over the last 10 steps: more than half of the sampling is then without use."),
        rules.all_right, {"window": 10, "share": 0.5},
    ),
    Reading(
        "all_wrong", "L3", WARNING,
        _("No success in most groups"),
        _("{share:.0%} of the eligible groups of the last {steps} steps hold no success."),
        (_("The tasks are too hard."), _("The environment or its infrastructure is broken."), _("The verifier is over-strict.")),
        _("The share alone cannot tell the three apart."),
        _("Run the gold solutions: if they fail, the verifier or environment is at fault; then look at infrastructure failures; then at the classes of failure."),
        _("Half of the eligible groups over the last 10 steps: more than half of the sampling is then without use."),
        rules.all_wrong, {"window": 10, "share": 0.5},
    ),
    Reading(
        "paths_collapse", "L4", WARNING,
        _("Paths within a group become alike"),
        _("Mean distance of action sequences fell from {first_from:.0%} to {first_to:.0%} of their length."),
        (_("Exploration is lost."), _("The policy has settled on the right way.")),
        _("Both readings fit the same curve: success beside it decides."),
        _("Sample the same tasks at a higher temperature: if success stays and paths spread, it had settled."),
        _("A falling trend, and the last third at most half of the first."),
        rules.paths_collapse, {"fraction": 0.5},
    ),
    Reading(
        "early_collapse", "L2", WARNING,
        _("Entropy collapse in the first steps"),
        _("Entropy fell from {first_from} to {first_to} nats within the first 50 steps."),
        (_("Collapse onto a narrow mode."), _("The warm start left noise that the first updates remove.")),
        _("A low entropy alone does not say whether the mode is good."),
        _("Restart from the parent with a lower learning rate and compare entropy and held-out success at the same step."),
        _("Half of the first value lost within 50 steps, before learning can explain it."),
        rules.early_collapse, {"first_steps": 50, "drop": 0.5},
    ),
    Reading(
        "gradient_spike", "L1", WARNING,
        _("Gradient-norm spike"),
        _("Gradient norm {value} at batch {step}: the median is {median}, the limit {limit}; such batches: {n}."),
        (_("One trajectory dominates the step."), _("Old and new policy ran apart."), _("A numerical fault.")),
        _("Norms of trajectories add where their gradients may cancel."),
        _("Open the update and sort its trajectories by gradient norm; repeat the step without the largest."),
        _("Above the median by six scaled median absolute deviations and three times the median: a heavy tail alone stays below."),
        rules.gradient_spike, {"least_steps": 8, "deviations": 6.0, "times_median": 3.0},
    ),
    Reading(
        "widening_gap", "L5", WARNING,
        _("Memorising"),
        _("The gap between in- and out-of-distribution reward went from {first_from} to {first_to}; its 95 % interval begins at {low}."),
        (_("Training tasks are memorised."), _("Out-of-distribution tasks are harder and improve later.")),
        _("A gap of few tasks has a wide interval: see it beside."),
        _("Evaluate fresh tasks of the training distribution: memorising shows there too."),
        _("The gap grew by at least 0.05, and its last 95 % interval lies above the first gap: few tasks move a gap by chance."),
        rules.widening_gap, {"least_change": 0.05},
    ),
    Reading(
        "decoration", "L6", WARNING,
        _("Think is decoration"),
        _("At least {share:.0%} of actions and answers stay the same when the think segment is deleted and when it is corrupted; with random tokens in its place, {control:.0%} of the actions."),
        (_("The policy does not read its think segment."), _("The prompt and Observations already decide."), _("The decision is so easy that nothing changes it.")),
        _("Random tokens in its place are the control: compare with them first."),
        _("Probe decisions that need more than one earlier Observation."),
        _("Four fifths or more unchanged in every one of the four, over at least 5 decisions each: below that one decision moves a share by a fifth."),
        rules.decoration, {"share": 0.8, "least_count": 5},
    ),
    Reading(
        "still_rising", "L3", WARNING,
        _("Truncated, not converged"),
        _("Reward still rose over the last steps, from {first_from} to {first_to}."),
        (_("The budget ended the run before it settled."), _("The order of tasks makes the end easier.")),
        _("Training reward is not held-out reward."),
        _("Go on under a new plan with a larger budget, with held-out evaluation on the way."),
        _("A rising trend of at least 0.02 over the last third of the steps, 12 at least."),
        rules.still_rising, {"window": 12, "least_change": 0.02},
    ),
    Reading(
        "uneven_calls", "L2", WARNING,
        _("Call counts are unstable"),
        _("Variance of calls is {variance:.2f} around a mean of {mean:.2f}."),
        (_("Some trajectories loop."), _("The tasks need different numbers of calls.")),
        _("Tasks and slots are mixed in the variance."),
        _("Compare the variance within the groups of one task."),
        _("Variance 1.5 times the mean: counts of independent calls would have a variance near their mean."),
        rules.uneven_calls, {"window": 10, "dispersion": 1.5},
    ),
    Reading(
        "open_and_unclipped", "L1", HEALTHY,
        _("Entropy kept, little clipped"),
        _("Entropy went from {first_from} to {first_to} nats, {clipped:.2%} of the trained tokens are clipped."),
        (_("The policy explores and steps are moderate."), _("Nothing is learnt: the steps are too small.")),
        _("With one step per batch the ratio is 1 and the clip share says nothing."),
        _("Look at held-out reward beside it."),
        _("Entropy at least 0.1 nats (below, a token has hardly more than one choice) and 60 % of its first value; at most 2 % of the tokens clipped."),
        rules.open_and_unclipped, {"window": 10, "least": 0.1, "kept": 0.6, "clipped": 0.02},
    ),
    Reading(
        "longer_and_better", "L2", HEALTHY,
        _("Longer and better"),
        _("Length rose from {first_from} to {first_to} tokens and success from {second_from:.0%} to {second_to:.0%}."),
        (_("More work pays off."), _("Both follow from easier tasks.")),
        _("Together is not because."),
        _("Compare success by length within the same tasks."),
        _("Both lines have a rising trend (Mann-Kendall, |z| at least 2.5)."),
        rules.longer_and_better, {"least_change": 0.0},
    ),
    Reading(
        "needed_calls", "L2", HEALTHY,
        _("About one call per needed lookup"),
        _("{share:.0%} of {calls:.2f} calls a trajectory bring something new."),
        (_("The policy searches for what it lacks."), _("Few calls are made at all: see the finish rate.")),
        _("A call may bring something and still not be needed."),
        _("Compare calls with the documents that a task needs."),
        _("Four fifths of the calls over the last 10 steps are productive."),
        rules.needed_calls, {"window": 10, "share": 0.8},
    ),
    Reading(
        "latent_ability", "L3", HEALTHY,
        _("Latent ability"),
        _("pass@k exceeds pass@1 by {share:.2f} over the last {steps} steps."),
        (_("Right answers are within reach and can be reinforced."), _("Luck: many ways to guess right.")),
        _("The gap is at the group size; chance grows with k."),
        _("Inspect the successful trajectories of mixed groups for right reasons."),
        _("pass@k at least 0.2 above pass@1 over the last 10 steps: one task in five can be solved and mostly is not."),
        rules.latent_ability, {"window": 10, "share": 0.2},
    ),
)  # fmt: skip
BY_ID = {item.id: item for item in READINGS}
