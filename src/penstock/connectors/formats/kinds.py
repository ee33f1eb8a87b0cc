"""Which format a file is in, and who reads it."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import msgspec

from penstock.connectors.formats.parsed import Parsed
from penstock.http.charset import decoded
from penstock.jobs.failures import BadData, Permanent

_SNIFFED = 8_192


class Format(msgspec.Struct, frozen=True):
    """How a kind of file is recognised; the module that reads it, and what that needs to be installed."""

    suffixes: tuple[str, ...]
    types: tuple[str, ...]
    reader: str
    needs: str = ""
    extra: str = ""


_HERE = "penstock.connectors.formats"
# By kind, as documents have it.
FORMATS: dict[str, Format] = {
    "markdown": Format((".md", ".markdown", ".mdx"), ("text/markdown",), "markdown:read_markdown"),
    "html": Format(
        (".html", ".htm", ".xhtml"), ("text/html", "application/xhtml+xml"), "html:read_html"
    ),
    "csv": Format((".csv", ".tsv"), ("text/csv", "text/tab-separated-values"), "tables:read_csv"),
    "json": Format((".json",), ("application/json",), "tables:read_json"),
    "jsonl": Format((".jsonl", ".ndjson"), ("application/x-ndjson",), "tables:read_jsonl"),
    "email": Format((".eml",), ("message/rfc822",), "mail:read_mail"),
    "docx": Format(
        (".docx",),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
        "office:read_docx",
    ),
    "xlsx": Format(
        (".xlsx",),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
        "office:read_xlsx",
    ),
    "pdf": Format((".pdf",), ("application/pdf",), "pdf:read_pdf", "pypdf", "documents"),
    "parquet": Format(
        (".parquet",),
        ("application/vnd.apache.parquet",),
        "parquet:read_parquet",
        "pyarrow",
        "data",
    ),
}
_BY_SUFFIX = {suffix: kind for kind, each in FORMATS.items() for suffix in each.suffixes}
_BY_TYPE = {name: kind for kind, each in FORMATS.items() for name in each.types}


def kind_of(name: str, body: bytes, content_type: str = "") -> str:
    """The kind by what the sender says, else by the name, else `text` or `binary` by the bytes."""
    said = _BY_TYPE.get(content_type.partition(";")[0].strip().lower())
    if said is not None:
        return said
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return "text" if _is_text(body[:_SNIFFED]) else "binary"


def content_type_of(name: str) -> str:
    """What a server would say of a file with this name."""
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    if suffix in _BY_SUFFIX:
        return FORMATS[_BY_SUFFIX[suffix]].types[0]
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def parse(
    kind: str, body: bytes, *, name: str = "", url: str = "", content_type: str = ""
) -> Parsed:
    """What the bytes say. Bytes that are not of their kind are BadData, whatever is wrong with them."""
    found = FORMATS.get(kind)
    if found is None:
        text = decoded(body, content_type) if kind == "text" else ""
        return Parsed(kind=kind, title=name, text=text).bounded()
    if found.needs and find_spec(found.needs) is None:
        raise Permanent(
            f"reading {kind} needs {found.needs}: pip install 'penstock[{found.extra}]', then retry",
            cause=f"{found.needs} is not installed",
        )
    try:
        return _reader(found.reader)(body, name, url, content_type).bounded()
    except (BadData, Permanent):
        raise
    except (
        Exception,
        RecursionError,
    ) as error:  # strangers write files, and libraries fail in any way
        raise BadData(
            f"this is no {kind} that can be read: {type(error).__name__}: {str(error)[:200]}",
            cause=f"no {kind}",
        ) from error


Reader = Callable[[bytes, str, str, str], Parsed]
# Control characters that text does not have.
_ODD = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))


@cache
def _reader(where: str) -> Reader:
    module, _, name = where.partition(":")
    reader: Reader = getattr(import_module(f"{_HERE}.{module}"), name)
    return reader


def _is_text(start: bytes) -> bool:
    if not start or start.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    if b"\0" in start:
        return False
    odd = len(start) - len(start.translate(None, _ODD))
    return odd * 50 < len(start)
