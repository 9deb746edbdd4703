"""Files made to break a reader: refused by name, with the sound rest read, in bounded memory."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.importers import samples
from tests.importers.samples import SOURCES, episode, tinker_row, write_lines
from workbench.importers import Item, Limits, ProblemItem, RolloutItem, detect, open_import
from workbench.importers.tensorboard import masked_crc32c

LINE_FORMATS = ("verl-rollouts", "prime-rl", "prime-rl-tokens", "tinker", "verifiers", "skyrl", "nemo-rl")
GIB, BOMB = 1 << 30, 300 << 20


def problems(items: list[Item]) -> list[ProblemItem]:
    """The problems among items."""
    return [item for item in items if isinstance(item, ProblemItem)]


def read(path: Path, name: str, **limits: int) -> list[Item]:
    """All items."""
    return list(open_import(path, name, limits=Limits(**limits)))


class Bomb:
    """A pickle that leaves a file behind when it is opened."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


MEASURE = """
import resource, sys
from pathlib import Path
import pyarrow.parquet, zstandard, sqlite3
from workbench.importers import ProblemItem, RolloutItem, detect, open_import
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path, name = Path(sys.argv[1]), sys.argv[2]
assert detect(path) == name, detect(path)
counts = {}
for item in open_import(path, name):
    counts[type(item).__name__] = counts.get(type(item).__name__, 0) + 1
    if isinstance(item, ProblemItem):
        print(item)
print(counts.get("RolloutItem", 0), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def measured(path: Path, name: str) -> tuple[list[str], int, int]:
    """In a process of its own: lines of problems, rollouts, growth of the peak memory in MiB."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), name], capture_output=True, text=True, timeout=120, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    *found, last = run.stdout.splitlines()
    rollouts, growth = last.split()
    return found, int(rollouts), int(growth)


@pytest.mark.parametrize(
    "name", ["verl-rollouts", *(pytest.param(name, marks=pytest.mark.slow) for name in LINE_FORMATS[1:])]
)
def test_a_line_of_one_gibibyte(name: str, tmp_path: Path) -> None:
    """The longest file of rollouts gets 1 GiB of NUL bytes (a sparse file) before its last line.

    The line is named with its number, byte and length; every other line is read; memory stays small.
    """
    source = SOURCES[name](tmp_path)
    files = [source] if source.is_file() else sorted(source.rglob("*.jsonl"))
    path = max(files, key=lambda file: file.stat().st_size)
    whole = sum(isinstance(item, RolloutItem) for item in open_import(source, name))
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("wb") as stream:
        stream.writelines(lines[:-1])
        start = stream.tell()
        stream.truncate(start + GIB)
        stream.seek(0, 2)
        stream.write(b"\n" + lines[-1])
    found, rollouts, growth = measured(source, name)
    assert rollouts == whole and len(found) == 1
    assert f"line {len(lines)} (byte {start}): length of a line: got {GIB + 1} bytes, expected at most" in found[0]
    assert growth < 200


def test_an_event_of_one_gibibyte(tmp_path: Path) -> None:
    """A record with a right head and a length of 1 GiB is skipped over; the next is read."""
    run = samples.tensorboard(tmp_path)
    path = next(run.iterdir())
    full, head = path.read_bytes(), struct.pack("<Q", GIB)
    with path.open("wb") as stream:
        stream.write(head + struct.pack("<I", masked_crc32c(head)))
        stream.truncate(12 + GIB + 4)
        stream.seek(0, 2)
        stream.write(full)
    found, _, growth = measured(run, "tensorboard")
    assert "record 1 (byte 0): length of a record: got 1073741824 bytes" in found[0]
    assert len(found) == 2 and growth < 100  # the other one is the histogram


