"""`alerts:` of the project: the routes on which alerts are delivered."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from penstock.errors import ConfigError, nearest
from penstock.settings.addresses import AllowPrivate
from penstock.settings.alert_condition import EXAMPLE, When, parse_when, when_text
from penstock.settings.declaration import (
    SECRET,
    Keys,
    MissingKey,
    Reads,
    Schema,
    TextForm,
    Usual,
    about,
    decode,
    names_of,
    no_less,
)
from penstock.settings.document import Entry, join
from penstock.settings.headers import Headers, HeaderValues
from penstock.settings.kinds import Duration, Ref, Zone, hours, read_names, texts_schema
from penstock.settings.opening_hours import (
    OpeningHours,
    WeeklyWindow,
    allowed_windows,
    window_opens_at,
)
from penstock.settings.secrets import MASK
from penstock.settings.section import Section, describe, read_text
from penstock.settings.units import normalise_source

RouteKind = Literal["webhook", "smtp", "apprise"]
WEBHOOK_KEYS = ("secret", "headers", "allow_private")
TO_EXAMPLES = (
    "https://example.com/hook, smtp://mail.example.com/?to=ops@example.com, "
    "or an address of Apprise such as ntfy://topic"
)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://.+", re.DOTALL)
_MAIL = re.compile(r"[^@\s,<>\"]+@[^@\s,<>\"]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Where alerts are delivered, which of them, and when not."""

    name: str
    to: str = field(repr=False)
    when: When = ()
    sources: tuple[str, ...] = ()
    quiet: tuple[WeeklyWindow, ...] = ()
    timezone: str = "UTC"
    digest_s: float | None = None
    secret: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=Headers)
    allow_private: bool | tuple[str, ...] = False
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", Headers(self.headers))

    @property
    def kind(self) -> RouteKind:
        return _kind_of(self.to)

    def accepts(self, severity: str, rule: str, source: str) -> bool:
        """Whether an alert goes this way; one about the project (no source) goes every way."""
        if not all(each.holds(severity, rule) for each in self.when):
            return False
        return not self.sources or not source or any(fnmatchcase(source, s) for s in self.sources)

    def held_until(self, severity: str, now: float) -> float:
        """When it may be delivered: now, or after the quiet hours, for which a critical alert never waits."""
        if not self.quiet or severity == "critical":
            return now
        return quiet_until(self.quiet, self.timezone, now)


def quiet_until(quiet: tuple[WeeklyWindow, ...], timezone: str, now: float) -> float:
    """The end of the quiet hours that it is in, or now. All hours quiet are none."""
    loud = _complement(quiet)
    if not loud:
        return now
    return window_opens_at(OpeningHours(loud, timezone), now) or now


def _complement(windows: tuple[WeeklyWindow, ...]) -> tuple[WeeklyWindow, ...]:
    return allowed_windows((), windows)


def _kind_of(to: str) -> RouteKind:
    scheme = to.partition("://")[0].lower()
    if scheme in ("http", "https"):
        return "webhook"
    return "smtp" if scheme in ("smtp", "smtps") else "apprise"


def _read_to(entry: Entry, path: str) -> str:
    # The address may be the secret itself, as that of a Slack webhook is: no error repeats it.
    to = read_text(entry, path).strip()
    if not _ADDRESS.fullmatch(to):
        raise entry.error(path, f"must be an address such as {TO_EXAMPLES}")
    if _kind_of(to) != "apprise":
        _refuse_unsound(_split(to), entry, path)
    return to


def _split(to: str) -> SplitResult | None:
    try:
        parts = urlsplit(to)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def _refuse_unsound(parts: SplitResult | None, entry: Entry, path: str) -> None:
    if parts is None:
        raise entry.error(path, "has no sound host; write it as https://example.com/hook")
    if parts.scheme.lower() in ("smtp", "smtps"):
        named = parse_qs(parts.query)
        receivers = [one for each in named.get("to", []) for one in each.split(",")]
        if not receivers or not all(map(_MAIL.fullmatch, [*receivers, *named.get("from", [])])):
            raise entry.error(
                path,
                "needs who receives it: smtp://mail.example.com/?to=ops@example.com&from=me@example.com",
            )


def _read_sources(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "sources", _read_source)
    if not found:
        raise entry.error(path, "must not be empty; leave it out for all sources")
    return found


