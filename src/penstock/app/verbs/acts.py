"""Every act that can be done: the one table of roles, paths and parameters.

The POST routes of the API, the OpenAPI document, who may do what, the dashboard's buttons and the MCP tools
are made from it. An act is a verb of the application and changes something; what only looks is in `reads.py`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.verbs.parameters import as_arguments, hints_of, parameters_of, verb_of
from penstock.app.verbs.roles import Identity, Role
from penstock.errors import Refused

if TYPE_CHECKING:
    from penstock.app import Project

VIEWER, OPERATOR, ADMIN = Role
# Work that is done in batches goes on for so long before it answers; workers do the rest.
BATCHES_S = 2.0


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `takes` are the verb's parameters that stand in the body, beside those of the path."""

    name: str
    role: Role
    path: str
    takes: tuple[str, ...] = ()
    # The act that takes it back, where there is one.
    undo: str | None = None
    # Whether its answer may be stored for an idempotency key: it has no secret and nothing that was erased.
    keeps_answer: bool = True

    @property
    def path_names(self) -> tuple[str, ...]:
        return tuple(
            part[1:-1].partition(":")[0] for part in self.path.split("/") if part.startswith("{")
        )

    @property
    def parameters(self) -> type[msgspec.Struct]:
        """The Struct of the body."""
        return parameters_of(self.name, (*self.takes, *self._asked))

    @property
    def path_parameters(self) -> type[msgspec.Struct]:
        return parameters_of(self.name, self.path_names)

    @property
    def _asked(self) -> tuple[str, ...]:
        known = inspect.signature(verb_of(self.name)).parameters
        return tuple(each for each in ("dry_run", "reason") if each in known)

    @property
    def has_dry_run(self) -> bool:
        return "dry_run" in inspect.signature(verb_of(self.name)).parameters

    @property
    def answer(self) -> Any:
        """The type that the verb answers with."""
        return hints_of(self.name)["return"]

    @property
    def summary(self) -> str:
        return (inspect.getdoc(verb_of(self.name)) or self.name).partition("\n")[0]

    def call(self, project: Project, by: Identity, arguments: Mapping[str, Any]) -> Any:
        """Do it. Everything in the journal bears the name of the identity."""
        verb = self.name
        if verb == "runbooks.do":
            verb = _refuse_step(by, arguments)
        if not arguments.get("dry_run"):
            _refuse_unconfirmed(project, verb)
        given = as_arguments(self.name, arguments)
        found = verb_on(project, self.name)(**given, actor=by.name)
        return _batches(found) if isinstance(found, Iterator) else found


def _refuse_unconfirmed(project: Project, verb: str) -> None:
    from penstock.app.guard import refuse_unconfirmed

    refuse_unconfirmed(project, verb)


def _refuse_step(by: Identity, arguments: Mapping[str, Any]) -> str:
    """A step of a runbook performs another act: it takes the role of that one. Answers which it is."""
    from penstock.app.runbooks import verb_of_step

    verb = verb_of_step(arguments["runbook"], arguments["step"])
    needed = ACTS[verb].role if verb in ACTS else OPERATOR
    if not by.may(needed):
        raise Refused(
            f"{by.name} has the role {by.role}; this step needs {needed}", code="role_needed"
        )
    return verb


def verb_on(project: Project, name: str) -> Any:
    """The verb of this name, bound to a project."""
    found: Any = project
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _batches(batches: Iterator[int]) -> int:
    done, until = 0, time.monotonic() + BATCHES_S
    for size in batches:
        done += size
        if time.monotonic() >= until:
            break
    return done


def _act(
    name: str,
    role: Role,
    path: str,
    takes: str = "",
    undo: str | None = None,
    *,
    keeps_answer: bool = True,
) -> Act:
    return Act(name, role, path, tuple(takes.split()), undo, keeps_answer)


