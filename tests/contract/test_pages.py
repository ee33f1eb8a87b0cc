"""What is known of pages is written with the attempt that heard or did it, under its fence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock.engine.worker.lease import PatientCalls
from penstock.engine.worker.page_lookups import PageLookups
from penstock.errors import StoreUnreachable
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Announced, Effects, Extracted, Save
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.pages import URL_BYTES, PageRow
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, a_job, done, quarantined, released

URL = "https://acme.com/a"


def extracted(url: str = URL, **about: Any) -> Extracted:
    return Extracted(url, **{"hash": "h1", "snapshot": 7, "at": 100.0, "version": "v1", **about})


def page_of(world: World, url: str = URL, source: str = "acme.com") -> PageRow:
    found = world.store.pages.get(world.source(source), url)
    assert found is not None
    return found


def known(world: World, url: str = URL) -> PageRow | None:
    return world.store.pages.get(world.source(), url)


def a_page(world: World, key: str = "first") -> Claimed:
    """A page's job of a run that was just begun."""
    world.start_with_pages(1, key=key)
    return world.one()


def ended(world: World, job: Claimed, *pages: Extracted, announced: str = "") -> None:
    effects = Effects(extracted=list(pages))
    if announced:
        effects.announced.append(Announced(URL, announced))
    world.turn("w", done(job, effects=effects))


def test_page_is_done_with_when_its_attempt_is_written(world: World) -> None:
    job = a_page(world)
    assert known(world) is None
    ended(world, job, extracted(parts=2))

    page = page_of(world)
    assert (page.done_hash, page.done_version, page.done_at) == ("h1", "v1", 100.0)
    assert (page.done_run_id, page.done_parts, page.snapshot) == (job.run_id, 2, None)
    assert (page.announced, page.announced_run_id, page.done_announced) == ("", None, "")


def test_attempt_that_lost_its_job_says_nothing_of_pages(world: World) -> None:
    world.register("other")
    job = a_page(world)
    world.turn("w", released(job))
    again = world.one("other")
    late = Effects(announced=[Announced(URL, "2026")], extracted=[extracted(version="late")])

    turn = world.turn("w", Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=late))
    flush = world.turn("w", Flush(job.id, job.attempt, late, 1))

    assert (turn.lost, flush.lost) == ([job.id], [job.id])
    assert known(world) is None
    world.turn("other", done(again, effects=Effects(extracted=[extracted()])))
    assert page_of(world).done_version == "v1"


def test_turn_that_can_not_note_a_page_settles_nothing(world: World) -> None:
    job = a_page(world)
    with world.breaking("INSERT", "page"), pytest.raises(Exception, match="planted"):
        ended(world, job, extracted())
    assert world.job(job.id).state is JobState.RUNNING
    ended(world, job, extracted())
    assert world.job(job.id).state is JobState.SUCCEEDED


def test_announcement_stands_beside_what_was_done_and_is_known_by_its_run(world: World) -> None:
    job = a_page(world)
    flush = Flush(job.id, job.attempt, Effects(announced=[Announced(URL, "2026-11-01")]), 1)
    world.turn("w", flush)
    page = page_of(world)
    assert (page.announced, page.announced_run_id) == ("2026-11-01", job.run_id)
    assert (page.done_hash, page.done_announced) == (None, "")

    ended(world, job, extracted())
    page = page_of(world)
    assert (page.done_hash, page.done_announced) == ("h1", "2026-11-01")

    second = a_page(world, "second")
    world.turn(
        "w", Flush(second.id, second.attempt, Effects(announced=[Announced(URL, "2026-12-01")]), 1)
    )
    page = page_of(world)
    assert (page.announced, page.announced_run_id) == ("2026-12-01", second.run_id)
    assert (page.done_announced, page.done_hash, page.done_run_id) == (
        "2026-11-01",
        "h1",
        job.run_id,
    )


def test_announced_and_done_in_one_turn_are_one_page(world: World) -> None:
    job = a_page(world)
    ended(world, job, extracted(), announced="2026-11-02")
    page = page_of(world)
    assert (page.announced, page.done_announced, page.done_hash) == (
        "2026-11-02",
        "2026-11-02",
        "h1",
    )


