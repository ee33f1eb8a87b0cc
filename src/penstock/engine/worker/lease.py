"""The lease: how long a worker may take itself for alive, and what it asks of the store while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.clock import Clock
from penstock.engine.worker.calls import Answer, Calls
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreUnreachable
from penstock.jobs.outcome import AttemptLost

SECOND_LOOK_S = 0.1


@dataclass(eq=False, slots=True)
class Lease:
    """Holds until a moment of the monotonic clock; without word from the supervisor, side effects stop."""

    clock: Clock
    trusted_until: float = field(default=float("inf"), init=False)

    async def holds(self) -> bool:
        """Whether the lease still holds, as far as this process knows.

        A step that blocked the loop kept the supervisor's beats from being read, not from being sent:
        they are given a moment to arrive before the worker takes itself for dead.
        """
        if self.clock.monotonic() < self.trusted_until:
            return True
        await asyncio.sleep(SECOND_LOOK_S)
        return self.clock.monotonic() < self.trusted_until

    async def require(self) -> None:
        if not await self.holds():
            raise AttemptLost("the worker's lease has ended")


@dataclass(frozen=True, slots=True)
class PatientCalls:
    """Asks the store what a step wants to know.

    A database that is away is waited for as long as the lease holds: it is not the step's fault.
    """

    calls: Calls
    backoff: StoreBackoff
    lease: Lease

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        while True:
            try:
                return await self.calls(verb)
            except StoreUnreachable as error:
                await asyncio.sleep(self.backoff.wait_s(error))
            await self.lease.require()