def zip_of(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_bomb_inside_a_column(tmp_path: Path) -> None:
    """A generation whose zstd frame unpacks to 64 MiB: that row is refused, the sample keeps the rest."""
    tables = samples.telescope_tables()
    tables["generations"][0]["content"] = zstandard.compress(bytes(64 << 20))
    path = tmp_path / "steps.zip"
    members = {
        f"{name}.parquet": samples.write_table(tmp_path / "t.parquet", rows).read_bytes()
        for name, rows in tables.items()
    }
    items = read(zip_of(path, members), "telescope")
    lost = [item for item in problems(items) if item.kind != "not_imported"]
    assert [(item.what, item.cursor.number) for item in lost] == [("content", 1)]
    first = next(item for item in items if isinstance(item, RolloutItem) and item.sample_key == "10")
    assert [message["content"] for message in first.messages or ()][2:] == ["result", "2"]


def test_a_parquet_bomb(tmp_path: Path) -> None:
    """Texts of 280 MiB of one letter in a file of some kilobytes: refused by its footer, before any page."""
    path = tmp_path / "completions_00001.parquet"
    text = "x" * (70 << 20)
    table = pa.table({"step": [1] * 4, "prompt": [text] * 4, "completion": ["a"] * 4, "advantage": [0.0] * 4})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    del table, text
    assert path.stat().st_size < 1 << 20
    found, rollouts, growth = measured(path, "trl-completions")
    assert rollouts == 0 and len(found) == 1 and growth < 100
    assert "size of a column chunk" in found[0] or "decompressed over stored size" in found[0]


def test_a_footer_of_one_gibibyte(tmp_path: Path) -> None:
    path = tmp_path / "completions_00001.parquet"
    with path.open("wb") as stream:
        stream.write(b"PAR1")
        stream.truncate(GIB)
        stream.seek(0, 2)
        stream.write(struct.pack("<I", GIB - 4) + b"PAR1")
    found, _, growth = measured(path, "trl-completions")
    assert "footer: got 1073741820 bytes" in found[0] and growth < 100


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    """As a dump, as a line of a dump, as an extension type of Parquet: the folder is not made."""
    made, dump = tmp_path / "made", tmp_path / "dumps"
    payload = pickle.dumps(Bomb(made))
    write_lines(dump / "gsm8k.jsonl", [{"input_prompt": "a", "output_response": "b", "score": 1.0}])
    (dump / "results.pkl").write_bytes(payload)
    (dump / "other.jsonl").write_bytes(payload)
    items = read(dump, "skyrl")
    assert [(item.kind, item.cursor.file) for item in problems(items)] == [
        ("truncated", "other.jsonl"), ("refused", "results.pkl"),
    ]  # fmt: skip
    assert sum(isinstance(item, RolloutItem) for item in items) == 1
    field = pa.field(
        "prompt", pa.binary(),
        metadata={"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": payload},
    )  # fmt: skip
    fields = [
        pa.field("step", pa.int64()),
        field,
        pa.field("completion", pa.string()),
        pa.field("advantage", pa.float64()),
    ]
    table = pa.table([[1], [payload], ["a"], [0.0]], schema=pa.schema(fields))
    pq.write_table(table, tmp_path / "completions_00001.parquet")
    read(tmp_path / "completions_00001.parquet", "trl-completions")
    assert detect(dump / "results.pkl") == "skyrl" and not made.exists()
    pickle.loads(payload)  # it would have worked
    assert made.exists()


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "NUL bytes": (b"\x00" * 50, "JSON"),
    "a NUL in the middle": (b'{"a": "\x00"}', "JSON"),
    "no UTF-8": (b'{"a": "\xff\xfe"}', "bytes"),
    "a lone surrogate": (b'{"a": "\\ud800"}', "text"),
    "no object": (b"[1, 2]", "JSON"),
    "deep nesting": (b'{"a":' * 100_000, "nesting"),
    "nesting that parses": (b'{"a":' * 80 + b"1" + b"}" * 80, "nesting"),
    "an integer of 10,000 digits": (b'{"a": ' + b"9" * 10_000 + b"}", "JSON"),
    "two documents": (b'{"a": 1} {"a": 2}', "JSON"),
}


@pytest.mark.parametrize("name", LINE_FORMATS)
@pytest.mark.parametrize("kind", sorted(BAD_LINES))
def test_bad_lines_between_good_ones(kind: str, name: str, tmp_path: Path) -> None:
    line, what = BAD_LINES[kind]
    source = SOURCES[name](tmp_path)
    files = [source] if source.is_file() else sorted(source.rglob("*.jsonl"))
    path = max(files, key=lambda file: file.stat().st_size)
    whole = [
        repr(item) for item in open_import(source, name) if isinstance(item, RolloutItem) and item.cursor.number == 1
    ]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line, b"\n", *lines[1:]]))
    items = read(source, name)
    found = [item for item in problems(items)]
    assert [(item.cursor.number, item.cursor.offset, item.what) for item in found] == [(2, len(lines[0]), what)]
    assert set(whole) <= {repr(item) for item in items}


def test_too_many_values_in_one_line(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "wire.jsonl", [tinker_row(0), tinker_row(1, extra=[[]] * 2000), tinker_row(2)])
    found = problems(read(path, "tinker", values=1000))
    assert [(item.kind, item.what, item.cursor.number) for item in found] == [("refused", "values of one document", 2)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("iteration", -1), ("iteration", True), ("iteration", 1.5), ("iteration", 1 << 64), ("group_idx", "x" * 301),
        ("traj_idx", "a\x00b"), ("reward", "high"), ("reward", 10**400), ("policy_version", "three"),
        ("logprobs", None),
        ("prompt_tokens", [True]), ("sampled_tokens", [1 << 40]), ("stop_reason", "x" * 200),
    ],
)  # fmt: skip
def test_values_that_are_none_of_the_format(key: str, value: Any, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "wire.jsonl", [tinker_row(0), tinker_row(1, **{key: value}), tinker_row(2)])
    items = read(path, "tinker")
    assert sum(isinstance(item, RolloutItem) for item in items) == 2
    (problem,) = problems(items)
    assert (problem.kind, problem.cursor.number) == ("malformed", 2) and key in problem.what


