"""The page of a difference: everything from outside is text in it, and it asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import msgspec
import pytest

from penstock.app.diffs import Diff
from penstock.app.views.replays import diff_view
from penstock.cli.render.diff_html import LONGEST_VALUE, STYLE, page
from penstock.cli.render.diffs import tell_changes, tell_rejects, tell_totals
from penstock.cli.render.output import Output
from penstock.jobs.diff import NOTHING, FieldChange
from penstock.jobs.record_changes import RecordChange, Totals
from penstock.store.replays import Rejects
from penstock.store.rows import RunRow

PAYLOADS = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><svg/onload=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</code></td></table><iframe src=javascript:alert(1)>",
    "<!--<img src=x onerror=alert(1)>-->",
    "<a href='javascript:alert(1)'>x</a>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<meta http-equiv=refresh content=0;url=https://evil.example>",
    "\u202e<gnp.exe>\u2066\u200b\x00\x1b[31m\x9b31m",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "<style>@import url(https://evil.example)</style>",
    "<base href=https://evil.example>",
    "<details open ontoggle=alert(1)>",
    "]]><script>alert(1)</script>",
    "<math><mtext><script>alert(1)</script>",
]
ALLOWED = set(
    "html meta title style h1 h2 p ul li b table tr th td code details summary span".split()
)
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "open"}


class Elements(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def a_run(source: str = "acme.com", **more: Any) -> RunRow:
    about = {
        "id": 14, "source_id": 1, "source": source, "kind": "replay", "state": "partial", "actor": "ops",
        "reason": "", "pipeline_version": "v2", "created_at": 0.0, "started_at": 0.0, "finished_at": 1.0,
        "inserted": 0, "updated": 0, "unchanged": 0, "rejected": 0, "retried": 0, "throttled": 0,
        "pages": 3, "quarantined": 1, "of_run_id": 12, **more,
    }  # fmt: skip
    return msgspec.convert(about, RunRow)


def a_diff(text: str) -> Diff:
    """A difference that has this text wherever something from outside can stand."""
    change = FieldChange((text, 0, "x"), text, {text: [text]})
    changes = [
        RecordChange(text, text, "changed", "", 0.1, 0.9, [change, FieldChange((), NOTHING, None)]),
        RecordChange(text, text, "added", "", None, 0.5, [FieldChange((text,), NOTHING, text)]),
        RecordChange(text, text, "removed", "conflict", 0.5, None, []),
    ]
    totals = Totals()
    for each in changes:
        totals.count(each)
    rejects = Rejects(1, 1, [{"stage": text, "key": text, "reason": text}])
    return Diff(a_run(text), totals, changes, rejects, rejects)


def written(diff: Diff, secrets: frozenset[str] = frozenset()) -> str:
    out = Output(StringIO(), StringIO())
    out.secrets = secrets
    return "".join(page(diff_view(diff, 0.0), out.as_json, out.tidy))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_from_outside_makes_no_element(payload: str) -> None:
    plain, hostile = Elements(), Elements()
    plain.feed(written(a_diff("plain")))

    hostile.feed(written(a_diff(payload)))

    assert hostile.seen == plain.seen, "it has the same elements as with harmless text"
    assert {tag for tag, _ in hostile.seen} <= ALLOWED
    assert {name for _, attrs in hostile.seen for name, _ in attrs} <= ATTRIBUTES


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_control_or_direction_character_is_left(payload: str) -> None:
    found = written(a_diff(payload)).replace("\n", "")

    assert (
        re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", found)
        is None
    )


def test_page_needs_nothing_and_forbids_itself_everything_but_its_style() -> None:
    found = written(a_diff("plain"))
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

    assert f"default-src 'none'; style-src 'sha256-{digest}'" in found
    assert f"<style>{STYLE}</style>" in found
    assert not re.search(r"<script|<link|<img|src=|href=|url\(|https?:", found)


def test_numbers_fields_and_records_are_told() -> None:
    elements = Elements()
    elements.feed(written(a_diff("plain")))
    text = " ".join(" ".join(elements.text).split())

    for expected in ("Replay 14 of run 12", "3 pages, partial, 1 failed", "added 1", "conflicts 1"):
        assert expected in text
    assert "left alone: changed by another run since" in text
    assert "Scores: 1 up, 0 down, +0.8 on the average" in text
    assert "1 now, 1 before." in text


def test_secret_is_masked_and_a_long_value_is_cut() -> None:
    long = "x" * (LONGEST_VALUE + 100)
    change = RecordChange(
        "c", "k", "changed", "", None, None, [FieldChange(("a",), "s3cr3t!", long)]
    )
    empty = Rejects(0, 0, [])

    found = written(Diff(a_run(), Totals(), [change], empty, empty), frozenset({"s3cr3t!"}))

    assert "s3cr3t!" not in found
    assert long not in found
    assert "characters)" in found


def test_nothing_that_differs_is_said() -> None:
    empty = Rejects(0, 0, [])

    assert "Nothing differs." in written(Diff(a_run(), Totals(), [], empty, empty))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_terminal_is_told_nothing_it_would_obey(payload: str) -> None:
    stdout = StringIO()
    out, diff = Output(stdout, StringIO()), diff_view(a_diff(payload), 0.0)

    tell_totals(out, diff.totals)
    tell_changes(out, diff.first)
    tell_rejects(out, diff.rejected, 20)

    found = stdout.getvalue().replace("\n", "")
    assert re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", found) is None
