"""Airflow's words for a run: its name, its try, its data interval; and Penstock's errors as Airflow's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.bridges.airflow.installed import AirflowException, AirflowFailException
from penstock.bridges.drains import TaskFailed

if TYPE_CHECKING:
    from airflow.sdk import Context

ACTOR = "airflow"
BACKFILL = "backfill"
# The words of a backfill's run that is triggered by hand.
FROM, TO = "from", "to"


def run_key(context: Context) -> str:
    """Airflow's own name of the run. It is the same in every try of every task."""
    run = context["dag_run"]
    return f"{run.dag_id}:{run.run_id}"


def attempt_of(context: Context) -> int:
    return int(context["ti"].try_number)


def reason_of(context: Context) -> str:
    run = context["dag_run"]
    return f"{run.dag_id} {run.run_id}"


def interval_of(context: Context) -> tuple[str, str]:
    """What a backfill covers: the params `from` and `to` of its run, or else its data interval."""
    params: Mapping[str, Any] = context.get("params") or {}
    asked = params.get(FROM), params.get(TO)
    if all(asked):
        return str(asked[0]), str(asked[1])
    if any(asked):
        raise AirflowFailException("a backfill needs both params, `from` and `to`")
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None or start >= end:
        raise AirflowFailException(
            "this run covers no time: its data interval is empty (give the DAG a schedule such as '@daily',"
            " or trigger it with the params `from` and `to`)"
        )
    return _written(start), _written(end)


def refuse_airflow_backfill(context: Context, kind: str | None) -> None:
    """A source is read as it is now, so reading it once for each day of the past would be no backfill."""
    run_type = getattr(context["dag_run"], "run_type", "")
    if str(getattr(run_type, "value", run_type)) == BACKFILL and kind != BACKFILL:
        raise AirflowFailException(
            "this DAG reads what its source has now, so it can't be backfilled"
            " (make a DAG of its own for that: pipeline_dag(…, kind='backfill'))"
        )


@contextmanager
def failing_as_airflow() -> Iterator[None]:
    """Turn TaskFailed into Airflow's errors: Airflow tries again what can go well another time."""
    try:
        yield
    except TaskFailed as error:
        kind = AirflowFailException if error.is_final else AirflowException
        raise kind(error.message) from None


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
