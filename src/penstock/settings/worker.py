"""`worker:` what one worker may use at once."""

import os
import re
from typing import Annotated

import msgspec

from penstock.settings.declaration import Keys, Reads, Usual, about, between, names_of
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, read_names, texts_schema
from penstock.settings.section import text_of

_VARIABLE = re.compile(r"[A-Za-z0-9_*]{1,200}")


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_pass_env(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "names", _read_variable)
    return found


def _read_variable(entry: Entry, path: str) -> str:
    name = text_of(entry, path)
    if not _VARIABLE.fullmatch(name):
        raise entry.error(path, "needs names of variables such as MODEL_DIR or AWS_*")
    return name


class WorkerSettings(Keys, frozen=True):
    """What one worker may use at once, and how long it may take to finish when told to stop.

    `count` is how many such workers a host has.
    """

    count: Annotated[
        int, between(1, 1_000), about("worker processes per host; on SQLite always 1")
    ] = 1
    slots: Annotated[
        int, between(1, 100_000), about("attempts that one worker runs at the same time")
    ] = 1024
    threads: Annotated[
        int, between(1, 1_000), about("threads for steps that are plain functions")
    ] = 32
    processes: Annotated[
        int, between(0, 1_000), about('child processes for steps with `isolation="process"`')
    ] = 2
    cpu: Annotated[
        float,
        between(0.1, 10_000),
        about("CPU cores that steps may reserve together with `resources`"),
        Usual("the cores here"),
    ] = msgspec.field(default_factory=available_cores)
    memory_mb: Annotated[
        int,
        between(1, 100_000_000),
        about("memory in MB that steps may reserve together with `resources`"),
    ] = 1024
    grace_s: Annotated[
        Duration, about("how long running attempts may take to finish after SIGTERM")
    ] = msgspec.field(default=10.0, name="grace")
    pass_env: Annotated[
        tuple[str, ...],
        Reads(_read_pass_env, texts_schema),
        about(
            'environment variables that steps with `isolation="process"` can see, besides '
            "`PATH`, `HOME`, the locale and Python's own; names or patterns: `[MODEL_DIR, "
            '"AWS_*"]`'
        ),
        Usual("none"),
    ] = ()


WORKER_KEYS = names_of(WorkerSettings)
