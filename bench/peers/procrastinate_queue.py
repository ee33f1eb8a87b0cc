"""Procrastinate on Postgres: no-op tasks deferred in batches, then drained by its own async worker."""

from __future__ import annotations

import asyncio
import logging
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import procrastinate
import psycopg

TASK = "nothing"


def drain(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Defer all tasks, then run its workers until none is left; ended jobs stay, as ours do."""
    asyncio.run(_prepare(size))
    began = time.perf_counter()
    asyncio.run(_defer(size))
    enqueue_seconds = time.perf_counter() - began
    drain_seconds = _work(size)
    done = _succeeded(size)
    if done != size["jobs"]:
        raise ValueError(f"{done} of {size['jobs']} jobs ended")
    return {
        "seconds": enqueue_seconds + drain_seconds,
        "done": done,
        "enqueue_seconds": enqueue_seconds,
        "drain_seconds": drain_seconds,
    }


def _app(size: dict[str, Any]) -> procrastinate.App:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    pool = size["concurrency"] + 2
    connector = procrastinate.PsycopgConnector(
        conninfo=size["store"], min_size=min(4, pool), max_size=pool
    )
    app = procrastinate.App(connector=connector)

    @app.task(name=TASK)
    async def nothing(source: int, key: str) -> None:
        """Do nothing."""

    return app


async def _prepare(size: dict[str, Any]) -> None:
    async with _app(size).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def _defer(size: dict[str, Any]) -> None:
    per_source = size["jobs"] // size["sources"]
    async with _app(size).open_async() as app:
        for source in range(size["sources"]):
            for first in range(0, per_source, size["chunk"]):
                numbers = range(first, min(first + size["chunk"], per_source))
                urls = [f"https://example.test/{source}/{number}" for number in numbers]
                await app.tasks[TASK].batch_defer_async(
                    *({"source": source, "key": url} for url in urls)
                )


def _work(size: dict[str, Any]) -> float:
    """Seconds from when every worker process is ready until the last one found nothing to do."""
    spawn = get_context("spawn")
    ready = spawn.Barrier(size["processes"] + 1)
    workers = [
        spawn.Process(target=_run_worker, args=(size, ready)) for _ in range(size["processes"])
    ]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def _run_worker(size: dict[str, Any], ready: Barrier) -> None:
    async def work() -> None:
        async with _app(size).open_async() as app:
            ready.wait()
            await app.run_worker_async(
                wait=False, concurrency=size["concurrency"], install_signal_handlers=False
            )

    asyncio.run(work())


def _succeeded(size: dict[str, Any]) -> int:
    with psycopg.connect(size["store"]) as connection:
        row = connection.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
        ).fetchone()
    return int(row[0]) if row else 0
