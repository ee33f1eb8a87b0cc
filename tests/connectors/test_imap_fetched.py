"""Answers to FETCH: what is read the short way is what imapclient's parser reads."""

from __future__ import annotations

import random
from typing import Any

import pytest
from imapclient.exceptions import ProtocolError
from imapclient.response_parser import parse_fetch_response

from penstock.connectors.imap.fetched import read_fetched

PARTS = (
    b"UID 7|UID 8|uid 9|FLAGS ()|FLAGS (\\Seen)|FLAGS (\\Seen $Junk a.b)|FLAGS NIL|FLAGS (\\*)|"
    b'RFC822.SIZE 2345|MODSEQ (12)|INTERNALDATE "02-Mar-2026 10:00:00 +0000"|'
    b'INTERNALDATE " 2-Mar-2026 10:00:00 -0830"|INTERNALDATE "31-Feb-2026 10:00:00 +0000"|'
    b'INTERNALDATE "02-Mar-2026 10:00:00 GMT"|INTERNALDATE NIL|X-GM-LABELS ("a b")|BODY[]|FLAGS ("a"'
).split(b"|")


def _said(chance: random.Random) -> list[Any]:
    said: list[Any] = []
    for number in range(1, chance.randrange(1, 4)):
        parts = b" ".join(chance.choices(PARTS, k=chance.randrange(1, 5)))
        if chance.random() < 0.5:
            said.append(b"%d (%s)" % (number, parts))
            continue
        message = chance.choice((b"", b"From: a\r\n\r\n(text) UID 9", b'"', b"\xff"))
        said.append((b"%d (%s BODY[] {%d}" % (number, parts, len(message)), message))
        said.append(chance.choice((b")", b" FLAGS (\\Seen))", b" UID 11)", b"")))
    return said


def test_answer_that_is_read_the_short_way_is_the_one_that_imapclient_parses() -> None:
    chance, short = random.Random(7), 0
    for _ in range(20_000):
        said = _said(chance)
        found = read_fetched(said)
        if found:
            short += 1
            whole = parse_fetch_response(said, normalise_times=False, uid_is_key=True)
            assert found == whole, said
    assert short > 500, "hardly an answer was read the short way"


@pytest.mark.parametrize(
    "said", [[None], [b"1 (FLAGS ())"], [b"1 (UID 7 FLAGS ("], [(b"1 (UID 7 BODY[] {3}", b"abc")]]
)
def test_answer_that_is_not_understood_is_left_to_the_other_parser(said: list[Any]) -> None:
    assert read_fetched(said) is None


def test_what_imapclient_refuses_is_not_read_the_short_way() -> None:
    said = [b'1 (UID 7 FLAGS ("a"'] * 2
    with pytest.raises(ProtocolError):
        parse_fetch_response(said, normalise_times=False)
    assert read_fetched(said) is None
