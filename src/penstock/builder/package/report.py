"""The quality report: one page of HTML with its charts inside, and the data dictionary."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.builder.company import FIELDS
from penstock.builder.package.charts import Bar, bars, columns
from penstock.builder.quality import ISSUES, WEIGHTS, Kpi, QualitySummary
from penstock.builder.quality.summary import BUCKETS

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#1c2733}
table{border-collapse:collapse;margin:.5em 0 1.5em}
td,th{padding:.25em .9em .25em 0;text-align:left;vertical-align:top}
th{border-bottom:1px solid #9ab}td.n{text-align:right;font-variant-numeric:tabular-nums}
svg{font:12px system-ui,sans-serif;fill:#1c2733;display:block;margin:.5em 0 1.5em;max-width:100%}
rect.all{fill:#c9d6e2}rect.good{fill:#2f6f9f}.met{color:#1d6b33}.missed{color:#a3241b;font-weight:600}
"""
# Whatever a name holds, a browser runs and loads nothing of it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report(
    title: str, summary: QualitySummary, targets: Sequence[Kpi], about: Mapping[str, Any]
) -> bytes:
    """The page. Everything that comes from outside is escaped."""
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p>{summary.companies} companies{_from_rows(summary)}.</p>",
        _table(["", ""], [[name, value] for name, value in about.items()]) if about else "",
        "<h2>Targets</h2>",
        _targets(targets),
        "<h2>Scores</h2><p>Companies by their quality score.</p>",
        columns([f"{at * 10}–{at * 10 + 10}" for at in range(BUCKETS)], summary.scores),
        "<h2>Fields</h2><p>Companies that have the field, in percent; darker: without an issue.</p>",
        _fields(summary),
        "<h2>Issues</h2>",
        _issues(summary),
        "<h2>Duplicates</h2>",
        f"<p>{summary.duplicates} likely duplicates ({_figure(summary.dup_pct)} %).</p>",
    ]
    page = (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )
    return page.encode("utf-8", "backslashreplace")


def _text(value: Any) -> str:
    return html.escape(str(value)[:500])


def _from_rows(summary: QualitySummary) -> str:
    return f", made of {summary.rows} rows" if summary.rows else ""


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    top = "".join(f"<th>{_text(each)}</th>" for each in head)
    lines = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{top}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _targets(targets: Sequence[Kpi]) -> str:
    if not targets:
        return "<p>No targets are set.</p>"
    rows = "".join(
        f"<tr><td>{_text(each.name)}</td><td class=n>{_figure(each.value)}</td>"
        f"<td class=n>{_figure(each.target)}</td>"
        f"<td class={'met' if each.is_met else 'missed'}>{'met' if each.is_met else 'not met'}</td></tr>"
        for each in targets
    )
    return f"<table><tr><th>target</th><th>is</th><th>should be</th><th></th></tr>{rows}</table>"


def _fields(summary: QualitySummary) -> str:
    each = [
        Bar(name, found.complete_pct, found.valid_pct, f"{found.complete_pct:g} %")
        for name, found in summary.fields.items()
    ]
    return bars(each, 100.0)


def _issues(summary: QualitySummary) -> str:
    if not summary.issues:
        return "<p>None.</p>"
    most = sorted(summary.issues.items(), key=lambda item: (-item[1], item[0]))
    drawn = bars([Bar(name, count, 0, str(count)) for name, count in most], float(most[0][1]))
    meanings = _table(
        ["issue", "meaning"], [[name, ISSUES[name][1]] for name, _ in most if name in ISSUES]
    )
    return drawn + meanings


def dictionary(title: str, summary: QualitySummary) -> bytes:
    """The columns of the dataset in Markdown: type, meaning, how complete, and weight in the score."""
    lines = [
        f"# {_line(title)}",
        "",
        "| column | type | meaning | complete | points |",
        "|---|---|---|---|---|",
    ]
    for field in FIELDS:
        found = summary.fields.get(field.name)
        complete = "" if found is None else f"{found.complete_pct:g} %"
        points = f"{WEIGHTS[field.name]:g}" if field.name in WEIGHTS else ""
        lines.append(f"| `{field.name}` | {field.kind} | {field.meaning} | {complete} | {points} |")
    lines += ["", "Issues of companies:", "", "| issue | column | meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}` | `{column}` | {meaning} |" for name, (column, meaning) in ISSUES.items()
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _line(text: str) -> str:
    """Text as one line of Markdown, in which nothing is markup."""
    bare = " ".join(text.split())[:200]
    return "".join(f"\\{char}" if char in "\\`*_{}[]()<>#|!" else char for char in bare)
