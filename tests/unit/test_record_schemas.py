"""Schemas of collections: what does not fit is rejected with the path of the field, in bounded time."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Pipeline, Project
from penstock.app.views.rejects import RejectFilter
from penstock.cli import main
from penstock.errors import ConfigError, PipelineError
from penstock.jobs.outcome import Succeeded
from penstock.pipeline.attempt import StepSource
from penstock.schemas.drift import drift_of
from penstock.schemas.infer import schema_of
from penstock.schemas.models import check_of
from penstock.schemas.problems import SchemaError
from penstock.schemas.shape import Shape
from penstock.schemas.validator import Validator
from penstock.testing import RawResponse, Request, ScriptedNetwork, Simulation, VirtualClock, answer
from tests.unit.performing import Bench, begun, virtually

NAMES = st.sampled_from(["a", "b", "c", "price"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("xyz", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def schemas() -> st.SearchStrategy[Any]:
    plain = st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": st.integers(-3, 3),
            "exclusiveMaximum": st.integers(-3, 3),
            "minLength": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "pattern": st.sampled_from(["^x", "y+z", "[xy]{2}"]),
            "required": st.lists(NAMES, max_size=2, unique=True),
        },
    )
    return st.recursive(
        st.booleans() | plain,
        lambda inner: st.fixed_dictionaries(
            {},
            optional={
                "type": TYPES,
                "properties": st.dictionaries(NAMES, inner, max_size=3),
                "additionalProperties": inner,
                "items": inner,
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner, min_size=1, max_size=2),
                "allOf": st.lists(inner, min_size=1, max_size=2),
                "not": inner,
            },
        ),
        max_leaves=6,
    )


@settings(max_examples=120, deadline=None)
@given(schema=schemas(), value=VALUES)
def test_verdict_is_that_of_the_standard(schema: Any, value: Any) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)

    assert (Validator(schema).problem(value) is None) == expected


@settings(max_examples=60, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_inferred_schema_fits_everything_that_it_was_made_from(values: list[Any]) -> None:
    shape = Shape()
    for value in values:
        shape.add(value)
    schema = schema_of(shape)

    assert [Validator(schema).problem(value) for value in values] == [None] * len(values)
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"offers": [{"price": 1}, {"price": "1"}]}, "offers.1.price: must be a number, not text"),
        ({"offers": [{}]}, "offers.0.price: is missing"),
        ({"offers": [], "odd": 1}, "odd: is not a known field"),
        ({"offers": 3}, "offers: must be a list, not an integer"),
        ([], "must be an object, not a list"),
    ],
)
def test_misfit_names_the_path_of_the_field_and_not_its_value(value: Any, problem: str) -> None:
    offer = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
    schema = {
        "type": "object",
        "properties": {"offers": {"type": "array", "items": {"$ref": "#/$defs/offer"}}},
        "additionalProperties": False,
        "$defs": {"offer": offer},
    }

    assert Validator(schema).problem(value) == problem


def test_data_nested_without_end_is_refused_and_not_followed() -> None:
    value: dict[str, Any] = {}
    for _ in range(900):
        value = {"a": value}
    schema = {"properties": {"a": {"$ref": "#"}}}

    problem = Validator(schema).problem(value)

    assert problem is not None
    assert "nested deeper" in problem
    assert len(problem) < 1000


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+$", r"(a|a)*b", r"(x*)*y", r".*.*.*=", r"(\w+)\1", r"(?=a+)a", r"([a-z]+\.)+com"],
)
def test_pattern_that_could_take_long_is_refused_when_the_schema_is_read(pattern: str) -> None:
    with pytest.raises(SchemaError, match="can take very long"):
        Validator({"pattern": pattern})


@pytest.mark.parametrize("pattern", [r"^[A-Z]{2}-\d+$", r"\s*=\s*$", r"a*a*$", r"^https?://"])
def test_allowed_pattern_ends_soon_on_the_worst_text(pattern: str) -> None:
    validator = Validator({"pattern": pattern})
    began = time.process_time()
    for text in ("a" * 256 + "!", " " * 256, "A" * 300, "a" * 1_000_000):
        validator.problem(text)

    # The worst of them takes milliseconds; a pattern that backtracks without bound would take for ever.
    assert time.process_time() - began < 5
    assert "longer than" in (validator.problem("a" * 300) or "")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "text"}, "type: must be of"),
        ({"properties": []}, "properties: must be an object"),
        ({"unevaluatedProperties": False}, "'unevaluatedProperties' is not supported"),
        ({"$ref": "other.json"}, "only this file is read"),
        ({"$ref": "#/$defs/none"}, "there is no"),
        ({"pattern": "("}, "no regular expression"),
        ({"minimum": "3"}, "must be a number"),
    ],
)
def test_schema_that_can_not_be_used_says_where_and_why(schema: Any, problem: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(problem)):
        Validator(schema)


class Offer(msgspec.Struct):
    sku: str
    price: float


class Model(pydantic.BaseModel):
    sku: str
    price: float


@pytest.mark.parametrize("model", [Offer, Model])
def test_model_of_msgspec_or_pydantic_is_a_schema(model: Any) -> None:
    check = check_of(model)

    assert check({"sku": "a", "price": 1}, False) is None
    assert str(check({"sku": "a", "price": []}, False)).startswith("price: ")
    assert "sku" in str(check({"price": 1}, False))
    assert check({"price": 1}, True) is None


def saving(
    pipeline: Pipeline, *data: Any, source: StepSource | None = None, **how: Any
) -> Succeeded:
    @pipeline.step(after="begin", unit="page")
    def act(ctx: Any) -> None:
        for number, each in enumerate(data):
            ctx.save("offer", key=number, data=each, **how)

    async def perform() -> Any:
        return await Bench(pipeline, source=source).start("act", {"n": 1})

    outcome = virtually(perform())
    assert isinstance(outcome, Succeeded), outcome
    return outcome


def test_record_that_does_not_fit_is_rejected_and_the_others_are_saved() -> None:
    pipeline = begun()
    pipeline._schemas = {"offer": Offer}
    schema = {"properties": {"price": {"minimum": 0}}}

    outcome = saving(
        pipeline,
        {"sku": "a", "price": 1.0},
        {"sku": "b", "price": -1.0},
        {"sku": 5, "price": 1.0},
        Model(sku="d", price=2.0),
        source=StepSource("acme.com", schemas={"offer": schema}),
    )

    assert [save.key for save in outcome.effects.saves] == ["0", "3"]
    assert [each.code for each in outcome.effects.rejections] == ["schema", "schema"]
    [low, odd] = [each.reason for each in outcome.effects.rejections]
    assert low == "offer 1: price: must be at least 0"
    assert odd.startswith("offer 2: sku: ")


def test_part_that_is_merged_need_not_have_every_field() -> None:
    source = StepSource("acme.com", schemas={"offer": {"required": ["sku"]}})

    outcome = saving(begun(), {"price": 1.0}, source=source, merge="merge")

    assert len(outcome.effects.saves) == 1
    assert not outcome.effects.rejections


def test_pipeline_with_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(
        PipelineError, match="the schema of 'offer': must be a JSON Schema or a class"
    ):
        Pipeline("p", schemas={"offer": 5}).compile()


def counted(**fields: dict[str, int]) -> dict[str, dict[str, int]]:
    return {"": {"object": 100}, **fields}


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (counted(), counted(a={"string": 3}), ["a is new (string)"]),
        (
            counted(a={"integer": 100}),
            counted(a={"string": 100}),
            ["a was integer and is string"],
        ),
        (
            counted(a={"string": 100}),
            counted(a={"string": 60, "null": 40}),
            ["a was empty in 0% and is empty in 40%"],
        ),
        (counted(a={"string": 100}), counted(), ["a was empty in 0% and is empty in 100%"]),
        (counted(a={"number": 100}), counted(a={"integer": 100}), []),
        (counted(a={"string": 90}), counted(a={"string": 85}), []),
        ({}, counted(a={"string": 3}), []),
    ],
)
def test_drift_is_a_new_field_another_type_or_more_empty_values(
    before: Any, now: Any, words: list[str]
) -> None:
    assert [each.words() for each in drift_of(before, now)] == words


PIPELINE = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    response = await ctx.fetch("https://acme.com/list")
    for item in response.json():
        yield item


@shop.step(after="discover", unit="candidate", key="sku")
def persist(item, ctx):
    ctx.save("product", key=item["sku"], data=item)
"""


