"""The DAG files of docs/bridges/airflow.md, as Airflow reads them."""

from __future__ import annotations

from pathlib import Path

from tests.bridges.airflow.home import imported
from tests.bridges.airflow.projects import BACKFILLED, STEPS, source
from tests.docs.pages import ROOT, blocks
from tests.journeys.rig import Rig

PAGE = ROOT / "docs" / "bridges" / "airflow.md"
NAMES = {"acme_com", "prices_past", "report", "nightly", "dbt", "loading", "companies"}


def test_airflow_reads_every_dag_of_the_page(tmp_path: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    project, dags = tmp_path / "project", tmp_path / "dags"
    project.mkdir()
    dags.mkdir()
    sources = {
        "acme.com": source(1),
        "prices": {"pipeline": "past:bars", "backfill": {"window": "1d"}},
    }
    (project / "past.py").write_text(BACKFILLED)
    with Rig(project, sources, STEPS):
        python = [each for each in blocks(PAGE) if each.language == "python"]
        for number, block in enumerate(python):
            text = block.text.replace("/srv/shop-watch", str(project))
            (dags / f"dag_{number}.py").write_text(text)
            imported(dags / f"dag_{number}.py")
        bag = DagBag(dags, bundle_name="docs")

    assert bag.import_errors == {}
    assert set(bag.dags) == NAMES
