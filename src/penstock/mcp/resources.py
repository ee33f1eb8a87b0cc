"""Resources: views under addresses that a client can attach, made from the paths of the table of reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from penstock.app.verbs.reads import READS, Read

SCHEME = "penstock://"
LONGEST_URI = 4_000
# Reads that are worth keeping at hand: the title of each, and what a client shows of it.
OFFERED: dict[str, str] = {
    "overview": "The counts of the whole project",
    "status": "What is going on, and what needs a decision",
    "sources.list": "Sources",
    "sources.get": "One source",
    "schedules.explain": "Why a source did or did not run when it was due",
    "checkpoints.list": "The checkpoints of a source",
    "runs.list": "Runs, newest first",
    "runs.detail": "One run in full",
    "runs.causes": "Why jobs of a run are in quarantine",
    "jobs.list": "Jobs, oldest first",
    "jobs.detail": "One job in full",
    "jobs.timeline": "What became of one job",
    "alerts.list": "Alerts that are not resolved",
    "alerts.get": "One alert with its evidence",
    "quarantine.causes": "Causes of quarantined jobs",
    "quarantine.get": "One entry of the quarantine",
    "rejects.list": "Rejected items",
    "records.collections": "Collections of records",
    "records.list": "Records of one collection",
    "sites.list": "Sites that agents have learned",
    "sites.proposals": "Proposals about the schemas of sites",
    "runbooks.list": "Runbooks",
    "runbooks.get": "One runbook",
    "journal.list": "The journal, newest first",
    "workers.list": "Workers",
    "budgets.list": "Budgets",
    "breakers.list": "Circuit breakers",
}


@dataclass(frozen=True, slots=True)
class View:
    """One view with its address, or the template of it."""

    read: Read
    title: str

    @property
    def uri(self) -> str:
        # One run in full is the run itself here.
        return SCHEME + self.read.path[1:].removesuffix("/detail")

    @property
    def is_template(self) -> bool:
        return bool(self.read.path_names)

    def values(self, uri: str) -> dict[str, str] | None:
        """The names in this address; None if it is not one of this view."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.uri))
        found = re.fullmatch(pattern, uri)
        return None if found is None else {k: unquote(v) for k, v in found.groupdict().items()}


VIEWS = {name: View(READS[name], title) for name, title in OFFERED.items()}


def view_of(uri: str) -> tuple[View, Mapping[str, Any]] | None:
    """The view behind an address; fixed addresses come before templates."""
    if len(uri) > LONGEST_URI:
        return None
    for view in sorted(VIEWS.values(), key=lambda each: each.is_template):
        values = view.values(uri)
        if values is not None:
            return view, values
    return None


def source_uri(key: str) -> str:
    return f"{SCHEME}sources/{quote(key, safe='')}"
