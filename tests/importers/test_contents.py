"""What each importer makes of its files, value by value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.importers import samples
from tests.importers.samples import FILES, episode, export_row, tinker_row, write_lines
from workbench.importers import (
    MetricItem,
    ParameterItem,
    ProblemItem,
    RolloutItem,
    detect,
    open_import,
)


def read(path: Path, name: str) -> tuple[list[MetricItem], list[RolloutItem], dict[str, str], list[ProblemItem]]:
    """Items by kind."""
    items = list(open_import(path, name))
    return (
        [item for item in items if isinstance(item, MetricItem)],
        [item for item in items if isinstance(item, RolloutItem)],
        {item.name: item.value for item in items if isinstance(item, ParameterItem)},
        [item for item in items if isinstance(item, ProblemItem)],
    )


def test_tensorboard_keeps_every_event_and_what_is_not_finite(tmp_path: Path) -> None:
    """tensorboardX wrote float32: 1/(step+1) comes back as the nearest float32, time in milliseconds."""
    metrics, rollouts, settings, problems = read(samples.tensorboard(tmp_path), "tensorboard")
    loss = [item for item in metrics if item.name == "train/loss"]
    assert [item.step for item in loss] == list(range(40)) and loss[1].value == 0.5
    assert loss[2].value == pytest.approx(1 / 3, rel=1e-7) and loss[2].wall_time_ms == 1_700_000_002_000
    kl = [item.value for item in metrics if item.name == "train/kl"]
    assert math.isnan(kl[3]) and kl[4] == math.inf and kl[5] == 0.5 and len(kl) == 40
    assert settings == {"args": "learning_rate 1e-5"} and not rollouts
    assert [(item.kind, item.what, item.got) for item in problems] == [
        ("not_imported", "value of 'weights'", "a histogram")
    ]


def test_tensorboard_hyperparameters_and_folders(tmp_path: Path) -> None:
    """``add_hparams`` opens a folder of its own; what lies in folders carries the folder as a label."""
    writer = samples.SummaryWriter(str(tmp_path / "run"))
    writer.add_hparams({"lr": 0.5, "name": "adam", "amsgrad": True}, {"hparam/best": 2.0}, name="trial")
    writer.close()
    metrics, _, settings, _ = read(tmp_path / "run", "tensorboard")
    assert settings == {"lr": "0.5", "name": "adam", "amsgrad": "true"}
    assert [(item.name, item.value, item.labels) for item in metrics] == [("hparam/best", 2.0, {"run": "trial"})]


def test_trl_columns(tmp_path: Path) -> None:
    """Two reward functions: no total, since their weights are not in the file; a null reward stays out."""
    _, rollouts, _, _ = read(samples.trl(tmp_path), "trl-completions")
    first, third = rollouts[0], rollouts[2]
    assert (first.grade, first.step, first.advantage, first.group_key, first.reward) == ("C", 3, 0.0, "", None)
    assert first.rewards == {"accuracy": 0.0, "format": 0.5} and third.rewards == {"accuracy": 0.0}
    assert first.messages == [{"role": "user", "content": "q0"}, {"role": "assistant", "content": "a0"}]
    assert first.extra == {"note": "n"} and first.token_ids is None


def test_verl_request_ids_name_the_group(tmp_path: Path) -> None:
    """``u0_0_1``: group u0, session 0, sample 1. Files follow in the order of their steps (2 before 10)."""
    _, rollouts, _, _ = read(samples.verl(tmp_path), "verl-rollouts")
    assert [item.step for item in rollouts] == [2] * 4 + [10] * 4
    assert [(item.group_key, item.sample_key) for item in rollouts[:2]] == [("u0", "u0_0_0"), ("u0", "u0_0_1")]
    assert rollouts[1].reward == 1.0 and rollouts[1].rewards["acc"] == 1.0
    value = rollouts[1].rewards["format"]
    assert value is not None and math.isnan(value)
    assert rollouts[0].extra == {"gts": "2"} and rollouts[0].grade == "C"


def test_prime_rl_metrics_settings_and_producers(tmp_path: Path) -> None:
    metrics, _, settings, _ = read(samples.prime_rl(tmp_path), "prime-rl")
    loss = [item for item in metrics if item.name == "loss/mean"]
    assert [(item.step, item.value) for item in loss] == [(step, 0.1 * step) for step in range(5)]
    assert loss[0].wall_time_ms == 1_700_000_000_500 and loss[0].labels == {"producer": "trainer"}
    assert [(item.step, item.value) for item in metrics if item.name == "gpu"] == [(None, math.inf)]
    assert settings == {"attempt_1/trainer.optim.lr": "1e-05", "attempt_1/trainer.model.name": "small"}


def test_prime_rl_branches(tmp_path: Path) -> None:
    """Two leaves share the question: ids 1 2 3 | 6 7 8 and 1 2 3 | 6 9; the 6 is scaffold, not sampled.

    Reward: 1.0 x 0.5 + 0.5 x 2.0 = 1.5. Grade A under one version (3 to 3), B where it changed (3 to 4)
    or is not known. The annotation of trace-a gives branch 1 its credit.
    """
    _, rollouts, _, _ = read(samples.prime_rl(tmp_path), "prime-rl")
    found = {item.sample_key: item for item in rollouts}
    first, second = found["trace-a/0"], found["trace-a/1"]
    assert first.token_ids == [1, 2, 3, 6, 7, 8] and second.token_ids == [1, 2, 3, 6, 9]
    assert first.is_policy_token == [False] * 4 + [True] * 2
    assert first.logprobs == [None] * 4 + [-0.5, -0.25] and second.logprobs == [None] * 4 + [-1.5]
    assert first.advantages == [None] * 4 + [0.5, 0.5] and first.advantage == 0.5
    assert second.advantages == [None] * 4 + [0.75] and second.extra["annotation"]["producer"] == "trainer"
    assert first.reward == 1.5 and first.rewards == {"right": 1.0, "short": 0.5, "turns": 1.0}
    assert (first.grade, first.version_start, first.version_end, first.step, first.group_key) == ("A", 3, 3, 5, "g1")
    assert (found["trace-b/0"].grade, found["trace-b/0"].version_end) == ("B", 4)
    assert (found["trace-c/0"].grade, found["trace-c/0"].step) == ("B", 6)
    assert "effective" not in found["trace-c/0"].extra and found["trace-d/0"].extra["effective"] is True
    assert [item.sample_key for item in rollouts].count("trace-d/0") == 1


def test_a_judge_has_no_policy_version(tmp_path: Path) -> None:
    row = episode("a")
    row["traces"][0]["agent"] = {"name": "judge", "trainable": False}
    _, rollouts, _, _ = read(write_lines(tmp_path / "traces.jsonl", [row]), "prime-rl")
    assert {(item.grade, item.version_start) for item in rollouts} == {("B", None)}


def test_verifiers_1_written_by_the_library() -> None:
    """verifiers 0.4.0 wrote two episodes: one version (A), then a span of two and two branches (B)."""
    path = FILES / "verifiers-0.4.0"
    assert detect(path) == "prime-rl"
    _, rollouts, _, problems = read(path, "prime-rl")
    assert [(item.sample_key, item.grade) for item in rollouts] == [("t0/0", "A"), ("t1/0", "B"), ("t1/1", "B")]
    assert not problems and rollouts[0].token_ids == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rollouts[0].logprobs == [None] * 6 + [-0.5, -0.25] and rollouts[0].reward == 0.75
    assert rollouts[0].rewards == {"correct": 1.0, "format": 1.0, "unscored": None, "turns": 1.0}
    assert (rollouts[0].step, rollouts[0].stop_reason, rollouts[2].advantage) == (7, "agent_completed", -0.5)


def test_verifiers_0_written_by_the_library() -> None:
    """verifiers 0.1.14 wrote three results; the last one's grader died, which its reward of 0 hides."""
    path = FILES / "verifiers-0.1.14"
    assert detect(path) == "verifiers"
    metrics, rollouts, settings, problems = read(path, "verifiers")
    assert [(item.group_key, item.reward, item.stop_reason) for item in rollouts] == [
        ("0", 1.0, "max_turns_reached"), ("0", 0.0, "max_turns_reached"), ("1", 0.0, "error"),
    ]  # fmt: skip
    assert rollouts[0].rewards == {"exact": 1.0, "num_turns": 1.0} and not problems
    assert rollouts[2].extra["error"]["error"] == "ValueError" and rollouts[0].grade == "C"
    assert {item.name: item.value for item in metrics}["pass_at_k/2"] == 0.5 and settings["model"] == "m"
    assert all(item.step is None for item in metrics)


