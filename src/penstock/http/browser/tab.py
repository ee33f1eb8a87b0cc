"""A tab: one page at a time, with cookies of its own, whose every request is answered by the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.http.browser.chromium import INIT_SCRIPT
from penstock.http.browser.messages import Answer, Asked, Render
from penstock.http.browser.options import IDLE, SELECTOR

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Route

# They are for the site's own statistics, or never end.
_UNANSWERED = frozenset(
    {"eventsource", "ping", "websocket", "cspviolationreport", "prefetch", "manifest", "texttrack"}
)
_OF_OURS = frozenset(
    "accept-encoding connection content-length host user-agent upgrade-insecure-requests".split()
)
MOST_BODY = 1_000_000

Ask = Callable[[Asked], Awaitable[Answer]]


class BadPage(Exception):
    """A page that came to nothing, and why."""

    def __init__(self, reason: str, is_permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_permanent = is_permanent
        self.picture = b""


class Tab:
    """What a page has left behind is removed before the next one is drawn."""

    def __init__(self, context: BrowserContext, page: Page, wanted: Render, ask: Ask) -> None:
        self._context = context
        self._ask = ask
        self._kind = _kind(wanted)
        self._render: Render | None = None
        self._origins: set[str] = set()
        self._broken: asyncio.Future[None] | None = None
        self._is_shown = False
        self.page = page
        self.devtools: CDPSession | None = None
        self.uses = 0
        self.is_clean = True
        page.on("crash", lambda _: self._break())
        page.on("dialog", lambda dialog: self._dismiss(dialog.dismiss()))
        context.on("page", lambda other: self._dismiss(other.close()))

    def suits(self, wanted: Render) -> bool:
        return self._kind == _kind(wanted)

    async def draw(self, wanted: Render, has_just_killed: Callable[[], bool]) -> bytes:
        """The page's HTML when it is ready."""
        from playwright.async_api import Error

        broken = self._broken = asyncio.get_running_loop().create_future()
        self._is_shown = False
        drawing = asyncio.ensure_future(self._draw(wanted))
        try:
            await asyncio.wait({drawing, broken}, return_when=asyncio.FIRST_COMPLETED)
            if broken.done() or (drawing.done() and self.page.is_closed()):
                raise _crashed(has_just_killed())
            return drawing.result()
        except Error as error:
            if has_just_killed():
                raise _crashed(True) from None
            raise _bad(error.message, wanted) from None
        finally:
            self._render = None
            if not drawing.done():
                drawing.cancel()
            # Its own error, if it has one, was caused by what is told already.
            with suppress(BaseException):
                await drawing

    async def _draw(self, wanted: Render) -> bytes:
        if self.uses:
            await self._clean()
        self.uses += 1
        self._render = wanted
        await self.page.goto(wanted.url, wait_until="load", timeout=0)
        self._is_shown = True
        if wanted.wait == IDLE:
            await self.page.wait_for_load_state("networkidle", timeout=0)
        elif wanted.wait.startswith(SELECTOR):
            selector = wanted.wait.removeprefix(SELECTOR)
            await self.page.wait_for_selector(f"css={selector}", state="attached", timeout=0)
        html = await self.page.content()
        return html.encode("utf-8", "replace")

    async def _clean(self) -> None:
        """Remove what the page before has stored."""
        await self._context.clear_cookies()
        if self.devtools is None:
            self.devtools = await self._context.new_cdp_session(self.page)
        for origin in self._origins:
            about = {"origin": origin, "storageTypes": "all"}
            await self.devtools.send("Storage.clearDataForOrigin", about)
        self._origins.clear()

    async def empty(self) -> None:
        """Leave the page that was drawn."""
        from playwright.async_api import Error

        try:
            await self.page.goto("about:blank", timeout=0)
        except Error:
            raise BadPage("the tab can't be emptied") from None

    async def picture(self) -> bytes:
        from playwright.async_api import Error

        try:
            return await self.page.screenshot(type="png", timeout=0, animations="disabled")
        except Error:
            return b""

    def late(self, wanted: Render) -> str:
        """Why a page is not ready in its time."""
        self.is_clean = False
        within = f"within {wanted.wait_timeout_s:g} s"
        if not self._is_shown:
            return f"the page did not load {within}"
        if wanted.wait.startswith(SELECTOR):
            return f"nothing on the page matches {wanted.wait.removeprefix(SELECTOR)!r} {within}"
        if wanted.wait == IDLE:
            return f"the page did not stop loading {within}; wait for a selector instead"
        return f"the page did not answer {within}"

    async def close(self) -> None:
        from playwright.async_api import Error

        with suppress(Error):
            await self._context.close()

    async def route(self, route: Route) -> None:
        """Answer a request of the page. What the worker does not answer fails."""
        from playwright.async_api import Error

        try:
            answer = await self._answered(route)
            if answer.status:
                status, headers = answer.status, answer.headers
                await route.fulfill(status=status, headers=headers, body=answer.body)
                return
        except Error:
            pass  # the page is gone, or the request is of no page
        with suppress(Error):
            await route.abort("failed")

    async def _answered(self, route: Route) -> Answer:
        wanted, kind = self._render, route.request.resource_type
        if wanted is None or kind in _UNANSWERED or kind in wanted.block:
            return Answer(0)
        asked = _asked(route, wanted)
        self._origins.add("/".join(asked.url.split("/", 3)[:3]))
        return await self._ask(asked)

    def _break(self) -> None:
        self.is_clean = False
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(None)

    def _dismiss(self, closing: Awaitable[None]) -> None:
        """A page that opens others or talks to people is not drawn on again."""
        self.is_clean = False
        task = asyncio.ensure_future(_quietly(closing))
        task.add_done_callback(lambda _: None)


