"""Questions for Metabase as SQL files, and how they make a dashboard.

Not in Metabase's serialization format: only its paid plans import that, and SQL can be pasted into each.
"""

from __future__ import annotations

from penstock.exporters.questions import DAY, HOUR, QUESTIONS, WITHIN, Question

README = "README.md"
# A question of Metabase has no chosen time unless somebody adds a filter: the last week.
PLAIN = {
    HOUR: "date_trunc('hour', created_at) AS time",
    DAY: "date_trunc('day', created_at) AS time",
    WITHIN: "created_at > NOW() - INTERVAL '7 days'",
}
CHARTS = {"table": "Table", "stat": "Number", "bars": "Bar", "lines": "Line"}
HEAD = """\
# Penstock in Metabase

Made by `penstock export metabase`. Connect Metabase to the database as a role that has `penstock_reader` and
the schema of the views in its `search_path`. For each file: New > SQL query, paste it, choose the
visualization below, save it under its title. Then New > Dashboard, and add them in this order.

| file | title | visualization | |
|---|---|---|---|
"""


def metabase() -> dict[str, str]:
    """The files by name."""
    files = {f"{each.name}.sql": _file(each) for each in QUESTIONS}
    lines = [
        f"| {each.name}.sql | {each.title} | {CHARTS[each.chart]} | {each.about} |\n"
        for each in QUESTIONS
    ]
    return {README: HEAD + "".join(lines), **files}


def _file(question: Question) -> str:
    text = question.sql
    for name, plain in PLAIN.items():
        text = text.replace(name, plain)
    return f"-- {question.title}. Visualization: {CHARTS[question.chart]}.\n{text}\n"
