"""The commands behind the verbs: what a shell does where a program calls `sources.resume`.

Nothing else below the command line knows its commands: an error has a code and a `Remedy`, a gate has a name
and a `Remedy`, and each front end has its own phrase for them. They stand here and not in `cli`, because
`explain` answers programs with a `command` too.
"""

from __future__ import annotations

from penstock.errors import Remedy

COMMANDS: dict[str, str] = {
    "breakers.close": "penstock breaker close {}",
    "breakers.open": "penstock breaker open {}",
    "budgets.list": "penstock budget",
    "canaries.get": "penstock canaries {}",
    "cells.get": "penstock cells show {}",
    "cells.move": "penstock cells move {} --to CELL",
    "drain": "penstock drain {}",
    "drains.stages": "penstock drain {} --stages",
    "explain": "penstock explain {}",
    "hooks.list": "penstock hooks --undelivered",
    "hooks.redeliver": "penstock hooks retry {}",
    "jobs.get": "penstock jobs {}",
    "jobs.list": "penstock jobs --source {}",
    "jobs.retry": "penstock retry --job {}",
    "jobs.unhold": "penstock unhold --job {}",
    "logs.list": "penstock logs {}",
    "pages.list": "penstock page JOB",
    "pages.try_": "penstock try {} URL",
    "quarantine.discard": "penstock quarantine discard --source {}",
    "quarantine.list": "penstock quarantine list --source {}",
    "quarantine.release": "penstock quarantine release --source {}",
    "records.list": "penstock records",
    "rejects.list": "penstock rejects list --source {}",
    "rejects.redrive": "penstock rejects redrive --source {}",
    "releases.approve": "penstock release approve {} --to ENV",
    "releases.get": "penstock release show {}",
    "releases.history": "penstock release history",
    "replays.commit": "penstock replay {} --commit",
    "replays.diff": "penstock replay {} --diff",
    "replays.drop": "penstock replay {} --drop",
    "replays.start": "penstock replay {}",
    "runbooks.state": "penstock runbook {}",
    "runs.begin": "penstock start {}",
    "runs.cancel": "penstock cancel {}",
    "runs.continue_from": "penstock resume {} --from-checkpoint",
    "runs.get": "penstock runs {}",
    "runs.hand_over": "penstock start {} --hand-over",
    "runs.list": "penstock runs",
    "runs.prepare": "penstock prepare {}",
    "runs.probe": "penstock run {} --kind probe",
    "runs.resume": "penstock resume {}",
    "runs.start": "penstock run {}",
    "runs.undo": "penstock undo {}",
    "schedules.explain": "penstock schedules explain {}",
    "service.up": "penstock up",
    "sites.list": "penstock sites",
    "sites.proposals": "penstock sites proposals {}",
    "sources.accept_terms": "penstock sources check {} --accept-terms",
    "sources.activate": "penstock sources activate {}",
    "sources.approve": "penstock sources approve {}",
    "sources.check": "penstock sources check {}",
    "sources.hold": "penstock hold {}",
    "sources.legal_release": "penstock sources legal-release {}",
    "sources.list": "penstock sources",
    "sources.own": "penstock sources own {} OWNER",
    "sources.pause": "penstock pause {}",
    "sources.propose": "penstock sources propose {}",
    "sources.report": "penstock sources report {}",
    "sources.resume": "penstock resume {}",
    "sources.trial": "penstock sources trial {}",
    "sources.unhold": "penstock unhold {}",
    "store.check": "penstock db check",
    "store.migrate": "penstock db migrate",
    "store.restore": "penstock db restore FILE",
    "store.view": "penstock db show",
    "tokens.list": "penstock token list",
    "tokens.revoke": "penstock token revoke {}",
    "workers.list": "penstock workers",
}
# Gates that no verb of a project opens.
GATES: dict[str, str] = {"code": "restart penstock up", "workers": "penstock up"}


def command_of(remedy: Remedy | None, gate: str = "") -> str:
    """The command that does it, or that opens the gate; '' if there is none."""
    if remedy is None:
        return GATES.get(gate, "")
    return filled(COMMANDS.get(remedy.verb, ""), remedy)


def filled(phrase: str, remedy: Remedy | None) -> str:
    """The phrase with what the remedy is called with; without the place for it where that is nothing."""
    target = None if remedy is None else remedy.target
    return phrase.replace(" {}", "" if target is None else f" {target}")
