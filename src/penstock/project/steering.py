"""Steering: pause, resume, cancel, hold, retry, quarantine; and why something does not start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from penstock.errors import Refused, UsageError, nearest
from penstock.gates.explaining import GateSeen
from penstock.gates.terms import hours_of
from penstock.project.opened import Opened, default_actor
from penstock.settings import normalise_source
from penstock.store.entries import EntryFilter
from penstock.store.explaining import Outlook
from penstock.store.rows import RunRow
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

    def hold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """Maintenance: start nothing of a source, or of the whole project; False if it is held."""
        return self.store.hold(self._scope(name), actor or default_actor(), reason)

    def unhold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """End it: all is as it was. False if it was not held."""
        return self.store.unhold(self._scope(name), actor or default_actor(), reason)

    def hold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Set one queued or waiting job aside; False if it is held."""
        job = self.require_job(job_id)
        if self.store.hold_job(job_id, actor or default_actor(), reason):
            return True
        if job.state != "held":
            raise Refused(f"job {job_id} is {job.state}; only a queued or waiting job can be held")
        return False

    def unhold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Put it back to where it was; False if it was not held."""
        self.require_job(job_id)
        return self.store.unhold_job(job_id, actor or default_actor(), reason)

    def pause(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """Pause a source (by name) or a run (by number); False if it is paused already."""
        if isinstance(target, int):
            run = self.require_run(target)
            if run.is_ended or run.state == "draft":
                raise Refused(f"run {target} is {run.state}; only an active run can be paused")
            return self.store.pause_run(target, actor or default_actor(), reason)
        return self.store.pause_source(self._id_of(target), actor or default_actor(), reason)

    def resume(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """Resume a source or a run; False if it is not paused. A degraded source is taken for healthy."""
        if isinstance(target, int):
            run = self.require_run(target)
            if run.state in ("partial", "failed", "cancelled"):
                raise Refused(
                    f"run {target} has ended: it is {run.state}",
                    f"what is left of it: penstock resume {target} --from-checkpoint",
                )
            return self.store.resume_run(target, actor or default_actor(), reason)
        source_id, who = self._id_of(target), actor or default_actor()
        is_recovered = self.store.recover_source(source_id, who, reason)
        if is_recovered:
            self.store.start_recovered(who)
        return self.store.resume_source(source_id, who, reason) or is_recovered

    def cancel(self, run_id: int, actor: str | None = None, reason: str = "") -> Iterator[int]:
        """Cancel a run now; the answer sweeps its queued jobs, and tells how many in each batch.

        Upkeep does it for whoever does not go through the answer.
        """
        run = self.require_run(run_id)
        if not self.store.cancel_run(run_id, actor or default_actor(), reason):
            raise Refused(f"run {run_id} is {run.state} already")
        return iter(self.store.sweep_cancelled, 0)

    def cancel_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        job = self.require_job(job_id)
        if job.unit == "run" and job.key == "root":
            raise Refused(
                f"job {job_id} is the first job of run {job.run_id}",
                f"cancel the run: penstock cancel {job.run_id}",
            )
        return self.store.cancel_job(job_id, actor or default_actor(), reason)

    def retry_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Queue a quarantined or waiting job again, with fresh tries."""
        job = self.require_job(job_id)
        self._refuse_opening(job.run_id)
        return self.store.retry_job(job_id, actor or default_actor(), reason)

    def retry_failed(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """Queue a run's quarantined jobs again, and only those."""
        self._refuse_opening(run_id)
        return self.store.retry_failed(run_id, actor or default_actor(), reason)

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
            self._refuse_degraded_end(self.require_run(run_id))
            return
        for key in (row.key for row in self.store.sources() if row.degraded_at is not None):
            is_meant = wanted.source in (None, key) and key in self.settings.sources
            if is_meant and self.store.count_entries(replace(wanted, source=key)):
                self._refuse_degraded(self.source(key))

    def discard(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """Give up what is in quarantine; yields how many each batch discarded."""
        return self.store.discard_entries(wanted, actor or default_actor(), reason)

    def note(self, job_id: int, text: str, actor: str | None = None) -> None:
        """Write something about a quarantined job."""
        self.store.note_entry(job_id, text, actor or default_actor())

    def _refuse_opening(self, run_id: int) -> None:
        """Say why nothing of a run can be tried again now, if it can't."""
        run = self.require_run(run_id)
        if run.state == "cancelled":
            raise Refused(f"run {run_id} was cancelled; start a new run instead")
        self._refuse_degraded_end(run)

    def _refuse_degraded_end(self, run: RunRow) -> None:
        """An ended run of a degraded source stays so; one that has not ended goes on anyway."""
        if run.is_ended:
            self._refuse_degraded_run(run)

    def _scope(self, name: str | None) -> str:
        """The scope of a hold: '' for everything, else a source's key."""
        if name is None:
            return ""
        key = self.source(name).key
        _ = self.source_ids  # a source that is new in the file becomes known to the store
        return key
