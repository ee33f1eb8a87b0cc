"""What a front end looks at: the journal, logs, workers and the status, in pages and as they happen."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.errors import Refused, UsageError
from penstock.store.logs import LogLine
from tests.contract.scenes import PLAIN_STEPS, Place


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    settings: dict[str, Any] = {"project": "looking", "store": store}
    settings |= {"sources": {"acme.com": {"pipeline": "steps:plain"}}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        yield made


def resumed(project: Project) -> None:
    other = threading.Thread(target=project.sources.resume, args=("acme.com",))
    other.start()
    other.join()


def test_journal_is_read_back_in_pages_and_on_as_it_grows(project: Project) -> None:
    journal = project.journal
    for reason in ("one", "two", "three"):
        project.sources.pause("acme.com", actor="ann", reason=reason)
        project.sources.resume("acme.com", actor="bob")

    newest = journal.list(kind="source", where=["actor=ann"], limit=2)
    [oldest] = journal.list(kind="source", where=["actor=ann"], limit=2, cursor=newest.next).items
    assert [each.data["reason"] for each in (*newest.items, oldest)] == ["three", "two", "one"]

    seen = journal.tail(kind="source.paused", limit=1)
    project.sources.pause("acme.com", reason="four")
    news = journal.tail(kind="source.paused", cursor=seen.next)
    assert [each.data["reason"] for each in (*seen.items, *news.items)] == ["three", "four"]
    assert journal.tail(kind="source.paused", cursor=news.next).items == []

    # Whoever follows is told of what another does while it waits.
    followed = journal.follow(kind="source", limit=1, on_wait=lambda: resumed(project))
    assert [each.kind for each in islice(followed, 2)] == ["source.paused", "source.resumed"]

    with pytest.raises(UsageError, match="there is no run 99"):
        journal.list(run=99)


def test_logs_are_read_back_in_pages_and_followed_to_the_end_of_the_run(project: Project) -> None:
    run = project.runs.start("acme.com").run
    assert run is not None
    [job] = project.jobs.list(run=run.id).items
    source_id = project.source_ids["acme.com"]
    lines = [LogLine(1.0, source_id, run.id, job.id, 1, "info", str(number)) for number in range(3)]
    project.connection.logs.add(lines)

    newest = project.logs.list(run=run.id, limit=2)
    [oldest] = project.logs.list(job=job.id, limit=2, cursor=newest.next).items
    assert [line.text for line in (*newest.items, oldest)] == ["2", "1", "0"]

    for _ in project.runs.cancel(run.id):
        pass
    assert [line.text for line in project.logs.follow(run=run.id)] == ["0", "1", "2"]
    with pytest.raises(UsageError, match="logs of what"):
        project.logs.list()


def test_status_names_workers_and_what_stops_a_source(project: Project) -> None:
    project.connection.workers.register("w", "mill-1", 1, "1")
    project.sources.pause("acme.com", reason="moving")

    seen = project.status()

    assert [(each.id, each.host, each.is_alive) for each in seen.workers] == [("w", "mill-1", True)]
    assert [each.key for each in seen.stopped("paused")] == ["acme.com"]
    assert seen.as_json()["scheduler"] is None
    assert [each.id for each in project.workers.list().items] == ["w"]


def test_start_is_refused_for_the_gate_that_explain_names(project: Project) -> None:
    """A start named the pause where explain and the claim named the hold."""
    project.sources.pause("acme.com")
    project.sources.hold("acme.com")
    for code, gate, opened in (
        ("source_held", "held", project.sources.unhold),
        ("source_paused", "paused", project.sources.resume),
    ):
        with pytest.raises(Refused) as refused:
            project.runs.start("acme.com", awaited=True)
        [seen] = project.outlook(["acme.com"])
        assert (refused.value.code, seen.stops[0].name) == (code, gate)
        assert refused.value.remedy == seen.stops[0].remedy
        opened("acme.com")
    assert project.runs.start("acme.com", awaited=True).is_new
