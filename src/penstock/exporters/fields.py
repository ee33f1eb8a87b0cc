"""Fields: the moments of a cron expression as sets, and how cron and systemd spell them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import groupby

from cronsim import CronSim

from penstock.exporters.starts import Inexpressible

MINUTES, HOURS = tuple(range(60)), tuple(range(24))
DAYS, MONTHS, WEEKDAYS = tuple(range(1, 32)), tuple(range(1, 13)), tuple(range(7))
DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
NAMES = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
# The epoch was a Thursday.
EPOCH_WEEKDAY = 4
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Nth:
    """The nth of a weekday in a month, counted from its end if n is 0."""

    weekday: int
    n: int


@dataclass(frozen=True, slots=True)
class Fields:
    """Every second of a day that is one of these, on every day that is: Sunday is 0.

    A day must be one of `days` and of `weekdays`, or with `either` one of one of them. The last day of a
    month, and its last from Monday to Friday, stand beside the days.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    seconds: tuple[int, ...] = (0,)
    days: tuple[int, ...] = DAYS
    months: tuple[int, ...] = MONTHS
    weekdays: tuple[int, ...] = WEEKDAYS
    nths: tuple[Nth, ...] = ()
    last_day: bool = False
    last_workday: bool = False
    either: bool = False

    @property
    def has_days(self) -> bool:
        return self.days != DAYS or self.last_day or self.last_workday

    @property
    def has_weekdays(self) -> bool:
        return self.weekdays != WEEKDAYS or bool(self.nths)

    @property
    def is_on_every_day(self) -> bool:
        return not self.has_days and not self.has_weekdays and self.months == MONTHS

    @property
    def is_interval(self) -> bool:
        """Every hour of some days: goes by real time when the clocks change."""
        return self.hours == HOURS


def fields_of(expression: str) -> Fields:
    """What an expression means, by the reading that the scheduler has of it."""
    cron = CronSim(expression, _ANY_DAY)
    weekdays = {each % 7 for each in cron.weekdays if isinstance(each, int)}
    nths = {
        Nth(each[0] % 7, 0 if each[1] == CronSim.LAST else each[1])
        for each in cron.weekdays
        if isinstance(each, tuple)
    }
    fields = Fields(
        minutes=tuple(sorted(cron.minutes)),
        hours=tuple(sorted(cron.hours)),
        seconds=tuple(sorted(cron.seconds)),
        days=tuple(sorted(day for day in cron.days if day > 0)),
        months=tuple(sorted(cron.months)),
        weekdays=tuple(sorted(weekdays)),
        nths=tuple(sorted(nths, key=lambda nth: (nth.weekday, nth.n))),
        last_day=CronSim.LAST in cron.days,
        last_workday=CronSim.LAST_WEEKDAY in cron.days,
    )
    return replace(fields, either=fields.has_days and fields.has_weekdays and not cron.day_and)


def of_interval(every_s: float, first_at: float) -> tuple[Fields, ...]:
    """Moments an interval apart, where weeks hold a whole number of them; by UTC, to the minute."""
    minutes, first = every_s / 60.0, int(first_at // 60)
    if minutes < 1 or minutes % 1 or WEEK_MINUTES % minutes:
        raise Inexpressible(f"has no moments that are {every_s:g}s apart, week after week")
    moments = range(first % int(minutes), WEEK_MINUTES, int(minutes))
    return of_week((EPOCH_WEEKDAY * DAY_MINUTES + each) % WEEK_MINUTES for each in moments)


def of_week(moments: Iterable[int]) -> tuple[Fields, ...]:
    """These minutes of every week, as few fields as they come to."""
    minutes_of: dict[tuple[int, int], set[int]] = {}
    for moment in moments:
        weekday, minute = divmod(moment, DAY_MINUTES)
        minutes_of.setdefault((weekday, minute // 60), set()).add(minute % 60)
    hours_of: dict[tuple[int, tuple[int, ...]], set[int]] = {}
    for (weekday, hour), minutes in minutes_of.items():
        hours_of.setdefault((weekday, tuple(sorted(minutes))), set()).add(hour)
    days_of: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}
    for (weekday, of_hour), hours in hours_of.items():
        days_of.setdefault((of_hour, tuple(sorted(hours))), set()).add(weekday)
    found = [
        Fields(of_hour, of_day, weekdays=tuple(sorted(weekdays)))
        for (of_hour, of_day), weekdays in days_of.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.weekdays, each.hours, each.minutes)))


def shifted(fields: Fields, minutes: int) -> tuple[Fields, ...]:
    """The same moments by a clock that is so many minutes ahead."""
    if not minutes:
        return (fields,)
    if fields.seconds != (0,) or fields.has_days or fields.nths or fields.months != MONTHS:
        raise Inexpressible("can't move days of a month to the clock of another time zone")
    moments = {
        weekday * DAY_MINUTES + hour * 60 + minute
        for weekday in fields.weekdays
        for hour in fields.hours
        for minute in fields.minutes
    }
    return of_week((each + minutes) % WEEK_MINUTES for each in moments)


