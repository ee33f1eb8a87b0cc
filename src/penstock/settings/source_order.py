"""Sources that wait for others: each of them must be there, and nobody may wait for itself in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.errors import nearest
from penstock.settings.document import Entry, join
from penstock.settings.values import ScheduleSettings, SourceSettings


def refuse_circles(entries: Mapping[str, Entry], sources: Mapping[str, SourceSettings]) -> None:
    """Refuse sources that wait for one that is not there, or for themselves by whatever way round."""
    waits_for = {key: dict.fromkeys(_awaited(source)) for key, source in sources.items()}
    for key, awaited in waits_for.items():
        path = join(join("sources", key), "schedule")
        entry = _schedule(entries[key])
        for other in _named(sources[key]):
            if other not in sources:
                raise entry.error(path, _unknown(entry, other, sources))
        for other in awaited:
            circle = _circle(waits_for, key, other)
            if circle:
                shown = " waits for ".join(circle)
                raise entry.error(path, f"runs without end: {shown}")


def _unknown(entry: Entry, name: str, sources: Iterable[str]) -> str:
    # The name was brought into its normal form, so it would not be known again as a secret.
    if any(each.is_secret for each in entry.below()):
        return "a variable in it names a source that does not exist"
    return f"there is no source {name!r}, {nearest(name, sources)}"


def _schedule(source: Entry) -> Entry:
    """Where the schedules of a source stand."""
    found = source.value.get("schedule") if isinstance(source.value, dict) else None
    return source if found is None else found


def _named(source: SourceSettings) -> Iterable[str]:
    for schedule in source.schedules:
        yield from schedule.after
        yield from (of for _, of in map(_parted, schedule.signals) if of)


def _awaited(source: SourceSettings) -> Iterable[str]:
    """The sources whose runs' ends start this one."""
    for schedule in source.schedules:
        yield from schedule.after
        yield from (of or source.key for of in _ends(schedule))


def _ends(schedule: ScheduleSettings) -> Iterable[str]:
    return (of for name, of in map(_parted, schedule.signals) if name.startswith("run."))


def _parted(text: str) -> tuple[str, str]:
    name, _, of = text.partition(" of ")
    return name, of


def _circle(waits_for: Mapping[str, Iterable[str]], key: str, other: str) -> list[str]:
    """The way from a source through another back to itself; empty if there is none."""
    ways, seen = [[key, other]], set()
    while ways:
        way = ways.pop()
        if way[-1] == key:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways.extend([*way, further] for further in waits_for.get(way[-1], ()))
    return []
