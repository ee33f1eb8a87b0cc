"""Traces: their ids, what comes from outside, and a sender that nobody ever waits for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from penstock import Project
from penstock.clock import SystemClock
from penstock.engine.tracing import sender as sending
from penstock.engine.tracing.sender import Sender, refuse_missing
from penstock.errors import ConfigError
from penstock.jobs.trace_context import parsed, trace_of, with_traceparent
from penstock.settings import load_settings
from penstock.settings.tracing import TracingSettings
from tests.otlp_receiver import collecting

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


# Ids.


@given(st.text(max_size=20), st.integers(1, 10**9), st.floats(1e9, 4e9))
def test_a_run_has_the_same_trace_in_every_process_and_another_than_any_other(
    project: str, run_id: int, created_at: float
) -> None:
    trace = trace_of(project, run_id, created_at)
    assert trace == trace_of(project, run_id, created_at)
    assert trace.trace_id != trace_of(project, run_id + 1, created_at).trace_id
    assert trace.trace_id != trace_of(project, run_id, created_at + 1).trace_id
    assert len({trace.span_id, trace.job(1), trace.attempt(1, 1), trace.fetch(1, 1, 0)}) == 4
    own = parsed(trace.traceparent)
    assert own is not None
    assert (own.trace_id, own.span_id, own.is_sampled) == (trace.trace_id, trace.span_id, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        GOOD.upper(),
        GOOD.replace("00-", "ff-", 1),
        GOOD + "-more",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        GOOD[:-1],
        "x" * 100_000,
    ],
)
def test_a_traceparent_that_w3c_refuses_is_ignored(text: str) -> None:
    assert parsed(text) is None
    assert with_traceparent({"day": 7}, text) == {"day": 7}


def test_a_later_version_of_traceparent_is_read_as_far_as_it_is_known() -> None:
    assert parsed("cc" + GOOD[2:] + "-more") == parsed(GOOD)


@pytest.mark.parametrize("data", [{"traceparent": "mine"}, [1], "text", 7])
def test_data_that_has_no_room_for_a_traceparent_stays_as_it_is(data: Any) -> None:
    assert with_traceparent(data, GOOD) == data


def test_the_share_of_runs_that_is_traced_is_the_one_asked_for() -> None:
    traced = sum(trace_of("p", run, 1.0, sample=0.25).is_sampled for run in range(10_000))
    assert 2200 < traced < 2800
    assert trace_of("p", 1, 1.0, sample=1.0).is_sampled
    assert not trace_of("p", 1, 1.0, sample=0.0).is_sampled
    assert trace_of("p", 1, 1.0, {"traceparent": GOOD}, sample=0.0).is_sampled
    assert not trace_of("p", 1, 1.0, {"traceparent": GOOD[:-1] + "0"}).is_sampled


# The sender.


def a_span(note: int) -> ReadableSpan:
    return ReadableSpan(f"note {note}", SpanContext(1, note + 1, is_remote=False))


def a_sender(url: str, told: list[str] | None = None) -> Sender[int]:
    settings = TracingSettings(f"{url}/v1/traces")
    tell = (told if told is not None else []).append
    return Sender(settings, lambda notes: map(a_span, notes), tell, SystemClock(), "attempt")


def test_what_does_not_fit_into_the_queue_is_left_out_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "MOST_NOTES", 1000)
    monkeypatch.setattr(sending, "PARTING_S", 60.0)
    with collecting() as collector:
        sender = a_sender(collector.url)
        for note in range(1500):
            sender.add(note)
        sender.start()
        sender.stop()
    assert [span.name for span in collector.spans] == [f"note {n}" for n in range(500, 1500)]


def test_a_collector_that_never_answers_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "EVERY_S", 0.001)
    monkeypatch.setattr(sending, "PARTING_S", 0.01)
    with collecting() as collector:
        collector.is_stuck = True
        sender = a_sender(collector.url)
        sender.start()
        sender.add(0)
        assert collector.was_asked.wait(60)
        for note in range(sending.MOST_NOTES * 2):
            sender.add(note)
        sender.stop()
        assert not collector.is_closing.is_set()


def test_a_collector_that_refuses_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "BATCH", 1)
    monkeypatch.setattr(sending, "PARTING_S", 60.0)
    told: list[str] = []
    with collecting() as collector:
        sender = a_sender(f"{collector.url}/elsewhere", told)
        for note in range(5):
            sender.add(note)
        sender.start()
        sender.stop()
    [line] = told
    assert line.endswith("does not accept traces; 1 attempt left out so far")


# Settings.


def a_project(folder: Path, tracing: str) -> Path:
    (folder / "penstock.yaml").write_text(
        f"tracing: {tracing}\nsources: {{a: {{pipeline: 'x:y', schedule: {{signal: go}}}}}}\n"
    )
    return folder


def test_an_endpoint_without_a_path_gets_the_one_for_traces(tmp_path: Path) -> None:
    a_project(tmp_path, "{endpoint: 'http://127.0.0.1:4318/'}")
    assert load_settings(tmp_path).tracing.endpoint == "http://127.0.0.1:4318/v1/traces"


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "ftp://a/", "http://me:pw@a/", "http://a:0"])
def test_an_endpoint_that_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    a_project(tmp_path, f"{{endpoint: '{url}'}}")
    with pytest.raises(ConfigError, match=r"must be an address such as http://127.0.0.1:4318"):
        load_settings(tmp_path)


def test_without_the_extra_the_refusal_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    refuse_missing(TracingSettings())
    with pytest.raises(ConfigError) as error:
        refuse_missing(TracingSettings("http://127.0.0.1:4318/v1/traces"))
    assert "pip install 'penstock[otel]'" in error.value.hint


@pytest.mark.parametrize("tracing", ["{}", "{endpoint: 'http://127.0.0.1:4318'}"])
def test_the_trace_of_whoever_raises_a_signal_is_kept_where_traces_are_sent(
    tmp_path: Path, tracing: str
) -> None:
    with Project.open(a_project(tmp_path, tracing)) as project:
        project.signals.raise_("go", {"day": 7}, traceparent=GOOD)
        [row] = project.connection.signals.after()
    expected = {"day": 7} if tracing == "{}" else {"day": 7, "traceparent": GOOD}
    assert row.data == expected
