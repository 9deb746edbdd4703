"""Lines of a day, from receipts alone; and the value of every place that a line names."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evidence.journal.phrases import GROUPS, PENDING, Phrase, phrase_of
from runs.models import Receipt, StreamHead, Study
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.errors import ContractError

ENDS = {"first": 0, "last": -1}  # of a list; the texts of lines hold no digit
PLACE = re.compile(r"\[\[(#|/[A-Za-z0-9_/]{1,100})\]\]")
LONGEST = 300  # characters of a value that is words
MOST_LINES = 500
ABOUT = ("claim", "figure", "source")  # members of a body that say what a line is about, by uid
Line = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """A receipt as a day reads it."""

    stream: str
    seq: int
    sha256: str
    kind: str
    body: dict[str, Any]
    subject: str | None


def day_bounds(day: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
    """First instant of a day and of the next one, in UTC."""
    first = datetime.datetime.combine(day, datetime.time.min, datetime.UTC)
    return first, first + datetime.timedelta(days=1)


def streams_of(study: Study) -> list[str]:
    """Streams that tell of a study."""
    return list(StreamHead.objects.filter(study=study, seq__gt=0).order_by("stream").values_list("stream", flat=True))


def receipts_of(study: Study, day: datetime.date) -> Iterator[Told]:
    """Receipts of a study written on a day, stream by stream in order."""
    first, after = day_bounds(day)
    rows = Receipt.objects.filter(stream__in=streams_of(study), at__gte=first, at__lt=after)
    for row in rows.order_by("stream", "seq").iterator(chunk_size=500):
        yield told(row)


def told(row: Receipt) -> Told:
    """A receipt's row as read."""
    value = parse_canonical(bytes(row.bytes))
    return Told(row.stream, row.seq, row.sha256, row.kind, value["body"], value["subject"])


def value_at(body: Any, place: str) -> str | None:
    """The value at ``/a/b`` (``/a/first``, ``/a/last`` of a list) of a receipt's body, as text; None where none is."""
    found: Any = body
    for name in place.split("/")[1:]:
        if isinstance(found, list):
            found = found[ENDS[name]] if found and name in ENDS else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    if found is None or isinstance(found, list):
        return None
    if isinstance(found, dict):
        return found.get("nonfinite") if set(found) == {"nonfinite"} else None
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return repr(found)
    text = str(found)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def line_of(phrase: Phrase, last: Told, count: int, first_seq: int) -> Line:
    """One line. ``values``: what each place of its texts says, by the place; ``count`` is of ``[[#]]``."""
    places = dict.fromkeys(PLACE.findall(phrase.en) + PLACE.findall(phrase.zh))
    values = {place: str(count) if place == "#" else value_at(last.body, place) for place in places}
    line: Line = {
        "kind": phrase.group, "told": last.kind, "text_en": phrase.en, "text_zh": phrase.zh, "receipt": last.sha256,
        "stream": last.stream, "seq": last.seq, "values": values,
    }  # fmt: skip
    if "#" in values:
        line["from"] = first_seq
    about = next(([name, last.body[name]] for name in ABOUT if last.body.get(name)), None)
    line["about"] = about if phrase.each else None  # a count is about many
    return line


def lines_of(receipts: Iterable[Told]) -> list[Line]:
    """Lines in the order of their groups, then of their streams."""
    found: list[Line] = []
    many: dict[tuple[str, str, str], tuple[Phrase, Told, int, int]] = {}
    for item in receipts:
        phrase = phrase_of(item.kind, item.body)
        if phrase is None:
            continue
        if phrase.each:
            found.append(line_of(phrase, item, 1, item.seq))
        else:
            key = (item.stream, item.kind, phrase.group)
            _phrase, _last, count, first = many.get(key, (phrase, item, 0, item.seq))
            many[key] = (phrase, item, count + 1, first)
    found += [line_of(*entry) for entry in many.values()]
    return sorted(found, key=lambda line: (GROUPS.index(line["kind"]), line["stream"], line["seq"]))


