"""Tabs: the pages that are drawn at once, in the browser's process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.http.browser.allowance import Allowance, OutOfTime
from penstock.http.browser.messages import Answer, Asked, Drawn, Failed, FromBrowser, Render
from penstock.http.browser.tab import BadPage, Tab, open_tab

if TYPE_CHECKING:
    from playwright.async_api import Browser

# A tab is used again, for pages of the same source; an old one is given up.
MOST_USES = 50
UNUSED_S = 20.0
# So long after it was drawn, a page that nobody has replaced is taken from its tab: its scripts may go on.
REST_S = 1.0
OPEN_S = 60.0
CLOSE_S = 3.0
PICTURE_S = 5.0


class Tabs:
    """Draws pages, each in a tab of its own, and tells what came of it."""

    def __init__(self) -> None:
        self.browser: Browser | None = None
        self.send: Callable[[FromBrowser], None] = lambda message: None
        self.has_just_killed: Callable[[], bool] = lambda: False
        self._free: list[Tab] = []
        self._drawing: dict[int, asyncio.Task[None]] = {}
        self._allowances: dict[int, Allowance] = {}
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._asked = 0
        self._working: set[asyncio.Task[Any]] = set()

    @property
    def drawing(self) -> int:
        return len(self._drawing)

    def render(self, wanted: Render) -> None:
        task = asyncio.create_task(self._render(wanted))
        self._drawing[wanted.id] = task
        task.add_done_callback(lambda _: self._drawing.pop(wanted.id, None))

    def hold(self, render: int) -> None:
        if (allowance := self._allowances.get(render)) is not None:
            allowance.hold()

    def go(self, render: int) -> None:
        if (allowance := self._allowances.get(render)) is not None:
            allowance.go()

    def cancel(self, render: int) -> None:
        if (task := self._drawing.get(render)) is not None:
            task.cancel()

    def answer(self, answer: Answer) -> None:
        waiting = self._answers.pop(answer.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def ask(self, asked: Asked) -> Answer:
        """What the worker answers to a request of a page."""
        self._asked += 1
        number = self._asked
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[number] = answered
        try:
            self.send(msgspec.structs.replace(asked, id=number))
            return await answered
        finally:
            self._answers.pop(number, None)

    async def _render(self, wanted: Render) -> None:
        tab = self._taken(wanted)
        try:
            if tab is None:
                tab = await self._opened(wanted)
            allowance = self._allowances[wanted.id] = Allowance(wanted.wait_timeout_s)
            drawn = await self._drawn(tab, wanted, allowance)
        except BadPage as bad:
            is_worn = tab is not None and not await self._close(tab)
            self.send(Failed(wanted.id, bad.reason, bad.is_permanent, bad.picture, is_worn))
        except BaseException:
            if tab is not None:
                self._close_aside(tab)
            raise
        else:
            self.send(drawn)
            if tab.is_clean and tab.uses < MOST_USES:
                self._give_back(tab)
            else:
                self._close_aside(tab)
        finally:
            self._allowances.pop(wanted.id, None)

    async def _opened(self, wanted: Render) -> Tab:
        assert self.browser is not None  # noqa: S101
        try:
            async with asyncio.timeout(OPEN_S):
                return await open_tab(self.browser, wanted, self.ask)
        except TimeoutError:
            raise BadPage("the browser opened no tab in time") from None

    async def _drawn(self, tab: Tab, wanted: Render, allowance: Allowance) -> Drawn:
        """The page as it stands when it is ready; what is wrong with it is raised as a BadPage."""
        try:
            html = await allowance.within(tab.draw(wanted, self.has_just_killed))
            if len(html) > wanted.max_bytes:
                raise BadPage(f"the page is larger than {wanted.max_bytes} bytes", True)
            picture = await _picture(tab) if wanted.screenshot == "always" else b""
            return Drawn(wanted.id, tab.page.url, html, picture)
        except OutOfTime:
            raise await _with_picture(tab, wanted, BadPage(tab.late(wanted))) from None
        except BadPage as bad:
            raise await _with_picture(tab, wanted, bad) from None

    def _taken(self, wanted: Render) -> Tab | None:
        found = next((tab for tab in self._free if tab.suits(wanted)), None)
        if found is not None:
            self._free.remove(found)
        return found

    def _give_back(self, tab: Tab) -> None:
        self._free.append(tab)
        loop = asyncio.get_running_loop()
        loop.call_later(REST_S, self._rest, tab, tab.uses)
        loop.call_later(UNUSED_S, self._sweep, tab, tab.uses)

    def _rest(self, tab: Tab, uses: int) -> None:
        if tab in self._free and tab.uses == uses:
            self._free.remove(tab)
            self._aside(self._emptied(tab))

    def _sweep(self, tab: Tab, uses: int) -> None:
        if tab in self._free and tab.uses == uses:
            self._free.remove(tab)
            self._close_aside(tab)

    def _close_aside(self, tab: Tab) -> None:
        self._aside(self._close(tab))

    def _aside(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _emptied(self, tab: Tab) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await tab.empty()
        except (BadPage, TimeoutError):
            await self._close(tab)
        else:
            self._free.append(tab)

    async def _close(self, tab: Tab) -> bool:
        """Whether it could be closed."""
        try:
            async with asyncio.timeout(CLOSE_S):
                await tab.close()
        except TimeoutError:
            return False
        return True


async def _with_picture(tab: Tab, wanted: Render, bad: BadPage) -> BadPage:
    if wanted.screenshot != "never":
        bad.picture = await _picture(tab)
    return bad


async def _picture(tab: Tab) -> bytes:
    """Empty where none can be taken: a page may be busy with itself for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PICTURE_S):
            return await tab.picture()
    return b""