def _trace(change: Callable[[list[dict[str, Any]]], None]) -> dict[str, Any]:
    row = episode("x")
    change(row["traces"][0]["nodes"])
    return row


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda nodes: nodes[0].update(parent=3), "nodes[2].parent"),  # 0 -> 3 -> 1 -> 0
        (lambda nodes: nodes[1].update(parent=9), "nodes[1].parent"),
        (lambda nodes: nodes[2].update(parent="1"), "nodes[2].parent"),
    ],
)
def test_graphs_that_are_none(change: Callable[[list[dict[str, Any]]], None], what: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "traces.jsonl", [_trace(change), episode("good")])
    items = read(path, "prime-rl")
    assert [item.what for item in problems(items)] == [what]
    assert sum(isinstance(item, RolloutItem) for item in items) == 2


def test_misaligned_nodes_keep_their_messages(tmp_path: Path) -> None:
    """Three log-probabilities for two sampled tokens: the branch is text (C), the other branch stays A."""
    path = write_lines(tmp_path / "traces.jsonl", [_trace(lambda nodes: nodes[2].update(logprobs=[0.0] * 4))])
    items = read(path, "prime-rl")
    assert [item.grade for item in items if isinstance(item, RolloutItem)] == ["C", "A"]
    assert problems(items)[0].what == "traces.length of nodes[2].logprobs"


def test_a_graph_that_multiplies(tmp_path: Path) -> None:
    """One long trunk with many leaves would be copied once for each leaf: refused by its size."""
    nodes: list[dict[str, Any]] = [{"parent": place - 1 if place else None, "message": {}} for place in range(200)]
    nodes += [{"parent": 199, "message": {}} for _ in range(200)]
    row = episode("x")
    row["traces"][0]["nodes"] = nodes
    items = read(write_lines(tmp_path / "traces.jsonl", [row]), "prime-rl", values=5000)
    assert [(item.kind, item.got) for item in problems(items)] == [("refused", str(200 * 201))]


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    source = samples.verl(tmp_path)
    (tmp_path / "secret.jsonl").write_bytes((source / "2.jsonl").read_bytes())
    (source / "3.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (source / "folder").symlink_to(tmp_path)
    os.mkfifo(source / "4.jsonl")
    items = read(source, "verl-rollouts")
    assert sorted((item.cursor.file, item.got) for item in problems(items)) == [
        ("3.jsonl", "a symbolic link"), ("4.jsonl", "a pipe, socket or device"), ("folder", "a symbolic link"),
    ]  # fmt: skip
    assert sum(isinstance(item, RolloutItem) for item in items) == 8


def _record(data: bytes, check: int | None = None) -> bytes:
    head = struct.pack("<Q", len(data))
    check = masked_crc32c(data) if check is None else check
    return head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", check)


def test_crc32c_of_the_standard() -> None:
    """CRC-32C of "123456789" is e3069283; masked: rotated right by 15, plus a282ead8."""
    crc = 0xE3069283
    assert masked_crc32c(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_damaged_events(tmp_path: Path) -> None:
    """One record with a wrong checksum, one that is no message: both named, the rest read. Then a lost length."""
    run = samples.tensorboard(tmp_path)
    path = next(run.iterdir())
    full = path.read_bytes()
    whole = len(read(run, "tensorboard"))
    path.write_bytes(_record(b"abc", check=1) + _record(b"\xff" * 30) + full)
    items = read(run, "tensorboard")
    assert [(item.cursor.number, item.what) for item in problems(items)[:2]] == [(1, "record"), (2, "event")]
    assert len(items) == whole + 2
    path.write_bytes(full + b"\x00" * 40 + full)
    (lost,) = [item for item in problems(read(run, "tensorboard")) if item.kind == "malformed"]
    assert lost.cursor.offset == len(full) and "cannot be found" in lost.expected
    path.write_bytes(b"")
    assert [item.kind for item in problems(read(run, "tensorboard"))] == ["truncated"]


def test_metric_names_and_values_that_are_none(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "time": 1.0, "good": 1.0, "": 2.0, "x" * 501: 3.0, "nul\x00": 4.0, "text": "5", "huge": 10**400},
        {"step": -1, "time": 1.0, "bad": 1.0},
        {"step": 1, "time": float("nan"), "bad": 1.0},
    ]
    path = write_lines(tmp_path / "metrics.jsonl", rows)
    items = read(path, "prime-rl")
    assert [item.name for item in items if not isinstance(item, ProblemItem)] == ["good"]  # type: ignore[union-attr]
    assert [item.what for item in problems(items)] == ["name", "name", "name", "text", "huge", "step", "time"]