def pending_of(study: Study, day: datetime.date) -> list[Line]:
    """What stands open at the end of a day, each by the receipt that opened it.

    Executions that began and have not ended, disputes and requests without an answer, figures that wait for an
    endpoint, and marks that nobody has settled.
    """
    _first, after = day_bounds(day)
    rows = Receipt.objects.filter(stream__in=streams_of(study), at__lt=after)
    return [*_open_executions(rows), *_open_reviews(rows), *_pending_figures(rows), *_open_marks(rows)]


def _of(rows: Any, *kinds: str) -> list[Told]:
    return [told(row) for row in rows.filter(kind__in=kinds).order_by("stream", "seq")]


def _open_executions(rows: Any) -> list[Line]:
    ended = {item.stream for item in _of(rows, "execution.closed", "execution.cancelled", "preflight.stopped")}
    phrase = Phrase(PENDING, "An execution has begun and has no closing receipt yet.", "执行已开始，尚无完结记录。")
    started = _of(rows, "execution.started")
    return [line_of(phrase, item, 1, item.seq) for item in started if item.stream not in ended]


def _open_reviews(rows: Any) -> list[Line]:
    answered = {item.body["review"] for item in _of(rows, "evidence.answer")}
    reviews = _of(rows, "evidence.review")
    accepted: dict[str, int] = {}
    for item in reviews:
        if item.body["verdict"] == "accept":
            accepted[item.body["claim"]] = item.seq
    phrase = Phrase(PENDING, "A review ([[/verdict]]) waits for an answer.", "一条评审（[[/verdict]]）等待回复。")
    return [
        line_of(phrase, item, 1, item.seq)
        for item in reviews
        if item.body["verdict"] != "accept"
        and item.subject not in answered
        and accepted.get(item.body["claim"], 0) < item.seq
    ]


def _pending_figures(rows: Any) -> list[Line]:
    newest: dict[str, Told] = {}
    for item in _of(rows, "evidence.figure_version"):
        newest[item.body["figure"]] = item
    waiting = [item for item in newest.values() if item.body["binding"].get("type") == "pending"]
    phrase = Phrase(PENDING, "A figure waits for what fills it: [[/title_en]].", "一个数值等待填入：[[/title_en]]。")
    return [line_of(phrase, item, 1, item.seq) for item in waiting]


def _open_marks(rows: Any) -> list[Line]:
    settled = {item.body["mark"] for item in _of(rows, "evidence.stale_resolution")}
    waiting = [item for item in _of(rows, "evidence.stale_mark") if item.subject not in settled]
    phrase = Phrase(
        PENDING,
        "A mark is open: [[/target_kind]], because [[/reason]]",
        "标记未处理：[[/target_kind]]，原因：[[/reason]]",
    )
    return [line_of(phrase, item, 1, item.seq) for item in waiting]


def check_line(line: Line) -> str:
    """What differs between a line and its receipt; empty where every value is what the receipt says."""
    row = Receipt.objects.filter(sha256=line["receipt"]).first()
    if row is None:
        return f"receipt: got none of {line['receipt'][:12]}, expected it"
    try:
        item = told(row)
    except (ContractError, KeyError) as error:
        return f"receipt: {error}"
    for place, value in line["values"].items():
        if place == "#":
            span = Receipt.objects.filter(stream=item.stream, kind=item.kind, seq__gte=line["from"], seq__lte=item.seq)
            now: str | None = str(_same_group(span, line) if item.kind.startswith("evidence.") else span.count())
        else:
            now = value_at(item.body, place)
        if now != value:
            return f"{place}: got {value}, expected {now}, as receipt {line['receipt'][:12]} says"
    return ""


def _same_group(span: Any, line: Line) -> int:
    phrases = (phrase_of(row.kind, told(row).body) for row in span.iterator(chunk_size=500))
    return sum(1 for phrase in phrases if phrase is not None and not phrase.each and phrase.group == line["kind"])
