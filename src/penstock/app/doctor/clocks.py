"""Clocks and time zones: the database's time decides what is due, this machine's must not be far from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from penstock.app.doctor.findings import Area
from penstock.app.project import Project
from penstock.app.views.doctor import CheckupFindingView
from penstock.errors import PenstockError
from penstock.settings import Settings

CLOCK = Area("clock")
ZONES = Area("time zones")
SET_IT = "let NTP set the clock of this machine: timedatectl set-ntp true"
# Of no consequence for leases, which the database's clock decides; of some for what people read.
SKEW_S = 2.0
AHEAD_S = 5.0
# What the two clocks of a machine may drift apart while a checkup lasts.
STEP_S = 1.0
# Before this release.
BEGINNING = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
OLD_YEARS = 2


def look(project: Project | None, began: tuple[float, float]) -> Iterator[CheckupFindingView]:
    """The wall clock against the database's, the newest event, and the clock that never steps."""
    if time.time() < BEGINNING:
        yield CLOCK.problem(f"this machine believes it is {datetime.now(UTC):%Y-%m-%d}", SET_IT)
    if project is not None and _has_database(project):
        try:
            yield from _against_database(project)
            yield from _against_journal(project)
        except PenstockError:
            yield CLOCK.skipped("the database can't be asked for its time")
    wall_s, steady_s = time.time() - began[0], time.monotonic() - began[1]
    if abs(wall_s - steady_s) > STEP_S:
        yield CLOCK.warning(
            f"this machine's clock was set while this checkup ran, by {wall_s - steady_s:+.1f} s",
            SET_IT,
        )
    else:
        yield CLOCK.ok("the monotonic clock and the wall clock run alike")


def zones(settings: Settings) -> Iterator[CheckupFindingView]:
    """Whether each zone of a schedule is known, and how old the rules are."""
    used = {s.timezone for source in settings.sources.values() for s in source.schedules}
    for name in sorted(used):
        try:
            ZoneInfo(name)
        except (OSError, ValueError):
            yield ZONES.problem(f"the time zone {name} is not known here", "pip install tzdata")
    version, origin = _rules()
    words = f"rules of {version or 'an unknown release'} from {origin}"
    if version[:4].isdecimal() and int(version[:4]) < datetime.now(UTC).year - OLD_YEARS:
        remedy = "upgrade the system's tzdata" if origin != "tzdata" else "pip install -U tzdata"
        yield ZONES.warning(f"{words} may be out of date", remedy)
    else:
        yield ZONES.ok(words)


def _has_database(project: Project) -> bool:
    settings = project.settings
    return settings.is_on_postgres or settings.store_file.exists()


def _against_database(project: Project) -> Iterator[CheckupFindingView]:
    project.connection.now()  # the first one waits for the connection
    before = time.time()
    theirs = project.connection.now()
    after = time.time()
    skew, width = theirs - (before + after) / 2, (after - before) / 2
    if abs(skew) > SKEW_S + width:
        where = "ahead of" if skew < 0 else "behind"
        yield CLOCK.warning(
            f"this machine's clock is {abs(skew):,.1f} s {where} the database's, which decides what is due",
            SET_IT,
        )
    else:
        yield CLOCK.ok(
            f"{abs(skew) * 1000:,.0f} ms (± {width * 1000:.0f}) from the database's clock"
        )


def _against_journal(project: Project) -> Iterator[CheckupFindingView]:
    newest = project.connection.journal.events(limit=1)
    now = project.connection.now()
    if newest and newest[-1].at > now + AHEAD_S:
        yield CLOCK.problem(
            f"the newest event lies {newest[-1].at - now:,.0f} s in the future: the clock was set back",
            SET_IT,
        )


def _rules() -> tuple[str, str]:
    """The release of the rules that Python uses: the system's before the package's."""
    for folder in map(Path, TZPATH):
        if not (folder / "UTC").exists():
            continue
        for name in ("tzdata.zi", "+VERSION"):
            try:
                first = (folder / name).read_text("utf-8", "replace")[:100].partition("\n")[0]
            except OSError:
                continue
            return first.removeprefix("# version ").strip(), str(folder)
        return "", str(folder)
    return metadata.version("tzdata"), "tzdata"
