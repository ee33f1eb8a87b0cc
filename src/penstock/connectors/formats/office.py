"""DOCX and XLSX: archives of XML, read with bounds on all that they could expand to."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from xml.parsers import expat

from penstock.connectors.formats.parsed import MOST_DATA_BYTES, MOST_ROWS, MOST_TEXT, Parsed, tidy
from penstock.jobs.failures import BadData

MOST_UNPACKED = 100_000_000
MOST_MEMBERS = 10_000
MOST_SHEETS = 100
MOST_STRINGS = 1_000_000
MOST_COLUMNS = 2_000
SLICE = 65_536
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")

Start = Callable[[str, dict[str, str]], None]


class Enough(Exception):
    """As much as a record holds was read."""


class _Archive:
    """The members of an archive, unpacked slice by slice and counted."""

    def __init__(self, body: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(body))
        if len(self._zip.namelist()) > MOST_MEMBERS:
            raise BadData(f"an archive of more than {MOST_MEMBERS:,} files")
        self._unpacked = 0

    def names(self) -> list[str]:
        return self._zip.namelist()

    def slices(self, name: str) -> Iterator[bytes]:
        with self._zip.open(name) as member:
            while piece := member.read(SLICE):
                self._unpacked += len(piece)
                if self._unpacked > MOST_UNPACKED:
                    raise BadData(f"it unpacks to more than {MOST_UNPACKED // 1_000_000} MB")
                yield piece


def _parse(
    archive: _Archive,
    name: str,
    start: Start,
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> None:
    """Walk one member; a document type is refused before anything in it can be declared."""
    parser = expat.ParserCreate(namespace_separator="}")

    def refuse(*_: object) -> None:
        raise BadData("XML with a document type")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, about: start(tag.rpartition("}")[2], about)
    parser.EndElementHandler = lambda tag: end(tag.rpartition("}")[2])
    parser.CharacterDataHandler = text
    try:
        for piece in archive.slices(name):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except Enough:
        return


def read_docx(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    archive = _Archive(body)
    parts: list[str] = []
    state = {"in_text": 0, "length": 0}

    def start(tag: str, about: dict[str, str]) -> None:
        if tag == "t":
            state["in_text"] += 1
        elif tag in ("tab", "br", "cr"):
            parts.append("\t" if tag == "tab" else "\n")

    def end(tag: str) -> None:
        if tag == "t":
            state["in_text"] -= 1
        elif tag in ("p", "tr"):
            parts.append("\n")

    def text(piece: str) -> None:
        if state["in_text"]:
            parts.append(piece)
            state["length"] += len(piece)
            if state["length"] > MOST_TEXT:
                raise Enough

    _parse(archive, "word/document.xml", start, end, text)
    found = tidy("".join(parts))
    return Parsed(kind="docx", title=_core_title(archive) or name, text=found)


def _core_title(archive: _Archive) -> str:
    if "docProps/core.xml" not in archive.names():
        return ""
    inside: list[str] = []
    found: list[str] = []

    def text(piece: str) -> None:
        if inside and inside[-1] == "title":
            found.append(piece[:500])

    _parse(
        archive,
        "docProps/core.xml",
        lambda tag, _: inside.append(tag),
        lambda _: (inside.pop(), None)[1],
        text,
    )
    return "".join(found)[:500]


def read_xlsx(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    """The sheets in the order of their files; the first row of each is its header."""
    archive = _Archive(body)
    strings = _shared_strings(archive)
    names = sorted(
        (each for each in archive.names() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", each)),
        key=lambda each: int(re.sub(r"\D", "", each)),
    )
    if not names:
        raise ValueError("it has no sheets")
    sheets, is_cut, left = [], len(names) > MOST_SHEETS, MOST_ROWS
    for member in names[:MOST_SHEETS]:
        sheet = _Sheet(strings, left)
        _parse(archive, member, sheet.start, sheet.end, sheet.text)
        head, *rows = sheet.rows or [[]]
        columns = [cell or f"column {number}" for number, cell in enumerate(head, 1)]
        sheets.append([dict(zip(columns, row, strict=False)) for row in rows])
        is_cut, left = is_cut or sheet.is_cut, left - len(rows)
    data = sheets[0] if len(sheets) == 1 else sheets
    meta = {"sheets": len(names), "rows": sum(map(len, sheets))}
    return Parsed(
        kind="xlsx", title=name, meta={**meta, "cut": True} if is_cut else meta, data=data
    )


def _shared_strings(archive: _Archive) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.names():
        return []
    found: list[str] = []
    inside = {"t": 0}

    def start(tag: str, about: dict[str, str]) -> None:
        if tag == "si":
            if len(found) >= MOST_STRINGS:
                raise BadData(f"more than {MOST_STRINGS:,} texts in a table")
            found.append("")
        elif tag == "t":
            inside["t"] += 1

    def end(tag: str) -> None:
        if tag == "t":
            inside["t"] -= 1

    def text(piece: str) -> None:
        if inside["t"] and found and len(found[-1]) < 32_768:
            found[-1] += piece

    _parse(archive, "xl/sharedStrings.xml", start, end, text)
    return found


class _Sheet:
    """The rows of one sheet, up to a bound."""

    def __init__(self, strings: list[str], most: int) -> None:
        self.rows: list[list[str]] = []
        self.is_cut = False
        self._strings = strings
        self._most = most
        self._size = 0
        self._row: list[str] = []
        self._kind = ""
        self._at = 0
        self._value: list[str] | None = None

    def start(self, tag: str, about: dict[str, str]) -> None:
        if tag == "row":
            self._row = []
        elif tag == "c":
            self._kind, self._at = about.get("t", ""), _column(about.get("r", ""), len(self._row))
        elif tag in ("v", "t"):
            self._value = []

    def text(self, piece: str) -> None:
        if self._value is not None and len(self._value) < 1000:
            self._value.append(piece[:32_768])

    def end(self, tag: str) -> None:
        if tag in ("v", "t") and self._value is not None:
            self._put("".join(self._value)[:32_768])
            self._value = None
        elif tag == "row":
            self.rows.append(self._row)
            self._size += sum(map(len, self._row))
            if len(self.rows) > self._most or self._size > MOST_DATA_BYTES:
                self.is_cut = True
                raise Enough

    def _put(self, value: str) -> None:
        if self._kind == "s" and value.isdecimal() and int(value) < len(self._strings):
            value = self._strings[int(value)]
        if self._at >= MOST_COLUMNS:
            return
        self._row += [""] * (self._at + 1 - len(self._row))
        self._row[self._at] = value


def _column(place: str, after: int) -> int:
    """`AB12` is in column 27, counted from 0."""
    found = _CELL.fullmatch(place)
    if found is None:
        return after
    number = 0
    for letter in found[1]:
        number = number * 26 + ord(letter) - 64
    return number - 1