def cron_text(fields: Fields) -> str:
    """Five fields that every cron reads alike.

    A star in the minutes or hours makes programs go by real time when the clocks change: only what is
    due in every hour has one.
    """
    if fields.seconds != (0,):
        raise Inexpressible("has no seconds")
    if fields.nths or fields.last_day or fields.last_workday:
        raise Inexpressible("has no last day of a month and no nth weekday")
    if fields.has_days and fields.has_weekdays and not fields.either:
        raise Inexpressible("is not agreed on what */n together with a weekday means")
    minutes = "*" if fields.is_interval and fields.minutes == MINUTES else _runs(fields.minutes)
    return " ".join(
        (
            minutes,
            "*" if fields.is_interval else _runs(fields.hours),
            "*" if fields.days == DAYS else _runs(fields.days),
            "*" if fields.months == MONTHS else _runs(fields.months),
            "*" if fields.weekdays == WEEKDAYS else _runs(fields.weekdays),
        )
    )


def calendar_texts(fields: Fields, zone: str) -> list[str]:
    """Lines of OnCalendar=; due is what any of them says."""
    time = (
        f"{_of(fields.hours, HOURS)}:{_of(fields.minutes, MINUTES)}:{_of(fields.seconds, MINUTES)}"
    )
    return [f"{day} {time} {zone}" for day in _calendar_days(fields)]


def matches(fields: Fields, wall: datetime) -> bool:
    """Whether a wall clock that shows this is at one of the moments."""
    at = wall.second in fields.seconds and wall.minute in fields.minutes
    return at and wall.hour in fields.hours and matches_day(fields, wall.date())


def matches_day(fields: Fields, day: date) -> bool:
    if day.month not in fields.months:
        return False
    last = (date(day.year + day.month // 12, day.month % 12 + 1, 1) - date(1, 1, 1)).days
    left = last - (day - date(1, 1, 1)).days - 1
    weekday = day.isoweekday() % 7
    is_last_workday = weekday in range(1, 6) and (not left or (weekday == 5 and left < 3))
    by_date = (
        day.day in fields.days
        or (fields.last_day and not left)
        or (fields.last_workday and is_last_workday)
    )
    nths = {Nth(weekday, (day.day + 6) // 7), *([Nth(weekday, 0)] if left < 7 else [])}
    by_weekday = weekday in fields.weekdays or not nths.isdisjoint(fields.nths)
    return by_date or by_weekday if fields.either else by_date and by_weekday


def _calendar_days(fields: Fields) -> list[str]:
    month = "*" if fields.months == MONTHS else _of(fields.months, MONTHS)
    by_date, by_weekday = _dates(fields, month), _weekdays(fields, month)
    if fields.either:
        return [*by_date, *by_weekday]
    if not fields.has_weekdays:
        return by_date
    if not fields.has_days:
        return by_weekday
    if fields.nths or fields.last_day or fields.last_workday:
        raise Inexpressible("has no day that is both the last of a month and an nth weekday")
    names = ",".join(NAMES[each] for each in fields.weekdays)
    return [f"{names} {each}" for each in by_date]


def _dates(fields: Fields, month: str) -> list[str]:
    found = [f"*-{month}-{_of(fields.days, DAYS)}"] if fields.days else []
    if fields.last_day:
        found.append(f"*-{month}~01")
    if fields.last_workday:
        # The last day if that is one, else the Friday before it.
        found += [f"Mon..Fri *-{month}~01", f"Fri *-{month}~02", f"Fri *-{month}~03"]
    return found


def _weekdays(fields: Fields, month: str) -> list[str]:
    names = ",".join(NAMES[each] for each in fields.weekdays)
    found = [f"{names} *-{month}-*"] if names else []
    for nth in fields.nths:
        days = f"-{nth.n * 7 - 6:02}..{min(nth.n * 7, 31):02}" if nth.n else "~07/1"
        found.append(f"{NAMES[nth.weekday]} *-{month}{days}")
    return found


def _of(values: tuple[int, ...], every: tuple[int, ...]) -> str:
    if values == every:
        return "*"
    return ",".join(
        f"{first:02}" if first == last else f"{first:02}..{last:02}"
        for first, last in _stretches(values)
    )


def _runs(values: tuple[int, ...]) -> str:
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _stretches(values)
    )


def _stretches(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """Runs of neighbours, from three on; two stand beside each other."""
    found: list[tuple[int, int]] = []
    for _, run in groupby(enumerate(values), key=lambda pair: pair[1] - pair[0]):
        numbers = [value for _, value in run]
        if len(numbers) > 2:
            found.append((numbers[0], numbers[-1]))
        else:
            found += [(each, each) for each in numbers]
    return found
