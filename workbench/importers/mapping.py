# ruff: noqa: E501 - one name a line
"""Metric names of other trainers, placed on the layers: pure data.

Equal names differ between trainers, so each line has a definition id of its own
(``trl:clip_ratio/low_mean/1``). ``nearest`` is the id of ours that measures the same object, and the
note says what still differs; no nearest id means that nothing of ours measures it. A name that no line
matches is *unmapped*: it stays visible under its own name and is never guessed.

Patterns: ``(a,b)`` stands for each of its words, ``{x}`` for one part without a slash, ``{x+}`` for
anything. Sources: the trainers' own code, read in August 2026; TRL 1.16 read again as installed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mapping:
    """One foreign name. ``layer`` L1 to L5 or ``system`` (throughput, counters). ``nearest``: "" for none."""

    framework: str
    pattern: str
    layer: str
    nearest: str
    definition: str
    note: str


# name | layer | nearest of ours | what differs from it, or what it is
TABLES: dict[str, str] = {
    "trl": """
loss | L1 | l1.loss/1 | aggregation is the trainer's loss_type; with one inner step its value is near 0 and says nothing of learning
policy_loss | L1 | l1.loss/1 | policy part alone, without the KL and entropy terms
grad_norm | L1 | l1.grad_norm/1 | before clipping, of the trainable parameters; averaged over logging steps
learning_rate | L1 | | setting of the schedule, not a measurement
kl | L1 | l1.kl_k3_reference/1 | synchronous trainer: k3 estimate to the reference policy; the asynchronous trainer logs KL to the old policy under the same name
clip_ratio/(low_mean,low_min) | L1 | l1.clip_low_share/1 | share of tokens clipped by the policy clip at the low side with negative advantage; min is over devices
clip_ratio/(high_mean,high_max) | L1 | l1.clip_high_share/1 | share of tokens clipped by the policy clip at the high side with positive advantage; max is over devices
clip_ratio/region_mean | L1 | | low and high side together; ours keeps the sides apart
cispo_clip_ratio | L1 | | share of tokens whose weight is capped under CISPO; nothing is removed there
vespo/phi_seq_mean | L1 | | sequence weight of VESPO
entropy_coef | L1 | | setting of the entropy controller
aux_loss | L1 | | load-balancing loss of a mixture of experts
sampling/sampling_logp_difference/mean | L1 | l1.engine_drift_mean/1 | sampler against trainer, absolute, over completion tokens
sampling/sampling_logp_difference/max | L1 | l1.engine_drift_max/1 | sampler against trainer, absolute
sampling/importance_sampling_ratio/(min,mean,max) | L1 | | trainer over sampler, after the cap of the trainer where one is set
entropy | L2 | l2.entropy_trained/1 | exact over the vocabulary, at completion tokens
completions/mean_length | L2 | l2.response_length/1 | tool tokens excluded; completion tokens of a single conversation
completions/(min_length,max_length) | L2 | | extreme of the batch; tool tokens excluded
completions/(mean_terminated_length,min_terminated_length,max_terminated_length) | L2 | | completions that ended by themselves only
completions/clipped_ratio | L2 | | share truncated by the length limit: truncation, not the policy clip
tools/call_frequency | L2 | l2.tool_calls_mean/1 | calls over completions, failed ones included
tools/failure_frequency | L2 | | failed calls over calls
reward | L3 | l3.reward_mean/1 | weighted sum of the reward functions
reward_std | L3 | l3.reward_std/1 | over the batch with ddof=1, tasks mixed; not within groups
frac_reward_zero_std | L3 | l3.zero_variance_share/1 | threshold is a float comparison of the standard deviation; all-right and all-wrong are not told apart
rewards/{function}/mean | L3 | l3.reward_mean/1 | one reward function, unweighted
rewards/{function}/std | L3 | l3.reward_std/1 | one reward function, over the batch, ddof=1
eval_{metric+} | L5 | | the same name on the evaluation set; the set decides whether it is in distribution
num_tokens | system | | tokens seen by the trainer, prompts included
step_time | system | | seconds of a training step
epoch | system | | share of the data seen
train_(runtime,samples_per_second,steps_per_second,loss) | system | | summary at the end of training
total_flos | system | | operations, estimated
""",
    "verl": """
