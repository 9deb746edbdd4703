"""Layout of the data directory: every path that Workbench writes, named once.

No Django here: the runner and the capture tools use it too. Nothing below creates a folder except
``Home.prepare``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Linux allows 108 bytes for a socket path with its end mark, macOS 104.
SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True)
class Home:
    """The data directory (absolute). Moving it moves everything except the user's model cache."""

    root: Path

    @property
    def database(self) -> Path:
        """SQLite file, used where no database URL is configured."""
        return self.root / "db.sqlite3"

    @property
    def blobs(self) -> Path:
        """Root of the content-addressed store."""
        return self.root / "blobs"

    @property
    def secret_key(self) -> Path:
        """File of the generated key (mode 600)."""
        return self.root / "secret_key"

    @property
    def signing_key(self) -> Path:
        """File of the private key that signs heads (mode 600); in no database, log or backup."""
        return self.root / "signing_key"

    @property
    def logs(self) -> Path:
        """One log file for each process under the supervisor."""
        return self.root / "logs"

    @property
    def broker(self) -> Path:
        """Data folder of the embedded broker (append-only file)."""
        return self.root / "broker"

    @property
    def supervisor_lock(self) -> Path:
        """Locked by the running supervisor; holds its pid."""
        return self.root / "supervisor.lock"

    @property
    def supervisor_state(self) -> Path:
        """JSON of the running supervisor: pid, address, children."""
        return self.root / "supervisor.json"

    @property
    def initialise_lock(self) -> Path:
        """Serialises the first migration of a fresh home."""
        return self.root / "initialise.lock"

    @property
    def digest(self) -> str:
        """Short name of this home, for things that must live outside it."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]

    @property
    def socket_directory(self) -> Path:
        """Folder of the broker's socket: in the home, or a short one where that path would be too long."""
        inside = self.root / "run"
        if len(os.fsencode(inside / "broker.sock")) <= SOCKET_PATH_LIMIT:
            return inside
        return Path("/tmp") / f"workbench-{os.getuid()}-{self.digest}"

    @property
    def broker_socket(self) -> Path:
        """Unix socket of the embedded broker."""
        return self.socket_directory / "broker.sock"

    def prepare(self) -> None:
        """Create the folders. Raises ``PermissionError`` where a private folder belongs to somebody else."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)  # sessions and unpublished results lie in it
        for folder in (self.blobs, self.logs, self.broker):
            folder.mkdir(parents=True, exist_ok=True)
        private_directory(self.socket_directory)

    def ensure_secret_key(self) -> str:
        """The key of this home. Raises ``ValueError`` where the file was cut short."""
        key = self._keep("secret_key", lambda: secrets.token_urlsafe(50))
        if len(key) < 40:
            raise ValueError(f"{self.secret_key}: got {len(key)} characters, expected at least 40; delete it to renew")
        return key

    def ensure_instance(self) -> str:
        """Random name of this home, so that two homes at the same path on two machines differ."""
        return self._keep("instance", lambda: secrets.token_hex(4))

    def ensure_signing_key(self, make: Callable[[], str]) -> str:
        """PEM text of the key that signs heads, written by ``make`` at first use."""
        return self._keep(self.signing_key.name, make)

    def _keep(self, name: str, make: Callable[[], str]) -> str:
        """A value made at first use (mode 600); two processes that start together get the same one."""
        path = self.root / name
        if not path.exists():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self.root / f".{name}.{os.getpid()}.{secrets.token_hex(4)}"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "w") as file:
                    file.write(make())
                    file.flush()
                    os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):  # another process was first, and its value holds
                    os.link(draft, path)
            finally:
                draft.unlink()
        return path.read_text().strip()


def private_directory(folder: Path) -> None:
    """Make ``folder`` with mode 700. Raises ``PermissionError`` unless it is ours and no symbolic link."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder}: got owner {found.st_uid}, expected a folder of uid {os.getuid()}")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
