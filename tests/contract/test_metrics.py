"""Metrics on every store: the text has what was done, sums never fall, labels are bounded, nothing scans."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from penstock import Project
from penstock.clock import SystemClock
from penstock.errors import UsageError
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.outcome import Settlement
from penstock.metrics.registry import FAMILIES
from penstock.store.sqlite.store import SqliteStore
from tests.contract.scenes import PLAIN_STEPS, Place, a_job, a_save, done, quarantined, retried
from tests.contract.test_sqlite_plans import steps_of
from tests.programs import needed

EXTRACT = """

@plain.step(after="look", unit="page")
def extract(item):
    pass
"""
URL = "https://acme.com/a/secret/page"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS + EXTRACT)
    settings: dict[str, Any] = {
        "project": "metered",
        "store": f"sqlite:{place}" if isinstance(place, Path) else place,
        "sources": {"first.example": {}, "second.example": {}, "third.example": {}},
        "defaults": {"pipeline": "steps:plain"},
        "budget": {"requests": "100/d"},
        "metrics": {"max_sources": 1},
    }
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        made.connection.workers.register("w", "here", 1, "1", slots=4)
        yield made


def turn(project: Project, *ends: Settlement, slots: int = 0) -> Any:
    return project.connection.turn("w", list(ends), Capacity(slots), project.limits())


def work(project: Project, source: str) -> None:
    """A run with three pages: one saves two records, one is quarantined, and one is left for later."""
    run_id = project.run(source)
    project.connection.jobs.enqueue(run_id, [a_job(f"{URL}/{n}") for n in range(3)])
    first, one, two, three = turn(project, slots=4).claimed
    effects = Effects(
        saves=[a_save(f"{source}/a", {"n": 1}, score=0.95), a_save(f"{source}/b", {}, score=0.4)],
        spent={"requests": 2, "bytes": 1000},
        latencies={"0.25": 2, "": 0.3},
        rejections=[Rejection("no_price", "no price")],
    )
    turn(project, done(first), done(one, effects=effects), quarantined(two), retried(three, 60.0))
    project.connection.rollups.measure(
        [("turn_seconds", "0.005", 2), ("turn_seconds_sum", "", 0.007)]
    )
    while project.connection.rollups.fold():
        pass


def parsed(text: str) -> Iterator[Metric]:
    """OpenMetrics, by the strict parser of Prometheus's own client."""
    found: Iterator[Metric] = open_families(text)  # type: ignore[no-untyped-call]
    return found


def values(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(text)
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return values(text)[name, tuple(sorted(labels.items()))]


def test_what_was_done_is_in_the_text(project: Project) -> None:
    work(project, "first.example")
    text = project.metrics.text()
    of = {"source": "first.example"}
    assert value(text, "penstock_jobs_ended_total", **of, stage="extract", outcome="succeeded") == 1
    assert value(text, "penstock_jobs", **of, stage="extract", state="waiting") == 1
    assert value(text, "penstock_records_total", **of, result="new") == 2
    assert value(text, "penstock_rejected_total", **of) == 1
    assert value(text, "penstock_quarantines_total", **of, kind="data") == 1
    assert value(text, "penstock_quarantined_jobs", **of) == 1
    assert value(text, "penstock_retries_total", **of) == 1
    assert value(text, "penstock_received_bytes_total", **of) == 1000
    assert value(text, "penstock_fetch_duration_seconds_bucket", **of, le="0.1") == 0
    assert value(text, "penstock_fetch_duration_seconds_bucket", **of, le="0.25") == 2
    assert value(text, "penstock_fetch_duration_seconds_bucket", **of, le="+Inf") == 2
    assert value(text, "penstock_quality_score_sum", **of) == pytest.approx(1.35)
    assert value(text, "penstock_attempt_duration_seconds_count", **of) == 4
    assert value(text, "penstock_turn_duration_seconds_count") == 2
    assert value(text, "penstock_workers", host="here", state="alive") == 1
    assert value(text, "penstock_worker_slots", host="here") == 4
    assert value(text, "penstock_store_size_bytes") > 0
    assert value(text, "penstock_kpi_duplicates_per_million") == 0
    assert URL not in text


def test_both_formats_have_every_family_and_are_sound(project: Project) -> None:
    work(project, "first.example")
    project.breakers.open("first.example", 60.0)
    text, as_open = project.metrics.text(), project.metrics.text("openmetrics")
    assert set(FAMILIES) <= {family.name for family in families(text)}
    assert set(FAMILIES) <= {family.name for family in parsed(as_open)}
    assert value(text, "penstock_breakers", source="first.example", state="open") == 1
    check = [str(needed("promtool")), "check", "metrics"]
    checked = subprocess.run(check, input=text, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    with pytest.raises(UsageError):
        project.metrics.text("csv")


def test_sources_beyond_the_cap_share_a_label_and_their_sums_never_fall(project: Project) -> None:
    before: Values = {}
    for source in ("first.example", "second.example", "third.example", "second.example"):
        work(project, source)
        text = project.metrics.text()
        now = values(text)
        counters = {key for key in now if key[0].endswith(("_total", "_bucket", "_count", "_sum"))}
        assert counters
        assert [key for key in counters if now[key] < before.get(key, 0.0)] == []
        assert [key for key in before if key not in now and key[0].endswith("_total")] == []
        before = now
        sources = {dict(labels).get("source") for _, labels in now}
        assert sources - {None, ""} == {"first.example", "other"}
    assert value(text, "penstock_records_total", source="other", result="new") == 4
    assert value(text, "penstock_records_total", source="other", result="unchanged") == 2
    assert value(text, "penstock_fetches_total", source="other") == 6
    assert value(text, "penstock_queue_depth", source="other") == 0


ENDED = """
INSERT OR IGNORE INTO source (id, key, created_at) VALUES (1, 'a', 0);
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO run (id, source_id, kind, state, key, plan, pipeline_version, actor, created_at, finished_at)
SELECT i, 1, 'full', 'completed', i, '[]', 'v', 'ana', i, i FROM n;
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO run_stage (run_id, stage, unit, priority, succeeded) SELECT i, 'extract', 'page', 5, 1 FROM n;
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO job (run_id, source_id, stage, unit, key, state, rank, at)
SELECT i, 1, 'extract', 'page', 'k', 'succeeded', i, i FROM n;
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO event (at, kind, source_id, run_id) SELECT i, 'run.completed', 1, i FROM n;
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO outbox (hook, run_id, state, body, created_at, delivered_at) SELECT 'h', i, 's', '', i, i FROM n;
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO breach (source_id, rule, since, ended_at) SELECT 1, 'freshness', i, i FROM n;
"""


def test_a_scrape_costs_the_same_however_much_has_ended(tmp_path: Path) -> None:
    steps = []
    with closing(SqliteStore(tmp_path / "penstock.db", SystemClock())) as store:
        for first, last in ((1, 50), (51, 5000)):
            store._db.connection.execute(ENDED.format(first=first, last=last))
            steps.append(sum(steps_of(store._db, store.metric_facts.read)))
    # Walking through one of these tables takes at least a step for each row.
    assert steps[1] - steps[0] < 2000, steps