actor/(pg_loss,loss) | L1 | l1.loss/1 | aggregation is loss_agg_mode; token-mean by default, fully masked rows dropped from the denominator
actor/ppo_kl | L1 | l1.kl_k1_old/1 | mean of old minus new log-probability
actor/pg_clipfrac | L1 | l1.clip_high_share/1 | both sides of the policy clip together: ours keeps them apart
actor/pg_clipfrac_lower | L1 | | dual clip of negative advantages, another threshold than our low side
actor/kl_loss | L1 | l1.kl_k3_reference/1 | to the reference; estimator is kl_loss_type
actor/kl_coef | L1 | | setting
actor/grad_norm | L1 | l1.grad_norm/1 | before clipping
actor/lr | L1 | | setting of the schedule
rollout_corr/(rollout_is_mean,rollout_is_std,rollout_is_min,rollout_is_max) | L1 | | importance weights of trainer over rollout engine, after the threshold
rollout_corr/rollout_is_eff_sample_size | L1 | l1.effective_sample_size/1 | of the correction weights, as a share of the batch
rollout_corr/kl | L1 | l1.engine_drift_mean/1 | KL of rollout engine against trainer, not to an old policy: signed, where ours is absolute
rollout_corr/k3_kl | L1 | | k3 estimate of rollout engine against trainer
rollout_corr/{name+} | L1 | | rollout engine against trainer
training/rollout_probs_diff_mean | L1 | l1.engine_drift_mean/1 | difference of probabilities, not of log-probabilities
training/rollout_probs_diff_max | L1 | l1.engine_drift_max/1 | difference of probabilities, not of log-probabilities
training/rollout_probs_diff_std | L1 | | difference of probabilities, not of log-probabilities
training/off_policy/trajectory_staleness/(min,mean,max) | L1 | l1.trajectory_age/1 | age in policy versions
actor/entropy | L2 | l2.entropy_trained/1 | over response tokens; aggregation is loss_agg_mode
response_length/mean | L2 | l2.response_length/1 | tool tokens included
response_length/(max,min) | L2 | | extreme of the batch; tool tokens included
response_length/clip_ratio | L2 | | share truncated at the length limit: truncation, not the policy clip
response_length_non_aborted/{statistic} | L2 | l2.response_length/1 | without aborted responses; tool tokens included
response/aborted_ratio | L2 | | responses of length 0
prompt_length/{statistic} | L2 | | prompts, not behaviour
num_turns/{statistic} | L2 | | assistant turns of a trajectory
tool_call_counts/{statistic} | L2 | l2.tool_calls_mean/1 | all calls, failed ones included
critic/(score,rewards)/mean | L3 | l3.reward_mean/1 | score is before, rewards after the KL penalty; over the batch
critic/(score,rewards)/(max,min) | L3 | | extreme of the batch
critic/(advantages,returns)/(mean,max,min) | L3 | | over tokens of the batch; sigma with ddof=1, and a group of one keeps its raw reward
training/filter_groups/{name+} | L3 | | groups kept and dropped by the filter
val-core/{source+}/mean@{n} | L5 | l3.success_rate/1 | mean over n samples of the named variable; a rate only where that variable is 0 or 1
val-core/{source+}/(std@{n},best@{n}/mean,worst@{n}/mean,maj@{n}/mean,best@{n}/std,worst@{n}/std,maj@{n}/std) | L5 | | bootstrapped from n samples; best is the best variable, which is pass only for 0 and 1
val-aux/{source+} | L5 | | further variables of the validation set
training/{name} | system | | counter
perf/{name+} | system | | throughput
timing_s/{name+} | system | | seconds of a phase
timing_per_token_ms/{name+} | system | | milliseconds a token
global_seqlen/{name+} | system | | balance of sequence lengths
""",
    "skyrl": """
