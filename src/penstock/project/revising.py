"""Judging rejects again."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace

from penstock.errors import Refused
from penstock.jobs.redrive import redrive_plan
from penstock.pipeline.version import version_of
from penstock.project.opened import Opened, default_actor
from penstock.store.rejected import Redriven, RejectFilter


class Revising(Opened):
    """The verbs that change what earlier runs have left."""

    def redrive(
        self, name: str, wanted: RejectFilter, actor: str | None = None, reason: str = ""
    ) -> Redriven:
        """Judge rejected items of a source again, with today's pipeline, in a run of their own."""
        source = self.source(name)
        graph = self.graph(source)
        wanted = replace(wanted, source_id=self.source_ids[source.key], open_only=True)
        rejecting = set(self.store.stages_of_rejects(wanted))
        plan = redrive_plan(graph.plan(source.priority), rejecting)
        redriven = plan.stages and self.store.redrive(
            self.source_ids[source.key],
            plan,
            version_of(graph, source),
            wanted,
            key=f"redrive:{uuid.uuid4().hex}",
            actor=actor or default_actor(),
            reason=reason,
        )
        if not redriven:
            known = ", ".join(stage.name for stage in graph.stages)
            raise Refused(
                f"nothing to judge again: {source.key} has no reject of a stage that there is today",
                f"its pipeline has {known}" + _rejected_by(rejecting),
            )
        return redriven


def _rejected_by(stages: Collection[str]) -> str:
    return f"; it was rejected by {', '.join(sorted(stages))}" if stages else ""
