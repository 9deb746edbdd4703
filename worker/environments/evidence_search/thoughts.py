"""What a think segment of this environment says: read, checked, paraphrased and corrupted.

Four forms, those of the demonstrations::

    VERB ENTITY ATTRIBUTE in SOURCE                      a search (need, check, retry, switch)
    open ENTITY ATTRIBUTE [ID]                           an open
    found ENTITY ATTRIBUTE VALUE [ID] and ...            a Finish with these values and ids
    found none                                           a Finish without evidence

Anything else is unreadable: a policy may write what it likes. A paraphrase keeps every name and number;
``in SOURCE`` and ``[ID]`` stay too, since an action copies them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from worker.environments.base import FinishAction, Statement, Thought, ToolAction

from .lexicon import ATTRIBUTES, FAMILIES, VALUES
from .session import EvidenceSession
from .world import Document, World

SEARCH_VERBS = ("need", "check", "retry", "switch")
OPEN_VERBS = ("open", "read")
FOUND_VERBS = ("found", "have")
NOTHING = "none"
_WORD = r"([A-Za-z0-9]+)"
_SEARCH = re.compile(rf"({'|'.join(SEARCH_VERBS)}) {_WORD} {_WORD} in {_WORD}")
_OPEN = re.compile(rf"({'|'.join(OPEN_VERBS)}) {_WORD} {_WORD} \[([0-9]{{3}})\]")
_FACT = re.compile(rf"{_WORD} {_WORD} {_WORD} \[([0-9]{{3}})\]")
# The verbs of a search differ in why it is made, not in what; the others have one unseen word each.
_OTHER_VERB = {"need": "check", "check": "need", "retry": "need", "switch": "need", "open": "read", "found": "have"}


def _facts(text: str) -> list[tuple[str, str, str, str]] | None:
    """(entity, attribute, value, id) of each fact behind ``found``; None for another form."""
    verb, _, rest = text.partition(" ")
    parts = [_FACT.fullmatch(part) for part in rest.split(" and ")]
    if verb not in FOUND_VERBS or not all(parts):
        return None
    return [(m[1], m[2], m[3], m[4]) for m in parts if m is not None]


def _is_nothing(text: str) -> bool:
    return text in {f"{verb} {NOTHING}" for verb in FOUND_VERBS}


def read(session: EvidenceSession, text: str) -> Thought | None:
    """Intended action and checkable statements of a think segment; None for another form."""
    world, needed = session.world, session.task.hidden["documents"]
    if match := _SEARCH.fullmatch(text):
        _, entity, attribute, source = match.groups()
        asked = any((item["entity"], item["attribute"]) == (entity, attribute) for item in needed)
        statements = (
            Statement(f"{entity} {attribute} is asked for", asked),
            Statement(f"{attribute} lies in {source}", ATTRIBUTES.get(attribute) == source),
        )
        action = ToolAction("search", {"source": source, "query": f"{entity} {attribute}"})
        return Thought(f"search {source}", action, statements)
    if match := _OPEN.fullmatch(text):
        _, entity, attribute, identifier = match.groups()
        statement = Statement(
            f"[{identifier}] is {entity} {attribute}", _is_document(world, identifier, entity, attribute)
        )
        return Thought("open", ToolAction("open", {"id": identifier}), (statement,))
    if _is_nothing(text):
        read_any = {item["id"] for item in needed} & set(session.read)
        statement = Statement("no needed document was read", not read_any)
        return Thought("finish", FinishAction(NOTHING, ()), (statement,))
    facts = _facts(text)
    if facts is None:
        return None
    answer = FinishAction(" ".join(fact[2] for fact in facts), tuple(fact[3] for fact in facts))
    return Thought("finish", answer, tuple(_found_statements(session, facts)))


def _found_statements(session: EvidenceSession, facts: list[tuple[str, str, str, str]]) -> Iterator[Statement]:
    for entity, attribute, value, identifier in facts:
        document = session.world.by_id.get(identifier)
        holds = document is not None and document.line() == f"{entity} {attribute} {value} [{identifier}]"
        yield Statement(f"[{identifier}] says {entity} {attribute} {value}", holds)
        yield Statement(f"[{identifier}] was read", identifier in session.read)


def _is_document(world: World, identifier: str, entity: str, attribute: str) -> bool:
    document = world.by_id.get(identifier)
    return document is not None and (document.entity, document.attribute) == (entity, attribute)


def action_label(action: ToolAction | FinishAction) -> str:
    """``search SOURCE``, ``open`` or ``finish``: the names that ``read`` gives to intentions."""
    if isinstance(action, FinishAction):
        return "finish"
    return f"search {action.arguments['source']}" if action.tool == "search" else action.tool


def paraphrase(text: str) -> str | None:
    """The segment with another verb of the same meaning; None for another form."""
    verb, _, rest = text.partition(" ")
    known = _SEARCH.fullmatch(text) or _OPEN.fullmatch(text) or _is_nothing(text) or _facts(text)
    return f"{_OTHER_VERB[verb]} {rest}" if known and verb in _OTHER_VERB else None


def corrupt(session: EvidenceSession, text: str, seed: str) -> str | None:
    """The same form about something else: another source and attribute, another document, another fact.

    A document that the episode has shown is preferred: the policy then needs to copy nothing unseen.
    None for another form.
    """
    rng = random.Random(int(seed))
    if match := _SEARCH.fullmatch(text):
        verb, entity, _, source = match.groups()
        other = rng.choice([item for item in FAMILIES if item != source])
        return f"{verb} {entity} {rng.choice(sorted(VALUES[other]))} in {other}"
    if match := _OPEN.fullmatch(text):
        return f"{match[1]} {_other_document(session, {match[4]}, rng).heading()}"
    if _is_nothing(text):
        return f"{text.partition(' ')[0]} {_other_document(session, set(), rng).line()}"
    facts = _facts(text)
    if facts is None:
        return None
    other_line = _other_document(session, {fact[3] for fact in facts}, rng).line()
    lines = [f"{entity} {attribute} {value} [{number}]" for entity, attribute, value, number in facts]
    lines[rng.randrange(len(lines))] = other_line
    return f"{text.partition(' ')[0]} {' and '.join(lines)}"


def _other_document(session: EvidenceSession, excluded: set[str], rng: random.Random) -> Document:
    seen = [item for item in sorted({*session.read, *session.listed}) if item not in excluded]
    if seen:
        return session.world.by_id[rng.choice(seen)]
    return rng.choice([item for item in session.world.documents if item.id not in excluded])
