"""What `penstock init --bridge` writes into a project: a few lines for each orchestrator."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = "orchestration"

PREFECT = '''\
"""The flows of this project for Prefect. Serve one: python orchestration/prefect_flow.py"""

from pathlib import Path

from penstock.bridges.prefect import builder_prefect_flow, pipeline_flow

__all__ = ["builder_prefect_flow", "source_flow"]

PROJECT = Path(__file__).resolve().parents[1]
source_flow = pipeline_flow(PROJECT, {source})

if __name__ == "__main__":
    here = Path(__file__).resolve()
    source_flow.from_source(str(here.parent), f"{{here.name}}:source_flow").serve(name={source})
'''
DAGSTER = '''\
"""The jobs of this project for Dagster. Look at them: dagster dev -f orchestration/dagster_job.py"""

from pathlib import Path

import dagster as dg

from penstock.bridges.dagster import builder_standard_job, create_builder_job, pipeline_job

__all__ = ["builder_standard_job", "create_builder_job", "defs", "source_job"]

PROJECT = Path(__file__).resolve().parents[1]
source_job = pipeline_job(PROJECT, {source})
defs = dg.Definitions(jobs=[source_job, builder_standard_job])
'''
AIRFLOW = '''\
"""The DAGs of this project for Airflow. Put its path into Airflow's folder of DAGs, as a link or a copy."""

from pathlib import Path

from penstock.bridges.airflow import builder_standard_dag, create_builder_dag, pipeline_dag

__all__ = ["builder_standard_dag", "create_builder_dag", "source_dag"]

# A copy elsewhere needs the project's folder here.
PROJECT = Path(__file__).resolve().parents[1]
source_dag = pipeline_dag(PROJECT, {source}, schedule="@daily")
'''
# For each orchestrator: the file, its text, and how it is tried.
BRIDGES: dict[str, tuple[str, str, str]] = {
    "airflow": (
        "airflow_dag.py",
        AIRFLOW,
        'ln -s "$PWD/orchestration/airflow_dag.py" "$AIRFLOW_HOME/dags/"',
    ),
    "dagster": ("dagster_job.py", DAGSTER, "dagster dev -f orchestration/dagster_job.py"),
    "prefect": ("prefect_flow.py", PREFECT, "python orchestration/prefect_flow.py"),
}


def bridge_file(bridge: str, source: str) -> tuple[Path, str]:
    """The file for an orchestrator, below the project's folder, and its text for this source."""
    name, text, _ = BRIDGES[bridge]
    return Path(FOLDER, name), text.format(source=json.dumps(source, ensure_ascii=False))


def bridge_hint(bridge: str) -> str:
    """How the file is tried."""
    return BRIDGES[bridge][2]