policy/(final_loss,policy_loss) | L1 | l1.loss/1 | final adds KL and entropy terms; reduction is loss_reduction
policy/policy_lr | L1 | | setting of the schedule
policy/policy_kl | L1 | l1.kl_k3_reference/1 | to the reference; estimator is the trainer's setting
policy/(clip_ratio,ppo_clip_ratio) | L1 | l1.clip_high_share/1 | both sides of the policy clip together
policy/is_ratio_(mean,std,max,min) | L1 | | importance ratio of trainer over sampler
policy/rollout_train_logprobs_abs_diff_mean | L1 | l1.engine_drift_mean/1 | absolute, over response tokens
policy/rollout_train_logprobs_abs_diff_max | L1 | l1.engine_drift_max/1 | absolute, over response tokens
policy/rollout_train_logprobs_abs_diff_{statistic} | L1 | | absolute, over response tokens
policy/(raw_grad_norm,grad_norm) | L1 | l1.grad_norm/1 | before clipping
async/staleness_(mean,max,min) | L1 | l1.trajectory_age/1 | steps between generation and training
async/staleness_{statistic+} | L1 | | steps between generation and training
policy/policy_entropy | L2 | l2.entropy_trained/1 | over response tokens
generate/avg_num_tokens | L2 | l2.response_length/1 | response tokens; tool tokens as the environment's chat template adds them
generate/(min,max,std)_num_tokens | L2 | | over the batch
generate/tokens_per_turn_{statistic} | L2 | | tokens of a turn
generate/{name+} | L2 | | generation
environment/{name+} | L2 | | measured by the environment itself
reward/avg_raw_reward | L3 | l3.reward_mean/1 | summed over tokens, before penalties
reward/avg_pass_at_{n} | L3 | | share of prompts with a positive sample among n: positive reward, not success
reward/mean_positive_reward | L3 | | positive part of the rewards
reward/num_zero_variance_filtered | L3 | l3.zero_variance_share/1 | a count of groups, where ours is a share
loss/(avg_final_rewards,avg_response_length,avg_raw_advantages,avg_raw_advantages_abs) | L3 | | over the batch; sigma with ddof=1
eval/{source+}/avg_score | L5 | l3.success_rate/1 | mean score, a rate only for scores of 0 and 1
eval/{source+}/pass_at_{n} | L5 | | positive reward among n samples
eval/all/{name+} | L5 | | all evaluation sets together
eval/{source+} | L5 | | evaluation
trainer/{name+} | system | | counter
timing/{name+} | system | | seconds of a phase
""",
    "prime-rl": """
