"""Page lookups: what is known of pages, for attempts that visit them at the same time.

Each attempt of an incremental run asks about its page before it visits it. One question to the store for each
would cost a hop to its thread, and a wait for the turn that is under way; those that wait together are one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

from penstock.engine.worker.lease import PatientCalls
from penstock.store.pages import PageRow
from penstock.store.store import Store


@dataclass(frozen=True, slots=True)
class _Question:
    source_id: int
    url: str
    answer: asyncio.Future[PageRow | None]


@dataclass(eq=False, slots=True)
class PageLookups:
    """Asks for the attempts of one worker. On the event loop."""

    store: Store
    ask: PatientCalls
    _waiting: list[_Question] = field(default_factory=list, init=False)
    _asking: asyncio.Task[None] | None = field(default=None, init=False)

    async def get(self, source_id: int, url: str) -> PageRow | None:
        """The page as it was extracted last; None if that never happened."""
        loop = asyncio.get_running_loop()
        question = _Question(source_id, url, loop.create_future())
        self._waiting.append(question)
        if self._asking is None or self._asking.done():
            self._asking = loop.create_task(self._ask_all())
        return await question.answer

    async def _ask_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                found = await self.ask(partial(self._look, batch))
            except Exception as error:
                self._fail(batch, error)
                continue
            for question in batch:
                if not question.answer.done():
                    question.answer.set_result(found.get((question.source_id, question.url)))

    def _fail(self, batch: list[_Question], error: Exception) -> None:
        for question in batch:
            if not question.answer.done():
                question.answer.set_exception(error)

    def _look(self, batch: list[_Question]) -> dict[tuple[int, str], PageRow | None]:
        """In the store's thread. Most pages of a first run are new: nothing else is read of those."""
        asked: dict[int, list[str]] = defaultdict(list)
        for question in batch:
            asked[question.source_id].append(question.url)
        pages = self.store.pages
        return {
            (source_id, url): pages.get(source_id, url)
            for source_id, urls in asked.items()
            for url, known in pages.known(source_id, urls).items()
            if known.done_hash is not None
        }
