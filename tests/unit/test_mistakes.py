"""Everything that is wrong with penstock.yaml is told at once; `defaults:` hold for every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.errors import ConfigError
from penstock.settings import Settings, load_settings
from penstock.settings.variables import variables_by_path


def load(folder: Path, text: str, overlay: str | None = None, **environ: str) -> Settings:
    (folder / "penstock.yaml").write_text(text)
    if overlay is not None:
        (folder / "penstock.live.yaml").write_text(overlay)
    return load_settings(folder, None if overlay is None else "live", environ)


def mistakes(folder: Path, text: str, overlay: str | None = None, **environ: str) -> list[str]:
    """What is wrong, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text, overlay, **environ)
    found = caught.value.mistakes or (caught.value.message,)
    return [each.removeprefix(f"{folder}/") for each in found]


MANY = """\
project: shop
proyect: shop
worker: {slots: many, count: 0}
sources:
  a.com:
    pipelin: steps:a
    limits: {concurency: 4, rate: fast}
    schedule: {every: 6 hours}
    retry: quick
  b.com: {pipeline: steps, timeout: soon, priority: 7}
  c.com: {pipeline: "steps:c"}
  "c com": {pipeline: "steps:c"}
  d.com: {pipeline: "steps:d", timeout: 5s, timeout: 6s}
budget: {requests: lots}
"""


def test_every_mistake_is_told_at_once_each_with_its_line_and_a_suggestion(tmp_path: Path) -> None:
    found = mistakes(tmp_path, MANY)
    places = [each.split(": ")[:2] for each in found]
    assert places == [
        ["penstock.yaml:2", "proyect"],
        ["penstock.yaml:3", "worker.count"],
        ["penstock.yaml:3", "worker.slots"],
        ["penstock.yaml:6", "sources.a.com.pipelin"],
        ["penstock.yaml:7", "sources.a.com.limits.concurency"],
        ["penstock.yaml:7", "sources.a.com.limits.rate"],
        ["penstock.yaml:8", "sources.a.com.schedule.every"],
        ["penstock.yaml:9", "sources.a.com.retry"],
        ["penstock.yaml:10", "sources.b.com.pipeline"],
        ["penstock.yaml:10", "sources.b.com.timeout"],
        ["penstock.yaml:12", "sources.c com"],
        ["penstock.yaml:13", "sources.d.com.timeout"],
        ["penstock.yaml:14", "budget.requests"],
    ]
    assert found[0].endswith("unknown key, did you mean 'project'?")
    assert found[4].endswith("unknown key, did you mean 'concurrency'?")


@pytest.mark.parametrize(
    "source",
    [
        "{pipeline: 's:a', schedule: {every: often}}",
        "{pipeline: 's:a', schedule: {cadence: auto, slowest: slow}}",
        "{pipeline: 's:a', limits: {windows: never, timezone: Europe/Paris}}",
        "{pipeline: 's:a', schedule: {every: 1h, near: {window: soon, every: 5s}}}",
        "{pipeline: 's:a', breaker: {open_for: long, longest: 1m}}",
        "{pipeline: nothing}",
        "{pipeline: 's:a', hooks: [{url: nowhere}]}",
    ],
)
def test_what_is_wrong_only_because_of_another_mistake_is_not_told(
    tmp_path: Path, source: str
) -> None:
    assert len(mistakes(tmp_path, f"sources:\n  a: {source}\n")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "{pipeline: 's:a', budget: {bytes: much/d, money: much/d}}",
        "{pipeline: 's:a', schedule: {cron: often, jitter: 5s}}",
        "{pipeline: 's:a', hooks: [{url: 'https://a.example', timeout: soon, name: 'a b'}]}",
    ],
)
def test_two_mistakes_beside_each_other_are_both_told(tmp_path: Path, source: str) -> None:
    assert len(mistakes(tmp_path, f"sources:\n  a: {source}\n")) == 2


def test_a_source_with_a_mistake_is_not_missed_by_those_that_wait_for_it(tmp_path: Path) -> None:
    [found] = mistakes(
        tmp_path,
        "sources:\n  a: {pipeline: 's:a', timeout: soon}\n"
        "  b: {pipeline: 's:b', schedule: {after: a}}\n",
    )
    assert found.startswith("penstock.yaml:2: sources.a.timeout: ")


def test_a_thousand_mistakes_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    lines = "".join(f"  s{n}: {{pipeline: 's:a', timeout: soon}}\n" for n in range(1000))
    found = mistakes(tmp_path, f"sources:\n{lines}")
    assert len(found) == 21
    assert found[-1] == "and 980 more"


