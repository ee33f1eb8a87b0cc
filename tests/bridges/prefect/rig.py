"""Flows in a file, as a team has them, served by Prefect, and what its server knows of their runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State, TaskRun
from prefect.deployments import run_deployment

from tests.journeys.rig import ENVIRONMENT, until

T = TypeVar("T")
HEAD = """
from pathlib import Path
from penstock.bridges.prefect import pipeline_flow

folder = {folder!r}
"""
SERVE = """
if __name__ == "__main__":
    here = Path(__file__)
    shop.from_source(str(here.parent), f"{here.name}:shop").serve(name="test")
"""


@contextmanager
def serving(folder: Path, text: str, flow_name: str) -> Iterator[str]:
    """Serve the flow `shop` of this text as a deployment; its name."""
    import os

    file = folder / "orchestration" / "prefect_flow.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(HEAD.format(folder=str(folder)) + text + SERVE)
    prefect = {name: value for name, value in os.environ.items() if name.startswith("PREFECT_")}
    with (file.parent / "prefect.log").open("w") as out:
        process = subprocess.Popen(
            [sys.executable, str(file)],
            cwd=file.parent,
            env={**ENVIRONMENT, **prefect},
            stdout=out,
            stderr=out,
            text=True,
        )
    try:
        name = f"{flow_name}/test"
        until(lambda: _is_deployed(name), "the flow is served", process=process)
        yield name
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_deployed(name: str) -> bool:
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            client.read_deployment_by_name(name)
        except ObjectNotFound:
            return False
    return True


def started(name: str, **parameters: Any) -> UUID:
    """A run of a deployment, not waited for."""
    found: Any = run_deployment(name, parameters=parameters, timeout=0)
    number: UUID = found.id
    return number


def prefect(*words: str) -> None:
    """Prefect's own command, as an operator gives it."""
    subprocess.run(
        [sys.executable, "-m", "prefect", *words], check=True, capture_output=True, text=True
    )


def flow_run(number: UUID) -> FlowRun:
    with get_client(sync_client=True) as client:
        return client.read_flow_run(number)


def ended(number: UUID, *names: str) -> State[Any]:
    """The state of a flow run once it has one of these names."""

    def state() -> State[Any] | None:
        found = flow_run(number).state
        return found if found is not None and found.name in names else None

    answer: State[Any] = until(state, f"the flow run is {' or '.join(names)}", within_s=300)
    return answer


def task_runs(number: UUID) -> list[TaskRun]:
    """The tasks of a flow run, in the order in which they ended."""
    with get_client(sync_client=True) as client:
        found = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[number])), limit=200
        )
    return sorted(found, key=lambda run: (run.end_time is None, run.end_time))


def told(look: Callable[[], T], wanted: T) -> None:
    """Prefect's server comes to show this: it hears of tasks by events, a little after their flow ended."""
    with suppress(AssertionError):
        until(lambda: look() == wanted, f"it shows {wanted!r:.100}")
    assert look() == wanted


def states_by_task(number: UUID) -> dict[str, str]:
    return {run.name: run.state.name for run in task_runs(number) if run.state is not None}


def counts_by_task(number: UUID) -> dict[str, int]:
    """How often each task of a flow run was tried."""
    return {run.name: run.run_count for run in task_runs(number)}


def edges(number: UUID) -> set[tuple[str, str]]:
    """Pairs of a task of a flow run and one that waits for it, as Prefect has recorded them."""
    runs = task_runs(number)
    names = {run.id: run.name for run in runs}
    return {
        (names.get(before.id, "?"), run.name)
        for run in runs
        for before in run.task_inputs.get("wait_for", [])
        if hasattr(before, "id")
    }
