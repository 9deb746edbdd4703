"""NF4 + LoRA: collect in eval() first, then train; gradients against the dequantised reference.

The order is the one that a policy-gradient loop has, and the one in which bitsandbytes repacks
weights on CPUs with AVX512_BF16. With the guard the gradients agree with the reference (cosine over
0.999); with the guard removed they must not, or the test could not tell.
"""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

from workbench.contracts.errors import EngineFault
from worker.engine import quantized
from worker.engine.quantized import (
    LORA_TARGETS,
    ModelUnavailable,
    assert_trainable_nf4,
    dequantized_copy,
    guard_nf4,
    load_nf4,
    nf4_bytes,
    nf4_modules,
    prepare_for_training,
    recomputing_layers,
    repacking_cpu,
)

from .chat_models import tiny_model

VOCABULARY = 320
LORA = {"kind": "lora", "rank": 8, "alpha": 16, "targets": LORA_TARGETS, "seed": "7"}
IDS = torch.randint(0, VOCABULARY, (2, 24), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("nf4") / "model"
    tiny_model(VOCABULARY, layers=3).save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def adapted(folder, compute_dtype="float32"):
    """NF4 + LoRA whose B matrices are not 0, so that A has a gradient too."""
    model = prepare_for_training(load_nf4(folder, compute_dtype=compute_dtype, device="cpu"), LORA)
    draw = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02, generator=draw)
    return model


def collect(model):
    """What a sampler does: eval(), no gradient. Returns logits."""
    model.eval()
    with torch.no_grad():
        return model(IDS).logits.float()


def train_logits_and_gradient(model):
    """Teacher forcing in train(), all LoRA gradients in one vector."""
    model.train()
    model.zero_grad()
    logits = model(IDS).logits.float()
    loss = -torch.log_softmax(logits[:, :-1], -1).gather(-1, IDS[:, 1:, None]).mean()
    loss.backward()
    parts = [p.grad.flatten() for p in model.parameters() if p.requires_grad and p.grad is not None]
    return logits.detach(), torch.cat(parts)


def cosine(left, right):
    return float(torch.nn.functional.cosine_similarity(left.double(), right.double(), dim=0))


@pytest.mark.parametrize("compute_dtype", ["float32", "bfloat16"])
def test_gradients_after_an_eval_rollout_agree_with_the_dequantised_reference(folder, compute_dtype):
    model = adapted(folder, compute_dtype)
    reference = dequantized_copy(model)
    assert not list(nf4_modules(reference))
    collect(model)
    assert assert_trainable_nf4(model) == 21  # 3 layers x 7 projections
    _, gradient = train_logits_and_gradient(model)
    _, expected = train_logits_and_gradient(reference)
    assert gradient.numel() == expected.numel() == 3 * 8 * (128 + 128 + 2 * (128 + 64) + 128 + 128 + 3 * (128 + 256))
    assert cosine(gradient, expected) > 0.999


def unguarded_cosine(folder, monkeypatch):
    """Model and cosine to the reference where nothing guards it: eval rollout, then gradients."""
    with monkeypatch.context() as patch:
        patch.setattr(quantized, "guard_nf4", lambda model: 1)
        patch.setattr(quantized, "assert_trainable_nf4", lambda model: 1)
        model = adapted(folder)
    reference = dequantized_copy(model)
    collect(model)
    with warnings.catch_warnings():
        # torch says once a process that the repacked product has no autograd kernel; nothing else shows the fault
        warnings.filterwarnings("ignore", message="bitsandbytes::gemv_4bit: an autograd kernel", category=UserWarning)
        _, gradient = train_logits_and_gradient(model)
    _, expected = train_logits_and_gradient(reference)
    return model, cosine(gradient, expected)


