# ruff: noqa: E501 - names as they are written
"""Foreign metric names on the layers: every name of the reference, and the traps of equal names."""

from __future__ import annotations

import pytest

from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.importers.mapping import FRAMEWORKS, guess_framework, map_name, mappings

# framework, layer, names as the trainers write them
NAMES: tuple[tuple[str, str, str], ...] = (
    ("trl", "L1", "loss grad_norm learning_rate policy_loss kl clip_ratio/low_mean clip_ratio/low_min clip_ratio/high_mean "
     "clip_ratio/high_max clip_ratio/region_mean sampling/sampling_logp_difference/mean sampling/sampling_logp_difference/max "
     "sampling/importance_sampling_ratio/min sampling/importance_sampling_ratio/mean sampling/importance_sampling_ratio/max"),
    ("trl", "L2", "entropy completions/mean_length completions/min_length completions/max_length "
     "completions/mean_terminated_length completions/min_terminated_length completions/max_terminated_length "
     "completions/clipped_ratio tools/call_frequency tools/failure_frequency"),
    ("trl", "L3", "reward reward_std frac_reward_zero_std rewards/accuracy_reward/mean rewards/accuracy_reward/std"),
    ("trl", "L5", "eval_reward eval_rewards/accuracy/mean eval/reward"),
    ("verl", "L1", "actor/pg_loss actor/loss actor/ppo_kl actor/pg_clipfrac actor/pg_clipfrac_lower actor/kl_loss "
     "actor/grad_norm actor/lr rollout_corr/rollout_is_mean rollout_corr/rollout_is_std rollout_corr/rollout_is_min "
     "rollout_corr/rollout_is_max rollout_corr/rollout_is_eff_sample_size rollout_corr/kl rollout_corr/k3_kl "
     "rollout_corr/ppl_ratio training/rollout_probs_diff_mean training/rollout_probs_diff_max "
     "training/rollout_probs_diff_std training/off_policy/trajectory_staleness/min "
     "training/off_policy/trajectory_staleness/mean training/off_policy/trajectory_staleness/max"),
    ("verl", "L2", "actor/entropy response_length/mean response_length/max response_length/min response_length/clip_ratio "
     "response/aborted_ratio num_turns/mean tool_call_counts/max"),
    ("verl", "L3", "critic/score/mean critic/score/max critic/rewards/min critic/advantages/mean critic/returns/max "
     "training/filter_groups/kept"),
    ("verl", "L5", "val-core/openai/gsm8k/reward/mean@8 val-core/math/acc/std@4 val-core/math/acc/best@4/mean "
     "val-core/math/acc/worst@4/mean val-core/math/acc/maj@4/mean val-aux/math/score/mean@1"),
    ("skyrl", "L1", "policy/final_loss policy/policy_loss policy/policy_lr policy/policy_kl policy/clip_ratio "
     "policy/is_ratio_mean policy/is_ratio_std policy/is_ratio_max policy/is_ratio_min "
     "policy/rollout_train_logprobs_abs_diff_mean policy/rollout_train_logprobs_abs_diff_std async/staleness_mean "
     "async/staleness_ratio"),
    ("skyrl", "L2", "policy/policy_entropy generate/avg_num_tokens generate/min_num_tokens generate/max_num_tokens "
     "generate/std_num_tokens generate/tokens_per_turn_mean environment/turns"),
    ("skyrl", "L3", "reward/avg_raw_reward reward/avg_pass_at_8 reward/mean_positive_reward "
     "reward/num_zero_variance_filtered"),
    ("skyrl", "L5", "eval/openai_gsm8k/avg_score eval/openai_gsm8k/pass_at_4 eval/all/avg_score"),
    ("prime-rl", "L1", "loss/mean loss/nan_count optim/grad_norm optim/lr mismatch_kl/all/mean off_policy/level"),
    ("prime-rl", "L2", "entropy/all/mean train/math/all/solver/num_total_tokens/mean "
     "train/math/effective/solver/num_input_tokens/max train/math/all/solver/num_output_tokens/mean num_turns/mean "
     "train/math/all/solver/num_turns/mean train/math/all/solver/is_truncated/mean is_truncated/mean"),
    ("prime-rl", "L3", "reward/mean train/math/all/solver/reward/mean train/math/all/solver/reward/std solved_none "
     "solved_all solved_some has_error/mean train/math/all/solver/has_error/mean"),
    ("prime-rl", "L5", "eval/math/solver/avg@4 eval/math/avg@4 eval/math/solver/pass@2"),
    ("openrlhf", "L1", "policy_loss actor_grad_norm actor_lr ppo_clip_ratio ppo_kl vllm_kl kl logprobs_diff"),
    ("openrlhf", "L2", "entropy_loss response_length total_length truncated"),
    ("openrlhf", "L3", "reward return group_reward_std dynamic_filtering_pass_rate"),
    ("openrlhf", "L5", "eval_math_pass1 eval_math_pass8"),
    ("slime", "L1", "train/pg_clipfrac train/ppo_kl train/kl_loss train/tis train/tis_clipfrac train/grad_norm"),
    ("slime", "L2", "train/entropy_loss rollout/response_len/mean rollout/truncated_ratio rollout/repetition_frac"),
    ("slime", "L3", "rollout/zero_std/count_0 rollout/zero_std/count_1.0"),
    ("nemo-rl", "L1", "probs_ratio probs_ratio_clamped probs_ratio_max token_mult_prob_error gen_kl_error"),
    ("nemo-rl", "L2", "approx_entropy invalid_tool_call_rate truncation_rate"),
    ("nemo-rl", "L3", "baseline_reward/pct_0 baseline_reward/pct_1 baseline_reward/pct_mixed"),
)  # fmt: skip


