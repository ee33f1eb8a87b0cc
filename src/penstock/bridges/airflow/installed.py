"""What the bridge takes from Airflow; without Airflow, one line that says so."""

from __future__ import annotations

from penstock.errors import UsageError

try:
    from airflow.sdk import (
        DAG,
        Asset,
        AsyncCallback,
        BaseNotifier,
        BaseOperator,
        BaseSensorOperator,
        CronDataIntervalTimetable,
        DeadlineAlert,
        DeadlineReference,
        DeltaDataIntervalTimetable,
        Param,
        PokeReturnValue,
    )
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowSkipException,
    )
    from airflow.triggers.base import BaseTrigger, TriggerEvent
except ImportError as error:
    raise UsageError(
        f"the bridge to Airflow needs Airflow 3.3 or newer, and it can't be imported: {error}",
        "install it beside Penstock: pip install 'apache-airflow>=3.3'",
        code="engine_not_installed",
    ) from None

__all__ = [
    "DAG",
    "AirflowException",
    "AirflowFailException",
    "AirflowSkipException",
    "Asset",
    "AsyncCallback",
    "BaseNotifier",
    "BaseOperator",
    "BaseSensorOperator",
    "BaseTrigger",
    "CronDataIntervalTimetable",
    "DeadlineAlert",
    "DeadlineReference",
    "DeltaDataIntervalTimetable",
    "Param",
    "PokeReturnValue",
    "TriggerEvent",
]
