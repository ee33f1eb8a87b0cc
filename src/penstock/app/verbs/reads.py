"""Everything that can be read: the one table of views, their paths and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.verbs.acts import verb_on
from penstock.app.verbs.parameters import as_arguments, hints_of, parameters_of, verb_of
from penstock.app.verbs.roles import Role

if TYPE_CHECKING:
    from penstock.app import Project

VIEWER, OPERATOR, ADMIN = Role
PAGED = "cursor limit"
ENTRIES = "source run_id stage kind cause since is_escalated job_id is_apart is_closed"


@dataclass(frozen=True, slots=True)
class Read:
    """One view. `takes` are the verb's parameters that stand in the query, beside those of the path."""

    name: str
    path: str
    takes: tuple[str, ...] = ()
    role: Role = VIEWER
    # It writes for a moment and rolls that back, or completes what it shows: its connection may write.
    writes: bool = False
    # It takes long, as it reads the whole database or simulates: a server does one such thing at a time.
    is_long: bool = False

    @property
    def path_names(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def parameters(self) -> type[msgspec.Struct]:
        """The Struct of the query."""
        return parameters_of(self.name, self.takes)

    @property
    def path_parameters(self) -> type[msgspec.Struct]:
        return parameters_of(self.name, self.path_names)

    @property
    def answer(self) -> Any:
        return hints_of(self.name)["return"]

    @property
    def summary(self) -> str:
        return (inspect.getdoc(verb_of(self.name)) or self.name).partition("\n")[0]

    def call(self, project: Project, arguments: Mapping[str, Any]) -> Any:
        if self.name == "records.list":
            project.records.require_collection(arguments["collection"])
        return verb_on(project, self.name)(**as_arguments(self.name, arguments))


def _read(
    name: str,
    path: str,
    takes: str = "",
    *,
    role: Role = VIEWER,
    writes: bool = False,
    is_long: bool = False,
) -> Read:
    return Read(name, path, tuple(takes.split()), role, writes, is_long)


READS: dict[str, Read] = {
    read.name: read
    for read in (
        _read("overview", "/overview"),
        _read("status", "/status", "outlook"),
        _read("outlook", "/outlook", "sources"),
        _read("explain", "/explain", "source run job", writes=True),
        _read("forecast", "/forecast", "days seed", role=OPERATOR, is_long=True),
        _read("sources.list", "/sources", PAGED),
        _read("sources.get", "/sources/{source}"),
        _read("sources.state", "/sources/{source}/state"),
        _read("sources.next_run", "/sources/{source}/next-run"),
        _read("sources.holds", "/holds"),
        _read("sources.onboarding", "/sources/{source}/onboarding"),
        _read("sources.compliance", "/sources/{source}/compliance"),
        _read("sources.trials", "/sources/{source}/trials"),
        _read("sources.checked_text", "/sources/{source}/checked-texts/{hash}"),
        _read("sources.report", "/sources/{source}/report"),
        _read("runs.list", "/runs", f"source active {PAGED}"),
        _read("runs.get", "/runs/{run}"),
        _read("runs.detail", "/runs/{run}/detail"),
        _read("runs.stages", "/runs/{run}/stages"),
        _read("runs.causes", "/runs/{run}/causes", "limit"),
        _read("runs.report", "/runs/{run}/report"),
        _read("jobs.list", "/jobs", f"run source stage states {PAGED}"),
        _read("jobs.get", "/jobs/{job}"),
        _read("jobs.detail", "/jobs/{job}/detail"),
        _read("jobs.children", "/jobs/{job}/children", "limit"),
        _read("jobs.timeline", "/jobs/{job}/timeline"),
        _read("journal.list", "/journal", f"source run job kind where {PAGED}"),
        _read("journal.acts", "/journal/acts", PAGED),
        _read("journal.trail", "/runs/{run}/trail", "kind limit"),
        _read("journal.of_source", "/sources/{source}/events", "limit"),
        _read("journal.tail", "/journal/tail", f"source run job kind where {PAGED}"),
        _read("logs.list", "/logs", f"run job {PAGED}"),
        _read("records.collections", "/records"),
        _read("records.list", "/records/{collection}", f"source run since {PAGED}"),
        _read("records.get", "/records/{collection}/record", "key"),
        _read("records.versions", "/records/{collection}/versions", "key"),
        _read("records.infer_schema", "/records/{collection}/schema", is_long=True),
        _read("records.check_schema", "/records/{collection}/misfits", "limit", is_long=True),
        _read("rejects.list", "/rejects", f"source run_id code since ids open_only {PAGED}"),
        _read("rejects.count", "/rejects/count", "source run_id code since ids open_only"),
        _read("rejects.get", "/rejects/{reject}"),
        _read("quarantine.list", "/quarantine", f"{ENTRIES} is_whole {PAGED}"),
        _read("quarantine.count", "/quarantine/count", ENTRIES),
        _read("quarantine.causes", "/quarantine/causes", f"source {PAGED}"),
        _read("quarantine.groups", "/quarantine/groups", "source limit"),
        _read("quarantine.get", "/quarantine/{job}"),
        _read("checkpoints.list", "/sources/{source}/checkpoints", PAGED),
        _read("checkpoints.get", "/sources/{source}/checkpoint", "partition"),
        _read("checkpoints.history", "/sources/{source}/checkpoints/history", f"partition {PAGED}"),
        _read(
            "backfills.plan",
            "/sources/{source}/backfills/plan",
            "start end partitions missing window_s",
        ),
        _read("backfills.unknown_partitions", "/sources/{source}/backfills/unknown", "partitions"),
        _read("releases.history", "/releases", PAGED),
        _read("releases.get", "/releases/{release}"),
        _read("releases.running", "/release"),
        _read("releases.policy", "/release/policy"),
        _read("releases.diff", "/release/diff", "before after source", role=OPERATOR, is_long=True),
        _read("replays.diff", "/replays/{run}/diff", "limit", writes=True),
        _read("replays.pages", "/replays/pages", "run source since quarantined"),
        _read("replays.rejected", "/replays/{run}/rejected"),
        _read("canaries.list", "/canaries", PAGED),
        _read("canaries.get", "/canaries/{canary}"),
        _read("cells.list", "/cells"),
        _read("cells.status", "/cells/status"),
        _read("cells.overview", "/cells/overview", "limit"),
        _read("cells.sources", "/cells/sources", f"cell {PAGED}"),
        _read("cells.runs", "/cells/runs", "active limit"),
        _read("cells.alerts", "/cells/alerts", "state limit"),
        _read("cells.search", "/cells/search", "text"),
        _read("cells.get", "/sources/{source}/cell"),
        _read("schedules.list", "/schedules", f"source {PAGED}"),
        _read("schedules.upcoming", "/schedules/upcoming", f"source schedule days {PAGED}"),
        _read("schedules.cadences", "/schedules/cadences", f"source {PAGED}"),
        _read("schedules.differences", "/schedules/differences"),
        _read("schedules.explain", "/sources/{source}/schedules/explain", "ticks missed"),
        _read("schedules.ticks", "/sources/{source}/schedules/ticks", f"schedule missed {PAGED}"),
        _read("schedules.versions", "/sources/{source}/schedules/versions", PAGED),
        _read("sites.list", "/sites", PAGED),
        _read("sites.get", "/sites/{domain}"),
        _read("sites.proposals", "/site-proposals", f"domain state {PAGED}"),
        _read("sites.proposal", "/sites/{domain}/proposals/{proposal}"),
        _read("signals.list", "/signals", f"name {PAGED}"),
        _read("signals.queue", "/sources/{source}/signals", "schedule"),
        _read("breakers.list", "/breakers", PAGED),
        _read("budgets.list", "/budgets", f"source run {PAGED}"),
        _read("budgets.exhausted", "/budgets/exhausted"),
        _read("alerts.list", "/alerts", f"state source rule incident {PAGED}"),
        _read("alerts.get", "/alerts/{alert}"),
        _read("alerts.routes", "/alert-routes"),
        _read("alerts.rules", "/alert-rules", "source"),
        _read("search", "/search", "text"),
        _read("audit.head", "/audit/head"),
        _read("audit.verify", "/audit/verification", role=OPERATOR, is_long=True),
        _read("audit.export", "/audit/export", role=ADMIN, is_long=True),
        _read("exports.github_actions", "/exports/github-actions", "sources", role=OPERATOR),
        _read("exports.crontab", "/exports/crontab", "sources timezone user", role=OPERATOR),
        _read("exports.systemd", "/exports/systemd", "sources user", role=OPERATOR),
        _read("exports.grafana", "/exports/grafana", role=OPERATOR),
        _read("exports.prometheus", "/exports/prometheus", role=OPERATOR),
        _read("metrics.families", "/metrics"),
        _read("figures.runs", "/figures/runs", f"source kinds since {PAGED}"),
        _read("figures.series", "/figures/{measure}/series", "source label since until step"),
        _read("figures.breakdown", "/figures/{measure}/breakdown", "source since until step"),
        _read("figures.by_source", "/figures/{measure}/by-source", "label since until step"),
        _read("figures.totals", "/figures/{measure}/totals"),
        _read("pages.list", "/snapshots", "target limit"),
        _read("pages.screenshots", "/screenshots", "target limit"),
        _read("pages.get", "/snapshots/{snapshot}"),
        _read("records.history", "/records/{collection}/history", "key"),
        _read("hooks.list", "/hooks", f"undelivered {PAGED}"),
        _read("runbooks.list", "/runbooks", PAGED),
        _read("runbooks.executions", "/runbooks/executions", PAGED),
        _read("runbooks.get", "/runbooks/{runbook}"),
        _read("runbooks.state", "/runbooks/{runbook}/state", "source"),
        _read("kpis.report", "/kpis", "days source"),
        _read("workers.list", "/workers", PAGED),
        _read("workers.leaders", "/workers/leaders"),
        _read("workers.scheduler", "/workers/scheduler"),
        _read("workers.stale", "/workers/stale"),
        _read("workers.not_loaded", "/workers/not-loaded"),
        _read("tokens.list", "/tokens", PAGED, role=ADMIN),
        _read("store.view", "/store"),
        _read("store.plan", "/store/plan"),
        _read("store.check", "/store/check", "reads_pages", role=ADMIN, is_long=True),
        _read("sql.list", "/sql/requests", PAGED),
        _read("sql.check", "/sql", role=OPERATOR),
        _read("store.grants", "/store/grants", "role", role=ADMIN),
    )
}
