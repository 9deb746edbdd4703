"""Step 6 of a bundle's check: what evidence says, computed again from the bytes of the bundle."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from evidence.binding.closed import MEANS, cell_counts, endpoint_value
from evidence.binding.expressions import Quantity, evaluate, parse_unit
from evidence.binding.figures import Operand, check_typed, number_in
from evidence.binding.places import Around, around_span, around_transcribed, find
from evidence.binding.selectors import at_cell, at_pointer, decode
from evidence.binding.tokens import check_pieces, figure_keys
from evidence.binding.values import exact, written
from evidence.notes.texts import texts_of
from evidence.outward.findings import Findings
from runs.errors import DomainError
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import ContractError

if TYPE_CHECKING:
    from evidence.outward.check import World

Record = dict[str, Any]
UNREADABLE = (
    ContractError, DomainError, KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, RecursionError,
)  # fmt: skip


class NotHere(Exception):
    """Bytes that the bundle does not hold; the message says which."""


class Evidence:
    """Records of the evidence stream by kind and uid, and the heads beside them."""

    def __init__(self, world: World):
        self.world = world
        self.records: dict[str, dict[str, Record]] = {}
        for told in world.every("evidence."):
            kind = told.value["kind"].removeprefix("evidence.")
            self.records.setdefault(kind, {})[told.value["subject"]] = told.body
        self.sources = self._heads("sources")
        self.figures = self._heads("figures")
        self.claims = self._heads("claims")
        self.by_key = {row["key"]: uid for uid, row in self.figures.items()}
        self.references = {row["reference"] for row in self.sources.values() if row["reference"]}
        self.by_hash = {told.sha256: told for told in world.every()}
        self.values: dict[str, Fraction | str] = {}

    def _heads(self, name: str) -> dict[str, Record]:
        return {row["uid"]: row for row in self.world.json(f"evidence/{name}.json")}

    def of(self, kind: str) -> dict[str, Record]:
        """Records of a kind by uid."""
        return self.records.get(kind, {})

    def bytes_of(self, version: Record) -> bytes:
        """Held bytes of a source version. Raises ``NotHere``."""
        path = f"blobs/{version['sha256']}"
        if path not in self.world.reader.sizes:
            raise NotHere(f"bytes {version['sha256'][:12]}")
        return self.world.reader.read(path)


def check_evidence(found: Findings, world: World) -> None:
    """Heads against records, then sources, excerpts, figures, claims and notes."""
    evidence = Evidence(world)
    for path in world.reader.paths("blobs/"):
        found.same("source", path, path.removeprefix("blobs/"), world.reader.sha256(path))
    for kind, heads, owner in (
        ("source_version", evidence.sources, "source"),
        ("figure_version", evidence.figures, "figure"),
        ("claim_version", evidence.claims, "claim"),
    ):
        _newest(found, kind, heads, evidence.of(kind), owner)
    _references(found, evidence)
    _sources(found, evidence)
    _described(found, evidence)
    _excerpts(found, evidence)
    for uid, head in sorted(evidence.figures.items()):
        if head["current"] is not None:
            _figure(found, evidence, uid, head)
    _claims(found, evidence)
    _notes(found, evidence)


def _newest(found: Findings, kind: str, heads: dict[str, Record], records: dict[str, Record], owner: str) -> None:
    """Each head points at the record of the highest number, and numbers have no hole: none was taken away."""
    numbers: dict[str, list[tuple[int, str]]] = {}
    for uid, body in records.items():
        numbers.setdefault(str(body[owner]), []).append((body["number"], uid))
    for uid, head in heads.items():
        mine = sorted(numbers.pop(uid, []))
        found.same(owner, f"{uid} versions", list(range(1, len(mine) + 1)), [number for number, _ in mine])
        found.same(owner, f"{uid} newest {kind}", mine[-1][1] if mine else None, head["current"])
    for uid in numbers:
        found.fault(owner, uid, got="records without a head", expected="a head")


_POINTS = {
    "source_check": (("version", "source_version"),),
    "excerpt": (("version", "source_version"),),
    "link": (("claim_version", "claim_version"), ("excerpt", "excerpt")),
    "link_withdrawal": (("link", "link"),),
    "review": (("claim_version", "claim_version"), ("link", "link")),
    "answer": (("review", "review"), ("claim_version", "claim_version")),
    "stale_resolution": (("mark", "stale_mark"),),
    "figure_version": (("source_version", "source_version"), ("excerpt", "excerpt")),
}


def _references(found: Findings, evidence: Evidence) -> None:
    """What a record names by uid is a record of the bundle."""
    for kind, columns in _POINTS.items():
        for uid, body in evidence.of(kind).items():
            for column, target in columns:
                named = body.get(column)
                if named is not None:
                    found.same("claim" if kind in ("link", "review", "answer") else "source",
                               f"{kind} {uid} {column}", True, named in evidence.of(target))  # fmt: skip


def _sources(found: Findings, evidence: Evidence) -> None:
    held_back = any("raw bytes" in item["what"] for item in evidence.world.manifest["left_out"])
    for uid, body in sorted(evidence.of("source_version").items()):
        path = f"blobs/{body['sha256']}"
        if not body["held"]:
            continue
        if path in evidence.world.reader.sizes:
            found.checked["source"] += 1
        elif held_back or _is_gone(evidence, body):
            found.unchecked.append(f"source version {uid}: its bytes are not in the bundle")
        else:
            found.fault("source", f"version {uid}", got="no bytes", expected=body["sha256"])


def _described(found: Findings, evidence: Evidence) -> None:
    """What a source is called is what the newest receipt of its description says."""
    newest = {told.value["subject"]: told.body for told in evidence.world.every("source.described")}
    for uid, body in sorted(newest.items()):
        head = evidence.sources.get(uid, {})
        found.same("source", f"{uid} description", body, {name: head.get(name) for name in body})


def _is_gone(evidence: Evidence, body: Record) -> bool:
    return any("store does not hold" in item["what"] for item in evidence.world.manifest["left_out"])


def _excerpts(found: Findings, evidence: Evidence) -> None:
    transcribed = 0
    for _uid, body in sorted(evidence.of("excerpt").items()):
        version = evidence.of("source_version").get(body["version"])
        if version is None:
            continue  # named above
        if body["kind"] == "transcribed":
            transcribed += 1
            continue
        if evidence.sources[version["source"]]["form"] == "pdf":
            found.unchecked.append(f"excerpt {body['key']}: the text layer of a PDF is not read here")
            continue
        try:
            text, _span = find(body["form"], body["selector"], evidence.bytes_of(version))
            found.same("excerpt", body["key"], body["text"], text)
        except NotHere as error:
            found.unchecked.append(f"excerpt {body['key']}: {error} not in the bundle")
        except UNREADABLE as error:
            found.fault("excerpt", body["key"], got=str(error), expected="the quotation exactly once in its source")
    if transcribed:
        found.unchecked.append(f"{transcribed} excerpts are transcriptions from sources whose bytes are not held")


def _figure(found: Findings, evidence: Evidence, uid: str, head: Record) -> None:
    body = evidence.of("figure_version").get(head["current"])
    if body is None:
        return  # named above
    if body["binding"]["type"] in ("pending", "unavailable"):
        found.same("figure", head["key"], None, body["value"])
        return
    _typed(found, evidence, head["key"], body)
    try:
        value = _value(evidence, uid, ())
        if head["state"] == "drifted" and exact(value) != body["value"] and _told(evidence, uid):
            found.unchecked.append(
                f"figure {head['key']}: it says that it has drifted: it computes to {exact(value)}, {body['value']} is "
                "recorded"
            )
            return
        found.same("figure", head["key"], body["value"], exact(value))
        if body["denominator"]:
            rate = written(body["numerator"]) / written(body["denominator"])
            found.same("figure", f"{head['key']} numerator / denominator", exact(value), exact(rate))
    except NotHere as error:
        found.unchecked.append(f"figure {head['key']}: {error} not in the bundle")
    except UNREADABLE as error:
        found.fault("figure", head["key"], got=f"{type(error).__name__}: {error}", expected=body["value"])


def _typed(found: Findings, evidence: Evidence, key: str, body: Record) -> None:
    """No typed number passes as measured: the rule by which figures are bound."""
    operands = {}
    try:
        for name, operand in body["binding"].get("figures", {}).items():
            row = evidence.of("figure_version")[evidence.figures[evidence.by_key[operand]]["current"]]
            operands[name] = Operand(operand, row["value"], row["unit"])
        check_typed(body["kind"], body["binding"], operands)
    except UNREADABLE as error:
        expected = "an effect that is computed from measured figures alone"
        found.fault("figure", f"{key} binding", got=f"{type(error).__name__}: {error}", expected=expected)


def _told(evidence: Evidence, uid: str) -> bool:
    """Whether a record of the study says that what a figure rests on has changed, and none that it is back."""
    healed = {body["mark"] for body in evidence.of("stale_resolution").values() if body["how"] != "confirmed"}
    marks = evidence.of("stale_mark").items()
    return any(body["target_uid"] == uid and mark not in healed for mark, body in marks)


def _value(evidence: Evidence, uid: str, path: tuple[str, ...]) -> Fraction:
    """The value of a figure's newest version from the bundle's bytes."""
    if uid in path or len(path) > 100:
        raise ValueError(f"figure: got a circle through {evidence.figures[uid]['key']}, expected none")
    body = evidence.of("figure_version")[evidence.figures[uid]["current"]]
    binding = body["binding"]
    match binding["type"]:
        case "pointer" | "cell":
            return _place(evidence, body, binding)
        case "excerpt":
            record = evidence.of("excerpt")[body["excerpt"]]
            beside = _beside(evidence, record)
            return number_in(record["text"], binding["number"], binding.get("occurrence", 1), beside)
        case "receipt":
            told = evidence.by_hash.get(binding["sha256"])
            if told is None:
                raise ValueError(f"binding.sha256: got {binding['sha256'][:12]}, expected a receipt of the study")
            return written(str(at_pointer(canonical_bytes(told.value), binding["pointer"])))
        case "derivation":
            given = {}
            for name, key in binding["figures"].items():
                operand = evidence.by_key[key]
                unit = evidence.of("figure_version")[evidence.figures[operand]["current"]]["unit"]
                given[name] = Quantity(_value(evidence, operand, (*path, uid)), parse_unit(unit))
            return evaluate(binding["expression"], given).value
        case "endpoint" | "cell_rate":
            return _closed(evidence, body, binding)
    raise ValueError(f"binding.type: got {binding['type']!r}, expected a known one")


def _place(evidence: Evidence, body: Record, binding: Record) -> Fraction:
    version = evidence.of("source_version")[body["source_version"]]
    if not version["held"]:
        raise NotHere("the source's bytes are only claimed and")
    data = evidence.bytes_of(version)
    if binding["type"] == "pointer":
        return written(str(at_pointer(data, binding["pointer"])))
    return written(at_cell(data, binding["column"], binding["key_column"], binding["key"]))


def _beside(evidence: Evidence, record: Record) -> Around:
    """What stands before and after an excerpt in its source, where the bundle holds it as text."""
    if record["form"] != "quote":
        return "", ""
    if record["kind"] == "transcribed":
        return around_transcribed(record["selector"])
    version = evidence.of("source_version")[record["version"]]
    try:
        data = evidence.bytes_of(version)
    except NotHere:
        return "", ""
    if evidence.sources[version["source"]]["form"] == "pdf":
        return "", ""
    span = find("quote", record["selector"], data)[1]
    return ("", "") if span is None else around_span(decode(data), span)


def _closed(evidence: Evidence, body: Record, binding: Record) -> Fraction:
    """From the aggregate that the closing of the figure's plan stored; it is hashed by the closure."""
    plan = sha256_hex(evidence.world.reader.read(f"plans/{body['plan_version']}.json"))
    for path in evidence.world.reader.paths("documents/closure/"):
        closure = evidence.world.json(path)
        if closure["plan_sha256"] == plan:
            break
    else:
        raise NotHere("a closed execution of its plan")
    aggregate = parse_canonical(evidence.world.reader.read(f"documents/aggregate/{closure['execution_uid']}.json"))
    closed: Any = SimpleNamespace(aggregate=aggregate)
    if binding["type"] == "endpoint":
        return endpoint_value(closed, binding["endpoint"], binding["quantity"], binding.get("arms"))
    if binding["outcome"] not in [f"mean.{name}" for name in MEANS]:
        raise NotHere("the evaluation items of its cell are")
    place = (binding["checkpoint"], binding["condition"], binding["split"], binding["outcome"])
    n, of = cell_counts(closed, *place)
    part = binding.get("part")
    return n / of if part is None else n if part == "n" else of


