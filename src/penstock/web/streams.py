"""Server-sent events: the journal as it grows, a run's progress, and the project in numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from starlette.responses import StreamingResponse
from starlette.routing import Route

from penstock.app.journal_stream import Placed, between, event_filter, newest
from penstock.app.paging import LARGEST
from penstock.app.verbs.parameters import Id, Text
from penstock.app.verbs.roles import Role
from penstock.app.views.journal import EventView
from penstock.app.views.overview import OverviewView
from penstock.app.views.progress import RunReport
from penstock.app.views.view import View
from penstock.errors import StoreError
from penstock.web.api import path_values, query_values, require
from penstock.web.follower import (
    MOST_EVENTS,
    EventSubscription,
    Follower,
    OverviewSubscription,
    RunSubscription,
    Subscription,
)
from penstock.web.problem_response import PREFIX
from penstock.web.threads import in_thread_reading

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from penstock.app import Project
    from penstock.app.journal_stream import EventFilter

MEDIA_TYPE = "text/event-stream"
# A comment so often says that the stream is alive.
HEARTBEAT_S = 15.0
# Then it ends, and the client comes back: whoever may no longer read is refused by then.
LONGEST_S = 900.0
HEARTBEAT = ": alive\n\n"
RETRY_MS = 3_000
# So many characters of events are sent together.
TOGETHER = 65_536
OVERVIEW_S = 1.0
# How soon a page may load itself again after a message, and how many in a second all browsers together may.
RELOAD_S = 5.0
RELOADS_PER_S = 2.0
LAST_EVENT = "Last-Event-ID"
ENDED = ("completed", "partial", "failed", "cancelled")


class Follow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events; `limit` is how many of the newest come first."""

    source: Text | None = None
    run: Id | None = None
    job: Id | None = None
    kind: Text | None = None
    where: Annotated[list[Text], msgspec.Meta(max_length=100)] = []
    limit: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)] = 0


class OfRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is watched."""

    run: Id


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameters."""


