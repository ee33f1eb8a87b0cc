"""`penstock config`: every mistake at once, every value with its origin, and the schema for editors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import exits, main
from penstock.settings.schema import json_schema

MODULE = "config_steps"
PIPELINES = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    ctx.save("thing", key=ctx.source, data={})
"""
CONFIG = f"""\
project: shop
worker: {{slots: 12}}
defaults: {{timeout: 5s, pipeline: "{MODULE}:things"}}
sources:
  acme.com:
    params: {{api_key: written-down, pages: [1, 2]}}
    fetch: {{headers: {{Authorization: "Bearer ${{SHOP_TOKEN}}"}}}}
  other: {{limits: {{rate: 6/m}}}}
"""
OVERLAY = "worker: {slots: 20}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINES)
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "penstock.live.yaml").write_text(OVERLAY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", "hunter2hunter2")
    yield tmp_path
    sys.modules.pop(MODULE, None)


def as_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    assert main(["config", "show", "--json", *words]) == exits.DONE
    return {each["key"]: each for each in as_json(capsys)["values"]}


def test_a_sound_project_has_nothing_wrong_and_no_database(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check"]) == exits.DONE
    assert "2 sources" in capsys.readouterr().out
    assert not (folder / "penstock.db").exists()


def test_every_mistake_of_settings_is_printed_however_many_there_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"  s{n}: {{pipeline: 'a:b', timeout: soon}}\n" for n in range(30))
    (folder / "penstock.yaml").write_text(f"proyect: a\nsources:\n{lines}")
    assert main(["config", "check"]) == exits.USAGE
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "penstock.yaml:1: proyect: unknown key, did you mean 'project'?"
    assert len([line for line in told if "is not a duration" in line]) == 30
    assert told[-1] == "penstock: found 31 mistakes"

    assert main(["config", "check", "--json"]) == exits.USAGE
    found = as_json(capsys)
    assert (found["sound"], len(found["mistakes"])) == (False, 31)
    assert found["mistakes"][1] | {"message": ""} == {
        "kind": "setting",
        "message": "",
        "file": "penstock.yaml",
        "line": 3,
        "key": "sources.s0.timeout",
        "hint": "",
    }


def test_a_pipeline_that_can_not_be_imported_is_a_mistake_at_the_line_that_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(
        f"sources:\n  a: {{pipeline: '{MODULE}:things'}}\n  b: {{pipeline: '{MODULE}:thngs'}}\n"
        "  c: {pipeline: 'nowhere_at_all:x'}\n"
    )
    assert main(["config", "check", "--json"]) == exits.USAGE
    found = as_json(capsys)["mistakes"]
    assert [(each["kind"], each["line"], each["key"]) for each in found] == [
        ("pipeline", 3, "sources.b.pipeline"),
        ("pipeline", 4, "sources.c.pipeline"),
    ]
    assert "things" in found[0]["hint"]


def test_a_variable_that_is_not_set_is_a_warning_and_a_mistake_where_that_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SHOP_TOKEN")
    assert main(["config", "check"]) == exits.DONE
    assert "warning: penstock.yaml:7: " in capsys.readouterr().err
    assert main(["config", "check", "--strict"]) == exits.USAGE
    assert "SHOP_TOKEN is not set" in capsys.readouterr().err


def test_every_value_says_where_it_comes_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = shown(capsys, "--env", "live")
    origins = {
        key: (values[key]["value"], values[key]["origin"], values[key]["file"], values[key]["line"])
        for key in (
            "project",
            "worker.slots",
            "worker.threads",
            "retention.jobs",
            "sources.acme.com.timeout",
            "sources.acme.com.params.pages",
            "sources.other.limits.rate",
        )
    }
    assert origins == {
        "project": ("shop", "file", "penstock.yaml", 1),
        "worker.slots": (20, "overlay", "penstock.live.yaml", 1),
        "worker.threads": (32, "default", None, None),
        "retention.jobs": ("30d", "default", None, None),
        "sources.acme.com.timeout": ("5s", "defaults", "penstock.yaml", 3),
        "sources.acme.com.params.pages": ([1, 2], "file", "penstock.yaml", 6),
        "sources.other.limits.rate": ("6/m", "file", "penstock.yaml", 8),
    }
    assert values["sources.acme.com.fetch.headers.Authorization"]["variables"] == ["SHOP_TOKEN"]


def test_no_secret_is_shown_neither_of_a_variable_nor_one_that_is_written_down(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(
        "store: postgresql://me:passw0rd-in-url@db.example.com/x?sslmode=require\n"
        "trigger: {token: a-token-of-the-trigger}\n"
        "hooks: [{url: 'https://a.example', secret: signs-each-delivery, headers: {X-A: a-header}}]\n"
        + CONFIG
    )
    for words in (["config", "show"], ["config", "show", "--json"]):
        assert main(words) == exits.DONE
        told = capsys.readouterr().out
        assert "Bearer ${SHOP_TOKEN}" in told
        for secret in ("hunter2", "passw0rd", "a-token", "signs-each", "a-header", "written-down"):
            assert secret not in told


def test_one_source_or_section_can_be_shown_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {key.partition(".")[0] for key in shown(capsys, "worker")} == {"worker"}
    written = shown(capsys, "acme.com", "--written")
    assert list(written) == [
        "sources.acme.com.pipeline",
        "sources.acme.com.params.api_key",
        "sources.acme.com.params.pages",
        "sources.acme.com.timeout",
        "sources.acme.com.fetch.headers.Authorization",
    ]
    assert main(["config", "show", "acme.co"]) == exits.USAGE


def test_init_writes_the_schema_and_tells_editors_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "shop")]) == exits.DONE
    first = (tmp_path / "shop" / "penstock.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=penstock.schema.json"
    written = (tmp_path / "shop" / "penstock.schema.json").read_text()
    assert json.loads(written) == json_schema()

    assert main(["config", "schema", "--output", str(tmp_path / "again.json")]) == exits.DONE
    assert (tmp_path / "again.json").read_text() == written
    capsys.readouterr()
    assert main(["config", "schema"]) == exits.DONE
    assert capsys.readouterr().out == written
