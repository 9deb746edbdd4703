"""The embedded base model: built from nothing by a recipe, gated on sampled validity, cached by its hash.

A recipe is data. Its hash covers every field, the environment (id, version, configuration, code), the
code that carries the recipe out, and the runtime with its thread count: equal hashes mean equal
bytes. A build lies at ``<cache_dir>/<recipe hash>/``; it appears there by one rename, after its
gate, under a lock: two processes do not build the same model, and a killed build leaves nothing
that could be loaded.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from workbench.contracts.canonical import canonical_bytes, digest, parse_canonical, sha256_hex
from workbench.contracts.errors import ContractError, EngineFault
from worker.environments.base import Environment
from worker.environments.registry import environment_code_sha256, get_environment

from .compact import CompactFormatter
from .identities import model_folder_sha256, runtime_facts, tokenizer_folder_sha256
from .tiny_config import build_model, tiny_config
from .tokenizer_build import corpus, system_text, train_tokenizer
from .warmstart_probe import probe_tasks, sample_groups, summarise
from .warmstart_recipes import QUICK, STANDARD, WarmStartRecipe, recipe_of
from .warmstart_train import copy_accuracy, encode_demonstrations, train_copying, train_sft

__all__ = ["QUICK", "STANDARD", "BaseModel", "WarmStartRecipe", "WarmStartRefused", "ensure_base_model"]

SCHEMA = "workbench.warmstart/1"
REPORT, TIMING = "warm_start.json", "timing.json"
CODE = (
    "compact.py",
    "tiny_config.py",
    "tokenizer_build.py",
    "training_path.py",
    "warmstart.py",
    "warmstart_probe.py",
    "warmstart_train.py",
)
Progress = Callable[[dict[str, Any]], None]


class WarmStartRefused(EngineFault):
    """A finished build that misses its gate; nothing of it is kept."""


@dataclass(frozen=True)
class BaseModel:
    """A base model on disk. Producer: ``ensure_base_model``. Consumer: the policy loader.

    ``report`` is deterministic (no times); ``timing`` holds the seconds of the build and whether
    this call found it ``cached``.
    """

    path: str
    base_model_sha256: str
    tokenizer_sha256: str
    report: dict[str, Any]
    timing: dict[str, Any]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, and leave the global random state and thread count as they were."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


def recipe_sha256(recipe: WarmStartRecipe, environment: Environment, environment_config: dict[str, Any]) -> str:
    """Hash of a recipe together with all that its result depends on."""
    folder = Path(__file__).resolve().parent
    with one_thread():
        runtime = runtime_facts("float32")
    return digest(
        {
            "schema": SCHEMA,
            "recipe": json.loads(json.dumps(asdict(recipe))),
            "environment": {
                "id": environment.id,
                "version": environment.version,
                "config": environment_config,
                "code_sha256": environment_code_sha256(environment),
            },
            "code": {name: sha256_hex((folder / name).read_bytes()) for name in CODE},
            "runtime": runtime,
        }
    )


def ensure_base_model(
    environment_id: str,
    config: dict[str, Any],
    cache_dir: Path | str,
    progress: Progress | None = None,
    recipe: WarmStartRecipe | None = None,
) -> BaseModel:
    """The base model of ``recipe`` (None: the environment's own) for an environment: cached, else built and gated.

    Raises ``WarmStartRefused`` where a finished build misses its gate, ``EnvironmentFault`` for an
    unknown environment or configuration.
    """
    environment = get_environment(environment_id, config)
    recipe = recipe_of(environment_id) if recipe is None else recipe
    name = recipe_sha256(recipe, environment, config)
    root = Path(cache_dir)
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / f".{name}.lock"):
        place = root / name
        found = _read(place)
        if found is not None:
            return found
        for left in [*root.glob(f".{name}.*.partial"), place]:
            shutil.rmtree(left, ignore_errors=True)
        partial = root / f".{name}.{os.getpid()}.partial"
        partial.mkdir()
        try:
            _build(recipe, name, environment, partial, progress or (lambda _: None))
            _sync(partial)
            partial.rename(place)
            _sync_folder(root)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        built = _read(place)
        if built is None:
            raise EngineFault(f"warm start {name}: got files that do not match their report, expected equal hashes")
        return replace(built, timing={**built.timing, "cached": False})


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock; the kernel drops it when the process dies."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _read(place: Path) -> BaseModel | None:
    """The cached model, or None where there is none or its bytes are not those of its report."""
    try:
        report = parse_canonical((place / REPORT).read_bytes())
        timing = json.loads((place / TIMING).read_text())
        model_sha, tokenizer_sha = model_folder_sha256(place), tokenizer_folder_sha256(place)
    except (OSError, ContractError, EngineFault, json.JSONDecodeError):
        return None
    said = report.pop("report_sha256", None)
    found = (report.get("base_model_sha256"), report.get("tokenizer_sha256"))
    if said != digest(report) or found != (model_sha, tokenizer_sha):
        return None
    return BaseModel(str(place), model_sha, tokenizer_sha, report, {**timing, "cached": True})


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    """Flush every file and the folder itself, so that the rename never exposes half a model."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
    _sync_folder(folder)


class _Clock:
    """Wall seconds by stage; nothing hashed reads it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = self._last = time.perf_counter()
        self._cpu = time.process_time()

    def mark(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now

    def total(self) -> dict[str, Any]:
        return {
            "seconds": time.perf_counter() - self._started,
            "cpu_seconds": time.process_time() - self._cpu,
            "stages": self.seconds,
        }


def _build(recipe: WarmStartRecipe, name: str, environment: Environment, folder: Path, progress: Progress) -> None:
    """Carry the recipe out and write model, tokenizer, report and timing to ``folder``."""
    clock = _Clock()

    def say(stage: str, done: int, total: int) -> None:
        progress({"stage": "warm_start", "part": stage, "done": done, "total": total})

    with one_thread():
        say("tokenizer", 0, 1)
        tokenizer = _tokenizer(recipe, environment)
        formatter = CompactFormatter(tokenizer)
        clock.mark("tokenizer")
        model, report = _train(recipe, environment, formatter, say, clock)
        _gate(recipe, report)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    report |= {
        "recipe": recipe.name,
        "recipe_sha256": name,
        "base_model_sha256": model_folder_sha256(folder),
        "tokenizer_sha256": tokenizer_folder_sha256(folder),
        "formatter": formatter.identity(),
    }
    (folder / REPORT).write_bytes(canonical_bytes({**report, "report_sha256": digest(report)}))
    (folder / TIMING).write_text(json.dumps(clock.total()))


def _tokenizer(recipe: WarmStartRecipe, environment: Environment) -> PreTrainedTokenizerFast:
    system = system_text(environment.instructions(), environment.tools())
    texts = corpus(environment, recipe.seed, recipe.tokenizer_demonstrations, not recipe.pieces.is_system_whole)
    return train_tokenizer(texts, recipe.vocab_size, recipe.pieces, system)


def _train(
    recipe: WarmStartRecipe,
    environment: Environment,
    formatter: CompactFormatter,
    say: Callable[[str, int, int], None],
    clock: _Clock,
) -> tuple[Qwen3ForCausalLM, dict[str, Any]]:
    """Initialise, copy stage, SFT, probes."""
    size = len(formatter.tokenizer)
    vocabulary = [index for index in range(size) if index not in formatter.special_ids]
    settings = tiny_config(size, recipe.shape, formatter.pad_id, formatter.begin_id, formatter.end_id)
    model = build_model(settings, recipe.shape, recipe.initialisation, recipe.seed)
    initial = copy_accuracy(model, recipe.seed, vocabulary)
    train_copying(model, recipe.copying, recipe.seed, vocabulary, say)
    before_sft = copy_accuracy(model, recipe.seed, vocabulary)
    _require(recipe, "copy_accuracy_before_sft", before_sft, recipe.minimum_copy_accuracy)
    clock.mark("copying")
    encoded, coverage, states = encode_demonstrations(
        environment, formatter, recipe.seed + 1, recipe.sft.demonstrations, recipe.sft.observation_weight
    )
    clock.mark("demonstrations")
    loss = train_sft(model, recipe.sft, recipe.seed, encoded, formatter.pad_id, say)
    with torch.no_grad():
        model.model.norm.weight.mul_(recipe.logit_scale)
    clock.mark("sft")
    probes = {}
    for label, stage in (("probe", recipe.probe), ("stress", recipe.stress)):
        if stage is None:
            continue
        say(label, 0, 1)
        tasks = probe_tasks(environment, stage)
        groups = sample_groups(model, environment, formatter, tasks, stage, recipe.seed)
        probes[label] = summarise(environment, tasks, groups)
        clock.mark(label)
    report = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": size,
        "copy_accuracy_initial": initial,
        "copy_accuracy_before_sft": before_sft,
        "sft_loss": loss,
        "demonstrations": recipe.sft.demonstrations,
        "coverage": coverage,
        "state_coverage": states,
        **probes,
    }
    return model, report


def _gate(recipe: WarmStartRecipe, report: dict[str, Any]) -> None:
    """Refuse a policy whose sampled actions are too seldom legal. A low loss would not show it."""
    measured, least = report["probe"]["valid_actions"], recipe.minimum_valid_actions
    report["gate"] = {"measure": "probe.valid_actions", "minimum": least, "is_gated": least is not None}
    if least is not None and measured < least:
        raise WarmStartRefused(
            f"warm start {recipe.name!r}, valid_actions: got {measured:.3f} of {report['probe']['decisions']} sampled "
            f"decisions, expected at least {least:.2f} (copy accuracy before SFT "
            f"{report['copy_accuracy_before_sft']:.3f}, SFT loss {report['sft_loss']:.3f})"
        )
    _require(recipe, "probe.success", report["probe"]["success"], recipe.minimum_success)
    others = {"copy_accuracy_before_sft": recipe.minimum_copy_accuracy, "probe.success": recipe.minimum_success}
    if any(value is not None for value in others.values()):
        report["further_gates"] = [{"measure": name, "minimum": value} for name, value in sorted(others.items())]


def _require(recipe: WarmStartRecipe, measure: str, measured: float, least: float | None) -> None:
    """Refuse what misses one of the further gates."""
    if least is not None and measured < least:
        raise WarmStartRefused(
            f"warm start {recipe.name!r}, {measure}: got {measured:.3f}, expected at least {least:.2f}"
        )
