"""The order of the tests: long ones first, and those that wait beside those that work.

xdist gives each process an equal slice of the list, and lets it steal from the ends of the others when it has
nothing left. A long test that begins last keeps one process busy while all others are done. And a test that
waits for a lease to run out needs no processor: as long as all processes wait at once, the machine is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

# Real processes that wait: until a lease or a term is over, a site answers, a step is timed out.
WAITING = (
    "tests/journeys/test_cut_off.py",
    "tests/journeys/test_many_hosts.py",
    "tests/postgres/test_hosts.py",
    "tests/journeys/test_watchdog.py",
    "tests/journeys/test_demo.py",
    "tests/journeys/test_clocks.py",
    "tests/journeys/test_workers.py",
    "tests/journeys/test_timeouts.py",
    "tests/journeys/test_drain.py",
    "tests/postgres/test_restarts.py",
    "tests/postgres/test_putting_off.py",
    "tests/journeys/test_schedules.py",
    "tests/journeys/test_pacing.py",
    "tests/journeys/test_silence.py",
    "tests/journeys/test_poison.py",
    "tests/journeys/test_metrics.py",
    "tests/journeys/test_canary.py",
    "tests/journeys/test_prove.py",
    "tests/journeys/test_builder_statuses.py",
)
# Ten seconds of processor time and more, each or together.
WORKING = (
    "tests/browser/test_dashboard.py",
    "tests/builder/test_city.py",
    "tests/journeys/test_api_cases.py",
    "tests/unit/test_simulate.py",
    "tests/crash/test_sweep.py",
    "tests/contract/test_machine.py",
    "tests/journeys/test_kills.py",
    "tests/journeys/test_web.py",
    "tests/snapshots/test_journey.py",
    "tests/unit/test_alert_trial.py",
    "tests/connectors/test_browser.py",
    "tests/connectors/test_headless.py",
    "tests/docs/test_cookbook.py",
)
# What these share takes longer to make than they take: one process runs all tests of the file.
TOGETHER = (
    "tests/browser/",
    "tests/connectors/",
    "tests/journeys/test_drain.py",
    "tests/journeys/test_workers.py",
)


class HasId(Protocol):
    @property
    def nodeid(self) -> str: ...


Test = TypeVar("Test", bound=HasId)


def arranged(tests: Sequence[Test], processes: int) -> list[Test]:
    """Every test once: half of the processes begin with those that wait, the others with those that work."""
    others = [test for test in tests if not test.nodeid.startswith((*WAITING, *WORKING))]
    waiters = processes // 2
    fronts = [
        *_shared_out(_of(tests, WAITING), waiters),
        *_shared_out(_of(tests, WORKING if waiters else (*WAITING, *WORKING)), processes - waiters),
    ]
    found: list[Test] = []
    for number, front in enumerate(fronts):
        # The size of xdist's slice for this process.
        size = (len(tests) - len(found)) // (processes - number)
        rest = max(0, size - len(front))
        found += front + others[:rest]
        others = others[rest:]
    return found + others


def _of(tests: Sequence[Test], places: Sequence[str]) -> list[list[Test]]:
    """These tests in the order of their places, in groups that stay together."""
    found: list[list[Test]] = []
    for place in places:
        here = [test for test in tests if test.nodeid.startswith(place)]
        found += [here] if place.startswith(TOGETHER) else [[test] for test in here]
    return found


def _shared_out(groups: Sequence[list[Test]], processes: int) -> list[list[Test]]:
    return [
        [test for group in groups[number::processes] for test in group]
        for number in range(processes)
    ]
