"""Runs that follow others, and runs that a release performs: shadows, canaries and their controls."""

from __future__ import annotations

from penstock.jobs.run import RunState
from penstock.store.noun import Noun
from penstock.store.runs import Runs


class Followers(Noun):
    """What begins by itself when another run has ended."""

    def start(self, actor: str) -> list[int]:
        """Start what follows a run that has ended; what follows a cancelled one is cancelled."""
        runs, started = Runs(self._db), []
        for run_id, state in self._db.json("followers"):
            if state == RunState.CANCELLED:
                runs.cancel(run_id, actor, "the run before it was cancelled")
            elif runs.start_draft(run_id, actor, "the run before it has ended"):
                started.append(run_id)
        return started

    def are_due(self) -> bool:
        """Whether a run that has ended has one that follows it, which has not begun."""
        return bool(self._db.json("followers"))

    def are_open(self, run_id: int) -> bool:
        """Whether something that follows this run, or waits to, has not ended."""
        return bool(self._db.value("open_followers", run_id=run_id))

    def by_releases(self, limit: int = 100) -> list[tuple[int, str]]:
        """Active runs that releases perform, and which; the oldest first."""
        return [(run_id, name) for run_id, name in self._db.json("runs_by_releases", limit=limit)]
