"""The small languages of penstock.yaml: durations, rates, sizes, cron, time zones, source keys."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from penstock.errors import ConfigError, nearest

SECONDS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES: Mapping[str, int] = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
CRON_ALIASES: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
CRON_FIELDS: Mapping[str, str] = {
    "second": "from 0 to 59",
    "minute": "from 0 to 59",
    "hour": "from 0 to 23",
    "day-of-month": "from 1 to 31 or L, and one that its months have",
    "month": "from 1 to 12, or JAN to DEC",
    "day-of-week": "from 0 to 7 (Sunday to Sunday), or SUN to SAT",
}
LONGEST_S = 100 * 365 * 86400.0
LONGEST_KEY = 200

_QUANTITY = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,9})?)\s?(?P<unit>[a-z]+)", re.IGNORECASE)
_RATE = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,9})?)\s?/\s?(?P<unit>[smhd])")
_URL = re.compile(r"https?://", re.IGNORECASE)
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


def parse_duration(text: str) -> float:
    """Seconds of `500ms`, `30s`, `5m`, `2h` or `1d`; a bare number is refused, for it has no unit."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match["unit"] not in SECONDS:
        raise ConfigError(f"{text!r} is not a duration: write it as 30s, 5m, 2h or 1d")
    seconds = float(match["number"]) * SECONDS[match["unit"]]
    if seconds > LONGEST_S:
        raise ConfigError(f"{text!r} is too long: the maximum is a hundred years (36500d)")
    return seconds


def parse_offset(text: str) -> float:
    """A duration that may be negative: `15m`, `-5m`."""
    text = text.strip()
    if text.startswith("-"):
        return -parse_duration(text[1:])
    return parse_duration(text.removeprefix("+"))


def parse_rate(text: str) -> float:
    """How often per second: `5/s`, `60/m`, `1000/h` or `5000/d`."""
    match = _RATE.fullmatch(text.strip())
    if match is None or float(match["number"]) == 0.0:
        raise ConfigError(f"{text!r} is not a rate: write it as 5/s, 60/m, 1000/h or 5000/d")
    return float(match["number"]) / SECONDS[match["unit"]]


def parse_size(text: str) -> int:
    """Bytes of `500KB`, `16MB`, `1GB` (thousands) or `16MiB` (1024s)."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match["unit"].lower() not in BYTES:
        raise ConfigError(f"{text!r} is not a size: write it as 500KB, 16MB or 1GB")
    return int(float(match["number"]) * BYTES[match["unit"].lower()])


def parse_cron(text: str) -> str:
    """A cron expression of five or six fields (seconds first), with `@daily` and friends spelled out.

    An expression that can never fire, such as the 31st of February, is refused.
    """
    expression = CRON_ALIASES.get(text.strip().lower(), " ".join(text.split()))
    if expression.startswith("@"):
        raise ConfigError(f"{text!r} is not a cron alias: {nearest(text, CRON_ALIASES)}")
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except StopIteration:
        raise ConfigError(f"{text!r} is a cron expression that never fires") from None
    except (CronSimError, ValueError, AssertionError, IndexError) as error:
        raise ConfigError(f"{text!r} is not a cron expression: {_cron_problem(error)}") from None
    return expression


def _cron_problem(error: Exception) -> str:
    problem = str(error).lower() or "cannot be read"
    if problem == "wrong number of fields":
        return "it needs five fields (minute hour day month weekday), or six with the second first"
    field = problem.removeprefix("bad ")
    return f"its {field} must be {CRON_FIELDS[field]}" if field in CRON_FIELDS else problem


def parse_timezone(text: str) -> ZoneInfo:
    """The IANA time zone of this name."""
    try:
        return ZoneInfo(text)
    except (ValueError, OSError, LookupError):
        hint = nearest(text, available_timezones())
        tail = hint if hint.startswith("did") else "write it as Europe/Paris"
        raise ConfigError(f"{text!r} is not a time zone, {tail}") from None


def normalise_source(text: str) -> str:
    """The one key of a source, however it is spelled: `https://WWW.Acme.com/` is `acme.com`.

    Scheme, credentials, a leading `www.`, the scheme's own port, the fragment and a trailing slash
    are dropped; the host is lower-case; a path keeps its case, because servers tell them apart.
    """
    key = unicodedata.normalize("NFC", text.strip())
    if not key or len(key) > LONGEST_KEY or not key.isprintable() or " " in key:
        raise ConfigError(
            f"a source needs a name of 1 to {LONGEST_KEY} characters without spaces, not {key!r:.40}"
        )
    host, path = _host_and_path(key)
    host = _readable_host(host.lower().rstrip("."))
    if host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    if not host:
        raise ConfigError(f"{text.strip()!r} does not name a source")
    return host + path.rstrip("/")


def _host_and_path(key: str) -> tuple[str, str]:
    if not _URL.match(key):
        host, slash, path = key.partition("/")
        return host, slash + path
    try:
        url = urlsplit(key)
    except ValueError:
        raise ConfigError(f"{key!r} is not a URL") from None
    host = url.netloc.rpartition("@")[2].removesuffix(_DEFAULT_PORT[url.scheme.lower()])
    return host, url.path + (f"?{url.query}" if url.query else "")


def _readable_host(host: str) -> str:
    if "xn--" not in host:
        return host
    try:
        return host.encode("ascii").decode("idna")
    except UnicodeError:
        return host
