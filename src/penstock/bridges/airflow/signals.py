"""Airflow's news as Penstock's signals: failed tasks, ended runs, missed deadlines.

A signal is in the journal, is raised once however often it is told of, and may start runs of sources whose
schedules wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.app.secrets import environment_secrets, redact
from penstock.bridges.airflow.installed import BaseNotifier
from penstock.bridges.airflow.terms import ACTOR
from penstock.bridges.places import Place, ProjectPlace, place_of
from penstock.bridges.watching import raise_signal

if TYPE_CHECKING:
    from airflow.sdk import Context

FAILED = "airflow.failed"
DEADLINE_MISSED = "airflow.deadline_missed"
LONGEST_ERROR = 500


class PenstockSignal(BaseNotifier):
    """A callback that raises a signal: `on_failure_callback=PenstockSignal(project, source="acme.com")`.

    Without a name it is `airflow.failed`. Its data are the DAG, the run, the task, its state and error, and
    what `data` adds, which may be templates.
    """

    template_fields: Sequence[str] = ("data",)

    def __init__(
        self,
        project: ProjectPlace,
        name: str = FAILED,
        *,
        source: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.place = place_of(project)
        self.name = name
        self.source = source
        self.data = dict(data or {})

    def notify(self, context: Context) -> None:
        facts = facts_of(context)
        raise_signal(
            self.place,
            self.name,
            {**facts, **self.data},
            key=key_of(self.name, facts),
            source=self.source,
            actor=ACTOR,
        )

    def get_template_env(self, dag: Any = None) -> Any:
        # Airflow tells of a DAG's end with its serialized twin, too, which has no templates.
        return super().get_template_env(dag if hasattr(dag, "get_template_env") else None)

    async def async_notify(self, context: Context) -> None:
        await asyncio.to_thread(self.notify, context)


async def report_missed_deadline(
    *, folder: str, environment: str | None = None, source: str | None = None, **told: Any
) -> None:
    """Raise `airflow.deadline_missed`: the callback of a deadline alert, which the triggerer calls."""
    facts = facts_of(told.get("context") or {})
    place = Place(folder, environment)
    key = key_of(DEADLINE_MISSED, facts)
    await asyncio.to_thread(
        raise_signal, place, DEADLINE_MISSED, facts, key=key, source=source, actor=ACTOR
    )


def facts_of(context: Mapping[str, Any]) -> dict[str, Any]:
    """What a callback is told, as far as it is told: it may come from a task, a DAG or the triggerer."""
    task, run = context.get("ti"), context.get("dag_run")
    about_task = {
        "task": _value(task, "task_id"),
        "map_index": _value(task, "map_index"),
        "attempt": _value(task, "try_number"),
    }
    facts = {
        "dag": _first("dag_id", task, run, context.get("dag")),
        "run": _first("run_id", task, run, context) or _value(run, "dag_run_id"),
        **about_task,
        "state": str(_value(task if task is not None else run, "state") or ""),
        "reason": context.get("reason"),
        "error": _error(context),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", -1)}


def key_of(name: str, facts: Mapping[str, Any]) -> str | None:
    """One signal for each try of a task, or for each run; without a run, for each time it is told."""
    if "run" not in facts:
        return None
    parts = ("dag", "run", "task", "map_index", "attempt")
    return ":".join([name, *(str(facts.get(part, "")) for part in parts)])


def _value(holder: Any, name: str) -> Any:
    """A fact, of an object or of its JSON: the triggerer is given the second."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _first(name: str, *holders: Any) -> Any:
    return next((found for holder in holders if (found := _value(holder, name))), None)


def _error(context: Mapping[str, Any]) -> str:
    error = context.get("exception") or ""
    return redact(" ".join(str(error).split())[:LONGEST_ERROR], environment_secrets())