def test_project_rejects_by_its_schema_and_tells_of_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop_with_schema.py").write_text(PIPELINE)
    schema = {"properties": {"price": {"type": "number"}}, "required": ["sku"]}
    (tmp_path / "product.schema.json").write_text(json.dumps(schema))
    (tmp_path / "penstock.yaml").write_text(
        "collections: {product: {schema: product.schema.json}}\n"
        "sources: {acme.com: {pipeline: 'shop_with_schema:shop', fetch: {robots: false}}}\n"
    )
    items = [{"sku": f"s{number}", "price": 1.5} for number in range(3)]

    async def listing(request: Request) -> RawResponse:
        return answer(json.dumps(items).encode())

    with Project.load(tmp_path) as project:
        network = ScriptedNetwork(listing)
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            project.run("acme.com")
            simulation.run()
            items[0] = {"sku": "s0", "price": "1.5", "colour": "red"}
            second = project.run("acme.com")
            simulation.run()
        [reject] = project.rejects.list(RejectFilter(run_id=second)).items
        [event] = project.journal.list(kind="schema.drifted").items
        [signal] = project.signals.list("schema.drifted").items

    assert reject.code == "schema"
    assert reject.reason == "product s0: price: must be a number, not text"
    assert (
        event.detail == "product: colour is new (string), price was number and is number or string"
    )
    assert signal.name == "schema.drifted"
    folder = ("--project", str(tmp_path))
    assert main(["schema", "check", "product", *folder]) == 0
    assert "3 records of product tested; all fit" in capsys.readouterr().out
    (tmp_path / "strict.json").write_text('{"properties": {"price": {"minimum": 2}}}')
    strict = ["schema", "check", "product", "--schema", str(tmp_path / "strict.json"), "--json"]
    assert main([*strict, *folder]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["misfits"], found["shown"][0]["problem"]) == (3, "price: must be at least 2")
    assert main(["schema", "infer", "product", *folder]) == 0
    inferred = json.loads(capsys.readouterr().out)
    assert inferred["required"] == ["price", "sku"]


