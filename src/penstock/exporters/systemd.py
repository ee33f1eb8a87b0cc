"""systemd: a service and a timer for each schedule."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from penstock.exporters.fields import calendar_texts
from penstock.exporters.moments import interval_of, moments_of, unread
from penstock.exporters.starts import (
    Export,
    Inexpressible,
    Place,
    Start,
    not_carried_over,
    refuse_what_waits,
    run_words,
)
from penstock.exporters.units import described, service

# So many moments around the changes of clocks are written out one by one, for so many years.
MOST_EXTRA, YEARS = 120, 10
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
GRACE_S = 90
SERVICE_HEAD = """\
# Made by `penstock export systemd`. `penstock up` starts these schedules, too, unless penstock.yaml says
# `timers: external`.
"""
TIMER = """\
# Made by `penstock export systemd`.
{notes}[Unit]
Description={title}

[Timer]
{when}AccuracySec=1s
{delay}Unit={service}

[Install]
WantedBy=timers.target
"""


def systemd(starts: Sequence[Start], place: Place, year: int) -> Export:
    """The units; changes of clocks that systemd would miss are written out from this year on."""
    files: dict[str, str] = {}
    left_out: list[str] = []
    otherwise: list[str] = []
    for start in starts:
        try:
            when, remarks = _when(start, year)
            unit = _service(start, place)
        except Inexpressible as error:
            left_out.append(f"{start.title}: systemd {error}")
            continue
        if dropped := not_carried_over(start.settings, has_jitter=True):
            remarks.append(f"systemd has no {', '.join(dropped)}; it starts without")
        otherwise += [f"{start.title}: {each}" for each in remarks]
        name = unit_name(place.project, start)
        files[f"{name}.service"] = unit
        files[f"{name}.timer"] = TIMER.format(
            title=described(_title(start)),
            notes="".join(f"# {each}\n" for each in remarks),
            when="".join(f"{line}\n" for line in when),
            delay=_delay(start),
            service=f"{name}.service",
        )
    return Export(files, tuple(left_out), tuple(otherwise))


def unit_name(project: str, start: Start) -> str:
    """A name that says what it is, and is no other schedule's whatever the source is called."""
    whole = f"{project}\0{start.source}\0{start.settings.name}"
    digest = hashlib.blake2b(whole.encode(), digest_size=4).hexdigest()
    said = [_UNSAFE.sub("_", each)[:60] for each in (project, start.source, start.settings.name)]
    return "-".join(["penstock", *said, digest])


def _when(start: Start, year: int) -> tuple[list[str], list[str]]:
    """The lines that say when, and what must be said beside them."""
    refuse_what_waits(start.settings)
    try:
        fields, zone = moments_of(start)
    except Inexpressible:
        return _by_interval(start)
    lines = [f"OnCalendar={text}" for each in fields for text in calendar_texts(each, zone)]
    remarks = []
    if start.settings.cron is not None and zone != "UTC":
        extra = unread(start.settings.cron, zone, year, YEARS)
        if len(extra) > MOST_EXTRA:
            remarks.append(
                f"systemd leaves out some starts on days when the clocks of {zone} change"
            )
        else:
            lines += [
                f"OnCalendar={datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
                for at in extra
            ]
    persistent = "no" if start.settings.missed == "skip" else "yes"
    return [*lines, f"Persistent={persistent}"], remarks


def _by_interval(start: Start) -> tuple[list[str], list[str]]:
    """Counted from when the timer was started: a week has no whole number of them."""
    every_s, _ = interval_of(start)
    every = f"{every_s:g}s"
    remarks = []
    if start.settings.missed != "skip":
        remarks.append("systemd counts it from its own start, and starts nothing that was missed")
    return [f"OnActiveSec={every}", f"OnUnitActiveSec={every}"], remarks


def _service(start: Start, place: Place) -> str:
    words = run_words(place, start.source, start.settings.run_kind)
    return SERVICE_HEAD + service(place, _title(start), words, GRACE_S, "oneshot")


def _delay(start: Start) -> str:
    jitter_s = start.settings.jitter_s
    return f"RandomizedDelaySec={jitter_s:g}s\n" if jitter_s else ""


def _title(start: Start) -> str:
    return f"Penstock: {start.title}"
