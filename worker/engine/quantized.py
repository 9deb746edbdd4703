"""NF4 base models: loading, LoRA on top, and the guard against silently wrong gradients.

bitsandbytes repacks the weight of a ``Linear4bit`` in place on CPUs with AVX512_BF16: the first
forward in ``eval()`` with an input that needs no gradient does it, ``train()`` never undoes it, and
the packed branch of the forward has no autograd function. A policy-gradient loop meets exactly
that order (collect in ``eval()``, then train), loses the gradient through every frozen weight and
raises nothing. ``guard_nf4`` switches the repacking off module by module; ``assert_trainable_nf4``
refuses a model that was quantised elsewhere, immediately before backward.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.contracts.errors import EngineFault

from . import deferred

BLOCK_SIZE, NESTED_BLOCK_SIZE = 64, 256  # weights for one 8-bit scale; scales for one float32 scale
REPACK_SWITCH = "support_avx512bf16_for_cpu"  # attribute of Linear4bit that allows repacking
REPACKED = "packing_format_for_cpu"  # attribute of its quant_state once it has happened
CARD_8GB = 8188 * 2**20  # what an 8 GB card reports
CUDA_CONTEXT = 640 * 2**20
LOGIT_BYTES = 20  # a logit at the peak: five float32 values (itself, log-probability, entropy's parts)
PREFILL_POSITIONS = 256  # prompt tokens of a row that enter the sampler in one pass, logits for each of them
COMPUTE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class ModelUnavailable(EngineFault):
    """A model's files can't be had (no folder, hub unreachable, offline mode); the message says what helps."""


def _bitsandbytes() -> Any:
    try:
        return deferred.load()
    except ImportError as error:
        raise ModelUnavailable(
            f"dtype: got nf4, expected an importable bitsandbytes ({error}); install it with `pip install bitsandbytes`"
        ) from error


def compute_dtype_of(name: str | torch.dtype) -> torch.dtype:
    """The torch dtype that NF4 products are computed in: ``float32`` or ``bfloat16``."""
    if isinstance(name, torch.dtype):
        if name in COMPUTE_DTYPES.values():
            return name
    elif name in COMPUTE_DTYPES:
        return COMPUTE_DTYPES[name]
    raise EngineFault(f"compute_dtype: got {name}, expected one of {', '.join(COMPUTE_DTYPES)}")


def repacking_cpu() -> bool:
    """True where this CPU makes bitsandbytes repack (AVX512_BF16): there the trap can be reproduced."""
    return bool(_bitsandbytes().functional.has_avx512bf16())


def nf4_modules(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """(name, module) of every bitsandbytes ``Linear4bit``, base layers inside LoRA wrappers included."""
    linear4bit = _bitsandbytes().nn.Linear4bit
    for name, module in model.named_modules():
        if isinstance(module, linear4bit):
            yield name, module


def _quant_state(module: Any) -> Any:
    state = getattr(module.weight, "quant_state", None)
    return state if state is not None else getattr(module, "quant_state", None)


def guard_nf4(model: nn.Module) -> int:
    """Switch repacking off on every ``Linear4bit`` and return how many there are.

    Raises ``EngineFault`` where the switch is missing (another bitsandbytes) or a weight has been
    repacked already: unpacking rounds its scales to bfloat16, so such a model must be loaded again.
    """
    count = 0
    for name, module in nf4_modules(model):
        if not hasattr(module, REPACK_SWITCH):
            version = _bitsandbytes().__version__
            raise EngineFault(f"{name}.{REPACK_SWITCH}: got no such attribute in bitsandbytes {version}, expected one")
        _refuse_repacked(name, module)
        setattr(module, REPACK_SWITCH, False)
        count += 1
    return count


def _refuse_repacked(name: str, module: Any) -> None:
    if getattr(_quant_state(module), REPACKED, False):
        raise EngineFault(
            f"{name}.quant_state.{REPACKED}: got True, expected False: an eval() forward has repacked this weight and "
            "its gradients would be wrong; load the model again through load_nf4"
        )


def assert_trainable_nf4(model: nn.Module) -> int:
    """Refuse a NF4 model whose gradients can't be trusted; call immediately before backward.

    Checks every ``Linear4bit``: quantised, NF4, frozen, not repacked, and unable to be repacked.
    Also that something is trainable at all. Returns the number of NF4 modules. Raises
    ``EngineFault`` naming module, field, value and expectation.
    """
    count = 0
    for name, module in nf4_modules(model):
        state = _quant_state(module)
        if state is None:
            raise EngineFault(f"{name}.quant_state: got None, expected a quantised weight")
        if state.quant_type != "nf4":
            raise EngineFault(f"{name}.quant_type: got {state.quant_type}, expected nf4")
        if module.weight.requires_grad:
            raise EngineFault(f"{name}.weight.requires_grad: got True, expected False (packed weights are frozen)")
        _refuse_repacked(name, module)
        if getattr(module, REPACK_SWITCH, None) is not False:
            raise EngineFault(
                f"{name}.{REPACK_SWITCH}: got {getattr(module, REPACK_SWITCH, None)}, expected False: one eval() "
                "forward would repack this weight and later gradients would be wrong; call guard_nf4 after loading"
            )
        count += 1
    if count == 0:
        raise EngineFault("model: got no Linear4bit module, expected a NF4 base model")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise EngineFault("model: got no trainable parameter, expected a LoRA adapter (prepare_for_training)")
    return count


def explain_load_failure(model: str | Path, error: BaseException) -> ModelUnavailable:
    """One plain message for a model that could not be read, with what helps."""
    from huggingface_hub.constants import is_offline_mode

    why = str(error).split("\n")[0]
    if is_offline_mode() and not Path(model).is_dir():
        why = "the hub is switched off here (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set)"
    return ModelUnavailable(
        f"model: got {str(model)!r}, expected a local folder with config.json and weights, or a hub id that can be "
        f"reached; {why}. Download it on a machine with access and give the folder's path"
    )


def auto_class(config: Any) -> Any:
    """The transformers class that loads ``config``: a causal model, or an image-text model used with text alone."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    for loader in (AutoModelForCausalLM, AutoModelForImageTextToText):
        if type(config) in loader._model_mapping:
            return loader
    raise EngineFault(f"model_type: got {config.model_type!r}, expected a causal language model of transformers")


