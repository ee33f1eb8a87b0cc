"""Streams of the journal: behind each event stands a cursor from which a reader goes on exactly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.calls import InOneThread
from penstock.app.journal_stream import (
    EventFilter,
    JournalReader,
    Look,
    Placed,
    between,
    event_filter,
    newest,
)
from penstock.app.paging import cursor_of
from penstock.errors import UsageError
from penstock.store.rows import Cursor
from tests.contract.scenes import Place

ALL = EventFilter()


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    settings: dict[str, Any] = {"project": "p", "store": store, "sources": {"a": {}, "b": {}}}
    settings |= {"defaults": {"pipeline": "x:y"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        yield made


class Reader:
    """Reads in a thread of its own, as a server does: a connection does not see its own writes as changes."""

    def __init__(self, project: Project) -> None:
        self._reader = JournalReader(project)
        self._thread = InOneThread()

    def look(self) -> list[Placed]:
        return asyncio.run(self._thread(self._reader.look)).events

    @property
    def position(self) -> str:
        return self._reader.position


def act(project: Project, number: int) -> None:
    for _ in range(number):
        for source in ("a", "b"):
            project.sources.pause(source, reason="rest")
            project.sources.resume(source)


def read_on(project: Project, cursor: str, until: str, wanted: EventFilter = ALL) -> list[int]:
    found: list[int] = []
    while cursor != until:
        events, cursor = between(project, cursor, until, wanted)
        found += [each.event.id for each in events]
    return found


def test_reader_that_was_cut_off_after_any_event_reads_the_rest_once_and_no_further(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.app.journal_stream.AT_ONCE", 3)
    reader = Reader(project)
    assert reader.look() == []
    seen = []
    for number in (1, 3, 2):
        act(project, number)
        seen += reader.look()
    ids, until = [each.event.id for each in seen], reader.position
    assert len(ids) == len(set(ids)) == 24
    act(project, 1)  # what comes later is for the reader, not for who catches up with it

    for place, each in enumerate(seen):
        assert read_on(project, each.cursor, until) == ids[place + 1 :]
    assert [each.event.kind for each in reader.look()] == [*("source.paused", "source.resumed") * 2]
    some, end = newest(project, ALL, 5)
    assert [each.event.id for each in some] == sorted(each.event.id for each in some)
    act(project, 1)
    assert len(reader.look()) == 4
    assert len(read_on(project, end, reader.position)) == 4


def test_reader_that_wants_only_kinds_comes_as_far_and_misses_none(project: Project) -> None:
    reader = JournalReader(project)
    thread = InOneThread()

    def look(*, are_events_wanted: bool) -> Look:
        return asyncio.run(thread(partial(reader.look, are_events_wanted=are_events_wanted)))

    assert look(are_events_wanted=False) == Look()
    begun = reader.position
    act(project, 2)
    seen = look(are_events_wanted=False)
    assert (seen.kinds, seen.events) == ({"source.paused", "source.resumed"}, [])
    assert look(are_events_wanted=False).kinds == frozenset()
    act(project, 1)
    told = look(are_events_wanted=True)
    assert (told.kinds, len(told.events)) == ({"source.paused", "source.resumed"}, 4)
    ids = [each.event.id for each in told.events]
    assert read_on(project, begun, reader.position)[-4:] == ids


def test_reader_that_stopped_in_the_middle_reads_on_although_nothing_more_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.app.journal_stream.AT_ONCE", 3)
    monkeypatch.setattr("penstock.app.journal_stream.MOST_AT_ONCE", 6)
    reader = Reader(project)
    reader.look()
    act(project, 2)
    assert [len(reader.look()) for _ in range(3)] == [6, 2, 0]


def test_stream_filters_as_the_journal_does(project: Project) -> None:
    reader = Reader(project)
    reader.look()
    begun = reader.position
    act(project, 3)
    seen, until = reader.look(), reader.position
    assert len(seen) == 12
    for about in (
        {},
        {"source": "a"},
        {"kind": "source"},
        {"kind": "source.paused"},
        {"where": ["data.reason=rest"]},
        {"source": "b", "kind": "source.paused", "where": ["actor=nobody"]},
    ):
        wanted = event_filter(project, **about)
        offered = [each.event.id for each in seen if wanted.wants(each.event)]
        assert offered == read_on(project, begun, until, wanted), about
        asked = project.journal.list(**about, limit=100).items[::-1]
        assert offered == [each.id for each in asked if each.id >= seen[0].event.id], about


@pytest.mark.parametrize(
    "cursor", [Cursor(seen="x"), Cursor(seen="5:1:"), Cursor(upto="1:1:9,8"), Cursor(line=-1)]
)
def test_cursor_that_nobody_gave_out_is_refused_or_reads_nothing_wrong(
    project: Project, cursor: Cursor, place: Place
) -> None:
    until = cursor_of(project.connection.journal.follow_kinds(None, ())[1])
    if isinstance(place, Path):
        between(project, cursor_of(cursor), until, ALL)
    else:
        with pytest.raises(UsageError) as refused:
            between(project, cursor_of(cursor), until, ALL)
        assert refused.value.code == "bad_cursor"
        with pytest.raises(UsageError):
            project.journal.tail(cursor=cursor_of(cursor))
