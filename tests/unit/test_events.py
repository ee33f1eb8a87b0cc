"""Events are data: one registry of kinds, which every writer goes through and the reference is made from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.engine.leader import activity
from penstock.errors import UsageError
from penstock.jobs.kpis import STEERING
from penstock.journal.condition import Condition, condition
from penstock.journal.event import Event
from penstock.journal.old_lines import data_of
from penstock.journal.reference import page
from penstock.journal.registry import EVENTS, KINDS, RENAMED, sentence_of
from penstock.store.rows import EventRow

ROOT = Path(__file__).parents[2]
STORE = ROOT / "src" / "penstock" / "store"
KIND = re.compile(r"[a-z]+\.[a-z][a-z_-]+")
WRITERS = ("journal", "journal_jobs")
SAMPLES = {int: 3, float: 2.0, str: "word"}


def sample(event: type[Event]) -> Event:
    """An event of this kind with something in every field that needs a value."""
    values = {
        field.encode_name: SAMPLES.get(field.type, "word")
        for field in msgspec.structs.fields(event)
        if field.required or field.type is str
    }
    return msgspec.convert(values, event)


def written() -> Iterator[tuple[str, ast.Call]]:
    for file in sorted(STORE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in WRITERS:
                yield f"{file.name}:{node.lineno}", node


def test_every_writer_builds_an_event_of_the_registry_and_no_sentence() -> None:
    calls = list(written())
    assert len(calls) > 50
    for place, call in calls:
        first = call.args[0]
        assert not isinstance(first, (ast.Constant, ast.JoinedStr)), place
        assert "detail" not in [keyword.arg for keyword in call.keywords], place


def test_every_kind_that_is_written_or_read_by_name_is_in_the_registry() -> None:
    named = set(activity.KINDS) | set(STEERING)
    for file in sorted(STORE.rglob("*.sql")):
        for name in re.findall(r"'((?:job|run|source)\.[a-z_]+)'", file.read_text("utf-8")):
            named.add(name)
    assert {"job.started", "job.succeeded"} < named
    assert named - set(KINDS) == set()


def test_each_kind_has_one_name_and_says_what_it_is_about() -> None:
    assert len(KINDS) == len(EVENTS)
    for event in EVENTS:
        assert KIND.fullmatch(event.kind), event
        assert event.__doc__, event


def test_a_kind_that_was_renamed_keeps_its_noun_and_its_old_name_means_nothing_else() -> None:
    for old, new in RENAMED.items():
        assert old not in KINDS
        assert new in KINDS
        assert old.partition(".")[0] == new.partition(".")[0], "--kind NOUN finds both"


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_that_is_stored_as_data_gives_the_sentence_that_its_writer_meant(
    event: type[Event],
) -> None:
    made = sample(event)
    stored = msgspec.json.decode(msgspec.json.encode(made))
    assert sentence_of(event.kind, stored) == made.sentence()


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_a_sentence_of_an_older_version_reads_the_same_as_data(event: type[Event]) -> None:
    sentence = sample(event).sentence()
    assert sentence_of(event.kind, data_of(event.kind, sentence)) == sentence


def test_data_is_derived_from_the_sentences_that_older_versions_wrote() -> None:
    assert data_of("job.retried", "network: no route: it is down (again in 4.0 s)") == {
        "reason": "network",
        "error": "no route: it is down",
        "again_in_s": 4.0,
    }
    assert data_of("schedule.missed", "main: 10,079 ticks missed")["ticks"] == 10_079
    opened = "api.acme.com: 5 of 5 failed; tried again in 30 s"
    assert data_of("breaker.opened", opened, has_source=False)["host"] == "api.acme.com"
    assert "host" not in data_of("breaker.opened", opened, has_source=True)
    assert data_of("budget.warned", "it is nearly gone") == {"text": "it is nearly gone"}


def test_an_event_of_a_newer_version_is_shown_as_its_data() -> None:
    assert sentence_of("moon.landed", {"crew": 3, "ship": "Eagle"}) == "crew: 3, ship: Eagle"
    assert sentence_of("run.jobs_added", {"jobs": "many"}) == "jobs: many"


def test_the_reference_of_events_is_what_the_registry_says() -> None:
    assert (ROOT / "docs" / "events.md").read_text("utf-8") == page(), "make reference"


def test_a_condition_compares_a_field_as_text() -> None:
    data = {"host": "acme.com", "jobs": 3, "is_over": True, "deep": {"er": None}}
    row = EventRow(1, 2.0, "run.limit_reached", "acme.com", 7, None, None, "ann", "", None, data)
    for text in (
        "data.host=acme.com",
        "data.jobs=3",
        "data.is_over=true",
        "run=7",
        "kind=run",
        "kind=run.cut",
    ):
        assert condition(text).holds(row), text
    for text in ("data.host=", "data.jobs=30", "data.deep.er=null", "data.no=", "job=7", "kind=ru"):
        assert not condition(text).holds(row), text
    assert condition("data.a=b=c") == Condition("data.a", "b=c")


@pytest.mark.parametrize("text", ["", "host", "host=acme.com", "data.=x", "data=x", "run=x"])
def test_what_is_no_condition_is_refused_with_the_fields_there_are(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        condition(text)
    assert "data.host=acme.com" in str(refused.value.hint)
