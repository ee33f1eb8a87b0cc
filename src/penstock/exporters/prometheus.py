"""Files for Prometheus: alert and recording rules, and an example of what scrapes a project."""

from __future__ import annotations

from typing import Any

import yaml

from penstock.exporters.prometheus_rules import ALERTS, RECORDING, AlertRule

RULES_FILE, SCRAPE_FILE = "penstock-rules.yml", "penstock-scrape.yml"
RULES_HEAD = """\
# Rules for Prometheus, made by Penstock: name this file under `rule_files` in prometheus.yml.
# Thresholds are starting points; change them to fit.
"""
SCRAPE_HEAD = """\
# Put this into prometheus.yml. The token is in a file that only Prometheus can read; its role is viewer.
# Counters move every few seconds: scraping more often than every 15 s shows nothing new.
"""
TOKEN_FILE = "/etc/prometheus/penstock.token"  # noqa: S105  a path
TARGET = "127.0.0.1:8787"


def prometheus(project: str) -> dict[str, str]:
    """The files by name."""
    return {
        RULES_FILE: RULES_HEAD + _yaml({"groups": _groups()}),
        SCRAPE_FILE: SCRAPE_HEAD + _yaml(_scrape(project)),
    }


def _groups() -> list[dict[str, Any]]:
    recording = [{"record": each.name, "expr": each.expression} for each in RECORDING]
    return [
        {"name": "penstock-rates", "rules": recording},
        {"name": "penstock-alerts", "rules": [_alert(each) for each in ALERTS]},
    ]


def _alert(rule: AlertRule) -> dict[str, Any]:
    annotations = {"summary": rule.summary}
    if rule.runbook:
        annotations["runbook"] = rule.runbook
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": rule.holds,
        "labels": {"severity": rule.severity},
        "annotations": annotations,
    }


def _scrape(project: str) -> dict[str, Any]:
    job = {
        "job_name": "penstock",
        "scrape_interval": "30s",
        "metrics_path": "/metrics",
        "authorization": {"type": "Bearer", "credentials_file": TOKEN_FILE},
        "static_configs": [{"targets": [TARGET], "labels": {"instance": project}}],
    }
    return {"rule_files": [RULES_FILE], "scrape_configs": [job]}


def _yaml(value: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text