def _read_source(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if _GLOB.search(text):
        return text.lower()
    try:
        return normalise_source(text)
    except ConfigError as error:
        problem = f"must be a source, not {describe(entry)}" if entry.is_secret else error.message
        raise entry.error(path, problem) from None


def _read_name(entry: Entry, path: str) -> str:
    name = read_text(entry, path)
    if not _NAME.fullmatch(name):
        raise entry.error(path, "must be letters, digits and _.- only")
    return name


_WHEN = TextForm(parse_when, EXAMPLE, shown=when_text)


def _to_schema(_: Ref) -> Schema:
    return {"type": "string", "pattern": r"://|\$\{"}


class RouteKeys(Keys, frozen=True):
    """Where alerts are delivered: a webhook, mail, or any service that Apprise knows."""

    to: Annotated[
        str,
        Reads(_read_to, _to_schema),
        SECRET,
        MissingKey(f"is missing; it is an address such as {TO_EXAMPLES}"),
        about(
            "address: `https://…` for a webhook (Slack's, too), "
            "`smtp://USER:PASSWORD@HOST:PORT/?to=A&from=B` or `smtps://…` for mail, or an address "
            "of Apprise (extra `alerts`)"
        ),
    ]
    when: Annotated[
        When,
        _WHEN,
        about("which alerts: `severity >= high`, `rule != stale-source`, joined with `and`"),
        Usual("all"),
    ] = ()
    sources: Annotated[
        tuple[str, ...],
        Reads(_read_sources, texts_schema),
        about(
            "sources whose alerts go here; `*` stands for any text. Alerts about the project do always"
        ),
        Usual("all"),
    ] = ()
    quiet: Annotated[
        tuple[WeeklyWindow, ...],
        hours("leave it out for none"),
        about(
            'hours in which alerts wait until the hours end: `"22:00-06:00"`, or a list with days: '
            '`["sat-sun 00:00-24:00"]`. A critical alert never waits'
        ),
        Usual("none"),
    ] = ()
    timezone: Annotated[Zone, about("time zone of `quiet`")] = "UTC"
    digest: Annotated[
        Duration | None,
        no_less(60.0),
        about(
            "collect alerts for this long and deliver them as one message; critical ones do not wait"
        ),
        Usual("each alert by itself"),
    ] = None
    secret: Annotated[
        str | None,
        SECRET,
        about("key that signs each delivery to a webhook, as for hooks"),
        Usual("not signed"),
    ] = None
    headers: Annotated[HeaderValues, about("headers of the request to a webhook")] = msgspec.field(
        default_factory=dict
    )
    allow_private: Annotated[
        AllowPrivate,
        about(
            "allow private addresses, as for "
            "[a source](configuration.md#where-requests-go-and-what-they-carry)"
        ),
    ] = False
    timeout: Annotated[Duration, no_less(0.1), about("timeout of one attempt")] = 10.0
    name: Annotated[
        str | None,
        Reads(_read_name, lambda _: {"type": "string", "minLength": 1}),
        about("name in `penstock alerts test`"),
        Usual("the host"),
    ] = None

    def made(self, at: Section) -> RouteSettings:
        self._refuse_what_does_not_belong(at)
        return RouteSettings(
            name=self.name or _usual_name(self.to),
            to=self.to,
            when=self.when,
            sources=self.sources,
            quiet=self.quiet,
            timezone=self.timezone,
            digest_s=self.digest,
            secret=self.secret,
            headers=self.headers,
            allow_private=self.allow_private,
            timeout_s=self.timeout,
        )

    def _refuse_what_does_not_belong(self, at: Section) -> None:
        if at.has("timezone") and not at.has("quiet"):
            raise at.error("timezone", "belongs to quiet, and there is none")
        if self.quiet and not _complement(self.quiet):
            raise at.error("quiet", "is all hours of the week; then nothing would be delivered")
        for key in WEBHOOK_KEYS:
            if at.has(key) and _kind_of(self.to) != "webhook":
                raise at.error(key, "belongs to a webhook: to: https://…")

    def __repr__(self) -> str:
        return f"RouteKeys({MASK})"


ROUTE_KEYS = names_of(RouteKeys)


def _usual_name(to: str) -> str:
    parts = _split(to)
    scheme = to.partition("://")[0]
    # In an address of Apprise the host may be a token; its scheme says which service it is.
    name = parts.hostname if parts and parts.hostname and _kind_of(to) != "apprise" else scheme
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name or "").strip("-.") or "route"


def read_routes(entry: Entry, path: str) -> tuple[RouteSettings, ...]:
    if not isinstance(entry.value, list):
        tail = "; thresholds stand under alert_rules" if isinstance(entry.value, dict) else ""
        raise entry.error(path, f"must be a list of routes, not {describe(entry)}{tail}")
    found: dict[str, RouteSettings] = {}
    for one in entry.value:
        route: RouteSettings = decode(RouteKeys, one, path)
        if route.name in found:
            raise one.error(path, "has two routes of one name; give each a name of its own")
        found[route.name] = route
    return tuple(found.values())


def routes_schema(ref: Ref) -> Schema:
    return {"type": "array", "items": ref(RouteKeys)}


def refuse_unknown_sources(entry: Entry | None, path: str, known: Collection[str]) -> None:
    """Refuse a route for a source that the project does not have; a pattern may match none yet."""
    for route in entry.value if entry is not None and isinstance(entry.value, list) else []:
        named = route.value.get("sources") if isinstance(route.value, dict) else None
        for one in named.value if named is not None and isinstance(named.value, list) else []:
            source = _read_source(one, path)
            if not _GLOB.search(source) and source not in known:
                given = describe(one) if one.is_secret else f"{source!r}"
                hint = nearest(source, known) or "there are no sources"
                raise one.error(join(path, "sources"), f"there is no source {given}, {hint}")
