"""Quarantine, and why something does not start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from penstock.errors import UsageError, nearest
from penstock.gates.explaining import GateSeen
from penstock.gates.outlook import Outlook
from penstock.gates.terms import hours_of
from penstock.project.opened import Opened, default_actor
from penstock.settings import normalise_source
from penstock.store.entries import EntryFilter
from penstock.store.store import Capacity


class Steering(Opened):
    """The verbs that an operator has over work that there is."""

    def explain(
        self, name: str | None = None, *, run: int | None = None, job: int | None = None
    ) -> Outlook:
        """What stands between a source, a run or a job and its next start, and whether it would start now."""
        limits, worker = self.limits(), self.settings.worker
        source = None if name is None else normalise_source(name)
        if name is not None and all(row.key != source for row in self.store.sources()):
            raise UsageError(
                f"{self.settings.file.name} has no source {name!r}",
                nearest(name, self.settings.sources),
            )
        whole = Capacity(worker.slots, worker.cpu, float(worker.memory_mb))
        hours = hours_of(self.settings)
        return self._with_variables(
            self.store.explain(limits, whole, source=source, run_id=run, job_id=job, hours=hours)
        )

    def _with_variables(self, outlook: Outlook) -> Outlook:
        """With the gate that only the configuration knows: no worker loads what lacks a variable."""
        source = self.settings.sources.get(outlook.source)
        unset = (*self.settings.needed_to_work(), *(source.unset if source is not None else ()))
        if not unset or outlook.stands in ("running", "ended"):
            return outlook
        name = unset[0].name
        command = f"set {name}, in the environment or in .env"
        gate = GateSeen("variables", False, f"{name} is not set", command=command)
        return structs.replace(
            outlook,
            would_start=False,
            stands="person",
            gate=gate.name,
            opens_at=None,
            command=command,
            gates=[gate, *outlook.gates],
        )

    def release(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """Queue what is in quarantine again, with fresh tries; yields how many each batch released."""
        self.refuse_release(wanted)
        return self.store.release_entries(wanted, actor or default_actor(), reason)

    def refuse_release(self, wanted: EntryFilter) -> None:
        """Say why these entries can't be released now, if they can't: some are of a degraded source."""
        run_id = wanted.run_id
        if wanted.job_id is not None:
            run_id = self.require_job(wanted.job_id).run_id
        if run_id is not None:
            self.refuse_degraded_end(self.require_run(run_id))
            return
        for key in (row.key for row in self.store.sources() if row.degraded_at is not None):
            is_meant = wanted.source in (None, key) and key in self.settings.sources
            if is_meant and self.store.count_entries(replace(wanted, source=key)):
                self.refuse_degraded(self.source(key))

    def discard(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """Give up what is in quarantine; yields how many each batch discarded."""
        return self.store.discard_entries(wanted, actor or default_actor(), reason)

    def note(self, job_id: int, text: str, actor: str | None = None) -> None:
        """Write something about a quarantined job."""
        self.store.note_entry(job_id, text, actor or default_actor())
