"""PRML manifests: hashes of the published test vectors, endpoints out, manifests in, and what does not map by name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from evidence.outward.prml import canonical_text, from_prml, read_prml, to_prml
from runs.actions.actors import service_actor
from runs.actions.drafts import check_draft
from runs.actions.plans import freeze_plan, save_draft
from runs.errors import DomainError
from runs.models import Plan, PlanVersion
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT
from tests.runs.scripted import Lab, document
from workbench.contracts.canonical import canonical_bytes, sha256_hex

NOUGHT = "0" * 64
CLAIM: dict[str, Any] = {
    "version": "prml/0.1", "claim_id": "01900000-0000-7000-8000-00000000000a", "created_at": "2026-05-01T12:00:00Z",
    "metric": "accuracy", "comparator": ">=", "threshold": 0.9, "dataset": {"id": "test-dataset", "hash": NOUGHT},
    "seed": 42, "producer": {"id": "清华大学.cn"},
}  # fmt: skip
SMALL = {
    **CLAIM, "claim_id": "01900000-0000-7000-8000-00000000000f", "created_at": "2026-10-01T09:00:00Z",
    "metric": "false_positive_rate", "comparator": "<=", "threshold": 1e-06,
    "dataset": {"id": "fraud-detection-2026", "hash": "cd" * 32}, "seed": 99, "producer": {"id": "fintech.example"},
}  # fmt: skip
STRICT = {
    **CLAIM, "claim_id": "01900000-0000-7000-8000-00000000000e", "created_at": "2026-09-15T11:00:00Z",
    "metric": "rmse", "comparator": "<", "threshold": 1.5, "dataset": {"id": "ca-housing", "hash": "ab" * 32},
    "seed": 2024, "producer": {"id": "research-lab.example"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "sha256"),
    [
        (CLAIM, "9e7096024ebbdea936ea4f92b35ce1fe1c2b5f1883d7196b6e10287aa620fa35"),
        (SMALL, "ff56657bd0d176dd8018c77461f38cdf5ec475b994a5061ef4d0f749bf4a7491"),
        (STRICT, "3b7bbabc43922e97b9aa0c380bb6928ec37a0d5af486b92a6a9835b430a0ad11"),
    ],
)
def test_published_vectors(value: dict[str, Any], sha256: str) -> None:
    """TV-013 (letters beyond ASCII), TV-018 (a small threshold), TV-017 (strictly less) of the specification."""
    assert sha256_hex(canonical_text(value).encode()) == sha256
    assert from_prml(yaml.safe_dump(value), study="s", name="n", sha256=sha256.upper()).sha256 == sha256


def test_a_manifest_becomes_a_draft_that_says_what_is_missing() -> None:
    text = yaml.safe_dump({**CLAIM, "notes": "by hand", "model": {"id": "m"}})
    draft = from_prml(text, study="study", name="plan")
    assert draft.unmapped == ("model", "notes") and "arms" in draft.missing
    found = yaml.safe_load(draft.text)
    assert found["seeds"] == ["42"] and found["endpoints"][0]["direction"] == "increase"
    assert NOUGHT in found["question"]["en"] and '"notes": "by hand"' in draft.text
    problems = check_draft("study", "plan", draft.text).problems
    fields = {problem.field.partition(".")[0] for problem in problems}
    assert {"arms", "policy"} <= fields, "the draft is read, and freezing it is refused by what is missing"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": "prml/9"}, "version"),
        ({"comparator": "~"}, "comparator"),
        ({"threshold": "high"}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"dataset": {"id": "d"}}, "dataset"),
        ({"dataset": {"id": "d", "hash": "xyz"}}, "dataset"),
        ({"producer": {}}, "producer"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"metric": ""}, "metric"),
    ],
)
def test_a_manifest_with_a_wrong_field_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(DomainError, match=f"^{field}: got"):
        read_prml(yaml.safe_dump({**CLAIM, **change}))


@pytest.mark.parametrize("name", sorted(CLAIM))
def test_a_manifest_without_a_field_is_refused(name: str) -> None:
    with pytest.raises(DomainError, match=f"^{name}: got nothing"):
        read_prml(yaml.safe_dump({key: value for key, value in CLAIM.items() if key != name}))


def test_a_hash_that_does_not_hold_is_refused() -> None:
    with pytest.raises(DomainError, match="sha256"):
        from_prml(yaml.safe_dump(CLAIM), study="s", name="n", sha256=NOUGHT)


@pytest.mark.parametrize("text", ["", "- a", "a: &x 1\nb: *x", "{"])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(DomainError):
        read_prml(text)


ENDPOINT = {
    "id": "gain", "definition": "reward.v2.1/mean", "metric": "reward", "direction": "increase", "unit": "reward",
    "interval": 0.95, "split": "test", "condition": "standard", "compare": {"kind": "parent", "arms": ["V"]},
}  # fmt: skip


@pytest.fixture
def registered(world: World) -> PlanVersion:
    """A frozen plan with an improvement, a non-inferiority, an endpoint without a direction and an equivalence."""
    endpoints = [
        ENDPOINT,
        {**ENDPOINT, "id": "no-worse", "margin": 0.1},
        {**ENDPOINT, "id": "context", "direction": "none"},
        {**ENDPOINT, "id": "same", "direction": "none", "equivalence": [-0.1, 0.1]},
    ]
    plan = document(
        name="registered", endpoints=endpoints, arms=[{"key": "V", "role": "main", "title": {"en": "V"}}],
        strict_pairs=[], preflight=None,
    )  # fmt: skip
    by = service_actor("tester")
    draft = save_draft(world.study, "registered", canonical_bytes(plan).decode(), by=by, at=AT)
    return freeze_plan(draft, Lab().bindings(), by=by, at=AT)


@pytest.mark.django_db
def test_endpoints_go_out_as_manifests(registered: PlanVersion) -> None:
    """An improvement is a difference above nought; a margin of 0.1 lets it fall to minus 0.1."""
    manifests, left = to_prml(registered)
    values = [read_prml(item.text) for item in manifests]
    assert [(value["comparator"], value["threshold"]) for value in values] == [(">", 0.0), (">=", -0.1)]
    assert values[0]["metric_args"]["compare"] == ENDPOINT["compare"]
    assert [item.partition(":")[0] for item in left] == ["context", "same"] and "equivalence" in left[1]
    assert "optimizer" in manifests[0].unmapped
    assert [sha256_hex(item.text.encode()) for item in manifests] == [item.sha256 for item in manifests]
    assert to_prml(registered)[0] == manifests
    assert all(value["claim_id"][14] == "7" and value["claim_id"][19] in "89ab" for value in values)


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("prml", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.mark.django_db
def test_command_writes_and_reads(registered: PlanVersion, tmp_path: Path) -> None:
    made = run("export", "scripted", "registered", str(tmp_path / "out"))
    assert made["written"] == ["registered.gain.prml.yaml", "registered.no-worse.prml.yaml"]
    file = tmp_path / "out" / made["written"][0]
    done = run("import", str(file), "--study", "scripted", "--name", "again", "--sha256", made["sha256"][0])
    assert done["sha256"] == made["sha256"][0] and Plan.objects.get(slug="again").state == "draft"
    with pytest.raises(CommandError, match="taken"):
        run("import", str(file), "--study", "scripted", "--name", "again")
    with pytest.raises(CommandError):
        run("export", "scripted", "registered", str(tmp_path / "out"))
    with pytest.raises(CommandError, match="frozen plan"):
        run("export", "scripted", "again", str(tmp_path / "more"))
    with pytest.raises(CommandError, match="sha256"):
        run("import", str(file), "--study", "scripted", "--name", "third", "--sha256", NOUGHT)