class ProgressView(View, frozen=True, kw_only=True):
    """The project in numbers, and the kinds of events that happened since the last message.

    `reload_s`: how long a page of the dashboard waits before it loads itself again; longer if many are open.
    """

    overview: OverviewView
    kinds: list[str]
    reload_s: float


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream, as the document describes it."""

    name: str
    path: str
    answer: type[View]
    summary: str
    about: str
    parameters: type[msgspec.Struct] = Nothing
    path_parameters: type[msgspec.Struct] = Nothing
    role: Role = Role.VIEWER
    resumes: bool = False


STREAMS: dict[str, Stream] = {
    each.name: each
    for each in (
        Stream(
            "journal.follow",
            "/events/stream",
            EventView,
            "Every new event of the journal, as it happens.",
            "The `id` of each message is a cursor: sent back as Last-Event-ID, it makes the stream "
            "continue after it, without gaps or duplicates.",
            parameters=Follow,
            resumes=True,
        ),
        Stream(
            "runs.watch",
            "/runs/{run}/progress/stream",
            RunReport,
            "How far a run has come, whenever that changes, until it has ended.",
            "The last message is the event `end`.",
            path_parameters=OfRun,
        ),
        Stream(
            "progress",
            "/progress/stream",
            ProgressView,
            "The project in numbers, whenever they change or something happens.",
            "At most one message a second.",
        ),
    )
}


def routes() -> list[Route]:
    calls = {"journal.follow": _events, "runs.watch": _run, "progress": _progress}
    return [
        Route(PREFIX + stream.path, calls[stream.name], methods=["GET"])
        for stream in STREAMS.values()
    ]


async def _events(request: Request) -> Response:
    stream = STREAMS["journal.follow"]
    require(request, stream.role)
    given = query_values(request, stream.parameters)
    limit = given.pop("limit")
    wanted = await in_thread_reading(request, lambda project: event_filter(project, **given))
    cursor, first = request.headers.get(LAST_EVENT, ""), list[Placed]()
    if cursor:
        # One that is none is refused before anything is sent.
        await in_thread_reading(request, lambda project: between(project, cursor, cursor, wanted))
    elif limit:
        first, cursor = await in_thread_reading(
            request, lambda project: newest(project, wanted, limit)
        )
    subscription = EventSubscription(wanted)

    async def messages() -> AsyncIterator[str]:
        for text in _texts(request, first):
            yield text
        place, until = cursor, subscription.began_at
        while place and place != until:
            found, place = await in_thread_reading(request, _missed(place, until, wanted))
            for text in _texts(request, found):
                yield text
        async for is_due in _turns(subscription):
            if not is_due:
                yield HEARTBEAT
            for text in _texts(request, subscription.take()):
                yield text
        if subscription.is_behind:
            yield "event: dropped\ndata: {}\n\n"

    return await _streamed(request, subscription, messages)


def _missed(
    place: str, until: str, wanted: EventFilter
) -> Callable[[Project], tuple[list[Placed], str]]:
    return lambda project: between(project, place, until, wanted)


async def _run(request: Request) -> Response:
    stream = STREAMS["runs.watch"]
    require(request, stream.role)
    query_values(request, stream.parameters)
    run = path_values(request, stream.path_parameters)["run"]
    first = await in_thread_reading(request, lambda project: project.runs.report(run))
    subscription = RunSubscription(run, first)

    async def messages() -> AsyncIterator[str]:
        async for is_due in _turns(subscription):
            if not is_due:
                yield HEARTBEAT
                continue
            report = subscription.report
            yield _message(request, report)
            if report.state in ENDED:
                yield _message(request, report, event="end")
                return

    return await _streamed(request, subscription, messages)


async def _progress(request: Request) -> Response:
    stream = STREAMS["progress"]
    require(request, stream.role)
    query_values(request, stream.parameters)
    first = await in_thread_reading(request, lambda project: project.overview())
    subscription = OverviewSubscription(first)

    async def messages() -> AsyncIterator[str]:
        async for is_due in _turns(subscription):
            if not is_due:
                yield HEARTBEAT
                continue
            yield _progress_text(request, subscription.overview, subscription.take_kinds())
            await asyncio.sleep(OVERVIEW_S)

    return await _streamed(request, subscription, messages)


def _texts(request: Request, events: Sequence[Placed]) -> Iterator[str]:
    """Messages, several sent together. Each is made once for all who listen."""
    made: dict[tuple[int, str], str] = request.app.state.event_texts
    text = ""
    for each in events:
        which = (each.event.id, each.cursor)
        if which not in made:
            if len(made) >= MOST_EVENTS:
                made.clear()
            made[which] = _message(request, each.event, each.cursor)
        text += made[which]
        if len(text) >= TOGETHER:
            yield text
            text = ""
    if text:
        yield text


def _progress_text(request: Request, overview: OverviewView, kinds: list[str]) -> str:
    reload_s = max(RELOAD_S, len(request.app.state.follower) / RELOADS_PER_S)
    return _message(request, ProgressView(overview=overview, kinds=kinds, reload_s=reload_s))


def _message(request: Request, view: View, cursor: str = "", event: str = "") -> str:
    mask: Callable[[str], str] = request.app.state.mask
    data = mask(msgspec.json.encode(view.as_json()).decode())
    head = (f"id: {cursor}\n" if cursor else "") + (f"event: {event}\n" if event else "")
    return f"{head}data: {data}\n\n"


async def _turns(subscription: Subscription) -> AsyncIterator[bool]:
    """Until the stream is to end: True when there is something to send, False when it was quiet for long."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + LONGEST_S
    while not subscription.is_over and loop.time() < ends_at:
        yield await subscription.wait(HEARTBEAT_S)


async def _streamed(
    request: Request, subscription: Subscription, messages: Callable[[], AsyncIterator[str]]
) -> Response:
    follower: Follower = request.app.state.follower
    await follower.join(subscription)

    async def sent() -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        # Without its database a stream ends; the client comes back with its last id.
        with suppress(StoreError):
            async for each in messages():
                yield each

    return _EventStream(sent(), follower, subscription)


class _EventStream(StreamingResponse):
    """Leaves the follower however it ends, also if nothing was sent."""

    def __init__(
        self, content: AsyncIterator[str], follower: Follower, subscription: Subscription
    ) -> None:
        # A proxy that collects answers would hold events back.
        super().__init__(content, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self._follower = follower
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(self._end_with(receive))
        try:
            # A client that has gone is no mistake of anybody's.
            with suppress(OSError):
                await self.stream_response(send)
        finally:
            leaving.cancel()
            self._follower.leave(self._subscription)

    async def _end_with(self, receive: Receive) -> None:
        """A quiet stream sends nothing for a while: that its client has gone is noticed here."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.end()
