"""The nouns of a project, each imported when it is first used: a command that only looks starts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from penstock import project
from penstock.app.privacy import shown

if TYPE_CHECKING:
    from penstock.app.alerts import Alerts
    from penstock.app.audit import Audit
    from penstock.app.backfills import Backfills
    from penstock.app.breakers import Breakers
    from penstock.app.budgets import Budgets
    from penstock.app.canaries import Canaries
    from penstock.app.cells import Cells
    from penstock.app.checkpoints import Checkpoints
    from penstock.app.drain_options import DrainOptions
    from penstock.app.drains import Drains
    from penstock.app.exports import Exports
    from penstock.app.figures import Figures
    from penstock.app.golden import Golden
    from penstock.app.hooks import Hooks
    from penstock.app.jobs import Jobs
    from penstock.app.journal import Journal
    from penstock.app.kpis import Kpis
    from penstock.app.logs import Logs
    from penstock.app.metrics import Metrics
    from penstock.app.pages import Pages
    from penstock.app.quarantine import Quarantine
    from penstock.app.records import Records
    from penstock.app.rejects import Rejects
    from penstock.app.releases import Releases
    from penstock.app.replays import Replays
    from penstock.app.runbooks import Runbooks
    from penstock.app.runs import Runs
    from penstock.app.schedules import Schedules
    from penstock.app.service import Service
    from penstock.app.shadows import Shadows
    from penstock.app.signals import Signals
    from penstock.app.sites import Sites
    from penstock.app.sources import Sources
    from penstock.app.sql import Sql
    from penstock.app.store import ProjectStore
    from penstock.app.tokens import Tokens
    from penstock.app.views.drains import DrainView
    from penstock.app.views.forecast import ForecastView
    from penstock.app.views.outlook import Explanation, SourceOutlook
    from penstock.app.views.overview import OverviewView
    from penstock.app.views.proof import ProofView
    from penstock.app.views.search import SearchView
    from penstock.app.views.status import StatusView
    from penstock.app.workers import Workers


class Nouns(project.Project):
    """The nouns of a project."""

    # Whether answers show the content of private sources.
    includes_private = False

    def now(self) -> float:
        """The time of the store's clock, which decides what is due."""
        return self.connection.now()

    def overview(self) -> OverviewView:
        """The counts of the whole project."""
        from penstock.app.views.overview import overview_view

        return overview_view(self.connection.overview())

    def status(self, *, outlook: bool = True) -> StatusView:
        """What is going on: workers, active runs, what waits and why, what needs a decision, what is next.

        Without `outlook` it is not said which sources are stopped and why, and it costs less.
        """
        from penstock.app.status import status

        return shown(self, status(self, outlook))

    def explain(
        self, source: str | None = None, *, run: int | None = None, job: int | None = None
    ) -> Explanation:
        """Which gates keep a source, a run or a job from starting now.

        It runs the next real turn in a transaction and rolls it back, so the answer is what workers will do.
        It takes the locks of a turn: for lists and for polling, use `outlook`.
        """
        from penstock.app.outlook import explain

        return shown(self, explain(self, source, run, job))

    def outlook(self, sources: Sequence[str] | None = None) -> Sequence[SourceOutlook]:
        """The state of all sources, or of these: the closed gate, since and until when, and what opens it.

        It reads one snapshot of the store and takes no locks. The gates are those of `explain`.
        """
        from penstock.app.outlook import outlook

        return shown(self, outlook(self, sources))

    def prove(
        self,
        *,
        kills: int = 20,
        minutes: float | None = None,
        seed: int | None = None,
        only: Sequence[str] = (),
        on_progress: Callable[[str, str], None] | None = None,
    ) -> ProofView:
        """Kill, stop and fault a scratch project here, with this project's settings: what survived.

        It starts processes of its own beside the project's database, and a site on loopback; the project's
        data, code and sources are not touched. It takes a few minutes, or as many as `minutes` says.
        `on_progress` is called with a scene and what happens in it.
        """
        from penstock.app.proof import prove

        return prove(self, kills, minutes, seed, only, on_progress)

    def forecast(
        self,
        days: float = 30.0,
        *,
        changes: Sequence[str] = (),
        assume: Sequence[str] = (),
        seed: int = 1,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> ForecastView:
        """What the next days would bring: starts, runs, requests, broken promises, and the use of budgets.

        It simulates schedules, gates, budgets, retries and breakers in virtual time, with runs like those of
        the history; nothing is fetched, and nothing is written. `changes` are keys of penstock.yaml with
        other values (`"acme.com.schedule.every=6h"`): then the answer has both sides, as it is and as it
        would be. `assume` says what runs are like where there is no history (`"pages=500,seconds=0.8"`) and
        how often what comes from outside (`"acme.com.signals=3/d"`). The same `seed` gives the same figures.
        `on_progress` is called with how many days of how many are simulated.
        """
        from penstock.app.forecast import forecast

        return forecast(self, days, changes, assume, seed, on_progress)

    def drain(self, run: int, step: str, **asked: Unpack[DrainOptions]) -> DrainView:
        """Perform one stage of a prepared run until it is closed: `drains.perform`, which has the options."""
        return self.drains.perform(run, step, **asked)

    def search(self, text: str) -> SearchView:
        """Sources, runs, jobs, pages and records that are called this: by name, number, address or key."""
        from penstock.app.search import search

        return shown(self, search(self, text))

    @cached_property
    def alerts(self) -> Alerts:
        """What is wrong with sources and the project, with its evidence."""
        from penstock.app.alerts import Alerts

        return Alerts(self)

    @cached_property
    def audit(self) -> Audit:
        """The seals over the journal: verify, export and anchor them."""
        from penstock.app.audit import Audit

        return Audit(self)

    @cached_property
    def backfills(self) -> Backfills:
        """Runs that fetch a range of a source's history: plan and start them."""
        from penstock.app.backfills import Backfills

        return Backfills(self)

    @cached_property
    def breakers(self) -> Breakers:
        """Circuit breakers of sources and hosts."""
        from penstock.app.breakers import Breakers

        return Breakers(self)

    @cached_property
    def budgets(self) -> Budgets:
        """Budgets: what is used and left."""
        from penstock.app.budgets import Budgets

        return Budgets(self)

    @cached_property
    def canaries(self) -> Canaries:
        """Releases that perform a share of live work, compared with the control."""
        from penstock.app.canaries import Canaries

        return Canaries(self)

    @cached_property
    def cells(self) -> Cells:
        """The databases that a project's sources are divided over."""
        from penstock.app.cells import Cells

        return Cells(self)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of a source's partitions."""
        from penstock.app.checkpoints import Checkpoints

        return Checkpoints(self)

    @cached_property
    def drains(self) -> Drains:
        """The stages of prepared runs, as tasks of an orchestrator."""
        from penstock.app.drains import Drains

        return Drains(self)

    @cached_property
    def exports(self) -> Exports:
        """Schedules for GitHub Actions, cron or systemd; dashboards for Grafana; rules for Prometheus."""
        from penstock.app.exports import Exports

        return Exports(self)

    @cached_property
    def figures(self) -> Figures:
        """Figures over time: by hour, by day, by label and by run."""
        from penstock.app.figures import Figures

        return Figures(self)

    @cached_property
    def golden(self) -> Golden:
        """Golden corpora: stored pages with the records that were approved for them."""
        from penstock.app.golden import Golden

        return Golden(self)

    @cached_property
    def hooks(self) -> Hooks:
        """Webhook deliveries about ended runs."""
        from penstock.app.hooks import Hooks

        return Hooks(self)

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs of runs."""
        from penstock.app.jobs import Jobs

        return Jobs(self)

    @cached_property
    def journal(self) -> Journal:
        """What happened, to what and by whom."""
        from penstock.app.journal import Journal

        return Journal(self)

    @cached_property
    def kpis(self) -> Kpis:
        """Key figures about recovery."""
        from penstock.app.kpis import Kpis

        return Kpis(self)

    @cached_property
    def logs(self) -> Logs:
        """What steps printed and logged."""
        from penstock.app.logs import Logs

        return Logs(self)

    @cached_property
    def metrics(self) -> Metrics:
        """Metrics for Prometheus: the text that it scrapes, and what there is."""
        from penstock.app.metrics import Metrics

        return Metrics(self)

    @cached_property
    def pages(self) -> Pages:
        """Pages as they were fetched, from the snapshots."""
        from penstock.app.pages import Pages

        return Pages(self)

    @cached_property
    def quarantine(self) -> Quarantine:
        """Failed jobs that are no longer retried."""
        from penstock.app.quarantine import Quarantine

        return Quarantine(self)

    @cached_property
    def records(self) -> Records:
        """The ingested records."""
        from penstock.app.records import Records

        return Records(self)

    @cached_property
    def rejects(self) -> Rejects:
        """Items that pipelines rejected."""
        from penstock.app.rejects import Rejects

        return Rejects(self)

    @cached_property
    def releases(self) -> Releases:
        """What this environment runs: releases, how they came here, and promotions."""
        from penstock.app.releases import Releases

        return Releases(self)

    @cached_property
    def replays(self) -> Replays:
        """Runs of the current pipeline on stored pages."""
        from penstock.app.replays import Replays

        return Replays(self)

    @cached_property
    def runbooks(self) -> Runbooks:
        """What to do about a fault, step by step."""
        from penstock.app.runbooks import Runbooks

        return Runbooks(self)

    @cached_property
    def runs(self) -> Runs:
        """The runs of sources."""
        from penstock.app.runs import Runs

        return Runs(self)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules of sources, and the classes of those that are auto."""
        from penstock.app.schedules import Schedules

        return Schedules(self)

    @cached_property
    def service(self) -> Service:
        """Workers and the scheduler, run by this process."""
        from penstock.app.service import Service

        return Service(self)

    @cached_property
    def shadows(self) -> Shadows:
        """Releases that process the pages of a live run beside it, staged."""
        from penstock.app.shadows import Shadows

        return Shadows(self)

    @cached_property
    def signals(self) -> Signals:
        """Signals: named events that start runs."""
        from penstock.app.signals import Signals

        return Signals(self)

    @cached_property
    def sites(self) -> Sites:
        """Sites that agents have learned, and proposals about their schemas."""
        from penstock.app.sites import Sites

        return Sites(self)

    @cached_property
    def sources(self) -> Sources:
        """The sources of penstock.yaml."""
        from penstock.app.sources import Sources

        return Sources(self)

    @cached_property
    def sql(self) -> Sql:
        """Views for SQL clients, and what they have asked for."""
        from penstock.app.sql import Sql

        return Sql(self)

    @cached_property
    def store(self) -> ProjectStore:
        """The database that everything is in, as a whole."""
        from penstock.app.store import ProjectStore

        return ProjectStore(self)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens for the web server: who may come in, with which role."""
        from penstock.app.tokens import Tokens

        return Tokens(self)

    @cached_property
    def workers(self) -> Workers:
        """The live workers, their hosts, and the leading processes."""
        from penstock.app.workers import Workers

        return Workers(self)
