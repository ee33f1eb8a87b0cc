"""What keeps a source or a host from being asked too much: its breaker, its limits and its hours."""

from typing import Annotated, Self

import msgspec
from msgspec import field

from penstock.settings.declaration import (
    Keys,
    Reads,
    Schema,
    Usual,
    about,
    between,
    decode,
    names_of,
    no_less,
)
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, Rate, Ref, Zone, hours, variable
from penstock.settings.opening_hours import WeeklyWindow
from penstock.settings.section import Section, describe


class BreakerSettings(Keys, frozen=True):
    """A source is left alone for `open_for_s`, longer each time up to `longest_s`, when of what ended in
    the last `window_s`, if that was `at_least` so much, this `ratio` failed."""

    ratio: Annotated[float, between(0.01, 1), about("share of failures that opens the breaker")] = (
        0.5
    )
    at_least: Annotated[
        int,
        between(1, 100_000),
        about("jobs that must have ended in the window before the ratio counts"),
    ] = 10
    window_s: Annotated[Duration, no_less(1.0), about("how far back it counts")] = field(
        default=60.0, name="window"
    )
    open_for_s: Annotated[
        Duration,
        no_less(1.0),
        about("how long it stays open the first time; doubles each time in a row"),
    ] = field(default=30.0, name="open_for")
    longest_s: Annotated[
        Duration,
        no_less(1.0),
        about("longest time it stays open, plus up to a fifth of jitter"),
    ] = field(default=1800.0, name="longest")

    def made(self, at: Section) -> Self:
        if self.longest_s >= self.open_for_s:
            return self
        if at.has("longest"):
            raise at.error("longest", "must not be shorter than open_for")
        return msgspec.structs.replace(self, longest_s=self.open_for_s)


BREAKER_KEYS = names_of(BreakerSettings)


def read_breaker(entry: Entry, path: str) -> BreakerSettings | None:
    """`breaker: off`, or a mapping of what differs from the usual."""
    if entry.value is False or entry.value == "off":
        return None
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be off, or a mapping, not {describe(entry)}")
    found: BreakerSettings = decode(BreakerSettings, entry, path)
    return found


def breaker_schema(ref: Ref) -> Schema:
    return {"anyOf": [{"enum": ["off", False]}, ref(BreakerSettings), variable()]}


Breaker = Annotated[
    BreakerSettings | None,
    Reads(read_breaker, breaker_schema, lambda _: None, below=BreakerSettings),
]
NO_WINDOWS = "belongs to windows, and there are none"


class Limits(Keys, frozen=True):
    """`concurrency` bounds run and page jobs at once, `candidates` candidate jobs, `rate_per_s` requests.

    `adaptive` lowers the concurrency for a while when the source bears less. Outside its `windows`, by
    the clock of `timezone`, nothing starts that would touch the source.
    """

    concurrency: Annotated[int, between(1, 10_000), about("run and page jobs at the same time")] = 4
    candidates: Annotated[int, between(1, 100_000), about("candidate jobs at the same time")] = 64
    rate_per_s: Annotated[
        Rate | None,
        about("requests of all workers on all hosts together, such as `60/m`"),
        Usual("no limit"),
    ] = field(default=None, name="rate")
    adaptive: Annotated[
        bool,
        about(
            "lower the concurrency while many jobs fail or pages are much slower than usual, and "
            "raise it again afterwards"
        ),
    ] = True
    windows: Annotated[
        tuple[WeeklyWindow, ...],
        hours("leave it out for all hours"),
        about(
            'hours in which jobs that touch the source may start, such as `["22:00-06:00", '
            '"sat-sun 00:00-24:00"]`; see [below](#windows)'
        ),
        Usual("all"),
    ] = ()
    timezone: Annotated[Zone, about("time zone of `windows`, such as `Europe/Paris`")] = "UTC"

    def made(self, at: Section) -> Self:
        refuse_zone_alone(at)
        return self


LIMIT_KEYS = names_of(Limits)


def refuse_zone_alone(at: Section) -> None:
    if at.has("timezone") and not at.has("windows"):
        raise at.error("timezone", NO_WINDOWS)
