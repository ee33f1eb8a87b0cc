"""One source of penstock.yaml."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec

from penstock.errors import ConfigError, nearest
from penstock.settings.addresses import addresses_of
from penstock.settings.alert_rules import SourceRules
from penstock.settings.backfill import BackfillSettings
from penstock.settings.budget import BudgetKeys, BudgetSettings, CostSettings
from penstock.settings.connector import ConnectorKeys, find_connector
from penstock.settings.declaration import (
    Keys,
    MadeOf,
    Reads,
    Usual,
    about,
    between,
    decode,
    names_of,
    no_less,
)
from penstock.settings.document import Entry, join
from penstock.settings.fetch import FETCH_KEYS, FetchKeys, FetchPolicy
from penstock.settings.headers import HARMLESS
from penstock.settings.hooks import HookKeys, hooks_schema, read_hooks
from penstock.settings.kinds import VARIABLE, Duration
from penstock.settings.limits import LIMIT_KEYS, Breaker, BreakerSettings, Limits
from penstock.settings.retries import (
    RetryChoice,
    read_retry,
    refuse_unknown_class,
    retry_schema,
)
from penstock.settings.schedule import read_schedules, schedule_schema
from penstock.settings.section import Section, describe, plain, read_text
from penstock.settings.stream import STREAM_KEYS, StreamSettings
from penstock.settings.values import HookSettings, ScheduleSettings, SourceSettings

__all__ = ["FETCH_KEYS", "LIMIT_KEYS", "SOURCE_KEYS", "STREAM_KEYS", "SourceKeys", "read_source"]

_PIPELINE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
USUAL = SourceSettings("", "")
Promised = Annotated[Duration | None, no_less(1.0)]


def _read_pipeline(entry: Entry, path: str) -> str:
    pipeline = read_text(entry, path)
    if not _PIPELINE.fullmatch(pipeline):
        raise entry.error(path, f"must be module:name, not {describe(entry)}")
    return pipeline


def _read_params(entry: Entry, path: str) -> dict[str, Any]:
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be a mapping, not {describe(entry)}")
    return {name: plain(inner) for name, inner in entry.value.items()}


def _read_profile(entry: Entry, path: str) -> str | dict[str, Any]:
    if isinstance(entry.value, dict):
        return _read_params(entry, path)
    return read_text(entry, path)


class SourceKeys(Keys, frozen=True):
    """One place that is read: its pipeline or connector, when it runs, and what it may use."""

    pipeline: Annotated[
        str,
        Reads(
            _read_pipeline,
            lambda _: {"type": "string", "pattern": rf"^[^\s:]+:[^\s:]+$|{VARIABLE}"},
        ),
        about("`module:name`; the module is beside this file"),
        Usual("required without a `connector`"),
    ] = ""
    profile: Annotated[
        str | dict[str, Any],
        Reads(_read_profile, lambda _: {"type": ["string", "object"]}),
        about(
            "where `pipeline` names a registry: which of its steps to run, as the name of a profile or as "
            "`{extends: standard, without: […], features: {…}, config: {…}}`; see "
            "[registries.md](registries.md)"
        ),
        Usual("the registry's"),
    ] = ""
    connector: Annotated[
        str | None,
        about(
            "reads a kind of place without code of yours, such as `files` or `feed`; it has keys of "
            "its own, see [connectors](connectors/index.md). With a `pipeline` too, its steps get what "
            'the connector reads (`after="read"`)'
        ),
        Usual("none"),
    ] = None
    params: Annotated[
        dict[str, Any],
        Reads(_read_params, lambda _: {"type": "object"}),
        about("any values for the pipeline, as `ctx.params`"),
    ] = msgspec.field(default_factory=dict)
    schedule: Annotated[
        tuple[ScheduleSettings, ...],
        Reads(read_schedules, schedule_schema),
        about(
            'when it runs: `manual`, one policy such as `{every: 6h}`, `{cron: "0 2 * * *", '
            "timezone: Europe/Paris}` or `{cadence: high}`, or a list of policies, each with its "
            "own `name`; see [schedules.md](schedules.md)"
        ),
        Usual("`manual`"),
    ] = ()
    freshness: Annotated[
        Promised, about("SLA: maximum age of the last good run; see [below](#schedules)")
    ] = None
    deadline: Annotated[
        Promised,
        about("SLA: maximum duration of a run, from when it is queued"),
    ] = None
    schema_freshness: Annotated[
        Promised,
        about("SLA: maximum time since a step last called `ctx.schema_verified()`"),
    ] = None
    retry: Annotated[
        RetryChoice,
        Reads(read_retry, retry_schema, lambda _: None),
        about("a retry class, or what differs from one: `{class: provider-safe, tries: 8}`"),
        Usual("the pipeline's, else `fast`"),
    ] = RetryChoice()
    useful_for: Annotated[
        Promised,
        about(
            "a job is not retried later than this after it was enqueued; it is quarantined instead"
        ),
        Usual("as long as it takes"),
    ] = None
    timeout: Annotated[
        Duration | None,
        no_less(0.001),
        about("timeout of page and candidate attempts"),
        Usual("`60s`"),
    ] = None
    priority: Annotated[int, between(0, 100), about("lower runs sooner")] = USUAL.priority
    weight: Annotated[float, between(0.01, 1000), about("the source's share of the workers")] = (
        USUAL.weight
    )
    threshold: Annotated[
        float | None,
        between(-1e9, 1e9),
        about(
            "records with a lower score are rejected (`below_threshold`); records without a "
            "score are saved"
        ),
        Usual("none: everything is saved"),
    ] = None
    degrade_after: Annotated[
        int,
        between(0, 1000),
        about(
            "consecutive failed runs before the source is degraded and only probes run; 0 disables this"
        ),
    ] = USUAL.degrade_after
    good_probes: Annotated[
        int, between(1, 1000), about("consecutive good probes before it is healthy again")
    ] = USUAL.good_probes
    private: Annotated[
        bool,
        about(
            "its content is left out of exports, hooks, alerts and tools unless they are told to include it; "
            "see [records.md](records.md#private-sources)"
        ),
    ] = USUAL.private
    limits: Limits = Limits()
    breaker: Annotated[
        Breaker, about("`off`, or any of the following keys; see [below](#breakers)"), Usual("on")
    ] = BreakerSettings()
    stream: StreamSettings = StreamSettings()
    backfill: BackfillSettings | None = None
    budget: Annotated[
        BudgetSettings,
        MadeOf(BudgetKeys),
        about(
            "budget of this source: `requests`, `bytes`, `seconds`, `money`, each as "
            "`AMOUNT/run`, `/d` or `/month` or a list of these, and `timezone`; see "
            "[below](#budgets-costs-and-hosts)"
        ),
        Usual("no bound"),
    ] = BudgetSettings()
    cost: Annotated[
        CostSettings,
        about("`{request: 0.002}`: cost of one request, in the currency of the budgets"),
        Usual("the project's"),
    ] = CostSettings()
    fetch: FetchKeys = FetchKeys()
    hooks: Annotated[
        tuple[HookSettings, ...],
        Reads(read_hooks, hooks_schema, below=HookKeys),
        about(
            "webhooks and commands that are called when a run of this source ends, besides the "
            "project's `hooks`"
        ),
        Usual("none"),
    ] = ()
    alert_rules: Annotated[
        SourceRules,
        about(
            "thresholds of alert rules for this source, over the project's `alert_rules`; see "
            "[alerts.md](alerts.md#rules)"
        ),
        Usual("the project's"),
    ] = msgspec.field(default_factory=dict)

    @classmethod
    def refuse(cls, at: Section) -> None:
        if at.has("profile") and not at.has("pipeline"):
            raise at.error("profile", "is of a registry, which `pipeline` names")
        if not at.has("pipeline") and not at.has("connector"):
            raise at.error("pipeline", "is missing; write it as module:name, or name a connector")


SOURCE_KEYS = names_of(SourceKeys)


def read_source(key: str, entry: Entry, retries: Collection[str]) -> SourceSettings:
    """The source with this key, every default filled in; `retries` are the classes that there are."""
    path = join("sources", key)
    connected = _connected(entry, path)
    entry = connected.rest
    keys: SourceKeys = decode(SourceKeys, entry, path)
    at = Section(entry, path, SOURCE_KEYS)
    refuse_unknown_class(at.get("retry"), join(path, "retry"), retries)
    return SourceSettings(
        key=key,
        pipeline=keys.pipeline,
        profile=keys.profile,
        connector=keys.connector or "",
        options=connected.options,
        params=keys.params,
        schedules=connected.scheduled(keys.schedule),
        freshness_s=keys.freshness,
        deadline_s=keys.deadline,
        schema_freshness_s=keys.schema_freshness,
        retry=keys.retry,
        useful_for_s=keys.useful_for,
        timeout_s=keys.timeout,
        priority=keys.priority,
        weight=keys.weight,
        threshold=keys.threshold,
        degrade_after=keys.degrade_after,
        good_probes=keys.good_probes,
        private=keys.private,
        limits=connected.limited(keys.limits, at),
        breaker=keys.breaker,
        stream=keys.stream,
        backfill=connected.backfilled(keys.backfill),
        budget=keys.budget,
        cost=keys.cost,
        fetch=connected.fetching(_fetch(key, keys, at, connected.options), at),
        hooks=tuple(replace(hook, name=f"{key}/{hook.name}") for hook in keys.hooks),
        alert_rules=keys.alert_rules,
    )


@dataclass(frozen=True, slots=True)
class _Connected:
    """A source without the keys of its connector; and these, read by the connector's own Struct."""

    rest: Entry
    connector: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    headers_for: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def scheduled(self, schedules: tuple[ScheduleSettings, ...]) -> tuple[ScheduleSettings, ...]:
        """What a connector has read is read again when it has changed, unless a schedule says otherwise."""
        usual = "full" if self.connector is None else "incremental"
        return tuple(each if each.run_kind else replace(each, run_kind=usual) for each in schedules)

    def limited(self, limits: Limits, at: Section) -> Limits:
        """How many a connector reads at once, unless the file says it."""
        written = at.get("limits")
        is_said = written is not None and _names(written).get("concurrency") is not None
        usual = getattr(self.connector, "concurrency", None)
        if is_said or usual is None:
            return limits
        return msgspec.structs.replace(limits, concurrency=usual)

    def fetching(self, policy: FetchPolicy, at: Section) -> FetchPolicy:
        """What requests of a connector carry, and whether they obey robots.txt, unless the file says it."""
        if self.connector is None:
            return policy
        written = at.get("fetch")
        is_said = written is not None and _names(written).get("robots") is not None
        bound = {
            origin: {**self.headers_for.get(origin, {}), **policy.headers_for.get(origin, {})}
            for origin in (*self.headers_for, *policy.headers_for)
        }
        robots = policy.robots if is_said else policy.robots and self.connector.robots
        return replace(policy, headers_for=bound, robots=robots)

    def backfilled(self, written: BackfillSettings | None) -> BackfillSettings | None:
        """A connector that reads windows of time knows how they are cut, and which partitions there are."""
        if self.connector is None:
            return written
        found: BackfillSettings | None = self.connector.backfill(self.options, written)
        return found


