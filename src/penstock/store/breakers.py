"""Breakers of sources and hosts, as an operator looks at them and moves them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from penstock.errors import UsageError, nearest
from penstock.gates.breaker import Breaker, close, state_at
from penstock.store.breaker_rows import (
    HOST,
    SOURCE,
    BreakerRow,
    found_breakers,
    locked_breakers,
    write_breakers,
)
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

_USUAL_PORT = re.compile(r":(80|443)$")


class Breakers(Noun):
    """The verbs of breakers."""

    def all(self) -> list[BreakerRow]:
        """Every breaker that there is, as it is now."""
        found = self._db.decoded("breakers", list[BreakerRow])
        now = self._db.now()
        return [
            replace(row, state="half-open", ramp=1) if _is_due(row, now) else row for row in found
        ]

    def open(self, key: str, for_s: float, actor: str, reason: str) -> bool:
        """Let nothing pass for so long, then try with care; True if it was not open before."""
        with self._db.writing() as now:
            before = locked_breakers(self._db, now, [key])
            was = before[key]
            is_new = state_at(was, now) != "open"
            opened_at = now if was.state == "closed" else was.opened_at
            text = f"opened by {actor}" + (f": {reason}" if reason else "")
            made = Breaker("open", now, now + for_s, opened_at, 0.0, max(1, was.trips), reason=text)
            self._act(now, before, {key: made}, actor)
        return is_new

    def close(self, key: str, actor: str, reason: str) -> bool:
        """Let everything pass; False if it was closed, or never there."""
        with self._db.writing() as now:
            before = found_breakers(self._db, [key])
            if key not in before or before[key].state == "closed":
                return False
            text = f"closed by {actor}" + (f": {reason}" if reason else "")
            self._act(now, before, {key: close(before[key], now, text)}, actor)
        return True

    def _act(
        self, now: float, before: Mapping[str, Breaker], after: Mapping[str, Breaker], actor: str
    ) -> None:
        ledger = Ledger(self._db, now)
        known: dict[str, int] = self._db.json("source_ids")
        owners = {
            key: (known[key.removeprefix(SOURCE)], 0)
            for key in after
            if key.removeprefix(SOURCE) in known
        }
        write_breakers(self._db, ledger, before, after, owners, actor)
        ledger.write()

    def key(self, name: str, source: str) -> str:
        """The key of the breaker that is meant: a source's by its own key, else a host's.

        A host that has not failed yet is named by its key, `host:cdn.example.com`; the usual ports are
        not part of it, because requests do not name them either.
        """
        known: dict[str, int] = self._db.json("source_ids")
        if source in known:
            return SOURCE + source
        kind, _, rest = name.partition(":")
        if kind == "source" and rest in known:
            return name
        host = _USUAL_PORT.sub("", rest if kind == "host" else name)
        if kind == "host" and host.partition(":")[0]:
            return HOST + host
        hosts = {row.name: row.key for row in self.all() if row.kind == "host"}
        if host in hosts:
            return hosts[host]
        raise UsageError(f"there is no source or host {name!r}", nearest(name, [*known, *hosts]))


def _is_due(row: BreakerRow, now: float) -> bool:
    return row.state == "open" and row.opens_at <= now