loss/mean | L1 | l1.loss/1 | token mean over the batch
loss/nan_count | L1 | | batches whose loss was not finite
loss/{name+} | L1 | | part of the loss
optim/grad_norm | L1 | l1.grad_norm/1 | before clipping
optim/lr | L1 | | setting of the schedule
optim/{name+} | L1 | | optimizer
mismatch_kl/all/mean | L1 | l1.engine_drift_mean/1 | k3 estimate of trainer against inference engine: never negative, where ours is an absolute difference
mismatch_kl/{name+} | L1 | | k3 estimate of trainer against inference engine
off_policy/{name+} | L1 | l1.trajectory_age/1 | steps between inference weights and trainer
entropy/all/mean | L2 | l2.entropy_trained/1 | exact over the vocabulary
entropy/{name+} | L2 | | exact over the vocabulary, another subset or statistic
train/{env}/(all,effective)/{agent}/num_output_tokens/mean | L2 | l2.response_length/1 | sampled tokens of all turns; effective keeps only rollouts with a gradient
train/{env}/(all,effective)/{agent}/(num_total_tokens,num_input_tokens,num_output_tokens)/{statistic} | L2 | | total and input count tool and prompt tokens
train/{env}/(all,effective)/{agent}/num_turns/{statistic} | L2 | | model calls of a trajectory
train/{env}/(all,effective)/{agent}/is_truncated/mean | L2 | | share cut off by a length limit
num_turns/{statistic} | L2 | | model calls of a trajectory
is_truncated/mean | L2 | | share cut off by a length limit
train/{env}/(all,effective)/{agent}/reward/mean | L3 | l3.reward_mean/1 | weighted sum of the environment's rewards; effective is a selection
{prefix+}/reward/{statistic+} | L3 | | weighted sum of the environment's rewards
reward/mean | L3 | l3.reward_mean/1 | weighted sum of the environment's rewards, all environments together
reward/{name+} | L3 | | weighted sum of the environment's rewards
solved_none | L3 | l3.zero_all_wrong_share/1 | share of groups in which no rollout was solved
solved_all | L3 | l3.zero_all_right_share/1 | share of groups in which every rollout was solved
solved_some | L3 | l3.groups_with_signal/1 | share of groups with both kinds
{prefix+}/solved_none | L3 | l3.zero_all_wrong_share/1 | share of groups in which no rollout was solved
{prefix+}/solved_all | L3 | l3.zero_all_right_share/1 | share of groups in which every rollout was solved
{prefix+}/solved_some | L3 | l3.groups_with_signal/1 | share of groups with both kinds
has_error/mean | L3 | l2.infrastructure_invalid_share/1 | any error of a rollout, the policy's own among them
{prefix+}/has_error/mean | L3 | l2.infrastructure_invalid_share/1 | any error of a rollout, the policy's own among them
eval/{env}/{name+}/avg@{n} | L5 | l3.success_rate/1 | mean reward over n samples, a rate only for rewards of 0 and 1
eval/{env}/avg@{n} | L5 | l3.success_rate/1 | mean reward over n samples, a rate only for rewards of 0 and 1
eval/{env}/{name+}/pass@{k} | L5 | | unbiased estimate from n samples
eval/{env}/pass@{k} | L5 | | unbiased estimate from n samples
eval/{name+} | L5 | | evaluation
train/{name+} | L2 | | measured by the environment itself
perf/{name+} | system | | throughput
time/{name+} | system | | seconds of a phase
progress/{name+} | system | | counter
""",
    "openrlhf": """
policy_loss | L1 | l1.loss/1 | fully masked rows dropped from the denominator
actor_grad_norm | L1 | l1.grad_norm/1 | before clipping
(actor_lr,critic_lr) | L1 | | setting of the schedule
ppo_clip_ratio | L1 | l1.clip_high_share/1 | both sides of the policy clip together
ppo_kl | L1 | l1.kl_k1_old/1 | to the old policy
vllm_kl | L1 | l1.engine_drift_mean/1 | inference engine against trainer, signed
kl | L1 | l1.kl_k1_reference/1 | to the reference; estimator is the trainer's setting
logprobs_diff | L1 | l1.engine_drift_mean/1 | inference engine against trainer
critic_loss | L1 | | value model, which we do not train
entropy_loss | L2 | l2.entropy_trained/1 | entropy as part of the loss
response_length | L2 | l2.response_length/1 | first to last trained token: the tool tokens between count
total_length | L2 | | prompt and response
truncated | L2 | | share cut off at the length limit
reward | L3 | l3.reward_mean/1 | over the batch
return | L3 | | over tokens, with the KL penalty
group_reward_std | L3 | l3.group_sigma/1 | ddof=1, where ours has ddof=0
dynamic_filtering_pass_rate | L3 | l3.groups_with_signal/1 | groups kept by the filter over groups generated; the filter looks at the mean, ours at the variance
eval_{dataset}_pass1 | L5 | l3.success_rate/1 | mean reward of single samples
eval_{dataset}_pass{n} | L5 | | the largest reward of n samples, called pass: not the pass@n estimate
eval_{name+} | L5 | | evaluation
""",
    "slime": """
