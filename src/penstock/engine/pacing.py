"""Pacing: requests that wait for their place in time ask the store for it, all of them in one call.

While one call is under way, the next requests pile up and share the next one. The calls are made in the
thread and over the connection of the worker's turns: a second writer in the same process would wait
with it for the one lock of SQLite, and would look to it like somebody who has work for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock.engine.calls import Calls
from penstock.engine.trouble import RETRY_S, Trouble
from penstock.errors import StoreError
from penstock.gates.rates import LONGEST_WAIT_S, Sent, Verdict, Want
from penstock.store.store import Store

_Asked = tuple[Want, asyncio.Future[Verdict]]


class Pacing:
    """The door to the network, kept by the store for all workers of all hosts."""

    def __init__(self, store: Store, calls: Calls) -> None:
        self._store = store
        self._calls = calls
        self._asked: list[_Asked] = []
        self._closings: dict[str, float] = {}
        self._asking: asyncio.Task[None] | None = None
        self.trouble: Trouble | None = None

    async def ask(self, want: Want) -> Verdict:
        """May this request go out, and when?

        Nothing goes out that the store did not give a place. While it can't be asked, requests wait as
        long as they would for a place, and are then told to come back.
        """
        if not self._is_bounded(want):
            return Verdict(0.0)
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._asked.append((want, answer))
        self._begin()
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                return await answer
        except TimeoutError:
            return Verdict(LONGEST_WAIT_S, "store")

    def told(self, want: Want, sent: Sent) -> None:
        """What became of a request, for whoever counts."""

    def _is_bounded(self, want: Want) -> bool:
        """Whether anything of this request is for the store to decide."""
        return bool(want.rate_per_s)

    def close(self, host: str, for_s: float) -> None:
        """Tell all workers of all hosts that this one asked to be left alone."""
        self._closings[host] = max(for_s, self._closings.get(host, 0.0))
        self._begin()

    def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    def _begin(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_all())

    async def _ask_all(self) -> None:
        while (batch := self._waiting()) or self._closings:
            closings, self._closings = self._closings, {}
            self._asked = []
            try:
                await self._ask_for(batch, closings)
            except StoreError as error:
                self._asked = [*batch, *self._asked]
                self._closings = closings | self._closings
                await asyncio.sleep(self._wait_s(error))

    def _waiting(self) -> list[_Asked]:
        """Who waits for an answer; who was cancelled or gave up needs no place any more."""
        return [(want, answer) for want, answer in self._asked if not answer.done()]

    async def _ask_for(self, batch: list[_Asked], closings: dict[str, float]) -> None:
        wants = [want for want, _ in batch]
        verdicts = await self._calls(lambda: self._exchange(wants, closings))
        for (_, answer), verdict in zip(batch, verdicts, strict=True):
            if not answer.done():
                answer.set_result(verdict)

    def _exchange(self, wants: list[Want], closings: dict[str, float]) -> list[Verdict]:
        """In the store's thread."""
        if self.trouble is not None:
            self.trouble.mend()
        if closings:
            self._store.close_hosts(closings)
        return self._store.reserve_places(wants) if wants else []

    def _wait_s(self, error: StoreError) -> float:
        # What can't be waited for ends the worker: its next turn meets it too.
        with suppress(StoreError):
            if self.trouble is not None:
                return self.trouble.wait_s(error)
        return RETRY_S