def _connected(entry: Entry, path: str) -> _Connected:
    """Tell the keys of the source from those of its connector. Unknown ones are refused by both."""
    written = _names(entry)
    named = written.get("connector")
    if named is None or named.value is None:
        return _Connected(entry)
    name = read_text(named, join(path, "connector"))
    try:
        connector = find_connector(name)
    except ConfigError as error:
        raise named.error(join(path, "connector"), error.message) from None
    own = names_of(connector.Settings)
    for each, inner in written.items():
        if each not in SOURCE_KEYS and each not in own:
            near = nearest(each, [*own, *SOURCE_KEYS])
            raise inner.error(join(path, each), f"unknown key of the connector {name}, {near}")
    options_of = {each: inner for each, inner in written.items() if each in own}
    keys = _decoded(connector.Settings, replace(entry, value=options_of), entry, path)
    rest = {each: inner for each, inner in written.items() if each not in own}
    options = msgspec.to_builtins(keys)
    return _Connected(replace(entry, value=rest), connector, options, keys.headers_for())


def _decoded(section: type[ConnectorKeys], part: Entry, whole: Entry, path: str) -> Any:
    """What is wrong with the part is told of the whole: what it lacks may have been refused before."""
    try:
        return decode(section, part, path)
    except ConfigError as error:
        if error.entry is part:
            error.entry = whole
        raise


