"""Whether the jobs that pg_cron has are those that the script would make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.exporters.cron_script import VIEWS, Script
from penstock.store.cron_jobs import CronJobRow, CronJobs

State = Literal["missing", "changed", "gone"]
SECONDS_SINCE = (1, 5)
_HEAD = re.compile(r"/\* (?P<about>.*?) (?P<version>[0-9a-f]{8}) \*/ ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CronDifference:
    """A job that is not as the script would make it: what the script has, and what the database has.

    `gone` is a job whose schedule has left penstock.yaml.
    """

    job: str
    state: State
    wanted: str = ""
    found: str = ""


def differences(script: Script, known: CronJobs) -> list[CronDifference]:
    """What running the script would change."""
    rows = {row.name: row for row in known.rows}
    found = [
        each
        for job in script.jobs
        for each in _of_job(
            script,
            job.name,
            (job.schedule, job.command),
            rows.pop(script.name_of(job), None),
            known,
        )
    ]
    gone = [CronDifference(_bare(script, name), "gone") for name in sorted(rows)]
    return [*found, *gone]


def switched_off(script: Script, known: CronJobs) -> list[str]:
    """Jobs that an operator has switched off: the script leaves them so."""
    return [_bare(script, row.name) for row in known.rows if not row.is_active]


def versions_of(known: CronJobs) -> set[str]:
    """Of the scripts that made these jobs."""
    heads = (_HEAD.match(row.command) for row in known.rows)
    return {head["version"] for head in heads if head is not None}


def lacks_seconds(script: Script, known: CronJobs) -> bool:
    """Whether the script would be refused, because this pg_cron knows no seconds."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", known.version or "")[:2])
    return any(job.is_in_seconds for job in script.jobs) and numbers < SECONDS_SINCE


def _of_job(
    script: Script, name: str, wanted: tuple[str, str], row: CronJobRow | None, known: CronJobs
) -> Iterator[CronDifference]:
    schedule, command = wanted
    if row is None:
        yield CronDifference(name, "missing", schedule)
        return
    if row.schedule != schedule:
        yield CronDifference(name, "changed", schedule, row.schedule)
    does = _HEAD.sub("", row.command, count=1)
    should = command.replace(VIEWS, known.views or "")
    if does != should:
        yield CronDifference(name, "changed", should, does)


def _bare(script: Script, name: str) -> str:
    return name.removeprefix(script.prefix)