ACTS: dict[str, Act] = {
    act.name: act
    for act in (
        _act(
            "runs.start",
            OPERATOR,
            "/sources/{source}/runs",
            "kind new draft awaited pages by_hand",
            "runs.cancel",
        ),
        _act(
            "runs.start_many",
            OPERATOR,
            "/runs",
            "sources kind new draft awaited pages by_hand",
        ),
        _act("runs.probe", OPERATOR, "/sources/{source}/probe", undo="runs.cancel"),
        _act("runs.begin", OPERATOR, "/runs/{run}/begin", undo="runs.cancel"),
        _act("runs.hand_over", OPERATOR, "/runs/{run}/hand-over", undo="runs.cancel"),
        _act("runs.pause", OPERATOR, "/runs/{run}/pause", undo="runs.resume"),
        _act("runs.resume", OPERATOR, "/runs/{run}/resume", undo="runs.pause"),
        _act("runs.cancel", OPERATOR, "/runs/{run}/cancel", undo="runs.continue_from"),
        _act("runs.retry", OPERATOR, "/runs/{run}/retry"),
        _act("runs.continue_from", OPERATOR, "/runs/{run}/continue", undo="runs.cancel"),
        _act("runs.undo", ADMIN, "/runs/{run}/undo", "limit"),
        _act("sources.pause", OPERATOR, "/sources/{source}/pause", undo="sources.resume"),
        _act("sources.resume", OPERATOR, "/sources/{source}/resume", undo="sources.pause"),
        _act("sources.hold", OPERATOR, "/holds", "source", "sources.unhold"),
        _act("sources.unhold", OPERATOR, "/holds/release", "source", "sources.hold"),
        _act("sources.propose", OPERATOR, "/sources/{source}/propose", "keys owner"),
        _act("sources.own", OPERATOR, "/sources/{source}/owner", "owner"),
        _act("sources.check", OPERATOR, "/sources/{source}/check", "terms"),
        _act("sources.accept_terms", ADMIN, "/sources/{source}/accept-terms", "terms"),
        _act("sources.approve", ADMIN, "/sources/{source}/approve", "owner", "sources.retire"),
        _act("sources.trial", OPERATOR, "/sources/{source}/trial", "pages", "runs.cancel"),
        _act("sources.activate", ADMIN, "/sources/{source}/activate", undo="sources.retire"),
        _act("sources.retire", ADMIN, "/sources/{source}/retire", undo="sources.propose"),
        _act(
            "sources.legal_hold",
            OPERATOR,
            "/sources/{source}/legal-hold",
            undo="sources.legal_release",
        ),
        _act(
            "sources.legal_release",
            ADMIN,
            "/sources/{source}/legal-release",
            undo="sources.legal_hold",
        ),
        _act("jobs.retry", OPERATOR, "/jobs/{job}/retry", undo="jobs.cancel"),
        _act("jobs.cancel", OPERATOR, "/jobs/{job}/cancel"),
        _act("jobs.hold", OPERATOR, "/jobs/{job}/hold", undo="jobs.unhold"),
        _act("jobs.unhold", OPERATOR, "/jobs/{job}/unhold", undo="jobs.hold"),
        _act("breakers.open", OPERATOR, "/breakers/{name}/open", "for_s", "breakers.close"),
        _act("breakers.close", OPERATOR, "/breakers/{name}/close", undo="breakers.open"),
        _act(
            "quarantine.release",
            OPERATOR,
            "/quarantine/release",
            "source run_id stage kind cause since is_escalated job_id is_apart everything",
        ),
        _act(
            "quarantine.discard",
            ADMIN,
            "/quarantine/discard",
            "source run_id stage kind cause since is_escalated job_id is_apart everything",
        ),
        _act("quarantine.note", OPERATOR, "/quarantine/{job}/notes", "text"),
        _act("records.forget", ADMIN, "/sources/{source}/forget", "key", keeps_answer=False),
        _act("rejects.redrive", OPERATOR, "/rejects/redrive", "source run_id code since ids"),
        _act(
            "checkpoints.rewind",
            ADMIN,
            "/sources/{source}/checkpoints/rewind",
            "partition to to_run to_time force",
        ),
        _act(
            "backfills.start",
            OPERATOR,
            "/sources/{source}/backfills",
            "start end partitions missing window_s new awaited",
            "runs.cancel",
        ),
        _act("releases.create", ADMIN, "/releases", undo="releases.rollback"),
        _act("releases.promote", ADMIN, "/releases/promote", "source release", "releases.rollback"),
        _act("releases.fetch", ADMIN, "/releases/fetch", "source release"),
        _act("releases.rollback", ADMIN, "/releases/rollback", "release"),
        _act("releases.approve", OPERATOR, "/releases/{release}/approve"),
        _act("replays.start", OPERATOR, "/replays", "run source since quarantined new"),
        _act("replays.commit", ADMIN, "/replays/{run}/commit", "force", "runs.undo"),
        _act("replays.drop", OPERATOR, "/replays/{run}/drop"),
        _act("shadows.start", OPERATOR, "/sources/{source}/shadows", "release kind run"),
        _act(
            "canaries.start",
            ADMIN,
            "/canaries",
            "release source percent source_percent min_pages pages alpha failures yields rejections "
            "duplicates quality diff alerts",
            "canaries.stop",
        ),
        _act("canaries.stop", OPERATOR, "/canaries/{canary}/stop"),
        _act("canaries.widen", ADMIN, "/canaries/{canary}/widen", "force", "canaries.stop"),
        _act("canaries.end", ADMIN, "/canaries/{canary}/end"),
        _act(
            "schedules.set_cadence",
            OPERATOR,
            "/sources/{source}/cadence",
            "level",
            "schedules.undo_cadence",
        ),
        _act("schedules.undo_cadence", OPERATOR, "/sources/{source}/cadence/undo"),
        _act("alerts.acknowledge", OPERATOR, "/alerts/{alert}/acknowledge"),
        _act("alerts.snooze", OPERATOR, "/alerts/{alert}/snooze", "for_s"),
        _act("alerts.resolve", OPERATOR, "/alerts/{alert}/resolve"),
        _act("alerts.test", OPERATOR, "/alert-routes/{route}/test"),
        _act("runbooks.do", OPERATOR, "/runbooks/{runbook}/steps/{step}/do", "source"),
        _act("runbooks.skip", OPERATOR, "/runbooks/{runbook}/steps/{step}/skip", "source"),
        _act("runbooks.end", OPERATOR, "/runbooks/{runbook}/end", "source"),
        _act("hooks.redeliver", OPERATOR, "/hooks/{delivery}/redeliver"),
        _act("signals.raise_", OPERATOR, "/signals/{name}", "data source key traceparent"),
        # Tokens are made by whoever has a shell: their text must not be in an answer that is kept.
        _act("tokens.revoke", ADMIN, "/tokens/{name}/revoke"),
        _act("sites.approve", OPERATOR, "/sites/{domain}/proposals/{proposal}/approve"),
        _act("sites.reject", OPERATOR, "/sites/{domain}/proposals/{proposal}/reject"),
        _act("cells.place", ADMIN, "/sources/{source}/cell/place", "to", "cells.move"),
        _act("cells.move", ADMIN, "/sources/{source}/cell/move", "to drain_s", "cells.move"),
        _act("store.migrate", ADMIN, "/store/migrate"),
        _act("store.rename", ADMIN, "/store/rename"),
        _act("sql.install", ADMIN, "/sql/install", "schema", "sql.remove"),
        _act("sql.remove", ADMIN, "/sql/remove", undo="sql.install"),
    )
}
