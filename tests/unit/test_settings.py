"""penstock.yaml: read once, checked wholly, wrong in one line that says where."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.jobs.retry import DEFAULT_RETRY, RETRY_CLASSES
from penstock.settings import (
    FetchPolicy,
    Limits,
    Retention,
    ScheduleSettings,
    Settings,
    find_project,
    load_settings,
    normalise_source,
    parse_cron,
    parse_duration,
    parse_rate,
    parse_size,
    redact,
)
from penstock.settings.source import SOURCE_KEYS
from penstock.settings.values import RETRY_NAMES, RetryChoice

MINIMAL = "sources:\n  acme.com:\n    pipeline: products:catalogue\n"
FULL = """\
project: shop-watch
store: sqlite:data/shop.db
worker: {slots: 12, threads: 3, processes: 1, cpu: 1.5, memory_mb: 300, grace: 4s}
retention: {jobs: 2d, events: 3d, versions: 4d, snapshots: 5d}
snapshots: raw
sources:
  https://WWW.Acme.com/:
    pipeline: shop.products:catalogue
    params: {sitemap: "https://acme.com/sitemap.xml", pages: [1, 2.5, true, null, no]}
    schedule: {cron: "@daily", timezone: Europe/Paris}
    retry: provider-safe
    timeout: 90s
    priority: 2
    weight: 2.5
    threshold: 0.5
    limits: {concurrency: 8, candidates: 16, rate: 60/m}
    fetch:
      allow_private: true
      robots: false
      user_agent: watcher/1
      timeout: 5s
      max_bytes: 2MB
      max_redirects: 1
      headers: {X-Token: abc}
      headers_for: {'https://API.acme.com/': {X-Key: def}}
      hosts: ['*.acme.com']
  feed:
    pipeline: feeds:news
    schedule: {every: 6h}
