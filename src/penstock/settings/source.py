"""One source of penstock.yaml."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from penstock.settings.addresses import addresses_of, read_allow_private, read_hosts
from penstock.settings.backfill import read_backfill
from penstock.settings.budget import BUDGET_KEYS, COST_KEYS, read_budget, read_cost
from penstock.settings.document import Entry, join
from penstock.settings.headers import HARMLESS, read_headers, read_headers_for
from penstock.settings.hooks import read_hooks
from penstock.settings.restraints import read_breaker, read_windows
from penstock.settings.retries import read_retry
from penstock.settings.schedule import read_schedules
from penstock.settings.section import Section, describe, plain
from penstock.settings.units import (
    parse_duration,
    parse_rate,
    parse_size,
)
from penstock.settings.values import (
    FetchPolicy,
    Limits,
    SourceSettings,
    StreamSettings,
)

SOURCE_KEYS = (
    "pipeline",
    "params",
    "schedule",
    "freshness",
    "deadline",
    "schema_freshness",
    "retry",
    "useful_for",
    "timeout",
    "priority",
    "weight",
    "threshold",
    "degrade_after",
    "good_probes",
    "limits",
    "breaker",
    "stream",
    "backfill",
    "budget",
    "cost",
    "fetch",
    "hooks",
)
STREAM_KEYS = ("gap",)
LIMIT_KEYS = ("concurrency", "candidates", "rate", "adaptive", "windows", "timezone")
FETCH_KEYS = (
    "allow_private",
    "robots",
    "user_agent",
    "timeout",
    "max_bytes",
    "max_redirects",
    "missing",
    "headers",
    "headers_for",
    "hosts",
)
MISSING = ("fail", "skip")
_PIPELINE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def read_source(key: str, entry: Entry, retries: Collection[str]) -> SourceSettings:
    """The source with this key, every default filled in; `retries` are the classes that there are."""
    section = Section(entry, join("sources", key), SOURCE_KEYS)
    limits = _limits(section.section("limits", LIMIT_KEYS))
    breaker = read_breaker(section)
    params = _params(section)
    fetch = _fetch(section.section("fetch", FETCH_KEYS), limits, addresses_of(key, params))
    return SourceSettings(
        key=key,
        pipeline=_pipeline(section),
        params=params,
        schedules=read_schedules(section),
        freshness_s=section.duration("freshness", None, parse_duration, low=1.0),
        deadline_s=section.duration("deadline", None, parse_duration, low=1.0),
        schema_freshness_s=section.duration("schema_freshness", None, parse_duration, low=1.0),
        retry=read_retry(section, retries),
        useful_for_s=section.duration("useful_for", None, parse_duration, low=1.0),
        timeout_s=section.duration("timeout", None, parse_duration, low=0.001),
        priority=section.whole("priority", 5, low=0, high=100),
        weight=section.number("weight", 1.0, low=0.01, high=1000),
        threshold=_threshold(section),
        degrade_after=section.whole("degrade_after", 3, low=0, high=1000),
        good_probes=section.whole("good_probes", 2, high=1000),
        limits=limits,
        breaker=breaker,
        stream=_stream(section.section("stream", STREAM_KEYS)),
        backfill=read_backfill(section),
        budget=read_budget(section.section("budget", BUDGET_KEYS)),
        cost=read_cost(section.section("cost", COST_KEYS)),
        fetch=replace(fetch, has_breaker=breaker is not None),
        hooks=read_hooks(section, key),
    )


def _pipeline(section: Section) -> str:
    if section.get("pipeline") is None:
        raise section.error("pipeline", "is missing; write it as module:name")
    pipeline = section.text("pipeline", "")
    if not _PIPELINE.fullmatch(pipeline):
        entry = section.get("pipeline")
        shown = describe(entry) if entry else "nothing"
        raise section.error("pipeline", f"must be module:name, not {shown}")
    return pipeline


def _threshold(section: Section) -> float | None:
    if section.get("threshold") is None:
        return None
    return section.number("threshold", 0.0, low=-1e9, high=1e9)


def _params(section: Section) -> dict[str, object]:
    entry = section.get("params")
    if entry is None:
        return {}
    if not isinstance(entry.value, dict):
        raise section.error("params", f"must be a mapping, not {describe(entry)}")
    return {name: plain(inner) for name, inner in entry.value.items()}


def _stream(section: Section) -> StreamSettings:
    usual = StreamSettings()
    return StreamSettings(section.duration("gap", usual.gap_s, parse_duration, low=1.0))


def _limits(section: Section) -> Limits:
    usual = Limits()
    windows, timezone = read_windows(section)
    return Limits(
        concurrency=section.whole("concurrency", usual.concurrency, high=10_000),
        candidates=section.whole("candidates", usual.candidates, high=100_000),
        rate_per_s=section.parsed("rate", usual.rate_per_s, parse_rate, "60/m"),
        adaptive=section.flag("adaptive", usual.adaptive),
        windows=windows,
        timezone=timezone,
    )


def _fetch(section: Section, limits: Limits, addresses: tuple[str, ...]) -> FetchPolicy:
    usual = FetchPolicy()
    return FetchPolicy(
        allow_private=read_allow_private(section),
        robots=section.flag("robots", usual.robots),
        user_agent=section.text("user_agent", usual.user_agent),
        timeout_s=section.duration("timeout", usual.timeout_s, parse_duration, low=0.001),
        max_bytes=section.parsed("max_bytes", usual.max_bytes, parse_size, "16MB"),
        max_redirects=section.whole("max_redirects", usual.max_redirects, low=0, high=50),
        missing="skip" if section.choice("missing", "fail", MISSING) == "skip" else "fail",
        headers=_own_headers(section, addresses),
        headers_for=read_headers_for(section),
        hosts=read_hosts(section),
        addresses=addresses,
        connections=limits.concurrency,
        rate_per_s=limits.rate_per_s,
    )


def _own_headers(section: Section, addresses: tuple[str, ...]) -> dict[str, str]:
    headers = read_headers(section)
    if not addresses and any(name.lower() not in HARMLESS for name in headers):
        problem = (
            "are sent to the source's own site only, and neither its name nor its params hold an "
            "address; name the site: headers_for: {https://api.example.com: {…}}"
        )
        raise section.error("headers", problem)
    return headers
