"""Shadows: a live run, and a release that processes the same pages beside it, staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.noun import Noun, who
from penstock.app.trial_releases import plans_to_try, refuse_stream, release_to_try
from penstock.app.unfinished import unfinished_runs
from penstock.app.views.canaries import ShadowView
from penstock.app.views.runs import run_view
from penstock.errors import Refused, UsageError
from penstock.jobs.replay import replay_plan
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.run_policy import policy_of

if TYPE_CHECKING:
    from penstock.store.rows import RunRow

KINDS = (RunKind.FULL, RunKind.INCREMENTAL)


class Shadows(Noun):
    """Trying a release on live traffic: pages are fetched once, and nothing that it saves is live."""

    def start(
        self,
        source: str,
        release: str,
        kind: str | None = None,
        *,
        run: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> ShadowView:
        """Queue a live run of a source and a shadow of it: the release takes the same pages, and is staged.

        The shadow begins when the live run has ended, and is a replay: `replays.diff` shows what it would
        change, `replays.commit` and `replays.drop` decide. A live run that has not ended continues. `run`
        takes a run that is there already, and nothing is fetched.
        """
        found = self._project.source(source)
        name = release_to_try(self._project, release)
        plans = plans_to_try(self._project, name, [found.key])[found.key]
        refuse_stream(found.key, plans)
        live = self._live(found.key, kind, run, actor, reason)
        options = RunOptions(
            is_staged=True, by_release=name, follows=True, params=live.options.params
        )
        if live.options.params:
            raise Refused(
                f"run {live.id} has params of its own, which a release's version does not have",
                "shadow a run without them",
            )
        run_id, is_new = self._store.runs.start(
            live.source_id,
            RunKind.REPLAY,
            replay_plan(plans.plans[live.kind]),
            plans.version,
            key=f"shadow:{live.id}:{name}",
            actor=who(actor),
            reason=reason,
            options=options,
            of_run_id=live.id,
            is_draft=True,
            for_drains=True,
        )
        # Of a run that has ended already it begins at once, also where no workers are there to see it.
        self._store.followers.start(who(actor))
        now = self._store.now()
        shadow = self._project.require_run(run_id)
        return ShadowView(
            release=name, live=run_view(live, now), shadow=run_view(shadow, now), is_new=is_new
        )

    def _live(
        self, source: str, kind: str | None, run: int | None, actor: str | None, reason: str
    ) -> RunRow:
        if run is not None:
            return self._known(source, kind, run)
        unfinished = self._unfinished(source, kind)
        if unfinished is not None:
            return unfinished
        begun = self._project.runs.start(source, kind, awaited=True, actor=actor, reason=reason).run
        if begun is None:
            raise Refused(f"{source} can't run now")
        if begun.kind not in KINDS:
            self._project.runs.cancel(begun.id, actor=actor, reason="it can't be shadowed")
            raise UsageError(f"a run of kind {begun.kind} can't be shadowed", "full or incremental")
        return self._project.require_run(begun.id)

    def _unfinished(self, source: str, kind: str | None) -> RunRow | None:
        _ = self._project.source_ids
        wanted = kind or self._project.source(source).usual_kind
        if wanted not in KINDS:
            raise UsageError(f"a run of kind {wanted} can't be shadowed", "full or incremental")
        rows = unfinished_runs(self._store, source)
        return next((row for row in rows if row.kind == wanted and not row.for_drains), None)

    def _known(self, source: str, kind: str | None, run: int) -> RunRow:
        row = self._project.require_run(run)
        if row.source != source:
            raise UsageError(f"run {run} is of {row.source}, not of {source}")
        if kind is not None and kind != row.kind:
            raise UsageError(f"run {run} is of kind {row.kind}, not {kind}")
        policy = policy_of(row.kind, row.options)
        if row.kind not in KINDS or not policy.fetches:
            raise Refused(f"run {run} is {policy.words}; it has no pages of its own to shadow")
        return row
