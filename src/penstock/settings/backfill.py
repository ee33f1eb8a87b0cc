"""How a source's past is fetched: what it is cut into, for which partitions, and on which days."""

from datetime import date
from typing import Annotated, Literal

from msgspec import field

from penstock.errors import ConfigError
from penstock.settings.declaration import Keys, Reads, about, between, names_of, no_less
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, Zone, read_listed, texts_schema
from penstock.settings.section import parsed, text_of

DAY_S = 86400.0
DEFAULT_PARTITIONS = ("default",)


def _read_texts(entry: Entry, path: str) -> tuple[str, ...]:
    found = tuple(text_of(each, path) for each in read_listed(entry, path))
    if len(set(found)) < len(found):
        raise entry.error(path, "has one of them twice")
    return found


def _read_partitions(entry: Entry, path: str) -> tuple[str, ...]:
    return _read_texts(entry, path) or DEFAULT_PARTITIONS


def _read_holidays(entry: Entry, path: str) -> tuple[str, ...]:
    _read_texts(entry, path)
    return tuple(parsed(each, path, _day, "2026-12-25") for each in read_listed(entry, path))


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(f"has {text!r}: write days as 2026-12-25") from None


class BackfillSettings(Keys, frozen=True):
    """How a source's past is cut into units, and how much of its concurrency they may have.

    Windows of whole days are cut at midnights in the zone.
    """

    window_s: Annotated[
        Duration,
        no_less(1.0),
        about(
            "length of one unit of a backfill; whole days start at midnight in `timezone`, so a "
            "day on which clocks change has 23 or 25 hours"
        ),
    ] = field(default=DAY_S, name="window")
    partitions: Annotated[
        tuple[str, ...],
        Reads(_read_partitions, texts_schema, list),
        about("what is fetched for each window: `[AAPL, MSFT]`"),
    ] = DEFAULT_PARTITIONS
    share: Annotated[
        float,
        between(0.01, 1),
        about("share of `limits.concurrency` that backfills may use, at least one job"),
    ] = 0.25
    calls_per_unit: Annotated[
        float, between(0, 1e6), about("requests per unit, for the estimate of the plan")
    ] = 1.0
    calendar: Annotated[
        Literal["always", "weekdays"],
        about("`always`, or `weekdays` to skip Saturdays and Sundays"),
    ] = "always"
    holidays: Annotated[
        tuple[str, ...],
        Reads(_read_holidays, texts_schema, list),
        about("days to skip: `[2026-12-25]`"),
    ] = ()
    timezone: Annotated[Zone, about("time zone of days and midnights")] = "UTC"


BACKFILL_KEYS = names_of(BackfillSettings)
