"""`schedule:` of a source: `manual`, one policy, or a list of them, each with a name of its own."""

import re
from typing import Annotated, Any, Literal, get_args

from penstock.errors import ConfigError
from penstock.settings.declaration import (
    For,
    Keys,
    MadeOf,
    MissingKey,
    Reads,
    Schema,
    Usual,
    about,
    between,
    decode,
    names_of,
    no_less,
    no_more,
)
from penstock.settings.document import Entry, join
from penstock.settings.kinds import (
    Calendar,
    Cron,
    Duration,
    Offset,
    Ref,
    Zone,
    hours,
    one_or_many,
    text_schema,
    variable,
)
from penstock.settings.opening_hours import WeeklyWindow, allowed_windows
from penstock.settings.pattern import pattern_of
from penstock.settings.schedule_values import (
    NearSettings,
    ScheduleSettings,
    SessionSettings,
    WatchSettings,
)
from penstock.settings.section import Section, describe, parsed, read_text, text_of
from penstock.settings.units import normalise_source

# Each policy by the key that names it, with the keys that belong to it alone.
POLICIES: dict[str, tuple[str, ...]] = {
    "every": ("jitter", "near"),
    "cron": (),
    "cadence": ("mode", "runs", "slowest", "fastest"),
    "session": (),
    "watch": ("debounce", "rescan"),
    "signal": (),
    "after": (),
}
# What people call two of the cadences.
CALLED = {"daily": "high", "weekly": "low"}
Cadence = Literal["high", "medium", "low", "probe", "auto", "daily", "weekly"]
Step = Literal["low", "medium", "high"]
Missed = Literal["once", "skip", "all"]
Overlap = Literal["skip", "queue", "replace"]
LADDER: tuple[str, ...] = get_args(Step)
MISSED: tuple[str, ...] = get_args(Missed)
OVERLAPS: tuple[str, ...] = get_args(Overlap)
# What was announced is forgotten a day after it.
LONGEST_NEAR_S = 86_400.0
USUAL = ScheduleSettings()
USUAL_WATCH = WatchSettings("")
# What waits for something else than the time must not forget it because a run is active.
WAITING = ("watch", "signal", "after")
_WANTED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.:-]{0,99})(?: +of +(\S.*))?")


class NearKeys(Keys, frozen=True):
    """So long before and after a moment that a step has announced, look this often."""

    window: Annotated[
        Duration,
        no_less(1.0),
        no_more(LONGEST_NEAR_S),
        MissingKey("is missing: near: {window: 10m, every: 5s}"),
        about("how long before and after the announced time"),
    ]
    every: Annotated[
        Duration,
        no_less(1.0),
        MissingKey("is missing: near: {window: 10m, every: 5s}"),
        about("how often to look then"),
    ]

    def made(self, at: Section) -> NearSettings:
        return NearSettings(self.window, self.every)


NEAR_KEYS = names_of(NearKeys)


class SessionKeys(Keys, frozen=True):
    """A moment of every session of an exchange."""

    calendar: Annotated[
        Calendar,
        MissingKey("is missing: session: {calendar: XNYS, at: open}"),
        about("the exchange"),
    ]
    at: Annotated[Literal["open", "close"], about("its open or its close")] = "open"
    offset: Annotated[Offset, about("this much later or earlier: `15m`, `-5m`"), Usual("none")] = (
        0.0
    )

    def made(self, at: Section) -> SessionSettings:
        return SessionSettings(self.calendar, self.at, self.offset)


SESSION_KEYS = names_of(SessionKeys)


