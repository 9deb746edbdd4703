"""RO-Crate: every file described with its hash, and what comes from what in PROV."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evidence.models import Figure
from evidence.outward.archive import BundleError
from evidence.outward.crate import write_crate
from tests.evidence_outward.conftest import World

pytestmark = pytest.mark.django_db


def graph(folder: Path) -> dict[str, dict[str, Any]]:
    """Entities by id."""
    metadata = json.loads((folder / "ro-crate-metadata.json").read_text())
    return {entity["@id"]: entity for entity in metadata["@graph"]}


def test_every_file_is_described_with_its_hash(world: World, tmp_path: Path) -> None:
    write_crate(world.study, tmp_path / "crate")
    found = graph(tmp_path / "crate")
    files = {
        str(path.relative_to(tmp_path / "crate"))
        for path in (tmp_path / "crate").rglob("*")
        if path.is_file() and path.name != "ro-crate-metadata.json"
    }
    assert {part["@id"] for part in found["./"]["hasPart"]} == files
    for path in files:
        data = (tmp_path / "crate" / path).read_bytes()
        assert found[path]["sha256"] == hashlib.sha256(data).hexdigest()
        assert found[path]["contentSize"] == str(len(data)) and "File" in found[path]["@type"]
    assert found["ro-crate-metadata.json"]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.2"
    assert not any("group" in path for path in files)


def test_no_reference_leads_to_nothing(world: World, tmp_path: Path) -> None:
    write_crate(world.study, tmp_path / "crate")
    found = graph(tmp_path / "crate")

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["@id"]] if set(value) == {"@id"} else []
            return own + [item for key, part in value.items() if key != "@id" for item in references(part)]
        return [item for part in value for item in references(part)] if isinstance(value, list) else []

    named = {name for entity in found.values() for name in references(entity)} - {"https://w3id.org/ro/crate/1.2"}
    assert named - set(found) == set()


def test_provenance_says_what_comes_from_what(world: World, tmp_path: Path) -> None:
    write_crate(world.study, tmp_path / "crate")
    found = graph(tmp_path / "crate")
    execution = found[f"urn:uuid:{world.execution.uid}"]
    closure = f"documents/closure/{world.execution.uid}.json"
    assert "prov:Activity" in execution["@type"] and [{"@id": closure}] in (
        execution["prov:generated"], [execution["prov:generated"]],
    )  # fmt: skip
    figures = {row.key: row for row in Figure.objects.filter(study=world.study)}
    derived = found[f"urn:uuid:{figures['pilot.share'].uid}"]["prov:wasDerivedFrom"]
    wanted = {f"urn:uuid:{figures[key].uid}" for key in ("pilot.nonzero", "pilot.usable")}
    assert {item["@id"] for item in derived} == wanted
    assert "value" not in found[f"urn:uuid:{figures['later'].uid}"], "what is not measured has no value"


def test_the_same_state_gives_the_same_files(world: World, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_crate(world.study, tmp_path / name)
    texts = [(tmp_path / name / "ro-crate-metadata.json").read_bytes() for name in ("one", "two")]
    assert texts[0] == texts[1]


def test_a_folder_that_holds_something_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BundleError, match="holds files"):
        write_crate(world.study, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_library_reads_it_back(world: World, tmp_path: Path) -> None:
    from rocrate.rocrate import ROCrate

    write_crate(world.study, tmp_path / "crate")
    assert ROCrate(str(tmp_path / "crate")).root_dataset["identifier"] == f"urn:uuid:{world.study.uid}"