@pytest.mark.parametrize(("framework", "layer", "names"), NAMES)
def test_every_name_of_the_reference_has_its_layer(framework: str, layer: str, names: str) -> None:
    for name in names.split():
        found = map_name(framework, name)
        assert found is not None, f"{framework} {name} is unmapped"
        assert (found.framework, found.layer) == (framework, layer), name


def test_nearest_ids_exist_and_definition_ids_are_their_own() -> None:
    """No foreign definition is one of ours, and no two lines share one."""
    seen: set[str] = set()
    for framework in FRAMEWORKS:
        for item in mappings(framework):
            assert item.nearest == "" or item.nearest in METRIC_DEFINITIONS, item
            assert item.layer in ("L1", "L2", "L3", "L5", "system") and item.note
            assert item.definition not in METRIC_DEFINITIONS and item.definition not in seen
            seen.add(item.definition)


def test_equal_names_that_are_other_things() -> None:
    """Policy clip or truncation; KL to the reference, to the old policy, or between engines; sigma over other sets."""
    policy_clip, truncation = map_name("trl", "clip_ratio/high_mean"), map_name("verl", "response_length/clip_ratio")
    assert policy_clip is not None and truncation is not None
    assert policy_clip.nearest == "l1.clip_high_share/1" and truncation.nearest == "" and truncation.layer == "L2"
    kinds = {
        key: found.nearest
        for key, name in (("trl", "kl"), ("verl", "actor/ppo_kl"), ("verl", "rollout_corr/kl"), ("openrlhf", "vllm_kl"))
        if (found := map_name(key, name)) is not None
        for key in (f"{key} {name}",)
    }
    assert kinds == {
        "trl kl": "l1.kl_k3_reference/1", "verl actor/ppo_kl": "l1.kl_k1_old/1",
        "verl rollout_corr/kl": "l1.engine_drift_mean/1", "openrlhf vllm_kl": "l1.engine_drift_mean/1",
    }  # fmt: skip
    lengths = [map_name("trl", "completions/mean_length"), map_name("verl", "response_length/mean")]
    lengths.append(map_name("openrlhf", "response_length"))
    notes = [found.note for found in lengths if found is not None]
    assert {found.nearest for found in lengths if found is not None} == {"l2.response_length/1"}
    assert "excluded" in notes[0] and "included" in notes[1] and "between count" in notes[2]
    entropy = [map_name("trl", "entropy"), map_name("nemo-rl", "approx_entropy")]
    assert [found.nearest for found in entropy if found] == ["l2.entropy_trained/1", "l2.entropy_sampled/1"]
    sigma = [map_name("trl", "reward_std"), map_name("openrlhf", "group_reward_std")]
    assert [found.nearest for found in sigma if found] == ["l3.reward_std/1", "l3.group_sigma/1"]
    assert all("ddof=1" in found.note for found in sigma if found)
    called_pass = map_name("openrlhf", "eval_math_pass8")
    assert called_pass is not None and "largest reward" in called_pass.note and called_pass.nearest == ""


def test_unmapped_stays_unmapped() -> None:
    """Never guessed: another trainer's name, a made-up one, an unknown trainer."""
    assert map_name("trl", "actor/pg_loss") is None
    assert map_name("verl", "my/own/number") is None
    assert map_name("wandb", "loss") is None and map_name("", "loss") is None


def test_labels_and_the_tensorboard_callback_are_looked_through() -> None:
    """TRL's TensorBoard callback writes train/loss and eval/reward; an import appends labels in brackets."""
    for name in ("train/loss", "loss [run=trial]", "train/loss [run=a/b]"):
        found = map_name("trl", name)
        assert found is not None and found.definition == "trl:loss/1"
    found = map_name("trl", "eval/rewards/accuracy/mean")
    assert found is not None and found.layer == "L5"


def test_the_trainer_is_guessed_only_where_one_stands_out() -> None:
    assert guess_framework(["train/loss", "train/completions/mean_length", "train/frac_reward_zero_std"]) == "trl"
    assert guess_framework(["actor/pg_loss", "critic/score/mean", "custom"]) == "verl"
    assert guess_framework(["a", "b"]) == "" and guess_framework([]) == ""
    assert guess_framework(["kl"]) == ""  # TRL and OpenRLHF