def test_without_the_guard_the_same_comparison_fails(folder, monkeypatch, capsys):
    """The trap itself. On a CPU without AVX512_BF16 it can't be reproduced: that is checked, and said aloud."""
    model, found = unguarded_cosine(folder, monkeypatch)
    if not repacking_cpu():
        with capsys.disabled():
            print("\nthe NF4 trap can't be reproduced: this CPU has no AVX512_BF16, so nothing is repacked")
        assert found > 0.999
        return
    assert found < 0.99
    with pytest.raises(EngineFault, match=r"q_proj.*packing_format_for_cpu: got True, expected False"):
        assert_trainable_nf4(model)
    with pytest.raises(EngineFault, match="load the model again"):
        guard_nf4(model)


def test_the_switch_alone_makes_the_difference(folder, monkeypatch):
    """A CPU without AVX512_BF16, as bitsandbytes sees it: nothing is repacked and the gradients are right."""
    import bitsandbytes.nn.modules

    monkeypatch.setattr(bitsandbytes.nn.modules, "has_avx512bf16", lambda: False)
    model, found = unguarded_cosine(folder, monkeypatch)
    assert found > 0.999
    assert assert_trainable_nf4(model) == 21


@pytest.mark.parametrize("compute_dtype", ["float32", "bfloat16"])
def test_collected_and_trained_logits_come_from_the_same_path(folder, compute_dtype):
    """Bit-equal without and with gradients: the first importance ratio of a batch is exactly 1."""
    model = adapted(folder, compute_dtype)
    collected = collect(model)
    trained, _ = train_logits_and_gradient(model)
    assert torch.equal(collected, trained)


def test_a_train_step_moves_the_adapter_and_nothing_else(folder):
    model = adapted(folder)
    frozen = {n: p.detach().clone() for n, p in model.named_parameters() if not p.requires_grad}
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    collect(model)
    assert_trainable_nf4(model)
    train_logits_and_gradient(model)
    optimizer.step()
    assert all(torch.equal(p, frozen[n]) for n, p in model.named_parameters() if not p.requires_grad)
    assert all(not torch.equal(p, before[n]) for n, p in model.named_parameters() if p.requires_grad)
    assert all(p.dtype == torch.float32 for p in model.parameters() if p.requires_grad)


def test_recomputed_layers_give_the_same_gradient_and_fewer_kept_values(folder):
    """Bit-equal gradients; the number of values kept for the backward falls; the mode before comes back."""
    model = adapted(folder).eval()
    kept = []

    def run():
        kept.append(0)

        def pack(value):
            kept[-1] += value.numel()
            return value

        model.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            loss = -torch.log_softmax(model(IDS).logits.float(), -1)[..., 0].mean()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad])

    expected = run()
    with recomputing_layers(model):
        gradient = run()
    assert torch.equal(gradient, expected)
    assert kept[1] < kept[0] / 2
    assert not model.training and torch.equal(run(), expected) and kept[2] == kept[0]


def test_the_fresh_adapter_depends_on_its_seed_alone(folder):
    def first(seed):
        torch.manual_seed(12345)
        before = torch.random.get_rng_state()
        model = prepare_for_training(load_nf4(folder, compute_dtype="float32", device="cpu"), {**LORA, "seed": seed})
        kept = next(p for n, p in model.named_parameters() if "lora_A" in n).detach().clone()
        return kept, before

    one, state = first("7")
    torch.rand(3)
    again, _ = first("7")
    other, _ = first("8")
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert state.numel() > 0


def test_a_model_quantised_elsewhere_is_refused_before_backward(folder):
    """Loaded by transformers directly: the switch is on where the CPU repacks; the assertion names it."""
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=config, device_map={"": "cpu"})
    model = quantized.add_lora(model, LORA)
    for _, module in nf4_modules(model):
        module.support_avx512bf16_for_cpu = True  # what a CPU with AVX512_BF16 sets by itself
    with pytest.raises(EngineFault, match=r"layers\.0\.self_attn\.q_proj.*support_avx512bf16_for_cpu: got True"):
        assert_trainable_nf4(model)
    assert guard_nf4(model) == 21
    assert assert_trainable_nf4(model) == 21


