"""An export as one file to send: built in a folder of its own that is gone before the file is read."""

from __future__ import annotations

import fcntl
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

from evidence.outward.archive import BundleError, write_zip
from evidence.outward.bundle import write_bundle
from evidence.outward.contents import Blob
from evidence.outward.crate import write_crate
from evidence.outward.site import write_site
from runs.access import AUDIT_READ, EVIDENCE_WRITE, Principal, capabilities, require, study_ids
from runs.errors import DomainError, NotAllowed
from runs.models import StreamHead, Study

BUNDLE, CRATE, SITE = "bundle", "crate", "site"
ANCHORED = (BUNDLE, CRATE)
COMMANDS = {BUNDLE: "--bundle FILE", CRATE: "--ro-crate FOLDER"}  # of manage.py export-study
FORMS = {BUNDLE: "bundle", CRATE: "crate.zip", SITE: "site.zip"}


@dataclass(frozen=True)
class Built:
    """``file`` is open at its beginning; closing it removes the bytes."""

    file: IO[bytes]
    name: str
    sha256: str
    size: int


def may_export(principal: Principal, study: Study) -> bool:
    """Who writes or audits evidence: an export names the heads of every stream, and machines in receipts."""
    return bool({AUDIT_READ, EVIDENCE_WRITE} & capabilities(principal, study))


def sees_every_stream(principal: Principal) -> bool:
    """Whether no receipt stream of this home is hidden: anchors and signed heads name and count all of them."""
    if principal.is_site_admin:
        return True
    return not StreamHead.objects.filter(seq__gt=0).exclude(study__in=study_ids(principal)).exists()


def require_export(principal: Principal, study: Study, form: str) -> None:
    """Raise ``Http404`` where the study is hidden, ``NotAllowed`` where its evidence is neither written nor audited.

    A form with anchors is also refused to whoever may not know of a study that they count.
    """
    if not may_export(principal, study):
        require(principal, EVIDENCE_WRITE, study)
    if form in ANCHORED and not sees_every_stream(principal):
        raise NotAllowed(
            f"{form}: got a reader from whom studies of this server are hidden, expected one who sees them all, for "
            f"its anchors name and count the receipts of every study. Ask a site admin to download it for you, or to "
            f"run manage.py export-study {study.slug} {COMMANDS[form]} and send you the file; or become a member of "
            "the hidden studies. The site holds no anchors: you can download that now"
        )


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """One export of this home at once. Raises ``DomainError`` where another is being built."""
    path = settings.HOME.root / "export.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DomainError("export: got another one that is being built, expected none; try again soon") from error
        yield


def build(study: Study, form: str) -> Built:
    """Build an export without raw trajectories, within the limit of the settings. Raises ``BundleError``."""
    if form not in FORMS:
        raise DomainError(f"form: got {form[:40]!r}, expected one of {', '.join(FORMS)}")
    most: int = settings.EXPORT_BYTES_LIMIT
    with _one_at_a_time(), tempfile.TemporaryDirectory(prefix="workbench-export-") as folder:
        target = Path(folder) / "export"
        if form == BUNDLE:
            write_bundle(study, target, most=most)
        else:
            _folder(study, form, Path(folder) / "files", target, most)
        file = target.open("rb")
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = file.tell()
    file.seek(0)
    return Built(file, f"{study.slug}.{FORMS[form]}", digest, size)


def _folder(study: Study, form: str, files: Path, target: Path, most: int) -> None:
    if form == CRATE:
        write_crate(study, files, most=most)
    else:
        write_site(study, files)
    paths = sorted(path for path in files.rglob("*") if path.is_file())
    total = sum(path.stat().st_size for path in paths)
    if total > most:
        raise BundleError(
            f"export: got {total} bytes, expected at most {most} here; write it with manage.py export-study"
        )
    with target.open("x+b") as sink:
        write_zip(sink, [Blob(path.relative_to(files).as_posix(), path) for path in paths])
