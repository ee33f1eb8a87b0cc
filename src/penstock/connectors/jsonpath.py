"""JSONPath: the part of RFC 9535 whose time is linear in the document.

Names, indices, wildcards and slices, one selector in each pair of brackets. Without filters, descendants and
lists of selectors, no path selects a value twice, and none takes longer than a walk through the document.
A path that does not begin with `$` is read as if `$.` stood before it: `data.items`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,15}")
_BLANK = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r"[^'\"\\\x00-\x1f]+")
_ESCAPES = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\",
}  # fmt: skip
LARGEST = 2**53 - 1
LONGEST = 1000

Selector = str | int | slice | None
_MISSING = object()


class PathError(ValueError):
    """A text that is no path; `at` is the position of the mistake, from 1."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        self.at = at
        super().__init__(f"is no JSONPath: at character {at} of {text!r:.200}, {problem}")


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read. A selector of None is the wildcard."""

    text: str
    selectors: tuple[Selector, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def is_singular(self) -> bool:
        """Whether it can select one value at most."""
        return all(isinstance(each, str | int) for each in self.selectors)

    @property
    def stem(self) -> JsonPath:
        """As far as it is singular."""
        kept: list[Selector] = []
        for each in self.selectors:
            if not isinstance(each, str | int):
                break
            kept.append(each)
        return path_of_selectors(kept)

    @property
    def above(self) -> JsonPath:
        """Without its last selector."""
        return path_of_selectors(self.selectors[:-1])

    def below(self, *names: str) -> JsonPath:
        return path_of_selectors((*self.selectors, *names))

    def find(self, value: Any) -> list[Any]:
        """All that it selects, in the order of the document."""
        nodes = [value]
        for selector in self.selectors:
            nodes = [child for node in nodes for child in _children(node, selector)]
        return nodes

    def first(self, value: Any, default: Any = None) -> Any:
        """The first value that it selects."""
        if not self.is_singular:
            return next(iter(self.find(value)), default)
        for selector in self.selectors:
            value = _child(value, selector)
            if value is _MISSING:
                return default
        return value


def _child(node: Any, selector: Selector) -> Any:
    if isinstance(selector, str):
        return node.get(selector, _MISSING) if isinstance(node, dict) else _MISSING
    if not isinstance(node, list) or not isinstance(selector, int):
        return _MISSING
    return node[selector] if -len(node) <= selector < len(node) else _MISSING


def _children(node: Any, selector: Selector) -> list[Any]:
    if isinstance(selector, str | int):
        found = _child(node, selector)
        return [] if found is _MISSING else [found]
    if isinstance(node, list):
        if selector is None:
            return node
        return [] if selector.step == 0 else node[selector]
    return list(node.values()) if selector is None and isinstance(node, dict) else []


def path_of_selectors(selectors: list[Selector] | tuple[Selector, ...]) -> JsonPath:
    """The path with its text as one would write it."""
    return JsonPath("$" + "".join(map(_written, selectors)), tuple(selectors))


def _written(selector: Selector) -> str:
    if isinstance(selector, str):
        if _NAME.fullmatch(selector):
            return f".{selector}"
        quoted = selector.replace("\\", "\\\\").replace("'", "\\'")
        return f"['{quoted}']"
    if selector is None:
        return "[*]"
    if isinstance(selector, int):
        return f"[{selector}]"
    parts = [selector.start, selector.stop, selector.step]
    return f"[{':'.join('' if part is None else str(part) for part in parts)}]"


@lru_cache(maxsize=1024)
def compile_path(text: str) -> JsonPath:
    """Read a path; a PathError says at which character it is none."""
    if len(text) > LONGEST:
        raise PathError(text, LONGEST, f"it is longer than {LONGEST:,} characters")
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.given = text
        self.text = text if text.startswith("$") else f"$.{text}"
        self.at = 1

    def read(self) -> JsonPath:
        selectors: list[Selector] = []
        while True:
            start = self.at
            self._skip()
            if self.at == len(self.text):
                if start != self.at:
                    raise self.error("a path does not end in blanks")
                return JsonPath(self.text, tuple(selectors))
            selectors.append(self._segment())

    def error(self, problem: str) -> PathError:
        before = len(self.text) - len(self.given)
        return PathError(self.given, max(1, self.at + 1 - before), problem)

    def _segment(self) -> Selector:
        if self._take(".."):
            raise self.error("descendants (..) are not supported: name each step")
        if self._take("."):
            return None if self._take("*") else self._name()
        if self._take("["):
            self._skip()
            selector = self._bracket()
            self._skip()
            if self._peek() == ",":
                raise self.error("several selectors are not supported: write one")
            self._expect("]")
            return selector
        raise self.error("a . or a [ is expected")

    def _name(self) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.error("a name is expected; one of other characters is written ['a-b']")
        self.at = found.end()
        if self._peek() not in ("", ".", "[", " ", "\t", "\n", "\r"):
            raise self.error("a name with such a character is written ['a-b']")
        return found[0]

    def _bracket(self) -> Selector:
        if self._take("*"):
            return None
        if self._peek() in ("'", '"'):
            return self._string()
        if self._peek() == "?":
            raise self.error("filters are not supported")
        return self._number()

    def _number(self) -> int | slice:
        start = self._integer()
        self._skip()
        if self._peek() != ":":
            if start is None:
                raise self.error("a name in quotes, an index, a slice or * is expected")
            return start
        parts = [start]
        while len(parts) < 3 and self._take(":"):
            self._skip()
            parts.append(self._integer())
            self._skip()
        return slice(*parts)

    def _integer(self) -> int | None:
        found = _INTEGER.match(self.text, self.at)
        if found is None:
            return None
        number = int(found[0])
        if abs(number) > LARGEST or self.text[found.end() : found.end() + 1].isdecimal():
            raise self.error("this is no index")
        self.at = found.end()
        return number

    def _string(self) -> str:
        quote = self.text[self.at]
        self.at += 1
        parts: list[str] = []
        while not self._take(quote):
            plain = _PLAIN.match(self.text, self.at)
            if plain is not None:
                parts.append(plain[0])
                self.at = plain.end()
            elif self._peek() in ("'", '"'):
                parts.append(self._peek())
                self.at += 1
            elif self._take("\\"):
                parts.append(self._escape(quote))
            else:
                raise self.error(f"the name is not closed by {quote}")
        return "".join(parts)

    def _escape(self, quote: str) -> str:
        letter = self._peek()
        if letter == quote or (letter in _ESCAPES and letter):
            self.at += 1
            return _ESCAPES.get(letter, letter)
        if letter == "u":
            return self._unicode()
        raise self.error("this escape is not known")

    def _unicode(self) -> str:
        code = self._hex()
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 1
            low = self._hex()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))
        if 0xD800 <= code < 0xE000:
            raise self.error("half of a pair of surrogates is no character")
        return chr(code)

    def _hex(self) -> int:
        digits = self.text[self.at + 1 : self.at + 5]
        if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
            raise self.error("\\u needs four hexadecimal digits")
        self.at += 5
        return int(digits, 16)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self.error(f"{token} is expected")

    def _skip(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
