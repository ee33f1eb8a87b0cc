"""Bare aiohttp: fetches every page and forgets it. The ceiling for anything that fetches with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from bench.site import divided, paths


def crawl(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fetch all pages, each host's with `concurrency` tasks that share one queue of addresses."""
    done, seconds = asyncio.run(_crawl(size))
    if done != size["pages"]:
        raise ValueError(f"{done} of {size['pages']} pages were fetched")
    return {"seconds": seconds, "done": done}


async def _crawl(size: dict[str, Any]) -> tuple[int, float]:
    origins, status = size["origins"], 304 if size.get("asks_for_changes") else 200
    headers = {"If-None-Match": '"first"'} if size.get("asks_for_changes") else {}
    queues = [
        iter([origin + path for path in listed])
        for origin, listed in zip(origins, divided(paths(size["pages"]), len(origins)), strict=True)
    ]

    async def work(session: aiohttp.ClientSession, waiting: Iterator[str]) -> int:
        fetched = 0
        for url in waiting:
            async with session.get(url) as response:
                if response.status != status:
                    raise ValueError(f"{url} answered {response.status}")
                await response.read()
                fetched += 1
        return fetched

    began = time.perf_counter()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        done = await asyncio.gather(
            *(work(session, queue) for queue in queues for _ in range(size["concurrency"]))
        )
    return sum(done), time.perf_counter() - began
