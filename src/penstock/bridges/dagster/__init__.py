"""Dagster: a source's pipeline as a job or as assets, a profile of the builder as a job, and sensors.

Each op drains one stage of one run of Penstock (`bridges/drains.py`). An op that is killed and retried, and
a run that is re-executed from its failure, go on with that run. On SQLite a Dagster run works on one op at a
time.
"""

from __future__ import annotations

from penstock.bridges.engines import missing

try:
    import dagster as _  # noqa: F401
except ImportError as error:
    raise missing("dagster", error) from None

from penstock.bridges.dagster.assets import pipeline_assets
from penstock.bridges.dagster.builder import (
    BuilderConfig,
    builder_standard_job,
    create_builder_job,
)
from penstock.bridges.dagster.jobs import NETWORK_RETRY, PipelineConfig, pipeline_job
from penstock.bridges.dagster.sensors import (
    budget_reset_sensor,
    new_input_sensor,
    penstock_run_op,
    penstock_runs_sensor,
    signal_sensor,
    signal_to_penstock,
)

__all__ = [
    "NETWORK_RETRY",
    "BuilderConfig",
    "PipelineConfig",
    "budget_reset_sensor",
    "builder_standard_job",
    "create_builder_job",
    "new_input_sensor",
    "penstock_run_op",
    "penstock_runs_sensor",
    "pipeline_assets",
    "pipeline_job",
    "signal_sensor",
    "signal_to_penstock",
]
