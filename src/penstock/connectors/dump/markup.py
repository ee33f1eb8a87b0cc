"""Rows of an XML file: each element of one name, as fields by the names of its children.

A document type is refused the moment it begins, before anything in it can be declared, fetched or expanded.
Only the row at hand is in memory, and it is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

import msgspec

from penstock.connectors.dump.lines import MOST_LINE, Readable
from penstock.jobs.failures import BadData

BLOCK = 16_384
MOST_DEPTH = 200
MOST_FIELDS = 2_000
# A tag or comment that has not ended after so many bytes.
MOST_TOKEN = 262_144


def xml_rows(stream: Readable, element: str) -> Iterator[bytes]:
    """The elements of this name, outermost ones, as JSON; without a name, the children of the root."""
    rows = _Rows(element)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = rows.doctype
    parser.StartElementHandler = rows.start
    parser.CharacterDataHandler = rows.data
    parser.EndElementHandler = rows.end
    fed, is_open = 0, True
    while is_open:
        block = stream.read(BLOCK)
        fed, is_open = fed + len(block), bool(block)
        try:
            parser.Parse(block, not block)
        except expat.ExpatError as error:
            yield from rows.take()
            raise BadData(
                f"no well-formed XML: {expat.ErrorString(error.code)} in line {error.lineno}",
                cause="no xml",
            ) from None
        if fed - parser.CurrentByteIndex > MOST_TOKEN:
            raise BadData(f"a tag or comment of more than {MOST_TOKEN:,} bytes", cause="no xml")
        yield from rows.take()


class _Rows:
    """The parser's handlers: one row at a time."""

    def __init__(self, element: str) -> None:
        self._element = element
        self._depth = self._row_depth = self._size = 0
        self._row: dict[str, Any] | None = None
        self._field = ""
        self._texts: list[str] = []
        self._done: list[bytes] = []

    def take(self) -> list[bytes]:
        done, self._done = self._done, []
        return done

    def doctype(self, *_: object) -> None:
        raise BadData("XML with a document type is not accepted", cause="document type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        name = tag.rpartition("}")[2]
        if self._depth > MOST_DEPTH:
            raise BadData("XML that is nested too deeply", cause="no xml")
        if self._row is None:
            is_row = name == self._element if self._element else self._depth == 2
            if is_row:
                self._row_depth, self._size, self._texts = self._depth, 0, []
                self._row = {}
                self._add_attributes("", attributes)
        elif self._depth == self._row_depth + 1:
            self._field, self._texts = name, []
            self._add_attributes(name, attributes)

    def data(self, text: str) -> None:
        if self._row is not None:
            self._count(len(text))
            self._texts.append(text)

    def end(self, _: str) -> None:
        if self._row is not None and self._depth == self._row_depth + 1:
            self._add(self._field, "".join(self._texts).strip())
            self._texts = []
        elif self._row is not None and self._depth == self._row_depth:
            if text := "".join(self._texts).strip():
                self._add("text", text)
            self._done.append(msgspec.json.encode(self._row))
            self._row = None
        self._depth -= 1

    def _add_attributes(self, field: str, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            self._count(len(value))
            self._add(f"{field}@{name.rpartition('}')[2]}", value)

    def _add(self, name: str, value: str) -> None:
        """A name that comes several times has a list."""
        row = self._row if self._row is not None else {}
        if name not in row:
            row[name] = value
        elif isinstance(row[name], list):
            row[name].append(value)
        else:
            row[name] = [row[name], value]
        self._count(20)
        if len(row) > MOST_FIELDS:
            raise BadData(f"an element with more than {MOST_FIELDS:,} fields", cause="no xml")

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MOST_LINE:
            raise BadData(f"an element of more than {MOST_LINE:,} characters", cause="no xml")
