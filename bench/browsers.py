"""Browsers with a page open: `python -m bench.browsers LINK COUNT` logs in and listens to the live streams.

Each loads its page again when something has happened, after the time that the server says, as the
dashboard does; they were opened at different times. Prints a line when all of them listen, and leaves when
its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

STREAM = "/api/v1/progress/stream"


@contextmanager
def watching(folder: Path, count: int) -> Iterator[int | None]:
    """So many browsers at `penstock web`, whose process this yields, until the block ends; none for 0."""
    if not count:
        yield None
        return
    serve = [sys.executable, "-m", "penstock", "web", "--port", "0", "--project", str(folder)]
    with subprocess.Popen(
        serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as web:
        try:
            look = [sys.executable, "-m", "bench.browsers", _link(web), str(count)]
            with subprocess.Popen(look, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as browsers:
                if browsers.stdout is None or not browsers.stdout.readline():
                    raise RuntimeError("the browsers could not listen")
                yield web.pid
        finally:
            web.terminate()


def processor_seconds(pid: int | None) -> float:
    """What a process of this machine, with all its threads, has used until now; 0 for none."""
    if pid is None:
        return 0.0
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _link(web: subprocess.Popen[str]) -> str:
    for line in web.stdout or ():
        if "/login?link=" in line:
            return line.split()[-1]
    raise RuntimeError("penstock web showed no link")


async def _listen(link: str, count: int) -> None:
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    jar = aiohttp.CookieJar(unsafe=True)
    no_limit = aiohttp.TCPConnector(limit=0)
    patience = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        cookie_jar=jar, connector=no_limit, timeout=patience
    ) as browser:
        async with browser.get(link) as answer:
            answer.raise_for_status()
        listening = [asyncio.Event() for _ in range(count)]
        tasks = [asyncio.create_task(_one(browser, origin, each)) for each in listening]
        for each in listening:
            await each.wait()
        print("listening", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()


async def _one(browser: aiohttp.ClientSession, origin: str, listens: asyncio.Event) -> None:
    loading: asyncio.Task[None] | None = None
    earlier = random.random()
    # Who has a page open has loaded it.
    await _load(browser, origin, 0.0)
    async with browser.get(origin + STREAM, headers={"Accept": "text/event-stream"}) as answer:
        answer.raise_for_status()
        listens.set()
        async for line in answer.content:
            if line.startswith(b"data: ") and (loading is None or loading.done()):
                wait_s = json.loads(line[6:])["reload_s"] * (1 - earlier)
                loading, earlier = asyncio.create_task(_load(browser, origin, wait_s)), 0.0


async def _load(browser: aiohttp.ClientSession, origin: str, wait_s: float) -> None:
    await asyncio.sleep(wait_s)
    async with browser.get(f"{origin}/", headers={"HX-Request": "true"}) as answer:
        await answer.read()


if __name__ == "__main__":
    asyncio.run(_listen(sys.argv[1], int(sys.argv[2])))
