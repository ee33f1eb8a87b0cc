"""A real Airflow with a home of its own: DAGs played in this process, or by its own services.

`AIRFLOW_HOME` must be known before Airflow is imported, so it is chosen where this module is.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="penstock-airflow-"))
DAGS = HOME / "dags"
SETTINGS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    # Nothing goes out: no usage data, and no question after a newer version.
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "SCARF_ANALYTICS": "false",
    "NO_COLOR": "1",
}
NUMBERS = count(1)


@dataclass(frozen=True)
class Played:
    """How a run of a DAG ended: each task's state and tries, and what it answered."""

    state: str
    run_id: str
    states: Mapping[str, str]
    tries: Mapping[str, int]
    answers: Mapping[str, Any]


def prepare_home() -> None:
    """Choose the home, before Airflow is imported, and leave none behind."""
    DAGS.mkdir(exist_ok=True)
    os.environ.update(SETTINGS)
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def migrate(environment: Mapping[str, str] | None = None) -> None:
    """Make Airflow's own database."""
    done = subprocess.run(
        [airflow_command(), "db", "migrate"],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def airflow_command() -> str:
    return str(Path(sys.executable).with_name("airflow"))


@contextmanager
def dag_file(text: str) -> Iterator[Any]:
    """A DAG file in Airflow's folder, imported: its module."""
    path = DAGS / f"dags_{next(NUMBERS)}.py"
    path.write_text(text)
    try:
        yield imported(path)
    finally:
        path.unlink()


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(dag: Any, **how: Any) -> Played:
    """Run a DAG in this process, with Airflow's own scheduling of its tasks."""
    run = dag.test(**how)
    tasks = {_name(each): each for each in run.get_task_instances()}
    return Played(
        state=str(run.state),
        run_id=run.run_id,
        states={name: str(each.state) for name, each in tasks.items()},
        tries={name: each.try_number for name, each in tasks.items()},
        answers={name: _answer(each) for name, each in tasks.items()},
    )


def _name(task: Any) -> str:
    return task.task_id if task.map_index < 0 else f"{task.task_id}[{task.map_index}]"


def _answer(task: Any) -> Any:
    return task.xcom_pull(task_ids=task.task_id, map_indexes=task.map_index)