train/pg_clipfrac | L1 | l1.clip_high_share/1 | both sides of the policy clip together
train/ppo_kl | L1 | l1.kl_k1_old/1 | to the old policy
train/kl_loss | L1 | l1.kl_k3_reference/1 | to the reference; estimator is the trainer's setting
train/(tis,tis_clipfrac,tis_abs) | L1 | | truncated importance weights of trainer over rollout engine
train/grad_norm | L1 | l1.grad_norm/1 | before clipping
train/(loss,pg_loss) | L1 | l1.loss/1 | aggregation is the trainer's setting
train/train_rollout_logprob_abs_diff | L1 | l1.engine_drift_mean/1 | absolute, over response tokens
train/entropy_loss | L2 | l2.entropy_trained/1 | entropy of the trained tokens
rollout/response_len/{statistic} | L2 | l2.response_length/1 | response tokens, tool tokens as the rollout function adds them
rollout/truncated_ratio | L2 | | share cut off at the length limit
rollout/repetition_frac | L2 | l2.distinct_2/1 | share of responses called repetitive by a rule, where ours is a share of distinct pairs
rollout/zero_std/count_{reward} | L3 | l3.zero_variance_share/1 | a count of groups by the reward that all share, where ours is a share
rollout/(raw_reward,rewards) | L3 | l3.reward_mean/1 | over the batch
eval/{name+} | L5 | | evaluation
perf/{name+} | system | | throughput
train/{name+} | L1 | | training
rollout/{name+} | L2 | | rollouts
""",
    "nemo-rl": """
loss | L1 | l1.loss/1 | token or sequence level by setting
grad_norm | L1 | l1.grad_norm/1 | before clipping
(lr,wd) | L1 | | setting of the schedule
probs_ratio | L1 | | mean importance ratio to the old policy, before clipping
probs_ratio_clamped | L1 | | mean importance ratio after clipping
probs_ratio{name+} | L1 | | importance ratio to the old policy
token_mult_prob_error | L1 | l1.engine_drift_mean/1 | mean of exp of the absolute difference: 1 means none, where ours is 0
gen_kl_error | L1 | | KL of generation engine against trainer
kl_penalty | L1 | l1.kl_k3_reference/1 | to the reference
approx_entropy | L2 | l2.entropy_sampled/1 | estimated from the sampled tokens, where ours is exact over the vocabulary
(truncation_rate,natural_termination_rate) | L2 | | share cut off, or ended by itself
invalid_tool_call_rate | L2 | l2.policy_error_rate/1 | calls that could not be read over calls, where ours counts trajectories
mean_gen_tokens_per_sample | L2 | l2.response_length/1 | generated tokens
(avg_turns_per_sample,mean_total_tokens_per_sample) | L2 | | turns, and all tokens
reward | L3 | l3.reward_mean/1 | over the batch
baseline_reward/pct_0 | L3 | l3.zero_all_wrong_share/1 | prompts whose baseline is 0
baseline_reward/pct_1 | L3 | l3.zero_all_right_share/1 | prompts whose baseline is 1
baseline_reward/pct_mixed | L3 | l3.groups_with_signal/1 | prompts with a baseline between
(accuracy,validation/accuracy) | L5 | l3.success_rate/1 | mean reward on the validation set
train/{name+} | L1 | | training
validation/{name+} | L5 | | evaluation
""",
    "tinker": """
