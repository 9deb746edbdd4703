"""A bundle taken in elsewhere: the same uids and hashes, or nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django import DjangoDbBlocker

from evidence.actions.bundles import ImportConflict, Imported, import_bundle
from evidence.actions.excerpts import add_excerpt
from evidence.binding.figures import recompute
from evidence.models import RECORDS, Claim, Excerpt, Figure, Source
from evidence.outward.bundle import Written
from evidence.verify import verify
from runs.actions.actors import person_actor, service_actor
from runs.errors import DomainError
from runs.models import AuditEntry, Plan, PlanVersion, Receipt, StreamHead, Study, User
from runs.storage import blob_store
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT
from tests.runs import databases

Bundle = tuple[Path, Written]


@contextmanager
def elsewhere(template: Path, folder: Path, blocker: DjangoDbBlocker, settings: Any) -> Iterator[None]:
    """A database and a store that nobody has used."""
    folder.mkdir()
    settings.BLOB_ROOT = folder / "blobs"
    with blocker.unblock(), databases.copied_sqlite(template, folder):
        yield


@pytest.fixture
def home(
    bundle: Bundle, sqlite_template: Path, tmp_path: Path, django_db_blocker: DjangoDbBlocker, settings: Any
) -> Iterator[None]:
    """Another home, in which the test runs."""
    with elsewhere(sqlite_template, tmp_path / "elsewhere", django_db_blocker, settings):
        yield


def take(file: Path) -> Imported:
    return import_bundle(file, by=service_actor("test"), at=AT)


def told() -> dict[str, Any]:
    """What must be the same in both homes: hashes of receipts and plans, uids and states of evidence."""
    return {
        "receipts": sorted(
            Receipt.objects.exclude(stream__in=("bundles", "people")).values_list("stream", "seq", "sha256")
        ),
        "plans": sorted(PlanVersion.objects.values_list("sha256", flat=True)),
        "records": {
            model.KIND: sorted(str(uid) for uid in model._default_manager.values_list("uid", flat=True))
            for model in RECORDS
        },
        "bodies": sorted(
            json.dumps(row.body(), sort_keys=True) for model in RECORDS for row in model._default_manager.all()
        ),
        "sources": sorted(Source.objects.values_list("path", "state", "current__uid")),
        "figures": sorted(Figure.objects.values_list("key", "state", "current__value", "stale"), key=str),
        "claims": sorted(Claim.objects.values_list("key", "status", "cap", "provisional")),
    }


def test_everything_is_the_same_elsewhere(
    world: World, bundle: Bundle, sqlite_template: Path, tmp_path: Path, django_db_blocker: DjangoDbBlocker,
    settings: Any,
) -> None:  # fmt: skip
    here = told()
    with elsewhere(sqlite_template, tmp_path / "elsewhere", django_db_blocker, settings):
        done = take(bundle[0])
        assert told() == here
        assert done.receipts == len(here["receipts"]) and done.plans == 1 and done.blobs >= 3
        assert not User.objects.get(username="mara").is_active and Study.objects.get().visibility == "private"
        assert AuditEntry.objects.filter(route="bundle.imported").count() == 1


@pytest.mark.usefixtures("home")
def test_figures_recompute_and_verify_holds(bundle: Bundle) -> None:
    take(bundle[0])
    for figure in Figure.objects.exclude(current__value=None):
        found = recompute(figure)
        assert (found.state, found.value) == (figure.state, figure.current.value), found.trouble
    report = verify(store=blob_store())
    assert [str(item) for item in report.faults] == []


@pytest.mark.usefixtures("home")
def test_again_it_adds_nothing(bundle: Bundle) -> None:
    take(bundle[0])
    before, receipts = told(), Receipt.objects.count()
    done = take(bundle[0])
    assert (done.receipts, done.records, done.plans, done.blobs) == (0, 0, 0, 0)
    assert told() == before and Receipt.objects.count() == receipts


@pytest.mark.usefixtures("home")
def test_a_fork_is_refused_and_nothing_is_half_imported(bundle: Bundle) -> None:
    """A plan stream that differs here is met after others have come in: they are taken back."""
    study = Study.objects.create(
        uid="00000000-0000-4000-8000-000000000001", slug="other", title_en="O", created_at=AT,
        created_by=service_actor("test"),
    )  # fmt: skip
    value = json.loads((lambda reader: reader)(_part(bundle[0], "manifest.json")))
    stream = sorted(value["heads"])[-1][0]
    StreamHead.objects.create(stream=stream, study=study, seq=0, sha256="0" * 64)
    with pytest.raises(ImportConflict, match="another study"):
        take(bundle[0])
    assert Receipt.objects.count() == 0 and Source.objects.count() == 0 and Plan.objects.count() == 0
    assert Study.objects.get() == study


def _part(file: Path, path: str) -> bytes:
    from evidence.outward.archive import open_bundle

    with open_bundle(file) as reader:
        return reader.read(path)


@pytest.mark.usefixtures("home")
def test_what_was_added_here_goes_on_and_what_forks_is_named(bundle: Bundle, tmp_path: Path) -> None:
    """The bundle is the beginning of what stands here: nothing to do. A receipt at the same place differs: a fork."""
    take(bundle[0])
    study = Study.objects.get()
    user = User.objects.get(username="mara")
    version = Source.objects.get(path="pilot/paper.md").current
    with transaction.atomic():
        add_excerpt(study, version, "here", "quote", {"exact": "The pilot kept"}, by=person_actor(user), at=AT)
    assert take(bundle[0]).receipts == 0 and Excerpt.objects.filter(key="here").exists()
    from evidence.outward.bundle import write_bundle

    written = write_bundle(study, tmp_path / "second")
    assert written.sha256 != bundle[1].sha256


@pytest.mark.usefixtures("home")
def test_a_bundle_with_a_problem_is_refused_whole(bundle: Bundle, tmp_path: Path) -> None:
    data = bytearray(bundle[0].read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad").write_bytes(bytes(data))
    with pytest.raises(DomainError, match="problems"):
        take(tmp_path / "bad")
    assert not Study.objects.exists() and not blob_store().root.exists()


@pytest.mark.usefixtures("home")
def test_command_imports_and_refuses(bundle: Bundle, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("import-bundle", str(bundle[0]), "--json", stdout=out)
    assert json.loads(out.getvalue())["study"] == "scripted"
    with pytest.raises(CommandError, match="problems"):
        call_command("import-bundle", str(tmp_path / "absent"))
    with pytest.raises(CommandError, match="signature"):
        call_command("import-bundle", str(bundle[0]), "--key", "00" * 32)
