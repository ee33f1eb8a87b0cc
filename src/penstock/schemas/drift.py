"""Drift: how the data of a collection differs from that of the run before."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

# Fewer records say nothing about how often a field is empty.
FEWEST = 20
# A field that is empty so much more often, in parts of one, has changed.
NULL_RATE = 0.2
RARE = 0.01
MOST_CHANGES = 20
# How often each kind of value was in each field; under RECORDS, how many records there were.
Fields = Mapping[str, Mapping[str, int]]
RECORDS = ""


class FieldDrift(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that has changed: `new`, of another `type`, or more often empty (`nulls`).

    `before` and `now` are its types, or how often it is empty, in parts of one.
    """

    field: str
    what: str
    before: str = ""
    now: str = ""

    def words(self) -> str:
        match self.what:
            case "new":
                return f"{self.field} is new ({self.now})"
            case "type":
                return f"{self.field} was {self.before} and is {self.now}"
        return f"{self.field} was empty in {self.before} and is empty in {self.now}"


def drift_of(before: Fields, now: Fields) -> list[FieldDrift]:
    """The fields that differ, the most telling first; none where one of both has no records."""
    was, are = _records(before), _records(now)
    if not was or not are:
        return []
    found: list[FieldDrift] = []
    for name in sorted((before.keys() | now.keys()) - {RECORDS}):
        old, new = before.get(name, {}), now.get(name, {})
        kinds_before, kinds_now = _kinds(old), _kinds(new)
        if kinds_now and not old:
            found.append(FieldDrift(name, "new", now=_listed(kinds_now)))
        elif kinds_before and kinds_now and not kinds_now <= kinds_before | _wider(kinds_before):
            found.append(FieldDrift(name, "type", _listed(kinds_before), _listed(kinds_now)))
        elif min(was, are) >= FEWEST:
            rate_before, rate_now = 1 - _full(old) / was, 1 - _full(new) / are
            if rate_now - rate_before >= NULL_RATE or (rate_before < RARE and rate_now >= 0.1):
                found.append(FieldDrift(name, "nulls", f"{rate_before:.0%}", f"{rate_now:.0%}"))
    return found[:MOST_CHANGES]


def _records(fields: Fields) -> int:
    return sum(fields.get(RECORDS, {}).values())


def _full(kinds: Mapping[str, int]) -> int:
    return sum(number for kind, number in kinds.items() if kind != "null")


def _kinds(kinds: Mapping[str, int]) -> frozenset[str]:
    return frozenset("integer" if kind == "big" else kind for kind in kinds if kind != "null")


def _wider(kinds: frozenset[str]) -> frozenset[str]:
    """What is no change: an integer where numbers were."""
    return frozenset({"integer"}) if "number" in kinds else frozenset()


def _listed(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))
