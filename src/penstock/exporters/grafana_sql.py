"""A Grafana dashboard on the views of the SQL interface, by Grafana's datasource for Postgres."""

from __future__ import annotations

import json
from typing import Any

from penstock.exporters.grafana import SCHEMA_VERSION, STAT, WIDTH
from penstock.exporters.questions import DAY, HOUR, QUESTIONS, WITHIN, Question

DATASOURCE = {"type": "grafana-postgresql-datasource", "uid": "${datasource}"}
# Grafana fills in the time that was chosen.
MACROS = {
    HOUR: "$__timeGroupAlias(created_at, '1h')",
    DAY: "$__timeGroupAlias(created_at, '24h')",
    WITHIN: "$__timeFilter(created_at)",
}
SHAPES = {"table": "table", "stat": "stat", "bars": "barchart", "lines": "timeseries"}
WIDE = (12, 8)


def grafana_sql() -> dict[str, str]:
    """The file by its name."""
    dashboard = {
        "uid": "penstock-jobs",
        "title": "Penstock: ingestion jobs",
        "tags": ["penstock"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": DATASOURCE["type"]}]
        },
        "links": [
            {"type": "dashboards", "title": "Penstock", "tags": ["penstock"], "includeVars": True}
        ],
        "panels": _panels(),
    }
    return {"penstock-jobs.json": json.dumps(dashboard, indent=2) + "\n"}


def _panels() -> list[dict[str, Any]]:
    made, x, y, height = [], 0, 0, 0
    for number, question in enumerate(QUESTIONS, 1):
        w, h = STAT if question.chart == "stat" else WIDE
        if x + w > WIDTH or (height and h != height):
            x, y = 0, y + height
        made.append(_panel(number, question, {"x": x, "y": y, "w": w, "h": h}))
        x, height = x + w, h
    return made


def _panel(number: int, question: Question, place: dict[str, int]) -> dict[str, Any]:
    text = question.sql
    for name, macro in MACROS.items():
        text = text.replace(name, macro)
    target = {
        "refId": "A",
        "datasource": DATASOURCE,
        "editorMode": "code",
        "rawQuery": True,
        "rawSql": text,
        "format": "time_series" if question.is_by_time else "table",
    }
    return {
        "id": number,
        "type": SHAPES[question.chart],
        "title": question.title,
        "description": question.about,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {}, "overrides": []},
        "targets": [target],
    }
