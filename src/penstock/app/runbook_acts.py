"""The acts of runbooks: each verb with its dry run, in words and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from penstock.app.moments import length
from penstock.app.run_comparison import is_undone
from penstock.app.views.quarantine import EntryFilter
from penstock.app.views.rejects import RejectFilter
from penstock.counting import count
from penstock.errors import Refused, Remedy

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

# How many records of a difference are shown before it is committed.
SHOWN = 5
# How many of the newest runs are looked through.
RUNS_SEEN = 20


class By(TypedDict):
    """Who acts, and why: what every verb takes."""

    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Call:
    """What an act is asked to do: for which source, on what, as whom and why."""

    project: Nouns
    source: str | None
    value: Any
    options: Mapping[str, str]
    actor: str
    reason: str

    @property
    def by(self) -> By:
        return {"actor": self.actor, "reason": self.reason}

    @property
    def name(self) -> str:
        """Who is meant, for people."""
        return self.source or "the project"

    def required_source(self) -> str:
        if self.source is None:
            raise Refused("this step is about one source; name it", code="no_target")
        return self.source

    @property
    def entries(self) -> EntryFilter:
        return EntryFilter(source=self.source, kind=self.options.get("kind"))


@dataclass(frozen=True, slots=True)
class Came:
    """What an act would do or did. `run_id` is a run that now has to be worked on; `undo` takes it back."""

    text: str
    figures: dict[str, Any] = field(default_factory=dict)
    run_id: int | None = None
    undo: Remedy | None = None
    # What later steps read as a signal.
    findings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Act:
    preview: Callable[[Call], Came]
    perform: Callable[[Call], Came]


def _lane(call: Call) -> tuple[int, int]:
    """How many jobs wait and run: of the source, or of all."""
    found = call.project.overview()
    if call.source is None:
        return found.queued + found.waiting, found.running
    state = call.project.sources.state(call.source)
    return state.queued + state.waiting, state.running


def _would_stop(call: Call) -> Came:
    waiting, running = _lane(call)
    text = f"{call.name}: {count(waiting, 'job')} would wait, {count(running, 'running job')} would finish"
    return Came(text, {"waiting": waiting, "running": running})


def _would_start(call: Call) -> Came:
    waiting, _ = _lane(call)
    return Came(f"{call.name}: {count(waiting, 'waiting job')} could start", {"waiting": waiting})


def _pause(call: Call) -> Came:
    source = call.required_source()
    is_new = call.project.sources.pause(source, **call.by)
    text = f"{source} is paused" if is_new else f"{source} was paused already"
    return Came(text, undo=Remedy("sources.resume", source))


def _resume(call: Call) -> Came:
    source = call.required_source()
    is_new = call.project.sources.resume(source, **call.by)
    text = f"{source} continues" if is_new else f"{source} was not paused"
    return Came(text, undo=Remedy("sources.pause", source))


def _hold(call: Call) -> Came:
    is_new = call.project.sources.hold(call.source, **call.by)
    text = f"{call.name} is held" if is_new else f"{call.name} was held already"
    return Came(text, undo=Remedy("sources.unhold", call.source))


def _unhold(call: Call) -> Came:
    is_new = call.project.sources.unhold(call.source, **call.by)
    text = f"{call.name} is no longer held" if is_new else f"{call.name} was not held"
    return Came(text, undo=Remedy("sources.hold", call.source))


def _would_open(call: Call) -> Came:
    waiting, running = _lane(call)
    text = (
        f"no requests to {call.required_source()} for {call.options['for']}: {count(waiting, 'job')} would"
        f" wait, {count(running, 'running job')} would finish, replays would run"
    )
    return Came(text, {"waiting": waiting, "running": running})


def _open(call: Call) -> Came:
    source = call.required_source()
    call.project.breakers.open(source, length("for", call.options["for"]), **call.by)
    text = f"the breaker of {source} is open for {call.options['for']}"
    return Came(text, undo=Remedy("breakers.close", source))


def _close(call: Call) -> Came:
    source = call.required_source()
    is_new = call.project.breakers.close(source, **call.by)
    text = f"the breaker of {source} is closed" if is_new else f"the breaker of {source} was closed"
    return Came(text)


def _would_cancel(call: Call) -> Came:
    run = call.project.runs.get(call.value)
    text = f"run {run.id} of {run.source} is {run.state}; {count(run.open_jobs, 'job')} would be cancelled"
    return Came(text, {"run": run.id, "jobs": run.open_jobs})


def _cancel(call: Call) -> Came:
    jobs = sum(call.project.runs.cancel(call.value, **call.by))
    text = f"run {call.value} is cancelled, with {count(jobs, 'job')}"
    return Came(
        text, {"run": call.value, "jobs": jobs}, undo=Remedy("runs.continue_from", call.value)
    )


def _usual_kind(call: Call) -> str:
    """As the newest run that its schedule could have started: only like is compared with like."""
    newest = call.project.runs.list(call.required_source(), limit=RUNS_SEEN).items
    return next((each.kind for each in newest if each.kind in ("full", "incremental")), "full")


def _would_run(call: Call) -> Came:
    kind = _usual_kind(call)
    call.project.runs.start(call.required_source(), kind, dry_run=True)
    return Came(f"a run of {call.source} would be queued; its kind is {kind}")


def _run(call: Call) -> Came:
    begun = call.project.runs.start(call.required_source(), _usual_kind(call), **call.by)
    return _queued(begun.run.id if begun.run else None, f"a run of {call.source}")


def _would_probe(call: Call) -> Came:
    return Came(f"one item of {call.required_source()} would pass through the whole pipeline")


def _probe(call: Call) -> Came:
    begun = call.project.runs.probe(call.required_source(), **call.by)
    return _queued(begun.run.id if begun.run else None, f"a probe of {call.source}")


def _queued(run_id: int | None, what: str) -> Came:
    undo = None if run_id is None else Remedy("runs.cancel", run_id)
    return Came(f"{what} is queued: run {run_id}", {"run": run_id}, run_id=run_id, undo=undo)


def _undone(call: Call, is_dry: bool) -> Came:
    """Every run since the first bad one that wrote something, the newest first."""
    newest = call.project.runs.list(call.required_source(), limit=RUNS_SEEN).items
    wrote = [each for each in newest if each.counts["inserted"] + each.counts["updated"]]
    bad = [
        each.id
        for each in wrote
        if each.id >= call.value and each.is_ended and not is_undone(call.project, each.id)
    ]
    views = [call.project.runs.undo(run, limit=SHOWN, dry_run=is_dry, **call.by) for run in bad]
    which = ", ".join(str(run) for run in bad)
    back, removed = (
        sum(getattr(view, name) for view in views) for name in ("brought_back", "removed")
    )
    left = sum(view.changed_later for view in views)
    text = (
        f"runs {which}: {count(back, 'record')} {'would get' if is_dry else 'got'} earlier values,"
        f" {removed:,} {'would be' if is_dry else 'were'} removed, {left:,} that others changed later stay"
    )
    made = [view.undone_by for view in views if view.undone_by is not None]
    undo = Remedy("runs.undo", made[0]) if made else None
    return Came(text, {"runs": [view.as_json() for view in views]}, undo=undo)


def _replayed(call: Call) -> dict[str, Any]:
    """One run, or everything since the first of several bad ones."""
    run = call.project.runs.get(call.value)
    newest = call.project.runs.list(call.required_source(), limit=RUNS_SEEN).items
    later = [
        each for each in newest if each.id > run.id and each.kind == run.kind and each.is_ended
    ]
    if later and run.started_at is not None:
        return {"source": run.source, "since": run.started_at}
    return {"run": run.id}


def _would_replay(call: Call) -> Came:
    pages = call.project.replays.pages(**_replayed(call))
    text = f"{count(pages.pages, 'stored page')} would pass through today's pipeline, nothing is fetched"
    return Came(
        text + (f"; {pages.missing:,} are no longer kept" if pages.missing else ""), pages.as_json()
    )


def _replay(call: Call) -> Came:
    begun = call.project.replays.start(**_replayed(call), **call.by)
    return _queued(begun.run.id, "a replay")


def _would_commit(call: Call) -> Came:
    diff = call.project.replays.diff(call.value, limit=SHOWN)
    totals, rejects = diff.totals, diff.rejected
    text = (
        f"replay {call.value}: {totals.added:,} added, {totals.changed:,} changed, {totals.removed:,}"
        f" removed, {totals.same:,} the same; it rejects {rejects.now:,}, before {rejects.before:,}"
    )
    return Came(text, diff.as_json())


def _commit(call: Call) -> Came:
    done = call.project.replays.commit(call.value, **call.by)
    written = f"{done.added:,} added, {done.changed:,} changed, {done.removed:,} removed"
    text = f"replay {call.value} is committed: {written}"
    return Came(text, done.as_json(), undo=Remedy("runs.undo", call.value))


def _would_drop(call: Call) -> Came:
    return Came(
        f"the staged changes of replay {call.value} would be discarded", {"run": call.value}
    )


def _drop(call: Call) -> Came:
    records = call.project.replays.drop(call.value, **call.by)
    return Came(f"replay {call.value} is dropped: {count(records, 'staged record')}")


def _rewind(call: Call, is_dry: bool) -> Came:
    """Every checkpoint that was moved after the last good run, back to where that had left it."""
    source, last_good = call.required_source(), call.value
    moved = [each for each in call.project.checkpoints.each(source) if each.run_id > last_good]
    views = [
        call.project.checkpoints.rewind(
            source, each.partition, to_run=last_good, dry_run=is_dry, **call.by
        )
        for each in moved
    ]
    would = "would go" if is_dry else "went"
    text = (
        f"{count(len(views), 'checkpoint')} {would} back to run {last_good};"
        f" {count(sum(view.units for view in views), 'unit')} will be fetched again"
    )
    return Came(text, {"partitions": [view.as_json() for view in views]})


def _would_release(call: Call) -> Came:
    seen = call.project.quarantine.release(
        call.entries, everything=call.entries.is_all, dry_run=True
    )
    return Came(f"{count(seen.jobs, 'job')} would run again, with all tries", seen.as_json())


def _release(call: Call) -> Came:
    seen = call.project.quarantine.release(call.entries, everything=call.entries.is_all, **call.by)
    return Came(f"{count(seen.released, 'job')} released", seen.as_json())


def _would_discard(call: Call) -> Came:
    seen = call.project.quarantine.discard(
        call.entries, everything=call.entries.is_all, dry_run=True
    )
    return Came(f"{count(seen.jobs, 'job')} would be cancelled for good", seen.as_json())


def _discard(call: Call) -> Came:
    seen = call.project.quarantine.discard(call.entries, everything=call.entries.is_all, **call.by)
    return Came(f"{count(seen.discarded, 'job')} discarded", seen.as_json())


def _redrive(call: Call, is_dry: bool) -> Came:
    wanted = RejectFilter(source=call.required_source())
    seen = call.project.rejects.redrive(wanted, dry_run=is_dry, **call.by)
    if is_dry:
        return Came(
            f"{count(seen.rejects, 'reject')} would pass through today's pipeline", seen.as_json()
        )
    return _queued(seen.run_id, f"a run of {count(seen.rejects, 'reject')}")


def _would_check(call: Call) -> Came:
    size = call.project.store.view()
    return Came(
        f"{size.store} would be read, {size.bytes // 2**20:,} MiB; nothing is changed",
        size.as_json(),
    )


def _check(call: Call) -> Came:
    found = call.project.store.check(reads_pages=False)
    is_sound = not found.problems
    text = "the database is sound" if is_sound else f"damaged: {'; '.join(found.problems[:SHOWN])}"
    return Came(text, found.as_json(), findings={"store_sound": is_sound})


def _given_up(call: Call) -> list[int]:
    found = call.project.hooks.each(undelivered=True, limit=500)
    return [each.id for each in found if each.state == "given up"]


def _would_redeliver(call: Call) -> Came:
    found = _given_up(call)
    return Came(
        f"{count(len(found), 'delivery', 'deliveries')} would be sent again", {"deliveries": found}
    )


def _redeliver(call: Call) -> Came:
    sent = [each for each in _given_up(call) if call.project.hooks.redeliver(each, **call.by)]
    return Came(f"{count(len(sent), 'delivery', 'deliveries')} due again", {"deliveries": sent})


ACTS: dict[str, Act] = {
    "breakers.close": Act(_would_start, _close),
    "breakers.open": Act(_would_open, _open),
    "checkpoints.rewind": Act(lambda call: _rewind(call, True), lambda call: _rewind(call, False)),
    "hooks.redeliver": Act(_would_redeliver, _redeliver),
    "quarantine.discard": Act(_would_discard, _discard),
    "quarantine.release": Act(_would_release, _release),
    "rejects.redrive": Act(lambda call: _redrive(call, True), lambda call: _redrive(call, False)),
    "replays.commit": Act(_would_commit, _commit),
    "replays.drop": Act(_would_drop, _drop),
    "replays.start": Act(_would_replay, _replay),
    "runs.cancel": Act(_would_cancel, _cancel),
    "runs.probe": Act(_would_probe, _probe),
    "runs.start": Act(_would_run, _run),
    "runs.undo": Act(lambda call: _undone(call, True), lambda call: _undone(call, False)),
    "sources.hold": Act(_would_stop, _hold),
    "sources.pause": Act(_would_stop, _pause),
    "sources.resume": Act(_would_start, _resume),
    "sources.unhold": Act(_would_start, _unhold),
    "store.check": Act(_would_check, _check),
}
