"""Retry classes as penstock.yaml has them: a project's own, and which of them a source takes."""

from __future__ import annotations

from collections.abc import Collection

from penstock.settings.section import Section, describe
from penstock.settings.units import parse_duration
from penstock.settings.values import RETRY_NAMES, RetryChoice

RETRY_KEYS = ("class", "tries", "base", "cap", "unknown_tries")
MOST_TRIES = 1000


def read_retries(top: Section) -> dict[str, RetryChoice]:
    """The project's own classes; each says what is different from the class that it is made from."""
    entry = top.get("retries")
    if entry is None:
        return {}
    if not isinstance(entry.value, dict):
        raise top.error("retries", "must be a mapping of names to retry classes")
    found = {}
    section = top.section("retries", tuple(entry.value))
    for name in entry.value:
        if name in RETRY_NAMES:
            raise section.error(name, "is a class that there is already; choose another name")
        if not isinstance(entry.value[name].value, dict):
            raise section.error(name, "must be a mapping such as {tries: 8, base: 1m, cap: 2h}")
        found[name] = _choice(section.section(name, RETRY_KEYS), RETRY_NAMES)
    return found


def read_retry(section: Section, known: Collection[str]) -> RetryChoice:
    """A source's `retry`: the name of a class, or a mapping that says what is different from one."""
    entry = section.get("retry")
    if entry is None:
        return RetryChoice()
    if isinstance(entry.value, dict):
        return _choice(section.section("retry", RETRY_KEYS), known)
    if isinstance(entry.value, list):
        problem = (
            f"must be the name of a class or a mapping like {{tries: 8}}, not {describe(entry)}"
        )
        raise section.error("retry", problem)
    return RetryChoice(section.choice("retry", RETRY_NAMES[0], known))


def _choice(section: Section, known: Collection[str]) -> RetryChoice:
    name = None
    if section.get("class") is not None:
        name = section.choice("class", RETRY_NAMES[0], known)
    choice = RetryChoice(
        name=name,
        tries=_tries(section, "tries"),
        base_s=section.duration("base", None, parse_duration, low=0.001),
        cap_s=section.duration("cap", None, parse_duration, low=0.001),
        unknown_tries=_tries(section, "unknown_tries"),
    )
    if choice.base_s is not None and choice.cap_s is not None and choice.base_s > choice.cap_s:
        raise section.error("base", "must not be longer than cap, the longest wait")
    return choice


def _tries(section: Section, name: str) -> int | None:
    return None if section.get(name) is None else section.whole(name, 1, high=MOST_TRIES)
