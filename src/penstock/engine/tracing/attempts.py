"""What a worker notes of its attempts and their fetches. On the event loop: it adds to lists, and no more."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.http.failures import FetchError
from penstock.http.response import Response
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Flush, Settlement

# Of one attempt; a run-level step may fetch without end.
MOST_FETCHES = 100
# Jobs that wait for their next attempt, whose first one began here.
MOST_FIRST_STARTS = 10_000
GOES_ON = (JobState.QUEUED, JobState.WAITING, JobState.HELD)

Where = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FetchNote:
    url: str
    began_at: float
    ended_at: float
    status: int | None = None
    size: int | None = None
    is_from_snapshot: bool = False
    error: str = ""


@dataclass(slots=True)
class AttemptNote:
    """One attempt; `job_began_at` is when the first attempt of its job began, as far as this worker knows."""

    job: Claimed
    source: str
    began_at: float
    ended_at: float = 0.0
    job_began_at: float = 0.0
    fetches: list[FetchNote] = field(default_factory=list)
    left_out: int = 0
    state: str = "lost"
    error: str = ""
    cause: str = ""

    @property
    def ends_job(self) -> bool:
        return self.state != "lost" and self.state not in GOES_ON


class AttemptTracer:
    """Notes what is under way, and hands over each attempt when the store has accepted its end."""

    def __init__(self, clock: Clock, hand_over: Callable[[AttemptNote], None]) -> None:
        self._clock = clock
        self._hand_over = hand_over
        self._open: dict[Where, AttemptNote] = {}
        self._first_starts: OrderedDict[int, float] = OrderedDict()

    def begin(self, job: Claimed, source: str) -> None:
        now = self._clock.now()
        note = AttemptNote(job, source, now)
        note.job_began_at = self._first_starts.pop(job.id, now)
        self._open[job.id, job.attempt] = note

    def end(self, job: Claimed) -> None:
        """The step is over; what it came to is known when it is settled."""
        note = self._open.get((job.id, job.attempt))
        if note is not None:
            note.ended_at = self._clock.now()

    async def fetch(self, job: Claimed, url: str, fetching: Awaitable[Response]) -> Response:
        """Wait for a fetch, and note how it went."""
        began_at = self._clock.now()
        try:
            response = await fetching
        except BaseException as error:
            status = error.status if isinstance(error, FetchError) else None
            failed = type(error).__name__
            self._note(job, FetchNote(url, began_at, self._clock.now(), status, error=failed))
            raise
        about = (response.status, len(response.body), response.is_from_snapshot)
        self._note(job, FetchNote(url, began_at, self._clock.now(), *about))
        return response

    def _note(self, job: Claimed, fetch: FetchNote) -> None:
        note = self._open.get((job.id, job.attempt))
        if note is None:
            return
        if len(note.fetches) < MOST_FETCHES:
            note.fetches.append(fetch)
        else:
            note.left_out += 1

    def settled(self, ends: Sequence[Settlement | Flush], lost: set[int]) -> None:
        """The store has written these ends, except of jobs that others own by now."""
        for end in ends:
            if isinstance(end, Flush):
                continue
            note = self._open.pop((end.job_id, end.attempt), None)
            if note is not None:
                self._close(note, end, end.job_id in lost)

    def _close(self, note: AttemptNote, end: Settlement, is_lost: bool) -> None:
        if not is_lost:
            note.state = str(end.state)
            note.error, note.cause = end.error or end.reason, end.cause
            if end.state in GOES_ON:
                self._remember(note)
        self._hand_over(note)

    def _remember(self, note: AttemptNote) -> None:
        self._first_starts[note.job.id] = note.job_began_at
        while len(self._first_starts) > MOST_FIRST_STARTS:
            self._first_starts.popitem(last=False)
