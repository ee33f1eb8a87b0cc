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
    is_one_line,
    not_carried_over,
    refuse_what_waits,
    run_words,
)

# So many moments around the changes of clocks are written out one by one, for so many years.
MOST_EXTRA, YEARS = 120, 10
TMP = ("/tmp/", "/var/tmp/")  # noqa: S108
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
SERVICE = """\
# Made by `penstock export systemd`. `penstock up` starts these schedules, too, unless penstock.yaml says
# `timers: external`.
[Unit]
Description={title}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
User={user}
{environment}ExecStart=/usr/bin/env {command}
KillMode=mixed
TimeoutStopSec=90
UMask=0077
NoNewPrivileges=yes
PrivateTmp={private_tmp}
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={folders}
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
LockPersonality=yes
CapabilityBoundingSet=
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
            service = _service(start, place)
        except Inexpressible as error:
            left_out.append(f"{start.title}: systemd {error}")
            continue
        if dropped := not_carried_over(start.settings, has_jitter=True):
            remarks.append(f"systemd has no {', '.join(dropped)}; it starts without")
        otherwise += [f"{start.title}: {each}" for each in remarks]
        name = unit_name(place.project, start)
        files[f"{name}.service"] = service
        files[f"{name}.timer"] = TIMER.format(
            title=_title(start),
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
    places = tuple(dict.fromkeys((place.folder, *place.writes)))
    for text in (*places, place.env_file, *place.command):
        if not is_one_line(text) or text.endswith("\\"):
            raise Inexpressible(f"has no way to write {text!r}")
    words = run_words(place, start.source, start.settings.run_kind)
    environment = ""
    if place.secrets:
        names = " ".join(place.secrets)
        environment = f"# Must set, readable for its owner only: {names}\n"
        environment += f"EnvironmentFile={value(place.env_file)}\n"
    return SERVICE.format(
        title=_title(start),
        user=place.user,
        environment=environment,
        command=" ".join(word(each).replace("$", "$$") for each in words),
        folders=" ".join(word(each) for each in places),
        # Its own /tmp would hide a project that stands there.
        private_tmp="no" if any(each.startswith(TMP) for each in places) else "yes",
    )


def _delay(start: Start) -> str:
    jitter_s = start.settings.jitter_s
    return f"RandomizedDelaySec={jitter_s:g}s\n" if jitter_s else ""


def word(text: str) -> str:
    """One word of a list of them, whatever is in it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value(quoted)}"'


def _title(start: Start) -> str:
    # A backslash at its end would join it to the line after it.
    return value(f"Penstock: {start.title}".replace("\\", "?"))


def value(text: str) -> str:
    return text.replace("%", "%%")
