"""Metrics on a port of their own, while something else works: one endpoint for all processes of a project.

The figures come from the store, so whoever serves them serves those of all. Of processes that name the same
port of one host for one project, one serves; when it ends, another one that is still at work takes over.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from penstock.app.calls import InOneThread
from penstock.errors import PenstockError
from penstock.web.listener import Listener
from penstock.web.settings import WebSettings

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TRY_AGAIN_S = 0.5
ENDING_S = 10.0


@contextmanager
def serving_metrics(
    project: Project, host: str, port: int, tell: Callable[[str], None]
) -> Iterator[None]:
    """Serve them until the block ends, or wait for the turn to.

    A port that another program has is told and changes nothing else: figures are not worth the work.
    """
    serving = _Serving(project, host, port, tell)
    thread = threading.Thread(target=serving.run, name="metrics", daemon=True)
    thread.start()
    serving.is_settled.wait(ENDING_S)
    try:
        yield
    finally:
        serving.stop()
        thread.join(ENDING_S)


class _Serving:
    def __init__(self, project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
        self._project, self._tell = project, tell
        self._settings = WebSettings(host=host, port=port)
        self._listener: Listener | None = None
        self._is_over = threading.Event()
        # It serves, or knows that another process does, or that it can't.
        self.is_settled = threading.Event()

    def run(self) -> None:
        turn = None
        try:
            turn = self._turn()
            if turn is not None:
                asyncio.run(self._serve())
        except (PenstockError, OSError) as error:
            self._tell(f"no metrics on port {self._settings.port}: {error}")
        finally:
            self.is_settled.set()
            if turn is not None:
                os.close(turn)

    def stop(self) -> None:
        self._is_over.set()
        if self._listener is not None:
            self._listener.stop()

    def _turn(self) -> int | None:
        """The lock on this port among the processes of the project; None if it is over before."""
        path = self._project.settings.root / f".metrics-{self._settings.port}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        while not self._is_over.is_set():
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            self.is_settled.set()
            self._is_over.wait(TRY_AGAIN_S)
        os.close(descriptor)
        return None

    async def _serve(self) -> None:
        calls = InOneThread("metrics")

        async def metrics(_: Request) -> PlainTextResponse:
            text = await calls(self._project.metrics.text)
            return PlainTextResponse(text, headers={"Content-Type": CONTENT_TYPE})

        app = Starlette(routes=[Route("/metrics", metrics, methods=["GET"])])
        self._listener = Listener(app, self._settings, self._tell)
        self._listener.on_listening = lambda port: self.is_settled.set()
        if self._is_over.is_set():
            return
        try:
            await self._listener.serve()
        finally:
            await calls(self._project.close)
            calls.close()
