"""Files of runs: stored by hash, listed as a tree, refused where a path would lead out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.actions.tracked_files import checked_path
from runs.errors import DomainError
from runs.models import BlobRef, RunArtifact, Study
from tests.api.calls import content
from tests.mlflow.calls import FILES, Mlflow
from workbench.blobs import BlobStore, BlobTooLarge

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_store(settings: Any, tmp_path: Path) -> None:
    settings.BLOB_ROOT = tmp_path / "blobs"


def put(caller: Mlflow, study: Study, run: str, path: str, data: bytes) -> Any:
    return caller.call("PUT", f"{FILES}/{study.pk}/{run}/artifacts/{path}", raw=data)


def get(caller: Mlflow, study: Study, run: str, path: str) -> Any:
    return caller.call("GET", f"{FILES}/{study.pk}/{run}/artifacts/{path}")


def test_files_come_back_and_are_listed_as_a_tree(mara: Mlflow, study: Study) -> None:
    run, bytes_ = mara.run(study.pk), b"\x00\xff" * 1000
    for path, data in (
        ("a.txt", b"one"),
        ("dir/b.bin", bytes_),
        ("dir/deep/c.json", b""),
        ("a.txt", b"two"),
    ):
        assert put(mara, study, run, path, data).status_code == 200
    assert content(get(mara, study, run, "a.txt")) == b"two"
    assert content(get(mara, study, run, "dir/b.bin")) == bytes_
    assert content(get(mara, study, run, "dir/deep/c.json")) == b""
    top = mara.get("artifacts/list", run_id=run)
    assert top["root_uri"] == f"mlflow-artifacts:/{study.pk}/{run}/artifacts"
    assert top["files"] == [
        {"path": "a.txt", "is_dir": False, "file_size": 3},
        {"path": "dir", "is_dir": True},
    ]
    below = mara.get("artifacts/list", run_id=run, path="dir")["files"]
    assert [item["path"] for item in below] == ["dir/b.bin", "dir/deep"]
    names = mara.get(FILES, path=f"{study.pk}/{run}/artifacts/dir")["files"]
    assert [item["path"] for item in names] == ["b.bin", "deep"]
    assert mara.get(FILES, path=f"{study.pk}/{run}/artifacts")["files"][0]["path"] == "a.txt"
    assert RunArtifact.objects.count() == 4 and BlobRef.objects.filter(kind="artifact").count() == 4


def test_the_same_bytes_again_store_nothing(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    for _ in range(2):
        put(mara, study, run, "a.txt", b"one")
    assert RunArtifact.objects.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "a/./x",
        "/etc/passwd",
        "a//b",
        "a\\b",
        "C:/x",
        "a/",
        "a\nb",
        "a\x00b",
        "x" * 1001,
        "b/" + "y" * 256,
    ],
)
def test_a_path_that_leads_out_is_refused(mara: Mlflow, study: Study, path: str) -> None:
    with pytest.raises(DomainError, match="path: got"):
        checked_path(path)


@pytest.mark.parametrize("path", ["..%2fx", "%2e%2e/x", "a%5cb", "a/%2e%2e/%2e%2e/x", "a%00b", "a//b"])
def test_an_address_that_leads_out_is_refused(mara: Mlflow, study: Study, path: str) -> None:
    run = mara.run(study.pk)
    assert put(mara, study, run, path, b"x").status_code in (400, 404)
    assert not RunArtifact.objects.exists()


def test_a_file_is_no_folder(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    put(mara, study, run, "a/b", b"x")
    assert put(mara, study, run, "a", b"x").status_code == 400
    assert put(mara, study, run, "a/b/c", b"x").status_code == 400
    assert put(mara, study, run, "A/b", b"x").status_code == 200  # letters count


def test_too_large_a_file_leaves_nothing(mara: Mlflow, study: Study, settings: Any, tmp_path: Path) -> None:
    run = mara.run(study.pk)
    settings.ARTIFACT_LIMIT = 1000
    assert put(mara, study, run, "fits", b"x" * 1000).status_code == 200
    answer = put(mara, study, run, "big", b"x" * 1001)
    assert answer.status_code == 413 and answer.json()["error_code"] == "REQUEST_TOO_LARGE"
    assert RunArtifact.objects.count() == 1


def test_a_file_above_the_limit_of_other_bodies(mara: Mlflow, study: Study, settings: Any) -> None:
    run = mara.run(study.pk)
    data = b"z" * (settings.REQUEST_BODY_LIMIT + 1)
    assert put(mara, study, run, "large.bin", data).status_code == 200
    assert content(get(mara, study, run, "large.bin")) == data


def test_a_stream_without_an_end_is_cut(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "store")
    with pytest.raises(BlobTooLarge, match="more than 10"):
        store.put_stream((b"abc" for _ in range(1000)), 10)
    assert list(store.iterate()) == [] and not [item for item in store.root.rglob("*") if item.is_file()]
    name, size = store.put_stream([b"ab", b"c"], 3)
    assert size == 3 and store.get(name) == b"abc"


def test_a_missing_file_and_a_wrong_place(mara: Mlflow, study: Study, caller: Callable[..., Mlflow]) -> None:
    run = mara.run(study.pk)
    assert get(mara, study, run, "nothing").status_code == 404
    assert mara.call("GET", f"{FILES}/{study.pk + 1}/{run}/artifacts/a").status_code == 404
    assert mara.call("PUT", f"{FILES}/somewhere/a.txt", raw=b"x").status_code == 400
    viewer = caller("vera", study, "viewer")
    assert put(viewer, study, run, "a", b"x").status_code == 403
    assert put(caller("eve"), study, run, "a", b"x").status_code == 404
    assert mara.call("DELETE", f"{FILES}/{study.pk}/{run}/artifacts/a").status_code == 400
    assert not RunArtifact.objects.exists()


def test_a_deleted_run_takes_no_file(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/delete", run_id=run)
    assert put(mara, study, run, "a", b"x").status_code == 400
