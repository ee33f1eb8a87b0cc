"""Jobs and records are read through a project: all of them once, in pages, with codes for what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from penstock import Project
from penstock.app.views.view import Page
from penstock.errors import PenstockError
from tests.contract.scenes import Place, World, a_save, done, write_project

Item = TypeVar("Item")


@pytest.fixture
def project(tmp_path: Path, place: Place, world: World) -> Iterator[Project]:
    """A project over a store in which one run has saved five records and queued three pages more."""
    run_id = world.start()
    world.enqueue(run_id, "first")
    [root, first] = sorted(world.claim(), key=lambda job: job.id)
    world.enqueue(run_id, "a", "b", "c")
    saves = [a_save(f"k{number}", {"n": number}) for number in range(5)]
    world.turn("w", done(root), done(first, saves=saves))
    with Project.open(write_project(tmp_path, place, {"acme.com": {}})) as opened:
        yield opened


def walked(read: Callable[[str | None], Page[Item]]) -> list[Item]:
    page = read(None)
    found = list(page.items)
    while page.next is not None:
        page = read(page.next)
        found += page.items
    return found


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(PenstockError) as error:
        act()
    return error.value.code


def test_jobs_are_found_page_by_page_in_the_order_they_were_enqueued(project: Project) -> None:
    every = walked(lambda cursor: project.jobs.list(cursor=cursor, limit=2))
    assert [job.key for job in every] == ["root", "first", "a", "b", "c"]
    queued = walked(lambda cursor: project.jobs.list(states=["queued"], cursor=cursor, limit=1))
    assert [job.key for job in queued] == ["a", "b", "c"]
    assert [job.key for job in project.jobs.each(source="acme.com", limit=3)] == [
        "root",
        "first",
        "a",
    ]
    assert project.jobs.detail(every[2].id).as_json()["parent"] is None
    assert code_of(lambda: project.jobs.list(states=["lost"])) == "no_state"
    assert code_of(lambda: project.jobs.get(99)) == "no_job"


def test_records_are_found_page_by_page_in_the_order_of_their_keys(project: Project) -> None:
    every = walked(lambda cursor: project.records.list("product", cursor=cursor, limit=2))
    assert [record.data["n"] for record in every] == [0, 1, 2, 3, 4]
    assert list(every[0].as_json()) == "key data score source run version updated_at".split()
    assert [record.key for record in project.records("product")] == [each.key for each in every]
    assert project.records.get("product", "k3").version == 1
    [held] = project.records.collections()
    assert (held.collection, held.records) == ("product", 5)


def test_a_record_that_is_not_there_is_told_from_one_that_was_removed(project: Project) -> None:
    run_id = project.records.get("product", "k0").run
    project.connection.runs.cancel(run_id, "test", "")
    project.runs.undo(run_id)
    assert code_of(lambda: project.records.get("product", "k0")) == "record_removed"
    assert code_of(lambda: project.records.get("product", "zz")) == "no_record"
    assert code_of(lambda: project.records.require_collection("products")) == "no_collection"
    assert [bool(each.is_removed) for each in project.records.versions("product", "k0")] == [
        False,
        True,
    ]


def test_sources_are_listed_with_what_people_have_stopped(project: Project) -> None:
    project.sources.pause("acme.com", actor="ann", reason="they are moving")
    project.sources.hold(actor="ben")

    [source] = walked(lambda cursor: project.sources.list(cursor=cursor, limit=1))

    assert (source.pause_reason, source.queued, source.is_configured) == (
        "they are moving",
        3,
        True,
    )
    assert [(hold.source, hold.actor) for hold in source.held] == [(None, "ben")]
    assert project.sources.get("https://ACME.com/").as_json() == source.as_json()
    assert code_of(lambda: project.sources.get("acme.org")) == "no_source"
