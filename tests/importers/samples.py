"""Small sources of every format, made from the documented fields or by the real writer where it is installed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from tensorboardX import SummaryWriter

FILES = Path(__file__).parent / "files"


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """One object a line, as ``json.dumps`` writes it (NaN included)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A Parquet table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def tensorboard(folder: Path) -> Path:
    """By tensorboardX: 40 steps of two tags with nan and infinities, a text, a histogram."""
    writer = SummaryWriter(str(folder / "run"))
    for step in range(40):
        writer.add_scalar("train/loss", 1.0 / (step + 1), step, walltime=1_700_000_000 + step)
        writer.add_scalar(
            "train/kl", float("nan") if step == 3 else float("inf") if step == 4 else 0.5, step, walltime=1.0
        )
    writer.add_text("args", "learning_rate 1e-5", 0, walltime=2.0)
    writer.add_histogram("weights", [1.0, 2.0, 3.0], 0, walltime=3.0)
    writer.close()
    return folder / "run"


def trl(folder: Path) -> Path:
    """Columns as TRL 1.16 writes them, conversational."""
    rows = [
        {
            "step": 3, "prompt": [{"role": "user", "content": f"q{place}"}],
            "completion": [{"role": "assistant", "content": f"a{place}"}],
            "accuracy": float(place % 2), "format": None if place == 2 else 0.5, "note": "n", "advantage": 0.25 * place,
        }
        for place in range(40)
    ]  # fmt: skip
    return write_table(folder / "completions" / "completions_00003.parquet", rows).parent


def verl(folder: Path) -> Path:
    """Two steps; request ids are ``{uid}_{session}_{i}``."""
    for step in (2, 10):
        rows = [
            {
                "input": "1+1?", "output": f"answer {place}", "gts": "2", "score": float(place % 2), "step": step,
                "acc": place % 2, "format": float("nan") if place == 1 else 1.0,
                "request_id": f"u{place // 2}_0_{place % 2}",
            }
            for place in range(4)
        ]  # fmt: skip
        write_lines(folder / "rollouts" / f"{step}.jsonl", rows)
    return folder / "rollouts"


def episode(name: str, start: int = 3, end: int = 3, **changes: Any) -> dict[str, Any]:
    """An episode with one trace: system, user, and two answers to the same question (two branches)."""
    nodes = [
        {"message": {"role": "system", "content": "be short"}, "token_ids": [1, 2], "mask": [False, False]},
        {"parent": 0, "message": {"role": "user", "content": "1+1?"}, "token_ids": [3], "mask": [False]},
        {
            "parent": 1, "message": {"role": "assistant", "content": "2"}, "sampled": True, "token_ids": [6, 7, 8],
            "mask": [False, True, True], "logprobs": [-0.5, -0.25], "advantages": [0.5, 0.5],
        },
        {
            "parent": 1, "message": {"role": "assistant", "content": "3"}, "sampled": True, "token_ids": [6, 9],
            "mask": [False, True], "logprobs": [-1.5],
        },
    ]  # fmt: skip
    trace = {
        "id": f"trace-{name}", "nodes": nodes, "calls": [], "stop_condition": "done", "is_completed": True,
        "rewards": {"right": {"score": 1.0, "weight": 0.5}, "short": {"score": 0.5, "weight": 2.0}},
        "metrics": {"turns": 1},
    }  # fmt: skip
    return {
        "id": name, "env": {"id": "arith"}, "group": {"id": "g1"}, "ok": True, "errors": [], "traces": [trace],
        "run": {"work": {"type": "train", "step": 5, "policy": {"start": start, "end": end}}}, **changes,
    }  # fmt: skip


def export_row(step: int = 4, **changes: Any) -> dict[str, Any]:
    """One sequence of a token export: three prompt tokens, two trained ones."""
    row = {
        "schema_version": 1, "step": step, "rank": 0, "token_ids": [1, 2, 3, 4, 5], "position_ids": [0, 1, 2, 3, 4],
        "loss_mask": [False, False, False, True, True], "advantages": [0.0, 0.0, 0.0, 0.5, 0.5],
        "inference_logprobs": [0.0, 0.0, 0.0, -0.5, -0.25], "trainer_logprobs": [0.0, 0.0, 0.0, -0.5, -0.3],
        "entropy": [0.0, 0.0, 0.0, 0.7, 0.6], "is_masked": [False] * 5, "mismatch_kl": None,
    }  # fmt: skip
    return row | changes


