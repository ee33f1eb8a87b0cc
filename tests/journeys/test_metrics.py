"""The real Prometheus scrapes a project that works, and is asked everything that dashboards and rules ask."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.metrics.registry import FAMILIES
from tests.journeys.rig import Rig, counting_site, source_of, until
from tests.postgres.ports import free_port
from tests.programs import needed

# What has no series in a project to which nothing bad has happened; all other queries must find something.
QUIET = re.compile(
    r"penstock_(budget|sla_breach|alerts|kpi_mean_recovery|kpi_operator|recover|schedule_overdue|quality"
    r"|jobs\{|queue_oldest|quarantine)"
)
CHOICES = {"$instance": ".*", "$source": ".*", "$__rate_interval": "30s"}


@dataclass
class Prometheus:
    """A server that has scraped, and its API."""

    url: str
    process: subprocess.Popen[bytes]

    def get(self, path: str, **query: str) -> Any:
        """What the API answers; a query that it refuses is an error."""
        asked = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310  ours, on loopback
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from None

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """An instant query: the vector that it finds."""
        found = self.get("query", query=expression)
        assert found["resultType"] == "vector", expression
        vector: list[dict[str, Any]] = found["result"]
        return vector

    def value(self, expression: str) -> float:
        return sum(float(each["value"][1]) for each in self.ask(expression))

    def has_scraped(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=20).close()  # noqa: S310
        except OSError:
            return False
        return bool(self.ask("penstock_info"))


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Prometheus]:
    port, file = free_port(), folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    words = [
        str(needed("prometheus")), f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(30)


def scraping(folder: Path, web: str, token: str) -> dict[str, Any]:
    """What the export says, at this server, with this token, and often."""
    config: dict[str, Any] = yaml.safe_load((folder / "penstock-scrape.yml").read_text())
    credentials = folder / "token"
    credentials.write_text(token)
    credentials.chmod(0o600)
    [job] = config["scrape_configs"]
    job["authorization"]["credentials_file"] = str(credentials)
    job["static_configs"][0]["targets"] = [urllib.parse.urlsplit(web).netloc]
    job["scrape_interval"] = job["scrape_timeout"] = "1s"
    return {**config, "global": {"evaluation_interval": "1s"}}


def expressions(folder: Path) -> dict[str, str]:
    """Every query of every panel of every dashboard, as Grafana would send it."""
    found = {}
    for file in sorted(folder.glob("penstock-*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                text = target["expr"]
                for name, value in CHOICES.items():
                    text = text.replace(name, value)
                found[f"{file.stem}: {panel['title']} {target['refId']}"] = text
    return found


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_prometheus_scrapes_a_working_project_and_answers_every_panel_and_rule(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    place = "sqlite:penstock.db" if store == "sqlite" else request.getfixturevalue("database")
    out = tmp_path / "monitoring"
    with counting_site() as site, Rig(tmp_path, {"shop": source_of(site, 20)}, store=place) as rig:
        rig.enqueue("shop")
        rig.start("up")
        for target in ("grafana", "prometheus"):
            done = rig.penstock("export", target, "--dir", str(out))
            assert done.returncode == 0, done.stderr
        web = rig.start("web", "--port", "0")
        told = until(
            lambda: re.search(r"listening on (http://\S+)", rig.output(web)),
            "it listens",
            process=web,
        )
        made = rig.penstock("token", "create", "prometheus", "--role", "viewer", "--json")
        token = json.loads(made.stdout)["token"]
        refused = urllib.request.Request(f"{told[1]}/metrics")  # noqa: S310  ours, on loopback
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(refused, timeout=10)  # noqa: S310
        with prometheus(out, scraping(out, told[1], token)) as found:
            watch(found, rig, out)


def watch(found: Prometheus, rig: Rig, out: Path) -> None:
    until(found.has_scraped, "Prometheus has scraped")
    assert found.value("up") == 1
    ended = 'penstock_jobs_ended_total{stage="extract", outcome="succeeded"}'
    until(lambda: found.value(ended) == 20, "the first run is scraped")
    rig.enqueue("shop")
    until(lambda: found.value(ended) == 40, "the second run is scraped")
    assert found.value('penstock_workers{state="alive"}') > 0
    assert found.value("penstock_leader_up") == 1
    assert found.value("penstock_turn_duration_seconds_count") > 0

    for family in FAMILIES.values():
        if family.kind == "counter":
            assert found.value(f"resets({family.shown_name}[10m])") == 0, family.name
    asked = expressions(out)
    assert len(asked) > 50
    answers = {title: found.ask(text) for title, text in asked.items()}
    silent = [title for title, answer in answers.items() if not answer]
    assert [title for title in silent if not QUIET.search(asked[title])] == []

    groups = until(lambda: evaluated(found), "every rule was evaluated")
    assert {rule["lastError"] for rule in groups if rule.get("lastError")} == set()
    assert {rule["health"] for rule in groups} == {"ok"}
    assert len(groups) > 20
    for rule in groups:
        found.ask(rule["query"])
    promtool = [str(needed("promtool")), "check", "rules", str(out / "penstock-rules.yml")]
    checked = subprocess.run(promtool, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def evaluated(found: Prometheus) -> list[dict[str, Any]]:
    """All rules, once each was evaluated; else none."""
    rules = [rule for group in found.get("rules")["groups"] for rule in group["rules"]]
    return rules if rules and all(rule["health"] != "unknown" for rule in rules) else []