def load_config(path_or_id: str | Path) -> Any:
    """Configuration of a local folder or hub id. Raises ``ModelUnavailable``."""
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(path_or_id)
    except (OSError, ValueError) as error:
        raise explain_load_failure(path_or_id, error) from error


def load_nf4(
    path_or_id: str | Path, *, compute_dtype: str | torch.dtype = "bfloat16", device: str | None = None
) -> Any:
    """Load a local folder or hub id as a frozen, guarded NF4 model (double quantisation) in ``eval()``.

    ``compute_dtype``: dtype of products and of everything that isn't quantised (embeddings, norms).
    ``device``: "cpu", "cuda", "cuda:0", …; None takes CUDA where there is one. The output head is
    never quantised. Raises ``ModelUnavailable`` or ``EngineFault``.
    """
    from transformers import BitsAndBytesConfig

    _bitsandbytes()
    dtype = compute_dtype_of(compute_dtype)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    config = load_config(path_or_id)
    quantization = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
    try:
        model = auto_class(config).from_pretrained(
            path_or_id, quantization_config=quantization, dtype=dtype, device_map={"": place}
        )
    except OSError as error:
        raise explain_load_failure(path_or_id, error) from error
    if guard_nf4(model) == 0:
        raise EngineFault(f"model: got {str(path_or_id)!r} without a linear module to quantise, expected at least one")
    return model.requires_grad_(False).eval()


def prepare_for_training(model: Any, adaptation: dict[str, Any], *, gradient_checkpointing: bool = False) -> Any:
    """Put a float32 LoRA adapter on a guarded NF4 model and return the peft model.

    ``adaptation``: {"kind": "lora", "rank", "alpha", "targets", "seed"}; full fine-tuning of packed
    weights does not exist. Unlike peft's own preparation, embeddings and norms keep their dtype:
    nothing there is trained, and a float32 copy of a large embedding would cost most of the
    adapter's budget. The initial adapter depends on ``seed`` alone; the global generator is kept.
    """
    if adaptation.get("kind") != "lora":
        raise EngineFault(f"adaptation.kind: got {adaptation.get('kind')!r}, expected 'lora' (NF4 weights are frozen)")
    guard_nf4(model)
    model.requires_grad_(False)
    if gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    adapted = add_lora(model, adaptation)
    assert_trainable_nf4(adapted)
    return adapted


