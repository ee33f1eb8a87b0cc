"""What `penstock init --bridge airflow` writes, as Airflow reads it from its own folder of DAGs."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT


def test_airflow_reads_the_file_of_a_new_project_by_a_link(tmp_path: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    dags = tmp_path / "dags"
    dags.mkdir()
    made = run_command(["init", "shop", "--bridge", "airflow"], tmp_path, ENVIRONMENT, 60)
    assert made.returncode == 0, made.stderr
    (dags / "shop.py").symlink_to(tmp_path / "shop" / "orchestration" / "airflow_dag.py")

    bag = DagBag(dags, bundle_name="new")

    assert bag.import_errors == {}
    assert set(bag.dags) == {"example_com", "builder_standard"}
    assert set(bag.dags["example_com"].task_dict) == {"prepare", "discover", "extract", "persist"}