async def open_tab(browser: Browser, wanted: Render, ask: Ask) -> Tab:
    """A tab with nothing in it, and no request that goes past us."""
    width, height = wanted.viewport
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        user_agent=wanted.user_agent,
        java_script_enabled=wanted.scripts,
        service_workers="block",
        accept_downloads=False,
        reduced_motion="reduce",
        permissions=[],
    )
    try:
        if wanted.scripts:
            await context.add_init_script(INIT_SCRIPT)
        await context.route_web_socket("**/*", lambda socket: _quietly(socket.close()))
        tab = Tab(context, await context.new_page(), wanted, ask)
        await context.route("**/*", tab.route)
    except BaseException:
        await _quietly(context.close())
        raise
    return tab


def _asked(route: Route, wanted: Render) -> Asked:
    request = route.request
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in _OF_OURS and not name.startswith("sec-")
    }
    is_navigation = request.is_navigation_request()
    frame = request.frame
    return Asked(
        0,
        wanted.id,
        request.method,
        request.url,
        headers,
        request.post_data_buffer,
        request.resource_type,
        is_navigation,
        frame.parent_frame is None,
        frame.url,
    )


def _kind(wanted: Render) -> tuple[object, ...]:
    return wanted.group, wanted.viewport, wanted.user_agent, wanted.scripts


def _crashed(by_us: bool) -> BadPage:
    if by_us:
        return BadPage("the page used more memory than it may (memory: raises it)", True)
    return BadPage("the page crashed in the browser")


def _bad(message: str, wanted: Render) -> BadPage:
    line = next((each.strip() for each in message.splitlines() if each.strip()), "")
    if "valid selector" in message or "parsing css selector" in message:
        selector = wanted.wait.removeprefix(SELECTOR)
        return BadPage(f"{selector!r} is no CSS selector", True)
    return BadPage(f"the page could not be shown: {line.partition(' at http')[0][:200]}")


async def _quietly(work: Awaitable[None]) -> None:
    from playwright.async_api import Error

    with suppress(Error):
        await work
