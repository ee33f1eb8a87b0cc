"""Browsers of a worker: started when a page has to be drawn, given up after many, ended with the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from penstock.http.browser.client import Answering, Browser, BrowserEnded, PageFailed
from penstock.http.browser.messages import Drawn, Render
from penstock.http.browser.options import RenderOptions

# A page during which its browser ended twice, the second time alone in it, has ended it.
TOO_MUCH = "the browser ended while it drew this page, alone: it takes more than chromium can give"


class Browsers:
    """One browser for all sources, for each program and ceiling of memory that they name.

    `hold` is entered while the browser is waited for: under virtual time, a real one takes real time.
    """

    def __init__(self, hold: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._hold = hold
        self._open: dict[tuple[str, int], Browser] = {}
        self._retired: set[Browser] = set()
        self._alone = asyncio.Lock()
        self._last_id = 0

    @property
    def pids(self) -> list[int]:
        """The processes of the browsers that are open."""
        return [each.pid for each in (*self._open.values(), *self._retired)]

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def draw(self, wanted: Render, options: RenderOptions, answering: Answering) -> Drawn:
        """The page as it stands when it is ready; a PageFailed says what is wrong with it.

        If the browser ends meanwhile, by whatever page, each of its pages is drawn once more, alone.
        """
        browser = self._browser(options)
        browser.drawn += 1
        try:
            return await browser.draw(wanted, answering)
        except BrowserEnded:
            answering.start_over()
            return await self._draw_alone(wanted, options, answering)
        finally:
            self._retire_if_worn(browser, options)

    async def _draw_alone(
        self, wanted: Render, options: RenderOptions, answering: Answering
    ) -> Drawn:
        async with self._alone:
            browser = Browser(options, self._hold)
            self._retired.add(browser)
            try:
                return await browser.draw(wanted, answering)
            except BrowserEnded:
                raise PageFailed(TOO_MUCH, True) from None
            finally:
                self._retired.discard(browser)
                browser.kill()

    def _browser(self, options: RenderOptions) -> Browser:
        key = (options.browser, options.memory)
        found = self._open.get(key)
        if found is None or found.has_ended:
            if found is not None:
                found.kill()
            found = self._open[key] = Browser(options, self._hold)
        return found

    def _retire_if_worn(self, browser: Browser, options: RenderOptions) -> None:
        key = (options.browser, options.memory)
        is_worn = browser.is_worn or browser.drawn >= options.pages_per_browser
        if is_worn and self._open.get(key) is browser:
            del self._open[key]
            self._retired.add(browser)
        if browser in self._retired and not browser.drawing:
            self._retired.discard(browser)
            browser.kill()

    def close(self) -> None:
        """End them all, and wait until they are gone."""
        for browser in [*self._open.values(), *self._retired]:
            browser.close()
        self._open.clear()
        self._retired.clear()
