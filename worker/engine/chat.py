"""The ``chat`` formatter: the tokenizer's own chat template, with tokens carried verbatim.

The template is applied once to the first prompt (tool schemas included). Afterwards the prompt of
turn k+1 is the prompt of turn k, the generated ids as sampled, and the ids of one tool message with
the next assistant header, cut out of the template's own text. Generated ids are never decoded and
tokenised again, and an Observation that spells a special token never becomes one.

A template may write an earlier turn differently from how the policy wrote it (drop or insert think
segments, trim, wrap). Carried tokens then differ from what the template would show the model.
Probe conversations at construction find that: ``history="refuse"`` raises ``TemplateRefused``;
``history="branch"`` carries verbatim anyway and says so in the formatter's identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2.exceptions import TemplateError

from workbench.contracts.canonical import canonical_bytes, digest, parse_json, sha256_hex
from workbench.contracts.errors import EngineFault
from worker.engine.chat_reading import (
    CALL_CLOSE,
    CALL_OPEN,
    FINISH_TOOL,
    GRAMMAR_TAGS,
    THINK_CLOSE,
    THINK_OPEN,
    TurnMarks,
    decode,
    read_turn,
)
from worker.engine.render import ParsedTurn
from worker.engine.toolschema import check_schema
from worker.environments.base import ToolAction, ToolSpec

VERSION = "1"
REFUSE, BRANCH = "refuse", "branch"
_CALL_ID = "call00000"  # nine letters and digits: the one form that every known template accepts
_PROBE_TOOL = ToolSpec(
    name="probe_lookup",
    description="Probe description 7f3a.",
    parameters={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
)
_SYSTEM, _USER, _KEY, _RESULT = "Probe system 51c9.", "Probe user 8d20.", "probe-key-2b6e", "Probe result e47a."
_CALL = f'{CALL_OPEN}\n{{"name": "{_PROBE_TOOL.name}", "arguments": {{"key": "{_KEY}"}}}}\n{CALL_CLOSE}'
_THOUGHT = "Probe thought c0d3."


class TemplateRefused(EngineFault):
    """A chat template that this formatter can't carry verbatim, or can't read, or that has no tools."""


@dataclass(frozen=True)
class HistoryDifference:
    """First token at which the template's own text of a probe differs from the carried tokens."""

    probe: str
    token: int  # index in the carried sequence
    carried: str
    rendered: str


# Probe conversations: name, what the policy writes before its call turn by turn, and what follows the last one.
_LINES, _TIGHT, _SPACED = (f"\n{_THOUGHT}\n", "\n\n"), (_THOUGHT, ""), (None, "\n")
_PROBES: tuple[tuple[str, tuple[tuple[str | None, str], ...], str], ...] = (
    ("call, tool", ((None, ""),), "tool"),
    ("call between line breaks, tool", (_SPACED,), "tool"),
    ("think, call, tool", (_LINES,), "tool"),
    ("think without line breaks, call, tool", (_TIGHT,), "tool"),
    ("call, tool, think, call, tool", ((None, ""), _LINES), "tool"),
    ("think, call, tool, call, tool", (_LINES, (None, "")), "tool"),
    ("think, call, user", (_LINES,), "user"),
)


