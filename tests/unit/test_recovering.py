"""A project's failures on virtual time: tried as configured, no longer than useful, apart from each other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigError, PipelineError
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from penstock.project import Project
from penstock.store.entries import EntryFilter
from penstock.store.jobs import JobFilter
from penstock.store.rows import JobRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

MODULE = "recovering_pipelines"
HEAD = """
import penstock
from penstock import BadData, Permanent, Pipeline, Transient

class ShopDown(Exception): ...

tried = []
"""
PAGES = """
shop = Pipeline("shop"{options})

@shop.step(unit="run")
def discover(ctx):
    for n in range(ctx.params.get("pages", 1)):
        yield {{"n": n}}

@shop.step(after="discover", unit="page", key="n"{step})
def extract(page, ctx):
    tried.append(page["n"])
    {body}

@shop.step(after="extract", unit="run", gather=True)
def report(ctx):
    tried.append("report")
"""


@pytest.fixture(autouse=True)
def _no_pipelines_of_other_tests() -> Iterator[None]:
    yield
    sys.modules.pop(MODULE, None)


class Shop:
    """A project with one source, and how often its pages were tried."""

    def __init__(
        self,
        folder: Path,
        body: str,
        *,
        step: str = "",
        options: str = "",
        source: dict[str, object] | None = None,
        **top: object,
    ) -> None:
        text = HEAD + PAGES.format(body=body, step=step, options=options)
        (folder / f"{MODULE}.py").write_text(text)
        # Without a breaker: it would spare the tries that these tests count.
        about = {"pipeline": f"{MODULE}:shop", "breaker": "off", **(source or {})}
        config = {"project": "p", "sources": {"shop.example": about}, **top}
        (folder / "penstock.yaml").write_text(json.dumps(config))
        self.clock = VirtualClock()
        self.project = Project.load(folder)

    def run(self) -> int:
        with Simulation(
            self.project, ScriptedNetwork(_nobody), seed=1, clock=self.clock
        ) as simulation:
            run_id = self.project.run("shop.example")
            simulation.run()
        return run_id

    def state(self, run_id: int) -> RunState:
        return self.project.require_run(run_id).state

    @property
    def tried(self) -> list[object]:
        found: list[object] = sys.modules[MODULE].tried
        return found

    def jobs(self, *states: JobState) -> list[JobRow]:
        return self.project.connection.jobs.find(JobFilter(states=states))


async def _nobody(request: Request) -> RawResponse:
    raise ConnectionRefusedError


def times_tried(folder: Path, body: str, **about: Any) -> int:
    shop = Shop(folder, body, **about)
    shop.run()
    return len([n for n in shop.tried if n == 0])


@pytest.mark.parametrize(
    ("body", "tries"),
    [
        ("raise Transient('later')", 4),
        ("raise ConnectionResetError()", 4),
        ("raise RuntimeError('what now')", 2),
        ("raise BadData('no price')", 1),
        ("raise Permanent('gone')", 1),
        ("{}['price']", 1),
        ("penstock.nothing_of_the_kind", 1),
    ],
)
def test_each_kind_is_tried_as_often_as_it_may_help(tmp_path: Path, body: str, tries: int) -> None:
    assert times_tried(tmp_path, body) == tries


def test_offending_input_is_kept_with_what_went_wrong(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "raise BadData('no price', cause='selector .price')")
    shop.run()

    [entry] = shop.project.connection.quarantine.each(EntryFilter())
    assert (entry.kind, entry.cause, entry.error) == (
        "data", "selector .price", "BadData: no price",
    )  # fmt: skip
    assert entry.item == '{"n":0}'
    assert "raise BadData('no price'" in entry.traceback


def test_step_and_pipeline_may_say_what_their_errors_mean(tmp_path: Path) -> None:
    of_step = ', errors={"data": (ShopDown,)}'
    of_pipeline = ', errors={"transient": (ShopDown, KeyError)}'
    assert times_tried(tmp_path, "raise ShopDown", step=of_step, options=of_pipeline) == 1
    sys.modules.pop(MODULE)
    (tmp_path / "penstock.db").unlink()
    assert times_tried(tmp_path, "raise KeyError", step=of_step, options=of_pipeline) == 4


@pytest.mark.parametrize(
    ("about", "tries"),
    [
        ({"source": {"retry": "provider-safe"}}, 6),
        ({"source": {"retry": {"class": "provider-safe", "tries": 8}}}, 8),
        ({"source": {"retry": {"tries": 2}}}, 2),
        ({"source": {"retry": "eager"}, "retries": {"eager": {"tries": 7, "base": "10ms"}}}, 7),
        ({"options": ", retry='provider-safe'"}, 6),
        ({"options": ", retry={'tries': 3}"}, 3),
        ({"options": ", retry={'tries': 3}", "source": {"retry": {"tries": 5}}}, 5),
        ({"step": ", retry={'tries': 9}", "source": {"retry": {"tries": 5}}}, 9),
        ({"step": ", retry='eager'", "retries": {"eager": {"tries": 5}}}, 5),
    ],
)
def test_step_weighs_more_than_source_and_source_more_than_pipeline(
    tmp_path: Path, about: dict[str, object], tries: int
) -> None:
    assert times_tried(tmp_path, "raise Transient('later')", **about) == tries


def test_own_class_may_be_patient_with_the_unknown(tmp_path: Path) -> None:
    about = {"retries": {"x": {"tries": 5, "unknown_tries": 3}}, "source": {"retry": "x"}}
    assert times_tried(tmp_path, "raise RuntimeError", **about) == 3


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"step": ", retry='fats'"}, "step 'extract': unknown retry 'fats'; did you mean 'fast'?"),
        ({"options": ", retry='fats'"}, "pipeline 'shop': unknown retry 'fats'; did you mean"),
        ({"options": ", retry=3"}, "it: retry is the name of a class or a mapping, not 3"),
        ({"options": ", errors={'dat': ()}"}, "it: errors=: there is no kind 'dat'"),
        ({"source": {"retry": "fats"}}, "sources.shop.example.retry: must not be 'fats'"),
        ({"retries": {"fast": {}}}, "retries.fast: is already a class"),
        ({"retries": {"x": {"class": "y"}}}, "retries.x.class: must not be 'y'"),
        ({"retries": {"x": {"trys": 3}}}, "retries.x.trys: unknown key, did you mean 'tries'?"),
        ({"retries": {"x": 3}}, "retries.x: must be a mapping such as {tries: 8"),
        ({"retries": [1]}, "retries: must be a mapping of names to retry classes"),
    ],
)
def test_class_that_does_not_exist_is_refused_when_the_project_is_loaded(
    tmp_path: Path, about: dict[str, Any], told: str
) -> None:
    with pytest.raises((PipelineError, ConfigError)) as caught:
        Shop(tmp_path, "pass", **about)
    assert told in caught.value.message
    assert "\n" not in caught.value.message


# Useful for.


def test_retry_that_would_come_too_late_is_not_made(tmp_path: Path) -> None:
    """Waits of up to 15 minutes, but nobody wants the page after one minute."""
    shop = Shop(
        tmp_path,
        "raise Transient('later')",
        step=", useful_for='1m'",
        source={"retry": {"class": "conservative", "tries": 20}},
    )
    began = shop.clock.now()
    shop.run()

    [entry] = shop.project.connection.quarantine.each(EntryFilter())
    assert "(not tried again: it was useful for 1 min, and the next try would have" in entry.error
    assert shop.clock.now() - began <= 61.0
    assert 1 <= len(shop.tried) < 20


def test_step_may_be_useful_for_longer_than_its_source(tmp_path: Path) -> None:
    about = {"source": {"useful_for": "1s", "retry": {"base": "2s", "cap": "2s"}}}
    shorter = times_tried(tmp_path, "raise Transient('later')", **about)
    sys.modules.pop(MODULE)
    (tmp_path / "penstock.db").unlink()
    longer = times_tried(tmp_path, "raise Transient('later')", step=", useful_for='1h'", **about)
    assert (shorter < 4, longer) == (True, 4)


# Apart from each other.

SOME = "if page['n'] == 1: raise BadData('no price')"


def test_page_that_fails_is_a_pages_failure(tmp_path: Path) -> None:
    shop = Shop(tmp_path, SOME, source={"params": {"pages": 3}})
    run_id = shop.run()

    assert shop.state(run_id) is RunState.PARTIAL
    assert "report" in shop.tried


def test_required_step_fails_the_run_and_nothing_is_gathered_behind_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path, SOME, step=", required=True", source={"params": {"pages": 3}})
    run_id = shop.run()

    assert shop.state(run_id) is RunState.FAILED
    assert set(shop.tried) == {0, 1, 2}
    assert "report" not in shop.tried


def test_every_page_failed_is_failed_and_a_skipped_one_is_none_of_them(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "raise BadData('x')", source={"params": {"pages": 3}})
    assert shop.state(shop.run()) is RunState.FAILED
    sys.modules.pop(MODULE)
    (tmp_path / "penstock.db").unlink()
    some = "raise penstock.Skip('as it was') if page['n'] == 0 else BadData('x')"
    shop = Shop(tmp_path, some, source={"params": {"pages": 3}})
    assert shop.state(shop.run()) is RunState.PARTIAL


# Escalation.


def test_selector_that_fails_three_times_is_escalated_and_tried_no_more(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        "raise Transient('no price', cause='selector .price')",
        source={"params": {"pages": 10}, "limits": {"concurrency": 1}},
    )
    shop.run()

    kinds = [event.kind for event in journal(shop.project)]
    assert kinds.count("cause.escalated") == 1
    assert "job.retry_scheduled" in kinds
    assert "job.retry_scheduled" not in kinds[kinds.index("cause.escalated") :]
    entries = list(shop.project.connection.quarantine.each(EntryFilter()))
    assert len(entries) == 10
    assert all(entry.escalated_at for entry in entries)
    assert any("not tried again: " in entry.error for entry in entries)
    assert len(shop.tried) < 10 * 4


def test_secrets_are_masked_in_causes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    body = "raise BadData('x', cause='token ' + ctx.params['token'])"
    shop = Shop(tmp_path, body, source={"params": {"token": "${SHOP_TOKEN}"}})
    shop.run()

    [entry] = shop.project.connection.quarantine.each(EntryFilter())
    assert "hunter2" not in entry.cause
    [cause] = shop.project.connection.quarantine.causes()
    assert "hunter2" not in cause.cause
