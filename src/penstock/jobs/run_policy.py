"""What each kind of run may do, and what its end counts for: one policy for each kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from penstock.jobs.effects import Effects
from penstock.jobs.effects.effects import dry, stage
from penstock.jobs.job import Unit
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions

# What a job takes up of its source while it runs, as lanes count it.
Slot = Literal["page", "background", "candidate"]
# By so much the jobs of background runs come behind those of live runs that are enqueued at the same time.
# One that has waited longer is not overtaken, so that a source which is always busy still comes to its past.
BACKGROUND_LATER_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """All that the code asks of a run's kind. The defaults are those of a full run."""

    # What it is, in words.
    words: str

    # Pages: false is from snapshots, and nothing goes out to the network.
    fetches: bool = True
    # Pages that are as they were when they were extracted last are left alone.
    skips_unchanged: bool = False
    # What a site says of its pages is remembered, and which pages are done with.
    notes_announced: bool = True
    marks_pages_done: bool = True

    # Effects: what of them is committed, and how.
    commits: Literal["live", "staged", "redriven", "dry"] = "live"
    # False: it has cursors of its own; what it looks at again must not move the live ones.
    moves_checkpoints: bool = True
    covers: bool = True
    announces_moments: bool = True
    verifies_schemas: bool = True

    # Plan: what it begins with. Items and nothing are put there by whoever starts it.
    begins_with: Literal["steps", "streams", "windows", "pages", "items", "nothing"] = "steps"
    gathers: bool = True
    # One item is taken the whole way, and no more.
    is_one_item: bool = False
    # Its stages may not grow beyond their bounds.
    is_bounded: bool = True
    # Its jobs are performed with the version of the pipeline that it was started with, or not at all.
    pins_version: bool = False

    # Another run may do what it has left undone; and need not do again what it has done.
    can_be_continued: bool = True
    skips_what_was_done: bool = True

    # It comes behind the live work of its source, and what it brings does not get stale.
    is_background: bool = False
    # What its jobs take up of their source's lane, beside those of candidates.
    slot: Slot = "page"
    runs_when_degraded: bool = False

    # A failed job is tried again; a failure says something of the source.
    retries: bool = True
    blames_source: bool = True

    # Its end: what it counts for.
    health: Literal["run", "probe", "none"] = "run"
    has_deadline: bool = True
    keeps_fresh: bool = True
    # It is empty if nothing came of it; there are runs like it, of which about as much comes each time.
    can_be_empty: bool = True
    is_compared: bool = True
    # Schedules with `after` wait for it; its end is a signal.
    starts_others: bool = True
    signals_end: bool = True

    @property
    def is_probe(self) -> bool:
        """It looks whether a source is well."""
        return self.health == "probe"

    @property
    def is_staged(self) -> bool:
        """What it saves waits for a person to commit or drop it."""
        return self.commits == "staged"

    @property
    def later_s(self) -> float:
        return BACKGROUND_LATER_S if self.is_background else 0.0

    def committed(self, effects: Effects) -> Effects:
        """What a run of this kind commits of an attempt's effects."""
        if self.commits == "dry":
            return dry(effects)
        if self.commits != "live":
            stage(effects, is_redrive=self.commits == "redriven")
        return effects


