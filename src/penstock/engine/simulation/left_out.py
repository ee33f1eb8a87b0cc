"""Left out: what a configuration has that the simulation does not do, each in a line that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.engine.simulation.assumptions import Coming, coming_to
from penstock.engine.simulation.figures import NotSimulated
from penstock.engine.simulation.hosts import hosts_of
from penstock.jobs.signals import wanted
from penstock.settings import ScheduleSettings, Settings, SourceSettings

# What is raised in a simulation as it is in earnest; of all other signals nothing is known.
SIMULATED_SIGNALS = frozenset(
    {
        "run.completed",
        "run.partial",
        "run.failed",
        "run.cancelled",
        "breaker.closed",
        "budget.reset",
        "source.degraded",
        "source.recovered",
        "schedule.missed",
        "sla.breached",
        "sla.restored",
    }
)


def unknown_signals(schedule: ScheduleSettings) -> list[str]:
    """The signals that a schedule waits for and that only come by assumption."""
    return [text for text in schedule.signals if wanted(text).name not in SIMULATED_SIGNALS]


def left_out(
    settings: Settings, coming_per_s: Mapping[tuple[str, Coming], float]
) -> Iterator[NotSimulated]:
    """Everything that is not simulated, in the order of the configuration."""
    for key, source in settings.sources.items():
        if all(schedule.kind == "manual" for schedule in source.schedules):
            yield NotSimulated(key, "", f"{key} is started by hand alone: not simulated")
        if source.schema_freshness_s is not None:
            yield NotSimulated(key, "", f"{key} promises a schema that is looked at: not simulated")
        for schedule in source.schedules:
            coming = coming_to(schedule)
            words = "" if coming is None else _words(source, schedule, coming)
            if words and (key, coming) not in coming_per_s:
                hint = f"--assume {key}.{coming}=3/d says how often"
                yield NotSimulated(key, schedule.name, f"{key} {words}; {hint}")
    yield from _hosts_left_out(settings)


def _hosts_left_out(settings: Settings) -> Iterator[NotSimulated]:
    asked = set()
    for key, source in settings.sources.items():
        first, *others = hosts_of(source, settings.hosts) or [""]
        asked.add(first)
        for host in others:
            asked.add(host)
            text = (
                f"{key} has addresses of {host}, too: not simulated, all of it is asked of {first}"
            )
            yield NotSimulated(key, "", text)
    for host in settings.hosts:
        if host not in asked:
            why = f"no source is named {host} or has an address of it in its params"
            yield NotSimulated("", "", f"the limits of {host} are not simulated: {why}")


def _words(source: SourceSettings, schedule: ScheduleSettings, coming: Coming) -> str:
    which = f" ({schedule.name})" if len(source.schedules) > 1 else ""
    if coming == "files" and schedule.watch is not None:
        return f"starts by files {schedule.watch.pattern}{which}: not simulated"
    if coming == "signals":
        names = ", ".join(unknown_signals(schedule))
        return f"starts by signal {names}{which}: not simulated" if names else ""
    return f"looks more often near moments that steps announce{which}: not simulated of new ones"
