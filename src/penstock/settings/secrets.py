"""Secrets: whatever came in through ${NAME} is never shown, in whatever spelling it turns up.

One masker serves every surface. It looks for a secret character by character, so that spellings may be mixed
and nested: as it is, as Python's `repr`, JSON, HTML, XML, CSV and URLs write it, in base64 at any alignment,
in hexadecimal, and line by line where it has several lines. Mask first, cut afterwards: half a secret
is not found any more.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html.entities import codepoint2name
from itertools import groupby
from typing import Any

MASK = "***"
SHORTEST_SECRET = 4
# A shorter line of a secret with several lines may be a bracket or a word that stands everywhere.
SHORTEST_LINE = 8
# Of base64 inside other base64, fewer certain characters than this may be anybody's.
SHORTEST_PIECE = 8
# Where only the beginning of a text is kept, so much of it is looked at; whoever gathers text keeps as much.
LOOKED_AT = 16_384
PEM = "-----"
# %252525F0 for each of the four bytes of a character.
LONGEST_ESCAPE = 36
# What a name has in it whose value is not for everybody.
SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|auth|sig|cred|session|code|jwt", re.IGNORECASE)
_CUT_OFF = re.compile(r"…|\.{3}")
_WORD = re.compile(r"[A-Za-z0-9]+")
_BASE64 = "A-Za-z0-9+/_-"
# One escape may be escaped again: JSON inside JSON, a repr inside a repr. Bounded, so that matching is too.
_SLASHES = r"\\{1,8}"
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\0": "0"}
# Doubled in CSV, SQL and YAML, and by each level of escaping.
_REPEATED = {'"': 2, "'": 2, "\\": 8}


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret masked, however it is spelled.

    Values shorter than four characters are left alone: masking every `8` because SLOTS=8 came from
    the environment would hide the message and protect nothing.
    """
    return masker_for(frozenset(secrets)).mask(text)


def redact_and_cut(text: str, secrets: Iterable[str], longest: int) -> str:
    """The beginning of the text, with secrets masked before anything is cut off."""
    return masker_for(frozenset(secrets)).mask_and_cut(text, longest)


def redact_within(value: Any, secrets: frozenset[str]) -> Any:
    """The same for every text in a JSON value. Before it is encoded: an escape would hide a secret."""
    if not secrets:
        return value
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {redact(k, secrets): redact_within(each, secrets) for k, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_within(each, secrets) for each in value]
    return value


@lru_cache(maxsize=8)
def masker_for(secrets: frozenset[str]) -> Masker:
    return Masker(secrets)


class Masker:
    """Finds a set of secrets in text. Made once, used for everything."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = sorted({each for secret in secrets for each in _forms(secret)})
        self._spelled = [_Spelled(value) for value in values]
        whole = {each.strip() for each in secrets if len(each.strip()) >= SHORTEST_SECRET}
        encoded = sorted({piece for each in whole for piece in _encoded(each)})
        self._encoded = [(piece, re.compile(_around(piece))) for piece in encoded]
        sizes = [*map(_longest, values), *(len(piece) + 8 for piece in encoded)]
        # No spelling of a secret is longer.
        self.longest = max(sizes, default=0)

    def mask(self, text: str) -> str:
        spans = self._spans(text)
        return _without(text, spans) if spans else text

    def mask_and_cut(self, text: str, longest: int) -> str:
        if len(text) < LOOKED_AT:
            return self.mask(text)[:longest]
        # It was cut, here or where it was gathered, and may end with half a secret, which nothing finds.
        masked = self.mask(text[:LOOKED_AT])
        return masked[: min(longest, max(0, len(masked) - self.longest))] or MASK

    def mask_piece(self, text: str) -> tuple[str, str]:
        """A piece of a longer text, masked, and the end of it that belongs before the next piece."""
        spans = self._spans(text)
        end = max(0, len(text) - self.longest)
        for start, stop in spans:
            if start < end < stop:
                end = start
        return _without(text[:end], [span for span in spans if span[1] <= end]), text[end:]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand, in order; those that overlap are one."""
        found = sorted(self._each_span(text))
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def _each_span(self, text: str) -> Iterator[tuple[int, int]]:
        for spelled in self._spelled:
            if spelled.anchor in text:
                yield from (found.span(1) for found in spelled.pattern.finditer(text))
        for piece, pattern in self._encoded:
            if piece in text:
                yield from (found.span(1) for found in pattern.finditer(text))
        if "…" in text or "..." in text:
            for spelled in self._spelled:
                yield from spelled.beginnings(text)


class _Spelled:
    """A value with all spellings of its characters. `anchor` stands in every one of them."""

    __slots__ = ("_pattern", "_value", "anchor")

    def __init__(self, value: str) -> None:
        self._value = value
        self._pattern: re.Pattern[str] | None = None
        self.anchor = max(_WORD.findall(value), key=len, default="")

    @property
    def pattern(self) -> re.Pattern[str]:
        if self._pattern is None:
            # Looked ahead for, so that occurrences that overlap are all found.
            runs = (_run(char, len(list(same))) for char, same in groupby(self._value))
            self._pattern = re.compile(f"(?=({''.join(runs)}))")
        return self._pattern

    def beginnings(self, text: str) -> Iterator[tuple[int, int]]:
        """Where somebody else has cut the value off, and said so: libraries shorten what they show."""
        head = self._value[:SHORTEST_SECRET]
        for found in _CUT_OFF.finditer(text) if head in text else ():
            end = found.start()
            at = text.find(head, max(0, end - len(self._value)), end)
            while at >= 0:
                if _is_beginning(text[at:end], self._value):
                    yield at, end
                    break
                at = text.find(head, at + 1, end)


