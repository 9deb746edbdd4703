# ruff: noqa: E501 - one definition a line
"""Definitions of metrics: pure data. A number's definition id stands beside it everywhere.

Two frameworks that use one name for two quantities have two definition ids here. Each entry says
the layer (L1 stability, L2 behaviour, L3 signal, L4 exploration, L5 generalisation, L6 reasoning),
unit, closed range, scope (token, turn, trajectory, group, batch), over what it varies, what it cannot
tell, whether a direction is declared, and where its formula comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE, HIGHER, LOWER = "none", "higher", "lower"  # declared directions; most quantities declare none


@dataclass(frozen=True)
class MetricDefinition:
    """``id`` ends in its version. ``scope``: what one value is computed over. ``varies_over``: vocabulary,
    token, rollout, prompt or time. ``cannot_tell``: the limit that a page shows beside the number.

    ``direction``: higher or lower only where the quantity itself says what is better, else none: no page
    or reading may rank by an undeclared one. ``range``: closed interval of its finite values, bounds
    possibly infinite; None where any number is possible. ``source``: spec chapter or paper of the formula.
    """

    id: str
    layer: str
    name: str
    unit: str
    scope: str
    varies_over: str
    measures: str
    cannot_tell: str
    direction: str
    range: tuple[float, float] | None
    source: str


def _range(text: str) -> tuple[float, float] | None:
    if text == "none":
        return None
    low, high = (float(part) for part in text.split(".."))
    if not low < high:
        raise ValueError(f"range: got {text}, expected low..high")
    return low, high


def _table(rows: str) -> dict[str, MetricDefinition]:
    found: dict[str, MetricDefinition] = {}
    for line in rows.strip().splitlines():
        name, unit, scope, varies_over, measures, cannot_tell, direction, limits, source = (
            part.strip() for part in line.split(" | ")
        )
        if direction not in (NONE, HIGHER, LOWER):
            raise ValueError(f"{name}.direction: got {direction!r}, expected {NONE}, {HIGHER} or {LOWER}")
        identity = f"{name}/1"
        if identity in found:
            raise ValueError(f"{name}: got it twice, expected one row a definition")
        layer = name.split(".")[0].upper()
        found[identity] = MetricDefinition(
            identity, layer, name, unit, scope, varies_over, measures, cannot_tell, direction, _range(limits), source
        )
    return found


# name | unit | scope | varies over | what is measured | what it cannot tell | direction | range | source
METRIC_DEFINITIONS: dict[str, MetricDefinition] = _table("""
l1.loss | none | optimizer step | time | clipped surrogate after the plan's aggregation, sign of a loss | learning: its level is arbitrary, near 0 at ratio 1 | none | none | spec "objective and update"
l1.grad_norm | none | optimizer step | time | L2 norm of the gradient of all trainable parameters, before clipping | which trajectory caused a spike: see the update trace | none | 0..inf | spec "metrics"
l1.update_norm | none | optimizer step | time | L2 norm of the parameter change | whether the change was useful | none | 0..inf | spec "metrics"
l1.relative_update_norm | share | optimizer step | time | norm of the change over norm of the trainable parameters before it | comparison of adapters with full weights: the denominators differ | none | 0..inf | spec "metrics"
l1.clip_low_share | share | optimizer step | token | trained tokens with ratio below 1 - clip_low and negative credit | anything at the first step of a batch: the ratio is 1 there | none | 0..1 | Yu et al. 2025, "DAPO"
l1.clip_high_share | share | optimizer step | token | trained tokens with ratio above 1 + clip_high and positive credit | anything at the first step of a batch: the ratio is 1 there | none | 0..1 | Yu et al. 2025, "DAPO"
l1.ratio_max_deviation | none | optimizer step | token | largest |ratio - 1| over trained tokens | how many tokens moved | none | 0..inf | spec "objective and update"
l1.kl_k1_old | nats | optimizer step | token | mean of log pi_old - log pi_new over trained tokens (k1 estimate of KL to the old policy) | a divergence from one sample: it may be negative | none | none | Schulman 2020, "Approximating KL divergence"
l1.kl_k3_old | nats | optimizer step | token | mean of rho - 1 - log rho over trained tokens (k3 estimate of KL to the old policy) | distance to the parent: the old policy is this batch's sampler | none | 0..inf | Schulman 2020, "Approximating KL divergence"
l1.kl_k1_reference | nats | optimizer batch | token | mean of log pi - log pi_reference over policy tokens of two trajectories of the batch, pi: its sampler (k1) | a divergence from one sample: it may be negative; trajectories that were not chosen | none | none | Schulman 2020, "Approximating KL divergence"
l1.kl_k3_reference | nats | optimizer batch | token | mean of rho - 1 - log rho, rho = pi_reference / pi, over the same tokens (k3) | which behaviour left the reference; early trouble: it warns late | none | 0..inf | Schulman 2020, "Approximating KL divergence"
l1.trajectory_age | versions | trajectory | time | policy versions between the one that sampled a trained trajectory and the one that it trains | harm: an old trajectory can still be near on-policy | none | 0..inf | spec "trajectories and proxy"
l1.sequence_ratio | none | trajectory | token | product over policy tokens of pi_new / mu at the trajectory's last step, mu: its sampler as recomputed | which tokens moved: tiny equal ratios multiply up | none | 0..inf | spec "trajectories and proxy"
l1.trajectory_kl_k3 | nats | trajectory | token | mean of rho - 1 - log rho, rho = pi_new / mu, over policy tokens at the last step | direction of the move | none | 0..inf | Schulman 2020, "Approximating KL divergence"
l1.trajectory_clip_share | share | trajectory | token | trained tokens whose objective uses a bound, at the last step | low from high: see the batch's shares | none | 0..1 | spec "trajectories and proxy"
l1.effective_sample_size | samples | optimizer batch | rollout | (sum w)^2 / sum w^2 of the ratios pi_new / mu at the last steps; over trajectories or tokens | spread before the last step; correlated tokens count as if they were not | none | 0..inf | Kish 1965, effective sample size; spec "trajectories and proxy"
l1.engine_drift_mean | nats | optimizer batch | token | mean |sampler - recomputed| log-probability of sampled tokens | bias: it is a numerical difference of two code paths | lower | 0..inf | spec "rollout and capture"
l1.engine_drift_max | nats | optimizer batch | token | largest |sampler - recomputed| log-probability | how common it is | lower | 0..inf | spec "rollout and capture"
l1.skipped_share | share | optimizer batch | time | 1 where the batch trained nothing, else 0 | why: see the update's reason | none | 0..1 | spec "objective and update"
l1.masked_token_share | share | optimizer batch | token | policy tokens that the credit rule removed over policy tokens | whether removal helped | none | 0..1 | spec "objective and update"
l2.entropy_sampled | nats | collection shard | vocabulary | exact entropy of the next-token distribution at each sampled token, mean; by segment | whether low entropy is skill or collapse | none | 0..inf | Shannon 1948
l2.entropy_trained | nats | optimizer step | vocabulary | exact entropy at each trained token under the current weights, mean; by segment | the tokens that credit removed | none | 0..inf | Shannon 1948
l2.response_length | tokens | collection shard | rollout | policy tokens of a trajectory, over all its turns, mean | Observation tokens: they are not counted | none | 0..inf | spec "metrics"
l2.segment_length | tokens | collection shard | rollout | tokens of one segment per turn, mean; by segment | whether the text is useful | none | 0..inf | spec "metrics"
l2.distinct_2 | share | collection shard | rollout | distinct pairs of neighbouring ids over all pairs of a segment, mean over turns; by segment | repetition across turns | none | 0..1 | Li et al. 2016, "distinct-n"
l2.format_compliance | share | collection shard | rollout | turns read as one legal action over turns; by segment: turns with it that close their think, are read as a legal call (action) or as a legal Finish (answer) | whether the action was sensible; a broken Finish from a broken call: it counts as action | higher | 0..1 | spec "metrics"
l2.tool_calls_mean | calls | collection shard | rollout | executed tool calls of a trajectory, mean | which calls were needed | none | 0..inf | spec "metrics"
l2.tool_calls_variance | calls^2 | collection shard | rollout | population variance of executed tool calls | its cause: tasks and slots are mixed | none | 0..inf | spec "metrics"
l2.share_at_budget | share | collection shard | rollout | trajectories that spent the decision budget | whether more budget would help | none | 0..1 | spec "metrics"
l2.repeat_call_rate | share | collection shard | rollout | repeated calls over executed calls (same tool, same arguments) | a repeat after a retryable failure from a pointless one | none | 0..1 | spec "metrics"
l2.productive_call_rate | share | collection shard | rollout | productive calls over executed calls | the value of what was found | none | 0..1 | spec "metrics"
l2.finish_rate | share | collection shard | rollout | trajectories that end by a legal Finish | correctness | none | 0..1 | spec "rollout and capture"
l2.policy_error_rate | share | collection shard | rollout | trajectories that end by an unparseable action | infrastructure failures: they are not counted | lower | 0..1 | spec "rollout and capture"
l2.premature_finish_rate | share | collection shard | rollout | finishes with insufficient evidence over finishes | an honest limitation from haste | lower | 0..1 | spec "rollout and capture"
l2.failure_exposure | share | collection shard | rollout | trajectories that saw at least one failed Observation | how the failures came about | none | 0..1 | spec "rollout and capture"
l2.recovery_by_exposure | share | collection shard | rollout | trajectories with a success after a failure over exposed ones | recovery where no failure was seen | higher | 0..1 | spec "rollout and capture"
l2.recovery_all | share | collection shard | rollout | trajectories with a success after a failure over all | skill: exposure differs between policies | none | 0..1 | spec "rollout and capture"
l2.fatal_rate | share | collection shard | rollout | trajectories with three consecutive failed decisions | fault of the policy: injected failures count | none | 0..1 | spec "rollout and capture"
l2.continued_after_fatal | share | collection shard | rollout | Fatal trajectories with a later decision over Fatal ones | whether going on was right | none | 0..1 | spec "rollout and capture"
l2.infrastructure_invalid_share | share | collection shard | rollout | trajectories without outcome because infrastructure broke | anything about the policy | lower | 0..1 | spec "rollout and capture"
l2.observation_influence | share | collection shard | token | content tokens of a segment after an Observation whose id occurs in it and nowhere in the context before, over content tokens; by segment | use without copying, and copying without use; ids that the context held already never count | none | 0..1 | own measure, spec "metrics"
l2.state_outside_demonstrations | share | collection shard | rollout | decisions at a state label that no warm-start demonstration visits over decisions | states that the label lumps together; how well a covered state was learnt | none | 0..1 | spec "metrics"
l2.length_correctness_r | none | collection shard | rollout | point-biserial correlation of policy tokens with success | cause: hard tasks are longer | none | -1..1 | Tate 1954, point-biserial correlation
l2.correct_by_length | share | collection shard | rollout | share correct within a length tercile; by tercile | cause: hard tasks are longer | none | 0..1 | spec "metrics"
l3.reward_mean | reward | group or shard | rollout | mean reward of valid trajectories | success: components compensate one another | higher | none | spec "metrics"
l3.reward_std | reward | collection shard | rollout | population standard deviation of rewards of valid trajectories | within-group spread: tasks are mixed | none | 0..inf | spec "metrics"
l3.success_rate | share | collection shard | rollout | valid trajectories that satisfy the environment's success definition | partial progress | higher | 0..1 | spec "rollout and capture"
l3.group_sigma | reward | group or shard | rollout | population standard deviation of a group's rewards | whether the spread is skill or noise | none | 0..inf | spec "objective and update"
l3.group_sigma_quantile | reward | collection shard | prompt | quantile of the groups' sigma, linear between order statistics; by q | whether the spread is skill or noise | none | 0..inf | spec "metrics"
l3.zero_variance_share | share | collection shard | prompt | eligible groups whose reward variance is at most 1e-12 | why: all right, all wrong and all equal are told apart beside it | none | 0..1 | spec "objective and update"
l3.zero_all_right_share | share | collection shard | prompt | eligible groups without variance, all successful | whether harder tasks exist | none | 0..1 | spec "metrics"
l3.zero_all_wrong_share | share | collection shard | prompt | eligible groups without variance, none successful | too hard, broken or over-strict | none | 0..1 | spec "metrics"
l3.pass_gap | share | collection shard | prompt | mean over groups of any-success minus mean success (pass@k - pass@1, k = group size) | gains beyond k samples | none | 0..1 | spec "metrics"
l3.pass_at_k | share | collection shard | prompt | unbiased pass@k of a group's n trajectories, mean over groups; by k | whether the policy finds it alone: k tries are judged by an oracle | higher | 0..1 | Chen et al. 2021, pass@k
l3.pass_gap_k | share | collection shard | prompt | unbiased pass@k minus pass@1, mean over groups; by k | gains beyond the group's size | none | 0..1 | Chen et al. 2021, pass@k; spec "metrics"
l3.groups_with_signal | share | collection shard | prompt | groups that are eligible and have variance over all groups | size of the signal | none | 0..1 | spec "metrics"
l3.groups_with_update | share | optimizer batch | prompt | groups that were trained on over all groups of the batch | size of the step | none | 0..1 | spec "metrics"
l3.effective_batch | trajectories | optimizer batch | rollout | (sum |A|)^2 / sum A^2 over trained trajectories | token counts: every trajectory counts once | none | 0..inf | Kish 1965, effective sample size
l3.funnel_trajectories | trajectories | optimizer batch | rollout | trajectories of the batch that passed a stage and all before it (started, finished, not_infrastructure_failed, reconstructed, not_too_old, in_complete_group, with_signal); by stage | why one was lost: see its group | none | 0..inf | spec "trajectories and proxy"
l3.funnel_share | share | optimizer batch | rollout | the same over the started; by stage | what the lost ones would have taught | none | 0..1 | spec "trajectories and proxy"
l3.funnel_tokens | tokens | optimizer batch | rollout | generated tokens of the trajectories of a stage; by stage | seconds and idle machines: see the receipts | none | 0..inf | spec "trajectories and proxy"
l3.reward_concentration | share | collection shard | prompt | reward earned by the best tenth of groups (at least one) over all reward | whether those prompts are easy or learnt | none | 0..1 | spec "metrics"
l3.edit_signed_mass | none | optimizer batch | token | sum of the coefficients that an edit added to a trajectory's policy tokens, mean over trained trajectories; by arm | where the mass lies: B spreads it, M puts it on one turn | none | none | spec "counterfactual edit credit"
l3.edit_l1_mass | none | optimizer batch | token | sum of their absolute values, mean over trained trajectories; by arm | its sign, and its weight in the gradient: squared mass differs between arms | none | 0..inf | spec "counterfactual edit credit"
l3.edit_squared_mass | none | optimizer batch | token | sum of their squares, mean over trained trajectories; by arm | equality of arms: B and M share signed and L1 mass, not this | none | 0..inf | spec "counterfactual edit credit"
l3.edit_capped_share | share | optimizer batch | rollout | trajectories where the cap acted over those with a coefficient; by arm | how far above the cap the raw value was | none | 0..1 | spec "counterfactual edit credit"
l3.edit_nonzero_share | share | optimizer batch | rollout | trajectories with D other than 0 over trained ones with a known D; by arm | whether D is the edit's doing: it conditions on the other finished files | none | 0..1 | spec "counterfactual edit credit"
l3.edit_unavailable_share | share | optimizer batch | rollout | trained trajectories whose coefficient is withheld for a reason over trained ones; by arm and reason | groups that were not trained: see the trials' funnel | none | 0..1 | spec "counterfactual edit credit"
l3.edit_selected_share | share | optimizer batch | rollout | policy tokens of the selected turn over those of the trajectory (m / L), median over trajectories with a coefficient; by arm | trajectories without a coefficient | none | 0..1 | spec "counterfactual edit credit"
l3.edit_shrinkage | none | optimizer batch | rollout | s = min(1, c / |lambda D L / m|), median over trajectories with a coefficient; by arm | sizes of D: below 1 they are mostly not preserved | none | 0..1 | spec "counterfactual edit credit"
l3.edit_only_groups | share | optimizer batch | prompt | trained groups without reward variance over trained groups; by arm | whether training on them helped | none | 0..1 | spec "counterfactual edit credit"
l3.gradient_share | share | optimizer step | prompt | gradient norms of the trajectories of a stratum over those of all; by stratum of group success | direction: norms add where gradients cancel | none | 0..1 | spec "metrics"
l4.action_edit_distance | share | group or shard | rollout | mean pairwise edit distance of action sequences, over the longer length | whether different paths are better | none | 0..1 | Levenshtein 1966
l4.distinct_sequences | sequences | group or shard | rollout | distinct action sequences of a group | distance between them | none | 0..inf | spec "metrics"
l4.step_group_size | trajectories | collection shard | rollout | trajectories of a group that visit a state, mean over its states | concentration from a forced start: both readings apply | none | 0..inf | spec "metrics"
l4.state_concentration | share | group or shard | rollout | sum of squared shares of the visits to a group's states, a rollout visits a state once | concentration on a good path from a forced start: both readings apply | none | 0..1 | Herfindahl 1950, Hirschman 1945
l4.entropy_by_decision | nats | collection shard | vocabulary | exact entropy at each sampled token, mean by index of the decision (15 and later together); by decision | change over training: see the series of one decision | none | 0..inf | Shannon 1948
l4.entropy_left | share | run | time | sampled entropy of the latest collection over that of the run's first | whether what is gone was noise; a change of tasks between the two | none | 0..inf | spec "metrics"
l4.entropy_slope | nats | run | time | least-squares slope of sampled entropy a policy version, over the last 20 collections | whether it will go on; drops within one collection | none | none | least squares; spec "metrics"
l4.state_coverage | states | collection shard | rollout | distinct state labels visited | states that the label lumps together | none | 0..inf | spec "metrics"
l4.think_edit_distance | share | group or shard | rollout | mean pairwise edit distance of think ids of the first decision, over the longer length | meaning: paraphrases are distant | none | 0..1 | Levenshtein 1966
l5.reward | reward | evaluation cell | prompt | mean reward of a task's valid repeats, mean over tasks; low and high: 95 % task-bootstrap interval; by bound | tasks that were not asked; infrastructure failures: they are left out | higher | none | task bootstrap, spec "evaluation statistics"
l5.success_rate | share | evaluation cell | prompt | share of a task's valid repeats that succeed (pass@1), mean over tasks; by bound | partial progress | higher | 0..1 | task bootstrap, spec "evaluation statistics"
l5.pass_at_k | share | evaluation cell | prompt | unbiased pass@k of a task's repeats, mean over tasks with at least k; by k | whether one try suffices | higher | 0..1 | Chen et al. 2021, pass@k
l5.pass_hat_k | share | evaluation cell | prompt | unbiased pass^k of a task's repeats (all k succeed), mean over tasks with at least k; by k | how the failing tries fail | higher | 0..1 | spec "evaluation statistics"
l5.reward_gap | reward | two evaluation cells | prompt | l5.reward in distribution minus out of distribution of one checkpoint; by outside split and bound | memory from harder tasks: the two task sets differ in difficulty as well | none | none | task bootstrap, spec "evaluation statistics"
l5.success_gap | share | two evaluation cells | prompt | l5.success_rate in distribution minus out of distribution of one checkpoint; by outside split and bound | memory from harder tasks: the two task sets differ in difficulty as well | none | -1..1 | task bootstrap, spec "evaluation statistics"
l5.reward_forgotten | reward | two evaluation cells | prompt | reward of the parent minus that of the checkpoint on the same anchor tasks, paired by task; by bound | loss of what the anchor tasks do not ask | lower | none | task bootstrap, spec "evaluation statistics"
l5.success_forgotten | share | two evaluation cells | prompt | success of the parent minus that of the checkpoint on the same anchor tasks, paired by task; by bound | loss of what the anchor tasks do not ask | lower | -1..1 | task bootstrap, spec "evaluation statistics"
l6.think_share | share | probe set | rollout | decisions with a think segment over decisions of the probe set's own rollouts | whether the segment is used | none | 0..1 | spec "metrics"
l6.think_readable | share | probe set | rollout | think segments that the environment can read over think segments | what an unread segment says | none | 0..1 | spec "metrics"
l6.statements_true | share | probe set | rollout | facts stated in think segments that the environment's ground truth confirms over those that it can check | facts that the segment leaves out | higher | 0..1 | Lightman et al. 2023, step verification
l6.think_action_agreement | share | probe set | rollout | actions equal to the one that their think segment states over think segments that state one | which of the two caused the other | none | 0..1 | spec "metrics"
l6.think_action_nmi | none | probe set | rollout | mutual information of the environment's labels of think and action over the mean of their entropies; none where a label does not vary | agreement by chance: it rises when decisions are few | none | 0..1 | Strehl and Ghosh 2002, arithmetic mean
l6.action_unchanged | share | probe set | rollout | probed decisions whose next action stays the same under the same noise after an intervention on the think segment; by intervention | a changed mind from a broken one: see l6.action_legal and the random-token control | none | 0..1 | Lanham et al. 2023, "Measuring faithfulness"
l6.answer_unchanged | share | probe set | rollout | probed decisions whose final answer stays the same under the same noise after an intervention on the think segment; by intervention | whether a later turn put right what the intervention broke | none | 0..1 | Lanham et al. 2023, "Measuring faithfulness"
l6.action_legal | share | probe set | rollout | probed decisions whose next action is legal after an intervention on the think segment; by intervention | whether the action is sensible | none | 0..1 | ours: tells a changed action from a broken one
l6.corruption_followed | share | probe set | rollout | corrupted think segments whose next action is the one that the corrupted text states | reasoning: copying a statement follows it too | none | 0..1 | ours: changed as expected
l6.reproduced | share | probe set | rollout | probed decisions at which the untouched think segment, forced, gives the rollout's own action and answer again | anything about the policy: it checks the instrument | higher | 0..1 | ours: control of the probe
l6.unmeasured_share | share | probe set | rollout | interventions without a sample (unavailable or failed) over those planned; by intervention | why: the probe's document names each reason | lower | 0..1 | ours: nothing is skipped silently
l6.single_correct | share | probe set | prompt | share of a task's N repeats that are correct, mean over tasks | spread within a task | higher | 0..1 | Wang et al. 2022, "Self-consistency"
l6.majority_correct | share | probe set | prompt | correctness of a task's most frequent final answer among N repeats (ties: their mean), mean over tasks | how clear the majority was | higher | 0..1 | Wang et al. 2022, "Self-consistency"
l6.self_consistency_gap | share | probe set | prompt | majority vote of N minus single, mean over tasks | the gap beyond N repeats | none | -1..1 | Wang et al. 2022, "Self-consistency"
l6.probe_generations | trajectories | probe set | rollout | trajectories that the probe generated beside training and evaluation; by kind | their length: see l6.probe_tokens | none | 0..inf | ours: cost of the probe
l6.probe_tokens | tokens | probe set | token | tokens that the probe sampled | prompt tokens: they are read, not sampled | none | 0..inf | ours: cost of the probe
""")


def definition(identity: str) -> MetricDefinition:
    """The definition; raises ``KeyError`` for an id that the table does not hold."""
    return METRIC_DEFINITIONS[identity]
