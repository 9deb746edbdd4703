"""PRML plans (``*.prml.yaml``) in and out: what maps onto a plan of ours, and by name what does not.

A PRML manifest (version prml/0.1) registers one claim: a metric against a threshold, a data set by hash, a seed and a
producer; its SHA-256 is taken over its canonical text. A plan of ours registers a whole experiment. Going out, each
endpoint becomes a manifest; coming in, a manifest becomes the beginning of a draft.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import yaml

from runs.actions.plans import parse_plan_text, plan_body
from runs.errors import DomainError
from runs.models import PlanVersion
from workbench.contracts.canonical import derive_uid, sha256_hex
from workbench.contracts.errors import PlanInvalid

VERSION = "prml/0.1"
COMPARATORS = (">=", "<=", ">", "<", "==")
NEEDED = (
    "version", "claim_id", "created_at", "metric", "comparator", "threshold", "dataset", "seed", "producer",
)  # fmt: skip
PRODUCER = "workbench"
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Sections of a plan that a manifest has no field for.
UNMAPPED_OUT = (
    "policy", "rollout", "reward", "failure", "objective", "optimizer", "budget", "arms", "gates", "strict_pairs",
    "probe", "retention", "runtime",
)  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """A manifest that goes out: ``text`` is its canonical text, ``sha256`` of it, ``unmapped`` what it cannot say."""

    name: str
    text: str
    sha256: str
    unmapped: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """A draft that came in. ``unmapped``: fields of the manifest without a place in a plan, kept in its question."""

    text: str
    sha256: str
    mapped: dict[str, str]
    unmapped: tuple[str, ...]
    missing: tuple[str, ...]


def canonical_text(manifest: dict[str, Any]) -> str:
    """Canonical text: keys in order, block style, two spaces, one line for each value (specification, section 3)."""
    found = dict(manifest)
    threshold = found.get("threshold")
    if isinstance(threshold, int) and not isinstance(threshold, bool):
        found["threshold"] = float(threshold)
    text: str = yaml.safe_dump(found, sort_keys=True, default_flow_style=False, allow_unicode=True, width=4096)
    return text


def _claim_id(version: PlanVersion, endpoint: str) -> str:
    """A UUIDv7 of the time of freezing whose random part is derived: the same plan gives the same manifest."""
    milliseconds = int(version.created_at.timestamp() * 1000)
    tail = derive_uid(version.uid, f"prml:{endpoint}").int & ((1 << 74) - 1)
    value = (milliseconds << 80) | (0x7 << 76) | ((tail >> 62) << 64) | (0b10 << 62) | (tail & ((1 << 62) - 1))
    return str(uuid.UUID(int=value))


def _criterion(endpoint: dict[str, Any]) -> tuple[str, float] | None:
    """(comparator, threshold) of a paired difference; None where the endpoint registers no direction.

    A margin is that of non-inferiority: the difference may not fall below minus the margin.
    """
    margin, direction = endpoint.get("margin"), endpoint.get("direction")
    if direction not in ("increase", "decrease"):
        return None
    if margin is None:
        return (">", 0.0) if direction == "increase" else ("<", 0.0)
    return (">=", -float(margin)) if direction == "increase" else ("<=", float(margin))


def to_prml(version: PlanVersion) -> tuple[list[Manifest], list[str]]:
    """(manifests, endpoints without one and why) of a frozen plan."""
    body = plan_body(version)
    plan, bindings = body["plan"], body["bindings"]
    unmapped = tuple(name for name in UNMAPPED_OUT if plan.get(name) not in (None, [], {}))
    manifests, left = [], []
    for endpoint in plan["endpoints"]:
        criterion = _criterion(endpoint)
        if criterion is None:
            what = "no direction" if endpoint.get("equivalence") is None else "an interval of equivalence"
            left.append(f"{endpoint['id']}: registers {what}, and a manifest has one comparator and one threshold")
            continue
        value = {
            "version": VERSION,
            "claim_id": _claim_id(version, endpoint["id"]),
            "created_at": version.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "metric": f"paired difference of {endpoint['metric']}",
            "metric_args": {**endpoint, "seeds": list(plan["seeds"]), "repeats": plan["evaluation"]["repeats"]},
            "comparator": criterion[0],
            "threshold": criterion[1],
            "dataset": {
                "id": f"{plan['environment']['id']}:{endpoint['split']}",
                "hash": bindings["task_set"]["sha256"],
            },
            "seed": int(plan["seeds"][0]),
            "producer": {"id": PRODUCER},
            "code": {"harness": bindings["harness"], "runtime": bindings["runtime"]},
            "notes": f"Endpoint {endpoint['id']} of plan {plan['name']}, SHA-256 {version.sha256}.",
        }
        text = canonical_text(value)
        name = f"{plan['name']}.{endpoint['id']}.prml.yaml"
        manifests.append(Manifest(name, text, sha256_hex(text.encode()), unmapped))
    return manifests, left


def read_prml(text: str) -> dict[str, Any]:
    """A manifest with its nine fields checked. Raises ``DomainError`` naming the one that is wrong."""
    try:
        value = parse_plan_text(text)
    except PlanInvalid as error:
        raise DomainError(f"manifest: {error}") from error
    for name in NEEDED:
        if name not in value:
            raise DomainError(f"{name}: got nothing, expected it in a manifest of {VERSION}")
    checks = (
        ("version", value["version"] == VERSION, VERSION),
        ("comparator", value["comparator"] in COMPARATORS, f"one of {', '.join(COMPARATORS)}"),
        ("threshold", _is_number(value["threshold"]), "a number"),
        ("seed", _is_seed(value["seed"]), "a whole number from 0 within 64 bits"),
        ("metric", isinstance(value["metric"], str) and bool(value["metric"].strip()), "a text"),
        ("dataset", _is_dataset(value["dataset"]), "id and hash, 64 hexadecimal digits"),
        ("producer", isinstance(value["producer"], dict) and bool(value["producer"].get("id")), "an object with id"),
        ("created_at", _is_time(value["created_at"]), "an RFC 3339 time in UTC"),
    )
    for name, right, expected in checks:
        if not right:
            raise DomainError(f"{name}: got {str(value[name])[:80]!r}, expected {expected}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e300


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_dataset(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("id")) and _SHA256.fullmatch(str(value.get("hash"))) is not None


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def from_prml(text: str, *, study: str, name: str, sha256: str = "") -> Draft:
    """The beginning of a plan's draft from a manifest. ``sha256``: its published hash, which must hold.

    The manifest itself goes into the draft's question, so that nothing of it is lost; what a plan needs and a
    manifest does not say is named in ``missing``.
    """
    value = read_prml(text)
    found = sha256_hex(canonical_text(value).encode())
    if sha256 and sha256.lower() != found:
        raise DomainError(f"sha256: got {sha256[:64]!r}, expected {found}, the hash of the manifest's canonical text")
    direction = {">": "increase", ">=": "increase", "<": "decrease", "<=": "decrease"}.get(value["comparator"], "none")
    endpoint = {"id": "registered", "metric": value["metric"], "direction": direction}
    question = (
        f"Registered elsewhere as {value['claim_id']} by {value['producer']['id']} on {value['created_at']}: "
        f"{value['metric']} {value['comparator']} {value['threshold']} on {value['dataset']['id']} "
        f"(SHA-256 {value['dataset']['hash']}). Manifest SHA-256 {found}."
    )
    draft = {
        "schema": "workbench.plan/1", "study": study, "name": name, "title": {"en": name}, "question": {"en": question},
        "seeds": [str(value["seed"])], "endpoints": [endpoint],
    }  # fmt: skip
    mapped = {
        "seed": "seeds", "metric": "endpoints[0].metric", "comparator": "endpoints[0].direction",
        "claim_id, created_at, producer, dataset, threshold": "question",
    }  # fmt: skip
    unmapped = sorted(set(value) - set(NEEDED))
    missing = ("policy", "environment", "reward", "objective", "optimizer", "budget", "arms", "endpoints[0].compare")
    head = f"# From a PRML manifest, SHA-256 {found}\n" + "".join(
        f"# {line}\n" for line in json.dumps({key: value[key] for key in unmapped}, indent=1).splitlines() if unmapped
    )
    body = yaml.safe_dump(draft, sort_keys=False, allow_unicode=True, width=4096)
    return Draft(head + body, found, mapped, tuple(unmapped), missing)
