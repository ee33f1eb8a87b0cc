"""Answers of many lines, sent as they are read: nothing of them is held in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from penstock.web.threads import LONG_READ_S

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project

MEDIA_TYPE = "application/x-ndjson"
LINES_AT_ONCE = 500


async def lines_response(
    request: Request, read: Callable[[Project], Iterator[str]], release: Callable[[], None]
) -> StreamingResponse:
    """Lines of JSON, in chunks. A connection belongs to one thread, so all of them are read in one."""
    project: Project = request.app.state.project
    mask: Callable[[str], str] = request.app.state.mask
    thread, loop = ThreadPoolExecutor(1, "lines"), asyncio.get_running_loop()
    lines: list[Iterator[str]] = []
    bounds = ExitStack()

    def begin() -> str:
        bounds.enter_context(project.connection.only_reading(LONG_READ_S))
        lines.append(read(project))
        return chunk()

    def chunk() -> str:
        return "".join(f"{line}\n" for line in islice(lines[0], LINES_AT_ONCE))

    def end() -> None:
        # An unfinished generator is ended where its connection is.
        lines.clear()
        bounds.close()
        project.connections.close_of_this_thread()

    def leave() -> None:
        thread.submit(end)
        thread.shutdown(wait=False)
        release()

    try:
        # What can be refused is refused before the answer begins.
        first = await loop.run_in_executor(thread, begin)
    except BaseException:
        leave()
        raise

    async def chunks() -> AsyncIterator[bytes]:
        try:
            text = first
            while text:
                yield mask(text).encode()
                text = await loop.run_in_executor(thread, chunk)
        finally:
            leave()

    return StreamingResponse(chunks(), media_type=MEDIA_TYPE)
