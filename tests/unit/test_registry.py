"""Pipelines made of registered steps: what a profile comes to, and that packaging is always last."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock import Pipeline, Registry
from penstock.app.step_graphs import profile_graph
from penstock.builder.registry import builder
from penstock.cli import main
from penstock.errors import PipelineError
from penstock.pipeline.selection import Selection, overlaid, select
from penstock.project import Project
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

STEPS = "tests.unit.registered_steps"
# The seed's table: what must come before what, directly or not, where a profile has both.
BLOCKING = {
    "http.static": ("dumps.collect",),
    "http.serp": ("normalize.standardize", "enrich.address"),
    "crawl.site": ("http.serp",),
    "crawl.site_async": ("http.serp",),
    "headless.collect": ("dumps.collect",),
    "normalize.standardize": ("parse.html", "parse.jsonld"),
    "enrich.address": ("normalize.standardize",),
    "quality.checks": (
        "normalize.standardize",
        "enrich.google_maps",
        "enrich.site",
        "enrich.email",
    ),
}


def chain() -> Registry:
    registry = Registry("chain", default="all")
    registry.add("begin", f"{STEPS}:begin", outputs=("row", "link"))
    registry.add("clean", f"{STEPS}:passed", after="begin", takes="row", outputs="row", unit="page")
    registry.add("score", f"{STEPS}:passed", after="clean", takes="row", outputs="row", unit="page")
    registry.add("save", f"{STEPS}:saved", needs="begin", after="score", takes="row", unit="page")
    registry.add("pack", f"{STEPS}:gathered", final=True)
    registry.feature("scoring", "score")
    registry.profile("all", steps=("begin", "clean", "score", "save", "pack"))
    registry.profile("short", extends="all", without=("clean",), config={"shown": {"deep": 1}})
    return registry


def edges(selection: Selection) -> dict[str, tuple[str, ...]]:
    return {each.name: each.after for each in selection.steps}


def before(after: Mapping[str, tuple[str, ...]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for each in after[waiting.pop()]:
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def test_the_place_of_a_step_that_is_left_out_is_taken_by_those_before_it() -> None:
    assert edges(select(chain(), "short")) == {
        "begin": (),
        "score": ("begin",),
        "save": ("score",),
        "pack": ("save",),
    }
    without_both = select(chain(), "short", {"scoring": False})
    assert edges(without_both)["save"] == ("begin",)
    assert without_both.left_out["score"] == "feature scoring is off"


def test_what_a_step_needs_is_added_and_said() -> None:
    selection = select(builder, {"steps": ["api.collect", "package.export"]})
    why = {each.name: each.why for each in selection.steps}
    assert why["quality.score"] == "added: package.export needs it"
    assert why["normalize.standardize"] == "added: normalize.resolve needs it"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({"extends": "standard", "without": ["http.serp"]}, "'crawl.site_async' needs 'http.serp'"),
        (
            {"extends": "quick", "features": {"dumps": False, "api": False}},
            "takes row, which no step",
        ),
        (
            {"extends": "quick", "steps": ["http.sitemap"]},
            "'http.sitemap' gives link, which no step",
        ),
        ({"steps": ["enrich.adress"]}, "there is no step 'enrich.adress'; did you mean"),
        ({"steps": [], "extends": "gone"}, "there is no profile 'gone'"),
        (
            {"extends": "quick", "features": {"map": False}},
            "there is no feature 'map'; did you mean",
        ),
        (
            {"extends": "quick", "wihtout": []},
            "a profile has no 'wihtout'; did you mean 'without'?",
        ),
        (
            {"steps": ["api.collect"], "without": ["api.collect"]},
            "both in `steps` and in `without`",
        ),
    ],
)
def test_a_profile_that_can_not_work_is_refused_in_one_line(profile: Any, said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        select(builder, profile)
    assert said in refused.value.message
    assert "\n" not in refused.value.message


def test_a_circle_and_a_step_after_a_final_one_are_refused() -> None:
    registry = Registry("round")
    registry.add("a", "m:a", after="b")
    registry.add("b", "m:b", after="a")
    registry.profile("all", steps=("a", "b"))
    with pytest.raises(PipelineError, match=r"wait for each other: (a → b → a|b → a → b)"):
        select(registry, "all")
    late = chain()
    late.add("late", f"{STEPS}:passed", after="pack")
    with pytest.raises(PipelineError, match="'late' comes after 'pack', which is final"):
        select(late)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tests.unit.no_such_steps:begin", "needs the module 'tests.unit.no_such_steps'"),
        (f"{STEPS}:beginn", "has no function 'beginn'"),
    ],
)
def test_a_function_that_is_not_there_is_named(target: str, said: str) -> None:
    registry = Registry("lost", extra="builder")
    registry.add("begin", target)
    registry.profile("all", steps="begin")
    with pytest.raises(PipelineError, match=said):
        Pipeline.from_registry(registry, "all")


@pytest.mark.parametrize("profile", ["quick", "standard", "deep"])
def test_the_builders_profiles_keep_the_order_of_its_dependencies(profile: str) -> None:
    after = edges(select(builder, profile))
    for name, needed in BLOCKING.items():
        if name in after:
            assert before(after, name) >= set(needed) & set(after)
    assert list(after)[-1] == "package.export"


@settings(max_examples=120, deadline=None)
@given(
    st.sets(st.sampled_from(sorted(builder.steps))),
    st.sets(st.sampled_from(sorted(builder.steps)), max_size=4),
    st.dictionaries(st.sampled_from(sorted(builder.features)), st.booleans(), max_size=4),
    st.sampled_from(["", "quick", "standard", "deep"]),
)
def test_packaging_is_strictly_last_in_every_profile(
    steps: set[str], without: set[str], features: dict[str, bool], extends: str
) -> None:
    profile = {
        "steps": ["package.export", *steps],
        "without": [*(without - steps - {"package.export"})],
        "extends": extends,
    }
    try:
        after = edges(select(builder, profile, features))
    except PipelineError:
        assume(False)
    others = set(after) - {"package.export"}
    assert before(after, "package.export") == others
    assert all("package.export" not in given for given in after.values())
    assert not any(need not in after for name in after for need in builder.steps[name].needs)
    for name, needed in BLOCKING.items():
        if name in after:
            assert before(after, name) >= set(needed) & set(after)


@st.composite
def registries(draw: st.DrawFn) -> tuple[Registry, list[str]]:
    """A registry of steps that come after some of those before them, and a choice of them."""
    registry = Registry("drawn")
    names = [f"s{n}" for n in range(draw(st.integers(1, 8)))]
    for at, name in enumerate(names):
        earlier = names[:at]
        after = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        needs = draw(st.lists(st.sampled_from(earlier), max_size=1)) if earlier else []
        gather = bool(after or needs) and draw(st.booleans())
        target = "gathered" if gather else "passed" if after or needs else "begin"
        registry.add(name, f"{STEPS}:{target}", after=after, needs=needs, gather=gather)
    registry.add("pack", f"{STEPS}:gathered", final=True, needs=draw(st.sampled_from(names)))
    registry.add("ship", f"{STEPS}:gathered", final=True, after="pack")
    return registry, draw(st.lists(st.sampled_from(names), min_size=1, unique=True))


@settings(max_examples=60, deadline=None)
@given(registries())
def test_final_steps_come_after_all_others_in_any_registry(
    drawn: tuple[Registry, list[str]],
) -> None:
    registry, chosen = drawn
    try:
        graph = Pipeline.from_registry(registry, {"steps": [*chosen, "ship", "pack"]}).compile()
    except PipelineError:
        assume(False)
    after = {stage.name: stage.after for stage in graph.stages}
    assert all(stage.steps == (stage.name,) for stage in graph.stages)
    assert before(after, "pack") == set(after) - {"pack", "ship"}
    assert before(after, "ship") == set(after) - {"ship"}


def test_a_source_runs_a_profile_with_its_configuration_over_the_params(tmp_path: Path) -> None:
    (tmp_path / "own_registry.py").write_text(
        "from tests.unit.test_registry import chain\nregistry = chain()\n"
    )
    source = {
        "pipeline": "own_registry:registry",
        "profile": {"extends": "short", "config": {"shown": {"wide": 2}}},
        "params": {"shown": {"deep": 0, "kept": True}},
    }
    (tmp_path / "penstock.yaml").write_text(json.dumps({"project": "p", "sources": {"s": source}}))
    with Project.load(tmp_path) as project:
        clock = VirtualClock()
        run = project.run("s")
        with Simulation(project, ScriptedNetwork.of_pages({}), seed=1, clock=clock) as simulation:
            simulation.run()
        assert project.require_run(run).state == "completed"
        found = project.connection.records.of("seen")
        stages = {row.stage for row in project.connection.runs.stages(run)}
    # Only rows are handed on: the link that `begin` yields too is nobody's.
    assert [record.data["n"] for record in found] == [0, 1, 2]
    assert found[0].data["shown"] == {"deep": 1, "kept": True, "wide": 2}
    assert stages == {"begin", "score", "save", "pack"}


def test_params_are_overlaid_mapping_by_mapping() -> None:
    assert overlaid({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2]}, "d": {"e": 1}}) == {
        "a": {"b": 1, "c": [2]},
        "d": {"e": 1},
    }


def test_a_graph_is_looked_at_without_importing_its_steps() -> None:
    script = (
        "import sys; from penstock.app.step_graphs import profile_graph; profile_graph('deep');"
    )
    script += "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "penstock.builder.registry" in done.stdout.split()
    assert not [name for name in done.stdout.split() if name.startswith("penstock.builder.steps")]


def test_the_command_prints_the_graph_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "graph", "standard", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert {each["name"]: each["after"] for each in steps} == {
        each.name: each.after for each in profile_graph("standard").steps
    }
    assert steps[0]["phase"] == "Collection"
    assert main(["pipeline", "graph", "quick", "--explain"]) == 0
    assert "added: package.export needs it" in capsys.readouterr().out
    assert main(["pipeline", "graph", "deep", "--format", "mermaid"]) == 0
    assert "quality_score --> package_export" in capsys.readouterr().out
    assert main(["pipeline", "graph", "deep", "--format", "svg", "--output", "deep.svg"]) == 0
    from xml.etree import ElementTree

    boxes = ElementTree.parse("deep.svg").findall(".//{*}text")  # noqa: S314  our own picture
    assert {"enrich.google_maps", "package.export"} <= {each.text for each in boxes}
    assert main(["pipeline", "graph", "dep"]) == 2
    assert "did you mean 'deep'?" in capsys.readouterr().err
