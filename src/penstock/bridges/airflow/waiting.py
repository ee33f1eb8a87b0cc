"""Waiting for a run that Penstock's own workers perform, without a worker of Airflow's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.bridges.airflow.installed import (
    AirflowException,
    BaseOperator,
    BaseSensorOperator,
    BaseTrigger,
    PokeReturnValue,
    TriggerEvent,
)
from penstock.bridges.airflow.terms import ACTOR, failing_as_airflow, reason_of
from penstock.bridges.drains import Partial, TaskFailed, check_partial
from penstock.bridges.places import Place, ProjectPlace, place_of
from penstock.bridges.watching import latest_run, refuse_failed, run_now, start_run
from penstock.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from penstock.app.views.runs import RunView

POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Awaited:
    """The run that is waited for: of this number, or the newest of a source, made since a moment."""

    folder: str
    environment: str | None
    run: int | None
    source: str | None
    since: float | None

    def ended(self) -> RunView | None:
        """The run, if there is one and it has ended."""
        place = Place(self.folder, self.environment)
        if self.run is not None:
            seen: RunView | None = run_now(place, self.run)
        else:
            seen = latest_run(place, self.source or "", self.since)
        return seen if seen is not None and seen.is_ended else None


class PenstockRunTrigger(BaseTrigger):
    """Fires once, when a run has ended."""

    def __init__(self, poll_s: float = POLL_S, **awaited: Any) -> None:
        super().__init__()
        self.poll_s = poll_s
        self.awaited = Awaited(**awaited)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return name, {"poll_s": self.poll_s, **asdict(self.awaited)}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(await self._end())

    async def _end(self) -> dict[str, Any]:
        try:
            while (seen := await asyncio.to_thread(self.awaited.ended)) is None:
                await asyncio.sleep(self.poll_s)
        except TaskFailed as error:
            return {"error": error.message}
        return {"run": seen.id}


class PenstockRunSensor(BaseSensorOperator):
    """Wait until a run has ended, and answer with its number; fail if it has failed or was cancelled.

    It waits for the run of this number, or for the newest one of a `source`, made after `since`: a moment in
    ISO 8601, as a rule `{{ data_interval_end }}`. While it waits it takes no slot of a worker, but for its
    first look, unless `deferrable` is False. Partial is a failure only if `partial` is "failed".
    """

    template_fields: Sequence[str] = ("run", "since")

    def __init__(
        self,
        *,
        project: ProjectPlace,
        run: int | str | None = None,
        source: str | None = None,
        since: str | None = None,
        partial: Partial = "warn",
        deferrable: bool = True,
        poke_interval: float = POLL_S,
        **options: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **options)
        check_partial(partial)
        if (run is None) == (source is None):
            raise UsageError("a sensor waits for a run or for a source: give it one of them")
        self.place = place_of(project)
        self.run = run
        self.source = source
        self.since = since
        # Not `partial`: that is how Airflow maps an operator.
        self.partial_is = partial
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        found = self.poke(context)
        if not found.is_done:
            self.defer(
                trigger=PenstockRunTrigger(self.poke_interval, **asdict(self._awaited())),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return found.xcom_value

    def poke(self, context: Context) -> PokeReturnValue:
        with failing_as_airflow():
            seen = self._awaited().ended()
            return PokeReturnValue(seen is not None, seen and self._judged(seen))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> int:
        if "error" in event:
            raise AirflowException(event["error"])
        with failing_as_airflow():
            return self._judged(run_now(self.place, event["run"]))

    def _awaited(self) -> Awaited:
        run = None if self.run is None else int(self.run)
        since = datetime.fromisoformat(self.since).timestamp() if self.since else None
        return Awaited(self.place.folder, self.place.environment, run, self.source, since)

    def _judged(self, seen: RunView) -> int:
        refuse_failed(seen, self.partial_is)
        tell = self.log.warning if seen.state == "partial" else self.log.info
        tell("run %s of %s is %s", seen.id, seen.source, seen.state)
        return seen.id


class StartRunOperator(BaseOperator):
    """Start a run for Penstock's own workers (`penstock up`); answers with its number.

    A run of the source that has not ended goes on instead, so a second try starts nothing twice.
    """

    template_fields: Sequence[str] = ("run_params",)

    def __init__(
        self,
        *,
        project: ProjectPlace,
        source: str,
        kind: str | None = None,
        run_params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.place = place_of(project)
        self.source = source
        self.kind = kind
        self.run_params = dict(run_params or {})

    def execute(self, context: Context) -> int:
        with failing_as_airflow():
            return start_run(
                self.place,
                self.source,
                kind=self.kind,
                params=self.run_params,
                actor=ACTOR,
                reason=reason_of(context),
            )
