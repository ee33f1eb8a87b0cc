"""Whatever others write: reading it takes time in proportion to its length, and bounded memory.

The short form reads a few kilobytes, the long one (`make torture`) the longest input that can get in,
or 16 MB of it.
"""

from __future__ import annotations

import pytest

from tests.hostile.costs import growth, peak_bytes
from tests.hostile.inputs import Parser, cases

FACTOR = 8
# Twice as steep as in proportion; what is quadratic is 64 times as long for 8 times the input.
MOST = 2.5 * FACTOR
SHORT = 64_000
ROUNDS = 3
CASES = [pytest.param(parser, name, id=f"{parser.name}: {name}") for parser, name in cases()]


def held_to_growth(parser: Parser, name: str, length: int) -> tuple[float, float]:
    small, large = (parser.inputs[name](n) for n in (length // FACTOR, length))
    for _ in range(3):
        least, most = growth(lambda: parser.read(small), lambda: parser.read(large), ROUNDS)
        # The clock's grain, and what is done once for any input.
        if most <= least * MOST + 0.002:
            break
    assert most <= least * MOST + 0.002, (
        f"{least * 1e3:.2f} ms, {FACTOR} times as long {most * 1e3:.2f} ms"
    )
    return least, most


def held_to_memory(parser: Parser, name: str, length: int) -> int:
    data = parser.inputs[name](length)
    peak = peak_bytes(lambda: parser.read(data))
    allowed = parser.fixed + parser.times * length
    assert peak <= allowed, (
        f"{peak / 1e6:.1f} MB for {length / 1e6:.1f} MB, and {allowed / 1e6:.1f} are allowed"
    )
    return peak


@pytest.mark.parametrize(("parser", "name"), CASES)
def test_reading_takes_time_in_proportion_to_the_length(parser: Parser, name: str) -> None:
    held_to_growth(parser, name, min(SHORT, parser.cap))


@pytest.mark.parametrize(("parser", "name"), CASES)
def test_reading_holds_no_more_memory_than_stated(parser: Parser, name: str) -> None:
    held_to_memory(parser, name, min(SHORT, parser.cap))


@pytest.mark.torture
@pytest.mark.parametrize(("parser", "name"), CASES)
def test_the_longest_input_is_read_in_proportion_and_in_bounds(parser: Parser, name: str) -> None:
    length = min(parser.cap, 16_000_000)
    _, seconds = held_to_growth(parser, name, length)
    peak = held_to_memory(parser, name, length)
    print(
        f"\n| {parser.name} | {name} | {length / 1e6:.1f} MB | {seconds:.3f} s | {peak / 1e6:.1f} MB |"
    )