def _names(entry: Entry) -> dict[str, Entry]:
    return entry.value if isinstance(entry.value, dict) else {}


def _fetch(key: str, keys: SourceKeys, at: Section, options: dict[str, Any]) -> FetchPolicy:
    fetch, addresses = keys.fetch, addresses_of(key, {**options, **keys.params})
    if not addresses and any(name.lower() not in HARMLESS for name in fetch.headers):
        problem = (
            "are sent to the source's own site only, and neither its name nor its params hold an "
            "address; name the site: headers_for: {https://api.example.com: {…}}"
        )
        raise _headers_of(at).error(join(at.path, "fetch.headers"), problem)
    return FetchPolicy(
        allow_private=fetch.allow_private,
        robots=fetch.robots,
        user_agent=fetch.user_agent,
        timeout_s=fetch.timeout,
        max_bytes=fetch.max_bytes,
        max_redirects=fetch.max_redirects,
        missing=fetch.missing,
        headers=fetch.headers,
        headers_for=fetch.headers_for,
        hosts=fetch.hosts,
        addresses=addresses,
        connections=keys.limits.concurrency,
        rate_per_s=keys.limits.rate_per_s,
        has_breaker=keys.breaker is not None,
        proxy=fetch.proxy,
    )


def _headers_of(source: Section) -> Entry:
    fetch = source.get("fetch")
    found = fetch.value.get("headers") if fetch and isinstance(fetch.value, dict) else None
    return found or source.entry
