"""The leader's loop: what is done once for all hosts, by the one that leads.

Schedules, retention and the sweep of what nothing refers to. It has a connection and a thread of its own:
a batch that takes long must not keep workers from being beaten.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.engine.leader.activity import Activity
from penstock.engine.leader.alerts import AlertChore
from penstock.engine.leader.anchors import AnchorChore
from penstock.engine.leader.cadences import CadenceChore
from penstock.engine.leader.calendar_watch import CalendarWatch
from penstock.engine.leader.compliance import ComplianceChore
from penstock.engine.leader.files import Files
from penstock.engine.leader.hooks import HookChore
from penstock.engine.leader.leadership import Leadership
from penstock.engine.leader.repairs import Repairs
from penstock.engine.leader.requests import RequestChore
from penstock.engine.leader.retries import Retries
from penstock.engine.leader.rollups import RollupChore
from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.leader.signals import SignalChore
from penstock.engine.leader.sla import SlaChore
from penstock.engine.leader.sweep import Sweep
from penstock.engine.leader.trials import Trials
from penstock.engine.leader.upkeep import UpkeepChore
from penstock.errors import StoreError
from penstock.gates.project_terms import hours_definitions, hours_of, rules_of
from penstock.journal.origin import LEADER, SCHEDULE
from penstock.project import Project
from penstock.project.canary_watch import CanaryWatch
from penstock.project.host import host_name
from penstock.snapshots import open_snapshots
from penstock.store import promises
from penstock.store.store import Store

if TYPE_CHECKING:
    from penstock.engine.leader.run_traces import RunTraces

SCHEDULER = "scheduler"
UPKEEP = "upkeep"
# How often it looks for what is not announced by a time: signals, files, what is to be told.
LOOK_S = 1.0
# How many events are sealed when it ends, at most.
LAST_SEALED = 20_000


class LeaderLoop:
    """One process's share in it: nothing while another leads."""

    def __init__(
        self,
        project: Project,
        store: Store,
        holder: str,
        *,
        has_scheduler: bool = True,
        activity: Activity | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store = store
        store.acts_from(LEADER)
        self._traces = _run_traces(project, store, tell)
        self._activity = activity
        self._snapshots = open_snapshots(project.settings.snapshots, "upkeep")
        self._sweep = Sweep(self._snapshots, project.open_store, project.clock)
        bounds = rules_of(project.settings).lasting()
        self._hours = hours_of(project.settings)
        retention = project.settings.retention
        self._upkeep = UpkeepChore(store, retention, self._sweep, project.clock, bounds)
        self._scheduler = Scheduler(project, store) if has_scheduler else None
        self._repairs = Repairs(project, store)
        self._trials = Trials(project, store)
        receivers = (self._repairs.receive, self._trials.receive, Retries(project, store).receive)
        self._signals = SignalChore(project, store, receivers)
        self._files = Files(project, store)
        self._requests = RequestChore(project, store)
        self._hooks = HookChore(project, store)
        self._rollups = RollupChore(store, project.clock)
        self._alerts = AlertChore(project, store)
        self._anchors = AnchorChore(project, store)
        self._canaries = CanaryWatch(project, store, self._may_go_on)
        self._promises = SlaChore(project, store)
        self._cadences = CadenceChore(project, store)
        self._calendars = CalendarWatch(project, store)
        self._compliance = ComplianceChore(project, store)
        matter = SCHEDULER if has_scheduler else UPKEEP
        behind = SCHEDULER if matter == UPKEEP and store.is_shared else None
        self._leadership = Leadership(store, matter, holder, project.clock, behind)
        self._planned_term = 0
        self.rest_s = LOOK_S
        # Whether it has looked at everything that may start a run, as far as that is its part.
        self.is_settled = not has_scheduler

    def look(self) -> bool:
        """Do what is due, if this process leads; True if there is more to do at once.

        If there is not, there is nothing to do for `rest_s`.
        """
        self.rest_s = LOOK_S
        leads = self._leadership
        if self._activity is not None:
            self._activity.begin(self._store)
        if not leads.seek():
            if self._activity is not None:
                self._activity.skip(self._store)  # another tells it
            self.is_settled = True
            return False
        if leads.term != self._planned_term:
            # Now and not earlier: who does not lead may have another penstock.yaml.
            self._plan()
            self._planned_term = leads.term
        if self._scheduler is not None:
            self._store.acts_from(SCHEDULE)
            next_at = self._scheduler.tick(leads.is_trusted)
            self._store.acts_from(LEADER)
            self._requests.look(leads.is_trusted)
            self._files.look(leads.is_trusted)
            self._signals.look(leads.is_trusted)
            if leads.is_trusted():
                self._repairs.look()
                self._trials.look()
            if leads.is_trusted():
                self._promises.look()
            if leads.is_trusted():
                self._cadences.look()
            if leads.is_trusted():
                self._calendars.look()
            if leads.is_trusted():
                self._compliance.look()
            self.is_settled = not self._files.are_settling and not self._scheduler.is_behind()
            self.rest_s = self._rest_s(next_at)
        if leads.is_trusted():
            self._alerts.look()
        if leads.is_trusted():
            self._canaries.look()
        if leads.is_trusted():
            self._anchors.look()
            self._hooks.look()
        if self._traces is not None and leads.is_trusted():
            self._traces.look()
        self.tell()
        has_more = leads.is_trusted() and self._rollups.look()
        return leads.is_trusted() and (self._upkeep.do_a_little() or has_more)

    def _may_go_on(self) -> bool:
        return self._leadership.is_trusted()

    def tell(self) -> None:
        """Say what has happened, if that is this process's part."""
        if self._activity is not None and self._leadership.is_trusted():
            self._activity.look(self._store)

    def _rest_s(self, next_at: float | None) -> float:
        """Until the next tick, if that is soon: none is to be late because a look comes now and then."""
        left_s = LOOK_S if next_at is None else next_at - self._store.now()
        # What is due still is left to others, or waits: it is no reason to look all the time.
        return left_s if 0.0 < left_s < LOOK_S else LOOK_S

    def _plan(self) -> None:
        self._hooks.plan()
        self._alerts.plan()
        self._store.hosts.plan_hours(hours_definitions(self._hours), promises.LEADER)
        if self._scheduler is not None:
            self._scheduler.plan()
            self._signals.plan()
            self._trials.plan()
            self._files.plan()
            self._requests.plan()

    def close(self) -> None:
        """Let another lead at once, if this one did."""
        self._files.close()
        if self._leadership.is_trusted():
            with suppress(StoreError):  # then its term runs out by itself
                self._rollups.finish()
                self._alerts.part()
                self._hooks.part()
                self._store.audit.seal_all(0.0, LAST_SEALED)
                if self._traces is not None:
                    self._traces.look()
                self._leadership.resign()
        if self._traces is not None:
            self._traces.close()
        self._alerts.close()
        self._sweep.close()
        self._snapshots.close()
        self._store.close()


def _run_traces(project: Project, store: Store, tell: Callable[[str], None]) -> RunTraces | None:
    if project.settings.tracing.endpoint is None:
        return None
    from penstock.engine.leader.run_traces import RunTraces

    return RunTraces(project, store, tell)


def a_holder() -> str:
    """A name that no other process has or will have, and that a person can find."""
    return f"{host_name()}/{os.getpid()}/{random.SystemRandom().getrandbits(48):012x}"
