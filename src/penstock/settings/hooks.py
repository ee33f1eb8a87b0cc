"""`hooks:` of the project or of a source: who is told when a run ends, and `trigger:`, who may tell us."""

import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from penstock.settings.addresses import AllowPrivate
from penstock.settings.declaration import (
    SECRET,
    Keys,
    Reads,
    Schema,
    Usual,
    about,
    decode,
    names_of,
    no_less,
)
from penstock.settings.document import Entry, join
from penstock.settings.headers import Headers, HeaderValues
from penstock.settings.kinds import (
    Duration,
    Ref,
    SmallSize,
    text_schema,
    texts_by_name,
    texts_schema,
    variable,
)
from penstock.settings.secrets import MASK
from penstock.settings.section import Section, describe, read_text, text_of

ENDS = ("completed", "partial", "failed", "cancelled")
# Once a day, the head of the audit chain: for a receiver that keeps it where nobody can change it.
AUDIT_HEAD = "audit.head"
URL_KEYS = ("secret", "headers", "allow_private")
SHORTEST_TOKEN = 16
# What each of the keys that take a list looks like.
LISTS = {
    "on": "[failed]",
    "command": '["/usr/bin/notify", "a run has ended"]',
    "hosts": "[hooks.example.com]",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOOK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class HookSettings:
    """Who is told when a run ends: an address, or a command of the host that leads."""

    name: str
    on: tuple[str, ...] = ENDS
    url: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=Headers)
    allow_private: bool | tuple[str, ...] = False
    command: tuple[str, ...] = field(default=(), repr=False)
    env: dict[str, str] = field(default_factory=Headers)
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", Headers(self.headers))
        object.__setattr__(self, "env", Headers(self.env))


USUAL = HookSettings("")


def _read_url(entry: Entry, path: str) -> str:
    url = read_text(entry, path)
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_sound = False
    if not is_sound:
        raise entry.error(path, "must be an address such as https://example.com/hook")
    return url


def _read_name(entry: Entry, path: str) -> str:
    name = read_text(entry, path)
    if not _HOOK_NAME.fullmatch(name):
        raise entry.error(path, "must be letters, digits and _.- only")
    return name


def _read_ends(entry: Entry, path: str) -> tuple[str, ...]:
    for each in _listed("on", entry, path):
        if each.value == AUDIT_HEAD and path.startswith("sources"):
            raise each.error(path, f"{AUDIT_HEAD} is for hooks of the project, not of a source")
        if each.value not in (*ENDS, AUDIT_HEAD):
            allowed = ", ".join((*ENDS, AUDIT_HEAD))
            raise each.error(path, f"must be some of {allowed}, not {describe(each)}")
    return tuple(dict.fromkeys(_read_words("on", entry, path)))


def _read_words(key: str, entry: Entry, path: str) -> tuple[str, ...]:
    return tuple(text_of(one, path) for one in _listed(key, entry, path))


def _listed(key: str, entry: Entry, path: str) -> list[Entry]:
    if not isinstance(entry.value, list) or not entry.value:
        given = "an empty list" if entry.value == [] else describe(entry)
        raise entry.error(path, f"must be a list such as {LISTS[key]}, not {given}")
    return entry.value


def _read_command(entry: Entry, path: str) -> tuple[str, ...]:
    return _read_words("command", entry, path)