def test_schema_is_of_what_is_there_and_a_deleted_row_needs_not_fit_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "penstock.yaml").write_text(
        "sources: {rows: {connector: dump, path: rows.csv, key: id, collection: row}}\n"
    )

    def run(text: str) -> None:
        (tmp_path / "rows.csv").write_text(text)
        with Project.load(tmp_path) as project:
            project.runs.perform("rows")

    def schema() -> str:
        assert main(["schema", "infer", "row", "--project", str(tmp_path)]) == 0
        return capsys.readouterr().out

    run("id,price\na,1\nb,2\n")
    inferred = schema()
    (tmp_path / "row.json").write_text(inferred)
    with (tmp_path / "penstock.yaml").open("a") as config:
        config.write("collections: {row: {schema: row.json}}\n")
    run("id,price\na,3\n")
    run("id,price,colour\na,3,red\n")
    with Project.load(tmp_path) as project:
        assert project.rejects.list().items == []
        assert project.records.get("row", "b").data == {"key": "b", "deleted": True}
        [event] = project.journal.list(kind="schema.drifted").items
    assert event.detail == "row: data.colour is new (string)"
    assert '"deleted"' not in schema()
    assert main(["schema", "check", "row", "--project", str(tmp_path)]) == 0
    assert "2 records of row tested; all fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "can't read product.schema.json"),
        ("{", "is no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"type": "text"}', "type: must be of"),
    ],
)
def test_project_with_a_bad_schema_is_refused_before_anything_runs(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    (tmp_path / "shop_with_bad_schema.py").write_text(PIPELINE)
    (tmp_path / "penstock.yaml").write_text(
        "collections: {product: {schema: product.schema.json}}\n"
        "sources: {acme.com: {pipeline: 'shop_with_bad_schema:shop'}}\n"
    )
    if text is not None:
        (tmp_path / "product.schema.json").write_text(text)

    with pytest.raises(ConfigError, match=problem) as raised:
        Project.load(tmp_path)

    assert "collections.product.schema" in raised.value.message
