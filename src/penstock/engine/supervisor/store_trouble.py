"""Trouble that a supervisor has with its store: waited for, and told once a minute."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.clock import Clock
from penstock.engine.worker.store_backoff import REPEAT_S
from penstock.errors import StoreCorrupt, StoreError, StoreUnreachable

# After trouble with the store it is left alone for so long.
RETRY_S = 1.0
AWAY = "away"


class StoreTrouble:
    """What went wrong, and when the store may be asked again."""

    def __init__(self, clock: Clock, tell: Callable[[str], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._ask_at = float("-inf")
        self._told: dict[str, float] = {}

    async def attempt(self, chore: Callable[[], Awaitable[None]]) -> None:
        """Do it, unless the store has just failed; if it fails now, leave it alone for a while."""
        if self._clock.monotonic() < self._ask_at:
            return
        try:
            await chore()
        except StoreError as error:
            self.meet(error)
            self._ask_at = self._clock.monotonic() + RETRY_S

    def meet(self, error: StoreError) -> None:
        """Trouble with the store is waited for, unless waiting would make it worse."""
        if isinstance(error, StoreCorrupt):
            raise error
        # A server that is away is that, in whichever words its driver says so.
        is_away = isinstance(error, StoreUnreachable)
        self.say(error.message, AWAY if is_away else error.message)

    def say(self, text: str, matter: str = "") -> None:
        """The same trouble once a minute, however often it is met."""
        now, matter = self._clock.monotonic(), matter or text
        if now - self._told.get(matter, -REPEAT_S) >= REPEAT_S:
            self._told[matter] = now
            self._tell(text)
