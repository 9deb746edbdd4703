"""bitsandbytes left out of the start, and there once NF4 asks for it, in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .chat_models import tiny_model

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
from pathlib import Path
from worker.engine import service
service.preload()
assert sys.modules["bitsandbytes"] is None
import torch
from worker.engine.policy import _load_model, adapt
from worker.engine.quantized import LORA_TARGETS, assert_trainable_nf4, load_nf4, nf4_modules, prepare_for_training
lora = {"kind": "lora", "rank": 4, "alpha": 8, "targets": LORA_TARGETS, "seed": "7"}
folder = Path(sys.argv[1])
plain, trainable = adapt(_load_model(folder, "float32"), lora)
assert trainable and sys.modules["bitsandbytes"] is None  # LoRA on float32 has not asked for it
model = prepare_for_training(load_nf4(folder, compute_dtype="float32", device="cpu"), lora)
assert sys.modules["bitsandbytes"] is not None
assert len(list(nf4_modules(model))) == 14
assert_trainable_nf4(model)
ids = torch.arange(12)[None]
model(input_ids=ids).logits.float().square().mean().backward()
grown = [p for n, p in model.named_parameters() if "lora_B" in n and p.grad is not None and p.grad.abs().max() > 0]
assert len(grown) == 14, len(grown)
plain(input_ids=ids).logits.square().mean().backward()
print("both trained")
"""


@pytest.mark.gate
def test_nf4_finds_bitsandbytes_after_a_start_without_it(tmp_path):
    tiny_model(64, layers=2).save_pretrained(tmp_path / "model")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "model")]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "both trained" in done.stdout
