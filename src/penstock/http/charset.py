"""From bytes to text, by what the server and the document say, and only by codecs of the web."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# No run of blanks is of any length: what may be tried at each place would make the whole quadratic.
_PARAMETER = re.compile(
    r"charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
_META = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_.:-]{1,40})",
    re.IGNORECASE,
)
_XML = re.compile(rb"^\s{0,9}<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_.:-]{1,40})")
_SNIFFED = 1024
_LONGEST_TYPE = 1024
_STEP = 65_536
_MAX_ERRORS = 10_000
# Python has codecs that are no character sets, and some (idna, punycode) that take quadratic time.
_WEB = re.compile(
    r"utf-8|utf-16(-[lb]e)?|iso8859-\d+|cp(866|874|932|949|125[0-8])|koi8-[ru]|mac-(roman|cyrillic)"
    r"|gbk|gb2312|gb18030|big5(hkscs)?|euc_jp|iso2022_jp|shift_jis|euc_kr"
)

_BEYOND_ASCII = bytes(range(128, 256))
_ONE_BYTE = re.compile(r"iso8859-\d+|cp(866|874|125[0-8])|koi8-[ru]|mac-(roman|cyrillic)")


def decoded(body: bytes, content_type: str) -> str:
    """The body as text. Never fails: what can't be decoded becomes U+FFFD.

    What nothing is said of is UTF-8, or Windows-1252 if it is not: that is what browsers take it for.
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], codec)
    declared = _declared(body, content_type)
    return _guessed(body) if declared is None else _decoded(body, declared)


def _guessed(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    errors = text.count("\ufffd")
    ascii_count = len(body.translate(None, _BEYOND_ASCII))
    # A few broken characters are damage in text that is UTF-8 all the same.
    is_utf8 = errors <= len(text) - ascii_count - errors
    return text if is_utf8 else _decoded(body, "cp1252")


def _decoded(body: bytes, codec: str) -> str:
    if codec.startswith("utf-16"):
        return _decoded_utf16(body, codec)
    if _ONE_BYTE.fullmatch(codec):
        # A table without holes: to replace what it lacks one by one takes a hundred times as long.
        return codecs.charmap_decode(body, "strict", _table(codec))[0]
    return body.decode(codec, "replace")


def _decoded_utf16(body: bytes, codec: str) -> str:
    """Errors are replaced one by one, and slowly: after ten thousand of them the rest is taken for one."""
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        pass
    decoder = codecs.getincrementaldecoder(codec)("replace")
    parts: list[str] = []
    errors = 0
    for at in range(0, len(body), _STEP):
        parts.append(decoder.decode(body[at : at + _STEP], at + _STEP >= len(body)))
        errors += parts[-1].count("\ufffd")
        if errors > _MAX_ERRORS:
            parts.append("\ufffd" * (max(0, len(body) - at - _STEP) // 2))
            break
    return "".join(parts)


@lru_cache(maxsize=32)
def _table(codec: str) -> str:
    return bytes(range(256)).decode(codec, "replace")


def xml_codec(start: bytes) -> str:
    """What an XML document is encoded in, by its first bytes; UTF-8 if it does not say."""
    for mark, codec in _BOMS:
        if start.startswith(mark):
            return codec
    if start.startswith((b"<\0", b"\0<")):
        return "utf-16-le" if start[0] else "utf-16-be"
    declared = _XML.search(start[:_SNIFFED])
    codec = (declared and _codec(declared[1].decode("ascii"))) or "utf-8"
    # Whoever can read the declaration byte by byte is not reading UTF-16.
    return "utf-8" if codec.startswith("utf-16") else codec


def _declared(body: bytes, content_type: str) -> str | None:
    parameter = _PARAMETER.search(content_type[:_LONGEST_TYPE])
    if parameter and (codec := _codec(parameter[1])):
        return codec
    start = body[:_SNIFFED]
    inside = _META.search(start) or _XML.search(start)
    return _codec(inside[1].decode("ascii")) if inside else None


def _codec(name: str) -> str | None:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if codec in ("ascii", "iso8859-1"):
        return "cp1252"
    if codec == "utf-16":
        # It has no mark, or nobody would ask: then it is as most write it.
        return "utf-16-le"
    return codec if _WEB.fullmatch(codec) else None
