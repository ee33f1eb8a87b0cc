"""What front ends say of each act: its button, what it does, what it asks for, and the equal command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A filter's fields as the flags of `penstock quarantine` and `penstock rejects`.
FLAGS = {
    "source": "--source",
    "run_id": "--run",
    "stage": "--stage",
    "kind": "--kind",
    "cause": "--cause",
    "job_id": "--job",
    "code": "--code",
}


@dataclass(frozen=True, slots=True)
class ActWords:
    """`command` has the act's parameters in braces; `flags` are appended where they are given."""

    label: str
    effect: str
    command: str
    asks: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    is_grave: bool = False
    # Whether the command has --reason.
    takes_reason: bool = True


WORDS: dict[str, ActWords] = {
    "runs.start": ActWords(
        "Run now",
        "A run is queued. If one like it has not ended, that one continues.",
        "penstock run {source} --detach",
        asks=("kind",),
    ),
    "runs.start_many": ActWords(
        "Run all sources",
        "A run of every source that can have one is queued.",
        "penstock run --all --detach",
        asks=("kind",),
    ),
    "backfills.start": ActWords(
        "Backfill",
        "A range of the source's history is fetched, in units of one window for each partition. "
        "Live checkpoints do not move.",
        "penstock backfill {source} --from {start} --to {end} --detach --yes",
        asks=("start", "end"),
    ),
    "runs.probe": ActWords(
        "Probe",
        "One item goes through the whole pipeline, also of a degraded source.",
        "penstock run {source} --kind probe --detach",
    ),
    "runs.begin": ActWords("Start the draft", "The draft is queued.", "penstock start {run}"),
    "runs.hand_over": ActWords(
        "Hand over to workers",
        "Workers perform what is left of it; drains of an orchestrator no longer do.",
        "penstock start {run} --hand-over",
    ),
    "runs.pause": ActWords(
        "Pause", "No more of its jobs start; what is running finishes.", "penstock pause {run}"
    ),
    "runs.resume": ActWords("Resume", "Its jobs start again.", "penstock resume {run}"),
    "runs.cancel": ActWords(
        "Cancel",
        "The run ends now. Its queued jobs are cancelled; what it saved stays.",
        "penstock cancel {run} --yes",
        is_grave=True,
    ),
    "runs.retry": ActWords(
        "Retry failed only",
        "Its quarantined jobs are queued again, with all their tries; finished work is not repeated.",
        "penstock retry {run} --failed",
    ),
    "runs.continue_from": ActWords(
        "Resume from checkpoint",
        "A new run does what is left of it; finished work is not repeated.",
        "penstock resume {run} --from-checkpoint",
    ),
    "runs.undo": ActWords(
        "Undo the run",
        "Records return to what they were before the run, except those that later runs changed.",
        "penstock undo {run} --yes",
        is_grave=True,
    ),
    "sources.pause": ActWords(
        "Pause",
        "No more of its jobs start; what is running finishes, and schedules keep creating runs.",
        "penstock pause {source}",
    ),
    "sources.resume": ActWords(
        "Resume",
        "Its jobs start again; if it was degraded, it counts as healthy.",
        "penstock resume {source}",
    ),
    "sources.hold": ActWords(
        "Hold", "Maintenance: no jobs start until the hold ends.", "penstock hold {source}"
    ),
    "sources.unhold": ActWords(
        "End the hold", "Maintenance ends, and jobs start again.", "penstock unhold {source}"
    ),
    "sources.propose": ActWords(
        "Propose",
        "The source is proposed. Nothing of it is fetched before it is checked, approved and tried.",
        "penstock sources propose {source}",
    ),
    "sources.own": ActWords(
        "Set the owner",
        "This person or team is responsible for the source.",
        "penstock sources own {source} {owner}",
        asks=("owner",),
    ),
    "sources.check": ActWords(
        "Check robots.txt and terms",
        "robots.txt and the terms are read now. Terms that have changed stop the source.",
        "penstock sources check {source}",
    ),
    "sources.accept_terms": ActWords(
        "Accept the terms",
        "The terms, as they are now, allow what is done with the source.",
        "penstock sources check {source} --accept-terms",
        is_grave=True,
    ),
    "sources.approve": ActWords(
        "Approve for a trial",
        "Trial runs may fetch the source. If it is not in penstock.yaml yet, it is written there.",
        "penstock sources approve {source}",
        is_grave=True,
    ),
    "sources.trial": ActWords(
        "Start a trial",
        "A limited run. Its records are staged, and nobody else reads them.",
        "penstock sources trial {source} --detach",
    ),
    "sources.activate": ActWords(
        "Activate",
        "The source is ingested from now on, by its schedule.",
        "penstock sources activate {source} --yes",
        is_grave=True,
    ),
    "sources.retire": ActWords(
        "Retire",
        "Its unfinished runs are cancelled, and nothing more of it starts. Its records stay.",
        "penstock sources retire {source} --yes",
        is_grave=True,
    ),
    "sources.legal_hold": ActWords(
        "Legal hold",
        "Everything of the source stops at once, running attempts too.",
        "penstock sources legal-hold {source} --yes",
        is_grave=True,
    ),
    "sources.legal_release": ActWords(
        "End the legal hold",
        "What was stopped continues.",
        "penstock sources legal-release {source} --yes",
        is_grave=True,
    ),
    "jobs.retry": ActWords(
        "Retry",
        "The job is queued again with all its tries; an ended run opens again.",
        "penstock retry --job {job}",
    ),
    "jobs.cancel": ActWords(
        "Cancel",
        "The job is cancelled for good; the rest of its run continues.",
        "penstock cancel --job {job} --yes",
        is_grave=True,
    ),
    "jobs.hold": ActWords(
        "Hold", "The job waits until it is released.", "penstock hold --job {job}"
    ),
    "jobs.unhold": ActWords(
        "End the hold", "The job returns to its former state.", "penstock unhold --job {job}"
    ),
    "breakers.open": ActWords(
        "Open the breaker",
        "No requests are sent to it for this long; jobs wait and lose no try.",
        "penstock breaker open {name} --for {for_s} --yes",
        asks=("for_s",),
    ),
    "breakers.close": ActWords(
        "Close the breaker", "Requests are sent to it again.", "penstock breaker close {name}"
    ),
    "quarantine.release": ActWords(
        "Release",
        "These jobs are queued again, with all their tries; ended runs open again.",
        "penstock quarantine release --yes",
        flags=tuple(FLAGS),
    ),
    "quarantine.discard": ActWords(
        "Discard",
        "These jobs are cancelled for good. Records that were saved before stay.",
        "penstock quarantine discard --yes",
        flags=tuple(FLAGS),
        is_grave=True,
    ),
    "quarantine.note": ActWords(
        "Add a note",
        "The note is for whoever looks at this entry next.",
        "penstock quarantine note {job} {text}",
        asks=("text",),
        takes_reason=False,
    ),
    "records.forget": ActWords(
        "Erase for good",
        "Everything that is stored under this key of the source is erased: records with all versions, "
        "pages, jobs, rejects and log lines. Nothing brings it back.",
        "penstock forget --source {source} --key {key} --yes",
        is_grave=True,
    ),
    "releases.create": ActWords(
        "Make a release",
        "The folder as it is becomes a release, and the environment runs it.",
        "penstock release create",
    ),
    "releases.promote": ActWords(
        "Promote",
        "This environment runs what the other one runs, once its workers have the files.",
        "penstock release promote --from {source} --yes",
        asks=("source",),
    ),
    "releases.fetch": ActWords(
        "Fetch a release",
        "A release of another environment is copied here, to be tried as a shadow or a canary. Nothing runs "
        "it by that.",
        "penstock release fetch --from {source}",
        asks=("source",),
        flags=("release",),
    ),
    "releases.rollback": ActWords(
        "Roll back",
        "The environment runs the release before again, once its workers have the files.",
        "penstock release rollback --yes",
        flags=("release",),
    ),
    "releases.approve": ActWords(
        "Approve",
        "You approve the release for this environment; a promotion uses approvals up.",
        "penstock release approve {release}",
    ),
    "rejects.redrive": ActWords(
        "Redrive rejects",
        "Rejected items go through the pipeline again, from the stage that rejected them.",
        "penstock rejects redrive --yes",
        flags=tuple(FLAGS),
    ),
    "checkpoints.rewind": ActWords(
        "Rewind",
        "The checkpoint moves back to where it was then: the next run fetches again what came after.",
        "penstock checkpoint rewind {source} {partition} --to-time {to_time} --yes",
        asks=("to_time",),
        is_grave=True,
    ),
    "replays.start": ActWords(
        "Replay",
        "The current pipeline runs on the stored pages; its changes wait for your decision.",
        "penstock replay {run} --detach",
    ),
    "replays.commit": ActWords(
        "Commit the replay",
        "Its changes become the records' new versions.",
        "penstock replay {run} --commit --yes",
    ),
    "replays.drop": ActWords(
        "Drop the replay",
        "Its changes are thrown away; no record changes.",
        "penstock replay {run} --drop --yes",
        is_grave=True,
    ),
    "shadows.start": ActWords(
        "Shadow",
        "A live run starts, and the release processes the same pages when it has ended; its changes wait for "
        "your decision.",
        "penstock shadow {source} --release {release} --detach",
        asks=("release",),
    ),
    "canaries.start": ActWords(
        "Start a canary",
        "The release performs a share of the pages, or of the sources, from the next run on.",
        "penstock canary --release {release} --percent {percent} --yes",
        asks=("release", "percent"),
        is_grave=True,
    ),
    "canaries.stop": ActWords(
        "Stop and roll back",
        "The release is given nothing new, what it saved is undone, and the project's own files do "
        "that work.",
        "penstock canary {canary} --stop --yes",
        is_grave=True,
    ),
    "canaries.widen": ActWords(
        "Widen to all",
        "The release performs all runs of the canary's sources.",
        "penstock canary {canary} --full --yes",
        is_grave=True,
    ),
    "canaries.end": ActWords(
        "End, keep the records",
        "The release is given nothing new; what it saved stays.",
        "penstock canary {canary} --end --yes",
    ),
    "schedules.set_cadence": ActWords(
        "Set the cadence",
        "The source keeps this class until it moves by itself again.",
        "penstock schedules cadence {source} --set {level}",
        asks=("level",),
    ),
    "schedules.undo_cadence": ActWords(
        "Undo the cadence",
        "The source has the class again that it had before.",
        "penstock schedules cadence {source} --undo",
    ),
    "alerts.acknowledge": ActWords(
        "Acknowledge",
        "You are handling it; routes are not notified of it again until it is resolved.",
        "penstock alerts ack {alert}",
    ),
    "alerts.snooze": ActWords(
        "Snooze",
        "Routes hear no more of it for this long; if it still stands then, they are reminded.",
        "penstock alerts snooze {alert} --for {for_s}",
        asks=("for_s",),
    ),
    "alerts.resolve": ActWords(
        "Resolve",
        "The alert ends. It opens again only after its condition has ended once.",
        "penstock alerts resolve {alert}",
    ),
    "alerts.test": ActWords(
        "Send a test",
        "A test message goes over the route now, whatever its conditions and quiet hours say.",
        "penstock alerts test {route}",
    ),
    "signals.raise_": ActWords(
        "Raise the signal",
        "Each schedule that waits for it starts one run.",
        "penstock signal {name}",
        takes_reason=False,
    ),
    "tokens.revoke": ActWords(
        "Revoke the token",
        "Whoever has it is refused from now on.",
        "penstock token revoke {name}",
        is_grave=True,
    ),
    "sites.approve": ActWords(
        "Approve the proposal",
        "The schema of the site changes; extraction continues when the validator has confirmed it.",
        "penstock sites approve {domain} {proposal} --yes",
    ),
    "sites.reject": ActWords(
        "Reject the proposal",
        "The proposal is closed, and the schema of the site stays as it is.",
        "penstock sites reject {domain} {proposal}",
    ),
    "cells.place": ActWords(
        "Place in a cell",
        "The source, which has never run, is performed by the workers of this cell from now on.",
        "penstock cells place {source} --yes",
        flags=("to",),
        is_grave=True,
    ),
    "cells.move": ActWords(
        "Move to another cell",
        "The source stops, its running jobs finish, and all that it has moves to the other cell's database.",
        "penstock cells move {source} --to {to} --yes",
        asks=("to",),
        is_grave=True,
    ),
    "store.migrate": ActWords(
        "Migrate the database",
        "The schema becomes the one that this version knows.",
        "penstock db migrate --yes",
    ),
    "store.rename": ActWords(
        "Rename the database",
        "The database takes over the project's name of penstock.yaml.",
        "penstock db rename --yes",
    ),
    "sql.install": ActWords(
        "Make the views for SQL",
        "Views that programs read, and update to have something done, are made or made again.",
        "penstock db sql install",
    ),
    "sql.remove": ActWords(
        "Drop the views for SQL",
        "Programs that use the views fail from now on.",
        "penstock db sql remove --yes",
        is_grave=True,
    ),
    "runbooks.do": ActWords(
        "Do the step",
        "The step is done on live data, and the journal says so.",
        "penstock runbook {runbook} {source} --step {step} --yes",
    ),
    "runbooks.skip": ActWords(
        "Skip the step",
        "The step is left out, and the journal says why.",
        "penstock runbook {runbook} {source} --skip {step}",
    ),
    "runbooks.end": ActWords(
        "End the runbook",
        "This execution ends: recovered if the fault is gone, abandoned otherwise.",
        "penstock runbook {runbook} {source} --end",
    ),
    "hooks.redeliver": ActWords(
        "Deliver again",
        "The delivery is sent again now, with all its attempts.",
        "penstock hooks retry {delivery}",
    ),
}


def label_of(name: str) -> str:
    """What the button of an act says."""
    return WORDS[name].label if name in WORDS else name.replace(".", " ").replace("_", " ").strip()


def command_of(name: str, given: Mapping[str, Any], reason: str) -> str:
    """The command that does the same."""
    words = WORDS.get(name)
    if words is None:
        return ""
    shown = {key: shlex.quote(str(value)) for key, value in given.items()}
    parts = [words.command.format_map(_Known(shown)).replace(" {}", "")]
    # What is no flag of the command stands by its place.
    parts += [
        f"{FLAGS.get(each, '')} {shown[each]}".strip() for each in words.flags if each in shown
    ]
    if given.get("everything"):
        parts.append("--all")
    if given.get("kind") and "kind" in words.asks:
        parts.append(f"--kind {shown['kind']}")
    if words.takes_reason and reason:
        parts.append(f"--reason {shlex.quote(reason)}")
    return " ".join(parts)


class _Known(dict[str, str]):
    """What is not given yet is named in capitals, as in the help of a command."""

    def __missing__(self, key: str) -> str:
        return "" if key == "source" else key.upper()
