"""One reader of the journal for all streams: it looks while anybody listens, however many they are."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.app.calls import InOneThread
from penstock.app.journal_stream import EventFilter, JournalReader, Look, Placed
from penstock.app.verbs.problems import Problem
from penstock.errors import StoreError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.overview import OverviewView
    from penstock.app.views.progress import RunReport

LOOK_S = 0.5
# It rests for so many times as long as a look took, at most for this: it shares its cores with workers.
REST = 19
LONGEST_REST_S = 2.0
# While the database does not answer.
AGAIN_S = 2.0
MOST_STREAMS = 256
# A client that is so many events behind is dropped; it comes back with the id of its last one.
MOST_EVENTS = 2_000


class Subscription:
    """What one stream has still to send. `offer` is called with every look."""

    def __init__(self) -> None:
        self.is_over = False
        self._is_due = asyncio.Event()

    def offer(self, look: Look) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.is_over = True
        self._is_due.set()

    async def wait(self, seconds: float) -> bool:
        """Whether there is something to send, or to end, within this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_due.wait()
        except TimeoutError:
            return False
        self._is_due.clear()
        return True

    def wake(self) -> None:
        self._is_due.set()


class EventSubscription(Subscription):
    """Events, each once."""

    def __init__(self, wanted: EventFilter) -> None:
        super().__init__()
        self.wanted = wanted
        self.began_at = ""
        self.is_behind = False
        self._events: deque[Placed] = deque()

    def offer(self, look: Look) -> None:
        self._events.extend(each for each in look.events if self.wanted.wants(each.event))
        if len(self._events) > MOST_EVENTS:
            self.is_behind = True
            self._events.clear()
            self.end()
        elif self._events:
            self.wake()

    def take(self) -> list[Placed]:
        taken = list(self._events)
        self._events.clear()
        return taken


class RunSubscription(Subscription):
    """How far a run has come: only the newest report waits to be sent."""

    def __init__(self, run: int, first: RunReport) -> None:
        super().__init__()
        self.run = run
        self.report = first
        self.wake()

    def offer(self, look: Look) -> None:
        found = look.reports.get(self.run)
        # Its seconds alone are no news.
        if found is not None and (found.state, found.counts) != (
            self.report.state,
            self.report.counts,
        ):
            self.report = found
            self.wake()


class OverviewSubscription(Subscription):
    """The project in numbers, and the kinds of events since the last message: only the newest waits."""

    def __init__(self, first: OverviewView) -> None:
        super().__init__()
        self.overview = first
        self._kinds: set[str] = set()
        self.wake()

    def offer(self, look: Look) -> None:
        self._kinds.update(look.kinds)
        is_other = look.overview is not None and look.overview != self.overview
        if look.overview is not None:
            self.overview = look.overview
        if is_other or look.kinds:
            self.wake()

    def take_kinds(self) -> list[str]:
        taken, self._kinds = sorted(self._kinds), set()
        return taken


class Follower:
    """Looks at the journal every half second while there are streams, in a thread of its own.

    Less often while a look takes long and nobody waits for the events themselves.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._subscriptions: set[Subscription] = set()
        self._calls: InOneThread | None = None
        self._reader: JournalReader | None = None
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self._is_stopped = False
        self._rest_s = 0.0

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def is_looking(self) -> bool:
        """Whether it looks again and again: only while there are streams."""
        return self._task is not None

    async def join(self, subscription: Subscription) -> None:
        """Offer it every look from now on. Refused if there are too many already."""
        if self._is_stopped or len(self._subscriptions) >= MOST_STREAMS:
            raise Problem(
                429,
                "too_many_streams",
                f"The server has {MOST_STREAMS} streams open already.",
                "close one, or poll /api/v1/journal/tail",
                headers={"Retry-After": "10"},
            )
        # A cursor that was given out elsewhere may be newer than the last look.
        await self._look()
        # From here to the end nothing else runs: it misses no look, and sees none twice.
        self._subscriptions.add(subscription)
        if isinstance(subscription, EventSubscription) and self._reader is not None:
            subscription.began_at = self._reader.position
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def stop(self) -> None:
        """End all streams: the server is going to stop."""
        self._is_stopped = True
        for each in list(self._subscriptions):
            each.end()

    def close(self) -> None:
        """End its thread; no stream is left."""
        self.stop()
        if self._calls is not None:
            self._calls.close()
            self._calls = None

    async def _follow(self) -> None:
        try:
            while self._subscriptions and not self._is_stopped:
                await asyncio.sleep(max(LOOK_S, self._rest_s))
                try:
                    await self._look()
                except StoreError:
                    await asyncio.sleep(AGAIN_S)
        except Exception:
            # A mistake of ours: whoever listens is cut off, comes back, and loses nothing.
            for each in list(self._subscriptions):
                each.end()
            raise
        finally:
            self._task = None

    async def _look(self) -> None:
        async with self._looking:
            if not self._subscriptions:
                # Nobody has to be told of what has happened until now.
                self._reader = None
            began = asyncio.get_running_loop().time()
            look = await self._called(self._look_in_thread)
            took_s = asyncio.get_running_loop().time() - began
            are_events_wanted = self._are_wanted(EventSubscription)
            self._rest_s = 0.0 if are_events_wanted else min(REST * took_s, LONGEST_REST_S)
            for each in list(self._subscriptions):
                each.offer(look)

    def _look_in_thread(self) -> Look:
        if self._reader is None:
            self._reader = JournalReader(self._project)
        listening = list(self._subscriptions)
        runs = [each.run for each in listening if isinstance(each, RunSubscription)]
        try:
            return self._reader.look(
                runs,
                is_overview_wanted=self._are_wanted(OverviewSubscription),
                are_events_wanted=self._are_wanted(EventSubscription),
            )
        except StoreError:
            self._project.connections.close_of_this_thread()
            raise

    def _are_wanted(self, kind: type[Subscription]) -> bool:
        return any(isinstance(each, kind) for each in list(self._subscriptions))

    async def _called(self, call: Callable[[], Any]) -> Any:
        if self._calls is None:
            self._calls = InOneThread("follower")
        return await self._calls(call)
