"""XML from strangers, read row by row.

A document type is refused the moment it begins, before anything in it can be declared, fetched or
expanded. Works on small slices and keeps only the row at hand, and of that row only the fields that
were asked for: a document of any length and shape costs time in proportion to its bytes, and no more
memory than one row may have.

Expat and not libxml2: lxml keeps every name that a thread has ever read, so that each hostile document
would leave something behind for good.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from penstock.http.charset import xml_codec

MAX_DEPTH = 200
# What is kept of a row; the rest of it is read and dropped.
MAX_FIELDS = 64
MAX_TEXT = 65_536
MAX_ROW_TEXT = 8 * MAX_TEXT
# A document that passes one of these is refused. A sitemap may name a thousand images for one page.
MAX_ROW_ELEMENTS = 20_000
MAX_ATTRIBUTES = 256
MAX_NAME = 1_000
MAX_NAMES = 4_096
# The longest tag or comment: it is held in memory until its end has come.
MAX_TOKEN = 262_144
SLICE = 4_096
_SNIFFED = 1_024


class BadXml(ValueError):
    """Not well-formed, not what was expected, too large in one place, or with a document type."""


@dataclass(slots=True)
class Field:
    """A child of a row with all the text in it, up to MAX_TEXT; `tag` is `namespace}name`."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(slots=True)
class Row:
    """One repeated element of a document: a sitemap's url, a feed's entry."""

    name: str
    attributes: dict[str, str]
    fields: list[Field] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shape:
    """The names to look for: of the document, of its rows, and (in lower case) of a row's fields."""

    roots: frozenset[str]
    rows: frozenset[str]
    fields: frozenset[str]


def read_rows(chunks: Iterable[bytes], shape: Shape) -> Iterator[list[Row]]:
    """The rows, as they come: one list, often an empty one, for each slice of the document.

    Between two lists a caller can let others work. Raises BadXml after the last row that was whole.
    """
    rows = _Rows(shape)
    names: dict[str, str] = {}
    parser = _parser(rows, names)
    fed = 0
    try:
        for piece in _slices(_as_utf8(_slices(chunks))):
            fed += len(piece)
            parser.Parse(piece, False)
            _check_buffers(fed - parser.CurrentByteIndex, len(names))
            yield rows.take()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        yield rows.take()
        raise BadXml(f"not well-formed XML ({expat.ErrorString(error.code)})") from None
    except BadXml:
        yield rows.take()
        raise
    yield rows.take()


def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _parser(rows: _Rows, names: dict[str, str]) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8", "}", names)
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = rows.doctype
    parser.StartNamespaceDeclHandler = rows.namespace
    parser.StartElementHandler = rows.start
    parser.CharacterDataHandler = rows.data
    parser.EndElementHandler = rows.end
    return parser


def _check_buffers(unread: int, names: int) -> None:
    if unread > MAX_TOKEN:
        raise BadXml(f"a tag or comment is longer than {MAX_TOKEN} bytes")
    if names > MAX_NAMES:
        raise BadXml(f"it has more than {MAX_NAMES} different names")


def _as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The document in UTF-8, whatever it was in: Expat itself knows few encodings."""
    rest = iter(chunks)
    start = b""
    while len(start) < _SNIFFED and (more := next(rest, None)) is not None:
        start += more
    # A blank before the XML declaration is forbidden, frequent and harmless.
    start = start.lstrip(b" \t\r\n")
    codec = xml_codec(start)
    if codec == "utf-8":
        yield start
        yield from rest
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    yield decoder.decode(start).removeprefix("\ufeff").encode()
    for chunk in rest:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", True).encode()


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if len(chunk) <= SLICE:
            yield chunk
        else:
            yield from (chunk[at : at + SLICE] for at in range(0, len(chunk), SLICE))


class _Rows:
    """The parser's handlers: build rows, drop everything around them."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._depth = 0
        self._row_depth = 0
        self._row: Row | None = None
        self._field: Field | None = None
        self._text: list[str] = []
        self._room = 0
        self._row_room = 0
        self._elements = 0
        self._done: list[Row] = []

    def take(self) -> list[Row]:
        done, self._done = self._done, []
        return done

    def doctype(self, *_: object) -> None:
        raise BadXml("a document type is not accepted")

    def namespace(self, _prefix: str | None, uri: str | None) -> None:
        # Each name would be read with its namespace before it.
        if len(uri or "") > MAX_NAME:
            raise BadXml(f"a namespace is longer than {MAX_NAME} characters")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadXml("nested too deeply")
        self._check_tag(tag, attributes)
        if self._row is not None:
            self._start_in_row(self._row, tag, attributes)
            return
        name = local_name(tag)
        if self._depth == 1 and name not in self._shape.roots:
            expected = _listed(self._shape.roots)
            raise BadXml(f"a document of <{name[:40]}> where {expected} was expected")
        if self._depth > 1 and name in self._shape.rows:
            self._row_depth, self._elements, self._row_room = self._depth, 0, MAX_ROW_TEXT
            self._row = Row(name, self._kept(attributes))

    def data(self, text: str) -> None:
        if self._field is not None and self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def end(self, _tag: str) -> None:
        if self._row is not None and self._depth <= self._row_depth + 1:
            if self._depth == self._row_depth:
                self._done.append(self._row)
                self._row = None
            elif self._field is not None:
                self._end_field(self._field)
        self._depth -= 1

    def _check_tag(self, tag: str, attributes: dict[str, str]) -> None:
        if len(attributes) > MAX_ATTRIBUTES:
            raise BadXml(f"a tag has more than {MAX_ATTRIBUTES} attributes")
        if len(tag) > 2 * MAX_NAME or (attributes and max(map(len, attributes)) > 2 * MAX_NAME):
            raise BadXml(f"a name is longer than {MAX_NAME} characters")

    def _start_in_row(self, row: Row, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ROW_ELEMENTS:
            raise BadXml(f"a <{row.name}> has more than {MAX_ROW_ELEMENTS} elements")
        if self._depth != self._row_depth + 1 or len(row.fields) == MAX_FIELDS:
            return
        if local_name(tag).lower() in self._shape.fields:
            self._field = Field(tag, self._kept(attributes))
            self._room = min(MAX_TEXT, self._row_room)
            row.fields.append(self._field)

    def _end_field(self, ended: Field) -> None:
        whole = "".join(self._text)
        ended.text = whole.strip()
        self._row_room -= len(whole)
        self._text.clear()
        self._field = None

    def _kept(self, attributes: dict[str, str]) -> dict[str, str]:
        size = sum(map(len, attributes.values()))
        if size > min(MAX_TEXT, self._row_room):
            return {}
        self._row_room -= size
        return attributes


def _listed(names: frozenset[str]) -> str:
    return " or ".join(f"<{name}>" for name in sorted(names))
