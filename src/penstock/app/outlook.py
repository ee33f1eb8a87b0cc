"""Why not now: of one source, run or job by the next turn itself, of all sources from one look.

The gates are those of the claim (`gates/decide.py`), with what only the configuration knows: variables that
are not set, and the hours of schedules. Front ends print what they are told here, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from penstock.app.hours import outside
from penstock.app.views.outlook import Explanation, SourceOutlook, explanation_view, source_outlook
from penstock.errors import Remedy, UsageError
from penstock.gates.budget import used_up
from penstock.gates.capacity import Capacity
from penstock.gates.lane import Head, Lane, LaneLimits
from penstock.gates.project_terms import hours_of, rules_of
from penstock.outlook.outlook import (
    PRETENDED,
    Case,
    NextTurn,
    Outlook,
    SourceFacts,
    outlook_of,
    stops_of,
)
from penstock.outlook.seen_gates import (
    GateSeen,
    LaneFacts,
    hours_gates,
    places_gates,
    wants_a_person,
)
from penstock.project import Project
from penstock.settings import normalise_source
from penstock.settings.opening_hours import hosts_outside
from penstock.store.budgets import account_of
from penstock.store.rows import BudgetRow

__all__ = ["explain", "for_a_person", "host_hours", "outlook"]


def explain(project: Project, source: str | None, run: int | None, job: int | None) -> Explanation:
    """Take the next turn for it, undo that, and say what stood in the way."""
    if source is None and run is None and job is None:
        raise UsageError("explain what? A source, a run or a job", code="bad_parameter")
    found = project.connection.explanation.explain(
        project.limits(),
        _whole(project),
        source=project.source_key(source),
        run_id=run,
        job_id=job,
        hours=hours_of(project.settings),
    )
    told = _with_variables(_unset(project, found), _within_hours(project, found))
    return explanation_view(told, _at_the_request(project, found))


def outlook(project: Project, sources: Sequence[str] | None) -> list[SourceOutlook]:
    """How every source stands, or these; read at one moment, with no lock."""
    store, settings = project.connection, project.settings
    limits = project.limits_by_key()
    wanted = None if sources is None else {normalise_source(name): name for name in sources}
    keys = None if wanted is None else list(wanted)
    found = store.outlooks.of_sources(limits, _whole(project), keys, hours_of(settings))
    known = {each.source: each for each in found}
    new = [key for key in limits if key not in known and (keys is None or key in keys)]
    if new:
        now = store.now()
        known |= {key: _new_source(key, limits[key], now) for key in new}
    for key, name in (wanted or {}).items():
        if key not in known:
            project.source_key(name)  # says that there is none
    exhausted = store.budgets.exhausted()
    return [_of_source(project, known[key], exhausted) for key in sorted(known)]


def for_a_person(explanation: Explanation) -> list[str]:
    """The commands that a person has to give before it starts, each once."""
    found = wants_a_person(explanation.gates)
    return list(dict.fromkeys(each.command for each in found if each.command))


def host_hours(project: Project, now: float) -> dict[str, float]:
    """The hosts that may not be asked at this hour, and when they may."""
    return hosts_outside(hours_of(project.settings), now)


def _new_source(key: str, limits: LaneLimits, now: float) -> Outlook:
    """Of a source that is new in the file, and that nobody has worked on yet."""
    lane = Lane(0, (Head(PRETENDED, "pretended", "page", 1),), limits)
    source = SourceFacts(0, LaneFacts(key))
    found = outlook_of(Case(source), lane, NextTurn(now, 1, [("", Capacity(1))]))
    return msgspec.structs.replace(found, stops=stops_of(source, lane, now))


def _whole(project: Project) -> Capacity:
    """What a worker can take on when nothing runs in it."""
    worker = project.settings.worker
    return Capacity(worker.slots, worker.cpu, float(worker.memory_mb))


def _of_source(project: Project, found: Outlook, exhausted: Sequence[BudgetRow]) -> SourceOutlook:
    """What lacks a variable is told first, and budgets, which are asked at the request, last."""
    unset = _unset(project, found)
    told = _with_variables(unset, _within_hours(project, found))
    stops = [*([unset] if unset is not None else []), *found.stops]
    if exhausted:
        stops += _budget_gates(exhausted, ("project", f"source:{found.source}"))
    return source_outlook(told, found.source in project.settings.sources, stops)


def _within_hours(project: Project, found: Outlook) -> Outlook:
    """A tick outside its schedule's hours starts nothing: the next run is not before they begin."""
    source = project.settings.sources.get(found.source)
    if source is None or found.stands != "idle" or found.opens_at is None:
        return found
    begin_at = outside(source.schedules, found.opens_at)
    return found if begin_at is None else msgspec.structs.replace(found, opens_at=begin_at)


def _unset(project: Project, found: Outlook) -> GateSeen | None:
    """No worker loads a source that lacks a variable."""
    source = project.settings.sources.get(found.source)
    own = () if source is None else source.unset
    if not (own or project.settings.unset):
        return None
    unset = (*project.settings.needed_to_work(), *own)
    if not unset:
        return None
    name = unset[0].name
    advice = f"set {name}, in the environment or in .env"
    return GateSeen("variables", False, f"{name} is not set", advice=advice)


def _with_variables(gate: GateSeen | None, found: Outlook) -> Outlook:
    if gate is None or found.stands in ("running", "ended"):
        return found
    return msgspec.structs.replace(
        found,
        would_start=False,
        stands="person",
        gate=gate.name,
        opens_at=None,
        gates=[gate, *found.gates],
    )


def _at_the_request(project: Project, found: Outlook) -> list[GateSeen]:
    """What would hold back a request once the job runs; the claim does not ask for it."""
    store = project.connection
    told = hours_gates(hours_of(project.settings), found.now)
    told += [
        GateSeen("host", False, f"{host} asked us to wait", None, closed_until)
        for host, closed_until in store.hosts.closed().items()
    ]
    told += [
        GateSeen(
            "host",
            False,
            f"the breaker of {row.name} is {row.state}: {row.reason}",
            row.since,
            row.opens_at if row.state == "open" else None,
            Remedy("breakers.close", row.key),
        )
        for row in store.breakers.all()
        if row.kind == "host" and row.state != "closed"
    ]
    told += places_gates(rules_of(project.settings).hosts.values(), store.hosts.held())
    scopes = ("", "project", f"source:{found.source}", f"run:{found.run_id}")
    return told + list(_budget_gates(store.budgets.exhausted(), scopes))


def _budget_gates(exhausted: Iterable[BudgetRow], scopes: Sequence[str]) -> Iterator[GateSeen]:
    for budget in exhausted:
        if budget.scope in scopes:
            by = used_up(account_of(budget).bound)
            yield GateSeen("budget", False, by, None, budget.resets_at, Remedy("budgets.list"))
