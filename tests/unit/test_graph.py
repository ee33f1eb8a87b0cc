"""The graph: steps are checked, put in order and fused; stages feed each other by key."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import PipelineError
from penstock.jobs.job import canonical_key
from penstock.jobs.outcome import Failed, Succeeded
from penstock.jobs.run import PlannedStage
from penstock.pipeline.graph import Graph
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.step import Follow
from tests.unit.performing import attempt


def linked(*links: tuple[str, Any], **options: Any) -> Pipeline:
    """A pipeline of steps that do nothing, from (name, after) pairs."""
    pipeline = Pipeline("p")
    for name, after in links:

        def step() -> None:
            return None

        step.__name__ = name
        pipeline.step(after=after, **options)(step)
    return pipeline


def catalogue() -> Pipeline:
    pipeline = Pipeline("catalogue")

    @pipeline.step(unit="run")
    async def discover(ctx: Any) -> Any:
        yield {"url": "https://acme.com/1"}

    @pipeline.step(after="discover", unit="page", key="url", timeout="30s")
    async def extract(page: Any, ctx: Any) -> Any:
        yield {"sku": "1", "price": "3"}

    @pipeline.step(after="extract", unit="candidate")
    def normalize(product: Any) -> Any:
        return product

    @pipeline.step(after="normalize", unit="candidate")
    def score(product: Any) -> Any:
        return product

    @pipeline.step(after="score", unit="candidate")
    def persist(product: Any, ctx: Any) -> None: ...

    @pipeline.step(after="persist", gather=True)
    def report(ctx: Any) -> None: ...

    return pipeline


def shape(graph: Graph) -> dict[str, tuple[str, ...]]:
    return {stage.name: stage.steps for stage in graph.stages}


def test_consecutive_steps_of_one_unit_are_one_stage() -> None:
    assert shape(catalogue().compile()) == {
        "discover": ("discover",),
        "extract": ("extract",),
        "normalize": ("normalize", "score", "persist"),
        "report": ("report",),
    }


def test_the_plan_says_what_comes_after_what_and_what_is_required() -> None:
    assert catalogue().compile().plan(priority=3).stages == (
        PlannedStage("discover", "run", (), is_required=True, priority=3),
        PlannedStage("extract", "page", ("discover",), priority=3, timeout_s=30.0),
        PlannedStage("normalize", "candidate", ("extract",), priority=3),
        PlannedStage("report", "run", ("normalize",), is_gather=True, is_required=True, priority=3),
    )


@pytest.mark.parametrize(
    "own",
    [
        {"key": "url"},
        {"retry": "fast"},
        {"timeout": "1s"},
        {"priority": 1},
        {"resources": {"cpu": 1}},
        {"isolation": "process"},
        {"useful_for": "2h"},
        {"required": True},
    ],
)
def test_a_step_that_wants_something_of_its_own_is_a_stage_of_its_own(own: dict[str, Any]) -> None:
    pipeline = linked(("begin", ()), ("first", "begin"))

    @pipeline.step(after="first", unit="page", **own)
    def second(item: Any) -> None: ...

    assert shape(pipeline.compile()) == {
        "begin": ("begin",),
        "first": ("first",),
        "second": ("second",),
    }


def test_own_wishes_reach_the_plan() -> None:
    pipeline = linked(("begin", ()))

    @pipeline.step(after="begin", priority=1, resources={"cpu": 2, "memory_mb": 500})
    def heavy(item: Any) -> None: ...

    planned = pipeline.compile().plan(priority=5).stage("heavy")
    assert planned == PlannedStage(
        "heavy", "page", ("begin",), priority=1, cpu=2.0, memory_mb=500.0
    )


def test_a_step_may_come_after_several_and_hears_from_each() -> None:
    pipeline = linked(("a", ()), ("b", ()), ("both", ["a", "b"]))
    graph = pipeline.compile()

    both = graph.stage("both")
    assert both is not None
    assert both.after == ("a", "b")
    for name in ("a", "b"):
        stage = graph.stage(name)
        assert stage is not None
        assert [feed.stage for feed in stage.root.feeds] == ["both"]


def test_a_stage_after_a_fused_step_comes_after_its_stage() -> None:
    pipeline = linked(("a", ()), ("b", "a"), unit="run")

    @pipeline.step(after="b", unit="page")
    def each(item: Any) -> None: ...

    assert shape(pipeline.compile()) == {"a": ("a", "b"), "each": ("each",)}
    planned = pipeline.compile().plan().stage("each")
    assert planned is not None
    assert planned.after == ("a",)


def test_nothing_is_fused_to_a_gather_step_and_nothing_is_fed_to_it() -> None:
    pipeline = linked(("begin", ()))

    @pipeline.step(after="begin", gather=True)
    def collect() -> Any:
        return {"n": 1}

    @pipeline.step(after="collect", unit="run")
    def publish(item: Any) -> None: ...

    graph = pipeline.compile()
    assert shape(graph) == {"begin": ("begin",), "collect": ("collect",), "publish": ("publish",)}
    begin = graph.stage("begin")
    assert begin is not None
    assert begin.root.is_leaf


def test_steps_may_be_written_in_any_order() -> None:
    pipeline = linked(("last", "middle"), ("middle", "first"), ("first", ()))
    assert [stage.name for stage in pipeline.compile().stages] == ["first", "middle"]
    assert shape(pipeline.compile())["middle"] == ("middle", "last")


@pytest.mark.parametrize(
    ("links", "complaint"),
    [
        ([("a", "b"), ("b", "a")], "steps wait for each other: a → b → a"),
        ([("a", "a")], "steps wait for each other: a → a"),
        ([("r", ()), ("a", ["r", "c"]), ("b", "a"), ("c", "b")], "a → b → c → a"),
        (
            [("extract", ()), ("b", "extrakt")],
            "after 'extrakt', which is not a step; did you mean 'extract'?",
        ),
        ([("a", ()), ("a", ())], "there are two steps named 'a'"),
    ],
)
def test_a_graph_that_can_not_be_walked_is_named(links: Any, complaint: str) -> None:
    with pytest.raises(PipelineError) as raised:
        linked(*links).compile()
    assert complaint in raised.value.message
    assert "\n" not in raised.value.message


def keyed(key: Any, item: Any) -> Any:
    """What a run step that gives this item comes to, when the step after it has this key."""
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    def begin() -> Any:
        return item

    @pipeline.step(after="begin", unit="page", key=key)
    def each(item: Any) -> None: ...

    return attempt(pipeline, "begin")


@pytest.mark.parametrize(
    ("key", "item", "expected"),
    [
        ("url", {"url": "https://acme.com/1"}, "https://acme.com/1"),
        ("id", {"id": 7}, "7"),
        ("id", {"id": [1, 2]}, canonical_key([1, 2])),
        (lambda item: item["a"] + item["b"], {"a": "x", "b": "y"}, "xy"),
        (None, {"b": 1, "a": 2.0}, canonical_key({"a": 2, "b": 1})),
    ],
)
def test_an_item_gets_the_key_its_step_names(key: Any, item: Any, expected: str) -> None:
    outcome = keyed(key, item)
    assert isinstance(outcome, Succeeded)
    [child] = outcome.effects.children
    assert (child.stage, child.key) == ("each", expected)
    assert msgspec.json.decode(child.item) == item


@pytest.mark.parametrize(
    ("key", "item", "complaint"),
    [
        (
            "url",
            {"uri": "x", "n": 1},
            "step 'each' is the field 'url', which an item with uri, n lacks",
        ),
        ("url", ["x"], "which a list lacks"),
        ("url", {"url": None}, "the key of step 'each' is empty"),
        (None, {"when": object()}, "step 'begin' gave an item that is not JSON"),
        (None, "\ud800", "step 'begin' gave an item that is not JSON"),
    ],
)
def test_an_item_that_can_not_be_handed_on_fails_for_good(
    key: Any, item: Any, complaint: str
) -> None:
    outcome = keyed(key, item)
    assert isinstance(outcome, Failed)
    assert outcome.is_permanent
    assert outcome.kind == "data"
    assert complaint in outcome.error


def load(path: Path, text: str) -> Graph:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pipeline: Pipeline = module.pipeline
    return pipeline.compile()


MODULE = """
from penstock.pipeline.pipeline import Pipeline
pipeline = Pipeline("p")

