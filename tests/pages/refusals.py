"""What a reader of Chinese sees of a refusal: a translation that keeps the values alone, and a look for English."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runs.presenters import patterns, told

CHINESE = {"accept-language": "zh-hans"}
_SAID = re.compile(
    r'<ul class="messages">.*?</ul>|<(\w+)[^>]* role="alert".*?</\1>|<p class="field-problem.*?</p>'
    r'|<ul class="lines">.*?</ul>|<div class="problem-list".*?</div>|<p class="failed">.*?</p>',
    re.DOTALL,
)
_SENTENCE = re.compile(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}")


def mute(message: str) -> str:
    """The holes of a message alone, as a translation that has no English word left."""
    return "译" + "".join(f" {hole.group()} 译" for hole in patterns.HOLE.finditer(message))


@contextmanager
def muted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the patterns read is translated by ``mute``, whether the catalogue has it yet or not."""
    for module in (patterns, told):
        monkeypatch.setattr(module, "gettext", mute)
    yield


def refusals_in(page: str) -> list[str]:
    """Texts of a page's messages and problems, without what stands as code."""
    found = [match.group() for match in _SAID.finditer(page)]
    plain = [re.sub(r"<(code).*?</\1>|<(p) class=\"mono\".*?</\2>", "", text, flags=re.DOTALL) for text in found]
    return [html.unescape(re.sub(r"<[^>]+>", " ", text)) for text in plain]


def english_in(texts: list[str]) -> list[str]:
    """Runs of three and more words in Latin letters; a list of names has commas."""
    return [match.group() for text in texts for match in _SENTENCE.finditer(" ".join(text.split()))]
