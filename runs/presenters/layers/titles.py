"""Titles of the definitions for people; the id always stands beside. Data for the interface, hence here."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

TITLES: dict[str, str | Promise] = {
    "l1.loss": _("Loss"),
    "l1.grad_norm": _("Gradient norm"),
    "l1.update_norm": _("Update size"),
    "l1.relative_update_norm": _("Relative update"),
    "l1.clip_low_share": _("Clipped, low side"),
    "l1.clip_high_share": _("Clipped, high side"),
    "l1.ratio_max_deviation": _("Largest ratio deviation"),
    "l1.kl_k1_old": _("KL to the old policy, k1"),
    "l1.kl_k3_old": _("KL to the old policy, k3"),
    "l1.kl_k1_reference": _("KL to the reference, k1"),
    "l1.kl_k3_reference": _("KL to the reference, k3"),
    "l1.trajectory_age": _("Age of trained trajectories"),
    "l1.sequence_ratio": _("Sequence ratio"),
    "l1.trajectory_kl_k3": _("KL of a trajectory, k3"),
    "l1.trajectory_clip_share": _("Clipped tokens of a trajectory"),
    "l1.effective_sample_size": _("Effective sample size"),
    "l1.engine_drift_mean": _("Sampler drift, mean"),
    "l1.engine_drift_max": _("Sampler drift, largest"),
    "l1.skipped_share": _("Skipped batches"),
    "l1.masked_token_share": _("Tokens removed by credit"),
    "l2.entropy_sampled": _("Token entropy, as sampled"),
    "l2.entropy_trained": _("Token entropy, as trained"),
    "l2.response_length": _("Response length"),
    "l2.segment_length": _("Segment length"),
    "l2.distinct_2": _("Distinct pairs of tokens"),
    "l2.format_compliance": _("Well-formed turns"),
    "l2.tool_calls_mean": _("Tool calls, mean"),
    "l2.tool_calls_variance": _("Tool calls, variance"),
    "l2.share_at_budget": _("At the budget"),
    "l2.repeat_call_rate": _("Repeated calls"),
    "l2.productive_call_rate": _("Productive calls"),
    "l2.finish_rate": _("Finished"),
    "l2.policy_error_rate": _("Ended by an unreadable action"),
    "l2.premature_finish_rate": _("Premature finishes"),
    "l2.failure_exposure": _("Saw a failure"),
    "l2.recovery_by_exposure": _("Recovered, of those exposed"),
    "l2.recovery_all": _("Recovered, of all"),
    "l2.fatal_rate": _("Fatal"),
    "l2.continued_after_fatal": _("Went on after Fatal"),
    "l2.infrastructure_invalid_share": _("Lost to infrastructure"),
    "l2.observation_influence": _("Influence of the last Observation"),
    "l2.state_outside_demonstrations": _("States outside the demonstrations"),
    "l2.length_correctness_r": _("Length against correctness, r"),
    "l2.correct_by_length": _("Correct by length tercile"),
    "l3.reward_mean": _("Mean reward"),
    "l3.reward_std": _("Spread of rewards"),
    "l3.success_rate": _("Success"),
    "l3.group_sigma": _("Group σ"),
    "l3.group_sigma_quantile": _("Group σ, quantiles"),
    "l3.zero_variance_share": _("Groups without variance"),
    "l3.zero_all_right_share": _("Groups all right"),
    "l3.zero_all_wrong_share": _("Groups all wrong"),
    "l3.pass_gap": _("pass@k − pass@1"),
    "l3.pass_at_k": _("pass@k"),
    "l3.pass_gap_k": _("pass@k − pass@1, by k"),
    "l3.groups_with_signal": _("Groups with signal"),
    "l3.groups_with_update": _("Groups trained on"),
    "l3.effective_batch": _("Effective batch"),
    "l3.funnel_trajectories": _("From started to signal"),
    "l3.funnel_share": _("From started to signal, share"),
    "l3.funnel_tokens": _("Tokens from started to signal"),
    "l3.reward_concentration": _("Reward held by the top tenth"),
    "l3.edit_signed_mass": _("Edit credit, signed mass"),
    "l3.edit_l1_mass": _("Edit credit, L1 mass"),
    "l3.edit_squared_mass": _("Edit credit, squared mass"),
    "l3.edit_capped_share": _("Edit credit at the cap"),
    "l3.edit_nonzero_share": _("Edits with a difference"),
    "l3.edit_unavailable_share": _("Edit credit withheld"),
    "l3.edit_selected_share": _("Tokens of the selected turn"),
    "l3.edit_shrinkage": _("Edit credit, shrinkage s"),
    "l3.edit_only_groups": _("Groups trained by edit credit alone"),
    "l3.gradient_share": _("Gradient share by difficulty"),
    "l4.action_edit_distance": _("Distance of paths in a group"),
    "l4.distinct_sequences": _("Distinct paths in a group"),
    "l4.step_group_size": _("Rollouts that share a state"),
    "l4.state_concentration": _("Concentration on states"),
    "l4.entropy_by_decision": _("Entropy by decision"),
    "l4.entropy_left": _("Entropy left of the first"),
    "l4.entropy_slope": _("Entropy a version, slope"),
    "l4.state_coverage": _("States visited"),
    "l4.think_edit_distance": _("Distance of think segments"),
    "l5.reward": _("Held-out reward"),
    "l5.success_rate": _("Held-out success"),
    "l5.pass_at_k": _("Held-out pass@k"),
    "l5.pass_hat_k": _("Held-out pass^k"),
    "l5.reward_gap": _("Reward inside minus outside"),
    "l5.success_gap": _("Success inside minus outside"),
    "l5.reward_forgotten": _("Reward forgotten"),
    "l5.success_forgotten": _("Success forgotten"),
    "l6.think_share": _("Decisions with a think segment"),
    "l6.think_readable": _("Readable think segments"),
    "l6.statements_true": _("True statements in think"),
    "l6.think_action_agreement": _("Action as think states"),
    "l6.think_action_nmi": _("Think and action, mutual information"),
    "l6.action_unchanged": _("Action unchanged"),
    "l6.answer_unchanged": _("Answer unchanged"),
    "l6.action_legal": _("Action still legal"),
    "l6.corruption_followed": _("Corruption followed"),
    "l6.reproduced": _("Probe reproduces the rollout"),
    "l6.unmeasured_share": _("Interventions without a sample"),
    "l6.single_correct": _("Single sample correct"),
    "l6.majority_correct": _("Majority correct"),
    "l6.self_consistency_gap": _("Self-consistency gap"),
    "l6.probe_generations": _("Generations of the probe"),
    "l6.probe_tokens": _("Tokens of the probe"),
}

# Words of labels, splits and phases; a value that is not listed stands as it was stored.
WORDS: dict[str, str | Promise] = {
    "train": _("training"),
    "preflight": _("preflight"),
    "standard": _("standard"),
    "stress": _("stress"),
    "probe": _("probe"),
    "test": _("in distribution"),
    "validation": _("validation"),
    "out_of_distribution": _("out of distribution"),
    "anchor": _("anchor tasks"),
    "all": _("all"),
    "think": _("think"),
    "action": _("action"),
    "answer": _("answer"),
    "trajectory": _("trajectories"),
    "token": _("tokens"),
    "factual": _("as it was"),
    "regenerated": _("regenerated"),
    "delete": _("deleted"),
    "corrupt": _("corrupted"),
    "paraphrase": _("paraphrased"),
    "random": _("random tokens"),
    "started": _("started"),
    "finished": _("finished"),
    "not_infrastructure_failed": _("infrastructure held"),
    "reconstructed": _("reconstructed"),
    "not_too_old": _("within age limit"),
    "in_complete_group": _("in a complete group"),
    "with_signal": _("with signal"),
    "trained": _("trained"),
    "format_error": _("format error"),
    "no_eligible_block": _("no eligible edit"),
    "no_original_utility": _("no original verdict"),
    "trial_incomplete": _("trial incomplete"),
    "no_selected_token": _("no token in the turn"),
}
PHRASES: dict[tuple[str, str], str | Promise] = {  # where a word alone would not say of what
    ("success", "none"): _("no success"),
    ("success", "some"): _("some success"),
    ("success", "all"): _("all successful"),
    ("tercile", "1"): _("short"),
    ("tercile", "2"): _("middle"),
    ("tercile", "3"): _("long"),
    ("arm", "B"): _("arm B"),
    ("arm", "M"): _("arm M"),
    ("arm", "E"): _("arm E"),
    ("q", "0"): _("lowest"),
    ("q", "0.25"): _("quarter"),
    ("q", "0.5"): _("median"),
    ("q", "0.75"): _("three quarters"),
    ("q", "1"): _("highest"),
}
NUMBERED: dict[str, str | Promise] = {
    "decision": _("decision %(n)s"),
    "epoch": _("epoch %(n)s"),
    "k": _("k = %(n)s"),
}
UNITS: dict[str, str | Promise] = {
    "none": "",
    "share": _("share"),
    "nats": _("nats"),
    "tokens": _("tokens"),
    "calls": _("calls"),
    "calls^2": _("calls²"),
    "reward": _("reward"),
    "trajectories": _("trajectories"),
    "states": _("states"),
    "sequences": _("sequences"),
    "samples": _("samples"),
    "versions": _("versions"),
    "seconds": _("seconds"),
}


def word_of(value: str) -> str | Promise:
    """A phase, split or label's value in the reader's words."""
    return WORDS.get(value, value.replace("_", " "))


def unit_of(unit: str) -> str | Promise:
    """A unit in the reader's words; empty for a number without one."""
    return UNITS.get(unit, unit)


def label_of(labels: Mapping[str, str]) -> str:
    """Labels of a series in the reader's words; bounds of intervals are not labels of their own."""
    parts = []
    for key, value in sorted(labels.items()):
        if key in ("bound", "outside"):
            continue
        shape = NUMBERED.get(key)
        text = PHRASES.get((key, value), word_of(value)) if shape is None else str(shape) % {"n": value}
        parts.append(str(text))
    return gettext(", ").join(parts)


def title_of(name: str) -> str | Promise:
    """Title of a definition's name (without its version); the name itself where the table has none."""
    return TITLES.get(name, name)
