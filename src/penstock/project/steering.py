"""Why something does not start."""

from __future__ import annotations

from msgspec import structs

from penstock.errors import UsageError, nearest
from penstock.gates.explaining import GateSeen
from penstock.gates.outlook import Outlook
from penstock.gates.terms import hours_of
from penstock.project.opened import Opened
from penstock.settings import normalise_source
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
