"""What a source, a host or the whole project may use: budgets, what a request costs, hosts' limits."""

from __future__ import annotations

import re
from functools import partial

from penstock.errors import ConfigError
from penstock.settings.document import Entry, join
from penstock.settings.restraints import read_breaker, read_windows
from penstock.settings.section import Section, describe, parsed
from penstock.settings.units import parse_duration, parse_rate, parse_size, parse_timezone
from penstock.settings.values import BudgetLimit, BudgetSettings, CostSettings, HostLimits

MEASURES = ("requests", "bytes", "seconds", "money")
BUDGET_KEYS = (*MEASURES, "timezone")
COST_KEYS = ("request",)
HOST_KEYS = ("concurrency", "rate", "windows", "timezone", "breaker")
EXAMPLES = {"requests": "5000/d", "bytes": "1GB/d", "seconds": "2h/run", "money": "5.00/month"}
PERIODS = {"run": "run", "d": "day", "day": "day", "month": "month"}
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s/:@\[\]?#]+)(:[0-9]{1,5})?")


def read_budget(section: Section) -> BudgetSettings:
    """The bounds of one `budget:`, each measure once or as a list."""
    bounds: list[BudgetLimit] = []
    for measure in MEASURES:
        for entry in _entries(section, measure):
            path = join(section.path, measure)
            bound = parsed(entry, path, partial(_bound, measure), EXAMPLES[measure])
            if any((b.measure, b.period) == (measure, bound.period) for b in bounds):
                raise section.error(measure, f"has two bounds for one {bound.period}")
            bounds.append(bound)
    zone = section.parsed("timezone", None, parse_timezone, "Europe/Paris")
    return BudgetSettings(tuple(bounds), zone.key if zone else None)


def _entries(section: Section, measure: str) -> list[Entry]:
    entry = section.get(measure)
    if entry is None:
        return []
    entries = entry.value if isinstance(entry.value, list) else [entry]
    for inner in entries:
        if not isinstance(inner.value, str):
            problem = f"must be text such as {EXAMPLES[measure]}, not {describe(inner)}"
            raise section.error(measure, problem)
    return entries


def _bound(measure: str, text: str) -> BudgetLimit:
    amount, slash, period = (part.strip() for part in text.partition("/"))
    if not slash or period not in PERIODS:
        problem = f"must be an amount for each run, d or month, such as {EXAMPLES[measure]}"
        raise ConfigError(f"{problem}, not {text!r}")
    number = _amount(measure, amount)
    if number <= 0:
        raise ConfigError("must be more than nothing; `penstock pause` stops a source")
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


def read_cost(section: Section) -> CostSettings:
    """What one request costs, in whatever money the budgets are in."""
    if section.get("request") is None:
        return CostSettings()
    return CostSettings(section.number("request", 0.0, low=0.0, high=1_000_000))


def read_hosts(entry: Entry | None) -> dict[str, HostLimits]:
    """What all sources together may do to a host, by its name as requests have it."""
    if entry is None or entry.value is None:
        return {}
    if not isinstance(entry.value, dict):
        raise entry.error("hosts", "must be a mapping of hosts to their limits")
    found: dict[str, HostLimits] = {}
    for name, inner in entry.value.items():
        path = join("hosts", name)
        host = _host(name, inner, path)
        if host in found:
            raise inner.error(path, f"is the same host as another one above ({host})")
        found[host] = _host_limits(Section(inner, path, HOST_KEYS))
    return found


def _host_limits(section: Section) -> HostLimits:
    concurrency = None
    if section.get("concurrency") is not None:
        concurrency = section.whole("concurrency", 1, high=100_000)
    rate_per_s = section.parsed("rate", None, parse_rate, "30/m")
    windows, zone = read_windows(section)
    if all(section.get(name) is None for name in HOST_KEYS):
        problem = "needs a limit: concurrency, rate, windows or breaker"
        raise section.entry.error(section.path, problem)
    return HostLimits(concurrency, rate_per_s, windows, zone, read_breaker(section))


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
