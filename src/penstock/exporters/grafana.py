"""Grafana dashboards as JSON: to be imported, or provisioned from a folder."""

from __future__ import annotations

import json
from typing import Any

from penstock.exporters.dashboards import DASHBOARDS, Dashboard, Panel

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# The version of the dashboard's format that this is written for: Grafana 10 and later bring it up to theirs.
SCHEMA_VERSION = 39
WIDTH = 24
STAT, WIDE = (4, 4), (8, 8)


def grafana() -> dict[str, str]:
    """A file for each dashboard, by name."""
    return {
        f"penstock-{each.name}.json": json.dumps(_dashboard(each), indent=2) + "\n"
        for each in DASHBOARDS
    }


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": f"penstock-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["penstock"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": _variables(dashboard.has_sources)},
        "links": [
            {"type": "dashboards", "title": "Penstock", "tags": ["penstock"], "includeVars": True}
        ],
        "panels": _panels(dashboard.panels),
    }


def _variables(has_sources: bool) -> list[dict[str, Any]]:
    chosen = [("instance", "label_values(penstock_info, instance)")]
    if has_sources:
        query = 'label_values(penstock_queue_depth{instance=~"$instance"}, source)'
        chosen.append(("source", query))
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        *(
            {
                "name": name,
                "type": "query",
                "datasource": DATASOURCE,
                "query": {"query": query, "refId": name},
                "refresh": 2,
                "includeAll": True,
                "multi": True,
                "allValue": ".*",
                "current": {"text": "All", "value": "$__all"},
            }
            for name, query in chosen
        ),
    ]


def _panels(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """In rows from left to right; one that does not fit begins the next row."""
    made, x, y, height = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        w, h = STAT if panel.shape == "stat" else WIDE
        if x + w > WIDTH or (height and h != height):
            x, y = 0, y + height
        made.append(_panel(number, panel, {"x": x, "y": y, "w": w, "h": h}))
        x, height = x + w, h
    return made


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    is_moment = panel.shape in ("stat", "table")
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "instant": is_moment,
            "range": not is_moment,
            "format": {"table": "table", "heatmap": "heatmap"}.get(panel.shape, "time_series"),
        }
        for index, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.shape,
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": targets,
    }