def add_lora(model: Any, adaptation: dict[str, Any]) -> Any:
    """peft model with a fresh float32 LoRA adapter that depends on ``adaptation`` alone, its seed included.

    ``targets``: last names of modules in a list, or a regular expression over full names as text.
    """
    from peft import LoraConfig, get_peft_model

    targets = adaptation["targets"]
    config = LoraConfig(
        r=adaptation["rank"],
        lora_alpha=adaptation["alpha"],
        target_modules=targets if isinstance(targets, str) else list(targets),
        lora_dropout=0.0,
        bias="none",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # peft asks transformers by a name that transformers 5 announces to rename
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
        torch.manual_seed(int(adaptation["seed"]) % 2**63)
        return get_peft_model(model, config)


def dequantized_copy(model: Any) -> Any:
    """The same model with every NF4 weight replaced by its dequantised value: the reference for gradients.

    Producer and consumer: tests and ``doctor``. ``model`` is left alone. Costs full-precision memory.
    """
    import copy

    functional = _bitsandbytes().functional
    reference = copy.deepcopy(model)
    for name, module in list(nf4_modules(reference)):
        _refuse_repacked(name, module)
        weight = functional.dequantize_4bit(module.weight.data, _quant_state(module)).to(module.compute_dtype)
        plain = nn.Linear(module.in_features, module.out_features, bias=module.bias is not None, device=weight.device)
        plain.weight = nn.Parameter(weight, requires_grad=False)
        if module.bias is not None:
            plain.bias = nn.Parameter(module.bias.detach().to(weight.dtype), requires_grad=False)
        parent, _, leaf = name.rpartition(".")
        setattr(reference.get_submodule(parent), leaf, plain)
    return reference


@contextmanager
def recomputing_layers(model: Any) -> Iterator[Any]:
    """Inside, the backward recomputes each layer instead of keeping its values; the earlier mode after.

    transformers recomputes in training mode only. Values are those of ``eval()`` for a model without
    dropout, which the caller vouches for.
    """
    was_training = model.training
    model.activation_checkpointing_enable({"use_reentrant": False})
    model.train()
    try:
        yield model
    finally:
        model.train(was_training)
        model.activation_checkpointing_disable()
        model.disable_input_require_grads()


@dataclass(frozen=True)
class MemoryTerm:
    """One part of a memory estimate. ``phase``: resident, update or rollout; ``basis``: how it follows."""

    name: str
    phase: str
    bytes: int
    basis: str


@dataclass(frozen=True)
class MemoryEstimate:
    """GPU memory of a profile, computed, not measured. ``total`` = resident + the larger of update and rollout."""

    label: str
    terms: tuple[MemoryTerm, ...]
    total: int
    budget: int
    fits: bool
    assumptions: dict[str, int]


def nf4_bytes(weights: int) -> tuple[int, int]:
    """(packed bytes, bytes of quantisation constants) of one NF4 weight of ``weights`` values.

    Two values a byte; one 8-bit scale for 64 values; one float32 scale for 256 of those; a float32
    offset and two code tables (16 and 256 float32 values).
    """
    scales = -(-weights // BLOCK_SIZE)
    return -(-weights // 2), scales + 4 * -(-scales // NESTED_BLOCK_SIZE) + 4 + 4 * (16 + 256)


def _resident_terms(profile: Any, model: Any, trainable: int) -> list[MemoryTerm]:
    width = 4 if profile.compute_dtype == "float32" else 2
    head = model.get_output_embeddings()
    linears = [module.weight for module in model.modules() if isinstance(module, nn.Linear) and module is not head]
    packed = constants = 0
    for weight in linears:
        data, scales = nf4_bytes(weight.numel())
        packed, constants = packed + data, constants + scales
    quantised = sum(weight.numel() for weight in linears)
    kept = sum(parameter.numel() for parameter in model.parameters()) - quantised  # tied weights count once
    return [
        MemoryTerm("NF4 weights", "resident", packed, f"{quantised:,} values of {len(linears)} linear modules, 4 bits"),
        MemoryTerm("quantisation constants", "resident", constants, "8-bit scale / 64, float32 scale / 16,384, tables"),
        MemoryTerm("weights that stay unquantised", "resident", kept * width, f"{kept:,} values, {width} bytes"),
        MemoryTerm("LoRA weights", "resident", 4 * trainable, f"{trainable:,} values, float32"),
        MemoryTerm("AdamW state", "resident", 8 * trainable, "two float32 moments a trainable value"),
        MemoryTerm("gradients", "resident", 4 * trainable, "float32; kept between trajectories of a step"),
    ]


def _phase_terms(profile: Any, model: Any, context: int, positions: int, rows: int) -> list[MemoryTerm]:
    text = model.config.get_text_config()
    width = 4 if profile.compute_dtype == "float32" else 2
    layers, hidden, ffn = text.num_hidden_layers, text.hidden_size, text.intermediate_size
    queries = text.num_attention_heads * text.head_dim
    keys = text.num_key_value_heads * text.head_dim
    compute = 4 * hidden + 3 * queries + 4 * keys + 4 * ffn  # norms, residuals, q k v before and after rotation, MLP
    float32 = 4 * hidden + (5 * hidden + queries + ffn)  # norms; inputs of the seven LoRA projections
    layer = context * (compute * width + float32 * 4)
    saved = context * hidden * width * layers if profile.gradient_checkpointing else layer * (layers - 1)
    kind = "layer inputs" if profile.gradient_checkpointing else "all layers but one"
    logits = positions * text.vocab_size * LOGIT_BYTES
    entering = rows * PREFILL_POSITIONS
    cache = rows * context * layers * 2 * keys * width
    return [
        MemoryTerm(f"activations, {kind}", "update", saved, f"{context} tokens, {layers} layers, microbatch 1"),
        MemoryTerm("activations, one layer", "update", layer, "its intermediate values while it is differentiated"),
        MemoryTerm(
            "one dequantised weight", "update", 2 * hidden * ffn * width, "largest projection, forward and backward"
        ),
        MemoryTerm("logits and what follows from them", "update", logits, f"{positions} policy positions"),
        MemoryTerm("key-value cache", "rollout", cache, f"{rows} rows x {context} tokens"),
        MemoryTerm("logits of a prompt part", "rollout", entering * text.vocab_size * width, f"{entering} positions"),
    ]


def memory_estimate(
    profile: Any,
    *,
    context_tokens: int = 2048,
    policy_positions: int = 512,
    rollout_rows: int = 4,
    budget: int = CARD_8GB,
) -> MemoryEstimate:
    """GPU memory of a NF4 profile at microbatch 1, every term listed. Nothing here has been measured.

    ``profile``: a ``ModelProfile`` with a configuration (its model is built on the meta device).
    Logits are counted at ``policy_positions`` only: an update that computes them at every position
    of the context needs more. Text input only: no image tokens. No reference model (KL beta 0).
    """
    if profile.dtype != "nf4":
        raise EngineFault(f"profile.dtype: got {profile.dtype}, expected nf4 (the estimate is about NF4 and LoRA)")
    model = profile.meta_model()
    trainable = profile.counts()["trainable_parameters"]
    terms = _resident_terms(profile, model, trainable)
    terms += _phase_terms(profile, model, context_tokens, policy_positions, rollout_rows)
    terms.append(MemoryTerm("CUDA context and libraries", "resident", CUDA_CONTEXT, "assumed"))
    phases = {
        phase: sum(term.bytes for term in terms if term.phase == phase) for phase in ("resident", "update", "rollout")
    }
    used = phases["resident"] + max(phases["update"], phases["rollout"])
    slack = used // 10
    terms.append(MemoryTerm("allocator slack", "resident", slack, "assumed: a tenth of everything above"))
    total = used + slack
    assumptions = {
        "context_tokens": context_tokens,
        "policy_positions": policy_positions,
        "rollout_rows": rollout_rows,
        "microbatch": 1,
    }
    return MemoryEstimate("computed, not measured", tuple(terms), total, budget, total <= budget, assumptions)
