"""A project without its store, its secrets and the network: as a checkout in CI has it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.app.project import Project
from penstock.errors import Refused
from penstock.settings import Settings, find_project, load_settings

# What stands for a variable that is not set: no step that is checked sends it anywhere.
UNSET = "unset"
PLACES = ("project", "store", "snapshots")
_EVENTS = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})


def offline_settings(place: Path, environment: str | None = None) -> Settings:
    """The settings, without the place of the data; other variables that are not set have a stand-in."""
    found = load_settings(place, environment, without=PLACES)
    unset = [*found.unset, *[each for source in found.sources.values() for each in source.unset]]
    if not unset:
        return found
    environ = {**os.environ, **{each.name: UNSET for each in unset}}
    return load_settings(place, environment, environ, without=PLACES)


@contextmanager
def offline_project(
    place: Path | str | None = None, environment: str | None = None
) -> Iterator[Project]:
    """The project as a checkout has it: what is looked up in its store is not there."""
    file = find_project(Path.cwd()) if place is None else Path(place)
    with blank_project(offline_settings(file, environment)) as project:
        yield project


@contextmanager
def blank_project(settings: Settings) -> Iterator[Project]:
    """The project with an empty database that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-golden-") as folder:
        blank = replace(
            settings,
            store=f"sqlite:{folder}/golden.db",
            snapshots=Path(folder) / "snapshots",
        )
        with Project(blank) as project:
            yield project


@contextmanager
def no_network() -> Iterator[None]:
    """While this lasts, this process opens no connection, by whatever library a step tries."""
    _install()
    _GUARD.count += 1
    try:
        yield
    finally:
        _GUARD.count -= 1


class _Guard:
    """Audit hooks can't be removed: this one does nothing while nobody checks."""

    is_installed = False
    count = 0

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.count and event in _EVENTS:
            place = args[0] if event == "socket.getaddrinfo" else args[-1]
            if isinstance(place, (str, bytes)) and event != "socket.getaddrinfo":
                return  # a socket file of this machine
            raise Refused(
                f"a step opened a connection of its own, to {_named(place)}",
                "fetch with ctx.fetch, so that the answer is kept and can be checked offline",
                code="golden_connection",
            )


_GUARD = _Guard()


def _install() -> None:
    if not _GUARD.is_installed:
        _GUARD.is_installed = True
        sys.addaudithook(_GUARD)


def _named(place: Any) -> str:
    if isinstance(place, tuple) and len(place) >= 2:
        return f"{place[0]}:{place[1]}"
    return place.decode("utf-8", "replace") if isinstance(place, bytes) else str(place)
