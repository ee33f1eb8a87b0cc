"""A pipeline says what is wrong with a step in one line, and hands each step what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import PipelineError
from penstock.jobs.outcome import Succeeded
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import attempt, begun


def test_a_step_stays_a_function_that_a_test_can_call() -> None:
    pipeline = Pipeline("p")

    def double(number: int) -> int:
        return number * 2

    assert pipeline.step(after="x", unit="page", key="n")(double) is double
    assert double(4) == 8


def test_units_are_run_for_what_begins_or_gathers_and_page_otherwise() -> None:
    pipeline = begun()

    @pipeline.step(after="begin")
    def each(item: Any) -> None: ...

    @pipeline.step(after="each", gather=True)
    def report() -> None: ...

    units = {stage.name: stage.unit for stage in pipeline.compile().stages}
    assert units == {"begin": "run", "each": "page", "report": "run"}


def test_timeouts_are_durations_or_seconds() -> None:
    pipeline = begun()

    @pipeline.step(after="begin", timeout="2m")
    def spelled(item: Any) -> None: ...

    @pipeline.step(after="begin", timeout=1.5)
    def counted(item: Any) -> None: ...

    timeouts = [stage.timeout_s for stage in pipeline.compile().stages]
    assert timeouts == [None, 120.0, 1.5]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"unit": "pages"}, "unknown unit 'pages'; did you mean 'page'?"),
        (
            {"retry": {"trys": 8}},
            "retry has no 'trys'; did you mean 'tries'?",
        ),
        ({"retry": {"tries": 0}}, "retry: tries is a whole number from 1 up, not 0"),
        ({"retry": {"base": "soon"}}, "retry: base 'soon' is not a duration like '30s'"),
        ({"retry": {"class": 3}}, "retry: class is the name of a class, not 3"),
        ({"retry": 3}, "retry is the name of a class or a mapping, not 3"),
        ({"useful_for": "long"}, "useful_for 'long' is not a duration like '30s'"),
        ({"errors": [KeyError]}, "errors= is a mapping like {'transient': (MyError,)}"),
        ({"errors": {"transiet": KeyError}}, "errors=: there is no kind 'transiet'; known: tran"),
        ({"errors": {"data": "KeyError"}}, "errors=: 'data' takes types of exceptions"),
        ({"isolation": "fork"}, "unknown isolation 'fork'; known: inline, process, thread"),
        ({"timeout": "30 parsecs"}, "timeout '30 parsecs' is not a duration like '30s'"),
        ({"timeout": 0}, "timeout 0 is not a duration"),
        ({"timeout": True}, "timeout True is not a duration"),
        ({"timeout": float("nan")}, "timeout nan is not a duration"),
        ({"priority": "high"}, "priority 'high' is not a whole number"),
        ({"resources": {"memory": 5}}, "unknown resource 'memory'; did you mean 'memory_mb'?"),
        ({"resources": {"cpu": -1}}, "resource 'cpu' can't be -1"),
        ({"resources": 3}, "resources is a mapping like {'cpu': 1}"),
        ({"key": 3}, "key is the name of a field or a function, not 3"),
        ({"after": ["begin", 3]}, "after= takes the names of steps"),
        ({"gather": True}, "gathers: it gets no item, only ctx"),
        ({"after": ()}, "begins the run: it gets no item, only ctx"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_in_one_line(
    options: dict[str, Any], complaint: str
) -> None:
    pipeline = begun("shop")

    def extract(item: Any) -> None: ...

    pipeline.step(**{"after": "begin", **options})(extract)

    with pytest.raises(PipelineError) as raised:
        pipeline.compile()
    assert raised.value.message.startswith("pipeline 'shop': step 'extract'")
    assert complaint in raised.value.message
    assert "\n" not in raised.value.message


def gathers(ctx: Any) -> None: ...
def two_items(page: Any, product: Any, ctx: Any) -> None: ...
def any_items(*items: Any) -> None: ...
def needs_more(item: Any, *, depth: int) -> None: ...
def hidden_ctx(item: Any, ctx: Any, /) -> None: ...
async def awaits(item: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "complaint"),
    [
        (gathers, {"gather": True, "after": ()}, "step 'gathers' gathers, so it needs after=…"),
        (gathers, {"gather": True, "key": "url"}, "gets no item, so key= has nothing to name"),
        (two_items, {}, "takes (page, product, ctx): a step takes its item and ctx, no more"),
        (any_items, {}, "takes *items: name its item"),
        (needs_more, {}, "nothing is passed for 'depth'"),
        (hidden_ctx, {}, "ctx can't be positional-only"),
        (awaits, {"isolation": "thread"}, "is async, so it can't have isolation='thread'"),
        (lambda item: item, {}, "a step needs a name"),
        ("extract", {}, "a step is a function, not str"),
    ],
)
def test_a_function_that_can_not_be_a_step_is_refused(
    function: Callable[..., Any], options: dict[str, Any], complaint: str
) -> None:
    pipeline = begun()
    pipeline.step(**{"after": "begin", **options})(function)
    with pytest.raises(PipelineError) as raised:
        pipeline.compile()
    assert complaint in raised.value.message


def test_a_pipeline_without_a_name_or_steps_is_refused() -> None:
    with pytest.raises(PipelineError, match="needs a name"):
        Pipeline("")
    with pytest.raises(PipelineError, match="pipeline 'empty': there are no steps"):
        Pipeline("empty").compile()


def test_each_step_gets_what_it_asks_for_by_name() -> None:
    seen: dict[str, Any] = {}
    pipeline = begun()

    def item_ctx(page: Any, ctx: Any) -> None:
        seen["item_ctx"] = (page, ctx.params)

    def ctx_item(ctx: Any, page: Any) -> None:
        seen["ctx_item"] = (page, ctx.params)

    def keyword_ctx(page: Any, depth: int = 3, *, ctx: Any = None) -> None:
        seen["keyword_ctx"] = (page, ctx.params, depth)

    def only_item(page: Any) -> None:
        seen["only_item"] = page

    def only_ctx(ctx: Any) -> None:
        seen["only_ctx"] = ctx.params

    def nothing(depth: int = 3) -> None:
        seen["nothing"] = depth

    for function in (item_ctx, ctx_item, keyword_ctx, only_item, only_ctx, nothing):
        pipeline.step(after="begin", unit="page")(function)
        assert isinstance(attempt(pipeline, function.__name__, {"u": 1}), Succeeded)

    item, params = {"u": 1}, {"depth": 2}
    assert seen == {
        "item_ctx": (item, params),
        "ctx_item": (item, params),
        "keyword_ctx": (item, params, 3),
        "only_item": item,
        "only_ctx": params,
        "nothing": 3,
    }
