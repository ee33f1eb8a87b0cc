"""Bare aiohttp: fetches every page and forgets it. The ceiling for anything that fetches with it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp

from bench.site import paths


def crawl(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fetch all pages with `concurrency` tasks that share one queue of addresses."""
    return asyncio.run(_crawl(size["origin"], size["pages"], size["concurrency"]))


async def _crawl(origin: str, pages: int, concurrency: int) -> dict[str, Any]:
    waiting = iter([origin + path for path in paths(pages)])
    fetched = 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal fetched
        for url in waiting:
            async with session.get(url) as response:
                response.raise_for_status()
                await response.read()
                fetched += 1

    began = time.perf_counter()
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
    return {"seconds": time.perf_counter() - began, "done": fetched}