optim/entropy | L2 | l2.entropy_sampled/1 | estimated from the sampled tokens, where ours is exact over the vocabulary
optim/kl_sample_train_(v1,v2) | L1 | l1.engine_drift_mean/1 | sampler against trainer: k1 and k2 estimates, signed and squared
optim/lr | L1 | | setting of the schedule
env/{name+}/reward/total | L3 | l3.reward_mean/1 | over trajectories
env/all/reward/total | L3 | l3.reward_mean/1 | over trajectories of all environments
env/{name+}/ac_tokens_per_turn | L2 | l2.response_length/1 | sampled tokens of a turn, where ours adds the turns up
env/{name+}/by_group/frac_all_bad | L3 | l3.zero_all_wrong_share/1 | groups whose total rewards are all 0
env/{name+}/by_group/frac_all_good | L3 | l3.zero_all_right_share/1 | groups whose total rewards are all 1
env/{name+}/by_group/frac_mixed | L3 | l3.groups_with_signal/1 | the rest
env/{name+} | L2 | | measured by the environment itself
test/{name+} | L5 | | evaluation
progress/{name+} | system | | counter
time/{name+} | system | | seconds of a phase
""",
}

_PLACE = re.compile(r"\{(\w+)(\+?)\}")
_WORDS = re.compile(r"\(([^()]*,[^()]*)\)")
_LABELS = re.compile(r" \[[^\[\]]*\]$")
FRAMEWORKS = tuple(TABLES)


def _expanded(pattern: str) -> list[str]:
    found = _WORDS.search(pattern)
    if found is None:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return [name for word in found[1].split(",") for name in _expanded(head + word + tail)]


def _regex(pattern: str) -> re.Pattern[str]:
    parts, place = [], 0
    for found in _PLACE.finditer(pattern):
        parts += [re.escape(pattern[place : found.start()]), ".+" if found[2] else "[^/]+"]
        place = found.end()
    return re.compile("".join([*parts, re.escape(pattern[place:])]))


@functools.cache
def mappings(framework: str) -> tuple[Mapping, ...]:
    """All lines of a trainer, in the order in which they are tried. Raises ``KeyError`` for an unknown one."""
    found = []
    for line in TABLES[framework].strip().splitlines():
        pattern, layer, nearest, note = (part.strip() for part in line.split("|", 3))
        for name in _expanded(pattern):
            definition = f"{framework}:{_PLACE.sub(lambda match: '{' + match[1] + '}', name)}/1"
            found.append(Mapping(framework, name, layer, nearest, definition, note))
    return tuple(found)


@functools.cache
def _rules(framework: str) -> tuple[tuple[re.Pattern[str], Mapping], ...]:
    return tuple((_regex(item.pattern), item) for item in mappings(framework))


def _plain_name(framework: str, name: str) -> str:
    """The name without the labels that an import appended, and without the rewriting of the TensorBoard callback."""
    name = _LABELS.sub("", name)
    if framework == "trl" and name.startswith("train/"):
        return name.removeprefix("train/")
    if framework == "trl" and name.startswith("eval/"):
        return "eval_" + name.removeprefix("eval/")
    return name


def map_name(framework: str, name: str) -> Mapping | None:
    """Where a foreign name belongs; None for an unmapped name or an unknown trainer."""
    if framework not in TABLES:
        return None
    plain = _plain_name(framework, name)
    return next((item for rule, item in _rules(framework) if rule.fullmatch(plain)), None)


def as_markdown() -> str:
    """The tables as they stand in ``docs/import.md``."""
    parts = []
    for framework, table in TABLES.items():
        parts += [f"### {framework}", "", "| name | layer | nearest of ours | note |", "| --- | --- | --- | --- |"]
        for line in table.strip().splitlines():
            pattern, layer, nearest, note = (part.strip() for part in line.split("|", 3))
            parts.append(f"| `{pattern}` | {layer} | {f'`{nearest}`' if nearest else 'none'} | {note} |")
        parts.append("")
    return "\n".join(parts)


def guess_framework(names: list[str]) -> str:
    """The trainer whose table knows the most of ``names``, "" where none knows half of them or two tie.

    Lines that match anything below a prefix do not count: several trainers have the same prefixes.
    """

    def known(framework: str) -> int:
        found = (map_name(framework, name) for name in names)
        return sum(item is not None and "+}" not in item.pattern for item in found)

    counts = sorted(((known(key), key) for key in TABLES), reverse=True)
    (best, key), (second, _) = counts[0], counts[1]
    return key if names and 2 * best >= len(names) and best > second else ""
