"""Promises in seconds, on machines that have other work as well.

A test that `in_time` has found too slow is tried again, from the beginning: a machine that was busy for a
moment is no counterexample, and who breaks the promise breaks it three times. Every other failure counts
at once.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3


class TooSlow(AssertionError):
    """It did what it should, later than was promised."""


def in_time(took_s: float, promised_s: float) -> None:
    if took_s >= promised_s:
        raise TooSlow(f"it took {took_s:.2f} s, and less than {promised_s:g} s was promised")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if "in_time" not in vars(getattr(item, "module", item)):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for _ in range(TRIES - 1):
        if not any(_is_too_slow(report) for report in reports):
            break
        item._initrequest()  # type: ignore[attr-defined]  # as pytest does before the first time
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _is_too_slow(report: pytest.TestReport) -> bool:
    return report.failed and f"{TooSlow.__name__}: " in report.longreprtext