def prime_rl(folder: Path) -> Path:
    """A run directory with every kind of file."""
    run = folder / "prime"
    write_lines(
        run / "monitors/file/metrics.jsonl",
        [
            {
                "step": step,
                "time": 1_700_000_000.5 + step,
                "producer": "trainer",
                "loss/mean": 0.1 * step,
                "optim/lr": 1e-5,
            }
            for step in range(5)
        ]
        + [{"step": None, "time": 1_700_000_009.0, "producer": "system", "gpu": float("inf")}],
    )
    write_lines(run / "monitors/file/traces/chunk_0.jsonl", [episode("a"), episode("b", 3, 4)])
    write_lines(run / "rollouts/step_6/train/all/traces.jsonl", [episode("c", run=None), episode("d", run=None)])
    write_lines(run / "rollouts/step_6/train/effective/traces.jsonl", [episode("d", run=None)])
    write_lines(
        run / "monitors/file/annotations/trainer.jsonl",
        [{"version": 1, "trace_id": "trace-a", "branches": [{"index": 1, "advantages": [0.75], "entropies": [0.1]}]}],
    )
    write_lines(run / "token_exports/step_4/rank_0.jsonl", [export_row(), export_row(sample_id="s1")])
    (run / "token_exports/step_4/STABLE").touch()
    (run / "configs/attempt_1").mkdir(parents=True)
    (run / "configs/attempt_1/trainer.toml").write_text('[optim]\nlr = 1e-5\n[model]\nname = "small"\n')
    return run


def token_export(folder: Path) -> Path:
    """Token exports alone, with the marker."""
    path = write_lines(folder / "step_4" / "rank_0.jsonl", [export_row(sample_id=f"s{place}") for place in range(3)])
    (path.parent / "STABLE").touch()
    return path


def tinker_row(place: int, **changes: Any) -> dict[str, Any]:
    """One wire row: three prompt ids, two sampled."""
    row = {
        "run_id": "r", "iteration": 7, "group_idx": place // 2, "traj_idx": place, "policy_version": 7,
        "prompt_tokens": [1, 2, 3], "sampled_tokens": [4, 5], "logprobs": [-0.5, -0.25], "reward": float(place % 2),
    }  # fmt: skip
    return row | changes


def tinker(folder: Path) -> Path:
    """Four rows; the last has no version."""
    rows = [tinker_row(place) for place in range(3)] + [tinker_row(3, policy_version=None)]
    return write_lines(folder / "wire_rows.jsonl", rows)


def telescope_tables() -> dict[str, list[dict[str, Any]]]:
    """Tables of one zip: two samples of a group, one discarded."""

    def packed(text: str) -> bytes:
        return zstandard.compress(text.encode())

    return {
        "prompts": [{"step": 2, "group_id": 1, "env": "arith", "prompt": "1+1?", "system_prompt": "be short"}],
        "generations": [
            {"step": 2, "group_id": 1, "sample_id": 10, "agent_id": 0, "generation_idx": 0, "content": packed("call")},
            {"step": 2, "group_id": 1, "sample_id": 10, "agent_id": 0, "generation_idx": 1, "content": packed("2")},
            {"step": 2, "group_id": 1, "sample_id": 11, "agent_id": 0, "generation_idx": 0, "content": packed("3")},
        ],
        "env_responses": [
            {"step": 2, "sample_id": 10, "agent_id": 0, "generation_idx": 0, "content": packed("result"),
             "turn_type": "tool_result"}
        ],
        "rollouts_metrics": [{"step": 2, "sample_id": 10, "env": "arith", "metric_name": "right", "value": 1.0}],
        "samples_data": [
            {"step": 2, "group_id": 1, "sample_id": place, "reward": 11.0 - place, "advantage": 10.5 - place,
             "total_tokens": 9, "raw_string": packed("all"), "stop_reason": "final_answer", "off_policy_steps": 1}
            for place in (10, 11)
        ],
        "metrics": [{"step": 2, "section": "rl", "group": "loss", "metric": "kl", "value": float("nan")}],
        "samples_data_discarded": [
            {"trainer_step": 2, "group_id": 9, "sample_id": 99, "reward": 0.0, "advantage": 0.0,
             "stop_reason": "max_turns", "discard_reason": "zero_advantage"}
        ],
        "gpu": [{"timestamp": 1.0, "metric_name": "power", "value": 300.0}],
    }  # fmt: skip