def test_no_mistake_repeats_a_secret(tmp_path: Path) -> None:
    text = "worker: {slots: '${KEY}'}\nsources:\n  a: {pipeline: '${KEY}', timeout: '${KEY}'}\n"
    found = mistakes(tmp_path, text, KEY="hunter2hunter2")
    assert len(found) == 3
    assert "hunter2" not in "".join(found)


def test_the_command_line_shows_a_line_for_each_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "penstock.yaml").write_text("proyect: a\nsources:\n  a: {timeout: 5s}\n")
    assert main(["status", "--project", str(tmp_path)]) == exits.USAGE
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "penstock: there are 2 mistakes:"
    assert [line.partition("penstock.yaml:")[2][:2] for line in lines] == ["1:", "3:"]


# Defaults.

SHARED = """\
defaults:
  pipeline: steps:page
  timeout: 20s
  schedule: {cron: "0 2 * * *", timezone: Europe/Paris}
  limits: {concurrency: 2, rate: 30/m}
  params: {format: html, deep: {a: 1, b: [1, 2]}}
sources:
  a.com:
  b.com:
    timeout: 5s
    schedule: {every: 6h}
    limits: {rate: 60/m}
    params: {deep: {b: [3]}}
  c.com: {timeout: , limits: , schedule: manual}
"""


def test_defaults_hold_for_every_source_that_says_nothing_else(tmp_path: Path) -> None:
    a, b, c = load(tmp_path, SHARED).sources.values()
    assert (a.pipeline, a.timeout_s, a.limits.concurrency, a.limits.rate_per_s) == (
        *("steps:page", 20.0, 2),
        0.5,
    )
    assert [each.kind for each in a.schedules] == ["cron"]
    assert a.params == {"format": "html", "deep": {"a": 1, "b": [1, 2]}}
    # Mappings are merged key by key; lists and schedules are replaced.
    assert (b.timeout_s, b.limits.concurrency, b.limits.rate_per_s) == (5.0, 2, 1.0)
    assert [each.kind for each in b.schedules] == ["every"]
    assert b.params == {"format": "html", "deep": {"a": 1, "b": [3]}}
    # A key without a value takes the default away.
    assert (c.timeout_s, c.limits.concurrency, c.schedules) == (None, 4, ())


def test_a_mistake_in_the_defaults_is_told_once_and_where_it_stands(tmp_path: Path) -> None:
    text = SHARED.replace("30/m", "fast").replace("timeout: 20s", "timeot: 20s")
    assert [each.split(": ")[:2] for each in mistakes(tmp_path, text)] == [
        ["penstock.yaml:3", "defaults.timeot"],
        ["penstock.yaml:5", "defaults.limits.rate"],
    ]


def test_a_source_without_a_pipeline_is_told_at_the_source(tmp_path: Path) -> None:
    [found] = mistakes(tmp_path, "defaults:\n  timeout: 5s\nsources:\n  a: {priority: 3}\n")
    assert found.startswith("penstock.yaml:4: sources.a.pipeline: is missing")


def test_an_overlay_can_change_defaults_and_sources(tmp_path: Path) -> None:
    overlay = "defaults: {timeout: 1s, limits: {rate: 6/m}}\nsources: {a.com: {priority: 9}}\n"
    a, b, _ = load(tmp_path, SHARED, overlay).sources.values()
    assert (a.timeout_s, a.limits.rate_per_s, a.limits.concurrency, a.priority) == (1.0, 0.1, 2, 9)
    # What a source says for itself goes before any default.
    assert (b.timeout_s, b.limits.rate_per_s) == (5.0, 1.0)
    [found] = mistakes(tmp_path, SHARED, "defaults:\n  timeout: soon\n")
    assert found.startswith("penstock.live.yaml:2: defaults.timeout: ")


def test_a_change_for_a_simulation_reaches_what_a_source_has_from_the_defaults(
    tmp_path: Path,
) -> None:
    (tmp_path / "penstock.yaml").write_text(SHARED)
    changed = load_settings(tmp_path, changes=["a.com.limits.rate=1/s", "a.com.schedule.every=2h"])
    source = changed.sources["a.com"]
    assert (source.limits.rate_per_s, source.limits.concurrency) == (1.0, 2)
    assert [each.kind for each in source.schedules] == ["every"]


def test_a_variable_in_the_defaults_is_a_variable_of_every_source(tmp_path: Path) -> None:
    text = "defaults: {params: {key: '${KEY}'}, pipeline: 's:a'}\nsources: {a: , b: {params: {key: x}}}\n"
    settings = load(tmp_path, text, KEY="hunter2hunter2")
    assert [each.params["key"] for each in settings.sources.values()] == ["hunter2hunter2", "x"]
    assert "hunter2hunter2" in settings.secrets
    assert variables_by_path(tmp_path / "penstock.yaml", None) == {
        ("sources", "a", "params", "key"): ("KEY",)
    }
