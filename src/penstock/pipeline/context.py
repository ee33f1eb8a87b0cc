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
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from penstock.errors import PipelineError, nearest
from penstock.http.browser.options import IDLE, Screenshot
from penstock.http.cookies import Cookie
from penstock.http.failures import FetchError
from penstock.http.response import Response
from penstock.jobs.effects import Announced, Mark, Merge, Note, Raised, Save
from penstock.jobs.job import bounded_key
from penstock.jobs.outcome import REJECTED, NotThere, Reject, Unchanged
from penstock.jobs.signals import FILE_LANDED, is_reserved
from penstock.jobs.windows import Window
from penstock.jobs.words import words_of
from penstock.pipeline.attempt import Attempt, Bring, Services, StepRun, StepSource
from penstock.pipeline.collection_schemas import misfit
from penstock.pipeline.fetch_options import (
    MISSING_STATUSES,
    FetchOptions,
    Fields,
    Missing,
    render_options,
)
from penstock.pipeline.numbers import LARGEST_NUMBER, is_number, unkept_number
from penstock.pipeline.rejection import below_threshold, does_not_fit, is_code, rejection_of
from penstock.pipeline.session import Session
from penstock.pipeline.step import DataError, is_text
from penstock.settings.secrets import LOOKED_AT

if TYPE_CHECKING:
    from penstock.http.door import Door

__all__ = ["Captured", "Context", "PlainContext", "Services", "StepRun", "StepSource"]

MERGES: tuple[str, ...] = get_args(Merge)
RECORDS_PAGE = 500
# More of them than a source keeps are a mistake.
MOST_ANNOUNCED = 1000
# Seconds since the epoch until the year 10000; milliseconds are beyond it.
END_OF_TIME = 253_402_300_800
Done = TypeVar("Done")


class Captured(msgspec.Struct, frozen=True):
    """The bytes at an address, as they were read, and what is known about them."""

    body: bytes
    headers: dict[str, str] = {}


