"""A crontab: a line for each schedule, for a host without a scheduler of its own.

Cron has one time zone, the host's. Not every cron knows CRON_TZ, and one that does not would start
everything at wrong times without a word: so no line relies on it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from penstock.exporters.fields import Fields, cron_text, shifted
from penstock.exporters.moments import is_steady, moments_of, offsets_min
from penstock.exporters.starts import (
    Export,
    Inexpressible,
    Place,
    Start,
    is_one_line,
    not_carried_over,
    run_words,
)

FILE = "crontab"
# Vixie cron refuses commands of a thousand characters, and with them the whole table.
LONGEST_COMMAND = 990


def crontab(starts: Sequence[Start], place: Place, timezone: str = "UTC") -> Export:
    """The table for a host whose clock is in this zone; with a user, as /etc/cron.d wants it."""
    lines, left_out, otherwise = _head(place, timezone), [], []
    for start in starts:
        lines.append("")
        try:
            written = _lines(start, place, timezone)
        except Inexpressible as error:
            left_out.append(f"{start.title}: cron {error}")
            lines.append(f"# left out: {_comment(left_out[-1])}")
            continue
        lines.append(f"# {_comment(start.title)}")
        if dropped := not_carried_over(start.settings):
            otherwise.append(f"{start.title}: cron has no {', '.join(dropped)}; it starts without")
            lines.append(f"# {_comment(otherwise[-1])}")
        lines += written
    return Export({FILE: "\n".join(lines) + "\n"}, tuple(left_out), tuple(otherwise))


def _head(place: Place, timezone: str) -> list[str]:
    head = [
        f"# The schedules of {_comment(place.project)}, made by `penstock export crontab`.",
        f"# The times are those of a host whose clock is in {timezone}.",
        "# What cron misses while the host is off it does not make up for. `penstock up` starts these",
        "# schedules, too, unless penstock.yaml says `timers: external`.",
    ]
    if place.secrets:
        head.append(
            f"# {_comment(place.env_file)} must set, for its owner only: {' '.join(place.secrets)}"
        )
    return head


def _lines(start: Start, place: Place, timezone: str) -> list[str]:
    fields, zone = moments_of(start)
    times = [cron_text(each) for one in fields for each in _by(one, zone, timezone)]
    command = _command(start, place)
    user = f"{place.user} " if place.user else ""
    return [f"{each} {user}{command}" for each in times]


def _by(fields: Fields, zone: str, host: str) -> tuple[Fields, ...]:
    """The same moments by the host's clock."""
    if zone == host:
        return (fields,)
    is_same_hour = {each % 60 for each in offsets_min(host)} == {0}
    if zone == "UTC" and fields.is_interval and fields.is_on_every_day and is_same_hour:
        return (fields,)
    if not (is_steady(zone) and is_steady(host)):
        raise Inexpressible(
            f"has one time zone, here {host}, and the clocks of it and {zone} are not always as far apart; "
            f"use `penstock export systemd`, or --timezone {zone} for a host with that clock"
        )
    [ahead], [host_ahead] = offsets_min(zone), offsets_min(host)
    return shifted(fields, host_ahead - ahead)


def _command(start: Start, place: Place) -> str:
    words = run_words(place, start.source, start.settings.run_kind)
    command = shlex.join(words)
    if place.secrets:
        command = f"set -a; . {shlex.quote(place.env_file)}; set +a; {command}"
    if not is_one_line(command) or "\\" in command:
        raise Inexpressible("has no way to write its name or folder that all crons agree on")
    # A bare percent sign ends the command, within quotes, too.
    command = command.replace("%", "\\%")
    if len(command) > LONGEST_COMMAND:
        raise Inexpressible(f"takes no command of more than {LONGEST_COMMAND} characters")
    return command


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
