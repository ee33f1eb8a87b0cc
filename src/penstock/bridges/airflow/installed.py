"""What the bridge takes from Airflow; without Airflow, one line that says so."""

from __future__ import annotations

from penstock.bridges.engines import missing

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
    raise missing("airflow", error) from None

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
