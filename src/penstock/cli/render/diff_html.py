"""A replay's difference as one page of HTML that needs nothing else: no script, no picture, no address.

What was fetched is hostile until proven otherwise: every text is escaped, characters that hide or turn
around others are shown and not obeyed, and the page forbids itself everything but its own style.
"""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.cli.render.diffs import change_words, score_words
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.app.views.replays import ChangeView, DiffView

LONGEST_VALUE = 4000
OPEN_RECORDS = 20
STYLE = """
:root { color-scheme: light dark; --line: #8885; --soft: #8882; }
:root { --add: #1a7f37; --gone: #cf222e; --new: #0969da; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
ul.totals { display: flex; flex-wrap: wrap; gap: .75rem; padding: 0; list-style: none; }
ul.totals li { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; min-width: 6rem; }
ul.totals b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { width: 24%; }
td, summary { overflow-wrap: anywhere; white-space: pre-wrap; }
td code { font: 13px/1.4 ui-monospace, monospace; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } summary code { font-weight: 600; }
.tag { display: inline-block; border-radius: .3rem; padding: 0 .5rem; margin-right: .5rem; }
.tag { background: var(--soft); }
.added .tag { color: var(--add); } .removed .tag { color: var(--gone); } .changed .tag { color: var(--new); }
td.before code { color: var(--gone); } td.after code { color: var(--add); }
p.note { color: #777; }
"""


def page(
    diff: DiffView, as_json: Callable[[Any], str], tidy: Callable[[str], str]
) -> Iterator[str]:
    """The page, piece by piece. `as_json` and `tidy` mask what is secret."""

    def text(value: object) -> str:
        return escape(_visible(tidy(str(value))), quote=True)

    def code(value: Any) -> str:
        if value is msgspec.UNSET:
            return ""
        shown = as_json(value)
        if len(shown) > LONGEST_VALUE:
            shown = f"{shown[:LONGEST_VALUE]}… ({len(shown):,} characters)"
        return f"<code>{escape(_visible(shown), quote=True)}</code>"

    run = diff.run
    what = f"of run {run.of_run_id}" if run.of_run_id is not None else "of several runs"
    title = f"Replay {run.id} {what}: {run.source}"
    yield "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
    yield f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n<h1>{text(title)}</h1>\n"
    yield f"<p>{text(_about(diff))}</p>\n"
    yield from _totals(diff, text)
    yield from _fields(diff, text)
    yield from _rejects(diff, text)
    yield "<h2>Records</h2>\n"
    for number, change in enumerate(diff.first):
        yield from _record(change, text, code, is_open=number < OPEN_RECORDS)
    yield f'<p class="note">{text(_rest(diff))}</p>\n</html>\n'


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _about(diff: DiffView) -> str:
    run = diff.run
    failed = f", {run.quarantined} failed" if run.quarantined else ""
    return f"{count(run.counts['pages'], 'page')}, {run.state}{failed}; pipeline {run.pipeline_version}"


def _totals(diff: DiffView, text: Callable[[object], str]) -> Iterator[str]:
    totals = diff.totals
    yield '<ul class="totals">'
    for name in ("removed", "changed", "added", "same", "conflicts", "newer"):
        yield f"<li>{name}<b>{getattr(totals, name):,}</b></li>"
    yield "</ul>\n"
    if scores := score_words(totals):
        yield f"<p>Scores: {text(scores)}</p>\n"


def _fields(diff: DiffView, text: Callable[[object], str]) -> Iterator[str]:
    if not diff.totals.fields:
        return
    yield "<h2>Fields</h2>\n<table><tr><th>field<th>records\n"
    for name, number in diff.totals.fields.items():
        yield f"<tr><td><code>{text(name)}</code><td>{number:,}\n"
    yield "</table>\n"


def _rejects(diff: DiffView, text: Callable[[object], str]) -> Iterator[str]:
    rejected = diff.rejected
    if not rejected.now and not rejected.before:
        return
    yield f"<h2>Rejected</h2>\n<p>{rejected.now:,} now, {rejected.before:,} before.</p>\n<table>"
    yield "<tr><th>only<th>stage<th>key<th>reason\n"
    for when, found in (("now", rejected.only_now), ("before", rejected.only_before)):
        for each in found.first:
            cells = (when, each["stage"], each["key"], each.get("reason") or "")
            yield f"<tr>{''.join(f'<td>{text(cell)}' for cell in cells)}\n"
    yield "</table>\n"


def _record(
    change: ChangeView,
    text: Callable[[object], str],
    code: Callable[[Any], str],
    *,
    is_open: bool,
) -> Iterator[str]:
    opened = " open" if is_open else ""
    name = f"{text(change.collection)} <code>{text(change.key)}</code>"
    tag = f'<span class="tag">{text(change_words(change))}</span>'
    yield f'<details class="{change.kind}"{opened}><summary>{tag}{name}</summary>\n'
    yield "<table><tr><th>field<th>before<th>after\n"
    for field in change.fields:
        yield f"<tr><td><code>{text(field.field)}</code>"
        yield f'<td class="before">{code(field.before)}<td class="after">{code(field.after)}\n'
    if change.score_before != change.score_after:
        yield "<tr><td>score"
        yield f"<td>{code(_or_nothing(change.score_before))}<td>{code(_or_nothing(change.score_after))}\n"
    yield "</table></details>\n"


def _or_nothing(score: float | None) -> Any:
    return msgspec.UNSET if score is None else score


def _rest(diff: DiffView) -> str:
    totals = diff.totals
    everything = totals.differences + totals.left_alone
    if everything > len(diff.first):
        return f"The first {len(diff.first):,} of {everything:,} records; --json has all of them."
    return "These are all of them." if everything else "Nothing differs."


def _visible(text: str) -> str:
    """Characters that hide or turn around others are shown as what they are."""
    if text.isascii():
        return text
    return "".join(
        f"\\u{ord(char):04x}" if unicodedata.category(char) in ("Cf", "Cc", "Cs", "Co") else char
        for char in text
    )
