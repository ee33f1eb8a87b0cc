"""What parsing costs: CPU time as it grows with the input, and the most memory that it held."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

Work = Callable[[], object]

# Shorter work is repeated until it has taken this long, so that the clock's grain does not matter.
LEAST_S = 0.002


def cpu_s(work: Work) -> float:
    """CPU seconds of this process for one piece of work; what else the machine does is not counted."""
    times = 0
    began = time.process_time()
    while True:
        work()
        times += 1
        spent = time.process_time() - began
        if spent >= LEAST_S:
            return spent / times


def growth(small: Work, large: Work, rounds: int) -> tuple[float, float]:
    """The least CPU seconds of both over some rounds: a disturbance can only add to them."""
    gc.collect()
    gc.disable()
    try:
        spent = [(cpu_s(small), cpu_s(large)) for _ in range(rounds)]
    finally:
        gc.enable()
    return min(each[0] for each in spent), min(each[1] for each in spent)


def peak_bytes(work: Work) -> int:
    """The most memory that Python held during the work, beyond what it held before."""
    work()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