FULL = RunPolicy(words="a full run")
INCREMENTAL = replace(FULL, words="an incremental run", skips_unchanged=True)
STREAM = RunPolicy(
    words="a stream",
    begins_with="streams",
    notes_announced=False,
    marks_pages_done=False,
    announces_moments=False,
    health="none",
    has_deadline=False,
    keeps_fresh=False,
    can_be_empty=False,
    is_compared=False,
    starts_others=False,
)
BACKFILL = RunPolicy(
    words="a backfill",
    begins_with="windows",
    moves_checkpoints=False,
    announces_moments=False,
    is_background=True,
    slot="background",
    health="none",
    has_deadline=False,
    keeps_fresh=False,
    is_compared=False,
    starts_others=False,
)
PROBE = RunPolicy(
    words="a probe",
    notes_announced=False,
    marks_pages_done=False,
    commits="dry",
    moves_checkpoints=False,
    covers=False,
    announces_moments=False,
    verifies_schemas=False,
    gathers=False,
    is_one_item=True,
    runs_when_degraded=True,
    retries=False,
    health="probe",
    keeps_fresh=False,
    can_be_empty=False,
    is_compared=False,
    starts_others=False,
    signals_end=False,
)
# It saves nothing live, like a probe, and more than one item is taken the whole way.
TRIAL = replace(
    PROBE,
    words="a trial",
    commits="staged",
    is_one_item=False,
    retries=True,
    can_be_continued=False,
)
REPLAY = RunPolicy(
    words="a replay",
    begins_with="pages",
    fetches=False,
    notes_announced=False,
    commits="staged",
    moves_checkpoints=False,
    covers=False,
    announces_moments=False,
    verifies_schemas=False,
    is_bounded=False,
    pins_version=True,
    skips_what_was_done=False,
    is_background=True,
    slot="candidate",
    runs_when_degraded=True,
    blames_source=False,
    health="none",
    has_deadline=False,
    keeps_fresh=False,
    can_be_empty=False,
    is_compared=False,
    starts_others=False,
    signals_end=False,
)
# Its jobs are items that were rejected. What it saves is meant to be saved: something was mended.
REDRIVE = replace(
    REPLAY,
    words="a redrive",
    begins_with="items",
    commits="redriven",
    marks_pages_done=False,
    pins_version=False,
    can_be_continued=False,
)
# It brings back what the records were before another run; it has no jobs.
UNDO = replace(
    REPLAY,
    words="an undo",
    begins_with="nothing",
    marks_pages_done=False,
    pins_version=False,
    can_be_continued=False,
)
# The pages that a live run has left to the release of a canary. What it saves is live, as a backfill's is.
CANARY = replace(
    BACKFILL,
    words="a canary",
    begins_with="pages",
    gathers=False,
    is_bounded=False,
    pins_version=True,
    can_be_continued=False,
    skips_what_was_done=False,
)
# The same pages by the project's own files, after a canary was stopped.
CATCH_UP = replace(CANARY, words="a catch-up", pins_version=False)
POLICIES: dict[RunKind, RunPolicy] = {
    RunKind.FULL: FULL,
    RunKind.INCREMENTAL: INCREMENTAL,
    RunKind.BACKFILL: BACKFILL,
    RunKind.REPLAY: REPLAY,
    RunKind.PROBE: PROBE,
    RunKind.STREAM: STREAM,
}
# What redrives and undos answer as replays do, and canaries as backfills do, so that it can be asked of the
# kind alone.
ASKED_OF_KIND = (
    "fetches",
    "moves_checkpoints",
    "covers",
    "is_bounded",
    "is_background",
    "slot",
    "runs_when_degraded",
    "blames_source",
    "health",
    "has_deadline",
    "keeps_fresh",
    "can_be_empty",
    "is_compared",
    "starts_others",
    "signals_end",
)


def kind_to_run(kind: RunKind | str, *, is_degraded: bool) -> RunKind:
    """The kind of run that a schedule starts: a degraded source is only probed."""
    if is_degraded and not policy_of(kind).runs_when_degraded:
        return RunKind.PROBE
    return RunKind(kind)


def slot_of(unit: Unit, kind: RunKind | str) -> Slot:
    """What a job takes up: a replay is served from snapshots, and never touches the source."""
    return "candidate" if unit == "candidate" else policy_of(kind).slot


def policy_of(kind: RunKind | str, options: RunOptions = NO_OPTIONS) -> RunPolicy:
    """The policy of a run; without its options, what redrives and undos answer as replays do."""
    if options.is_trial:
        return TRIAL
    if options.takes is not None:
        return CANARY if options.by_release else CATCH_UP
    if options.is_redrive:
        return REDRIVE
    if options.is_undo:
        return UNDO
    return POLICIES[kind]  # type: ignore[index]  # a kind is its own name
