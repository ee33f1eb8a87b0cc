"""Formats: what bytes say, and what they can't do."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from email import message_from_bytes
from email.utils import getaddresses, parsedate_to_datetime
from itertools import product
from typing import Any

import pytest

from penstock.connectors.formats import Parsed, kind_of, mail, office, parse
from penstock.jobs.failures import BadData
from tests.hostile.costs import growth

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def parsed(name: str, body: str | bytes, url: str = "") -> Parsed:
    data = body.encode() if isinstance(body, str) else body
    return parse(kind_of(name, data), data, name=name, url=url)


def archive(**members: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in members.items():
            packed.writestr(name.replace("__", "/") + ".xml", text)
    return made.getvalue()


def test_markdown_has_its_heading_front_matter_and_links() -> None:
    found = parsed(
        "a.md", "---\ntags: [a, b]\n---\n# Title #\n\n[x](http://e.com/x) [[Other note|alias]]\n"
    )
    assert (found.title, found.meta, found.links) == (
        "Title",
        {"tags": ["a", "b"]},
        ["http://e.com/x", "[[Other note]]"],
    )


def test_broken_front_matter_is_part_of_the_text() -> None:
    found = parsed("a.md", "---\n{broken\n---\ntext")
    assert (found.meta, found.text) == ({}, "---\n{broken\n---\ntext")


def test_html_has_its_main_text_links_and_what_it_says_of_itself() -> None:
    page = """<html lang=en><head><title>T</title><meta name=description content="About it">
    <link rel=canonical href="/canonical"><meta property="og:type" content="article">
    <script type="application/ld+json">{"@type": "Product", "name": "Tea"}</script></head>
    <body><nav>Menu</nav><main><h1>Tea</h1><p>Green <b>tea</b>.</p>
    <div itemscope itemtype="https://schema.org/Offer"><span itemprop=price content="2.50">x</span></div>
    <a href="/next#part">next</a><a href="javascript:alert(1)">no</a></main><footer>Foot</footer></body>"""
    found = parsed("a.html", page, "https://shop.example/tea")
    assert (found.title, found.text) == ("T", "Tea\n\nGreen tea.\n\nx\nnextno")
    assert found.links == ["https://shop.example/next"]
    assert found.meta == {
        "description": "About it",
        "language": "en",
        "canonical": "/canonical",
        "og": {"type": "article"},
    }
    assert found.data == {
        "json_ld": [{"@type": "Product", "name": "Tea"}],
        "microdata": [{"type": "https://schema.org/Offer", "price": "2.50"}],
    }


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("a.csv", "name;price\ntea;2,50\n", [{"name": "tea", "price": "2,50"}]),
        ("a.tsv", "a\ta\n1\t2\n", [{"a": "1", "a 2": "2"}]),
        ("a.csv", '\ufeffx,y\n"1,5",\n', [{"x": "1,5", "y": ""}]),
        ("a.jsonl", '{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("a.json", '[{"a": 1}]', [{"a": 1}]),
    ],
)
def test_tables_become_rows(name: str, text: str, rows: list[dict[str, Any]]) -> None:
    found = parsed(name, text)
    assert (found.data, found.meta["rows"]) == (rows, len(rows))


def test_a_long_table_is_cut_and_says_so() -> None:
    found = parsed("a.csv", "n\n" + "".join(f"{n}\n" for n in range(5_000)))
    assert (len(found.data), found.meta["rows"], found.meta["cut"]) == (1_000, 5_000, True)


def test_mail_has_its_headers_text_and_attachments() -> None:
    mail = (
        b"From: =?utf-8?q?J=C3=B6rg?= <j@example.com>\r\nTo: a@example.com, b@example.com\r\n"
        b"Subject: =?iso-8859-1?q?Gr=FC=DFe?=\r\nDate: Tue, 1 Oct 2024 10:00:00 +0200\r\n"
        b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html; '
        b"charset=nonsense\r\n\r\n<p>Hello <b>you</b></p>\r\n--x\r\nContent-Type: application/pdf\r\n"
        b"Content-Disposition: attachment; filename=bill.pdf\r\n\r\nPDF\r\n--x--\r\n"
    )
    found = parsed("a.eml", mail)
    assert (found.title, found.text) == ("Grüße", "Hello you")
    assert found.meta["from"] == ["j@example.com"]
    assert found.meta["date"] == "2024-10-01T08:00:00+00:00"
    assert found.meta["attachments"] == [
        {"name": "bill.pdf", "type": "application/pdf", "bytes": 3}
    ]


def test_office_files_become_text_and_rows() -> None:
    docx = archive(
        word__document=f'<w:document xmlns:w="{W}"><w:body><w:p><w:r><w:t>One</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>Two</w:t><w:tab/><w:t>three</w:t></w:r></w:p></w:body></w:document>"
    )
    assert parsed("a.docx", docx).text == "One\nTwo\tthree"
    xlsx = archive(
        xl__sharedStrings=f'<sst xmlns="{S}"><si><t>name</t></si>'
        "<si><r><t>te</t></r><r><t>a</t></r></si></sst>",
        xl__worksheets__sheet1=f'<worksheet xmlns="{S}"><sheetData><row><c r="A1" t="s"><v>0</v></c>'
        '<c r="C1" t="inlineStr"><is><t>price</t></is></c></row><row><c r="A2" t="s"><v>1</v></c>'
        '<c r="C2"><v>2.5</v></c></row></sheetData></worksheet>',
    )
    assert parsed("a.xlsx", xlsx).data == [{"name": "tea", "column 2": "", "price": "2.5"}]


def test_pdf_has_the_text_of_its_pages() -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.add_metadata({"/Title": "A bill"})
    made = io.BytesIO()
    writer.write(made)
    found = parsed("a.pdf", made.getvalue())
    assert (found.kind, found.title, found.meta) == ("pdf", "A bill", {"pages": 1})


def test_parquet_has_its_columns_and_rows() -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made = io.BytesIO()
    parquet.write_table(arrow.table({"a": [1, 2], "b": ["x", None]}), made)
    found = parsed("a.parquet", made.getvalue())
    assert (found.data, found.meta["rows"]) == ([{"a": 1, "b": "x"}, {"a": 2, "b": None}], 2)


HOSTILE: dict[str, str | bytes] = {
    "doctype.docx": archive(word__document='<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'),
    "deep.json": "[" * 200_000,
    "broken.json": '{"a": NaN',
    "broken.jsonl": '{"a": 1}\n{',
    "broken.docx": "PK\x03\x04 not an archive",
    "broken.xlsx": archive(xl__workbook="<x/>"),
    "broken.eml": b"\xff\xfe\x00",
    "broken.pdf": b"%PDF-1.7\n" + b"\x00" * 1000,
    "wide.csv": "," * 3_000,
    "quote.csv": 'a,b\n"' + "x" * 200_000,
}
HARMLESS: dict[str, Callable[[int], str]] = {
    "deep.html": lambda n: "<div>" * 2_000 * n + "deep",
    "links.html": lambda n: "<a href='/x'>x</a>" * 2_000 * n,
    "stars.md": lambda n: "[" * 5_000 * n + "](" * 5_000 * n,
    "front.md": lambda n: "---\na: &a [x]\nb: [" + "*a, " * 200 * n + "]\n---\n",
    "zero.txt": lambda n: "a\0b" * 1_000 * n,
    "lone.json": lambda n: '{"a": "\\ud800"}' * n,
    "big.json": lambda n: '{"a": 1' + "0" * 400 * n + "}",
    "quotes.csv": lambda n: 'a,b\n"' + '""' * 2_000 * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_of_its_kind_is_bad_data(name: str) -> None:
    if name.endswith(".pdf"):
        pytest.importorskip("pypdf")
    with pytest.raises(BadData):
        parsed(name, HOSTILE[name])


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_UNPACKED", 1_000_000)
    bomb = archive(word__document=f'<w:document xmlns:w="{W}">' + "<w:p/>" * 500_000)
    assert len(bomb) < 20_000
    with pytest.raises(BadData, match="unpacks to more"):
        parsed("bomb.docx", bomb)


@pytest.mark.parametrize("name", HARMLESS)
def test_odd_files_take_time_in_proportion_to_their_length(name: str) -> None:
    def read(times: int) -> None:
        with suppress(BadData):
            found = parsed(name, HARMLESS[name](times), "https://a.example/")
            assert "\0" not in found.text

    small, large = growth(lambda: read(1), lambda: read(4), rounds=3)
    assert large < 12 * small + 0.01


MAIL_PIECES = (
    "From: a@b|Subject: x|\r\n|\n|\r| |\t|:||Content-Type: text/plain|"
    "Content-Type: multipart/mixed; boundary=b|--b|Content-Transfer-Encoding: base64|"
    "aGVsbG8=|\x0c|\x85|é|From x|X:|x y: z|"
    "\r\n\r\n|\n\n|\r\n|\r\n|\r\n|Content-Type: message/rfc822"
).split("|")


def test_message_that_is_read_the_short_way_is_the_one_that_email_parses() -> None:
    """The short way must not read any broken message otherwise."""
    chance, plain = random.Random(4), 0
    for _ in range(8_000):
        pieces = chance.choices(MAIL_PIECES, k=chance.randrange(1, 16))
        body = "".join(pieces).encode()
        found, whole = mail.message_of(body), message_from_bytes(body)
        plain += mail.plain_message(body) is not None
        assert list(found.raw_items()) == list(whole.raw_items()), body
        assert found.is_multipart() == whole.is_multipart(), body
        if not whole.is_multipart():
            assert found.get_payload() == whole.get_payload(), body
    assert plain > 200, "hardly a message took the short way"


def test_text_that_is_read_the_short_way_is_the_one_that_email_parses() -> None:
    pieces = (
        "Content-Type: text/plain\r\n|Content-Type: TEXT/plain; charset=utf-8\r\n|"
        'Content-Type: text/plain; charset="latin-1"\r\n|Content-Type: text/plain;\r\n charset=koi8-r\r\n|'
        "Content-Type: text/html\r\n|Content-Type: text/plain; charset=no-such\r\n|Content-Type: nothing\r\n|"
        "Content-Type: text/plain; name=a.txt\r\n|Content-Type: text/plain; charset=utf-8; format=flowed\r\n|"
        "Content-Transfer-Encoding: 8BIT\r\n|Content-Transfer-Encoding: base64\r\n|"
        "Content-Transfer-Encoding: quoted-printable\r\n|Content-Transfer-Encoding: 7bit\r\n|"
        "Content-Disposition: attachment\r\n|Content-Disposition: inline\r\n|Subject: é\r\n"
    ).split("|")
    chance, short = random.Random(6), 0
    for _ in range(8_000):
        head = "".join(chance.choices(pieces, k=chance.randrange(1, 4)))
        body = (
            head.encode() + b"\r\n" + chance.choice((b"caf\xe9", b"plain =41", "é\r\nü".encode()))
        )
        whole = message_from_bytes(body)
        headers, text, attached = mail.content_of(body)
        assert headers == mail.headers_of(whole.raw_items()), body
        assert (text, attached) == mail.parts_of(whole), body
        short += mail.plain_text(headers, b"") is not None
    assert 2_000 < short < 6_000


def test_date_that_is_read_the_short_way_is_the_one_that_email_parses() -> None:
    days, hours = ("1", "02", "31", "30 ", " 5"), ("10:00:00", "23:59:60", "7:00:00", "09:05")
    zones = ("+0000", "-0000", "+0530", "-1459", "+9900", "GMT", "", "-0800 (PST)", "+0161")
    months, years = ("Feb", "Mar", "Dec", "Foo", "feb"), ("2026", "1999", "26", "0001", "9999")
    weekdays = ("Mon, ", "", "Monday, ")
    for parts in product(weekdays, days, months, years, hours, zones):
        header = parts[0] + " ".join(parts[1:])
        assert mail.date_of(header) == _date_by_email(header), header


def _date_by_email(header: str) -> str:
    try:
        found = parsedate_to_datetime(header)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def test_address_that_is_read_the_short_way_is_the_one_that_email_parses() -> None:
    pieces = "Ada |<|>|a@b.c|ada.l@x-y.org|,|\"|(c)| |'|J. |@|.|_|a".split("|")
    chance = random.Random(5)
    for _ in range(8_000):
        header = "".join(chance.choices(pieces, k=chance.randrange(1, 6)))
        expected = [address for _, address in getaddresses([header]) if address]
        found = mail.addresses_of(header)
        assert found == expected, header