def test_page_that_was_only_looked_at_keeps_the_run_that_extracted_it(world: World) -> None:
    first = a_page(world)
    ended(world, first, extracted())
    second = a_page(world, "second")
    ended(world, second, extracted(at=200.0, is_same=True, snapshot=8), announced="2026-11-03")

    page = page_of(world)
    assert (page.done_run_id, page.done_at, page.done_announced) == (
        first.run_id,
        200.0,
        "2026-11-03",
    )


def test_pages_of_sources_are_their_own(world: World) -> None:
    ended(world, a_page(world), extracted())
    world.start_with_pages(1, source="other.com")
    other = world.one()
    world.turn("w", done(other, effects=Effects(extracted=[extracted(hash="h2")])))
    assert page_of(world).done_hash == "h1"
    assert page_of(world, source="other.com").done_hash == "h2"


@pytest.mark.parametrize(
    "url",
    [
        "https://acme.com/" + "x" * 20_000,
        "https://acme.com/" + "é" * URL_BYTES,
        "https://acme.com/\ud800\x00",
        "https://acme.com/'\"\\; --",
    ],
)
def test_any_address_can_be_known(world: World, url: str) -> None:
    job = a_page(world)
    twin = url + "y"
    ended(world, job, extracted(url), extracted(twin, hash="h2"))
    assert page_of(world, url).done_hash == "h1"
    assert page_of(world, twin).done_hash == "h2"


def test_many_pages_and_one_page_many_times_in_a_turn(world: World) -> None:
    world.start_with_pages(50)
    jobs = world.claim()
    ends = [
        done(job, effects=Effects(extracted=[extracted(f"{URL}{n}"), extracted(hash=f"h{n}")]))
        for n, job in enumerate(jobs)
    ]
    world.turn("w", *ends)
    assert page_of(world, f"{URL}49").done_hash == "h1"
    assert page_of(world).done_hash == "h49"


def test_snapshot_comes_with_its_page_until_retention_drops_it(world: World) -> None:
    job = a_page(world)
    where = ("hash", "segment", 0, 10)
    about = (job.id, job.run_id, URL, 200, {"etag": '"1"'}, world.clock.now())
    kept = Kept(7, *about, *where, "https://acme.com/b")
    end = done(job, effects=Effects(extracted=[extracted()]))
    world.store.turn("w", [end], Capacity(0), {}, [kept])

    snapshot = page_of(world).snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.headers, snapshot.final_url) == (
        7,
        {"etag": '"1"'},
        "https://acme.com/b",
    )
    world.clock.advance(100)
    world.turn("w", *[done(job) for job in world.claim()])
    while world.store.upkeep.prune(Keep(None, None, None, snapshots_s=10.0)):
        pass
    page = page_of(world)
    assert (page.snapshot, page.done_hash) == (None, "h1")


def keep(world: World, job: Claimed, snapshot_id: int, *ends: Settlement | Flush) -> None:
    headers: dict[str, str] = {}
    about = (job.id, job.run_id, URL, 200, headers, world.clock.now())
    kept = Kept(snapshot_id, *about, f"hash{snapshot_id}", "segment", snapshot_id, 10)
    world.store.turn("w", ends, Capacity(0), {}, [kept])


def test_page_whose_attempt_is_quarantined_is_not_done_with(world: World) -> None:
    ended(world, a_page(world), extracted())
    second = a_page(world, "second")
    keep(world, second, 8)
    world.turn("w", quarantined(second))

    page = page_of(world)
    assert (page.done_hash, page.done_version) == ("h1", "")


def test_page_whose_candidate_is_quarantined_is_not_done_with(world: World) -> None:
    job = a_page(world)
    child = NewJob("persist", "c", b"{}", 5, snapshot=9)
    effects = Effects(children=[child], extracted=[extracted(snapshot=9)])
    keep(world, job, 9, done(job, effects=effects))
    assert page_of(world).done_version == "v1"

    world.turn("w", quarantined(world.one()))
    assert page_of(world).done_version == ""


def test_quarantined_job_that_had_no_page_changes_none(world: World) -> None:
    ended(world, a_page(world), extracted())
    run_id = world.start(key="second")
    world.store.jobs.enqueue(run_id, [a_job("x")])
    world.turn("w", *[quarantined(job) for job in world.claim()])
    assert page_of(world).done_version == "v1"


