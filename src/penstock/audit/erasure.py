"""Erasure: where a key stands in texts and JSON, and the same without it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import msgspec

ERASED = "[forgotten]"
# A shorter key is too common a piece of text to be erased inside of one: only a value that equals it is.
SHORTEST_INSIDE = 4


class Needle:
    """A key as it may be spelled: as it is, escaped in JSON, or encoded in an address."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._spellings = {key, quote(key), quote(key, safe="")}
        inside = "|".join(
            re.escape(each) for each in sorted(self._spellings, key=len, reverse=True)
        )
        self._inside = re.compile(rf"(?<!\w)(?:{inside})(?!\w)")

    @property
    def spellings(self) -> list[str]:
        """What to look for in stored text and JSON; `erased_text` and `erased_json` have the last word."""
        escaped = {msgspec.json.encode(each).decode()[1:-1] for each in self._spellings}
        return sorted(self._spellings | escaped)

    def erased_text(self, text: str) -> str:
        """The text without the key, wherever it stands as a word."""
        if len(self._key) < SHORTEST_INSIDE:
            return ERASED if text in self._spellings else text
        return self._inside.sub(ERASED, text)

    def erased_json(self, text: str) -> str:
        """The same for JSON, in its strings, its numbers and the names of its fields."""
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return self.erased_text(text)
        erased = self._erased(value)
        return text if erased == value else msgspec.json.encode(erased).decode()

    def is_in_json(self, text: str) -> bool:
        return self.erased_json(text) != text

    def _erased(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.erased_text(value)
        if isinstance(value, list):
            return [self._erased(each) for each in value]
        if isinstance(value, dict):
            return {self.erased_text(name): self._erased(each) for name, each in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ERASED if str(value) == self._key else value
        return value
