"""Versions: Python, Penstock, SQLite, and the extras that the configuration needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from penstock.app.doctor.findings import Area
from penstock.app.views.doctor import CheckupFindingView
from penstock.settings import Settings
from penstock.store.sqlite.database import OLDEST_SAFE_SQLITE, sqlite_version
from penstock.version import __version__

AREA = Area("versions")
OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*(?P<bounds>[^;]*?)\s*;.*extra == ['\"](?P<extra>[\w-]+)['\"]"
)
_LEAST = re.compile(r">=\s*([\d.]+)")


def look(settings: Settings | None) -> Iterator[CheckupFindingView]:
    yield from _python()
    yield from _sqlite()
    yield from _extras(settings)


def _python() -> Iterator[CheckupFindingView]:
    shown = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        yield AREA.problem(f"Python {shown} is too old", "install Python 3.11 or newer")
    else:
        yield AREA.ok(f"Penstock {__version__}, Python {shown}")


def _sqlite() -> Iterator[CheckupFindingView]:
    text, number = sqlite_version()
    if number < OLDEST_SAFE_SQLITE:
        yield AREA.problem(
            f"SQLite {text} can corrupt databases with several writers",
            "install apsw with its bundled SQLite (the wheel from the package index)",
        )
    else:
        yield AREA.ok(f"SQLite {text}")


def _extras(settings: Settings | None) -> Iterator[CheckupFindingView]:
    needed = {} if settings is None else _needed(settings)
    absent = []
    for extra, packages in extras().items():
        missing = [name for name, _ in packages if _installed(name) is None]
        if missing and extra in needed:
            yield AREA.problem(
                f"{needed[extra]} needs {', '.join(missing)}", f"pip install 'penstock[{extra}]'"
            )
        elif missing:
            absent.append(extra)
        for name, least in packages:
            found = _installed(name)
            if found is not None and _is_older(found, least):
                yield AREA.warning(
                    f"{name} {found} is older than {least}, which `{extra}` needs",
                    f"pip install -U 'penstock[{extra}]'",
                )
    if absent:
        yield AREA.ok(
            f"extras that are not installed, and not needed by the store: {', '.join(absent)}"
        )


def extras() -> dict[str, list[tuple[str, str]]]:
    """The packages of each extra with the oldest version that will do, as they were installed with."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in metadata.requires("penstock") or ():
        match = _REQUIREMENT.fullmatch(line)
        if match is None or "python_version" in line:
            continue
        least = _LEAST.search(match["bounds"])
        found.setdefault(match["extra"], []).append((match["name"], least[1] if least else "0"))
    return found


def _needed(settings: Settings) -> dict[str, str]:
    """Those without which nothing works; what a source's connector needs is among the mistakes of it."""
    needed = {}
    if settings.is_on_postgres:
        needed["postgres"] = "store: postgresql://"
    if not isinstance(settings.snapshots, Path):
        needed["blob"] = "snapshots: in a bucket"
    if settings.tracing.endpoint:
        needed["otel"] = "tracing:"
    return needed


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_older(found: str, least: str) -> bool:
    return _numbers(found) < _numbers(least)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]