def test_page_that_no_run_has_met_for_long_is_forgotten(world: World) -> None:
    ended(world, a_page(world), extracted(), *(extracted(f"{URL}{n}") for n in range(25)))
    world.clock.advance(100)
    world.start_with_pages(1, key="second")
    met = world.one()
    announced = Effects(announced=[Announced(f"{URL}7", "2026")])
    world.turn("w", Flush(met.id, met.attempt, announced, 1))

    looked, after = 0, world.store.pages.forget(50.0, limit=10)
    while after is not None:
        looked, after = looked + 1, world.store.pages.forget(50.0, after, limit=10)

    assert looked == 3
    assert [row[1] for row in world.dump()["page"]] == [f"{URL}7"]
    assert page_of(world, f"{URL}7").done_hash == "h1"


def announce(world: World, job: Claimed, number: int, *times: str) -> None:
    heard = Effects(announced=[Announced(URL, at) for at in times])
    world.turn("w", Flush(job.id, job.attempt, heard, number))


def test_page_that_is_announced_twice_and_not_alike_has_said_nothing(world: World) -> None:
    job = a_page(world)
    announce(world, job, 1, "2026-11-01", "2026-11-01")
    announce(world, job, 2, "2026-11-01")
    assert page_of(world).announced == "2026-11-01"
    announce(world, job, 3, "2026-11-02")
    announce(world, job, 4, "2026-11-02")
    assert page_of(world).announced == ""

    other = a_page(world, "second")
    announce(world, other, 1, "2026-11-02")
    assert page_of(world).announced == "2026-11-02"
    announce(world, other, 2, "2026-11-02", "2026-11-03")
    assert page_of(world).announced == ""


def test_pages_are_known_by_address_listed_in_order_and_dropped_when_they_are_gone(
    world: World,
) -> None:
    urls = [f"files://notes/{name}" for name in ("ä", "B", "a", "x y")]
    ended(world, a_page(world), *(extracted(url) for url in urls))
    pages, source = world.store.pages, world.source()

    found = pages.known(source, [urls[0], urls[2], "files://notes/none"])
    assert {url: page.done_hash for url, page in found.items()} == {urls[0]: "h1", urls[2]: "h1"}
    listed, after = [], ""
    while page := pages.after(source, after, 3):
        listed += [each.url for each in page]
        after = listed[-1]
    assert listed == sorted(urls, key=str.encode)

    job = a_page(world, "second")
    world.turn("w", done(job, effects=Effects(gone=[urls[1], urls[1]])))
    assert [each.url for each in pages.after(source, "", 10)] == sorted(
        set(urls) - {urls[1]}, key=str.encode
    )


def test_page_of_a_deletion_that_was_undone_is_known_again(world: World) -> None:
    first = a_page(world)
    there = Save("notes", "a", b'{"text":"hi"}', None, "replace", 7)
    keep(world, first, 7, done(first, effects=Effects(saves=[there], extracted=[extracted()])))
    second = a_page(world, "second")
    gone = Save("notes", "a", b'{"deleted":true,"key":"a"}', None, "replace")
    world.turn("w", done(second, effects=Effects(saves=[gone], gone=[URL])))
    assert known(world) is None

    undo = world.store.undos.begin(second.run_id, "ann", "")
    assert world.store.undos.undo(second.run_id, undo).changed == 1

    page = page_of(world)
    assert (page.done_hash, page.done_version, page.done_run_id) == ("hash7", "", undo)


def test_pages_that_are_asked_for_together_are_one_question(world: World) -> None:
    """Each attempt asks about its page: a question of its own for each would wait for the store's thread."""
    job = a_page(world)
    ended(world, job, extracted())
    questions: list[int] = []

    async def ask(verb: Callable[[], Any]) -> Any:
        questions.append(1)
        await asyncio.sleep(0)
        return verb()

    async def look() -> list[PageRow | None]:
        lookups = PageLookups(world.store, cast(PatientCalls, ask))
        urls = [URL, *(f"https://acme.com/{number}" for number in range(50))]
        return await asyncio.gather(*(lookups.get(world.source(), url) for url in urls))

    found = asyncio.run(look())
    assert found[0] == known(world) is not None
    assert found[1:] == [None] * 50
    assert len(questions) == 1


def test_error_of_a_shared_question_reaches_everybody_who_asked(world: World) -> None:
    async def ask(verb: Callable[[], Any]) -> Any:
        raise StoreUnreachable("away")

    async def look() -> list[Any]:
        lookups = PageLookups(world.store, cast(PatientCalls, ask))
        asked = [lookups.get(1, str(number)) for number in range(3)]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in asyncio.run(look())] == [StoreUnreachable] * 3
