"""The watch: the dead are buried soon, and nobody is buried for an outage or for a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import Clock
from penstock.engine.supervisor.watch import LONGEST_GAP_S, Watch
from penstock.errors import StoreError, StoreUnreachable
from penstock.store.sqlite.store import SqliteStore
from penstock.store.workers import LEASE_S, Workers
from penstock.testing import VirtualClock

LOOK_S = 1.0


class SteppedClock(VirtualClock):
    """A store's clock that can be set, beside a monotonic one that can't."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = 0.0

    def now(self) -> float:
        return super().now() + self.set_by


class AwayWorkers(Workers):
    is_away = False

    def expired(self) -> list[str]:
        if self.is_away:
            raise StoreUnreachable("can't reach the database")
        return super().expired()


class AwayStore(SqliteStore):
    """A store that can be out of reach."""

    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path, clock)
        self.workers: AwayWorkers = AwayWorkers(self._db)


class Hosts:
    """A watch on one host, a worker on another that beats or does not."""

    def __init__(self, root: Path) -> None:
        self.clock = SteppedClock()
        self.store = AwayStore(root / "penstock.db", self.clock)
        self.watch = Watch(self.store, self.clock)
        self.beating = {"other"}
        for name in ("other", "mine"):
            self.store.workers.register(name, "host", 1, "0")

    def live(self, seconds: float) -> list[str]:
        """A look and a beat of the living every second; answers who was buried."""
        buried = []
        for _ in range(int(seconds / LOOK_S)):
            self.clock.advance(LOOK_S)
            try:
                buried += [name for name, _ in self.watch.look({"mine"})]
            except StoreUnreachable:
                continue
            for name in self.beating:
                self.store.workers.beat(name)
        return buried

    def names(self) -> list[str]:
        return sorted(worker.id for worker in self.store.workers.all())


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


def test_worker_that_stops_beating_is_buried_a_second_after_its_lease(hosts: Hosts) -> None:
    assert hosts.live(2 * LEASE_S) == []
    hosts.beating.clear()
    assert hosts.live(LEASE_S - LOOK_S) == []
    assert hosts.live(2 * LOOK_S) == ["other"]
    assert hosts.names() == ["mine"]


def test_after_an_outage_the_living_have_a_whole_lease_to_come_back(hosts: Hosts) -> None:
    hosts.live(2 * LEASE_S)
    hosts.store.workers.is_away = True
    hosts.live(10 * LEASE_S)
    hosts.store.workers.is_away = False
    hosts.beating.clear()
    assert hosts.live(LEASE_S - 2 * LOOK_S) == []
    hosts.store.workers.beat("other")
    hosts.beating.add("other")
    assert hosts.live(10 * LEASE_S) == []


def test_after_an_outage_the_dead_are_buried_a_lease_later(hosts: Hosts) -> None:
    hosts.live(2 * LEASE_S)
    hosts.store.workers.is_away = True
    hosts.beating.clear()
    hosts.live(10 * LEASE_S)
    hosts.store.workers.is_away = False
    assert hosts.live(LEASE_S + 2 * LOOK_S) == ["other"]


def test_clock_of_the_store_set_forward_buries_nobody_who_lives(hosts: Hosts) -> None:
    hosts.live(2 * LEASE_S)
    hosts.clock.set_by = 3600.0
    assert hosts.live(10 * LEASE_S) == []
    assert hosts.names() == ["mine", "other"]


def test_one_that_was_asleep_itself_believes_no_expiry_at_once(hosts: Hosts) -> None:
    hosts.live(2 * LEASE_S)
    hosts.clock.advance(LEASE_S + LONGEST_GAP_S)
    assert hosts.live(10 * LEASE_S) == []


def test_own_worker_that_is_seen_alive_is_renewed_whatever_the_clocks_say(hosts: Hosts) -> None:
    hosts.clock.advance(3600.0)
    hosts.watch.look({"mine"})
    assert hosts.store.workers.expired() == ["other"]


def test_worker_that_beat_after_it_was_read_is_not_buried(hosts: Hosts) -> None:
    hosts.clock.advance(LEASE_S)
    assert hosts.store.workers.expired() == ["mine", "other"]
    hosts.store.workers.beat("other")
    assert hosts.store.workers.bury_if_expired("other", "its lease ran out") is None
    assert hosts.store.workers.bury_if_expired("mine", "its lease ran out") == []
    assert hosts.names() == ["other"]


def test_trouble_is_told_and_contact_counts_from_anew(hosts: Hosts) -> None:
    hosts.live(2 * LEASE_S)
    assert hosts.watch.contact.is_there
    hosts.store.workers.is_away = True
    with pytest.raises(StoreError):
        hosts.watch.look(())
    assert not hosts.watch.contact.is_there
