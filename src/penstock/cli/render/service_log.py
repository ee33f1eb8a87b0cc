"""The log of a service: what `up`, `worker` and `scheduler` say while they work, for people or programs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.cli.render.output import Output
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.progress import ActivityView, RunReport

FORMATS = ("text", "json")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="only print problems with workers and the database",
    )
    add_log_format(parser)


def add_log_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        metavar="FORMAT",
        help="text, or json: one object per line on stderr (log.format of penstock.yaml)",
    )


def choose_format(project: Project, args: argparse.Namespace) -> None:
    """From here on stderr is written as the command line says, else as penstock.yaml does.

    Only commands that take `--log-format` have a log; what others print beside their answer is for people.
    """
    if "log_format" in args:
        said: str = args.log_format or project.settings.log.format
        args.out.logs_json = said == "json"


class ServiceLog:
    """Each line with its time; with `json`, an object with at, level, event, message and what it is about."""

    def __init__(self, out: Output, args: argparse.Namespace) -> None:
        self._out = out
        self._is_quiet = args.quiet

    def tell(self, text: str) -> None:
        """What the supervisor says, and what workers and their steps print."""
        self._out.note(text)

    def line(self, line: ActivityView) -> None:
        if self._is_quiet:
            return
        if self._out.logs_json:
            self._out.log(line.event, line.text, line.level, **line.about)
        else:
            self._out.note(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line.text}")

    def last(self, ended: Mapping[str, int]) -> None:
        """The last line of `up --until-idle`: what has ended meanwhile."""
        states = ", ".join(f"{number} {state}" for state, number in ended.items())
        words = f"idle: {count(sum(ended.values()), 'run')} ended" + (
            f" ({states})" if states else ""
        )
        if self._out.logs_json:
            self._out.log("idle", words, ended=dict(ended))
        else:
            self._out.note(words)


class RunLog:
    """How runs in the foreground go, for a log that a program reads: a line when one changes its state."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._told: dict[int, str] = {}

    def show(self, reports: list[RunReport]) -> None:
        for each in reports:
            if self._told.get(each.run) == each.state:
                continue
            self._told[each.run] = each.state
            level = "warning" if each.state in ("partial", "failed", "cancelled") else "info"
            about = {"source": each.source, "run": each.run, "kind": each.kind}
            counts = {**each.counts, "seconds": round(each.seconds, 1)}
            text = f"run {each.run} of {each.source} is {each.state}"
            self._out.log(f"run.{each.state}", text, level, **about, **counts)
