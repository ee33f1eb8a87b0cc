"""Which signals a schedule means, and which circles of sources are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, UsageError
from penstock.jobs.signals import AwaitedSignal, is_name, is_reserved, wanted
from penstock.project import refuse_signal
from penstock.settings import load_settings
from penstock.settings.values import Settings


def settings(folder: Path, **schedules: str) -> Settings:
    lines = [f"  {key}: {{pipeline: 'x:y', schedule: {text}}}" for key, text in schedules.items()]
    (folder / "penstock.yaml").write_text("sources:\n" + "\n".join(lines) + "\n")
    return load_settings(folder)


@pytest.mark.parametrize(
    ("text", "name", "source", "own", "is_meant"),
    [
        ("go", "go", None, "a", True),
        ("go", "go", "b", "a", True),
        ("go", "stop", None, "a", False),
        ("go of b", "go", "b", "a", True),
        ("go of b", "go", "c", "a", False),
        ("go of b", "go", None, "a", False),
        ("breaker.closed", "breaker.closed", "a", "a", True),
        ("breaker.closed", "breaker.closed", "b", "a", False),
        ("breaker.closed of b", "breaker.closed", "b", "a", True),
        ("budget.reset", "budget.reset", None, "a", True),
        ("quality", "quality", "b", "a", False),
    ],
)
def test_a_schedule_means_these_signals(
    text: str, name: str, source: str | None, own: str, is_meant: bool
) -> None:
    assert wanted(text).means(name, source, own) is is_meant


def test_a_wanted_signal_is_read_in_its_parts() -> None:
    assert wanted("run.failed of shop.example of x") == AwaitedSignal(
        "run.failed", "shop.example of x"
    )


@pytest.mark.parametrize("name", ["go", "prices.stale", "a:b_c-d.9", "x" * 100])
def test_these_are_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "x" * 101, "a b", "a/b", ".a", "é", "a\n", "-a"])
def test_these_are_not_names(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(UsageError):
        refuse_signal(name)


def test_what_the_engine_alone_can_know_is_raised_by_nobody_else() -> None:
    assert is_reserved("run.completed")
    assert is_reserved("file.landed")
    assert not is_reserved("run")
    assert not is_reserved("running.late")
    with pytest.raises(UsageError, match="only Penstock raises"):
        refuse_signal("run.completed")


def test_what_waits_for_something_else_than_the_time_forgets_nothing_by_default(
    tmp_path: Path,
) -> None:
    found = settings(
        tmp_path, a="{signal: go}", b="{after: a}", c="{watch: x}", d="{every: 1h}",
        e="{signal: go, overlap: skip}",
    )  # fmt: skip
    assert [source.schedules[0].overlap for source in found.sources.values()] == [
        "queue", "queue", "queue", "skip", "skip",
    ]  # fmt: skip


def test_sources_are_named_in_any_spelling(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(
        "sources:\n  acme.com: {pipeline: 'x:y'}\n"
        "  b: {pipeline: 'x:y', schedule: {after: 'https://WWW.Acme.com/'}}\n"
        "  c: {pipeline: 'x:y', schedule: {signal: 'run.failed of https://acme.com'}}\n"
    )
    found = load_settings(tmp_path).sources
    assert found["b"].schedules[0].after == ("acme.com",)
    assert found["c"].schedules[0].signals == ("run.failed of acme.com",)


@pytest.mark.parametrize(
    ("schedules", "error"),
    [
        ({"a": "{after: nobody}"}, "there is no source 'nobody'"),
        ({"a": "{signal: 'go of nobody'}"}, "there is no source 'nobody'"),
        ({"a": "{after: a}"}, "runs without end: a waits for a"),
        ({"a": "{after: b}", "b": "{after: a}"}, "a waits for b waits for a"),
        (
            {"a": "{after: c}", "b": "{after: a}", "c": "{after: [b]}"},
            "a waits for c waits for b waits for a",
        ),
        ({"a": "{after: b}", "b": "{signal: 'run.completed of a'}"}, "a waits for b waits for a"),
        ({"a": "{signal: run.failed}"}, "runs without end"),
        ({"a": "{signal: 'no good'}"}, "must be the name of a signal"),
        ({"a": "{signal: []}"}, "must not be empty"),
    ],
)
def test_who_would_wait_for_itself_is_refused(
    tmp_path: Path, schedules: dict[str, str], error: str
) -> None:
    with pytest.raises(ConfigError, match=error):
        settings(tmp_path, **schedules)


def test_chains_and_diamonds_are_fine(tmp_path: Path) -> None:
    found = settings(
        tmp_path, a="manual", b="{after: a}", c="{after: a}", d="{after: [b, c, a]}",
        e="{signal: 'quality.zero_yield of d'}",
    )  # fmt: skip
    assert found.sources["d"].schedules[0].after == ("b", "c", "a")