def _is_beginning(text: str, value: str) -> bool:
    return len(text) < len(value) and value.startswith(text)


def _longest(value: str) -> int:
    """The longest spelling. Several lines are found line by line, too, so only one may be cut through."""
    if "\n" in value:
        return 0
    return sum(1 if char.isascii() and char.isalnum() else LONGEST_ESCAPE for char in value)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, stop in spans:
        parts += [text[at:start], MASK]
        at = stop
    return "".join([*parts, text[at:]])


def _forms(secret: str) -> Iterator[str]:
    """What is looked for: the secret, without the space around it, its lines, what it holds as JSON."""
    for text in (secret, *_members(secret)):
        if len(text.strip()) >= SHORTEST_SECRET:
            yield text.strip()
        lines = text.split("\n")
        shortest = SHORTEST_SECRET if PEM in text else SHORTEST_LINE
        for line in lines if len(lines) > 1 else ():
            shown = line.strip()
            if len(shown) >= shortest and not shown.startswith(PEM):
                yield shown


def _members(secret: str) -> Iterator[str]:
    """The secret texts in a secret that is a JSON object, such as a key file of a cloud."""
    if not secret.lstrip().startswith("{"):
        return
    try:
        waiting = [("", json.loads(secret))]
    except ValueError:
        return
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(name, each) for each in value]
        elif isinstance(value, str) and SECRET_NAME.search(name) and len(value) >= SHORTEST_LINE:
            yield value


@lru_cache(maxsize=4096)
def _run(char: str, times: int) -> str:
    """A pattern for a character that stands so many times; letters and digits are the same everywhere."""
    if char.isascii() and char.isalnum():
        return char * times
    if char in _REPEATED:
        # As one, because how many of them stand for each can't be told: every way would be tried.
        plain = f"{re.escape(char)}{{{times},{times * _REPEATED[char]}}}"
        return f"(?:{plain}|(?:{'|'.join(_escapes(char))}){{{times}}})"
    return f"(?:{re.escape(char)}|{'|'.join(_escapes(char))})" + (
        f"{{{times}}}" if times > 1 else ""
    )


def _escapes(char: str) -> list[str]:
    code = ord(char)
    ways = [_numbered(code), _percent(char), _utf8(char), _entity(code)]
    ways += [f"{_SLASHES}{_SHORT_ESCAPES[char]}"] if char in _SHORT_ESCAPES else []
    ways += [f"{_SLASHES}{char}"] if char in ("'", '"', "/") else []
    return [*ways, r"\+"] if char == " " else ways


def _numbered(code: int) -> str:
    r"""`\u00fc`, `\xfc`, `\U0001f511`, and the two halves of what JSON writes as a pair."""
    either = f"{_SLASHES}(?:u{_hex(code, 4)}|U{_hex(code, 8)}"
    either += f"|x{_hex(code, 2)})" if code < 256 else ")"
    if code <= 0xFFFF:
        return either
    high, low = divmod(code - 0x10000, 0x400)
    pair = f"{_SLASHES}u{_hex(0xD800 + high, 4)}{_SLASHES}u{_hex(0xDC00 + low, 4)}"
    return f"(?:{either}|{pair})"


def _percent(char: str) -> str:
    return "".join(f"%(?:25){{0,3}}{_hex(byte, 2)}" for byte in _bytes(char))


def _utf8(char: str) -> str:
    return "".join(f"{_SLASHES}x{_hex(byte, 2)}" for byte in _bytes(char))


def _entity(code: int) -> str:
    name = codepoint2name.get(code)
    ways = [f"#0{{0,4}}{code}", f"#[xX]0{{0,4}}{_hex(code, 1)}", *([name] if name else [])]
    ways += ["apos"] if code == ord("'") else []
    return f"&(?:amp;){{0,3}}(?:{'|'.join(ways)});"


def _hex(number: int, digits: int) -> str:
    """The number with hexadecimal digits of either case."""
    return "".join(
        f"[{digit}{digit.upper()}]" if digit.isalpha() else digit
        for digit in f"{number:0{digits}x}"
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _encoded(secret: str) -> Iterator[str]:
    """The characters of base64 and hexadecimal that are certain, whatever stands around the secret."""
    raw = _bytes(secret)
    yield base64.b64encode(raw).decode().rstrip("=")
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
    yield from (raw.hex(), raw.hex().upper())
    for before in range(3):
        # So many bytes make whole groups of four characters with what stands before.
        whole = raw[(3 - before) % 3 :]
        sure = base64.b64encode(whole[: len(whole) // 3 * 3]).decode()
        if len(sure) >= SHORTEST_PIECE:
            yield sure
            yield sure.translate(str.maketrans("+/", "-_"))
    if len(raw) > 57:  # wrapped at 76 characters, as mail has it
        lines = base64.encodebytes(raw).decode().split()
        yield from (line for line in lines if len(line) >= SHORTEST_PIECE)


def _around(piece: str) -> str:
    """The piece with the characters beside it that are made of the secret in part.

    Looked ahead for: of two that stand side by side, the second begins within what belongs to the first.
    """
    return f"(?=([{_BASE64}]{{0,3}}{re.escape(piece)}[{_BASE64}]{{0,3}}={{0,2}}))"
