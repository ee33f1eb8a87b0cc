"""Pacing: when requests may go out, and where to none may, for all workers of all hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.gates.rates import Verdict, Want, give_places
from penstock.store.database import Database, to_json


class Pacing:
    """The verbs of the door that every request passes before it goes out."""

    _db: Database

    def reserve_places(self, wants: Sequence[Want]) -> list[Verdict]:
        """Take a place for each of these requests, as far as there is one soon: one verdict for each.

        The places are by the store's clock and the answers are spans, counted from when they arrive:
        who learns of its place late is late, and nobody is ever early.
        """
        keys = to_json(sorted({want.key for want in wants}))
        while (verdicts := reserve(self._db, wants, keys)) is None:
            # In a transaction of its own: new rows among locked ones could make two hosts wait in a circle.
            with self._db.writing():
                self._db.do("add_paces", keys=keys)
        return verdicts

    def close_hosts(self, closings: Mapping[str, float]) -> None:
        """These hosts asked to be left alone for so many seconds; never shortens a closure."""
        with self._db.writing() as now:
            for host, for_s in sorted(closings.items()):
                reason = f"{host} asked to wait {for_s:.0f} s"
                self._db.do("close_host", host=host, until=now + for_s, reason=reason)


def reserve(db: Database, wants: Sequence[Want], keys: str) -> list[Verdict] | None:
    """Give places under the locks of their keys; None when a key is new and there is nothing to lock."""
    with db.writing():
        next_at: dict[str, float] = db.json("lock_paces", keys=keys)
        if any(want.key not in next_at for want in wants):
            return None
        # Read when nobody else can reserve: a time from before the wait for the locks has been lived
        # through by others already, and would be given to two.
        places = give_places(wants, next_at, db.now())
        if places.next_at:
            db.do("set_paces", paces=to_json(sorted(places.next_at.items())))
    return places.verdicts
