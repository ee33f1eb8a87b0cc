"""Starting runs through a project: what goes on instead, and what is refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Project
from penstock.errors import Refused, Remedy
from tests.contract.scenes import Place, write_project


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    with Project.open(write_project(tmp_path, place, {"a": {}, "b": {}, "c": {}})) as opened:
        yield opened


def refused(act: Callable[[], object]) -> tuple[str, Remedy | None]:
    with pytest.raises(Refused) as error:
        act()
    return error.value.code, error.value.remedy


def test_a_run_that_has_not_ended_goes_on_instead_of_a_second_one(project: Project) -> None:
    first = project.runs.start("a", params={"day": 1})
    assert first.run is not None
    assert first.is_new

    again = project.runs.start("a")
    same = project.runs.start("https://A/", params={"day": 1})
    beside = project.runs.start("a", new=True)
    probe = project.runs.start("a", kind="probe")

    assert [again.is_new, same.is_new, beside.is_new, probe.is_new] == [False, False, True, True]
    assert again.run is not None
    assert same.run is not None
    assert {again.run.id, same.run.id} == {first.run.id}


def test_a_run_that_goes_on_never_quietly_drops_what_is_asked_for_now(project: Project) -> None:
    project.runs.start("a", params={"day": 1})
    assert refused(lambda: project.runs.start("a", params={"day": 2})) == ("run_differs", None)
    assert refused(lambda: project.runs.start("a", pages=3))[0] == "run_differs"


def test_a_wrong_second_source_does_not_start_the_first(project: Project) -> None:
    project.sources.pause("b", reason="they are moving")

    code, remedy = refused(lambda: project.runs.start_many(["a", "b"], awaited=True))

    assert (code, remedy) == ("source_paused", Remedy("sources.resume", "b"))
    assert project.runs.list().items == []
    assert [each.is_new for each in project.runs.start_many(["a", "b", "a"]).runs] == [True, True]


def test_asking_whether_runs_could_start_starts_none(project: Project) -> None:
    found = project.runs.start_many(dry_run=True)
    assert [(each.source, each.run, each.is_new) for each in found.runs] == [
        ("a", None, True),
        ("b", None, True),
        ("c", None, True),
    ]
    assert project.runs.list().items == []


def test_who_waits_for_a_run_is_told_what_keeps_it_from_ending(project: Project) -> None:
    run = project.runs.start("a").run
    assert run is not None
    project.runs.pause(run.id)
    project.sources.hold("b")

    def awaited(source: str) -> tuple[str, Remedy | None]:
        return refused(lambda: project.runs.start(source, awaited=True))

    assert awaited("a") == ("run_paused", Remedy("runs.resume", run.id))
    assert awaited("b") == ("source_held", Remedy("sources.unhold", "b"))
    project.sources.hold()
    assert awaited("c") == ("source_held", Remedy("sources.unhold"))
    assert project.runs.start("c").is_new, "what nobody waits for is queued, and waits"


def test_all_runs_are_found_page_by_page_the_newest_first(project: Project) -> None:
    made = [project.run(source) for source in "abcabcabc"]
    for run in made[:4]:
        list(project.runs.cancel(run))

    found, cursor = [], None
    while True:
        page = project.runs.list(limit=2, cursor=cursor)
        found += [run.id for run in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert found == made[::-1]
    assert [run.id for run in project.runs.each("a")] == [made[6], made[3], made[0]]
    assert [run.id for run in project.runs.each(active=True, limit=3)] == made[:-4:-1]
    assert [run.id for run in project.runs.each("a", active=True)] == [made[6]]
