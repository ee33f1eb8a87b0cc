"""Input that means harm, of any length, for every parser of ours that reads what others wrote."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from penstock.http.addresses import look_at
from penstock.http.charset import decoded
from penstock.http.encoding import Body, BrokenCoding
from penstock.http.failures import FetchError, safe_url
from penstock.http.feed import feed_entries
from penstock.http.kept_headers import keep_headers
from penstock.http.lastmod import span_of
from penstock.http.redirects import Hop, follow
from penstock.http.response import Response
from penstock.http.retry_after import retry_after_s
from penstock.http.robots_rules import rules_for
from penstock.http.sitemap import sitemap_urls
from penstock.jobs.cursor import refusal
from penstock.settings.pattern import pattern_of
from penstock.snapshots.warc import BadRecord, unpack_response
from tests.hostile import builder_inputs

KB, MB = 1_000, 1_000_000
AGENT = "penstock/1.0 (+https://penstock.example)"
URL = "https://shop.example/feed"


@dataclass(frozen=True)
class Parser:
    """One reader of outside text. It may hold `fixed` bytes, and `times` the input's length."""

    name: str
    read: Callable[[Any], object]
    inputs: dict[str, Callable[[int], Any]]
    # The longest input that can reach it.
    cap: int
    fixed: int = 1 * MB
    times: float = 0.0


