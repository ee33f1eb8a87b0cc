"""The log of a service: what `up`, `worker` and `scheduler` say while they work, for people or programs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.render.output import Output
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.progress import ActivityView

FORMATS = ("text", "json")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="only print problems with workers and the database",
    )
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help="text (default), or json: one object per line",
    )


class ServiceLog:
    """Each line with its time; with `json`, an object with at, level, event, message and what it is about."""

    def __init__(self, out: Output, args: argparse.Namespace) -> None:
        self._out = out
        self._is_json = args.log_format == "json"
        self._is_quiet = args.quiet

    def tell(self, text: str) -> None:
        """What the supervisor says, and what workers and their steps print."""
        if self._is_json:
            self._object("message", text, "info", {})
        else:
            self._out.note(text)

    def line(self, line: ActivityView) -> None:
        if self._is_quiet:
            return
        if self._is_json:
            self._object(line.event, line.text, line.level, line.about)
        else:
            self._out.note(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line.text}")

    def last(self, ended: Mapping[str, int]) -> None:
        """The last line of `up --until-idle`: what has ended meanwhile."""
        states = ", ".join(f"{number} {state}" for state, number in ended.items())
        words = f"idle: {count(sum(ended.values()), 'run')} ended" + (
            f" ({states})" if states else ""
        )
        if self._is_json:
            self._object("idle", words, "info", {"ended": dict(ended)})
        else:
            self._out.note(words)

    def _object(self, event: str, message: str, level: str, about: Mapping[str, Any]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        said = {"at": at, "level": level, "event": event, "message": self._out.tidy(message)}
        self._out.stderr.write(self._out.as_json(said | dict(about)) + "\n")
        self._out.stderr.flush()
