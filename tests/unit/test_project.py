"""A project says in one line what is wrong with it, before anything runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from penstock import Project
from penstock.errors import PenstockError, Refused, UsageError

PIPELINE = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run", resources={resources})
def discover():
    yield {{"n": 1}}
"""
_numbers = itertools.count()


def a_project(folder: Path, resources: str = "None", worker: str = "{}") -> Path:
    """A project whose module has a name of its own: Python imports a name once."""
    module = f"shop_{next(_numbers)}"
    (folder / f"{module}.py").write_text(PIPELINE.format(resources=resources))
    (folder / "penstock.yaml").write_text(
        f"project: p\nworker: {worker}\nsources:\n  acme.com: {{pipeline: {module}:shop}}\n"
    )
    return folder


@pytest.mark.parametrize(
    ("resources", "worker", "message"),
    [
        ("{'memory_mb': 2000}", "{memory_mb: 1000}", "needs memory_mb 2000, a worker has 1000"),
        ("{'cpu': 3}", "{cpu: 2}", "needs cpu 3, a worker has 2"),
    ],
)
def test_a_step_that_can_never_fit_is_refused_when_the_project_is_loaded(
    tmp_path: Path, resources: str, worker: str, message: str
) -> None:
    with pytest.raises(PenstockError, match=message) as raised:
        Project.load(a_project(tmp_path, resources, worker))
    assert "sources.acme.com.pipeline" in raised.value.message
    assert "worker." in raised.value.hint


def test_a_step_that_just_fits_is_welcome(tmp_path: Path) -> None:
    project = Project.load(a_project(tmp_path, "{'memory_mb': 1000}", "{memory_mb: 1000}"))
    assert list(project.settings.sources) == ["acme.com"]


def test_a_run_is_queued_when_the_verb_returns(tmp_path: Path) -> None:
    folder = a_project(tmp_path)
    with Project.load(folder) as project:
        run_id = project.run("https://WWW.Acme.com/", actor="me", reason="try")
    with Project.open(folder) as again:
        run = again.require_run(run_id)
    assert (run.source, run.state, run.actor, run.reason) == ("acme.com", "queued", "me", "try")
    assert run.queued == 1


def test_an_unknown_source_or_kind_is_named_with_the_nearest(tmp_path: Path) -> None:
    with Project.load(a_project(tmp_path)) as project:
        with pytest.raises(UsageError) as source:
            project.run("acm.com")
        with pytest.raises(UsageError) as kind:
            project.run("acme.com", kind="ful")
    assert "'acme.com'" in source.value.hint
    assert "'full'" in kind.value.hint


def test_a_run_is_cancelled_also_by_who_does_not_wait_for_its_sweep(tmp_path: Path) -> None:
    with Project.load(a_project(tmp_path)) as project:
        run_id = project.run("acme.com")

        sweep = project.cancel(run_id)

        assert project.require_run(run_id).state == "cancelled"
        assert list(sweep) == [1]


def test_a_cancelled_run_can_be_neither_cancelled_again_nor_retried(tmp_path: Path) -> None:
    with Project.load(a_project(tmp_path)) as project:
        run_id = project.run("acme.com")
        assert sum(project.cancel(run_id)) == 1
        with pytest.raises(Refused):
            project.cancel(run_id)
        with pytest.raises(Refused):
            project.retry_failed(run_id)


def test_pausing_a_source_or_a_run_says_whether_it_did_anything(tmp_path: Path) -> None:
    with Project.load(a_project(tmp_path)) as project:
        run_id = project.run("acme.com")
        assert [project.pause("acme.com"), project.pause("acme.com")] == [True, False]
        assert [project.resume("acme.com"), project.resume("acme.com")] == [True, False]
        assert [project.pause(run_id), project.resume(run_id)] == [True, True]


def test_the_first_job_of_a_run_is_cancelled_with_its_run_only(tmp_path: Path) -> None:
    with Project.load(a_project(tmp_path)) as project:
        project.run("acme.com")
        with pytest.raises(Refused) as refused:
            project.cancel_job(1)
    assert "penstock cancel 1" in refused.value.hint
