"""Writes a study as one file that can be checked anywhere with nothing but itself."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from evidence.outward.archive import BundleError, write_zip
from evidence.outward.contents import Blob, Bytes, gather, hashed, manifest_of
from evidence.outward.keys import fingerprint, public_pem, signing_key
from evidence.snapshot import reading
from runs.models import Study
from workbench.contracts.canonical import sha256_hex


@dataclass(frozen=True)
class Written:
    """A bundle that was written: its file's digest and size, and the manifest's digest."""

    sha256: str
    bytes: int
    files: int
    manifest_sha256: str
    fingerprint: str
    left_out: tuple[str, ...]


def write_bundle(study: Study, file: Path, *, with_captures: bool = False, most: int | None = None) -> Written:
    """Write a new file; the same state of the database gives the same bytes. Changes no row.

    ``most``: bytes that it may have. Raises ``BundleError`` for more, ``FileExistsError`` where the file is there.
    """
    key = signing_key(settings.HOME)
    public = key.public_key()
    with reading():
        found = gather(study, with_captures=with_captures)
    total = sum(part.size for part in found.parts.values())
    if most is not None and total > most:
        raise BundleError(
            f"bundle: got {total} bytes, expected at most {most} here; "
            f"write it with manage.py export-study {study.slug} --bundle FILE"
        )
    found.put("key.pem", public_pem(public).encode())
    name = fingerprint(public)
    hashes = {path: hashed(part) for path, part in found.parts.items()}
    for path, part in found.parts.items():
        if isinstance(part, Blob) and hashes[path] != path.rpartition("/")[2]:
            raise BundleError(f"{path}: got bytes that hash to {hashes[path]}; run manage.py verify")
    manifest = manifest_of(found, study, key_fingerprint=name, with_captures=with_captures, hashes=hashes)
    first = [Bytes("manifest.json", manifest), Bytes("manifest.sig", key.sign(manifest).hex().encode())]
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open("x+b") as sink:
            write_zip(sink, [*first, *(found.parts[path] for path in sorted(found.parts))])
            sink.flush()
            os.fsync(sink.fileno())
        os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    told = tuple(f"{item['count']} {item['what']}: {item['why']}" for item in found.left_out)
    size = file.stat().st_size
    return Written(digest, size, len(found.parts) + 2, sha256_hex(manifest), name, told)