def _claims(found: Findings, evidence: Evidence) -> None:
    """Each token of a claim's words is a figure of the bundle, and nothing else in them is a number."""
    tokens: dict[tuple[str, str], list[str]] = {}
    for version, language, _ordinal, figure, _version in evidence.world.json("evidence/tokens.json"):
        tokens.setdefault((version, language), []).append(evidence.figures[figure]["key"])
    for uid, body in sorted(evidence.of("claim_version").items()):
        for language in ("en", "zh"):
            text = body[f"text_{language}"]
            _text(found, evidence, f"{uid} {language}", text, language)
            told = list(dict.fromkeys(tokens.get((uid, language), [])))
            found.same("claim", f"{uid} tokens {language}", figure_keys([text]), told)
            for name in ("scope", "denominator", "missing"):
                _text(found, evidence, f"{uid} {name} {language}", body[f"{name}_{language}"], language)


def _text(found: Findings, evidence: Evidence, name: str, text: str, language: str) -> None:
    found.checked["claim"] += 1
    for trouble in check_pieces(text, language, figures=evidence.by_key, references=evidence.references):
        found.fault("claim", name, got=trouble.text or trouble.code, expected=trouble.message)


def _notes(found: Findings, evidence: Evidence) -> None:
    """The notes' document is there, every figure that it names is, and its texts hold no other number."""
    for uid, body in sorted(evidence.of("notes_version").items()):
        try:
            document = parse_canonical(evidence.bytes_of({"sha256": body["document_sha256"]}))
        except NotHere as error:
            found.fault("notes", uid, got=f"no {error}", expected=body["document_sha256"])
            continue
        keys = set(_named(document))
        found.checked["notes"] += 1
        for key in sorted(keys - set(evidence.by_key)):
            found.fault("notes", uid, got=key, expected="the key of a figure of the bundle")
        declared = {item["text"] for item in document["names"]}
        for path, language, text in texts_of(document):
            found.checked["notes"] += 1
            for trouble in check_pieces(
                text, language, figures=evidence.by_key, references=evidence.references, names=declared
            ):
                found.fault("notes", f"{uid} {path}", got=trouble.text or trouble.code, expected=trouble.message)


def _named(value: Any) -> list[str]:
    """Keys of figures that a notes document names, in blocks and in texts."""
    if isinstance(value, dict):
        own = [value["figure"]] if isinstance(value.get("figure"), str) else []
        return own + [key for item in value.values() for key in _named(item)]
    if isinstance(value, list):
        return [key for item in value for key in _named(item)]
    return figure_keys([value]) if isinstance(value, str) else []