def test_token_exports(tmp_path: Path) -> None:
    _, rollouts, _, problems = read(samples.token_export(tmp_path), "prime-rl-tokens")
    first = rollouts[0]
    assert (first.grade, first.step, first.sample_key, first.advantage) == ("B", 4, "s0", 0.5) and not problems
    assert first.is_policy_token == [False] * 3 + [True] * 2 and first.extra["entropy"] == [0.0, 0.0, 0.0, 0.7, 0.6]


def test_a_step_without_its_marker_is_partial(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "step_4" / "rank_0.jsonl", [export_row()])
    _, rollouts, _, problems = read(path, "prime-rl-tokens")
    assert len(rollouts) == 1 and rollouts[0].extra["stable"] is False
    assert [(item.kind, item.got) for item in problems] == [("truncated", "no STABLE file beside it")]


@pytest.mark.parametrize(
    ("change", "got", "expected"),
    [
        ({"loss_mask": [True] * 6}, "6", "5, as token_ids"),  # longer than the ids
        ({"token_ids": [1, 2, 3, 4, -1]}, "[1, 2, 3, 4, -1]", "a list of token ids"),
        ({"inference_logprobs": ["x"] * 5}, "x", "a number"),
    ],
)
def test_misaligned_exports_are_refused_by_line(
    tmp_path: Path, change: dict[str, Any], got: str, expected: str
) -> None:
    path = write_lines(tmp_path / "step_4" / "rank_0.jsonl", [export_row(), export_row(**change), export_row()])
    (path.parent / "STABLE").touch()
    _, rollouts, _, problems = read(path, "prime-rl-tokens")
    assert len(rollouts) == 2
    assert [(item.kind, item.cursor.number, item.got, item.expected) for item in problems] == [
        ("malformed", 2, got, expected)
    ]


