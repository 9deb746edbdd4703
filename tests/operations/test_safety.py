"""What the code never does: unpickle, run text, or fetch an address that somebody gave."""

from __future__ import annotations

import ast
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from django.conf import settings
from django.test import Client

from runs.models import Membership, User
from tests.runs.builders import build_world, plan_document
from workbench.settings import BASE_DIR

PACKAGES = ("workbench", "runs", "evidence", "worker")
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle"}
FETCHING_MODULES = {"requests", "urllib.request", "urllib3", "aiohttp", "http.client", "ftplib", "httpx"}
# The client of our own API, and the supervisor's question to its own web server.
# The benchmark speaks to the two servers that it starts itself.
MAY_FETCH = {
    "workbench/client",
    "workbench/running.py",
    "workbench/benchmarks/servers.py",
    "evidence/outward/timestamps.py",
}
# Those that run text: sources that generator or scripted repairer wrote from templates, never a policy's.
RUNS_OWN_TEXT = {
    "worker/environments/code_repair/generator.py": ["compile", "exec"],
    "worker/environments/code_repair/own_trees.py": ["compile", "exec"],
    # inside the sandbox alone: compiles a line of its own, imports the module that is tried
    "worker/verifiers/driver.py": ["compile", "__import__"],
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def sources() -> Iterator[tuple[str, ast.AST]]:
    """Every module of the product, migrations included."""
    for package in PACKAGES:
        for file in sorted((BASE_DIR / package).rglob("*.py")):
            yield file.relative_to(BASE_DIR).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of imports at any depth of the code."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """(dotted name, call)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def unsafe(tree: ast.AST) -> list[str]:
    """What must not stand in the product's code."""
    found = [name for name in imported(tree) if name.split(".")[0] in FORBIDDEN_MODULES]
    for name, call in called(tree):
        keywords = {item.arg: ast.unparse(item.value) for item in call.keywords}
        if name in FORBIDDEN_CALLS or name.endswith((".unsafe_load", ".full_load", "read_pickle", "to_pickle")):
            found.append(name)
        if name in ("torch.load", "torch.save", "torch.jit.load"):
            found += [] if keywords.get("weights_only") == "True" and name == "torch.load" else [name]
        if name in ("np.load", "numpy.load") and keywords.get("allow_pickle", "False") != "False":
            found.append(name)
        if name in ("yaml.load", "yaml.load_all") and not {"Loader"} <= keywords.keys():
            found.append(name)
        if keywords.get("shell") == "True" or name in ("os.system", "os.popen"):
            found.append(name)
        if keywords.get("trust_remote_code") == "True":
            found.append(name)
    return found


def test_no_module_unpickles_or_runs_text() -> None:
    """Weights come as safetensors, messages and records as JSON, plans as YAML without tags."""
    found = {path: names for path, tree in sources() if (names := unsafe(tree))}
    assert found == RUNS_OWN_TEXT


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from marshal import loads", "import torch\ntorch.load('x')",
        "torch.load('x', weights_only=False)",
        "eval('1')", "import yaml\nyaml.load(x)", "yaml.unsafe_load(x)", "np.load(f, allow_pickle=True)",
        "subprocess.run(x, shell=True)", "AutoModel.from_pretrained(x, trust_remote_code=True)", "os.system('x')",
    ],
)  # fmt: skip
def test_the_check_itself_finds_each_of_them(code: str) -> None:
    assert unsafe(ast.parse(code))
    assert unsafe(ast.parse("torch.load('x', weights_only=True); np.load(f); yaml.load(x, Loader=Strict)")) == []


def test_the_loader_of_plans_makes_no_objects() -> None:
    """A YAML tag that would build a Python object is refused."""
    from runs.actions.plans import parse_plan_text
    from runs.errors import DomainError
    from workbench.contracts.errors import ContractError

    with pytest.raises((DomainError, ContractError)):
        parse_plan_text("!!python/object/apply:os.system ['true']")


def test_messages_and_sessions_are_json() -> None:
    assert settings.CELERY_ACCEPT_CONTENT == ["json"] == [settings.CELERY_TASK_SERIALIZER]
    assert getattr(settings, "SESSION_SERIALIZER", "django.contrib.sessions.serializers.JSONSerializer").endswith(
        "JSONSerializer"
    )


def test_torch_itself_refuses_pickles_by_default(tmp_path: Path) -> None:
    """The default that a library of ours could fall back to."""

    class Evil:
        def __reduce__(self) -> Any:
            return print, ("run",)

    import pickle

    (tmp_path / "x.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        torch.load(tmp_path / "x.pt")


def test_only_named_modules_know_how_to_fetch() -> None:
    found = {
        path
        for path, tree in sources()
        if imported(tree) & FETCHING_MODULES and not any(path.startswith(name) for name in MAY_FETCH)
    }
    assert found == set()


ADDRESS = "http://169.254.169.254/latest/meta-data/"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach or resolve anything but a unix socket is noted and refused."""
    tried: list[Any] = []
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family == socket.AF_UNIX:
            return connect(self, address)
        tried.append(address)
        raise OSError("no network in this test")

    def refuse_name(*args: Any, **more: Any) -> Any:
        tried.append(args)
        raise OSError("no names in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_name)
    return tried


@pytest.mark.django_db
def test_addresses_that_people_give_are_never_fetched(no_network: list[Any], settings: Any, tmp_path: Path) -> None:
    """A plan whose every text is an address, searches, redirects, headers: nobody is called."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    world = build_world()
    ann = User.objects.create_user("ann", password="x" * 12)
    Membership.objects.create(user=ann, study=world.study, role=Membership.RESEARCHER)
    client = Client(headers={"host": "localhost", "referer": ADDRESS, "x-forwarded-host": "169.254.169.254"})
    client.force_login(ann)
    document = plan_document("fetch")
    document["policy"]["model"] = ADDRESS
    document["environment"]["id"] = ADDRESS
    document["question"] = {"en": f"![x]({ADDRESS})"}
    text = json.dumps(document)
    editor = f"/studies/{world.study.slug}/plans/new/"
    answers = [
        client.post(editor, {"text": text, "do": "save", "url": ADDRESS, "mode": "yaml"}),
        client.post(
            f"/api/v1/studies/{world.study.slug}/plans", json.dumps({"document": document}), "application/json",
            headers={"idempotency-key": "k1"},
        ),
        client.get("/search/", {"q": ADDRESS}),
        client.get("/accounts/login/", {"next": ADDRESS}),
        client.get("/api/v1/runs", {"url": ADDRESS, "callback": ADDRESS}),
    ]  # fmt: skip
    assert all(answer.status_code < 500 for answer in answers), [answer.status_code for answer in answers]
    assert not any(str(answer.get("Location", "")).startswith("http://169") for answer in answers)
    assert no_network == []


def test_the_block_itself_holds(no_network: list[Any]) -> None:
    with pytest.raises(OSError, match="no network"), socket.socket() as attempt:
        attempt.connect(("127.0.0.1", 9))
    assert no_network == [("127.0.0.1", 9)]
