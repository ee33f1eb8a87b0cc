"""Where a key stands in a text, and the same text without it."""

from __future__ import annotations

import gzip
import json

import pytest

from penstock.audit.erasure import ERASED, Needle
from penstock.snapshots.warc import pack_erased


@pytest.mark.parametrize(
    ("key", "text", "erased"),
    [
        ("ann@example.com", "mail ann@example.com, now", f"mail {ERASED}, now"),
        ("ann@example.com", "joann@example.com", "joann@example.com"),
        ("ann@example.com", "/u?m=ann%40example.com&x=1", f"/u?m={ERASED}&x=1"),
        ("4711", "run 4711 of 47110", f"run {ERASED} of 47110"),
        ("17", "run 17 was cancelled", "run 17 was cancelled"),
        ("17", "17", ERASED),
    ],
)
def test_key_is_erased_where_it_stands_as_a_word(key: str, text: str, erased: str) -> None:
    assert Needle(key).erased_text(text) == erased


def test_key_is_erased_from_strings_numbers_and_names_of_json_and_nothing_else_changes() -> None:
    said = {'say "4711"': [4711, 47110, "of 4711", {"x": None, "y": True}]}
    erased = Needle("4711").erased_json(json.dumps(said))
    assert json.loads(erased) == {
        f'say "{ERASED}"': [ERASED, 47110, f"of {ERASED}", {"x": None, "y": True}]
    }
    assert Needle("4712").erased_json('{"a":  1}') == '{"a":  1}'
    assert Needle('q"q"q').is_in_json(json.dumps({"a": 'q"q"q'}))


def test_erased_record_has_exactly_the_length_of_what_it_replaces() -> None:
    for length in (*range(1, 420), 65_535, 65_580, 131_100, 1_000_003):
        record = pack_erased(length)
        assert len(record) == length
        if length >= 24:
            content = gzip.decompress(record)
            assert content.strip() == b"" or content.startswith(b"WARC/1.1\r\nWARC-Type: meta")
