"""Identities of everything that a number depends on: runtime, code, model and tokenizer files.

Nothing here reads a clock, a host name, a process id or a path into a hash.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import transformers

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.errors import EngineFault

ENGINE_FOLDER = Path(__file__).resolve().parent
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)


def runtime_facts(dtype: str = "float32") -> dict[str, Any]:
    """What numerical results depend on beside the inputs and the code."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "dtype": dtype,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": bool(torch.backends.mkldnn.is_available()),
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
    }


def runtime_identity(dtype: str = "float32") -> str:
    """Digest of ``runtime_facts``: equal identities give bit-equal results."""
    return digest({"schema": "workbench.runtime/1", **runtime_facts(dtype)})


def code_sha256(folder: Path) -> str:
    """Digest over the Python files of a folder, by relative name."""
    files = sorted(folder.rglob("*.py"))
    return digest({str(path.relative_to(folder).as_posix()): sha256_hex(path.read_bytes()) for path in files})


@lru_cache(maxsize=1)
def harness_code_sha256() -> str:
    """Digest over the engine's own files and the contracts that define its bytes."""
    contracts = ENGINE_FOLDER.parents[1] / "workbench" / "contracts"
    return digest({"engine": code_sha256(ENGINE_FOLDER), "contracts": code_sha256(contracts)})


def _files_digest(folder: Path, names: list[str], what: str) -> str:
    found = {name: sha256_hex((folder / name).read_bytes()) for name in sorted(names) if (folder / name).is_file()}
    if not found:
        raise EngineFault(f"{what}: got no file in the model's folder, expected one of {sorted(names)}")
    return digest(found)


def model_folder_sha256(folder: Path) -> str:
    """Identity of a base model's files: its configuration and every safetensors file."""
    names = [path.name for path in folder.glob("*.safetensors")]
    if not names:
        raise EngineFault("model: got a folder without safetensors files, expected model.safetensors or its shards")
    return _files_digest(folder, ["config.json", *names], "model")


def tokenizer_folder_sha256(folder: Path) -> str:
    """Identity of a tokenizer's files."""
    return _files_digest(folder, list(_TOKENIZER_FILES), "tokenizer")