def _read_pattern(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    parsed(entry, path, pattern_of, "./inbox/*.json")
    return text


def _read_signals(entry: Entry, path: str) -> tuple[str, ...]:
    example = "the name of a signal, or NAME of SOURCE"
    names = [parsed(each, path, _wanted, example) for each in _named(entry, path)]
    return tuple(dict.fromkeys(names))


def _wanted(text: str) -> str:
    found = _WANTED.fullmatch(text)
    if found is None:
        raise ConfigError("must be the name of a signal, or NAME of SOURCE")
    name, of = found.groups()
    return name if of is None else f"{name} of {normalise_source(of)}"


def _read_sources(entry: Entry, path: str) -> tuple[str, ...]:
    names = [parsed(each, path, normalise_source, "acme.com") for each in _named(entry, path)]
    return tuple(dict.fromkeys(names))


def _named(entry: Entry, path: str) -> list[Entry]:
    written = entry.value if isinstance(entry.value, list) else [entry]
    for each in written:
        text_of(each, path)
    if not written:
        raise entry.error(path, "must not be empty")
    return written


class ScheduleKeys(Keys, frozen=True):
    """When a source runs by itself: one policy, and what holds whatever the policy is."""

    every: Annotated[Duration | None, no_less(1.0), about("at this interval: `6h`")] = None
    jitter: Annotated[
        Duration,
        For("`every`"),
        about("random delay, up to this long"),
        Usual("none"),
    ] = USUAL.jitter_s
    near: Annotated[
        NearSettings | None,
        MadeOf(NearKeys),
        For("`every`"),
        about("`window` and `every`: poll this often around an announced time"),
        Usual("off"),
    ] = None
    cron: Annotated[
        Cron | None,
        about("by a cron expression with five or six fields, or an alias such as `@daily`"),
    ] = None
    cadence: Annotated[
        Cadence | None,
        about("by class: `high` (daily), `medium`, `low` (weekly), `probe`, or `auto`"),
    ] = None
    mode: Annotated[
        Literal["apply", "suggest"],
        For("`cadence: auto`"),
        about("`apply`, or only `suggest`"),
    ] = USUAL.mode
    runs: Annotated[
        int,
        between(1, 1000),
        For("`cadence: auto`"),
        about("equal votes in a row that move it"),
    ] = USUAL.runs
    slowest: Annotated[Step, For("`cadence: auto`"), about("slowest class")] = "low"
    fastest: Annotated[Step, For("`cadence: auto`"), about("fastest class")] = "high"
    session: Annotated[
        SessionSettings | None,
        MadeOf(SessionKeys),
        about("at a time of every session of an exchange: `{calendar: XNYS, at: open}`"),
    ] = None
    watch: Annotated[
        str | None,
        Reads(_read_pattern, text_schema),
        about("when matching files arrive: `./inbox/**/*.json`"),
    ] = None
    debounce: Annotated[
        Duration, no_less(0.01), For("`watch`"), about("files must be unchanged for this long")
    ] = USUAL_WATCH.debounce_s
    rescan: Annotated[
        Duration,
        no_less(1.0),
        For("`watch`"),
        about("scan the folder this often even without file events"),
    ] = USUAL_WATCH.rescan_s
    signal: Annotated[
        tuple[str, ...],
        Reads(_read_signals, lambda _: one_or_many()),
        about("for each signal with this name; `NAME of SOURCE` for signals about another source"),
        Usual("none"),
    ] = ()
    after: Annotated[
        tuple[str, ...],
        Reads(_read_sources, lambda _: one_or_many()),
        about("when this source, or all of these, have completed a run"),
        Usual("none"),
    ] = ()
    name: Annotated[str, For("all"), about("its name in `penstock schedules`")] = USUAL.name
    kind: Annotated[
        Literal["full", "incremental", "probe"] | None,
        For("all"),
        about("kind of run: `full`, `incremental`, `probe`; a degraded source gets probes"),
        Usual("`full`; with a `connector`, `incremental`"),
    ] = None
    missed: Annotated[
        Missed,
        For("by time"),
        about("ticks during downtime: `once`, `skip`, `all`"),
    ] = USUAL.missed
    catch_up: Annotated[
        float,
        between(0.1, 10_000),
        For("`missed: all`"),
        about("missed ticks started per minute, for all schedules together"),
    ] = USUAL.catch_up_per_min
    overlap: Annotated[
        Overlap | None,
        For("all"),
        about("a tick while a run is active: `skip`, `queue`, `replace`"),
        Usual("`skip`; for `watch`, `signal` and `after` `queue`"),
    ] = None
    windows: Annotated[
        tuple[WeeklyWindow, ...],
        hours("leave it out"),
        For("all"),
        about("start only in these hours of the week"),
        Usual("any"),
    ] = ()
    blackouts: Annotated[
        tuple[WeeklyWindow, ...],
        hours("leave it out"),
        For("all"),
        about("and not in these"),
        Usual("none"),
    ] = ()
    timezone: Annotated[
        Zone, For("`cron`, hours"), about("time zone of cron times, `windows` and `blackouts`")
    ] = USUAL.timezone
    during: Annotated[
        Literal["in-session", "out-of-session"] | None,
        For("all"),
        about("`in-session` or `out-of-session` of `calendar`"),
        Usual("any time"),
    ] = None
    calendar: Annotated[
        Calendar | None,
        For("`during`"),
        about("the exchange whose sessions `during` means: `XNYS`"),
        Usual("that of `session`"),
    ] = None

    @classmethod
    def refuse(cls, at: Section) -> None:
        named = [name for name in POLICIES if at.has(name)]
        if len(named) != 1:
            raise at.entry.error(
                at.path, f"needs one of {', '.join(POLICIES)}, and only one of them"
            )
        _refuse_strangers(at, named[0])

    def made(self, at: Section) -> ScheduleSettings:
        [policy] = [name for name in POLICIES if at.has(name)]
        self._refuse_policy(at)
        self._refuse_common(at)
        usual_overlap: Overlap = "queue" if policy in WAITING else USUAL.overlap
        return ScheduleSettings(
            _literal(policy),
            every_s=self.every,
            cron=self.cron,
            timezone=self.timezone,
            run_kind=self.kind or "",
            name=self.name,
            jitter_s=self.jitter,
            cadence=CALLED.get(self.cadence, self.cadence) if self.cadence else None,
            mode=self.mode,
            runs=self.runs,
            slowest=self.slowest,
            fastest=self.fastest,
            session=self.session,
            watch=WatchSettings(self.watch, self.debounce, self.rescan) if self.watch else None,
            signals=self.signal,
            after=self.after,
            near=self.near,
            windows=self.windows,
            blackouts=self.blackouts,
            during=self.during or "",
            calendar=self.calendar or (self.session.calendar if self.session else None),
            missed=self.missed,
            catch_up_per_min=self.catch_up,
            overlap=self.overlap or usual_overlap,
        )

    def _refuse_policy(self, at: Section) -> None:
        if self.every is not None and self.jitter > self.every:
            raise at.error("jitter", "must not be longer than every")
        if self.every is not None and self.near is not None and self.near.every_s >= self.every:
            raise _below(at, "near", "every", "must be shorter than the schedule's own every")
        for key in POLICIES["cadence"]:
            if at.has(key) and self.cadence != "auto":
                raise at.error(key, "belongs to cadence: auto")
        if LADDER.index(self.slowest) > LADDER.index(self.fastest):
            raise at.error("slowest", f"must not be quicker than fastest ({self.fastest})")

    def _refuse_common(self, at: Section) -> None:
        if self.during and self.calendar is None and self.session is None:
            raise at.error("during", "needs the calendar whose sessions are meant: calendar: XNYS")
        if self.calendar is not None and not self.during and self.session is None:
            raise at.error("calendar", "belongs to during or session, and there is none")
        if at.has("catch_up") and self.missed != "all":
            raise at.error("catch_up", "belongs to missed: all")
        if self.blackouts and not allowed_windows(self.windows, self.blackouts):
            raise at.error("blackouts", "leave no time at all in which it may start")


KEYS = names_of(ScheduleKeys)


def _refuse_strangers(at: Section, policy: str) -> None:
    for other, keys in POLICIES.items():
        for key in keys:
            if other != policy and at.has(key):
                raise at.error(key, f"belongs to {other}, not to {policy}")
    if policy in WAITING:
        for key in ("missed", "catch_up"):
            if at.has(key):
                raise at.error(key, f"belongs to schedules by time: {policy} misses nothing")
    has_clock = policy == "cron" or at.has("windows") or at.has("blackouts")
    if at.has("timezone") and not has_clock:
        raise at.error("timezone", "belongs to cron or to windows, and there are none")


def _below(at: Section, key: str, inner: str, problem: str) -> ConfigError:
    entry = at.get(key) or at.entry
    known = entry.value if isinstance(entry.value, dict) else {}
    return Section(entry, join(at.path, key), known).error(inner, problem)


def _literal(word: str) -> Any:
    return word


def read_schedules(entry: Entry, path: str) -> tuple[ScheduleSettings, ...]:
    """Every schedule of a source; none where it runs by hand only."""
    if entry.value == "manual":
        return ()
    written = entry.value if isinstance(entry.value, list) else [entry]
    found: dict[str, ScheduleSettings] = {}
    for one in written:
        if one.value == "manual":
            raise one.error(path, "manual stands alone, not in a list of schedules")
        schedule = _read(one, path)
        if schedule.name in found:
            raise one.error(path, f"has two schedules named {schedule.name!r}; give each a name")
        found[schedule.name] = schedule
    return tuple(found.values())


def _read(entry: Entry, path: str) -> ScheduleSettings:
    if not isinstance(entry.value, dict):
        words = ", ".join(f"{{{name}: …}}" for name in POLICIES)
        raise entry.error(path, f"must be manual or one of {words}, not {describe(entry)}")
    found: ScheduleSettings = decode(ScheduleKeys, entry, path)
    return found


def schedule_schema(ref: Ref) -> Schema:
    one = ref(ScheduleKeys)
    return {"anyOf": [{"const": "manual"}, one, {"type": "array", "items": one}, variable()]}
