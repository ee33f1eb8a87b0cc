"""Events as they are read: data and the sentence of it, also of what older versions wrote as sentences."""

from __future__ import annotations

from penstock.journal.condition import condition
from penstock.store.database import to_json
from penstock.store.rows import EventRow
from tests.contract.scenes import World, done, quarantined, retried, throttled


def write_as_before(world: World, *lines: tuple[object, ...]) -> None:
    """Lines as a version wrote them that knew no data: kind, source, run, job, attempt, actor, sentence."""
    db = world.store._db
    with db.writing() as now:
        db.do("add_events", now=now, events=to_json(lines), origin=None)


def migrated_at(world: World, at: str) -> None:
    """Make the journal have data since then."""
    time = at if world.kind.name == "sqlite" else f"to_timestamp({at})"
    world.tamper(f"UPDATE migration SET applied_at = {time}")


def found(world: World, *where: str, **more: int) -> list[EventRow]:
    return world.store.journal.events(where=[condition(text) for text in where], **more)  # type: ignore[arg-type]


def test_an_event_has_data_and_its_sentence_is_rendered_from_it(world: World) -> None:
    world.start_with_pages(2)
    slow, broken = world.claim()
    world.turn("w", throttled(slow, 30.0, "api.acme.com"), quarantined(broken, "no price"))
    [event] = world.store.journal.events(kind="job.throttled")
    assert event.data["host"] == "api.acme.com"
    assert event.data["again_in_s"] == 30.0
    assert event.detail.endswith("(again in 30.0 s)")
    [event] = world.store.journal.events(kind="job.quarantined")
    assert event.data["error"] == "no price"
    assert event.detail == f"{event.data['reason']}: no price"


def test_an_event_names_the_worker_that_it_is_about(world: World) -> None:
    run_id = world.start_with_pages(2)
    first, second = world.claim()
    world.turn("w", done(first), quarantined(second))
    world.store.runs.retry_failed(run_id, "ann", "mended")
    workers = {row.kind: row.worker for row in world.store.journal.events(run_id=run_id, limit=100)}
    assert workers["job.started"] == workers["job.succeeded"] == workers["job.quarantined"] == "w"
    assert workers["job.requeued"] is workers["run.queued"] is None


def test_events_are_found_by_their_data_and_their_columns(world: World) -> None:
    world.start_with_pages(3)
    one, two, three = world.claim()
    world.turn("w", throttled(one, 9.0, "a.com"), throttled(two, 9.5, "b.com"), retried(three, 9))
    assert [row.job_id for row in found(world, "data.host=a.com")] == [one.id]
    assert [row.job_id for row in found(world, "data.again_in_s=9.5")] == [two.id]
    assert found(world, "data.host=a.com", f"job={two.id}") == []
    assert found(world, "data.host=c.com") == found(world, "data.nothing=a.com") == []
    started = found(world, "worker=w", "kind=job.started")
    assert {row.job_id for row in started} >= {one.id, two.id, three.id}
    assert found(world, "worker=v") == []
    assert [row.id for row in found(world, "worker=w", limit=1)] == [
        row.id for row in found(world, "actor=w", "kind=job")[-1:]
    ]


def test_events_that_match_are_followed_past_those_that_do_not(world: World) -> None:
    _, cursor = world.store.journal.follow(None)
    run_id = world.start_with_pages(20)
    world.store.runs.pause(run_id, "ann", "for now")
    wanted = [condition("actor=ann")]
    rows, cursor = world.store.journal.follow(cursor, limit=2, where=wanted)
    assert [row.kind for row in rows] == ["run.paused"]
    assert world.store.journal.follow(cursor, limit=2, where=wanted)[0] == []


def test_what_older_versions_wrote_as_sentences_is_read_and_found_as_data(world: World) -> None:
    source = world.source("acme.com")
    write_as_before(
        world,
        ("schedule.missed", source, None, None, None, "scheduler", "main: 1,200 ticks missed"),
        ("breaker.opened", None, None, None, None, "", "a.com: it failed; tried again in 30 s"),
        ("budget.warned", source, None, None, None, "", "in words of old"),
    )
    missed, opened, warned = world.store.journal.events()[-3:]
    assert (missed.data, missed.detail) == (
        {"schedule": "main", "ticks": 1200},
        "main: 1,200 ticks missed",
    )
    assert opened.data["host"] == "a.com"
    assert (warned.data, warned.detail) == ({"text": "in words of old"}, "in words of old")
    assert found(world, "data.host=a.com") == [opened]
    assert found(world, "data.ticks=1200", "source=acme.com") == [missed]
    assert found(world, "data.ticks=12") == []


def test_events_that_were_written_under_an_old_name_are_found_under_the_new_one(
    world: World,
) -> None:
    source = world.source("acme.com")
    _, cursor = world.store.journal.follow(None)
    about = (source, None, None, None, "", "")
    data = to_json({"jobs": 1, "before": 4, "cause": "errors"})
    write_as_before(
        world, ("source.slowed", *about, data), ("source.sped_up", *about, '{"jobs":4}')
    )
    old, new = "source.slowed", "source.concurrency_lowered"
    [event] = world.store.journal.events(kind=new)
    assert (event.kind, event.detail) == (new, "1 job at once instead of 4: errors")
    for kind in (old, new):
        assert (
            world.store.journal.events(kind=kind)
            == world.store.journal.events(kind=kind, after_id=0)
            == [event]
        )
        assert world.store.journal.follow(None, kind=kind)[0] == [event]
        assert world.store.journal.follow(cursor, kind=kind)[0] == [event]
        assert world.store.journal.follow_kinds(cursor, [kind])[0] == [event]
        assert found(world, f"kind={kind}") == [event]
    assert len(world.store.journal.events(kind="source")) == 2


def test_old_sentences_become_data_piece_by_piece_and_read_the_same(world: World) -> None:
    migrated_at(world, "9000000000.0")
    world.start_with_pages(3)
    source = world.source("acme.com")
    about = (source, None, None, None, "scheduler")
    write_as_before(
        world, *(("schedule.missed", *about, f"main: {n} ticks missed") for n in (2, 3, 4))
    )
    write_as_before(world, ("schedule.denied", *about, "in words of old"))
    before = world.store.journal.events(limit=100)
    pieces = 0
    while world.store.upkeep.convert_sentences(limit=2):
        pieces += 1
        assert world.store.journal.events(limit=100) == before
    assert pieces > 2
    db = world.store._db
    assert db.json("old_sentences", after_id=0, limit=1000)["lines"] == []
    assert world.store.upkeep.convert_sentences() == 0


def test_a_new_journal_is_not_walked_along(world: World) -> None:
    migrated_at(world, "0.0")
    world.start_with_pages(50)
    assert world.store.upkeep.convert_sentences(limit=5) == 5
    assert world.store.upkeep.convert_sentences(limit=5) == 0
