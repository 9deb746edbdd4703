"""A tiny random Qwen3, a character tokenizer, a formatter and a scripted environment for engine tests.

The last character of a turn is its action, so that a random model emits legal ones often: one of ``CALLS``
calls the tool ``look`` with it, one of ``FINISHES`` finishes, anything else is no action. A turn ends with ``.``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from workbench.contracts.canonical import canonical_bytes, digest, parse_canonical
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_OTHER
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import RewardComponent, RewardRecord, TurnRecord
from worker.engine.render import ParsedTurn
from worker.environments.base import Demonstration, FinishAction, Observation, Task, ToolAction, ToolSpec

ALPHABET = "abcdf.:>?! |xyz"
CALLS, FINISHES = "abcd:>!| ", "fx"
LORA = {"kind": "lora", "rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj", "down_proj"], "seed": "7"}


def write_model(
    folder: Path, *, seed: int = 0, vocabulary: int | None = None, hidden: int = 32, layers: int = 2
) -> Path:
    """Save a tiny random Qwen3 with its tokenizer."""
    torch.manual_seed(seed)
    vocab = {character: index for index, character in enumerate(ALPHABET)}
    vocab["<pad>"] = len(vocab)
    config = Qwen3Config(
        vocab_size=vocabulary or len(vocab),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.08,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    inner = Tokenizer(models.WordLevel(vocab, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?", pad_token="<pad>").save_pretrained(folder)
    return folder


class TinyFormatter:
    """Characters to ids, one to one."""

    name = "tiny"

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.table = {character: tokenizer.convert_tokens_to_ids(character) for character in ALPHABET}
        self.letters = {value: key for key, value in self.table.items()}

    def identity(self) -> str:
        return digest({"formatter": self.name, "version": "1"})

    def stop_ids(self) -> tuple[int, ...]:
        return (self.table["."],)

    def encode(self, text: str) -> list[int]:
        return [self.table.get(character, self.table["?"]) for character in text]

    def start(self, instructions: str, tools: Sequence[ToolSpec], prompt: str) -> list[int]:
        return self.encode(f"{instructions}|{prompt}>")

    def observe(self, text: str) -> list[int]:
        return self.encode(f"|{text}>")

    def read(self, generated_ids: Sequence[int], tools: Sequence[ToolSpec]) -> ParsedTurn:
        text = "".join(self.letters.get(token, "~") for token in generated_ids)
        ones = (1,) * len(generated_ids)
        body = text.removesuffix(".")
        if text.endswith(".") and body and body[-1] in CALLS:
            return ParsedTurn(
                None, body, ToolAction("look", {"key": body[-1]}), None, (SEGMENT_ACTION,) * len(ones), ones
            )
        if text.endswith(".") and body and body[-1] in FINISHES:
            return ParsedTurn(None, body, FinishAction(body, ()), None, (SEGMENT_ANSWER,) * len(ones), ones)
        return ParsedTurn(None, text, None, "no action", (SEGMENT_OTHER,) * len(ones), ones)


class TinySession:
    """State: the letters looked up so far."""

    def __init__(self, environment: TinyEnvironment, task: Task, seen: list[str]):
        self.environment, self.task, self.seen = environment, task, seen

    def step(self, action: ToolAction) -> Observation:
        key = action.arguments["key"]
        if key == self.environment.config.get("break_on"):
            raise EnvironmentFault(f"backend: got {key}, expected it to be up")
        if key == self.environment.config.get("crash_on"):
            raise ZeroDivisionError("a bug in the backend")
        fresh = key not in self.seen
        self.seen.append(key)
        if key == "d":
            return Observation("error", "x!", True)
        return Observation("ok", f"{key}:{len(self.seen) % 3 * 'y'}", None, fresh, {"key": key})

    def finish(self, action: FinishAction) -> None:
        self.seen.append(f"finish:{action.answer}")

    def state_hash(self) -> str:
        return digest({"task": self.task.key, "seen": self.seen})

    def snapshot(self) -> bytes:
        return canonical_bytes({"seen": self.seen})

    def fork(self) -> TinySession:
        return TinySession(self.environment, self.task, list(self.seen))


class TinyEnvironment:
    """Look letters up. Reward: 0.5 for finishing and 0.25 for every distinct productive call, at most 1."""

    id = "tests.engine.support:TinyEnvironment"
    version = "1"

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def tasks(self) -> Sequence[Task]:
        prompts = ("ab", "cd", "ba", "dc", "abc", "bcd")
        return [
            Task(f"t{i}", "train", "letters", text, {"n": i}, {"need": text}, ("look",))
            for i, text in enumerate(prompts)
        ]

    def instructions(self) -> str:
        return "xyz"

    def tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec("look", "look a letter up", {"type": "object"})]

    def reset(self, task: Task) -> TinySession:
        if task.key == self.config.get("refuse_task"):
            raise RuntimeError("no such world")
        return TinySession(self, task, [])

    def restore(self, task: Task, snapshot: bytes) -> TinySession:
        return TinySession(self, task, list(parse_canonical(snapshot)["seen"]))

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> TinySession:
        session = self.reset(task)
        for action in actions:
            session.step(action)
        return session

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        return Observation("timeout", "!!", True)

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        if self.config.get("reward") == "nan":
            return RewardRecord("tiny", "1", 1.0, (), float("nan"))
        gate = 0.0 if terminal == "policy_error" else 1.0
        calls = sum(1 for turn in turns if turn.tool_call is not None and turn.tool_call.is_productive)
        points = (0.5 if terminal == "finish" else 0.0) + 0.25 * calls
        component = RewardComponent("points", 1.0, points, points, "measured", {})
        return RewardRecord("tiny", "1", gate, (component,), gate * min(1.0, points))

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
        return terminal == "finish" and any(turn.tool_call for turn in turns)

    def success_definition(self) -> str:
        return "tiny.success/1"

    def is_premature(self, task: Task, turns: Sequence[TurnRecord]) -> bool:
        return not any(turn.tool_call for turn in turns)

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        return iter(())

    def state_label(self, session: Any) -> str:
        return f"seen{len(session.seen)}"


class MemoryStore:
    """Blobs in a dictionary, with the store's interface."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        import hashlib

        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return name

    def get(self, sha256: str) -> bytes:
        return self.blobs[sha256]

    def exists(self, sha256: str) -> bool:
        return sha256 in self.blobs
