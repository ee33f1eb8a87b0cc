"""`forget`: what was stored under a key is nowhere any more, and the chain over the journal still holds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.views.records import ForgottenView
from penstock.errors import Refused
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Note, Raised, Rejection
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.snapshots import open_snapshots
from penstock.snapshots.warc import Capture
from penstock.store.logs import LogLine
from penstock.store.snapshots import Kept
from tests.contract.scenes import PLAIN_STEPS, Place, StoreKind, a_job, a_save

ANN = "ann@example.com"
BOB = "bob@example.com"
STEPS = (
    PLAIN_STEPS
    + """

@plain.step(after="look", unit="page")
def extract(item):
    pass


@plain.step(after="extract", unit="candidate")
def persist(item):
    pass
"""
)


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    settings: dict[str, Any] = {"project": "people", "store": store}
    settings |= {"sources": {"acme.com": {}, "news.example": {}}}
    settings |= {"defaults": {"pipeline": "steps:plain"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        made.connection.workers.register("w", "here", 1, "1")
        yield made


def claimed(project: Project) -> list[Claimed]:
    return project.connection.turn("w", [], Capacity(9), project.limits()).claimed


def settle(
    project: Project, job: Claimed, state: JobState = JobState.SUCCEEDED, **about: Any
) -> None:
    kept = about.pop("kept", ())
    end = Settlement(job.id, job.attempt, state, **about)
    project.connection.turn("w", [end], Capacity(0), project.limits(), kept)


def page_of(project: Project, job: Claimed, who: str, number: int) -> Kept:
    """A page about somebody, as a worker stores it."""
    now, url = project.now(), f"https://acme.com/{number}"
    body = f"<p>{number}: {who}</p>{'.' * 3000}".encode()
    with closing(open_snapshots(project.settings.snapshots, f"w{number}")) as snapshots:
        [place] = snapshots.append([Capture(url, 200, {"x": "y"}, body, now)])
        snapshots.sync()
    where = (place.hash, place.segment, place.offset, place.length)
    return Kept(number, job.id, job.run_id, url, 200, {}, now, *where)


def person(who: str) -> NewJob:
    return a_job(f"person {who}", {"mail": who, "age": 7}, stage="persist")


def ingest(project: Project, *people: str, snapshot: int = 0) -> int:
    """A run that has fetched a page about each of these, and saved it."""
    run_id = project.run("acme.com")
    [look] = claimed(project)
    pages = [a_job(f"https://acme.com/{number}", {"n": number}) for number in range(len(people))]
    settle(project, look, effects=Effects(children=pages))
    for number, (job, who) in enumerate(zip(claimed(project), people, strict=True), snapshot + 1):
        effects = Effects(
            children=[person(who)],
            saves=[a_save(who, {"mail": who, "seen": number}, snapshot=number)],
            notes=[Note(f"found {who} there")],
            signals=[Raised("person", json.dumps({"who": who}).encode())],
        )
        settle(project, job, effects=effects, kept=[page_of(project, job, who, number)])
        now = project.now()
        line = LogLine(now, job.source_id, run_id, job.id, 1, "info", f"mail {who}")
        project.connection.logs.add([line])
    for job in claimed(project):
        rejection = Rejection("odd", f"{job.key} is odd")
        if ANN in job.item:
            about = {"reason": "data", "error": f"no such person: {ANN}", "spends_try": True}
            settle(project, job, JobState.QUARANTINED, **about)
        else:
            settle(project, job, effects=Effects(rejections=[rejection]))
    return run_id


def held_anywhere(kind: StoreKind, place: Place, what: str) -> list[str]:
    """The tables in which a text stands."""
    return [
        name
        for name, rows in kind.dump(place).items()
        if any(isinstance(value, str) and what in value for row in rows for value in row)
    ]


def counts(view: ForgottenView) -> dict[str, int]:
    return {name: value for name, value in view.as_json().items() if type(value) is int and value}


def test_forgotten_key_is_nowhere_any_more_and_everything_else_stays(
    project: Project, kind: StoreKind, place: Place, tmp_path: Path
) -> None:
    first = ingest(project, ANN, BOB)
    second = ingest(project, ANN, BOB, snapshot=2)
    head = project.audit.head(anchor=tmp_path / "anchors")
    assert head.unsealed == 0
    project.connection.idempotency.begin("ann", "k", "hash", "server")
    project.connection.idempotency.answer("ann", "k", "server", json.dumps({"text": ANN}))
    assert len(held_anywhere(kind, place, ANN)) >= 8

    seen = project.records.forget("acme.com", ANN, dry_run=True)
    assert held_anywhere(kind, place, ANN) != []
    done = project.records.forget("acme.com", ANN, actor="dpo", reason=f"request 17 of {ANN}")

    assert counts(seen) == {
        **{"records": 1, "versions": 1, "snapshots": 2, "jobs": 2, "log_lines": 2},
        **{"events": seen.events, "texts": seen.texts},
    }
    assert (done.is_done, done.is_scrubbed) == (True, isinstance(place, Path))
    assert held_anywhere(kind, place, ANN) == []
    assert len(held_anywhere(kind, place, BOB)) >= 8
    assert [row.key for row in project.records.each("product")] == [BOB]
    assert project.records.collections()[0].records == 1
    assert project.connection.upkeep.check() == []
    if isinstance(place, Path):
        for file in tmp_path.glob("penstock.db*"):
            assert ANN.encode() not in file.read_bytes(), file
    archives = [gzip.decompress(file.read_bytes()) for file in tmp_path.rglob("*.warc.gz")]
    assert sum(ANN.encode() in text for text in archives) == 0
    assert sum(BOB.encode() in text for text in archives) == 2
    [page] = project.pages.list("https://acme.com/4")
    assert BOB in project.pages.read(page).text

    found = project.audit.verify(anchor=tmp_path / "anchors")
    assert found.findings == []
    assert found.erased > 0
    [event] = project.journal.list(kind="record.forgotten").items
    assert (event.actor, event.origin, event.data["reason"]) == (
        "dpo",
        "python",
        "request 17 of [forgotten]",
    )
    # Neither an undo nor a replay brings it back.
    project.runs.undo(second)
    project.runs.undo(first)
    assert held_anywhere(kind, place, ANN) == []
    with pytest.raises(Refused) as refused:
        project.records.forget("acme.com", ANN)
    assert refused.value.code == "nothing_to_forget"


def test_key_is_erased_from_events_again_and_the_chain_still_holds(project: Project) -> None:
    ingest(project, ANN, BOB)
    project.audit.head()
    project.connection.audit.seal_all()
    project.records.forget("acme.com", ANN)
    project.connection.audit.seal_all()
    project.records.forget("acme.com", BOB)
    project.connection.audit.seal_all()

    assert project.audit.verify().findings == []


def test_erased_event_without_the_act_of_a_person_is_found(
    project: Project, kind: StoreKind, place: Place
) -> None:
    ingest(project, ANN)
    project.connection.audit.seal_all()
    project.records.forget("acme.com", ANN)
    assert project.audit.verify().is_sound

    kind.tamper(place, "DELETE FROM event WHERE kind = 'record.forgotten'")

    assert {each.what for each in project.audit.verify().findings} == {"erased_without_act"}


def test_what_is_in_hand_is_not_forgotten_before_it_ends(project: Project) -> None:
    run_id = project.run("acme.com")
    [look] = claimed(project)
    settle(project, look, effects=Effects(children=[a_job(ANN, {"mail": ANN})]))

    with pytest.raises(Refused) as refused:
        project.records.forget("acme.com", ANN)

    assert refused.value.code == "run_active"
    assert str(refused.value.remedy) == f"project.runs.cancel({run_id})"
    project.runs.cancel(run_id)
    project.connection.runs.sweep_cancelled()
    assert project.records.forget("acme.com", ANN).jobs == 1
