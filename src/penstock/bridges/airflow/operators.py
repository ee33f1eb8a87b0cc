"""Operators: what each task of a DAG does. They hold texts, and nothing that is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.bridges.airflow.installed import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    BaseOperator,
)
from penstock.bridges.airflow.terms import (
    ACTOR,
    BACKFILL,
    attempt_of,
    failing_as_airflow,
    interval_of,
    reason_of,
    refuse_airflow_backfill,
    run_key,
)
from penstock.bridges.builder_steps import builder_job, run_builder_step
from penstock.bridges.drains import Partial, StageEnd, drain_stage, prepare_run, stop_drains
from penstock.bridges.places import Place
from penstock.bridges.quality import DESCRIPTIONS, CollectionState, states_of

if TYPE_CHECKING:
    from airflow.sdk import Context

# Airflow kills a task five seconds after it has told it to stop.
GRACE_S = 2.0


class PrepareRunOperator(BaseOperator):
    """Prepare the run of this DAG run, or find it; answers with its number."""

    template_fields: Sequence[str] = ("run_params",)
    ui_color = "#e8f1f8"

    def __init__(
        self,
        *,
        place: Place,
        source: str,
        kind: str | None = None,
        run_params: Mapping[str, Any] | None = None,
        pages: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.place = place
        self.source = source
        self.kind = kind
        self.run_params = dict(run_params or {})
        self.pages = pages

    def execute(self, context: Context) -> int:
        refuse_airflow_backfill(context, self.kind)
        with failing_as_airflow():
            run = prepare_run(
                self.place,
                self.source,
                run_key(context),
                kind=self.kind,
                between=interval_of(context) if self.kind == BACKFILL else None,
                params=self.run_params,
                pages=self.pages,
                actor=ACTOR,
                reason=reason_of(context),
            )
        self.log.info("run %s of %s is prepared", run, self.source)
        return run


class DrainOperator(BaseOperator):
    """Drain one stage of a prepared run, or one shard of it; answers with its counts.

    It works on until nothing of the stage is left. In its second try, it queues what is in quarantine again.
    """

    template_fields: Sequence[str] = ("run", "shard")
    ui_color = "#cfe3f2"

    def __init__(
        self,
        *,
        place: Place,
        stage: str,
        run: int | str,
        shard: str = "1/1",
        partial: Partial = "warn",
        dashboard: str = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.place = place
        self.stage = stage
        self.run = run
        self.shard = shard
        # Not `partial`: that is how Airflow maps an operator.
        self.partial_is = partial
        self.dashboard = dashboard

    def execute(self, context: Context) -> dict[str, Any]:
        part, parts = (int(each) for each in self.shard.split("/"))
        run = number_of(self.run)
        with failing_as_airflow():
            end = drain_stage(
                self.place,
                run,
                self.stage,
                shard=(part, parts),
                attempt=attempt_of(context),
                partial=self.partial_is,
                grace_s=GRACE_S,
                dashboard=self.dashboard,
                tell=self.log.info,
                actor=ACTOR,
            )
        self._say(end)
        if end.view.state == "skipped":
            raise AirflowSkipException(f"{self.stage}: what it gathers from has failed")
        return summary_of(end)

    def on_kill(self) -> None:
        """Stop in good order: Airflow waits five seconds before it kills."""
        stop_drains()

    def _say(self, end: StageEnd) -> None:
        self.log.info("%s of run %s is %s: %s", self.stage, self.run, end.view.state, end.counts)
        if end.warning:
            self.log.warning("%s", end.warning)
        if end.url:
            self.log.info("%s", end.url)


class PublishOperator(BaseOperator):
    """Tell Airflow that a run has brought its collections up to date, with their figures.

    A collection with records that do not fit its schema is not published; other checks that fail are
    warnings.
    """

    template_fields: Sequence[str] = ("run",)

    def __init__(
        self,
        *,
        place: Place,
        source: str,
        collections: Sequence[str],
        run: int | str,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.place = place
        self.source = source
        self.collections = list(collections)
        self.run = run

    def execute(self, context: Context) -> dict[str, Any]:
        run = number_of(self.run)
        with failing_as_airflow():
            states = states_of(self.place, run, self.source, self.collections)
        self._judge(states)
        facts = {each.collection: {**each.metadata, **_passed(each)} for each in states}
        for name, asset in zip(self.collections, self.outlets, strict=True):
            context["outlet_events"][asset].extra = facts[name]
        return facts

    def _judge(self, states: Sequence[CollectionState]) -> None:
        for state in states:
            for check in state.checks:
                text = f"{state.collection} fails a check: {DESCRIPTIONS[check.name]}"
                if not check.passed and check.is_error:
                    raise AirflowFailException(text)
                if not check.passed:
                    self.log.warning("%s", text)


class BuilderStepOperator(BaseOperator):
    """Run one step of the builder as a command, `penstock builder run-step`.

    It goes on with the newest run of the job (`--resume`), unless it `begins` one in its first try. Paths and
    arguments may be templates. The values of `env` are rendered when the task runs, kept out of what Airflow
    shows of a task, and masked in its logs.
    """

    template_fields: Sequence[str] = ("job_path", "outdir", "extra_args")
    ui_color = "#e3efd9"

    def __init__(
        self,
        *,
        step: str,
        job_path: str,
        outdir: str,
        profile: str = "standard",
        extra_args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        begins: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.step = step
        self.begins = begins
        self.job_path = job_path
        self.outdir = outdir
        self.profile = profile
        self.extra_args = list(extra_args or ())
        self.env = dict(env or {})

    def execute(self, context: Context) -> dict[str, Any]:
        env = self._rendered(context)
        with failing_as_airflow():
            job = builder_job(self.job_path, self.outdir, self.profile, self.extra_args, env)
            resume = not self.begins or attempt_of(context) > 1
            self.log.info("penstock %s", " ".join(job.command(self.step, resume=resume)))
            warning = run_builder_step(job, self.step, self.log.info, resume=resume)
        if warning:
            self.log.warning("%s", warning)
        return {"step": self.step, "outdir": self.outdir, "warning": warning}

    def on_kill(self) -> None:
        """Raised where the command is waited for, which ends it in good order."""
        raise AirflowException(
            f"{self.step} was stopped; run it again to continue where it stopped"
        )

    def _rendered(self, context: Context) -> dict[str, str]:
        from airflow.sdk.log import mask_secret

        try:
            found = {name: str(self.render_template(self.env[name], context)) for name in self.env}
        except Exception as error:
            raise AirflowFailException(f"env of {self.step} can't be rendered: {error}") from None
        for name, value in found.items():
            mask_secret(value, name)
        return found


def _passed(state: CollectionState) -> dict[str, bool]:
    return {check.name: check.passed for check in state.checks}


def number_of(run: int | str) -> int:
    """The number of the run, as the first task has found it."""
    try:
        return int(run)
    except ValueError:
        raise AirflowFailException(
            f"{run!r} is no run: clear the task that prepares it, so that Airflow runs it again"
        ) from None


def summary_of(end: StageEnd) -> dict[str, Any]:
    """What other tasks get to see of a drain: figures, and nothing of what was fetched."""
    view = end.view
    return {
        "run": view.run,
        "source": view.source,
        "stage": view.step,
        "shard": view.shard,
        "state": view.state,
        "run_state": view.run_state,
        "counts": end.counts,
        "url": end.url,
    }
