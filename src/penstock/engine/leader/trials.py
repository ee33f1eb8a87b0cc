"""Trials: pages of a source's last run are replayed with other params, and the difference is measured.

A step asks for one by the signal `trial.wanted`: the source, the params, and fields that do not count. What
the replay makes is staged, as that of every replay, and nothing is committed. When it has ended, the signal
`trial.measured` about that source says in numbers what would change. `trial.over` drops what is staged.
Signals are handed over at least once: a trial is started under its signal, and measured once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from penstock.errors import PenstockError, StoreError
from penstock.jobs.replay import entry_stages, replay_plan
from penstock.jobs.run import RunKind, RunOptions
from penstock.pipeline.version import version_of
from penstock.project import Project
from penstock.project.backfills import PENSTOCK
from penstock.settings import SourceSettings
from penstock.store.replays import BEGINNING, StagedChange
from penstock.store.rows import RunRow
from penstock.store.signals import SignalRow
from penstock.store.store import Store

WANTED, MEASURED, OVER = "trial.wanted", "trial.measured", "trial.over"
# Among so many runs the newest with pages is looked for.
RUNS = 20
PAGE = 500
# So many of the last trials are looked through for those that were not measured, when a host begins to lead.
REMEMBERED = 100
MOST_EXAMPLES = 10
LONGEST_VALUE = 200
# The param by which the replay of a trial is known.
TRIAL = "trial"

_decode = msgspec.json.decode


class Trials:
    """Is handed every signal before it is closed, at least once, and looks whether its replays have ended."""

    def __init__(self, project: Project, store: Store) -> None:
        self._project = project
        self._store = store
        self._open: dict[int, SignalRow] = {}

    def plan(self) -> None:
        """Take up what another host has begun."""
        measured = {
            each.data.get("trial")
            for each in self._store.signals.newest(MEASURED, REMEMBERED)
            if isinstance(each.data, dict)
        }
        for signal in self._store.signals.newest(WANTED, REMEMBERED):
            if signal.id not in measured:
                self.receive(signal)

    def look(self) -> None:
        """Measure the trials whose replays have ended."""
        for run_id, wanted in list(self._open.items()):
            run = self._store.runs.get(run_id)
            if run is not None and not run.is_ended:
                continue
            if run is not None:
                self._measure(run, wanted)
            del self._open[run_id]

    def receive(self, signal: SignalRow) -> None:
        data = signal.data if isinstance(signal.data, dict) else {}
        try:
            if signal.name == WANTED:
                self._start(signal, data)
            elif signal.name == OVER and isinstance(data.get("replay"), int):
                self._drop(data["replay"])
        except StoreError:
            raise
        except PenstockError as error:  # a pipeline that can't be loaded now
            self._tell(signal, data, {"problem": error.message})

    def _start(self, signal: SignalRow, data: Mapping[str, Any]) -> None:
        source = self._project.settings.sources.get(str(data.get("source", "")))
        params = data.get("params")
        if source is None or not isinstance(params, dict):
            return  # somebody's own signal under this name
        graph = self._project.graph(source)
        plan = graph.plan(source.priority)
        of_run_id = self._replayable(source, entry_stages(plan))
        if of_run_id is None:
            self._tell(signal, data, {"problem": f"{source.key} has no run with pages to replay"})
            return
        run_id, _ = self._store.runs.start(
            self._ids(source.key),
            RunKind.REPLAY,
            replay_plan(plan),
            version_of(graph, source),
            key=f"trial:{signal.id}",
            actor=PENSTOCK,
            reason=f"a trial that signal {signal.id} asks for; nothing is committed",
            options=RunOptions(is_staged=True, params={**params, TRIAL: signal.id}),
            of_run_id=of_run_id,
        )
        self._open[run_id] = signal

    def _replayable(self, source: SourceSettings, entries: tuple[str, ...]) -> int | None:
        """The newest run of which pages are kept."""
        rows = self._store.alert_facts.runs(self._ids(source.key), 0.0, RUNS)
        for row in reversed(rows):
            scope = self._store.replays.scope([row.id])
            if any(each.found and each.stage in entries for each in scope):
                return row.id
        return None

    def _measure(self, run: RunRow, wanted: SignalRow) -> None:
        while self._store.replays.seal(run.id):
            pass
        found = _Measure(frozenset(wanted.data.get("ignore", ())))
        after = BEGINNING
        while page := self._store.replays.staged_changes(run.id, after, PAGE):
            for staged in page:
                found.add(staged)
            after = page[-1].where
        self._tell(wanted, wanted.data, self._figures(run, found))

    def _figures(self, run: RunRow, found: _Measure) -> dict[str, Any]:
        found.records["same"] += self._store.replays.staged_same(run.id)
        return {
            "replay": run.id,
            "of_run": run.of_run_id,
            "state": str(run.state),
            "pages": run.pages,
            "failed": run.quarantined,
            "records": dict(found.records),
            "values": dict(found.values),
            "fields": {name: dict(each) for name, each in sorted(found.fields.items())},
            "examples": found.examples,
        }

    def _tell(self, wanted: SignalRow, data: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
        source = str(data.get("source", ""))
        said = {"source": source, "trial": wanted.id, "about": data.get("about"), **figures}
        about: dict[str, Any] = {"source_id": self._ids(source), "key": f"trial:{wanted.id}"}
        self._store.signals.raise_(MEASURED, said, actor=PENSTOCK, **about)

    def _drop(self, run_id: int) -> None:
        run = self._store.runs.get(run_id)
        if run is not None and run.is_ended and isinstance(run.options.params.get(TRIAL), int):
            with suppress(PenstockError):  # somebody was faster
                self._store.replays.drop(run_id, PENSTOCK, "its trial is decided")

    def _ids(self, source: str) -> int:
        return self._store.sources.ids().get(source, 0)


class _Measure:
    """Records and values, by what would become of them; and the first records that would change."""

    def __init__(self, ignored: frozenset[str]) -> None:
        self._ignored = ignored
        self.records: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.fields: dict[str, Counter[str]] = {}
        self.examples: list[dict[str, Any]] = []

    def add(self, staged: StagedChange) -> None:
        if staged.kind in ("added", "removed"):
            self.records[staged.kind] += 1
            return
        before, after = self._fields(staged.old_data), self._fields(staged.data)
        changed = {}
        for name in sorted({*before, *after}):
            old, new = before.get(name), after.get(name)
            what = _what(old, new)
            if what:
                self.values[what] += 1
                self.fields.setdefault(name, Counter())[what] += 1
            if what in ("changed", "lost"):
                changed[name] = [_short(old), _short(new)]
        is_changed = bool(changed)
        self.records["changed" if is_changed else "same"] += 1
        if is_changed and len(self.examples) < MOST_EXAMPLES:
            self.examples.append({"key": staged.key, "fields": changed})

    def _fields(self, data: str | None) -> dict[str, Any]:
        found = _decode(data or "null")
        known = found if isinstance(found, dict) else {}
        return {name: value for name, value in known.items() if name not in self._ignored}


def _what(old: Any, new: Any) -> str:
    """Of a value that was not there and is not there, nothing is said."""
    if old is None:
        return "" if new is None else "gained"
    if new is None:
        return "lost"
    return "same" if old == new else "changed"


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
