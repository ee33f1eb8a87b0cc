"""Airflow 3: pipelines as DAGs, one task per stage, and Penstock's runs and signals beside Airflow's.

In:    a project and a source of it, or a job file and a profile of the builder, where a DAG file is parsed;
       from a task, the run, the try, and the data interval.
Out:   DAGs whose edges are the pipeline's, operators, a sensor, a notifier; states and XComs of tasks.
Never: a store that is opened where a DAG file is parsed, work on items, secrets in Airflow's logs and XComs.
"""

from penstock.bridges.airflow.builder_dags import builder_standard_dag, create_builder_dag
from penstock.bridges.airflow.operators import (
    BuilderStepOperator,
    DrainOperator,
    PrepareRunOperator,
    PublishOperator,
)
from penstock.bridges.airflow.pipeline_dags import PATIENT, pipeline_dag
from penstock.bridges.airflow.signals import PenstockSignal, report_missed_deadline
from penstock.bridges.airflow.waiting import (
    PenstockRunSensor,
    PenstockRunTrigger,
    StartRunOperator,
)

__all__ = [
    "PATIENT",
    "BuilderStepOperator",
    "DrainOperator",
    "PenstockRunSensor",
    "PenstockRunTrigger",
    "PenstockSignal",
    "PrepareRunOperator",
    "PublishOperator",
    "StartRunOperator",
    "builder_standard_dag",
    "create_builder_dag",
    "pipeline_dag",
    "report_missed_deadline",
]