"""


def load(tmp_path: Path, text: str, environment: str | None = None, **environ: str) -> Settings:
    (tmp_path / "penstock.yaml").write_text(text, encoding="utf-8")
    return load_settings(tmp_path, environment, environ)


def problem(tmp_path: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    message = caught.value.message
    assert "\n" not in message
    prefix = str(tmp_path) + os.sep
    assert message.startswith(prefix), message
    return message.removeprefix(prefix)


def source_problem(tmp_path: Path, line: str, **environ: str) -> str:
    message = problem(tmp_path, MINIMAL + f"    {line}\n", **environ)
    assert message.startswith("penstock.yaml:4: sources.acme.com."), message
    return message.removeprefix("penstock.yaml:4: sources.acme.com.")


def test_a_minimal_project_gets_every_default(tmp_path: Path) -> None:
    settings = load(tmp_path, MINIMAL)

    assert settings.root == tmp_path
    assert settings.file == tmp_path / "penstock.yaml"
    assert settings.project == tmp_path.name
    assert settings.store == "sqlite:penstock.db"
    assert settings.store_file == tmp_path / "penstock.db"
    assert settings.environment is None
    assert settings.snapshots == tmp_path / "snapshots"
    assert settings.retention == Retention(30 * 86400.0, 90 * 86400.0, 365 * 86400.0, 90 * 86400.0)
    assert (settings.worker.slots, settings.worker.threads, settings.worker.processes) == (
        1024,
        32,
        2,
    )
    assert (settings.worker.memory_mb, settings.worker.grace_s) == (1024, 10.0)
    assert settings.worker.cpu >= 1
    source = settings.sources["acme.com"]
    assert source.pipeline == "products:catalogue"
    assert (source.params, source.retry, source.timeout_s) == ({}, RetryChoice(), None)
    assert (source.priority, source.weight) == (5, 1.0)
    assert source.schedules == ()
    assert source.limits == Limits(concurrency=4, candidates=64, rate_per_s=None)
    assert source.fetch == FetchPolicy(addresses=("https://acme.com", "https://www.acme.com"))
    assert source.fetch.user_agent == "penstock/0.1.0"


def test_every_key_is_read(tmp_path: Path) -> None:
    settings = load(tmp_path, FULL)

    assert (settings.project, settings.store_file) == ("shop-watch", tmp_path / "data/shop.db")
    assert settings.retention == Retention(2 * 86400.0, 3 * 86400.0, 4 * 86400.0, 5 * 86400.0)
    assert (settings.worker.slots, settings.worker.cpu, settings.worker.grace_s) == (12, 1.5, 4.0)
    assert settings.snapshots == tmp_path / "raw"
    assert list(settings.sources) == ["acme.com", "feed"]
    acme = settings.sources["acme.com"]
    assert acme.params["pages"] == [1, 2.5, True, None, "no"]
    assert acme.schedules == (ScheduleSettings("cron", cron="0 0 * * *", timezone="Europe/Paris"),)
    assert (acme.retry, acme.timeout_s, acme.priority, acme.weight) == (
        RetryChoice("provider-safe"),
        90.0,
        2,
        2.5,
    )
    assert (acme.threshold, settings.sources["feed"].threshold) == (0.5, None)
    assert acme.limits == Limits(8, 16, 1.0)
    assert acme.fetch == FetchPolicy(
        allow_private=True,
        robots=False,
        user_agent="watcher/1",
        timeout_s=5.0,
        max_bytes=2_000_000,
        max_redirects=1,
        headers={"X-Token": "abc"},
        headers_for={"https://api.acme.com": {"X-Key": "def"}},
        hosts=("*.acme.com",),
        addresses=(
            "https://acme.com",
            "https://www.acme.com",
            "https://acme.com/sitemap.xml",
        ),
        connections=8,
        rate_per_s=1.0,
    )
    assert settings.sources["feed"].schedules == (ScheduleSettings("every", every_s=21600.0),)


def test_the_retry_words_are_the_retry_classes() -> None:
    assert set(RETRY_NAMES) == set(RETRY_CLASSES)
    assert RETRY_NAMES[0] == DEFAULT_RETRY


def test_a_project_may_have_no_sources(tmp_path: Path) -> None:
    assert load(tmp_path, "project: empty\nsources:\n").sources == {}


def test_a_key_without_a_value_is_as_if_it_were_not_written(tmp_path: Path) -> None:
    settings = load(tmp_path, MINIMAL + "    limits:\n    timeout:\n    schedule:\n")
    assert settings.sources["acme.com"].limits == Limits()


# Mistakes: one line with file, line, key and the nearest valid key.


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("limits: {concurency: 2}", "limits.concurency: unknown key, did you mean 'concurrency'?"),
        ("shedule: manual", "shedule: unknown key, did you mean 'schedule'?"),
        ("zzz: 1", "zzz: unknown key, known: " + ", ".join(sorted(SOURCE_KEYS))),
        ("retry: fats", "retry: must not be 'fats', did you mean 'fast'?"),
        ("timeout: 60", "timeout: must be text such as 30s, not 60"),
        ("timeout: 60 parsecs", "timeout: '60 parsecs' is not a duration: write it as 30s, 5m,"),
        ("timeout: 0s", "timeout: must be at least 0.001s"),
        ("limits: {rate: 60}", "limits.rate: must be text such as 60/m, not 60"),
        ("limits: {rate: 0/m}", "limits.rate: '0/m' is not a rate"),
        ("limits: {concurrency: four}", "limits.concurrency: must be a number, not 'four'"),
        ("limits: {concurrency: true}", "limits.concurrency: must be a number, not true"),
        ("limits: {concurrency: 0}", "limits.concurrency: must be from 1 to 10000"),
        ("limits: {concurrency: 1.5}", "limits.concurrency: must be a whole number"),
        ("limits: 4", "limits: must be a mapping of keys to values, not 4"),
        ("fetch: {robots: no}", "fetch.robots: must be true or false, not 'no'"),
        ("fetch: {max_bytes: huge}", "fetch.max_bytes: 'huge' is not a size"),
        ("fetch: {headers: {X-A: 1}}", "fetch.headers.X-A: must be text, not 1; put it in quotes"),
        ('fetch: {headers: {X-A: "a\\nb"}}', "fetch.headers.X-A: must be one line"),
        ('fetch: {headers: {"X A": b}}', "fetch.headers.X A: is not the name of a header"),
        ("fetch: {headers: [a]}", "fetch.headers: must be a mapping, not a list"),
        ("params: [1]", "params: must be a mapping, not a list"),
        ("schedule: daily", "schedule: must be manual or one of"),
        ("schedule: {}", "schedule: needs one of"),
        ("schedule: {every: 1h, cron: '@daily'}", "schedule: needs one of"),
        ("schedule: {every: 1h, timezone: UTC}", "schedule.timezone: belongs to cron"),
        ("schedule: {every: 0s}", "schedule.every: must be at least 1s"),
        ("schedule: {cron: '61 * * * *'}", "schedule.cron: '61 * * * *' is not a cron expression"),
        ("schedule: {cron: '0 0 31 2 *'}", "schedule.cron: '0 0 31 2 *' is not a cron expression"),
        ("schedule: {cron: '@dayly'}", "schedule.cron: '@dayly' is not a cron alias: did you mean"),
        (
            "schedule: {cron: '@daily', timezone: Europe/Pariss}",
            "schedule.timezone: 'Europe/Pariss' is not a time zone, did you mean 'Europe/Paris'?",
        ),
        ("priority: -1", "priority: must be from 0 to 100"),
        ("weight: .inf", "weight: must be a number, not '.inf'"),
        ("weight: 0", "weight: must be from 0.01 to 1000"),
        ("threshold: high", "threshold: must be a number, not 'high'"),
        ("threshold: .nan", "threshold: must be a number, not '.nan'"),
        (
            "retry: [fast]",
            "retry: must be the name of a class or a mapping like {tries: 8}, not a list",
        ),
        ("retry: {class: fats}", "retry.class: must not be 'fats', did you mean 'fast'?"),
        ("retry: {trys: 3}", "retry.trys: unknown key, did you mean 'tries'?"),
        ("retry: {tries: 0}", "retry.tries: must be from 1 to 1000"),
        ("retry: {base: 1h, cap: 1m}", "retry.base: must not be longer than cap"),
        ("useful_for: 0s", "useful_for: must be at least 1s"),
        ('fetch: {user_agent: "a\\r\\nX: y"}', "fetch.user_agent: must be one line of printable"),
        (
            "params: {a: 99999999999999999999}",
            "params.a: '99999999999999999999' is not a text, num",
        ),
        ('"lim\\nits\\e[2J": 1', "lim?its?[2J: unknown key, did you mean 'limits'?"),
        ("pipeline: other:one", "pipeline: is defined twice (first: line 3)"),
    ],
)
def test_a_mistake_in_a_source_is_named(tmp_path: Path, line: str, expected: str) -> None:
    assert source_problem(tmp_path, line).startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "penstock.yaml: the file is empty"),
        ("# nothing\n", "penstock.yaml: the file is empty"),
        ("projct: a\n", "penstock.yaml:1: projct: unknown key, did you mean 'project'?"),
        ("project: 7\n", "penstock.yaml:1: project: must be text, not 7; put it in quotes"),
        ("project: ''\n", "penstock.yaml:1: project: must not be empty"),
        ("- a\n", "penstock.yaml:1: must be a mapping of keys to values, not a list"),
        ("just words\n", "penstock.yaml:1: must be a mapping of keys to values, not 'just words'"),
        ("\nsources: [a]\n", "penstock.yaml:2: sources: must be a mapping of source names"),
        ("store: oracle://x\n", "penstock.yaml:1: store: must be sqlite:FILE"),
        ("project: b\nproject: c\n", "penstock.yaml:2: project: is defined twice (first: line 1)"),
        ("a: [\n", "penstock.yaml:2: is not YAML: "),
        ("a: b\n\tc: d\n", "penstock.yaml:2: is not YAML: "),
        ("a: 1\n---\nb: 2\n", "penstock.yaml:2: is not YAML: "),
        ("a: *b\n", "penstock.yaml:1: is not YAML: found undefined alias"),
        ("a: \x01\n", "penstock.yaml: is not YAML: "),
        ("? [a]\n: b\n", "penstock.yaml:1: a key must be a word"),
        ("a: &a [*a]\n", "penstock.yaml:1: a[0]"),
        ("worker: {grace: soon}\n", "penstock.yaml:1: worker.grace: 'soon' is not a duration"),
        ("retention: {jobs: 1}\n", "penstock.yaml:1: retention.jobs: must be text such as 30s"),
        ("sources:\n  a:\n", "penstock.yaml:2: sources.a.pipeline: is missing; write it as"),
        (
            "sources:\n  a: {pipeline: x}\n",
            "penstock.yaml:2: sources.a.pipeline: must be module:name",
        ),
        ("sources:\n  'a b': {}\n", "penstock.yaml:2: sources.a b: a source needs a name"),
        ("a: !!python/object/apply:os.system [id]\n", "penstock.yaml:1: a: the tag 'tag:yaml.org"),
        ("a: !!python/name:os.system\n", "penstock.yaml:1: a: "),
        ("a: 1e999\n", "penstock.yaml:1: a: '1e999' is not a text, number, true, false or null"),
        ("a: !!int x\n", "penstock.yaml:1: a: 'x' is not a text, number, true, false or null"),
        ('store: "sqlite:a\\0.db"\n', "penstock.yaml:1: store: must be one line of printable text"),
        ("a: !secret x\n", "penstock.yaml:1: a: "),
        ("a: {<<: 1}\n", "penstock.yaml:1: a: << can only merge mappings"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert problem(tmp_path, text).startswith(expected)


def test_two_spellings_of_one_source_are_refused(tmp_path: Path) -> None:
    text = MINIMAL + "  https://www.ACME.com/:\n    pipeline: a:b\n"
    expected = "sources.https://www.ACME.com/: is the same source as 'acme.com' (acme.com)"
    assert problem(tmp_path, text) == f"penstock.yaml:5: {expected}"


def test_aliases_and_merge_keys_may_share_settings(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "sources:\n"
        "  a: &usual {pipeline: m:n, retry: conservative, limits: {rate: 1/s}}\n"
        "  b: {<<: *usual, retry: fast}\n",
    )
    assert settings.sources["b"].retry == RetryChoice("fast")
    assert settings.sources["b"].limits.rate_per_s == 1.0


def test_a_yaml_bomb_is_refused_quickly(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    assert "expands to too much" in problem(tmp_path, "\n".join(lines))


def test_deep_nesting_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    text = "a: " + "[" * 100_000 + "]" * 100_000
    assert problem(tmp_path, text) == "penstock.yaml:1: is nested deeper than 50 levels"


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_bytes(b"project: a\nstore: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"penstock\.yaml:2: is not UTF-8 text"):
        load_settings(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_bytes(b"\xef\xbb\xbfproject: a\n")
    assert load_settings(tmp_path).project == "a"


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"penstock\.yaml: is a directory, not a file"):
        load_settings(tmp_path)


def test_a_pipe_in_place_of_the_file_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "penstock.yaml")
    with pytest.raises(ConfigError, match=r"penstock\.yaml: is not a regular file"):
        load_settings(tmp_path)


@given(text=st.text(alphabet="ab:-[]{}*&!?|>'\"#%@`, \n\t0159.~<\\u$dsx\0é", max_size=60))
def test_any_text_is_either_settings_or_one_line(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "penstock.yaml").write_text(text, encoding="utf-8", newline="")
        message = ""
        try:
            load_settings(folder, environ={})
        except ConfigError as error:
            message = error.message
        assert message.isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("project: a\n")
    (tmp_path / "penstock.yaml").chmod(0)
    with pytest.raises(ConfigError, match="can't be read"):
        load_settings(tmp_path)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"penstock\.yaml: there is no such file") as caught:
        load_settings(tmp_path)
    assert "penstock init" in caught.value.hint


# Finding the project.


def test_the_nearest_file_upward_is_the_project(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(MINIMAL)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)

    assert find_project(inner) == tmp_path / "penstock.yaml"
    assert load_settings(find_project(inner)).root == tmp_path


def test_no_project_upward_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no penstock\.yaml in "):
        find_project(tmp_path)


def test_an_error_names_the_file_as_seen_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "penstock.yaml").write_text("x: 1\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(Path())
    assert caught.value.message.startswith("penstock.yaml:1: x: unknown key")


# Overlays.


def test_an_overlay_is_laid_over_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "penstock.prod.yaml").write_text(
        "sources:\n  HTTPS://acme.com:\n    schedule: {every: 1h}\n    limits: {rate: 1/s}\n"
        "    params: {sitemap: other}\n"
    )
    settings = load(tmp_path, FULL, "prod")

    acme = settings.sources["acme.com"]
    assert settings.environment == "prod"
    assert acme.schedules == (ScheduleSettings("every", every_s=3600.0),)
    assert acme.limits == Limits(8, 16, 1.0)
    assert acme.params["sitemap"] == "other"
    assert len(acme.params["pages"]) == 5


def test_a_key_without_a_value_in_the_overlay_brings_the_default_back(tmp_path: Path) -> None:
    (tmp_path / "penstock.prod.yaml").write_text(
        "sources:\n  acme.com:\n    schedule:\n    limits: {rate: }\n"
    )
    acme = load(tmp_path, FULL, "prod").sources["acme.com"]
    assert acme.schedules == ()
    assert acme.limits == Limits(8, 16, None)


def test_the_environment_variable_chooses_the_overlay(tmp_path: Path) -> None:
    (tmp_path / "penstock.ci.yaml").write_text("project: from-ci\n")
    assert load(tmp_path, MINIMAL, PENSTOCK_ENV="ci").project == "from-ci"


def test_a_mistake_in_the_overlay_names_the_overlay(tmp_path: Path) -> None:
    (tmp_path / "penstock.ci.yaml").write_text("sources:\n  acme.com: {retry: fats}\n")
    message = problem(tmp_path, MINIMAL, PENSTOCK_ENV="ci")
    assert message.startswith("penstock.ci.yaml:2: sources.acme.com.retry: ")


def test_an_environment_without_an_overlay_is_refused(tmp_path: Path) -> None:
    (tmp_path / "penstock.prod.yaml").write_text("project: a\n")
    message = problem(tmp_path, MINIMAL, PENSTOCK_ENV="prdo")
    assert message.startswith("penstock.prdo.yaml: there is no such file")
    assert message.endswith("did you mean 'prod'?")


def test_an_environment_can_not_name_another_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be the name of an environment"):
        load(tmp_path, MINIMAL, "../../etc/x")


# Secrets.


def test_variables_are_substituted_in_any_string(tmp_path: Path) -> None:
    text = MINIMAL + (
        "    params: {url: 'https://${USER_NAME}:${TOKEN}@acme.com', list: ['${TOKEN}'], kept: '$${X}'}\n"
        "    fetch: {headers: {Authorization: 'Bearer ${TOKEN}'}, robots: '${ROBOTS}'}\n"
        "    limits: {concurrency: '${SLOTS}', rate: '${RATE}'}\n"
    )
    environ = {
        "USER_NAME": "me",
        "TOKEN": "s3cr3t-v",
        "SLOTS": "7",
        "RATE": "2/s",
        "ROBOTS": "false",
    }
    settings = load(tmp_path, text, **environ)

    source = settings.sources["acme.com"]
    assert source.params["url"] == "https://me:s3cr3t-v@acme.com"
    assert source.params["list"] == ["s3cr3t-v"]
    assert source.params["kept"] == "${X}"
    assert source.fetch.headers["Authorization"] == "Bearer s3cr3t-v"
    assert (source.limits.concurrency, source.limits.rate_per_s) == (7, 2.0)
    assert source.fetch.robots is False
    assert "s3cr3t-v" in settings.secrets


def test_a_missing_variable_is_named_with_its_key(tmp_path: Path) -> None:
    settings = load(tmp_path, MINIMAL + "    params: {a: [x, '${TOKEN}']}\n", TOKENS="canary-1")
    [unset] = settings.sources["acme.com"].unset
    assert unset.words.endswith(
        "params.a[1]: the environment variable TOKEN is not set; did you mean 'TOKENS'?"
    )


def test_a_variable_that_the_overlay_replaces_need_not_be_set(tmp_path: Path) -> None:
    (tmp_path / "penstock.ci.yaml").write_text("project: plain\n")
    settings = load(tmp_path, "project: ${NOT_SET}\n", PENSTOCK_ENV="ci")
    assert settings.project == "plain"


def test_a_variable_that_is_not_text_is_named(tmp_path: Path) -> None:
    message = source_problem(tmp_path, "params: {a: '${TOKEN}'}", TOKEN="canary\udcff")
    assert message == "params.a: the environment variable TOKEN is not UTF-8 text"


def test_a_variable_can_not_bring_in_structure(tmp_path: Path) -> None:
    settings = load(tmp_path, MINIMAL + "    params: {a: '${A}'}\n", A="]\nstore: x # ${B}")
    assert settings.sources["acme.com"].params == {"a": "]\nstore: x # ${B}"}


@pytest.mark.parametrize(
    "line",
    [
        "retry: ${SECRET}",
        "timeout: ${SECRET}",
        "pipeline: '${SECRET}'",
        "schedule: ${SECRET}",
        "schedule: {cron: '${SECRET}'}",
        "schedule: {cron: '@daily', timezone: '${SECRET}'}",
        "limits: {rate: '${SECRET}', concurrency: 4}",
        "limits: {concurrency: '${SECRET}'}",
        "limits: '${SECRET}'",
        "params: '${SECRET}'",
        "fetch: {robots: '${SECRET}'}",
        "fetch: {max_bytes: '${SECRET}'}",
        "fetch: {headers: '${SECRET}'}",
        "weight: ${SECRET}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, line: str) -> None:
    pipeline = "" if line.startswith("pipeline") else "    pipeline: m:n\n"
    text = f"sources:\n  a:\n    {line}\n{pipeline}"
    assert "canary" not in problem(tmp_path, text, SECRET="canary-17 x")


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    text = (
        "store: sqlite:${S}.db\n" + MINIMAL + "    params: {a: ['${S}']}\n"
        "    fetch: {headers: {A: '${S}'}, user_agent: 'u ${S}'}\n"
    )
    settings = load(tmp_path, text, S="canary-17")
    shown: list[Any] = [settings, settings.sources, settings.sources["acme.com"].fetch]
    for value in shown:
        assert "canary-17" not in repr(value)
    assert "'A': '***'" in repr(settings)


def test_redact_masks_every_spelling_of_a_secret() -> None:
    secrets = {"pa ss/word", "pa ss/word-longer", "ab"}
    text = "a=pa ss/word b=pa%20ss%2Fword c=pa+ss%2Fword d=cGEgc3Mvd29yZA== e=pa ss/word-longer ab"
    assert redact(text, secrets) == "a=*** b=*** c=*** d=*** e=*** ab"
    assert redact("nothing here", frozenset()) == "nothing here"


# The small languages.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30.0),
        ("5m", 300.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("1.5h", 5400.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "m", "-5s", "5 parsecs", "1e9d", "5S", "٣s", "99999999d"]
)
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "per_s"),
    [("5/s", 5.0), ("60/m", 1.0), ("1800/h", 0.5), ("86400/d", 1.0), ("0.5/s", 0.5)],
)
def test_rates(text: str, per_s: float) -> None:
    assert parse_rate(text) == per_s


@pytest.mark.parametrize("text", ["", "60", "60/x", "-1/s", "0/s", "/s", "60/min"])
def test_what_is_not_a_rate_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("10B", 10), ("5KB", 5000), ("16MB", 16_000_000), ("1.5GB", 1_500_000_000), ("1MiB", 1 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "16", "MB", "16XB", "-1MB"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@Daily", "0 0 * * *"),
        ("  */5  *  * * * ", "*/5 * * * *"),
        ("30 0 2 * * MON", "30 0 2 * * MON"),
    ],
)
def test_cron_expressions(text: str, expected: str) -> None:
    assert parse_cron(text) == expected


@pytest.mark.parametrize(
    "text", ["", "* * * *", "* * * * * * *", "a b c d e", "*/0 * * * *", "L/2 * * * *"]
)
def test_what_is_not_a_cron_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_cron(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("https://WWW.Acme.com/", "acme.com"),
        ("acme.com", "acme.com"),
        (" Acme.Com. ", "acme.com"),
        ("http://acme.com:80/#top", "acme.com"),
        ("https://acme.com:8443", "acme.com:8443"),
        ("https://user:pw@acme.com/Shop/", "acme.com/Shop"),
        ("acme.com/Shop?a=1", "acme.com/Shop?a=1"),
        ("www.com", "www.com"),
        ("https://xn--mller-kva.de", "müller.de"),
        ("MÜLLER.de", "müller.de"),
        ("my-feed", "my-feed"),
        ("http://[::1]:8080/a", "[::1]:8080/a"),
    ],
)
def test_a_source_has_one_key_however_it_is_spelled(text: str, key: str) -> None:
    assert normalise_source(text) == key
    assert normalise_source(key) == key


@pytest.mark.parametrize(
    "text", ["", " ", "/", "https://", "a b", "a\nb", "x" * 201, "http://[::1"]
)
def test_what_can_not_name_a_source_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        normalise_source(text)
