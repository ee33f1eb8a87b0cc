"""Rendering: a page fetched, drawn in a browser, and answered as it stands after that.

The page itself is fetched before any browser is asked: what is not there, not allowed or no HTML needs none.
Whatever the page then asks for goes the way of every other request: address rules, limits, budgets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

from penstock.clock import Clock
from penstock.http.addresses import host_key, look_at
from penstock.http.browser.browsers import Browsers
from penstock.http.browser.client import PageFailed, Pause
from penstock.http.browser.folder import FolderSite
from penstock.http.browser.messages import Answer, Asked, Drawn, Render
from penstock.http.browser.options import SCREENSHOT, RenderOptions
from penstock.http.browser.shelf import Shelf
from penstock.http.failures import AddressRefused, BudgetSpent, FetchError, HostClosed, Paced
from penstock.http.reach import reach_of
from penstock.http.response import Response

if TYPE_CHECKING:
    from penstock.http.cookies import Cookie
    from penstock.http.fetch import Fetcher
    from penstock.settings import FetchPolicy

HTML = ("text/html", "application/xhtml+xml")
RENDERED = "penstock-rendered"
MOST_REQUESTS = 500
MOST_BYTES = 100_000_000
MOST_NAVIGATIONS = 10
_METHODS = frozenset({"GET", "HEAD", "POST"})
# Of the answer as it went over the wire, or for whoever is on the wire.
_OF_THE_WIRE = frozenset(
    "alt-svc connection content-disposition content-encoding content-length keep-alive link nel refresh "
    "report-to reporting-endpoints set-cookie strict-transport-security transfer-encoding".split()
)


class RenderFailed(FetchError):
    """A page that the browser could not show. `screenshot` is what was to be seen of it."""

    screenshot: Response | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    response: Response
    screenshot: Response | None = None


class Renderer:
    """Draws pages for every source of one worker."""

    def __init__(self, fetcher: Fetcher, browsers: Browsers, clock: Clock) -> None:
        self._fetcher = fetcher
        self._browsers = browsers
        self._clock = clock
        self._shelf = Shelf(clock)

    async def render(
        self, url: str, policy: FetchPolicy, options: RenderOptions, **about: Any
    ) -> Rendered:
        """The page as a person would see it; a document that is no HTML, as it is.

        `about` is what every fetch of the page has: whose it is, and how it is counted.
        """
        site = FolderSite(options.folder, url) if options.folder else None
        conditions = {name: about.pop(name, None) for name in ("etag", "last_modified")}
        visit = _Visit(self._fetcher, policy, about, site, self._shelf)
        document = await visit.fetch(url, policy, **conditions)
        if document.not_modified or document.content_type not in HTML:
            return Rendered(document)
        visit.document = document
        try:
            wanted = self._wanted(document, policy, options, about)
            drawn = await self._browsers.draw(wanted, options, visit)
        except PageFailed as failed:
            raise self._failure(failed, document) from None
        return self._rendered(document, drawn, options)

    def _wanted(
        self,
        document: Response,
        policy: FetchPolicy,
        options: RenderOptions,
        about: Mapping[str, Any],
    ) -> Render:
        return Render(
            self._browsers.next_id(),
            str(about.get("source", "")),
            document.url,
            policy.user_agent,
            options.wait,
            options.wait_timeout_s,
            options.screenshot,
            options.viewport,
            options.block,
            options.scripts,
            policy.max_bytes,
        )

    def _rendered(self, document: Response, drawn: Drawn, options: RenderOptions) -> Rendered:
        # No validators: that the document is as it was says nothing of what its scripts bring.
        headers = {
            "content-type": "text/html; charset=utf-8",
            RENDERED: f"chromium; wait={options.wait}",
        }
        is_page = drawn.url.startswith(("http://", "https://"))
        url = urldefrag(drawn.url).url if is_page else document.url
        now = self._clock.now()
        response = Response(url, document.requested_url, document.status, headers, drawn.html, now)
        return Rendered(response, self._picture(document, drawn.screenshot))

    def _picture(self, document: Response, picture: bytes) -> Response | None:
        if not picture:
            return None
        address = SCREENSHOT + document.requested_url
        headers = {"content-type": "image/png"}
        return Response(address, address, 200, headers, picture, self._clock.now())

    def _failure(self, failed: PageFailed, document: Response) -> RenderFailed:
        url, status = document.requested_url, None
        error = RenderFailed(failed.reason, url, status, failed.is_permanent)
        error.screenshot = self._picture(document, failed.picture)
        return error


@dataclass(slots=True)
class _Visit:
    """The requests of one page, each of which is answered, or refused."""

    fetcher: Fetcher
    policy: FetchPolicy
    about: dict[str, Any]
    site: FolderSite | None
    shelf: Shelf
    document: Response | None = None
    arrived: dict[str, Response] = field(default_factory=dict)
    requests: int = 0
    navigations: int = 0
    received: int = 0

    def start_over(self) -> None:
        self.requests = self.navigations = self.received = 0
        self.arrived.clear()

    async def fetch(
        self, url: str, policy: FetchPolicy, pause: Pause = nullcontext, **options: Any
    ) -> Response:
        """One request, with the cookies that it brings."""
        if self.site is not None:
            return self.site.get(url, policy.max_bytes)
        about = {**self.about, **options, "idle": partial(self._idle, pause)}
        about["session"] = about.get("session") or []
        while True:
            try:
                return await self.fetcher.fetch(url, policy, **about)
            except Paced as paced:
                if self.document is None:
                    raise
                # What is drawn already would be lost with the attempt: its other requests wait in line.
                with self._idle(pause):
                    await asyncio.sleep(paced.delay_s)

    async def answer(self, asked: Asked, pause: Pause) -> Answer:
        """Errors that concern the whole source are raised; any other is a request of the page that failed."""
        self.requests += 1
        try:
            if self.requests > MOST_REQUESTS or self.received > MOST_BYTES:
                return Answer(0)
            response = await self._response(asked, pause)
        except BudgetSpent:
            raise
        except HostClosed as closed:
            if closed.host == self._host:
                raise
            return Answer(0)
        except FetchError as error:
            return Answer(0, error.status or 0)
        self.received += len(response.body)
        return self._answer(asked, response)

    async def _response(self, asked: Asked, pause: Pause) -> Response:
        url = look_at(asked.url).text
        if asked.is_navigation:
            return await self._navigated(asked, url, pause)
        self._check(asked)
        found = self.shelf.get(self._source, url) if asked.method == "GET" else None
        if found is not None:
            return found
        # robots.txt is about pages: what one needs to be drawn is fetched as for a person who looks at it.
        policy = replace(self._credentials(asked), robots=False)
        about: dict[str, Any] = {"method": asked.method, "headers": asked.headers}
        if asked.method == "POST":
            about["body"] = asked.body or b""
        response = await self.fetch(url, policy, pause, **about)
        if asked.method == "GET":
            self.shelf.put(self._source, url, response)
        return response

    async def _navigated(self, asked: Asked, url: str, pause: Pause) -> Response:
        """A page that is opened: the one that is wanted, a frame in it, or where a script leads."""
        self.navigations += 1
        if self.navigations == 1 and self.document is not None:
            return self.document
        if url in self.arrived:
            return self.arrived.pop(url)
        if asked.method != "GET" or self.navigations > MOST_NAVIGATIONS:
            raise AddressRefused("the page opens too many others, or sends a form", url)
        headers = {
            name: asked.headers[name] for name in ("cookie", "referer") if name in asked.headers
        }
        return await self.fetch(url, self._credentials(asked), pause, headers=headers)

    def _answer(self, asked: Asked, response: Response) -> Answer:
        is_elsewhere = response is not self.document and response.url != look_at(asked.url).text
        if asked.is_navigation and is_elsewhere:
            return self._sent_on(response)
        headers = {name: v for name, v in response.headers.items() if name not in _OF_THE_WIRE}
        if cookies := _set_cookies(response):
            headers["set-cookie"] = cookies
        return Answer(0, response.status, headers, response.body)

    def _sent_on(self, response: Response) -> Answer:
        """Redirects of a page are followed by us; the browser has to know where they have led."""
        self.arrived[response.url] = response
        url = response.url.replace("&", "&amp;").replace('"', "%22").replace("<", "%3C")
        body = f'<meta http-equiv="refresh" content="0;url={url}">'
        return Answer(0, 200, {"content-type": "text/html; charset=utf-8"}, body.encode())

    def _check(self, asked: Asked) -> None:
        if asked.method not in _METHODS:
            raise AddressRefused(f"pages may not send {asked.method}", asked.url)
        if asked.method == "POST" and not self._is_ours(asked.url):
            raise AddressRefused("pages may send data to the source's own hosts only", asked.url)

    def _is_ours(self, url: str) -> bool:
        host = look_at(url).host_key
        reach = reach_of(self.policy.addresses, self.policy.hosts or ())
        return host == self._host or reach.admits(host)

    def _credentials(self, asked: Asked) -> FetchPolicy:
        """Headers of the configuration go with requests of the site's own pages, and of no other frame."""
        own = _origin(self.document.url) if self.document is not None else ""
        origin = asked.headers.get("origin", own)
        frame = _origin(asked.frame) if asked.frame.startswith("http") else own
        if origin == own and frame == own:
            return self.policy
        return replace(self.policy, headers={}, headers_for={})

    @property
    def _host(self) -> str:
        return look_at(self.document.url).host_key if self.document is not None else ""

    @property
    def _source(self) -> str:
        return str(self.about.get("source", ""))

    @contextmanager
    def _idle(self, pause: Pause) -> Iterator[None]:
        """Neither the attempt's time nor the page's runs while a request waits for its turn."""
        idle: Pause = self.about.get("idle", nullcontext)
        with pause(), idle():
            yield


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _set_cookies(response: Response) -> str:
    """The cookies for the page's own host, one in a line."""
    host = host_key(response.url)
    return "\n".join(_line(each) for each in response.cookies if each.host == host)


def _line(cookie: Cookie) -> str:
    domain = f"; Domain={cookie.domain}" if cookie.domain else ""
    return f"{cookie.name}={cookie.value}; Path={cookie.path}{domain}"
