"""Leadership: one of many processes acts for all, and stops by itself before another may begin.

The store says whose term it is, by its own clock. A leader counts that time down on its monotonic clock,
from before it asked, less a margin: however long the answer took, and whatever its machine's clock is set
to, it stops trusting itself before the store would give the term to somebody else.
"""

from __future__ import annotations

from penstock.clock import Clock
from penstock.store.store import Store

TERM_S = 10.0
MARGIN_S = 2.0
RENEW_S = 3.0
# Who does not lead asks this often whether the place is free.
ASK_S = 1.0


class Leadership:
    """One process's claim to lead in one matter. Its holder's name must be nobody else's, ever.

    With `behind` it stands back while somebody leads in that matter, and does what this one would.
    """

    def __init__(
        self, store: Store, name: str, holder: str, clock: Clock, behind: str | None = None
    ) -> None:
        self._store = store
        self._name = name
        self._holder = holder
        self._clock = clock
        self._behind = behind
        self._term = 0
        self._ask_at = float("-inf")
        self._trusted_until = float("-inf")

    @property
    def term(self) -> int:
        """The number of the term that this process has, or had last; 0 if it never led."""
        return self._term

    def is_trusted(self) -> bool:
        """Whether this process may act as the leader now."""
        return self._clock.monotonic() < self._trusted_until

    def seek(self) -> bool:
        """Become or stay leader, if it is time to ask; whether this process may act now.

        When the store can't be asked the error is raised, and trust goes on to its end and no further.
        """
        asked_at = self._clock.monotonic()
        if asked_at < self._ask_at:
            return self.is_trusted()
        self._ask_at = asked_at + ASK_S
        if self._must_stand_back():
            self.resign()
            return False
        term = self._store.leaders.lead(self._name, self._holder, TERM_S, self._term)
        if term is None:
            self._trusted_until = float("-inf")
            return False
        self._term = term.number
        self._ask_at = asked_at + RENEW_S
        self._trusted_until = asked_at + term.expires_in_s - MARGIN_S
        return self.is_trusted()

    def _must_stand_back(self) -> bool:
        if self._behind is None:
            return False
        now = self._store.now()
        return any(
            row.name == self._behind and row.expires_at > now for row in self._store.leaders.all()
        )

    def resign(self) -> bool:
        """Let somebody else lead at once; False if nobody waits for it, because the term was over."""
        self._trusted_until = float("-inf")
        return self._term > 0 and self._store.leaders.resign(self._name, self._holder, self._term)
