"""``manage.py notes``: a document goes out and comes in again as the same bytes."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from evidence.models import NotesVersion

from .build import Desk, said, whole


def notes(*words: Any) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("notes", *(str(word) for word in words), stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_export_and_import_are_inverse(written: Desk, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"note.{form}"
    notes("export", "--study", "pilot", "--format", form, "--output", path)
    assert "version 1, sha256" in notes("import", path)
    assert NotesVersion.objects.count() == 1, "the same document is the same version"
    changed = whole(subtitle=said("Another"))
    path.write_text(json.dumps(changed) if form == "json" else yaml.safe_dump(changed, allow_unicode=True))
    assert "pilot: version 2" in notes("import", path, "--reason", "clearer")
    assert "A pilot" in notes("export", "--study", "pilot", "--version", "1")
    assert json.loads(notes("list", "--json"))[0]["version"] == 2


def test_an_import_that_is_refused_names_every_fault(written: Desk, tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    path.write_text(json.dumps(whole(title=said("12 points", "两成"))))
    out = StringIO()
    with pytest.raises(CommandError, match="nothing was saved: 2 faults"):
        call_command("notes", "import", str(path), stdout=out, stderr=out)
    assert "title.en: got '12'" in out.getvalue() and "title.zh: got" in out.getvalue()
    assert NotesVersion.objects.count() == 1


@pytest.mark.parametrize(
    "text, message",
    [("[1, 2]", "expected a notes document"), ("{", "cannot be read"), ("{}", "--study: got ''")],
)
def test_a_file_that_is_no_document_is_refused(desk: Desk, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "note.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=message):
        notes("import", path)


def test_missing_studies_versions_and_files_are_named(written: Desk, tmp_path: Path) -> None:
    for words, message in (
        (("export", "--study", "absent"), "--study: got 'absent'"),
        (("export", "--study", "pilot", "--version", "9"), "without 9 version"),
        (("import", tmp_path / "absent.yaml"), "cannot be read"),
    ):
        with pytest.raises(CommandError, match=message):
            notes(*words)
