"""Messages in memory: bounded by their bytes, however many jobs there are."""

from __future__ import annotations

import asyncio

from penstock.connectors.imap.room import Room


def test_messages_that_are_held_stay_below_the_limit_and_all_get_their_turn() -> None:
    room, held, seen, done = Room(100), 0, [0], []

    async def job(number: int, size: int) -> None:
        nonlocal held
        async with room.take(size):
            held += min(size, 100)
            seen.append(held)
            await asyncio.sleep(0)
            held -= min(size, 100)
        done.append(number)

    async def all_jobs() -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*(job(n, 40 if n % 5 else 400) for n in range(40)))

    asyncio.run(all_jobs())
    assert max(seen) <= 100
    assert len(done) == 40


def test_job_that_is_stopped_while_it_waits_takes_no_room() -> None:
    async def tried() -> None:
        room = Room(10)
        async with room.take(10):
            waiting = [asyncio.ensure_future(_taken(room)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.sleep(0)
        # Its turn came, and it was stopped before it heard of that.
        waiting[1].cancel()
        async with asyncio.timeout(30):
            await waiting[2]
            await _taken(room)

    asyncio.run(tried())


async def _taken(room: Room) -> None:
    async with room.take(10):
        await asyncio.sleep(0)
