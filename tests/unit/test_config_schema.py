"""penstock.yaml has one declaration: what is read, the schema and the documented keys are the same."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from penstock.errors import ConfigError
from penstock.settings import load_settings
from penstock.settings.connector import BUILT_IN
from penstock.settings.declaration import Key, Keys, keys_of
from penstock.settings.document import read_value
from penstock.settings.environment import Substitution
from penstock.settings.project import ProjectKeys
from penstock.settings.reference import with_tables
from penstock.settings.retries import RetryKeys
from penstock.settings.schedule import ScheduleKeys
from penstock.settings.schema import json_schema
from penstock.settings.section import plain
from tests.docs.pages import Block, all_blocks
from tests.unit.test_mistakes import SHARED
from tests.unit.test_settings import FULL, MINIMAL

ROOT = Path(__file__).parents[2]
SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
FILES = sorted((ROOT / "src" / "penstock" / "demo").rglob("penstock*.yaml"))
# A job of the builder is another file, with a schema of its own: tests/journeys/test_builder_mistakes.py.
OTHERS = ("a job, no penstock.yaml", "configuration of Dagster")
BLOCKS = [
    block
    for block in all_blocks()
    if block.language == "yaml" and not block.reason.startswith(OTHERS)
]


def problems(text: str) -> list[str]:
    """What the schema has against the text, read as Penstock reads it."""
    found = plain(read_value(text, "the text"))
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(found)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [MINIMAL, FULL, SHARED, "project: empty\nsources:\n"])
def test_what_can_be_read_fits_the_schema(text: str, tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(text)
    load_settings(tmp_path, environ={})
    assert problems(text) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_that_is_shipped_fits_the_schema(file: Path) -> None:
    assert problems(file.read_text("utf-8")) == []


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_example_of_the_docs_fits_the_schema(block: Block) -> None:
    assert problems(whole(block.text)) == []


def whole(text: str) -> str:
    """A file with this in it; an example may be of a source alone."""
    found = plain(read_value(text, "the text"))
    if isinstance(found, dict) and found.keys() <= SCHEMA["properties"].keys():
        return text
    inner = "".join(f"    {line}\n" for line in text.splitlines())
    return f"sources:\n  acme.com:\n{inner}"


@pytest.mark.parametrize(
    "text",
    [
        "proyect: a\n",
        "worker: {slots: many}\n",
        "worker: {count: 0}\n",
        "worker: [1]\n",
        "retention: {jobs: 30}\n",
        "hosts: {api.example.com: {rate: fast}}\n",
        "budget: {requests: lots}\n",
        "hooks: [{url: 'https://a.example', on: [finished]}]\n",
        "trigger: {hosts: example.com}\n",
        "alerts: [{to: nobody}]\n",
        "alert_rules: {zero-yield: {run: 3}}\n",
        "retries: {slow: {trys: 3}}\n",
        "sources: {a: {pipeline: nothing}}\n",
        "sources: {a: {pipeline: 'a:b', timeout: soon}}\n",
        "sources: {a: {pipeline: 'a:b', limits: {concurency: 4}}}\n",
        "sources: {a: {pipeline: 'a:b', breaker: {ratio: 2}}}\n",
        "sources: {a: {pipeline: 'a:b', schedule: daily}}\n",
        "sources: {a: {pipeline: 'a:b', schedule: {every: 1h, near: {window: 10m}}}}\n",
        "sources: {a: {pipeline: 'a:b', schedule: {cadence: hgih}}}\n",
        "sources: {a: {pipeline: 'a:b', fetch: {robots: perhaps}}}\n",
        "sources: {a: {pipeline: 'a:b', fetch: {max_bytes: huge}}}\n",
        "defaults: {timeot: 5s}\nsources: {a: {pipeline: 'a:b'}}\n",
    ],
)
def test_what_is_wrong_fails_in_both(text: str, tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError):
        load_settings(tmp_path, environ={})
    assert problems(text) != []


DEFINITIONS = {name: SCHEMA[name] for name in ("$schema", "definitions")}
# Sources are read one by one, and to know every calendar takes seconds.
ELSEWHERE = ("defaults", "sources", "calendar")
VALUES: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 7, 0.5, 1e12, "", "x", "off", "auto", "low", "always", "skip", "all"),
    "json",
    *("once", "queue", "open", "full", "in-session", "manual", "30s", "1h", "500ms", "-5m", "5/s"),
    *("60/m", "16MB", "1 KiB", "5000/d", "1GB/d", "2h/run", "5.00/month", "Europe/Paris", "XNYS"),
    *("22:00-06:00", "sat-sun 0:00-24:00", "@daily", "0 2 * * *", "a:b", "https://a.example/x"),
    *("run.completed of other", "./in/*.json", "${NAME}", "a ${NAME} b", "sqlite:a.db"),
    *([], ["x"], ["22:00-06:00"], ["2026-12-25"], ["5/run", "5000/d"], ["failed"], ["10.0.0.0/8"]),
    *(["*.a.example"], ["AWS_*"], {}, {"x": "y"}, {"X-A": "b"}, {"https://a.example": {"A": "b"}}),
    *({"window": "10m", "every": "5s"}, {"calendar": "XNYS"}, {"tries": 3}, {"ratio": 0.2}),
    *([{"url": "https://a.example"}], [{"every": "1h"}, {"cron": "@daily", "name": "b"}]),
)


def sections(section: type[Keys] = ProjectKeys) -> Iterator[type[Keys]]:
    yield section
    for key in keys_of(section):
        for below in (key.section, key.each):
            if below is not None:
                yield from sections(below)


@pytest.mark.parametrize("section", dict.fromkeys([*sections(), ScheduleKeys, RetryKeys]))
def test_the_schema_refuses_no_value_that_can_be_read(section: type[Keys]) -> None:
    name = section.__name__.removesuffix("Keys").removesuffix("Settings")
    properties = SCHEMA["definitions"].get(name, SCHEMA)["properties"]
    read = 0
    keys = [key for key in keys_of(section) if key.name not in ELSEWHERE]
    for key, value in itertools.product(keys, VALUES):
        validator = VALIDATOR.evolve(schema={**DEFINITIONS, **properties[key.name]})
        if can_be_read(key, value):
            read += 1
            assert validator.is_valid(value), f"{name}.{key.name}: {value!r}"
    assert read > 0


def can_be_read(key: Key, value: Any) -> bool:
    written = read_value(json.dumps(value), "a value")
    try:
        key.read(Substitution({"NAME": "7"}).apply(written), key.name)
    except ConfigError:
        return False
    return True


def test_every_key_has_a_description_and_no_link_that_leads_nowhere() -> None:
    for name, section in SCHEMA["definitions"].items():
        for key, value in section["properties"].items():
            assert _has_words(value), f"{name}.{key}"
            assert "](" not in value.get("description", "")


def _has_words(value: dict[str, Any]) -> bool:
    """Its own description, or that of the section that it is."""
    return bool(value.get("description")) or "allOf" in value


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("configuration.md", 4),
        ("schedules.md", 1),
        ("alerts.md", 2),
        ("tracing.md", 1),
        ("metrics.md", 1),
        ("onboarding.md", 1),
        *((f"connectors/{name}.md", 1) for name in BUILT_IN),
    ],
)
def test_the_tables_of_keys_are_those_of_the_declaration(name: str, count: int) -> None:
    page = (ROOT / "docs" / name).read_text("utf-8")
    assert page.count("<!-- keys: ") == count
    rewrite = f"python -m penstock.settings.reference docs/{name}"
    assert with_tables(page) == page, f"write them again: {rewrite}"