def test_tinker_rows(tmp_path: Path) -> None:
    """Prompt ids before sampled ids; without a version the grade is B."""
    _, rollouts, _, _ = read(samples.tinker(tmp_path), "tinker")
    first = rollouts[0]
    assert (first.grade, first.step, first.group_key, first.sample_key) == ("A", 7, "0", "0")
    assert first.token_ids == [1, 2, 3, 4, 5] and first.is_policy_token == [False] * 3 + [True] * 2
    assert first.logprobs == [None] * 3 + [-0.5, -0.25] and first.version_start == first.version_end == 7
    assert rollouts[3].grade == "B" and rollouts[1].reward == 1.0
    short = write_lines(tmp_path / "short.jsonl", [tinker_row(0, logprobs=[-0.5])])
    _, rollouts, _, problems = read(short, "tinker")
    assert not rollouts and problems[0].what == "length of logprobs" and problems[0].expected == "2, as token_ids"


def test_telescope_joins_tables(tmp_path: Path) -> None:
    metrics, rollouts, _, problems = read(samples.telescope(tmp_path), "telescope")
    first = next(item for item in rollouts if item.sample_key == "10")
    assert [message["role"] for message in first.messages or ()] == [
        "system",
        "user",
        "assistant",
        "tool_result",
        "assistant",
    ]
    assert [message["content"] for message in first.messages or ()][2:] == ["call", "result", "2"]
    assert (first.grade, first.step, first.group_key, first.reward, first.advantage) == ("C", 2, "1", 1.0, 0.5)
    assert (
        first.rewards == {"right": 1.0} and first.stop_reason == "final_answer" and first.extra["off_policy_steps"] == 1
    )
    discarded = next(item for item in rollouts if item.sample_key == "99")
    assert discarded.extra["kind"] == "discarded" and discarded.extra["discard_reason"] == "zero_advantage"
    assert metrics[0].name == "rl/loss/kl" and math.isnan(metrics[0].value) and metrics[0].step == 2
    assert [(item.kind, item.what) for item in problems] == [("not_imported", "table gpu")]


