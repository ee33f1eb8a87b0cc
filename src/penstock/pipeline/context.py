"""The context: all that a step may ask for, and all that it may leave behind."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.errors import PipelineError
from penstock.http.browser.options import IDLE, Screenshot
from penstock.http.cookies import Cookie
from penstock.http.failures import FetchError
from penstock.http.response import Response
from penstock.jobs.effects import Announced
from penstock.jobs.outcome import NotThere, Unchanged
from penstock.pipeline.attempt import Bring, Services, StepRun, StepSource
from penstock.pipeline.fetch_options import (
    MISSING_STATUSES,
    FetchOptions,
    Fields,
    Missing,
    render_options,
)
from penstock.pipeline.session import Session
from penstock.pipeline.step_effects import StepEffects

if TYPE_CHECKING:
    from penstock.http.door import Door
    from penstock.http.request_gates import Price

__all__ = ["Captured", "Context", "PlainContext", "Services", "StepRun", "StepSource"]

RECORDS_PAGE = 500
Done = TypeVar("Done")


class Captured(msgspec.Struct, frozen=True):
    """The bytes at an address, as they were read, and what is known about them."""

    body: bytes
    headers: dict[str, str] = {}


class Context(StepEffects):
    """What a step gets as `ctx`. Its effects happen when the attempt commits, all or none."""

    __slots__ = ()

    def fetch(
        self,
        url: str,
        *,
        method: str | None = None,
        params: Fields | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        data: Fields | None = None,
        body: bytes | str | None = None,
        timeout: float | str | None = None,
        conditional: bool = False,
        etag: str | None = None,
        last_modified: str | None = None,
        missing: Missing | None = None,
        cookies: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> Awaitable[Response]:
        """Fetch a URL within the source's limits; the response is stored before you get it.

        `params` go into the query; `json`, `data` (a form) or `body` make it a POST unless `method` says
        otherwise. `cookies` are sent with this request alone. `missing="skip"` ends the job as skipped when
        the page is not there (404, 410). Anything but a 2xx raises FetchError, and so does a body of more
        than `max_bytes`.
        """
        options = FetchOptions(
            method, params, headers, json, data, body,
            timeout, conditional, etag, last_modified, missing, cookies, max_bytes,
        )  # fmt: skip
        return self._fetch_or_skip(url, options)

    def render(
        self,
        url: str,
        *,
        wait: str = IDLE,
        wait_timeout: float | str = "20s",
        screenshot: Screenshot = "failed",
        missing: Missing | None = None,
        **about: Any,
    ) -> Awaitable[Response]:
        """Fetch a page and open it in a browser; the response has its HTML as it stands after `wait`.

        `wait` is `load`, `idle` (no requests for half a second) or a CSS selector of something on the page.
        The response is stored before you get it, and a replay needs no browser. `about` has the other keys of
        the connector `headless`: `viewport`, `block`, `scripts`, `memory`, `pages_per_browser`, `browser`.
        """
        options = render_options(wait, wait_timeout, screenshot, about)
        return self._fetch_or_skip(
            url, FetchOptions(missing=missing), render=msgspec.to_builtins(options)
        )

    @property
    def session(self) -> Session:
        """The session of the source: its cookies, and the login of the pipeline (`@pipeline.login`).

        `ctx.session.fetch(url)` is `ctx.fetch(url)` with them.
        """
        return Session(self, self._attempt.stage.login)

    async def fetch_in_session(
        self,
        url: str,
        options: FetchOptions,
        cookies: list[Cookie],
        headers: Mapping[str, str],
        *,
        is_aside: bool,
    ) -> Response:
        """For `ctx.session`. What is aside is no page of the job: a login."""
        if headers:
            options = msgspec.structs.replace(
                options, headers={**headers, **(options.headers or {})}
            )
        extra: dict[str, Any] = {"session": msgspec.to_builtins(cookies)}
        if not is_aside:
            return await self._fetch_or_skip(url, options, **extra)
        whole_url, about = options.request(url)
        self._attempt.guard()
        return await self._attempt.services.fetch(
            self._attempt.job, whole_url, **about, **extra, is_aside=True
        )

    async def _fetch_or_skip(self, url: str, options: FetchOptions, **extra: Any) -> Response:
        whole_url, about = options.request(url)
        attempt = self._attempt
        # A sitemap or an index that is gone is not a page that is gone.
        usual = attempt.source.missing if attempt.stage.unit == "page" else "fail"
        is_skipped = options.skips(usual)
        try:
            return await self._fetch(whole_url, **about, **extra)
        except FetchError as error:
            if is_skipped and error.status in MISSING_STATUSES:
                raise NotThere(f"not there: {error}") from None
            raise

    async def _fetch(self, url: str, **options: Any) -> Response:
        await self._begin_request()
        visits = self._attempt.visits
        if self._attempt.made_with:
            options["made_with"] = self._attempt.made_with
        if url == self._attempt.new_page:
            options["is_anew"] = True
        try:
            response = await self._attempt.services.fetch(self._attempt.job, url, **options)
        except Unchanged as unchanged:
            if visits is not None:
                visits.left_alone(unchanged)
            raise
        if visits is not None:
            visits.saw(url, response, self._attempt.version, options)
        self._attempt.snapshot = response.snapshot_id
        return response

    async def capture(
        self,
        address: str,
        read: Callable[[], Awaitable[Captured]],
        content_type: str = "",
        *,
        anew: bool = False,
        counted: bool = True,
        is_page: bool = True,
    ) -> Response:
        """What is at an address that is not HTTP: `read` is called, and its bytes are stored first.

        It is to `ctx.fetch` what a file is to a page: a replay is served from the snapshot without calling
        `read`, and an incremental run leaves alone what is as it was, unless it is to be read `anew`: what
        is made of it depends on more than its bytes. `is_page=False` is for a piece of something: it is
        stored and replayed, and nobody asks whether it has changed. Its bytes count against budgets, unless
        `counted=False` says that `ctx.door` has counted them.
        """

        async def bring(etag: str | None, last_modified: str | None) -> Response:
            found = await read()
            if counted:
                self.spend(bytes=len(found.body))
            headers = {"content-type": content_type} if content_type else {}
            headers.update(found.headers)
            return Response(address, address, 200, headers, found.body, self.now())

        about: dict[str, Any] = {"is_anew": True} if anew else {}
        if not is_page:
            about["is_page"] = False
        return await self._fetch(address, bring=bring, **about)

    def door(self, host: str, port: int, *, tls: bool = True) -> Door:
        """The way to a host for a protocol that is not HTTP, within the source's limits and address rules.

        `await door.connect()` is a blocking socket, `await door.ask(work)` makes one request on it, and
        `await door.websocket(url)` opens a websocket. A replay has none: use it inside of `ctx.capture`.
        """
        attempt = self._attempt
        attempt.guard()
        return attempt.services.door(attempt.job, host, port, tls=tls, begin=self._begin_request)

    async def _begin_request(self) -> None:
        self._attempt.guard()
        await self._attempt.pause_point()

    async def exchange(self, address: str, bring: Bring) -> Response:
        """For connectors: what `bring` gets by `send` is stored as the page at this address.

        So the request may have a body or credentials that the address does not tell. In an incremental run, a
        page that is as it was is handed over all the same, with `is_done`.
        """
        return await self._fetch(address, bring=bring, hands_over=True)

    async def send(self, url: str, options: FetchOptions, price: Price | None = None) -> Response:
        """For `exchange`, `capture` and tokens: a request within the limits of the source, stored nowhere."""
        whole_url, about = options.request(url)
        if price is not None:
            about["price"] = price
        self._attempt.guard()
        return await self._attempt.services.fetch(
            self._attempt.job, whole_url, **about, is_unkept=True
        )

    async def in_thread(self, work: Callable[[], Done]) -> Done:
        """What `work` answers; it is called in a thread, because it reads a disk or takes long."""
        if not self._attempt.hops:
            return work()
        answers: list[Done] = []
        await self._attempt.hop(lambda: answers.append(work()))
        self._attempt.guard()  # the thread does nothing for an attempt that is over
        return answers[0]

    def sitemap(self, url: str) -> AsyncIterator[str]:
        """The page URLs of a sitemap, through its nested ones; entries on other sites are left out."""
        return self._sitemap(url)

    async def _sitemap(self, url: str) -> AsyncIterator[str]:
        from penstock.http.failures import safe_url
        from penstock.http.sitemap import Strangers, sitemap_urls

        strangers = Strangers(self._attempt.source.reach.may_list)
        walk = sitemap_urls(
            self._fetch, url, announce=self._announce, strangers=strangers, note=self.note
        )
        async for page in walk:
            yield page
        if strangers.count:
            self.note(f"{safe_url(url)}: {strangers.words()}")

    def feed(self, url: str) -> AsyncIterator[dict[str, Any]]:
        """The entries of an RSS or Atom feed."""
        from penstock.http.feed import feed_entries

        return feed_entries(self._fetch, url, announce=self._announce)

    def links(
        self,
        response: Response,
        *,
        under: str | Sequence[str] = (),
        without: str | Sequence[str] = (),
        everywhere: bool = False,
    ) -> list[str]:
        """The links of an HTML page that lead to pages of the source, each once, normalised.

        In scope are the site of the page, the source's own hosts and those of `fetch.hosts`; with
        `everywhere`, any. `under` and `without` are beginnings of paths: `under="/products/"`.
        """
        from penstock.http.links import links_of
        from penstock.http.links import under as chosen

        self._attempt.guard()
        found = links_of(response)
        if not everywhere:
            reach = self._attempt.source.reach
            found = [url for url in found if reach.may_list(url, response.url)]
        return list(chosen(found, _texts(under), _texts(without)))

    def _announce(self, page: str, changed: str) -> None:
        self._attempt.announce(Announced(page, changed))

    def cursor(self, partition: str = "default") -> Awaitable[Any]:
        """The last durable checkpoint of a partition, or None. `await` it; a plain step waits."""
        return self._cursor(partition)

    async def _cursor(self, partition: str) -> Any:
        self._attempt.guard()
        cursors = await self._attempt.services.cursors(self._attempt.job)
        return cursors.get(partition)

    def records(self, collection: str) -> AsyncIterator[dict[str, Any]]:
        """The records of a collection by key, read page by page; a plain step iterates with `for`."""
        return self._records(collection)

    async def _records(self, collection: str) -> AsyncIterator[dict[str, Any]]:
        after_key: str | None = None
        while page := await self._page(collection, after_key):
            for record in page:
                yield record
            after_key = page[-1]["key"]

    async def _page(self, collection: str, after_key: str | None) -> list[dict[str, Any]]:
        self._attempt.guard()
        return await self._attempt.services.records(collection, after_key, RECORDS_PAGE)


def _texts(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else tuple(given)


class PlainContext(Context):
    """The context of a plain function: what the loop must do, it waits for in its thread."""

    __slots__ = ()

    def fetch(self, url: str, **options: Any) -> Awaitable[Response]:
        raise self._needs_async("ctx.fetch")

    def render(self, url: str, **options: Any) -> Awaitable[Response]:
        raise self._needs_async("ctx.render")

    @property
    def session(self) -> Session:
        raise self._needs_async("ctx.session")

    def door(self, host: str, port: int, *, tls: bool = True) -> Door:
        raise self._needs_async("ctx.door")

    def sitemap(self, url: str) -> AsyncIterator[str]:
        raise self._needs_async("ctx.sitemap")

    def feed(self, url: str) -> AsyncIterator[dict[str, Any]]:
        raise self._needs_async("ctx.feed")

    def commit(self) -> Any:
        return self._wait(self._attempt.commit(), "ctx.commit")

    def cursor(self, partition: str = "default") -> Any:
        return self._wait(self._cursor(partition), "ctx.cursor")

    def records(self, collection: str) -> Any:
        return self._records_plain(collection)

    def _records_plain(self, collection: str) -> Iterator[dict[str, Any]]:
        after_key: str | None = None
        while page := self._wait(self._page(collection, after_key), "ctx.records"):
            yield from page
            after_key = page[-1]["key"]

    def _wait(self, call: Coroutine[Any, Any, Any], purpose: str) -> Any:
        return self._attempt.wait(call, purpose)

    def _needs_async(self, what: str) -> PipelineError:
        return PipelineError(f"step {self._step!r} is a plain function: {what} needs 'async def'")
