"""The order of the tests: none is lost, long ones come first, and not every process waits at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.order import TOGETHER, WAITING, WORKING, arranged

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Named:
    nodeid: str


def named(*places: str) -> list[Named]:
    return [Named(f"{place}::test_{number}") for place in places for number in range(5)]


def slices(tests: list[Named], processes: int) -> list[list[Named]]:
    """What xdist hands to each process at first."""
    found = []
    for number in range(processes):
        size = len(tests) // (processes - number)
        found.append(tests[:size])
        tests = tests[size:]
    return found


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 6, 16])
@pytest.mark.parametrize("others", [0, 7, 4000])
def test_every_test_is_run_once(processes: int, others: int) -> None:
    tests = named(*WAITING, *WORKING) + [Named(f"tests/x.py::test_{n}") for n in range(others)]
    assert Counter(arranged(tests, processes)) == Counter(tests)


def test_half_of_the_processes_begin_with_tests_that_wait_and_the_others_with_work() -> None:
    tests = [Named(f"tests/x.py::test_{n}") for n in range(4000)] + named(*WAITING, *WORKING)
    parts = slices(arranged(tests, 6), 6)
    fronts = [[test.nodeid.startswith(WAITING) for test in part[:10]] for part in parts[:3]]
    assert fronts == [[True] * 10] * 3
    fronts = [[test.nodeid.startswith(WORKING) for test in part[:10]] for part in parts[3:]]
    assert fronts == [[True] * 10] * 3
    assert all(test.nodeid.startswith("tests/x.py") for part in parts for test in part[-500:])


def test_tests_that_share_what_is_slow_to_make_stay_in_one_process() -> None:
    tests = named(*WAITING, *WORKING)
    for part in slices(arranged(tests + [Named("tests/x.py::test")] * 4000, 6), 6):
        for place in (each for each in (*WAITING, *WORKING) if each.startswith(TOGETHER)):
            assert sum(test.nodeid.startswith(place) for test in part) in (0, 5)


@pytest.mark.parametrize("place", [*WAITING, *WORKING])
def test_a_file_that_has_been_renamed_is_renamed_in_the_order_too(place: str) -> None:
    assert (ROOT / place).is_file()
