"""`hooks:` of the project or of a source: who is told when a run ends, and `trigger:`, who may tell us."""

from __future__ import annotations

import re
from pathlib import PurePath
from urllib.parse import urlsplit

from penstock.settings.addresses import read_allow_private
from penstock.settings.document import Entry, join
from penstock.settings.headers import read_headers
from penstock.settings.section import Section, describe, text_of
from penstock.settings.units import parse_duration, parse_size
from penstock.settings.values import HookSettings, TriggerSettings

HOOK_KEYS = ("name", "on", "url", "secret", "headers", "allow_private", "command", "env", "timeout")
TRIGGER_KEYS = ("token", "hosts", "max_bytes")
ENDS = ("completed", "partial", "failed", "cancelled")
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


def read_hooks(owner: Section, key: str = "") -> tuple[HookSettings, ...]:
    """The hooks of the project, or of the source with this key."""
    entry = owner.get("hooks")
    if entry is None:
        return ()
    path = join(owner.path, "hooks")
    if not isinstance(entry.value, list):
        raise entry.error(path, f"must be a list of hooks, not {describe(entry)}")
    found: dict[str, HookSettings] = {}
    for one in entry.value:
        hook = _hook(one, path, f"{key}/" if key else "")
        if hook.name in found:
            raise one.error(path, "has two hooks of one name; give each a name of its own")
        found[hook.name] = hook
    return tuple(found.values())


def _hook(entry: Entry, path: str, prefix: str) -> HookSettings:
    section = Section(entry, path, HOOK_KEYS)
    if (section.get("url") is None) == (section.get("command") is None):
        raise entry.error(path, "needs a url or a command, and only one of them")
    if section.get("command") is not None:
        for key in URL_KEYS:
            if section.get(key) is not None:
                raise section.error(key, "belongs to url, not to command")
    elif section.get("env") is not None:
        raise section.error("env", "belongs to command, not to url")
    usual = HookSettings("")
    url, command = _url(section), _words(section, "command")
    name = section.text("name", "") or _usual_name(url, command)
    if not _HOOK_NAME.fullmatch(name):
        raise section.error("name", "must be letters, digits and _.- only")
    return HookSettings(
        name=prefix + name,
        on=_ends(section),
        url=url,
        secret=section.text("secret", "") or None,
        headers=read_headers(section),
        allow_private=read_allow_private(section),
        command=command,
        env=_environment(section),
        timeout_s=section.duration("timeout", usual.timeout_s, parse_duration, low=0.1),
    )


def _environment(section: Section) -> dict[str, str]:
    """What a command finds in its environment beside the usual; the way to give it a secret."""
    entry = section.get("env")
    if entry is None:
        return {}
    if not isinstance(entry.value, dict):
        raise section.error("env", f"must be a mapping, not {describe(entry)}")
    found = {}
    for name, inner in entry.value.items():
        path = join(section.path, f"env.{name}")
        if not _VARIABLE.fullmatch(name):
            raise inner.error(path, "is not the name of an environment variable")
        found[name] = text_of(inner, path)
        if "\0" in found[name]:
            raise inner.error(path, "must not have a NUL in it")
    return found


def _usual_name(url: str | None, command: tuple[str, ...]) -> str:
    name = (urlsplit(url).hostname or "" if url else PurePath(command[0]).name) or "hook"
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "hook"


def _url(section: Section) -> str | None:
    if section.get("url") is None:
        return None
    url = section.text("url", "")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_sound = False
    if not is_sound:
        raise section.error("url", "must be an address such as https://example.com/hook")
    return url


def _ends(section: Section) -> tuple[str, ...]:
    for each in _listed(section, "on"):
        if each.value not in ENDS:
            problem = f"must be some of {', '.join(ENDS)}, not {describe(each)}"
            raise each.error(join(section.path, "on"), problem)
    return tuple(dict.fromkeys(_words(section, "on") or ENDS))


def _words(section: Section, key: str) -> tuple[str, ...]:
    return tuple(text_of(one, join(section.path, key)) for one in _listed(section, key))


def _listed(section: Section, key: str) -> list[Entry]:
    entry = section.get(key)
    if entry is None:
        return []
    if not isinstance(entry.value, list) or not entry.value:
        given = "an empty list" if entry.value == [] else describe(entry)
        raise section.error(key, f"must be a list such as {LISTS[key]}, not {given}")
    return entry.value


def read_trigger(section: Section) -> TriggerSettings:
    usual = TriggerSettings()
    token = section.text("token", "") or None
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise section.error("token", f"must have at least {SHORTEST_TOKEN} characters")
    return TriggerSettings(
        token=token,
        hosts=tuple(host.lower() for host in _words(section, "hosts")),
        max_bytes=section.parsed("max_bytes", usual.max_bytes, parse_size, "256KB"),
    )