def telescope(folder: Path) -> Path:
    """A zip of those tables."""
    path = folder / "steps_0.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in telescope_tables().items():
            archive.writestr(f"{name}.parquet", write_table(folder / "table.parquet", rows).read_bytes())
    (folder / "table.parquet").unlink()
    return path


def verifiers(folder: Path) -> Path:
    """Results of two samples of one example, and the metadata."""
    rows = [
        {
            "example_id": 0, "prompt": [{"role": "user", "content": "1+1?"}],
            "completion": [{"role": "assistant", "content": str(place + 1)}], "answer": "2", "task": "arith",
            "reward": float(place), "error": None, "timing": {"total_ms": 5.0}, "is_completed": True,
            "is_truncated": False,
            "metrics": {"exact": float(place)}, "stop_condition": "max_turns_reached",
        }
        for place in range(2)
    ]  # fmt: skip
    write_lines(folder / "results" / "results.jsonl", rows)
    about = {"env_id": "arith", "model": "m", "avg_reward": 0.5, "avg_metrics": {"exact": 0.5}, "num_examples": 1}
    (folder / "results" / "metadata.json").write_text(json.dumps(about))
    return folder / "results"


def skyrl(folder: Path) -> Path:
    """A dump of one dataset, the aggregate beside it."""
    rows = [
        {
            "input_prompt": "1+1?", "output_response": "2", "score": [0.0, 0.0, 1.0] if place else 0.0,
            "stop_reason": "stop",
            "env_class": "gsm8k", "env_extras": {"difficulty": 1}, "data_source": "openai/gsm8k",
        }
        for place in range(3)
    ]  # fmt: skip
    dump = folder / "dumped_evals" / "global_step_20_evals"
    write_lines(dump / "gsm8k.jsonl", rows)
    write_lines(dump / "aggregated_results.jsonl", [{"eval/all/avg_score": 2 / 3, "eval/all/pass_at_1": 2 / 3}])
    return folder / "dumped_evals"


def nemo(folder: Path) -> Path:
    """Two padded rows of a batch."""
    rows = [
        {
            "content": "1+1? 2", "rewards": 1.0, "token_ids": [1, 2, 3, 0, 0], "token_loss_mask": [0, 0, 1, 0, 0],
            "sample_loss_mask": 1.0, "advantages": [0.5] * 5, "generation_logprobs": [0.0, 0.0, -0.5, 0.0, 0.0],
            "prev_logprobs": [0.0, 0.0, -0.4, 0.0, 0.0], "input_lengths": 3, "idx": place,
        }
        for place in range(2)
    ]  # fmt: skip
    return write_lines(folder / "train_data_step12.jsonl", rows)


def inspect(folder: Path) -> Path:
    """The log that Inspect 0.3.285 wrote (two samples, two epochs, members compressed with zstd)."""
    path = folder / "arith.eval"
    path.write_bytes((FILES / "inspect-0.3.285.eval").read_bytes())
    return path


SOURCES: dict[str, Callable[[Path], Path]] = {
    "tensorboard": tensorboard,
    "trl-completions": trl,
    "verl-rollouts": verl,
    "prime-rl": prime_rl,
    "prime-rl-tokens": token_export,
    "tinker": tinker,
    "telescope": telescope,
    "verifiers": verifiers,
    "skyrl": skyrl,
    "nemo-rl": nemo,
    "inspect": inspect,
}