def _served(body: bytes, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(URL, URL, 200, named, body, 0.0)


def _walked(rows: Callable[[Any, str], AsyncIterator[object]], body: bytes) -> int:
    async def get(url: str) -> Response:
        if url != URL:
            raise FetchError("status 404", url, 404, True)
        return _served(body)

    async def count() -> int:
        found = 0
        with contextlib.suppress(FetchError):
            async for _ in rows(get, URL):
                found += 1
        return found

    # Rests between slices are for others, and nobody else is here.
    return asyncio.run(_without_rests(count))


async def _without_rests(work: Callable[[], Any]) -> int:
    loop = asyncio.get_running_loop()
    call_later = loop.call_later
    loop.call_later = lambda _s, *args, **more: call_later(0, *args, **more)  # type: ignore[method-assign]
    return int(await work())


def _times(n: int, piece: bytes | str) -> Any:
    return piece * (n // len(piece))


def _inside(before: bytes, piece: bytes, after: bytes) -> Callable[[int], bytes]:
    return lambda n: before + _times(n, piece) + after


def _numbered(before: bytes, piece: str, after: bytes) -> Callable[[int], bytes]:
    def build(n: int) -> bytes:
        width = len(piece.format(10_000_000))
        return (
            before
            + "".join(piece.format(10_000_000 + i) for i in range(n // width)).encode()
            + after
        )

    return build


def _noise(n: int) -> bytes:
    return random.Random(7).randbytes(n)


def _xml(root: bytes, row: bytes, field: bytes) -> dict[str, Callable[[int], bytes]]:
    start, end = b"<%s><%s>" % (root, row), b"</%s></%s>" % (row, root)
    opened, closed = start + b"<%s>" % field, b"</%s>" % field + end
    return {
        "one row of empty elements": _inside(start, b"<a/>", end),
        "one row of wanted fields": _inside(start, b"<%s>a</%s>" % (field, field), end),
        "rows": _inside(b"<%s>" % root, b"<%s/>" % row, b"</%s>" % root),
        "a long text": _inside(opened, b"a", closed),
        "a long address": _inside(opened + b"http://", b"a", closed),
        "blanks": _inside(opened, b"\n ", closed),
        "character references": _inside(opened, b"&#97;", closed),
        "predefined entities": _inside(opened, b"&amp;", closed),
        "a long CDATA section": _inside(opened + b"<![CDATA[", b"]", b"]]>" + closed),
        "many CDATA sections": _inside(opened, b"<![CDATA[a]]>", closed),
        "a long comment": _inside(start + b"<!--", b"a ", b"-->" + end),
        "a comment without end": _inside(start + b"<!--", b"- ", b""),
        "many comments": _inside(start, b"<!---->", end),
        "a long instruction": _inside(start + b"<?a ", b"a", b"?>" + end),
        "instructions": _inside(start, b"<?a?>", end),
        "depth": _inside(start, b"<a>", b""),
        "attributes": _numbered(start + b"<b ", 'a{}="" ', b"/>" + end),
        "attributes of a field": _numbered(start + b"<%s " % field, 'a{}="" ', b"/>" + end),
        "a long attribute": _inside(start + b'<%s href="' % field, b"a", b'"/>' + end),
        "an attribute without end": _inside(start + b'<%s href="' % field, b"a", b""),
        "a long name": _inside(start + b"<", b"a", b"/>" + end),
        "different names": _numbered(start, "<a{}/>", end),
        "namespaces": _numbered(start, '<a xmlns:p{0}="u{0}"/>', end),
        "a long namespace": lambda n: (
            b'<%s xmlns="%s">' % (root, b"u" * (n // 2)) + _times(n // 2, b"<a/>") + b"</%s>" % root
        ),
        "a tag without end": _inside(start + b"<a", b" ", b""),
        "angles": _inside(b"", b"<", b""),
        "broken UTF-8": _inside(opened, b"\xff", closed),
        "UTF-16": lambda n: (
            b"\xff\xfe" + _inside(start, b"<a/>", end)(n // 2).decode().encode("utf-16-le")
        ),
        "GB 18030": _inside(
            b'<?xml version="1.0" encoding="gb18030"?>' + opened, b"\x81\x30\xff", closed
        ),
        "noise": lambda n: opened + _noise(n),
    }


def _packed(inputs: dict[str, Callable[[int], bytes]]) -> dict[str, Callable[[int], bytes]]:
    return {
        f"{name}, packed": lambda n, build=build: gzip.compress(build(n), 1, mtime=0)  # type: ignore[misc]
        for name, build in inputs.items()
        if name in ("one row of empty elements", "a long text", "lines", "one line")
    }


_SITEMAPS = _xml(b"urlset", b"url", b"loc")
_TEXTS: dict[str, Callable[[int], bytes]] = {
    "one line": _inside(b"http://", b"a", b""),
    "lines": _inside(b"", b"http://a\n", b""),
    "line ends": _inside(b"http://a", b"\r\n", b""),
    "old line ends": _inside(b"http://a", b"\r", b""),
    "blanks before": _inside(b"http://a\n", b" ", b"http://b"),
    "bytes that are no text": _inside(b"http://a", b"\xff\xe0\x80", b""),
}

_ROBOTS: dict[str, Callable[[int], bytes]] = {
    "agents times rules": lambda n: (
        _numbered(b"", "User-agent: a{}\n", b"")(n // 2)
        + b"User-agent: *\n"
        + _numbered(b"", "Disallow: /{}\n", b"")(n // 2)
    ),
    "our agent again and again": lambda n: (
        _times(n // 2, b"User-agent: penstock\n") + _numbered(b"", "Disallow: /{}\n", b"")(n // 2)
    ),
    "agents that are part of ours": lambda n: (
        b"".join(b"User-agent: %s\n" % AGENT[:i].encode() for i in range(1, len(AGENT)))
        + _numbered(b"", "Disallow: /{}\n", b"")(n)
    ),
    "groups": _inside(b"", b"User-agent: *\nDisallow: /a\n", b""),
    "rules": _numbered(b"User-agent: *\n", "Allow:/{}\n", b""),
    "short rules": lambda n: (
        b"User-agent: *\n" + b"".join(b"allow:/%x\n" % i for i in range(n // 13))
    ),
    "asterisks": _inside(b"User-agent: *\nDisallow: /", b"*a", b""),
    "rules with asterisks": _numbered(b"User-agent: *\n", "Disallow: /*aaaaaaab{}\n", b""),
    "rows of asterisks": _inside(b"User-agent: *\nDisallow: /", b"*", b"a"),
    "rules of dollars": _inside(b"User-agent: *\n", b"Disallow: /" + b"$" * 2_000 + b"\n", b""),
    "dollars": _inside(b"User-agent: *\nDisallow: /", b"$", b""),
    "escapes": _inside(b"User-agent: *\nDisallow: /", b"%zz%41", b""),
    "blank lines": _inside(b"User-agent: *\n", b"\n", b"Disallow: /"),
    "comments": _inside(b"User-agent: *\n", b"#", b"\nDisallow: /"),
    "colons": _inside(b"User-agent: *\n", b":", b""),
    "words": _inside(b"User-agent: *\n", b"user ", b""),
    "no text": _noise,
}


def _followed_robots(body: bytes) -> bool:
    rules = rules_for(body, AGENT)
    urls = [f"https://shop.example/{'a' * length}" for length in (10, 100, 1000, 8000)]
    return all(rules.allows(url) for url in urls if rules.can_match(url))


def _unpacked(coding: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        body = Body(coding, 4 * MB)
        with contextlib.suppress(BrokenCoding):
            for at in range(0, len(data), 1024):
                body.add(data[at : at + 1024])
                if body.is_overfull:
                    break
            else:
                body.finish()
        return len(body.so_far())

    return read


def _record(n: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = b"WARC/1.1\r\nWARC-Type: response\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    rest = (packer.compress(b"\0" * MB) for _ in range(n // MB))
    return b"".join(
        [packer.compress(head), *rest, packer.compress(b"\0" * (n % MB)), packer.flush()]
    )


def _tampered(record: bytes) -> object:
    with contextlib.suppress(BadRecord):
        return unpack_response(record, "0" * 64)
    return None


def _redirected(location: str) -> object:
    with contextlib.suppress(FetchError):
        return follow(Hop("GET", look_at(URL), {}), 302, location)
    return None


def _looked_at(url: str) -> object:
    with contextlib.suppress(FetchError):
        return look_at.__wrapped__(url)
    return safe_url(url)


def _json(body: bytes) -> object:
    with contextlib.suppress(FetchError):
        return _served(body).json()
    return None


def _as_text(content_type: str) -> Callable[[bytes], object]:
    return lambda body: decoded(body, content_type)


_HOSTS: dict[str, Callable[[int], str]] = {
    "a long host": lambda n: "http://" + "a" * n,
    "dots": lambda n: "http://" + _times(n, "a."),
    "a foreign host": lambda n: "http://" + "ß" * n + "/",
    "marks out of order": lambda n: "http://a" + _times(n, "\u0323\u0301") + "/",
    "users": lambda n: "http://" + _times(n, "a@") + "b/",
    "a port": lambda n: "http://a:" + "1" * n,
    "brackets": lambda n: "http://[" + _times(n, "1:") + "]/",
    "steps up": lambda n: "http://a/" + _times(n, "../"),
    "escapes": lambda n: "http://a/" + _times(n, "%zz%41"),
    "a query": lambda n: "http://a/?" + _times(n, "a=b&"),
    "a foreign path": lambda n: "http://a/" + "é" * n,
    "blanks": lambda n: " " * n + "http://a/",
}
_DATES: dict[str, Callable[[int], str]] = {
    "digits": lambda n: "1" * n,
    "blanks": lambda n: " " * n + "x",
    "commas": lambda n: _times(n, "a,"),
    "comments": lambda n: "(" * n,
    "words": lambda n: _times(n, "a "),
    "colons": lambda n: "Mon, 01 Jan 2020 " + _times(n, "1:"),
    "a zone": lambda n: "Mon, 01 Jan 2020 00:00:00 +" + "1" * n,
    "a fraction": lambda n: "2020-01-01T00:00:00." + "1" * n,
}
_CODECS = (
    "utf-8 utf-16 utf-16-be iso-8859-1 iso-8859-7 cp866 windows-1252 koi8-r macintosh gbk gb18030 big5"
    " big5-hkscs euc-jp iso-2022-jp shift_jis euc-kr"
).split()
_BODIES: dict[str, Callable[[int], bytes]] = {
    "noise": _noise,
    "no letters": lambda n: b"\xff" * n,
    "holes of a table": lambda n: b"\x81" * n,
    "surrogates": lambda n: _times(n, b"\x00\xdc"),
    "escapes": lambda n: _times(n, b"\x1b$B\xff"),
    "half letters": lambda n: _times(n, b"\xe0\x80"),
}

_PATTERNS = [
    pattern_of(text)
    for text in (
        "*-*-*-*-*.csv",
        "**/a/**/a/**/b",
        "**/*a*a*a*b",
        "in/**/**/*.json",
        "*[-a]*[-a]*?x",
    )
]

PARSERS = [
    Parser("robots.txt", _followed_robots, _ROBOTS, 512_000, 2 * MB, times=60),
    Parser(
        "XML sitemap",
        lambda body: _walked(sitemap_urls, body),
        _SITEMAPS | _packed(_SITEMAPS),
        52 * MB,
        4 * MB,
    ),
    Parser(
        "text sitemap",
        lambda body: _walked(sitemap_urls, body),
        _TEXTS | _packed(_TEXTS),
        52 * MB,
        4 * MB,
    ),
    Parser(
        "feed",
        lambda body: _walked(feed_entries, body),
        _xml(b"rss", b"item", b"title")
        | {f"{name} of a link": build for name, build in _xml(b"feed", b"entry", b"link").items()},
        16 * MB,
        6 * MB,
    ),
    Parser(
        "charset of Content-Type",
        lambda text: decoded(b"", text),
        {
            "blanks": lambda n: "text/html; charset=" + " " * n + "!",
            "blanks before": lambda n: "charset" + " " * n,
            "names": lambda n: _times(n, "charset=? "),
            "words": lambda n: _times(n, "charset"),
            "repeated": lambda n: _times(n, "charset=" + " " * 4_000 + "!"),
        },
        16 * KB * 128,
    ),
    Parser(
        "charset in HTML",
        lambda body: decoded(body, "text/html"),
        {
            "tags": lambda n: _times(n, b"<meta "),
            "blanks": lambda n: b"<meta " + b" " * n,
            "words": lambda n: b"<meta " + _times(n, b"charset"),
            "a declaration": lambda n: b"<?xml " + _times(n, b"encoding="),
        },
        16 * MB,
        times=6,
    ),
    *(
        Parser(
            f"text in {codec}", _as_text(f"text/html; charset={codec}"), _BODIES, 16 * MB, times=9
        )
        for codec in _CODECS
    ),
    Parser(
        "JSON",
        _json,
        {
            "one number": lambda n: b"1" * n,
            "a fraction": lambda n: b"0." + b"1" * n,
            "an exponent": lambda n: b"1e" + b"1" * n,
            "numbers": lambda n: b"[" + _times(n, b"1" * 4000 + b",") + b"1]",
            "depth": lambda n: b"[" * n,
            "closed depth": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
            "lists": lambda n: b"[" + _times(n, b"[],") + b"0]",
            "objects": lambda n: b"[" + _times(n, b"{},") + b"0]",
            "names": _numbered(b"{", '"a{}":0,', b'"a":0}'),
            "one name": lambda n: b"{" + _times(n, b'"a":0,') + b'"a":0}',
            "escapes": lambda n: b'"' + _times(n, b"\\u0041") + b'"',
            "noise": _noise,
        },
        16 * MB,
        times=48,
    ),
    Parser("Retry-After", lambda text: retry_after_s(text, 0.0), _DATES, 16 * KB * 128),
    Parser("lastmod", span_of, _DATES, 64 * KB),
    Parser("Location", _redirected, _HOSTS, 16 * KB * 128),
    Parser("URL", _looked_at, _HOSTS, 64 * KB),
    Parser(
        "response headers",
        keep_headers,
        {
            "one name": lambda n: [("Set-Cookie", "a" * 1000)] * (n // 1000),
            "names": lambda n: [(f"X-{i}", "a" * 1000) for i in range(n // 1000)],
            "needed ones": lambda n: [("Content-Type", "a" * 1000)] * (n // 1000),
        },
        16 * KB * 128,
        times=3,
    ),
    Parser(
        "gzip body",
        _unpacked("gzip"),
        {
            "zeros": lambda n: gzip.compress(b"\0" * n, 9, mtime=0),
            "members": lambda n: _times(n, gzip.compress(b"", mtime=0)),
            "nothing but blocks": lambda n: (
                b"\x1f\x8b\x08\0\0\0\0\0\0\0" + _times(n, b"\0\0\0\xff\xff")
            ),
            "noise": _noise,
        },
        16 * MB,
        # Three times the 4 MB that are allowed to come in here.
        fixed=13 * MB,
    ),
    Parser(
        "deflate body",
        _unpacked("deflate"),
        {"zeros": lambda n: zlib.compress(b"\0" * n, 9), "noise": _noise},
        16 * MB,
        fixed=13 * MB,
    ),
    Parser("snapshot", _tampered, {"tampered": _record}, 400 * MB, fixed=80 * MB),
    Parser(
        "cursor",
        lambda pair: refusal(*pair),
        {
            "digits": lambda n: ("1" * n, "2" * n),
            "dates": lambda n: ("2020-01-01T" + "0" * n, "2020-01-01T" + "1" * n),
            "lists": lambda n: ([1] * n, [1] * (n - 1) + [2]),
            "depth": lambda n: (_nested(min(n, 900), 1), _nested(min(n, 900), 2)),
        },
        256 * KB,
    ),
    Parser(
        "file name",
        lambda path: [pattern.holds(path) for pattern in _PATTERNS],
        {
            "dashes": lambda n: "-" * n,
            "folders": lambda n: _times(n, "a/") + "a",
            "dotted": lambda n: _times(n, "a.csv"),
        },
        4096,
    ),
    Parser(
        "pages of companies",
        builder_inputs.read_page,
        builder_inputs.PAGES,
        2 * MB,
        6 * MB,
        # Two short cells in a row are five nodes of the tree: 61 bytes for each of the page, and its text.
        times=66,
    ),
    Parser(
        "values of companies",
        builder_inputs.read_value,
        builder_inputs.VALUES,
        1 * MB,
        2 * MB,
        times=4,
    ),
    Parser("answers about companies", builder_inputs.read_answer, builder_inputs.ANSWERS, 1 * MB),
]


def _nested(depth: int, leaf: int) -> list[Any]:
    cursor: list[Any] = [leaf]
    for _ in range(depth):
        cursor = [cursor]
    return cursor


def cases() -> list[tuple[Parser, str]]:
    return [(parser, name) for parser in PARSERS for name in parser.inputs]
