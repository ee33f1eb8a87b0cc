"""What a source, a host or the whole project may use: budgets, what a request costs, hosts' limits."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Self

from msgspec import Struct, field

from penstock.errors import ConfigError
from penstock.settings.declaration import (
    Keys,
    Reads,
    Usual,
    about,
    between,
    decode,
    names_of,
)
from penstock.settings.document import Entry, join
from penstock.settings.kinds import HostRate, Zone, hours, one_or_many
from penstock.settings.limits import Breaker, BreakerSettings, refuse_zone_alone
from penstock.settings.opening_hours import WeeklyWindow
from penstock.settings.section import Section, describe, parsed
from penstock.settings.units import parse_duration, parse_size

MEASURES = ("requests", "bytes", "seconds", "money")
EXAMPLES = {"requests": "5000/d", "bytes": "1GB/d", "seconds": "2h/run", "money": "5.00/month"}
PERIODS = {"run": "run", "d": "day", "day": "day", "month": "month"}
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s/:@\[\]?#]+)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """No more than this much of one measure in each run, day or month."""

    measure: str
    amount: float
    period: str


class Bound(Struct, frozen=True):
    """No more than this of one measure in each period of one scope (project, source:KEY or run:ID)."""

    scope: str
    measure: str
    period: str
    amount: float
    timezone: str = "UTC"

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.scope, self.measure, self.period)

    @property
    def holding(self) -> str:
        """The name under which workers hold what they have reserved of it."""
        return f"budget:{self.measure}:{self.period}:{self.scope}"


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What may be used; days and months begin at midnight in the zone (a source's: else the project's)."""

    bounds: tuple[BudgetLimit, ...] = ()
    timezone: str | None = None


def _read_bounds(measure: str, entry: Entry, path: str) -> tuple[BudgetLimit, ...]:
    """The bounds of one measure, each period once."""
    bounds: dict[str, BudgetLimit] = {}
    for inner in _bound_entries(measure, entry, path):
        bound = parsed(inner, path, partial(_bound, measure), EXAMPLES[measure])
        if bound.period in bounds:
            raise entry.error(path, f"has two bounds for one {bound.period}")
        bounds[bound.period] = bound
    return tuple(bounds.values())


def _bound_entries(measure: str, entry: Entry, path: str) -> list[Entry]:
    entries = entry.value if isinstance(entry.value, list) else [entry]
    for inner in entries:
        if not isinstance(inner.value, str):
            problem = f"must be text such as {EXAMPLES[measure]}, not {describe(inner)}"
            raise entry.error(path, problem)
    return entries


def _bound(measure: str, text: str) -> BudgetLimit:
    amount, slash, period = (part.strip() for part in text.partition("/"))
    if not slash or period not in PERIODS:
        problem = f"must be an amount for each run, d or month, such as {EXAMPLES[measure]}"
        raise ConfigError(f"{problem}, not {text!r}")
    number = _amount(measure, amount)
    if number <= 0:
        raise ConfigError("must be more than nothing; to stop a source, pause it")
    return BudgetLimit(measure, number, PERIODS[period])


def _amount(measure: str, text: str) -> float:
    if measure == "bytes":
        return float(parse_size(text))
    if measure == "seconds":
        return parse_duration(text)
    if not _NUMBER.fullmatch(text) or (measure == "requests" and "." in text):
        kind = "a whole number" if measure == "requests" else "a number"
        raise ConfigError(f"needs {kind} before the slash, as in {EXAMPLES[measure]}, not {text!r}")
    return float(text)


_BOUND = r"/\s*(run|d|day|month)\s*$"
Bounds = tuple[BudgetLimit, ...]


def _bounds(measure: str) -> Reads:
    return Reads(partial(_read_bounds, measure), lambda _: one_or_many(_BOUND, least=0))


class BudgetKeys(Keys, frozen=True):
    """What may be used in a run, a day or a month: `AMOUNT/run`, `/d`, `/month`, or a list of these."""

    requests: Annotated[
        Bounds, _bounds("requests"), about("requests, such as `5000/d`"), Usual("no bound")
    ] = ()
    bytes: Annotated[
        Bounds,
        _bounds("bytes"),
        about("response bodies and headers, such as `1GB/d`"),
        Usual("no bound"),
    ] = ()
    seconds: Annotated[
        Bounds,
        _bounds("seconds"),
        about("total duration of requests, such as `2h/run`"),
        Usual("no bound"),
    ] = ()
    money: Annotated[
        Bounds,
        _bounds("money"),
        about("cost of requests and what steps spend, such as `5.00/month`"),
        Usual("no bound"),
    ] = ()
    timezone: Annotated[
        Zone | None,
        about("time zone in which days and months begin"),
        Usual("the project's; `UTC`"),
    ] = None

    def made(self, at: Section) -> BudgetSettings:
        bounds = (*self.requests, *self.bytes, *self.seconds, *self.money)
        return BudgetSettings(bounds, self.timezone)


BUDGET_KEYS = names_of(BudgetKeys)


class CostSettings(Keys, frozen=True):
    """What one request costs; None where the file doesn't say."""

    request: Annotated[
        float | None,
        between(0.0, 1_000_000),
        about("cost of one request, in the currency of the budgets"),
        Usual("nothing"),
    ] = None


COST_KEYS = names_of(CostSettings)


class HostLimits(Keys, frozen=True):
    """What all sources on all hosts together may do to one host of the network.

    Outside its `windows`, by the clock of `timezone`, it is asked nothing. `breaker` is None where only a
    person opens it.
    """

    concurrency: Annotated[
        int | None, between(1, 100_000), about("requests at the same time"), Usual("no limit")
    ] = None
    rate_per_s: Annotated[
        HostRate | None, about("requests per time, such as `30/m`"), Usual("no limit")
    ] = field(default=None, name="rate")
    windows: Annotated[
        tuple[WeeklyWindow, ...],
        hours("leave it out for all hours"),
        about('hours in which requests may be sent, as for a source: `["22:00-06:00"]`'),
        Usual("all hours"),
    ] = ()
    timezone: Annotated[Zone, about("time zone of `windows`")] = "UTC"
    breaker: Annotated[
        Breaker,
        about(
            "its own numbers: `{ratio: 0.5, at_least: 10, window: 60s, open_for: 30s, longest: "
            "30m}`, or `off`; see [below](#breakers)"
        ),
        Usual("these numbers"),
    ] = BreakerSettings()

    def made(self, at: Section) -> Self:
        refuse_zone_alone(at)
        if not any(at.has(name) for name in HOST_KEYS):
            raise at.entry.error(at.path, "needs a limit: concurrency, rate, windows or breaker")
        return self


HOST_KEYS = names_of(HostLimits)


def read_hosts(entry: Entry, path: str) -> dict[str, HostLimits]:
    """What all sources together may do to a host, by its name as requests have it."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of hosts to their limits")
    found: dict[str, HostLimits] = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        host = _host(name, inner, at)
        if host in found:
            raise inner.error(at, f"is the same host as another one above ({host})")
        found[host] = decode(HostLimits, inner, at)
    return found


def _host(name: str, entry: Entry, path: str) -> str:
    """As requests spell it: lower-case, its port only where that is not the usual one."""
    text = name.strip().lower().rstrip(".")
    match = _HOST.fullmatch(text)
    if match is None:
        raise entry.error(path, "is not a host; write it as api.example.com or 127.0.0.1:8000")
    host, port = match[1], match[2] or ""
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise entry.error(path, "is not the name of a host") from None
    return host if port in (":80", ":443") else host + port
