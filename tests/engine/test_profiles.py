"""Profiles as data: the sizes of qwen3-vl-2b-nf4 on the meta device, generic models, refusals, the 8 GB figure."""

from __future__ import annotations

import dataclasses

import pytest

from workbench.contracts.errors import EngineFault
from worker.engine.profiles import (
    PROFILES,
    DeviceMissing,
    UnknownProfile,
    get_profile,
    lora,
    model_folder,
    require_device,
)
from worker.engine.quantized import CARD_8GB, ModelUnavailable, memory_estimate

from .chat_models import tiny_model

QWEN = PROFILES["qwen3-vl-2b-nf4"]


def test_qwen3_vl_2b_has_196_lora_modules_and_8716288_trainable_parameters():
    """r (in + out) with r = 8, a layer: q 8 (2048 + 2048) + k, v 2 x 8 (2048 + 1024) + o 8 (2048 + 2048)
    + gate, up, down 3 x 8 (2048 + 6144) = 32,768 + 49,152 + 32,768 + 196,608 = 311,296; x 28 layers
    = 8,716,288. Modules: 28 x 7 = 196.
    """
    counts = QWEN.check_counts()
    assert 28 * (8 * (2 * (2048 + 2048) + 2 * (2048 + 1024) + 3 * (2048 + 6144))) == 8_716_288
    assert counts == {"parameters": 2_127_532_032, "lora_modules": 196, "trainable_parameters": 8_716_288}


def test_the_meta_model_holds_no_weight_and_lora_leaves_the_vision_tower_alone():
    model = QWEN.meta_model()
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    from worker.engine.quantized import add_lora

    names = [n for n, p in add_lora(model, QWEN.adaptation).named_parameters() if p.requires_grad]
    assert len(names) == 2 * 196
    assert all(".language_model.layers." in name for name in names)


def test_counts_that_differ_from_what_a_profile_promises_are_refused():
    other = dataclasses.replace(QWEN, adaptation=lora(rank=4))
    with pytest.raises(EngineFault, match="trainable_parameters: got 4358144, expected 8716288"):
        other.check_counts()


def test_unknown_names_list_the_known_profiles():
    with pytest.raises(
        UnknownProfile,
        match=r"got 'qwen', expected a profile \(embedded-code-repair, embedded-evidence-search, qwen3-vl",
    ):
        get_profile("qwen")


def test_generic_profiles(tmp_path):
    """A folder, then a hub id; dtype moves compute_dtype; an explicit compute_dtype stays."""
    with pytest.raises(UnknownProfile, match=r"without config\.json"):
        get_profile(str(tmp_path))
    tiny_model(320).save_pretrained(tmp_path)
    local = get_profile(str(tmp_path), dtype="nf4")
    assert (local.source, local.dtype, local.compute_dtype, local.formatter) == ("local", "nf4", "bfloat16", "chat")
    assert local.counts()["lora_modules"] == 2 * 7
    full = get_profile(str(tmp_path), adaptation={"kind": "full"})
    assert full.counts()["trainable_parameters"] == full.counts()["parameters"] == tiny_model(320).num_parameters()
    hub = get_profile("owner/name", dtype="nf4", compute_dtype="float32")
    assert (hub.source, hub.compute_dtype) == ("hub", "float32")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "int8"}, "dtype: got 'int8'"),
        ({"dtype": "nf4", "adaptation": {"kind": "full"}}, "NF4 weights are frozen"),
        ({"adaptation": {"kind": "prefix"}}, "adaptation.kind: got 'prefix'"),
        ({"adaptation": {"kind": "lora", "rank": 8}}, "adaptation.alpha: got nothing"),
        ({"formatter": "compact"}, "has its own tokenizer"),
        ({"formatter": "json"}, "formatter: got 'json'"),
        ({"history": "forget"}, "history: got 'forget'"),
        ({"micro_batch": 0}, "micro_batch: got 0"),
        ({"colour": 1}, "expected fields of ModelProfile"),
    ],
)
def test_illegal_combinations_are_refused(changes, message):
    with pytest.raises(EngineFault, match=message):
        get_profile("owner/name", **changes)


def test_devices():
    assert require_device(QWEN, cuda_available=True) == "cuda"
    with pytest.raises(DeviceMissing, match=r"got no CUDA device.*'qwen3-vl-2b-nf4'.*embedded-evidence-search"):
        require_device(QWEN, cuda_available=False)
    assert require_device(PROFILES["embedded-evidence-search"], cuda_available=True) == "cpu"
    generic = get_profile("owner/name")
    assert require_device(generic, cuda_available=True) == "cuda"
    assert require_device(generic, cuda_available=False) == "cpu"


def test_model_folder(tmp_path, monkeypatch):
    """A local folder is itself; a hub id that can't be reached says what helps, whatever the reason."""
    import huggingface_hub

    tiny_model(320).save_pretrained(tmp_path)
    assert model_folder(get_profile(str(tmp_path))) == tmp_path
    with pytest.raises(EngineFault, match="got an embedded recipe"):
        model_folder(PROFILES["embedded-evidence-search"])

    def unreachable(*args, **kwargs):
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(ModelUnavailable, match=r"'Qwen/Qwen3-VL-2B-Instruct'.*no route to the hub.*folder's path"):
        model_folder(QWEN)


def test_a_hub_id_offline_is_refused_at_once(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match="the hub is switched off here"):
        model_folder(get_profile("owner/absent"))


def test_an_embedded_recipe_has_no_configuration():
    with pytest.raises(EngineFault, match="got an embedded recipe"):
        PROFILES["embedded-evidence-search"].meta_model()


def test_the_8_gb_figure_is_computed_and_says_so():
    """LoRA values 8,716,288 x 4 B = 34,865,152; AdamW twice that; gradients once. Key-value cache: 4 rows x
    2048 tokens x 28 layers x 2 x 1024 values x 2 B = 939,524,096. Logits at 512 positions: 512 x 151,936 x 20 B.
    """
    estimate = memory_estimate(QWEN)
    terms = {term.name: term.bytes for term in estimate.terms}
    assert estimate.label == "computed, not measured"
    assert terms["LoRA weights"] == terms["gradients"] == 34_865_152
    assert terms["AdamW state"] == 69_730_304
    assert terms["key-value cache"] == 939_524_096
    assert terms["logits and what follows from them"] == 512 * 151_936 * 20
    assert terms["NF4 weights"] == 1_811_939_328 // 2
    assert terms["weights that stay unquantised"] == (2_127_532_032 - 1_811_939_328) * 2
    phase = {
        name: sum(term.bytes for term in estimate.terms if term.phase == name)
        for name in ("resident", "update", "rollout")
    }
    assert estimate.total == phase["resident"] + max(phase["update"], phase["rollout"])
    assert estimate.fits and estimate.budget == CARD_8GB


def test_logits_at_every_position_of_the_context_would_not_fit():
    """2048 x 151,936 x 20 B = 5.8 GiB for logits alone: only policy positions may be projected."""
    assert not memory_estimate(QWEN, policy_positions=2048).fits
    assert not memory_estimate(dataclasses.replace(QWEN, gradient_checkpointing=False)).fits
    more = memory_estimate(QWEN, context_tokens=4096)
    assert more.total > memory_estimate(QWEN).total


def test_the_estimate_is_about_nf4_only():
    with pytest.raises(EngineFault, match="expected nf4"):
        memory_estimate(get_profile("owner/name"))


def test_profiles_are_frozen_data():
    with pytest.raises(dataclasses.FrozenInstanceError):
        QWEN.dtype = "float32"
