"""Starting work: runs of every kind, drafts and what is left of a run, and signals that start some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import Refused, UsageError, nearest
from penstock.jobs.replay import replay_plan
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.run_policy import policy_of
from penstock.jobs.signals import is_name, is_reserved, wanted
from penstock.project.opened import Opened, default_actor
from penstock.settings import SourceSettings
from penstock.store.database import to_json
from penstock.store.rows import RunRow

# As in `project/opened.py`: who only looks does not wait for what works.
if TYPE_CHECKING:
    from penstock.project.backfills import Moment
    from penstock.store.onboardings import OnboardingRow

KINDS = tuple(
    kind.value for kind in (RunKind.FULL, RunKind.INCREMENTAL, RunKind.PROBE, RunKind.STREAM)
)
# Kinds of runs that need to be told more, and what that is.
COMMANDS = {
    RunKind.BACKFILL.value: "name the days that it covers",
    RunKind.REPLAY.value: "name the run that it replays",
}

# What a run can be told by a signal; more belongs into a place that the signal names.
LARGEST_DATA = 1_000_000


@dataclass(frozen=True, slots=True)
class RaisedSignal:
    """A signal as it was raised; not new if it had been, under the same key."""

    id: int
    name: str
    source: str | None
    key: str | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is asked for beyond its kind.

    `params` go over the source's own, `pages` is how many pages are enough. `is_by_hand`: somebody tries it
    at a terminal, so it does not count against the source if it fails. `priority` replaces the source's.
    """

    params: dict[str, Any] = field(default_factory=dict)
    pages: int | None = None
    is_by_hand: bool = False
    priority: int | None = None

    def over(self, options: RunOptions) -> RunOptions:
        """The options of a run with all this."""
        return msgspec.structs.replace(
            options, params=self.params, pages=self.pages, is_tried=self.is_by_hand
        )


NOTHING_ASKED = Asked()