def _fp4(model):
    next(nf4_modules(model))[1].weight.quant_state.quant_type = "fp4"


def _unfrozen(model):
    module = next(nf4_modules(model))[1]
    module.weight = _Claims(module.weight)


class _Claims(torch.nn.Parameter):
    """A packed weight that says it needs a gradient."""

    def __new__(cls, weight):
        made = torch.Tensor._make_subclass(cls, weight.data.float(), True)
        made.quant_state = weight.quant_state
        return made


def _unquantised(model):
    module = next(nf4_modules(model))[1]
    module.weight.quant_state = None
    module.quant_state = None


def _nothing_trainable(model):
    model.requires_grad_(False)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (_fp4, "quant_type: got fp4, expected nf4"),
        (_unfrozen, "weight.requires_grad: got True"),
        (_unquantised, "quant_state: got None"),
        (_nothing_trainable, "got no trainable parameter"),
    ],
)
def test_every_check_of_the_assertion(folder, break_it, message):
    model = adapted(folder)
    break_it(model)
    with pytest.raises(EngineFault, match=message):
        assert_trainable_nf4(model)


def test_a_model_without_nf4_is_no_nf4_model():
    with pytest.raises(EngineFault, match="got no Linear4bit module"):
        assert_trainable_nf4(tiny_model(VOCABULARY))


def test_an_unknown_bitsandbytes_is_refused(folder):
    """Without the switch there is no way to know that nothing is repacked."""
    model = load_nf4(folder, compute_dtype="float32", device="cpu")
    del next(nf4_modules(model))[1].support_avx512bf16_for_cpu
    with pytest.raises(EngineFault, match="got no such attribute in bitsandbytes"):
        guard_nf4(model)


def test_copies_keep_the_guard(folder):
    model = copy.deepcopy(adapted(folder))
    collect(model)
    assert assert_trainable_nf4(model) == 21


def test_full_fine_tuning_and_odd_dtypes_are_refused(folder):
    model = load_nf4(folder, compute_dtype="float32", device="cpu")
    with pytest.raises(EngineFault, match="expected 'lora'"):
        prepare_for_training(model, {"kind": "full"})
    with pytest.raises(EngineFault, match="compute_dtype: got float16"):
        load_nf4(folder, compute_dtype="float16", device="cpu")


def test_a_missing_model_says_what_helps(tmp_path, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match=r"'owner/absent'.*the hub is switched off here.*give the folder's path"):
        load_nf4("owner/absent", compute_dtype="float32", device="cpu")
    with pytest.raises(ModelUnavailable, match=r"expected a local folder with config.json.*Unrecognized model"):
        load_nf4(tmp_path, compute_dtype="float32", device="cpu")


def test_nf4_bytes_by_hand():
    """2048 x 6144 = 12,582,912 values: 6,291,456 packed; 196,608 scales of one byte; 768 float32 scales;
    offset 4; tables 1,088 bytes. 196,608 + 3,072 + 4 + 1,088 = 200,772.
    """
    assert nf4_bytes(2048 * 6144) == (6_291_456, 200_772)
    assert nf4_bytes(1) == (1, 1 + 4 + 4 + 1_088)


def test_nf4_bytes_are_what_bitsandbytes_allocates(folder):
    """Every module of a loaded model: packed weight, 8-bit scales, nested scales, offset and both tables."""
    for _, module in nf4_modules(load_nf4(folder, compute_dtype="float32", device="cpu")):
        state = module.weight.quant_state
        parts = [state.absmax, state.code, state.offset, state.state2.absmax, state.state2.code]
        constants = sum(part.numel() * part.element_size() for part in parts)
        packed = module.weight.numel() * module.weight.element_size()
        assert nf4_bytes(module.in_features * module.out_features) == (packed, constants)