class Context:
    """What a step gets as `ctx`. Its effects happen when the attempt commits, all or none."""

    __slots__ = ("_attempt", "_step")

    def __init__(self, attempt: Attempt, step: str) -> None:
        self._attempt = attempt
        self._step = step

    @property
    def params(self) -> dict[str, Any]:
        """The `params` of the source, with those of the run over them."""
        return self._attempt.source.params

    @property
    def source(self) -> StepSource:
        """The source that this job belongs to."""
        return self._attempt.source

    @property
    def run(self) -> StepRun:
        """The run that this job belongs to."""
        return self._attempt.run

    @property
    def key(self) -> str:
        """The idempotency key of this job's item."""
        return self._attempt.job.key

    @property
    def attempt(self) -> int:
        """The number of this attempt; it grows with every start of the job."""
        return self._attempt.job.attempt

    @property
    def window(self) -> Window:
        """The time window and partition of this job; only in a step with `windows=True`."""
        found = self._attempt.window()
        if found is None:
            raise PipelineError(f"step {self._step!r} is not in a job that takes windows")
        return found

    def files(self) -> list[str]:
        """The files that this run is about, by their whole paths.

        In a run that landed files started, those files; in any other run, all files that match what the
        schedules of the source watch.
        """
        signal, watched = self.run.signal, self.source.watched
        if signal is not None and signal.name == FILE_LANDED:
            return list(signal.data["files"])
        if not watched:
            raise PipelineError(
                f"ctx.files: source {self.source.key} watches no folder",
                'schedule: {watch: "./inbox/*.json"}',
            )
        from penstock.http.folder import matching

        return matching(watched)

    @property
    def in_progress(self) -> Attempt:
        """For Penstock's own steps."""
        return self._attempt

    def now(self) -> float:
        """UTC in seconds since the epoch, by the engine's clock."""
        return self._attempt.clock.now()

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
    ) -> Awaitable[Response]:
        """Fetch a URL within the source's limits; the response is stored before you get it.

        `params` go into the query; `json`, `data` (a form) or `body` make it a POST unless `method` says
        otherwise. `cookies` are sent with this request alone. `missing="skip"` ends the job as skipped when
        the page is not there (404, 410). Anything but a 2xx raises FetchError.
        """
        options = FetchOptions(
            method, params, headers, json, data, body,
            timeout, conditional, etag, last_modified, missing, cookies,
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

    async def send(self, url: str, options: FetchOptions) -> Response:
        """For `exchange`, `capture` and tokens: a request within the limits of the source, stored nowhere."""
        whole_url, about = options.request(url)
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

    def follow(self, item: Any) -> None:
        """Queue another item, such as a link, for this same step, in a job of its own.

        Each key is taken once in a run, within the bounds of the step's `follow=`; the rest is left out.
        """
        self._attempt.guard()
        feed = self._attempt.stage.follow_feed
        if feed is None or feed.stage != self._step:
            raise PipelineError(
                f"step {self._step!r} calls ctx.follow: say so with "
                "@pipeline.step(…, follow=True), or follow={'depth': 5, 'pages': 1000}"
            )
        attempt = self._attempt
        attempt.enqueue(feed.job(item, attempt.source.priority, attempt.snapshot))

    def save(
        self,
        collection: str,
        *,
        key: str | int,
        data: Any,
        score: float | None = None,
        merge: Merge = "replace",
    ) -> None:
        """Save a record, unique by collection and key, when the attempt commits.

        With a score below the source's threshold, or if it does not fit the schema of the collection, it is
        not saved but rejected.
        """
        self._attempt.guard()
        if not is_text(collection):
            raise self._bad(f"ctx.save needs the name of a collection, not {collection!r}")
        if merge not in MERGES:
            raise self._bad(f"ctx.save knows no merge {merge!r}; {nearest(str(merge), MERGES)}")
        if callable(dump := getattr(data, "model_dump", None)):
            data = dump(mode="json")  # a model of pydantic
        save = Save(
            collection,
            self._record_key(collection, key),
            self._record_data(collection, data),
            self._score(collection, score),
            merge,
            self._attempt.snapshot,
            version=self._attempt.source.version,
        )
        self._attempt.hold(len(save.data))
        threshold = self._attempt.source.threshold
        problem = misfit(self._attempt, collection, save.data, is_part=merge == "merge")
        if problem is not None:
            judged = does_not_fit(f"{collection} {save.key}", problem, save.score)
            self._attempt.effects.rejections.append(judged)
        elif threshold is not None and save.score is not None and save.score < threshold:
            judged = below_threshold(f"{collection} {save.key}", save.score, threshold)
            self._attempt.effects.rejections.append(judged)
        else:
            self._attempt.effects.saves.append(save)
        if self._attempt.probe is not None:
            self._attempt.probe.saved()

    def reject(self, reason: str, *, code: str = REJECTED, score: float | None = None) -> None:
        """Store this item as rejected, with a code for programs, and continue."""
        self._attempt.guard()
        if not is_code(code):
            raise self._bad(f"ctx.reject needs a code of letters, digits and _.:-, not {code!r}")
        judged = Reject(reason, code, self._score("reject", score))
        self._attempt.hold(0)
        self._attempt.effects.rejections.append(rejection_of(judged))

    def checkpoint(
        self,
        cursor: Any,
        partition: str = "default",
        *,
        offset: Any = None,
        ordered: bool = True,
    ) -> None:
        """Move the checkpoint of this partition, in the same transaction as the rest of the attempt.

        A cursor that goes back, is empty or is of another kind is refused: the old one stays, and the
        journal records it. `ordered=False` is for cursors that have no order, such as opaque tokens.
        """
        self._attempt.guard()
        if not is_text(partition):
            raise self._bad(f"ctx.checkpoint needs the name of a partition, not {partition!r}")
        if partition.startswith("~"):
            raise self._bad(f"a partition's name can't begin with ~, as {partition!r} does")
        encoded = self._json("ctx.checkpoint", cursor)
        at = self._json("ctx.checkpoint", offset)
        self._attempt.hold(len(encoded))
        self._attempt.effects.marks.append(Mark(partition, encoded, at, bool(ordered)))

    def signal(self, name: str, **data: Any) -> None:
        """Raise a signal, which may start runs."""
        self._attempt.guard()
        if not is_text(name):
            raise self._bad(f"ctx.signal needs a name, not {name!r}")
        if is_reserved(name):
            raise self._bad(f"ctx.signal: only Penstock raises {name}")
        raised = Raised(name, self._json("ctx.signal", data))
        self._attempt.hold(len(raised.data))
        self._attempt.effects.signals.append(raised)

    def announce(self, at: datetime | float) -> None:
        """Expect a change at this time: a schedule with `near` runs more often around it.

        Only full and incremental runs do this; in other runs it has no effect.
        """
        self._attempt.guard()
        moment = self._moment(at)
        if not self._attempt.run.policy.announces_moments:
            return
        moments = self._attempt.effects.moments
        if moment in moments:
            return
        if len(moments) >= MOST_ANNOUNCED:
            raise self._bad(f"ctx.announce takes at most {MOST_ANNOUNCED:,} times in one attempt")
        moments.append(moment)

    def schema_verified(self) -> None:
        """Report that the source still has the expected shape (selectors, a mapping).

        It resets the time of `schema_freshness`. In probes and replays it has no effect.
        """
        self._attempt.guard()
        if self._attempt.run.policy.verifies_schemas:
            self._attempt.effects.is_schema_verified = True

    def spend(
        self,
        *,
        money: float = 0.0,
        requests: float = 0.0,
        bytes: float = 0.0,  # noqa: A002
        seconds: float = 0.0,
        reason: str = "",
    ) -> None:
        """Count this against the budgets of the run, the source and the project when the attempt ends.

        A failed attempt is charged too. `ctx.fetch` counts itself; use this for anything else: a paid API, a
        model, a proxy.
        """
        self._attempt.guard()
        amounts = {"money": money, "requests": requests, "bytes": bytes, "seconds": seconds}
        for measure, amount in amounts.items():
            if not is_number(amount) or amount < 0:
                raise self._bad(
                    f"ctx.spend needs {measure} from 0 to {LARGEST_NUMBER:g}, not {amount!r:.60}"
                )
        spent = self._attempt.effects.spent
        used = {measure: amount for measure, amount in amounts.items() if amount}
        for measure, amount in used.items():
            spent[measure] = spent.get(measure, 0.0) + amount
        if used and reason:
            words = ", ".join(f"{amount:g} {measure}" for measure, amount in used.items())
            self.note(f"spent {words}: {reason}")

    def note(self, text: str) -> None:
        """Write a note to the journal."""
        self._attempt.guard()
        # Cut to its length when secrets have been masked in it.
        line = words_of(text, LOOKED_AT)
        self._attempt.hold(len(line))
        self._attempt.effects.notes.append(Note(line))

    def commit(self) -> Awaitable[None]:
        """Make what is buffered so far durable, under this attempt's fence. A plain step waits."""
        return self._attempt.commit()

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

    def _record_key(self, collection: str, key: Any) -> str:
        if isinstance(key, str) and key:
            if not key.isascii():
                self._json(f"the key for {collection!r}", key)
            return bounded_key(key)
        if isinstance(key, int) and not isinstance(key, bool):
            return str(key)
        raise self._bad(
            f"ctx.save({collection!r}) needs a key that is text or a number, not {key!r}"
        )

    def _record_data(self, collection: str, data: Any) -> bytes:
        encoded = self._json(f"ctx.save({collection!r})", data)
        if not encoded.startswith(b"{"):
            raise self._bad(
                f"ctx.save({collection!r}) needs data with named fields, not {type(data).__name__}"
            )
        return encoded

    def _score(self, collection: str, score: Any) -> float | None:
        if score is None:
            return None
        if not is_number(score):
            raise self._bad(
                f"ctx.save({collection!r}) needs a score that is a number, not {score!r:.60}"
            )
        return float(score)

    def _moment(self, at: Any) -> float:
        if isinstance(at, datetime):
            if at.utcoffset() is None:
                raise self._bad(f"ctx.announce needs a time with a zone, not {at}")
            at = at.timestamp()
        if not is_number(at) or not 0 < at < END_OF_TIME:
            raise self._bad(
                "ctx.announce needs a datetime with a zone or UTC in seconds since the epoch, "
                f"not {at!r}"
            )
        return round(float(at), 3)

    def _json(self, where: str, value: Any) -> bytes:
        try:
            encoded = msgspec.json.encode(value, order="sorted")
            unkept = unkept_number(value, encoded)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._bad(f"{where} got something that is not JSON: {error}") from None
        if unkept:
            raise self._bad(f"{where} got a number that JSON does not have: {unkept}")
        return encoded

    def _bad(self, message: str) -> DataError:
        return DataError(f"step {self._step!r}: {message}")


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
