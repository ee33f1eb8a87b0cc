"""What no tool does, and why: every verb of the tables is a tool or stands here."""

from __future__ import annotations

_LONG = "it reads the whole database or simulates, for minutes: the command line does that"
_CHART = "numbers for charts; status and kpis_report sum them up"
_FILES = "it writes files for other programs, once: the command line does that"
_DATABASE = "maintenance of the database is done at a shell, with a backup"
_TOKENS = "who may come in is decided by a person, at a shell"
_PERSON = "what an environment runs is decided by a person, at a shell"
_MORE = "another tool says the same and more"

LEFT_OUT: dict[str, str] = {
    "records.forget": "it erases for good, and nothing brings it back: only a person may, at a shell",
    "sources.accept_terms": "that terms allow something is decided by a person who has read them",
    "sources.legal_release": "a legal hold is ended by a person",
    "sources.onboarding": _MORE,
    "sources.compliance": _MORE,
    "sources.trials": _MORE,
    "sources.checked_text": "whole texts of strangers, for a person to read",
    "cells.list": _MORE,
    "cells.place": _DATABASE,
    "cells.move": _DATABASE,
    "store.migrate": _DATABASE,
    "store.rename": _DATABASE,
    "store.plan": _DATABASE,
    "store.check": _DATABASE,
    "store.grants": _DATABASE,
    "sql.install": _DATABASE,
    "sql.remove": _DATABASE,
    "sql.check": _DATABASE,
    "releases.create": _PERSON,
    "releases.fetch": _PERSON,
    "releases.policy": _PERSON,
    "canaries.start": _PERSON,
    "canaries.widen": _PERSON,
    "canaries.end": _PERSON,
    "shadows.start": "it loads the code of a release: the command line and the API do that",
    "releases.approve": _PERSON,
    "releases.diff": "it loads the code of the folder: the command line does that",
    "tokens.list": _TOKENS,
    "tokens.revoke": _TOKENS,
    "forecast": _LONG,
    "records.infer_schema": _LONG,
    "records.check_schema": _LONG,
    "audit.verify": _LONG,
    "audit.export": _LONG,
    "audit.head": "it is compared with an anchor, at a shell",
    "exports.github_actions": _FILES,
    "exports.crontab": _FILES,
    "exports.systemd": _FILES,
    "exports.grafana": _FILES,
    "exports.prometheus": _FILES,
    "metrics.families": _CHART,
    "figures.runs": _CHART,
    "figures.series": _CHART,
    "figures.breakdown": _CHART,
    "figures.by_source": _CHART,
    "figures.totals": _CHART,
    "pages.screenshots": "a model would be shown the address alone, which pages_get has",
    "journal.tail": "the feed of event streams; journal_list has the same events",
    "journal.trail": _MORE,
    "journal.of_source": _MORE,
    "sources.state": _MORE,
    "sources.next_run": _MORE,
    "runs.get": _MORE,
    "runs.stages": _MORE,
    "runs.report": _MORE,
    "jobs.get": _MORE,
    "jobs.children": _MORE,
    "records.history": _MORE,
    "backfills.unknown_partitions": _MORE,
    "quarantine.groups": _MORE,
    "checkpoints.get": _MORE,
    "schedules.ticks": _MORE,
    "schedules.versions": _MORE,
    "budgets.exhausted": _MORE,
    "workers.leaders": _MORE,
    "workers.scheduler": _MORE,
    "workers.stale": _MORE,
    "workers.not_loaded": _MORE,
}
# Parameters that no tool has: they mean something to a program that waits or is traced.
PARAMETERS_LEFT_OUT = frozenset({"awaited", "traceparent", "dry_run", "reason"})