class RunStarter(Opened):
    """The verbs that make work."""

    def run(
        self, name: str, kind: str | None = None, actor: str | None = None, reason: str = ""
    ) -> int:
        """Queue a run of a source and answer with its number; it survives whatever comes next."""
        return self.start_run(name, kind, actor, reason).id

    def start_run(
        self,
        name: str,
        kind: str | None = None,
        actor: str | None = None,
        reason: str = "",
        is_draft: bool = False,
        asked: Asked = NOTHING_ASKED,
    ) -> RunRow:
        """The same, answering with its row; a draft waits for `start`."""
        return self._start_run(name, kind, actor, reason, asked, is_draft=is_draft)[0]

    def start_or_join(
        self,
        name: str,
        kind: str | None = None,
        actor: str | None = None,
        reason: str = "",
        asked: Asked = NOTHING_ASKED,
    ) -> tuple[RunRow, bool]:
        """The active run of this kind, or a new one if there is none; and whether it is new.

        However many ask at once, one run is started.
        """
        return self._start_run(name, kind, actor, reason, asked, joins_active=True)

    def start_requested(
        self, name: str, kind: str | None, key: str, actor: str, reason: str, asked: Asked
    ) -> tuple[RunRow, bool]:
        """As `start_or_join`; asked again under the same key it is the same run, also when that has ended."""
        return self._start_run(name, kind, actor, reason, asked, joins_active=True, key=key)

    def start_trial(
        self, name: str, options: RunOptions, actor: str, reason: str
    ) -> tuple[RunRow, bool]:
        """A trial run of a source that is being onboarded, or the one that has not ended yet."""
        source = self.source(name)
        self.refuse_inactive(source.key, RunKind.PROBE)
        run_id, is_new = self.connection.runs.start(
            self.source_ids[source.key],
            RunKind.PROBE,
            self.graph(source).plan(source.priority, RunKind.PROBE),
            self._version(source),
            key=_new_key(),
            actor=actor,
            reason=reason,
            options=options,
            joins_active=True,
        )
        return self.require_run(run_id), is_new

    def prepare_run(
        self,
        name: str,
        key: str | None,
        kind: str | None = None,
        actor: str | None = None,
        reason: str = "",
        asked: Asked = NOTHING_ASKED,
    ) -> tuple[RunRow, bool]:
        """A run for drains, or the one that was prepared under this key; and whether it is new."""
        return self._start_run(name, kind, actor, reason, asked, prepared_as=_prepared_key(key))

    def prepare_backfill(
        self, name: str, key: str | None, options: RunOptions, actor: str | None, reason: str
    ) -> tuple[RunRow, bool]:
        """The same for a backfill."""
        return self._start_backfill(name, options, None, actor, reason, _prepared_key(key))

    def _start_run(
        self,
        name: str,
        kind: str | None,
        actor: str | None,
        reason: str,
        asked: Asked,
        *,
        is_draft: bool = False,
        joins_active: bool = False,
        prepared_as: str | None = None,
        key: str | None = None,
    ) -> tuple[RunRow, bool]:
        source = self.source(name)
        priority = source.priority if asked.priority is None else asked.priority
        kind = kind or source.usual_kind
        if self.settings.onboarding.required:
            self.refuse_inactive(
                source.key, kind
            )  # else the store knows all, and refuses by itself
        self._refuse_unfit(name, kind)
        graph = self.graph(source)
        run_id, is_new = self.connection.runs.start(
            self.source_ids[source.key],
            RunKind(kind),
            graph.plan(priority, RunKind(kind)),
            self._version(source, asked.params),
            key=prepared_as or key or _new_key(),
            actor=actor or default_actor(),
            reason=reason,
            options=asked.over(run_options(source)),
            is_draft=is_draft,
            joins_active=joins_active,
            for_drains=prepared_as is not None,
        )
        return self.require_run(run_id), is_new

    def refuse_run(
        self, name: str, kind: str, known: Mapping[str, OnboardingRow] | None = None
    ) -> None:
        """Say why a source can't have a run of this kind now, if it can't.

        A degraded source runs probes only, until they go well or somebody resumes it.
        """
        self.refuse_inactive(self.source(name).key, kind, known)
        self._refuse_unfit(name, kind)

    def _refuse_unfit(self, name: str, kind: str) -> None:
        refuse_kind(kind)
        if not policy_of(kind).runs_when_degraded:
            self._refuse_ill(self.source(name))

    def start(self, run_id: int, actor: str | None = None, reason: str = "") -> None:
        """Let a draft begin."""
        run = self.require_run(run_id)
        self.refuse_degraded_run(run)
        if not self.connection.runs.start_draft(run_id, actor or default_actor(), reason):
            raise Refused(f"run {run_id} is {run.state}; only a draft can be started")

    def continue_run(
        self, run_id: int, actor: str | None = None, reason: str = ""
    ) -> tuple[RunRow, bool]:
        """A run that does what an ended one has left undone, and whether it is new."""
        run = self.require_run(run_id)
        self.refuse_degraded_run(run)
        source = self.source(run.source)
        graph = self.graph(source)
        plan = graph.plan(source.priority, run.kind)
        new_id, is_new = self.connection.runs.continue_(
            run_id,
            replay_plan(plan) if policy_of(run.kind, run.options).is_staged else plan,
            self._version(source, run.options.params),
            actor or default_actor(),
            reason,
        )
        return self.require_run(new_id), is_new

    def signal(
        self,
        name: str,
        data: Any = None,
        *,
        key: str | None = None,
        source: str | None = None,
        actor: str | None = None,
    ) -> RaisedSignal:
        """Raise a signal, or find the one that was raised under this key; it survives whatever comes next."""
        refuse_signal(name)
        if len(to_json(data)) > LARGEST_DATA:
            raise UsageError(f"a signal's data has at most {LARGEST_DATA} characters")
        about = None if source is None else self.source(source).key
        signal_id, is_new = self.connection.signals.raise_(
            name,
            data,
            actor=actor or default_actor(),
            source_id=0 if about is None else self.source_ids[about],
            key=key,
        )
        return RaisedSignal(signal_id, name, about, key, is_new)

    def waiting_for(self, name: str, source: str | None) -> list[tuple[str, str]]:
        """The schedules that a signal would start: each source's key, and the schedule's name."""
        return [
            (key, schedule.name)
            for key, each in self.settings.sources.items()
            for schedule in each.schedules
            if any(wanted(text).means(name, source, key) for text in schedule.signals)
        ]

    def backfill(
        self,
        name: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
        linked_to: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> int:
        """Queue a backfill of a source and answer with its number.

        `start` and `end` are days or times; the day that it ends with belongs to it. `missing` fills
        only what is not ingested yet, `linked_to` is the run that this is for.
        """
        options = self.backfill_options(
            name, start, end, partitions, missing=missing, window_s=window_s
        )
        return self.start_backfill(name, options, linked_to, actor, reason).id

    def backfill_options(
        self,
        name: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
    ) -> RunOptions:
        """What such a backfill would be asked for; changes nothing."""
        from penstock.project.backfills import backfill_options, require_settings

        source = self.source(name)
        require_settings(source)
        self.graph(source).plan(source.priority, RunKind.BACKFILL)
        return backfill_options(
            source,
            start,
            end,
            self.clock.now(),
            partitions=partitions,
            window_s=window_s,
            is_missing_only=missing,
        )

    def start_backfill(
        self,
        name: str,
        options: RunOptions,
        linked_to: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> RunRow:
        return self._start_backfill(name, options, linked_to, actor, reason)[0]

    def _start_backfill(
        self,
        name: str,
        options: RunOptions,
        linked_to: int | None,
        actor: str | None,
        reason: str,
        prepared_as: str | None = None,
    ) -> tuple[RunRow, bool]:
        from penstock.project.backfills import start_backfill

        source = self.source(name)
        self.refuse_degraded(source)
        run_id, is_new = start_backfill(
            self.connection,
            self.source_ids[source.key],
            source,
            self.graph(source),
            options,
            key=prepared_as or _new_key(),
            actor=actor or default_actor(),
            reason=reason,
            linked_to=linked_to,
            for_drains=prepared_as is not None,
        )
        return self.require_run(run_id), is_new


def _new_key() -> str:
    return f"manual:{os.urandom(16).hex()}"


def _prepared_key(key: str | None) -> str:
    return _new_key() if key is None else f"prepared:{key}"


def refuse_kind(kind: str) -> None:
    """Not every kind of run can be started by its name alone."""
    if kind in COMMANDS:
        raise UsageError(
            f"a {kind} needs more than a source", COMMANDS[kind], code=f"{kind}_needs_more"
        )
    if kind not in KINDS:
        raise UsageError(f"there is no kind of run {kind!r}", nearest(kind, [*KINDS, *COMMANDS]))


def refuse_signal(name: str) -> None:
    """Say why nobody but the engine can raise a signal of this name, if that is so."""
    if not is_name(name):
        raise UsageError(
            f"{name!r:.60} can't be the name of a signal",
            "letters, digits and _.:- only, such as prices.stale",
        )
    if is_reserved(name):
        raise UsageError(f"only Penstock raises {name}", "choose another name")


def run_options(source: SourceSettings) -> RunOptions:
    """What its configuration says of a run, remembered with it."""
    return RunOptions(
        degrade_after=source.degrade_after,
        good_probes=source.good_probes,
        deadline_s=source.deadline_s,
        freshness_s=source.freshness_s,
        schema_freshness_s=source.schema_freshness_s,
    )
