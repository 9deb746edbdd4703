"""Exports, heads and the key over the API."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.cache import cache

from evidence.actions.signing import check_copy
from evidence.models import SignedHead
from evidence.outward.check import verify_bundle
from runs.models import Membership
from tests.api.calls import Api, content
from tests.api.conftest import make_caller
from tests.evidence_outward.conftest import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_buckets() -> None:
    cache.clear()


@pytest.fixture
def auditor(world: World) -> Api:
    return make_caller("ada", world.study, Membership.REVIEWER)


@pytest.fixture
def viewer(world: World) -> Api:
    return make_caller("vera", world.study, Membership.VIEWER)


def test_bundle(world: World, auditor: Api, tmp_path: Path) -> None:
    response = auditor.get("studies/scripted/export/bundle")
    data = content(response)
    assert response.status_code == 200, data
    (tmp_path / "bundle").write_bytes(data)
    assert verify_bundle(tmp_path / "bundle").ok
    again = auditor.get("studies/scripted/export/bundle", If_None_Match=response["ETag"])
    assert again.status_code == 304


@pytest.mark.parametrize("form", ["crate", "site"])
def test_other_forms(world: World, auditor: Api, form: str) -> None:
    data = content(auditor.get(f"studies/scripted/export/{form}"))
    assert data[:2] == b"PK", data


def test_who_may_export(world: World, viewer: Api) -> None:
    assert viewer.get("studies/scripted/export/bundle").status_code == 403
    assert Api("").get("studies/scripted/export/bundle").status_code == 401
    assert viewer.get("studies/nothing/export/bundle").status_code == 404
    assert viewer.get("studies/scripted/export/bundle?x=1").status_code == 400


def test_a_bundle_over_the_limit_is_413(world: World, auditor: Api, settings: object) -> None:
    settings.EXPORT_BYTES_LIMIT = 10  # type: ignore[attr-defined]
    assert auditor.get("studies/scripted/export/bundle").status_code == 413


def test_heads_are_what_the_command_checks(world: World, auditor: Api, viewer: Api) -> None:
    found = auditor.read("heads?limit=1")["items"][0]
    assert check_copy(found["export"]) == []
    assert found["fingerprint"] == auditor.read("signing-key")["fingerprint"] == SignedHead.objects.first().fingerprint
    assert viewer.get("heads").status_code == 403 and Api("").get("heads").status_code in (401, 403)
    assert "PRIVATE" not in str(auditor.read("signing-key"))