def _read_environment(entry: Entry, path: str) -> dict[str, str]:
    """What a command finds in its environment beside the usual; the way to give it a secret."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be a mapping, not {describe(entry)}")
    found = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if not _VARIABLE.fullmatch(name):
            raise inner.error(at, "is not the name of an environment variable")
        found[name] = text_of(inner, at)
        if "\0" in found[name]:
            raise inner.error(at, "must not have a NUL in it")
    return found


def _ends_schema(_: Ref) -> Schema:
    end = {"anyOf": [{"enum": [*ENDS, AUDIT_HEAD]}, variable()]}
    return {"type": "array", "items": end, "minItems": 1}


class HookKeys(Keys, frozen=True):
    """Who is told when a run ends: an address, or a command."""

    on: Annotated[
        tuple[str, ...],
        Reads(_read_ends, _ends_schema, list),
        about(
            f"ends of a run that it is called for: {', '.join(f'`{end}`' for end in ENDS)}; or "
            f"`{AUDIT_HEAD}`: the head of the [audit chain](audit.md#anchor-the-head), once a day"
        ),
        Usual("all ends"),
    ] = ENDS
    url: Annotated[
        str | None,
        Reads(_read_url, text_schema),
        about("address that receives a POST with a JSON body; redirects are not followed"),
        Usual("this or `command`"),
    ] = None
    secret: Annotated[
        str | None, SECRET, about("key that signs each delivery"), Usual("not signed")
    ] = None
    headers: Annotated[HeaderValues, about("headers of the request")] = msgspec.field(
        default_factory=dict
    )
    allow_private: Annotated[
        AllowPrivate,
        about("allow private addresses, as for [a source](#where-requests-go-and-what-they-carry)"),
    ] = False
    command: Annotated[
        tuple[str, ...],
        Reads(_read_command, texts_schema),
        about(
            "command that runs without a shell on the leading host, with the body on its "
            "standard input"
        ),
        Usual("this or `url`"),
    ] = ()
    env: Annotated[
        dict[str, str],
        Reads(_read_environment, texts_by_name),
        SECRET,
        about(
            'environment variables of the command: `{PAGER_TOKEN: "${PAGER_TOKEN}"}`. Pass '
            "secrets this way, not as an argument of `command`: other users of the machine can "
            "see arguments"
        ),
    ] = msgspec.field(default_factory=dict)
    timeout: Annotated[Duration, no_less(0.1), about("timeout of one attempt")] = USUAL.timeout_s
    name: Annotated[
        str | None,
        Reads(_read_name, text_schema),
        about("name in `penstock hooks`"),
        Usual("the host, or the command"),
    ] = None

    @classmethod
    def refuse(cls, at: Section) -> None:
        if at.has("url") == at.has("command"):
            raise at.entry.error(at.path, "needs a url or a command, and only one of them")
        if at.has("command"):
            for key in URL_KEYS:
                if at.has(key):
                    raise at.error(key, "belongs to url, not to command")
        elif at.has("env"):
            raise at.error("env", "belongs to command, not to url")

    def made(self, at: Section) -> HookSettings:
        return HookSettings(
            name=self.name or _usual_name(self.url, self.command),
            on=self.on,
            url=self.url,
            secret=self.secret,
            headers=self.headers,
            allow_private=self.allow_private,
            command=self.command,
            env=self.env,
            timeout_s=self.timeout,
        )

    def __repr__(self) -> str:
        return f"HookKeys({MASK})"


HOOK_KEYS = names_of(HookKeys)


def read_hooks(entry: Entry, path: str) -> tuple[HookSettings, ...]:
    if not isinstance(entry.value, list):
        raise entry.error(path, f"must be a list of hooks, not {describe(entry)}")
    found: dict[str, HookSettings] = {}
    for one in entry.value:
        hook: HookSettings = decode(HookKeys, one, path)
        if hook.name in found:
            raise one.error(path, "has two hooks of one name; give each a name of its own")
        found[hook.name] = hook
    return tuple(found.values())


def hooks_schema(ref: Ref) -> Schema:
    return {"type": "array", "items": ref(HookKeys)}


def _usual_name(url: str | None, command: tuple[str, ...]) -> str:
    name = (urlsplit(url).hostname or "" if url else PurePath(command[0]).name) or "hook"
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "hook"


def _read_hosts(entry: Entry, path: str) -> tuple[str, ...]:
    return tuple(host.lower() for host in _read_words("hosts", entry, path))


def _read_token(entry: Entry, path: str) -> str:
    token = read_text(entry, path)
    if len(token) < SHORTEST_TOKEN:
        raise entry.error(path, f"must have at least {SHORTEST_TOKEN} characters")
    return token


class TriggerSettings(Keys, frozen=True):
    """Who may raise signals over HTTP: whoever has the token, at one of these hosts beside our own."""

    token: Annotated[
        str | None,
        Reads(_read_token, text_schema),
        SECRET,
        about(f"token that callers send, at least {SHORTEST_TOKEN} characters"),
        Usual("only this machine may call"),
    ] = None
    hosts: Annotated[
        tuple[str, ...],
        Reads(_read_hosts, texts_schema),
        about("host names under which it is called, besides this machine's own"),
        Usual("none"),
    ] = ()
    max_bytes: Annotated[SmallSize, about("largest request body")] = 256_000

    def __repr__(self) -> str:
        return f"TriggerSettings(hosts={self.hosts!r}, max_bytes={self.max_bytes!r})"


TRIGGER_KEYS = names_of(TriggerSettings)