@pipeline.step(unit="run", timeout="{timeout}")
def begin():
    return price()

def price():
    return {price}
"""


def test_the_version_changes_with_the_code_around_a_step_and_its_configuration(
    tmp_path: Path,
) -> None:
    first = load(tmp_path / "a.py", MODULE.format(timeout="1s", price=1))
    assert load(tmp_path / "b.py", MODULE.format(timeout="1s", price=1)).version == first.version
    assert load(tmp_path / "c.py", MODULE.format(timeout="1s", price=2)).version != first.version
    assert load(tmp_path / "d.py", MODULE.format(timeout="2s", price=1)).version != first.version


def test_a_pipeline_without_source_text_has_a_version_too() -> None:
    def typed_in(price: int) -> Graph:
        names: dict[str, Any] = {}
        exec(MODULE.format(timeout="1s", price=price), names)  # noqa: S102
        pipeline: Pipeline = names["pipeline"]
        return pipeline.compile()

    assert typed_in(1).version == typed_in(1).version


def test_a_step_that_lists_itself_feeds_itself_within_the_usual_bounds() -> None:
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    def discover() -> None:
        return None

    @pipeline.step(after=["discover", "crawl"], unit="page", key="url")
    def crawl(page: Any) -> None:
        return None

    stage = pipeline.compile().stage("crawl")

    assert stage is not None
    assert stage.after == ("discover",)
    assert [feed.stage for feed in stage.root.feeds] == ["crawl"]
    assert stage.follow == Follow()


def test_a_step_that_waits_for_itself_alone_is_told_how_to_follow() -> None:
    pipeline = Pipeline("p")

    @pipeline.step(after="crawl", unit="page")
    def crawl(page: Any) -> None:
        return None

    with pytest.raises(PipelineError, match="crawl → crawl") as refused:
        pipeline.compile()
    assert "ctx.follow(item)" in refused.value.hint


@pytest.mark.parametrize("follow", [{"deep": 3}, {"depth": 0}, {"pages": "many"}, 7])
def test_bounds_of_following_that_make_no_sense_are_refused(follow: Any) -> None:
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    def discover() -> None:
        return None

    @pipeline.step(after="discover", unit="page", follow=follow)
    def crawl(page: Any) -> None:
        return None

    with pytest.raises(PipelineError, match="follow"):
        pipeline.compile()
