"""A word-level tokenizer for page tests: every id has one text, and texts join to the original."""

from __future__ import annotations

import re

_PIECE = re.compile(r"<\|?/?[a-z]+\|?>| ?[A-Za-z_]+|\d| ?[^\sA-Za-z0-9]|\s")


class Words:
    """Grows a vocabulary as it encodes; ``texts[id]`` is the piece."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        found = []
        for piece in _PIECE.findall(text):
            if piece not in self._ids:
                self._ids[piece] = len(self.texts)
                self.texts.append(piece)
            found.append(self._ids[piece])
        return found
