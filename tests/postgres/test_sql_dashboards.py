"""Each query of the dashboards runs on a database with data of real runs, as a role that may only read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock import Project
from penstock.jobs.effects import Effects, Save
from tests.contract.sql_clients import a_failed_run, settle, write_site_agents
from tests.contract.test_sql_interface import AGING, BACKLOG, FAILURES, FRESHNESS, POLLUTION
from tests.postgres.server import Server
from tests.postgres.test_sql_roles import ROLES

DATA: list[tuple[str, str, dict[str, Any]]] = [
    ("site_schemas", "old.com", {"extraction_confidence": 0.5, "pollution_notes": list("abcdef")}),
    ("site_schemas", "new.com", {"last_verified_at": "2126-01-01T00:00:00Z"}),
    ("supplier_references", "bolt", {"supplier_name": "Bolt"}),
]


@pytest.fixture
def project(tmp_path: Path, postgres: Server, schema_database: str) -> Iterator[Project]:
    postgres.admin(ROLES)
    with Project.load(write_site_agents(tmp_path, schema_database)) as made:
        made.connection.workers.register("w", "here", 1, "1")
        made.sql.install()
        made.run("acme.com")
        saves = [
            Save(collection, key, json.dumps({"domain": key, **data}).encode(), None, "replace")
            for collection, key, data in DATA
        ]
        settle(made, effects=Effects(saves=saves))
        a_failed_run(made, "beta.com")
        made.run("acme.com/check")
        made.runs.pause(made.run("gamma.com"))
        yield made


@pytest.fixture
def reader(
    project: Project, postgres: Server, schema_database: str
) -> Iterator[psycopg.Connection[Any]]:
    place = postgres.admin_url(schema_database.rpartition("/")[2])
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET ROLE sql_bi")
        connection.execute("SET search_path = penstock_sql")
        yield connection


def rows(reader: psycopg.Connection[Any], text: str) -> list[Any]:
    return reader.execute(text.encode()).fetchall()


# How many rows each has to have of the data above.
EXPECTED = {
    "Failures in the last hour": [(1,)],
    "Running now": [(0,)],
    "Blocked": [(1,)],
    "Job backlog": 1,
    "Failure feed": 1,
    "Schema freshness": 1,
    "Image pollution watch": [("old.com", 6)],
    "Supplier reference aging": [("new", 1)],
    "Problems of the service": 1,  # no scheduler has been running
    "Jobs per hour, by status": 4,
    "Records per day": 1,
    "How long jobs take": 1,
    "What is blocked, and by what": 1,
    "Requests of SQL clients that were refused": 0,
    "Site schemas with little confidence": 1,
    "Domains with more than 5 pollution notes": 1,
    "Supplier references that are new for more than 7 days": 0,
    "Organizations, the longest without data first": 3,
}
SEED = {
    "Job backlog": BACKLOG,
    "Failure feed": FAILURES,
    "Schema freshness": FRESHNESS,
    "Image pollution watch": POLLUTION,
    "Supplier reference aging": AGING,
}


def check(title: str, found: list[Any]) -> None:
    expected = EXPECTED[title]
    assert (len(found) if isinstance(expected, int) else found) == expected, (title, found)


def test_each_panel_of_grafana_shows_what_there_is(
    project: Project, reader: psycopg.Connection[Any]
) -> None:
    [(name, text)] = project.exports.grafana("postgres").files.items()
    dashboard = json.loads(text)
    assert (name, dashboard["uid"]) == ("penstock-jobs.json", "penstock-jobs")
    panels = {panel["title"]: panel for panel in dashboard["panels"]}
    assert panels.keys() == EXPECTED.keys()
    assert len({panel["id"] for panel in panels.values()}) == len(panels)
    assert_nothing_overlaps([panel["gridPos"] for panel in panels.values()])
    for title, panel in panels.items():
        [target] = panel["targets"]
        assert target["datasource"]["uid"] == "${datasource}"
        found = rows(reader, as_grafana_does(target["rawSql"]))
        check(title, found)
        if target["format"] == "time_series":
            assert panel["type"] == "timeseries"
    for title, statement in SEED.items():
        assert panels[title]["targets"][0]["rawSql"].strip() == statement.strip()


def as_grafana_does(text: str) -> str:
    """With its macros filled in, as the documentation of the datasource has them."""
    seconds = {"1h": 3600, "24h": 86400}
    text = re.sub(
        r"\$__timeGroupAlias\((\w+), '(\w+)'\)",
        lambda m: f'floor(extract(epoch from {m[1]})/{seconds[m[2]]})*{seconds[m[2]]} AS "time"',
        text,
    )
    text = re.sub(
        r"\$__timeFilter\((\w+)\)",
        r"\1 BETWEEN now() - interval '1 day' AND now() + interval '1 minute'",
        text,
    )
    assert "$__" not in text
    return text


def assert_nothing_overlaps(places: list[dict[str, int]]) -> None:
    taken: set[tuple[int, int]] = set()
    for place in places:
        cells = {
            (place["x"] + dx, place["y"] + dy)
            for dx in range(place["w"])
            for dy in range(place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_each_question_for_metabase_has_an_answer(
    project: Project, reader: psycopg.Connection[Any]
) -> None:
    files = project.exports.metabase().files
    readme = files.pop("README.md")
    for name, text in files.items():
        assert name.endswith(".sql")
        title = text.partition("-- ")[2].partition(". Visualization")[0]
        assert f"| {name} | {title} |" in readme
        check(title, rows(reader, text))
    assert len(files) == len(EXPECTED)