class ChatFormatter:
    """Formatter over a tokenizer with a chat template; see ``worker.engine.render.Formatter``.

    ``history``: ``refuse`` or ``branch``. ``template_options``: extra template variables
    (``enable_thinking``, say), part of the identity. Reading is the Qwen-style grammar of
    ``chat_reading``; a template that writes tool calls in another form is refused.
    ``differences`` lists what the probes found (empty for a template that keeps history).
    """

    name = "chat"

    def __init__(
        self, tokenizer: Any, *, history: str = REFUSE, template_options: Mapping[str, Any] | None = None
    ) -> None:
        if history not in (REFUSE, BRANCH):
            raise EngineFault(f"history: got {history!r}, expected {REFUSE!r} or {BRANCH!r}")
        self._tokenizer = tokenizer
        self._history = history
        self._options = dict(template_options or {})
        if not getattr(tokenizer, "chat_template", None):
            raise TemplateRefused("chat_template: got none, expected a tokenizer with a chat template")
        self._template: str = tokenizer.get_chat_template(None, tools=[_tool_schema(_PROBE_TOOL)])
        self.template_sha256 = sha256_hex(self._template.encode("utf-8"))
        if "strftime_now" in self._template and "date_string" not in self._options:
            self._refuse("reads the clock (strftime_now)", "a fixed template_options['date_string']")
        self._specials = tuple(sorted({*map(str, tokenizer.all_special_tokens)}))
        self._header = self._probe_header()
        self._end_text, turn_end_id = self._probe_turn_end()
        self._marks = self._probe_marks(turn_end_id)
        self._probe_calls()
        self.differences = self._probe_history()
        if self.differences and history == REFUSE:
            first = self.differences[0]
            self._refuse(
                f"rewrites history (probe {first.probe!r}: token {first.token} is {first.rendered!r} when rendered "
                f"again, {first.carried!r} when carried)",
                f"a template that repeats earlier turns verbatim, or history={BRANCH!r}",
            )

    # -- Formatter ---------------------------------------------------------------------------------

    def identity(self) -> str:
        """Sha256 over version, template, its options, special ids, tool grammar and history mode."""
        return digest(
            {
                "name": self.name,
                "version": VERSION,
                "template": self._template,
                "template_options": self._options,
                "special_ids": {text: int(self._tokenizer.convert_tokens_to_ids(text)) for text in self._specials},
                "turn_end_id": self._marks.turn_end_id,
                "stop_ids": list(self.stop_ids()),
                "finish": _tool_schema(FINISH_TOOL),
                "history": self._history,
                "rewrites_history": bool(self.differences),
            }
        )

    def stop_ids(self) -> tuple[int, ...]:
        """The template's end of turn, and the tokenizer's end of text where that is another id.

        Only a turn that ends with the first can be read; the second stops generation all the same.
        """
        end, other = self._marks.turn_end_id, self._tokenizer.eos_token_id
        return (end,) if other is None or other == end else (end, int(other))

    def start(self, instructions: str, tools: Sequence[ToolSpec], prompt: str) -> list[int]:
        """Ids of system text, tool schemas (with ``finish``), task prompt and assistant header."""
        names = [tool.name for tool in tools]
        if len(set(names)) != len(names) or FINISH_TOOL.name in names:
            raise EngineFault(f"tools: got {names}, expected distinct names other than {FINISH_TOOL.name!r}")
        for tool in tools:
            check_schema(tool.parameters, f"tools.{tool.name}.parameters")
        for field, text in (("instructions", instructions), ("prompt", prompt)):
            if found := self._special_in(text):
                raise EngineFault(f"{field}: got text with the special token {found!r}, expected plain text")
        return self._encode(self._render([_system(instructions), _user(prompt)], tools=tools, generate=True))

    def observe(self, text: str) -> list[int]:
        """Ids from the end of turn (exclusive) to the next assistant header (inclusive).

        Text that spells a special token is put between the template's own parts as it stands,
        tokenised as ordinary text. Never raises: an Observation may repeat what the policy wrote.
        """
        if not self._special_in(text):
            return self._encode(self._tool_suffix(text))
        before, _, after = self._tool_suffix(_RESULT).partition(_RESULT)
        return self._encode(before) + self._encode(text, literal=True) + self._encode(after)

    def read(self, generated_ids: Sequence[int], tools: Sequence[ToolSpec]) -> ParsedTurn:
        """See ``chat_reading.read_turn``."""
        return read_turn(self._tokenizer, generated_ids, tools, self._marks)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; special tokens spelled in it stay ordinary text."""
        return self._encode(text, literal=True)

    def force_think(self, think_ids: Sequence[int]) -> list[int]:
        """Leading ids of a turn with this think segment, closed: only a call may follow."""
        opening = [] if self._marks.opens_in_think else self._encode(THINK_OPEN)
        return [*opening, *think_ids, *self._encode(THINK_CLOSE)]

    # -- Template ----------------------------------------------------------------------------------

    def _refuse(self, got: str, expected: str) -> None:
        raise TemplateRefused(f"chat template {self.template_sha256}: got one that {got}, expected {expected}")

    def _render(self, messages: list[dict[str, Any]], *, tools: Sequence[ToolSpec], generate: bool) -> str:
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages,
                    tools=[_tool_schema(tool) for tool in (*tools, FINISH_TOOL)],
                    tokenize=False,
                    add_generation_prompt=generate,
                    **self._options,
                )
            )
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise TemplateRefused(
                f"chat template {self.template_sha256}: {type(error).__name__}: {error}, expected it to render roles "
                "system, user, assistant (with a tool call) and tool"
            ) from error

    def _encode(self, text: str, *, literal: bool = False) -> list[int]:
        """Ids of text; ``literal``: special tokens spelled in it stay ordinary text."""
        if not text:
            return []
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=literal)
        return [int(token) for token in encoded["input_ids"]]

    def _special_in(self, text: str) -> str | None:
        return next((special for special in self._specials if special in text), None)

    def _tool_suffix(self, text: str) -> str:
        """What the template writes between a turn's end and the next turn's first token, for one tool message."""
        messages = [_system(_SYSTEM), _user(_USER), _structured_call(), _tool(text)]
        full = self._render(messages, tools=[_PROBE_TOOL], generate=True)
        return self._after_turn(full, 1)

    def _after_turn(self, full: str, turns: int) -> str:
        """Text behind the end of the last of ``turns`` assistant turns, each found by its probe key."""
        position = 0
        for _ in range(turns):
            position = full.index(_KEY, position) + len(_KEY)
        return full[full.index(self._end_text, position) + len(self._end_text) :]

    # -- Probes, in the order of construction ------------------------------------------------------

    def _probe_header(self) -> str:
        text = self._render([_system(_SYSTEM), _user(_USER)], tools=[_PROBE_TOOL], generate=True)
        for expected in (_SYSTEM, _USER, _PROBE_TOOL.name, _PROBE_TOOL.description, FINISH_TOOL.name):
            if expected not in text:
                self._refuse(f"leaves out {expected!r}", "system text, user text and every tool schema in the prompt")
        return text

    def _probe_turn_end(self) -> tuple[str, int]:
        """The first special token behind an assistant turn, as (text, id)."""
        messages = [_system(_SYSTEM), _user(_USER), _raw(_CALL), _tool(_RESULT)]
        full = self._render(messages, tools=[_PROBE_TOOL], generate=True)
        position = full.find(_CALL, full.find(_USER))
        if position < 0:
            self._refuse("changes the text of an assistant turn", "that text unchanged")
        special_ids = set(self._tokenizer.all_special_ids)
        for token in self._encode(full[position + len(_CALL) :]):
            if token in special_ids:
                return decode(self._tokenizer, [token]), token
        self._refuse("ends a turn without a special token", "an end-of-turn token")
        raise AssertionError  # not reached: _refuse raises

    def _probe_marks(self, turn_end_id: int) -> TurnMarks:
        exempt = {self._tokenizer.convert_tokens_to_ids(tag) for tag in GRAMMAR_TAGS}
        tail = self._header[self._header.index(_USER) :]
        return TurnMarks(
            turn_end_id=turn_end_id,
            refused_ids=frozenset(int(token) for token in self._tokenizer.all_special_ids) - exempt,
            opens_in_think=tail.rfind(THINK_OPEN) > tail.rfind(THINK_CLOSE),
        )

    def _probe_calls(self) -> None:
        """The template's own tool call must be readable here, and cutting at the turn's end must be exact."""
        messages = [_system(_SYSTEM), _user(_USER), _structured_call(), _tool(_RESULT)]
        full = self._render(messages, tools=[_PROBE_TOOL], generate=True)
        user_at = full.index(_USER)
        start = full.find(CALL_OPEN, user_at)
        call = full[start : full.find(self._end_text, start)] if start >= 0 else ""
        opening = THINK_CLOSE if self._marks.opens_in_think else ""
        parsed = self.read([*self._encode(opening + call), self._marks.turn_end_id], [_PROBE_TOOL])
        if parsed.action != ToolAction(_PROBE_TOOL.name, {"key": _KEY}):
            shown = full[user_at + len(_USER) :][:120]
            expected = f'{CALL_OPEN}{{"name", "arguments"}}{CALL_CLOSE}'
            self._refuse(f"writes tool calls in another form ({shown!r})", expected)
        suffix = self._after_turn(full, 1)
        if suffix.count(_RESULT) != 1:
            self._refuse("changes the text of a tool message", "that text unchanged")
        prefix = full[: len(full) - len(suffix)]
        if self._encode(prefix) + self._encode(suffix) != self._encode(full):
            self._refuse("can't be cut at the end of a turn without changing tokens", "an end of turn that splits text")

    def _probe_history(self) -> tuple[HistoryDifference, ...]:
        return tuple(filter(None, (self._probe_one(*probe) for probe in _PROBES)))

    def _probe_one(self, name: str, turns: tuple[tuple[str | None, str], ...], then: str) -> HistoryDifference | None:
        """Compare the carried text with the template's own text after every turn of one conversation."""
        messages = [_system(_SYSTEM), _user(_USER)]
        carried = self._header
        for position, (thought, gap) in enumerate(turns):
            generated, text = self._probe_turn(thought, gap)
            is_last = position == len(turns) - 1
            messages = [*messages, _raw(text), _user(_RESULT) if is_last and then == "user" else _tool(_RESULT)]
            carried += generated + self._end_text
            rendered = self._render(messages, tools=[_PROBE_TOOL], generate=True)
            if is_last and then == "user":
                rendered = rendered[: len(carried)]
            else:
                carried += self._tool_suffix(_RESULT)
            if carried != rendered:
                return self._difference(name, carried, rendered)
        return None

    def _probe_turn(self, thought: str | None, gap: str) -> tuple[str, str]:
        """(text as generated behind the header, text as message content) of one probe turn."""
        if not self._marks.opens_in_think:
            text = gap + _CALL + gap if thought is None else f"{THINK_OPEN}{thought}{THINK_CLOSE}{gap}{_CALL}"
            return text, text
        opened = self._header[self._header.rindex(THINK_OPEN) :]  # think is never left out behind such a header
        generated = f"{(thought or _THOUGHT).lstrip()}{THINK_CLOSE}{gap}{_CALL}"
        return generated, opened + generated

    def _difference(self, probe: str, carried: str, rendered: str) -> HistoryDifference:
        ours, theirs = self._encode(carried), self._encode(rendered)
        same = 0
        while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
            same += 1
        return HistoryDifference(
            probe=probe,
            token=same,
            carried=decode(self._tokenizer, ours[same : same + 1]),
            rendered=decode(self._tokenizer, theirs[same : same + 1]),
        )


def carry_rewritten(tokenizer: Any) -> ChatFormatter:
    """``ChatFormatter`` in branch mode, for ``PolicyRef.formatter`` = ``worker.engine.chat:carry_rewritten``."""
    return ChatFormatter(tokenizer, history=BRANCH)


def _tool_schema(tool: ToolSpec) -> dict[str, Any]:
    """A tool as templates take it; parameters in canonical key order, so that equal schemas give equal ids."""
    parameters = parse_json(canonical_bytes(tool.parameters))
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _raw(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _structured_call() -> dict[str, Any]:
    function = {"name": _PROBE_TOOL.name, "arguments": {"key": _KEY}}
    call = {"type": "function", "id": _CALL_ID, "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "name": _PROBE_TOOL.name, "tool_call_id": _CALL_ID, "content": text}