def test_skyrl_token_rewards_are_summed_and_the_folder_has_the_step(tmp_path: Path) -> None:
    metrics, rollouts, _, _ = read(samples.skyrl(tmp_path), "skyrl")
    assert [item.reward for item in rollouts] == [0.0, 1.0, 1.0] and {item.step for item in rollouts} == {20}
    assert rollouts[1].extra["token_rewards"] == [0.0, 0.0, 1.0] and rollouts[0].stop_reason == "stop"
    assert {(item.name, item.step) for item in metrics} == {("eval/all/avg_score", 20), ("eval/all/pass_at_1", 20)}


def test_nemo_padding_is_cut_by_length_never_by_id(tmp_path: Path) -> None:
    """Five padded ids, length 3: three are kept. Without a length all five stay, zeros too."""
    _, rollouts, _, _ = read(samples.nemo(tmp_path), "nemo-rl")
    first = rollouts[0]
    assert first.token_ids == [1, 2, 3] and first.is_policy_token == [False, False, True]
    assert (first.grade, first.step, first.advantage, first.reward) == ("B", 12, 0.5, 1.0)
    assert first.extra["trainer_logprobs"] == [0.0, 0.0, -0.4]
    row = {"content": "x", "rewards": 0.0, "token_ids": [1, 0, 0], "token_loss_mask": [0, 1, 0]}
    _, rollouts, _, problems = read(write_lines(tmp_path / "train_data_step3.jsonl", [row]), "nemo-rl")
    assert rollouts[0].token_ids == [1, 0, 0] and rollouts[0].grade == "C" and not problems
    row["token_loss_mask"] = [0, 1]
    _, rollouts, _, problems = read(write_lines(tmp_path / "train_data_step4.jsonl", [row]), "nemo-rl")
    assert rollouts[0].token_ids is None and rollouts[0].completion == "x" and rollouts[0].grade == "C"
    assert problems[0].what == "length of token_loss_mask" and problems[0].got == "2"


def test_inspect_written_by_the_library(tmp_path: Path) -> None:
    """Answers 2, 4, 2, 5 to two samples over two epochs: accuracy 3/4, standard error 1/4."""
    metrics, rollouts, settings, problems = read(samples.inspect(tmp_path), "inspect")
    assert {item.name: item.value for item in metrics} == {"match/accuracy": 0.75, "match/stderr": 0.25}
    found = {(item.group_key, item.sample_key): item for item in rollouts}
    assert set(found) == {("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")}
    assert sorted(item.reward or 0.0 for item in rollouts) == [0.0, 1.0, 1.0, 1.0]
    first = found["a", "1"]
    assert first.prompt == "1+1? " + "x" * 200 and first.completion == "2" and first.grade == "C"
    assert (first.messages or [])[0]["content"] == first.prompt and first.stop_reason == "stop"
    assert settings["model"] == "mockllm/model" and settings["status"] == "success" and not problems
