"""Secrets that are not in the environment: `${file:…}`, `${command:…}` and `${keyring:…}`.

token: "${file:/run/secrets/shop_token}"          # Docker, Kubernetes
token: "${command:op read op://shop/token}"       # the first line of what it prints
token: "${keyring:shop/token}"                    # service/name, of the package keyring
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

LARGEST_BYTES = 1_000_000
PATIENCE_S = 20.0
# Each is asked once by a process: a command may cost a second, and a person's finger.
_known: dict[str, str] = {}


class NoSecret(Exception):
    """Why there is no secret; its text is one line, with nothing secret in it."""


def is_source(name: str) -> bool:
    """Whether a name in `${…}` says where a secret is, and is no variable."""
    return name.partition(":")[0] in SOURCES and ":" in name


def secret_of(name: str) -> str:
    """The secret; raises NoSecret in one line if it can't be had."""
    if name not in _known:
        kind, _, place = name.partition(":")
        _known[name] = SOURCES[kind](place.strip())
    return _known[name]


def _of_file(place: str) -> str:
    file = Path(place)
    if not file.is_absolute():
        raise NoSecret("the path must begin with /")
    try:
        if not file.is_file():
            raise NoSecret("there is no such file")
        with file.open("rb") as stream:
            raw = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise NoSecret(f"it can't be read ({error.strerror})") from None
    if len(raw) > LARGEST_BYTES:
        raise NoSecret(f"it is larger than {LARGEST_BYTES // 1_000_000} MB")
    return _text(raw)


def _of_command(place: str) -> str:
    try:
        words = shlex.split(place)
        if not words:
            raise NoSecret("there is no command")
        done = subprocess.run(  # noqa: S603  penstock.yaml names it, whose code runs as well
            words, capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False
        )
    except ValueError:
        raise NoSecret("it is no command: a quote has no end") from None
    except OSError as error:
        raise NoSecret(f"it can't be run ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise NoSecret(f"it did not end within {PATIENCE_S:g} s") from None
    if done.returncode:
        raise NoSecret(f"it ended with {done.returncode}")
    return _text(done.stdout)


def _of_keyring(place: str) -> str:
    service, _, name = place.partition("/")
    if not service or not name:
        raise NoSecret("write it as service/name")
    try:
        keyring = import_module("keyring")
    except ImportError:
        raise NoSecret("the package keyring is not installed") from None
    try:
        found = keyring.get_password(service, name)
    except Exception as error:  # a backend may fail in any way
        raise NoSecret(f"the keyring has failed ({type(error).__name__})") from None
    if found is None:
        raise NoSecret("the keyring has no such entry")
    return str(found)


def _text(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NoSecret("it is not UTF-8 text") from None
    text = text.rstrip("\r\n")
    if not text or "\0" in text:
        raise NoSecret("it is empty" if not text else "it is not text")
    return text


SOURCES: Mapping[str, Callable[[str], str]] = {
    "file": _of_file,
    "command": _of_command,
    "keyring": _of_keyring,
}
