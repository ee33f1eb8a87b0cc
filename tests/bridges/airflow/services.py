"""Airflow's own services on loopback, as operators run them: scheduler, API, DAG processor, triggerer."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.bridges.airflow.home import airflow_command, migrate
from tests.journeys.rig import until
from tests.postgres.ports import free_port

SERVICES = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
ENDED = ("success", "failed")
# Of a busy machine; each service imports Airflow first.
WITHIN_S = 300.0


class Airflow:
    """A running Airflow, seen through its API."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.dags = home / "dags"
        self._url = url
        self._token = ""

    def trigger(self, dag_id: str, run_id: str, **body: Any) -> None:
        """Start a run of a DAG, as soon as Airflow has read its file."""
        until(lambda: self._known(dag_id), f"{dag_id} is known", within_s=WITHIN_S)
        self.call(
            "POST", f"dags/{dag_id}/dagRuns", {"dag_run_id": run_id, "logical_date": None, **body}
        )

    def wait(self, dag_id: str, run_id: str) -> str:
        """Until the run has ended: its state."""
        return str(
            until(
                lambda: (state := self.run_state(dag_id, run_id)) in ENDED and state,
                f"{run_id} of {dag_id} ends",
                within_s=WITHIN_S,
            )
        )

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self.call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])

    def runs(self, dag_id: str) -> dict[str, str]:
        """The state of each run of a DAG."""
        found = self.call("GET", f"dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return {each["dag_run_id"]: each["state"] for each in found}

    def tasks(self, dag_id: str, run_id: str) -> dict[str, tuple[str | None, int]]:
        """The state of each task of a run, and in which try it is."""
        found = self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {_name(each): (each["state"], each["try_number"]) for each in found}

    def backfill(self, dag_id: str, asked: dict[str, Any]) -> None:
        """Have Airflow make the runs of some days, as soon as it has read the DAG's file."""
        until(lambda: self._known(dag_id), f"{dag_id} is known", within_s=WITHIN_S)
        self.call("POST", "backfills", {"dag_id": dag_id, **asked})

    def fail_task(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Mark a task as failed, as a person does in the UI."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self.call("PATCH", path, {"new_state": "failed"})

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self.home.glob("*.txt"))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the public API; answers with its JSON."""
        asked = (method, f"api/v2/{path}", body, self._authorised())
        return until(lambda: self._if_free(*asked), f"{path} answers", within_s=WITHIN_S)[0]

    def is_up(self) -> bool:
        with suppress(OSError):
            self._asked("GET", "api/v2/version", None, {})
            return True
        return False

    def _known(self, dag_id: str) -> bool:
        try:
            self.call("GET", f"dags/{dag_id}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _if_free(self, *asked: Any) -> list[Any]:
        """The answer; nothing yet while Airflow's own SQLite file is locked."""
        try:
            return [self._asked(*asked)]
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return []

    def _authorised(self) -> dict[str, str]:
        self._token = self._token or self._asked("GET", "auth/token", None, {})["access_token"]
        return {"Authorization": f"Bearer {self._token}"}

    def _asked(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(  # noqa: S310
            f"{self._url}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", **headers},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")


@contextmanager
def running_airflow(home: Path) -> Iterator[Airflow]:
    """An Airflow with a home of its own, until the end of the block."""
    (home / "dags").mkdir(parents=True)
    port = free_port()
    environment = {**os.environ, **_settings(home, port)}
    migrate(environment)
    with ExitStack() as ending:
        processes = [
            ending.enter_context(_service(home, name, words, environment))
            for name, words in SERVICES.items()
        ]
        airflow = Airflow(home, f"http://127.0.0.1:{port}")
        until(airflow.is_up, "Airflow's API answers", within_s=WITHIN_S)
        try:
            yield airflow
        finally:
            for process in processes:
                process.terminate()


@contextmanager
def _service(
    home: Path, name: str, words: tuple[str, ...], environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with open(home / f"{name}.txt", "w") as out:
        process = subprocess.Popen(
            [airflow_command(), *words],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def _settings(home: Path, port: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{port}"
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": "of the tests",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests, and nobody else's, for as long as they run",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    }


def _name(task: dict[str, Any]) -> str:
    index = task["map_index"]
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"
