"""Changes of sources from pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from evidence.actions.sources import add_source, watch_folder
from evidence.models import Source, WatchedFolder
from runs.models import Membership, Study, User
from runs.storage import blob_store
from tests.evidence_sources.conftest import newest
from tests.evidence_sources.test_git import make


def upload(client: Client, study: Study, **given: Any) -> Any:
    """Send the form."""
    file = SimpleUploadedFile("../../etc/passwd", b"hello\n")
    return client.post("/sources/new/", {"study": study.slug, "path": "notes/a.md", "file": file, **given})


def test_an_upload_is_taken_in_under_its_path(signed_in: Client, study: Study) -> None:
    """The file's own name is not used anywhere."""
    response = upload(signed_in, study, reference="R1", cutoff="2026-05-04")
    source = Source.objects.get()
    assert response.status_code == 302 and response["Location"] == f"/sources/{source.uid}/"
    assert (source.path, source.reference, str(newest(source).cutoff)) == ("notes/a.md", "R1", "2026-05-04")
    assert "passwd" not in signed_in.get(response["Location"]).content.decode()
    assert newest(source).actor.name == "mara"


def test_only_a_hash_makes_a_claimed_source(signed_in: Client, study: Study) -> None:
    """No file and a hash."""
    signed_in.post("/sources/new/", {"study": study.slug, "path": "a.md", "sha256": "ab" * 32})
    assert Source.objects.get().state == "claimed"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"path": "../x"}, "path: got"),
        ({"path": ""}, "path: got"),
        ({"cutoff": "yesterday"}, "cutoff: got"),
        ({"reference": "a b"}, "reference: got"),
        ({"sha256": "0" * 64}, "sha256: got"),
        ({"file": ""}, "file: got none"),
    ],
)
def test_a_refused_upload_says_why_and_keeps_what_was_typed(
    signed_in: Client, study: Study, given: dict[str, Any], words: str
) -> None:
    """422 with the form; nothing is stored."""
    response = upload(signed_in, study, title_en="Kept <title>", **given)
    page = response.content.decode()
    assert response.status_code == 422 and words in page and "Kept &lt;title&gt;" in page
    assert not Source.objects.exists()


def test_a_file_above_the_limit_is_refused(signed_in: Client, study: Study, settings: Any) -> None:
    """By its size, before it is read; far above, before the request's body is."""
    settings.SOURCE_LIMIT = 3
    assert "expected at most 3" in upload(signed_in, study).content.decode()
    settings.REQUEST_BODY_LIMIT = 10
    assert upload(signed_in, study, file=SimpleUploadedFile("x", b"x" * 100_000)).status_code == 413


def test_an_upload_may_be_larger_than_other_bodies(signed_in: Client, study: Study, settings: Any) -> None:
    """The limit of sources counts for the form with a file, and for nothing else."""
    settings.REQUEST_BODY_LIMIT = 10
    assert upload(signed_in, study, file=SimpleUploadedFile("x", b"x" * 50_000)).status_code == 302
    assert signed_in.post("/sources/new/", "x" * 50_000, content_type="text/plain").status_code == 413
    assert signed_in.post("/sources/new/git/", {"study": study.slug, "path": "x" * 50_000}).status_code == 413


def test_who_may_not_write_evidence_is_refused(client: Client, study: Study) -> None:
    """Nobody signed in, a reviewer, and somebody outside the study: to sign-in, 403, 404."""
    assert upload(client, study).status_code == 302 and "login" in upload(client, study)["Location"]
    reviewer = User.objects.create(username="ada")
    Membership.objects.create(study=study, user=reviewer, role=Membership.REVIEWER)
    client.force_login(reviewer)
    assert upload(client, study).status_code == 403
    assert "You may write evidence in no study" in client.get("/sources/new/").content.decode()
    client.force_login(User.objects.create(username="eve"))
    assert upload(client, study).status_code == 404
    assert not Source.objects.exists()


def test_a_form_without_its_token_changes_nothing(person: User, study: Study) -> None:
    """CSRF."""
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)
    assert upload(strict, study).status_code == 403 and not Source.objects.exists()


def test_check_now(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    """The button finds changed bytes and says so."""
    version = add_source(study, "a.md", b"one", origin="upload", **acting)
    path = blob_store().path(version.sha256)
    path.chmod(0o644)
    path.write_bytes(b"two")
    page = signed_in.post(f"/sources/{version.source.uid}/check/", follow=True).content.decode()
    assert "Checked now: drifted" in page and Source.objects.get().state == "drifted"
    assert signed_in.get(f"/sources/{version.source.uid}/check/").status_code == 405


def test_a_folder_is_watched_scanned_and_let_go(
    signed_in: Client, study: Study, root: Path, acting: dict[str, Any]
) -> None:
    """And a changed file is taken in with a reason, from its page."""
    (root / "a.md").write_text("one")
    signed_in.post("/sources/new/folder/", {"study": study.slug, "root": "papers", "folder": ""})
    folder, source = WatchedFolder.objects.get(), Source.objects.get()
    (root / "a.md").write_text("two")
    page = signed_in.post(f"/sources/folders/{folder.pk}/scan/", follow=True).content.decode()
    assert "0 new, 1 changed, 0 gone, 0 refused" in page
    address = f"/sources/{source.uid}/"
    assert "Take the changed file in" in signed_in.get(address).content.decode()
    refused = signed_in.post(f"{address}take-in/", {"reason": ""}, follow=True).content.decode()
    assert "Refused, nothing was changed: reason" in refused
    signed_in.post(f"{address}take-in/", {"reason": "the author corrected it"})
    assert newest(Source.objects.get()).number == 2
    signed_in.post(f"/sources/folders/{folder.pk}/stop/")
    assert not WatchedFolder.objects.get().enabled


def test_a_folder_outside_the_roots_is_refused(signed_in: Client, study: Study) -> None:
    """422 with the reason."""
    response = signed_in.post("/sources/new/folder/", {"study": study.slug, "root": "etc", "folder": ""})
    assert response.status_code == 422 and "expected one of papers" in response.content.decode()


def test_folders_of_hidden_studies_stay_hidden(client: Client, study: Study, acting: dict[str, Any]) -> None:
    """Another person can neither scan nor stop them."""
    folder = watch_folder(study, "papers", "", **acting)
    client.force_login(User.objects.create(username="eve"))
    for verb in ("scan", "stop"):
        assert client.post(f"/sources/folders/{folder.pk}/{verb}/").status_code == 404
    assert WatchedFolder.objects.get().enabled


def test_a_file_of_a_commit(signed_in: Client, study: Study, root: Path) -> None:
    """The commit's full id stands on the page; a commit that is not there is refused."""
    full = make(root / "repo")
    given = {"study": study.slug, "repository": "papers/repo", "commit": "main", "path": "sub/r.json"}
    page = signed_in.post("/sources/new/git/", given, follow=True).content.decode()
    assert full in page
    refused = signed_in.post("/sources/new/git/", {**given, "commit": "f" * 40})
    assert refused.status_code == 422 and "git: got" in refused.content.decode()
