"""What is printed: readable, the same everywhere, without secrets, and harmless to a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from penstock.app.views.jobs import job_view
from penstock.app.views.journal import event_view
from penstock.app.views.progress import run_report
from penstock.app.views.records import record_view
from penstock.app.views.runs import run_view
from penstock.app.views.workers import leader_view, worker_view
from penstock.app.workers import by_host
from penstock.cli import exits, main
from penstock.cli.commands.workers import scheduler_words
from penstock.cli.render.csv_export import write_csv
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count, cut, duration, harmless, iso, local_time, until
from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind, RunState
from penstock.store.rows import EventRow, JobRow, LeaderRow, RecordRow, RunRow, WorkerRow

HOSTS = [("a", "mill-1", 5.0), ("b", "mill-2", 1.0), ("c", "mill-1", 2.0), ("d", "mill-1", 9.0)]
EVIL = "\x1b]0;owned\x07 \x1b[31mred\x9b2J\r\nnext \u202egnp.exe [bold]x[/bold]"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(
    *, is_terminal: bool = False, secrets: tuple[str, ...] = ()
) -> tuple[Output, io.StringIO]:
    stream = Terminal() if is_terminal else io.StringIO()
    out = Output(stream, io.StringIO())
    out.secrets = frozenset(secrets)
    return out, stream


def a_run(**changed: Any) -> RunRow:
    row: dict[str, Any] = {
        **{"id": 7, "source_id": 1, "source": "acme.com", "kind": RunKind.FULL},
        **{"state": RunState.RUNNING, "actor": "kim", "reason": "", "pipeline_version": "v"},
        **{"created_at": 100.0, "started_at": 110.0, "finished_at": None},
        **{
            "inserted": 3,
            "updated": 2,
            "unchanged": 1,
            "rejected": 4,
            "retried": 5,
            "throttled": 6,
        },
        **{"pages": 10, "pages_done": 8, "candidates": 9, "queued": 1, "running": 1, "waiting": 2},
        **{"skipped": 7, "quarantined": 3},
    }
    return RunRow(**{**row, **changed})


# Words.


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (12.4, "12 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (3600 + 300, "1 h 5 min"),
        (3 * 86400 + 4 * 3600 + 59, "3 d 4 h"),
        (400 * 86400, "400 d"),
    ],
)
def test_durations_are_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_program_reads_times_in_utc_to_the_millisecond() -> None:
    assert iso(1_700_000_000.1239) == "2023-11-14T22:13:20.123Z"
    assert iso(None) is None
    assert iso(0) is None


def test_a_moment_beyond_the_calendar_is_still_told() -> None:
    assert iso(1e18) == "9999-12-30T00:00:00.000Z"
    assert local_time(1e18).startswith("9999-12-")


def test_what_is_due_is_due_now() -> None:
    assert until(100.0, 100.0) == "now"
    assert until(112.0, 100.0).startswith("in 12 s (1970-01-")


def test_counts_know_their_plural() -> None:
    assert [count(number, "job") for number in (0, 1, 2000)] == ["0 jobs", "1 job", "2,000 jobs"]
    assert [count(number, "try", "tries") for number in (1, 1.5)] == ["1 try", "1.50 tries"]


def test_shortened_text_says_that_it_was() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"


# Harm.


def test_text_from_outside_can_not_steer_the_terminal() -> None:
    text = harmless(EVIL)
    assert text.isprintable()
    assert "\n" not in text


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_table_shows_text_from_outside_as_it_is_and_harmless(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out, stream = printed(is_terminal=is_terminal)
    out.table(("name", "state"), [(EVIL, "failed"), ("[red]", "completed")])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert "[bold]x[/bold]" in lines[1]
    assert "[red]" in lines[2]
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "mark", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x1b", "\x9b", "\U000e0041"]
)
def test_marks_that_hide_or_turn_text_around_are_shown_by_their_number(mark: str) -> None:
    assert harmless(f"a{mark}b").isascii()
    out, stream = printed()
    out.json([f"a{mark}b"])
    assert stream.getvalue().isascii()
    assert json.loads(stream.getvalue()) == [f"a{mark}b"]


def test_words_that_need_joiners_keep_them() -> None:
    family = "👨\u200d👩\u200d👧 می\u200cخواهم"
    assert harmless(family) == family


def test_json_has_no_control_character_either() -> None:
    out, stream = printed()
    out.json({"title": EVIL})
    line = stream.getvalue().rstrip("\n")
    assert not set(line) & {"\x1b", "\x9b", "\x07", "\r", "\n"}
    assert json.loads(line) == {"title": EVIL}


def test_lines_notes_errors_and_fields_are_harmless() -> None:
    out, stream = printed()
    out.line(EVIL)
    out.fields([("error", EVIL), ("empty", ""), ("none", None), ("zero", 0)])
    out.error(EVIL, EVIL)
    assert isinstance(out.stderr, io.StringIO)
    told = stream.getvalue() + out.stderr.getvalue()
    assert all(line.isprintable() for line in told.splitlines())
    assert stream.getvalue().splitlines()[-1] == "zero   0"


# Secrets.


def test_a_secret_is_masked_wherever_it_is_printed() -> None:
    secret = 'sesame "öffne" dich'
    out, stream = printed(secrets=(secret,))
    out.line(f"key={secret}")
    out.table(("url",), [(f"http://x/?key={secret}",)])
    out.json({"url": secret, "deep": [{"inner": f"x{secret}", secret: 1}]})
    out.json_list([secret])
    out.error(f"refused: {secret}", secret)
    write_csv(lambda: [_record({"token": secret, "nested": [secret]})], out)
    assert isinstance(out.stderr, io.StringIO)
    told = stream.getvalue() + out.stderr.getvalue()
    assert secret not in told
    assert json.dumps(secret)[1:-1] not in told
    assert "sesame" not in told
    assert told.count("***") >= 8


# Tables and JSON.


def test_a_list_is_one_array_with_an_element_to_a_line() -> None:
    out, stream = printed()
    out.json_list([{"a": 1}, {"a": 2}])
    assert stream.getvalue() == '[\n{"a":1},\n{"a":2}\n]\n'
    assert json.loads(stream.getvalue()) == [{"a": 1}, {"a": 2}]


def test_an_empty_list_is_an_empty_array() -> None:
    out, stream = printed()
    out.json_list([])
    assert json.loads(stream.getvalue()) == []


def test_a_table_in_a_pipe_is_as_wide_as_it_needs_to_be() -> None:
    out, stream = printed()
    out.table(("key", "n"), [("x" * 400, 5), ("y", 12345)])
    head, first, second = stream.getvalue().splitlines()
    assert head.split() == ["key", "n"]
    assert first.split() == ["x" * 400, "5"]
    assert second.split() == ["y", "12,345"]


def test_a_table_on_a_terminal_fits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out, stream = printed(is_terminal=True)
    out.table(("key",), [("x" * 400,)])
    lines = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert max(len(line) for line in lines) <= 40


def on_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Output, io.StringIO]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    return printed(is_terminal=True)


def test_a_narrow_table_drops_whole_columns_and_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    out, stream = on_a_terminal(60, monkeypatch)
    url = "https://acme.com/catalogue/" + "x" * 50 + "/pan-17.html"
    out.table(
        ("job", "state", "key", "tries", "error"), [("4711", "quarantined", url, 3, "no" * 40)]
    )
    head, row = stream.getvalue().splitlines()
    assert head.split() == ["job", "state", "key", "error"]
    assert row.split()[:2] == ["4711", "quarantined"]
    assert row.split()[2].startswith("https://")
    assert row.split()[2].endswith("17.html")
    assert isinstance(out.stderr, io.StringIO)
    assert out.stderr.getvalue().startswith("not shown: tries; --json or a terminal of ")


def test_a_terminal_of_the_width_that_is_named_shows_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ("4711", "quarantined", "k" * 30, 3, local_time(1_700_000_000), "e" * 30)
    columns = ("job", "state", "key", "tries", "since", "error")
    out, _ = on_a_terminal(60, monkeypatch)
    out.table(columns, [row])
    assert isinstance(out.stderr, io.StringIO)
    [width] = re.findall("terminal of ([0-9]+)", out.stderr.getvalue())
    out, stream = on_a_terminal(int(width), monkeypatch)
    out.table(columns, [row])
    assert isinstance(out.stderr, io.StringIO)
    assert out.stderr.getvalue() == ""
    assert stream.getvalue().splitlines()[0].split() == list(columns)


def test_ids_and_states_are_whole_even_on_a_terminal_that_is_too_narrow_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, stream = on_a_terminal(20, monkeypatch)
    out.table(("job", "state", "key"), [("1234567", "quarantined", "a-key-that-is-long")])
    assert stream.getvalue().splitlines()[1].split()[:2] == ["1234567", "quarantined"]


def test_times_are_short_before_anything_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    out, stream = on_a_terminal(40, monkeypatch)
    out.table(("job", "since", "due"), [("1", local_time(1_700_000_000), until(112.0, 100.0))])
    assert stream.getvalue().splitlines()[1].split() == ["1", "2023-11-14", "in", "12", "s"]


def test_a_wide_character_takes_the_two_places_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, stream = on_a_terminal(30, monkeypatch)
    out.table(("key", "state"), [("商品" * 20, "failed"), ("plain", "failed")])
    wide, plain = stream.getvalue().splitlines()[1:]
    assert cell_len(wide) <= 30
    assert cell_len(wide) == cell_len(plain)


def test_a_long_table_is_written_as_its_rows_come() -> None:
    out, stream = printed()
    furthest = 0

    def rows() -> Iterator[tuple[str, int]]:
        nonlocal furthest
        for number in range(10_000):
            furthest = max(furthest, number - stream.getvalue().count("\n"))
            yield f"key {number}", number

    out.table(("key", "n"), rows())
    assert stream.getvalue().count("\n") == 10_001
    assert furthest <= 1_000


# Shapes.


def test_runs_and_run_tell_the_same_of_a_run() -> None:
    for row in (a_run(), a_run(finished_at=150.5), a_run(started_at=None)):
        told, shape = run_report(row, 140.25), run_view(row, 140.25).as_json()
        assert shape["counts"] == told.counts
        assert list(shape["counts"]) == list(told.counts)
        names = ("run", "source", "kind", "state", "seconds")
        assert [shape[name] for name in names] == [getattr(told, name) for name in names]


def test_every_row_names_a_run_and_a_job_alike_and_tells_times_in_utc() -> None:
    job = JobRow(
        5, 7, "s", "extract", "page", "k", JobState.WAITING, 1, 1, 0, 0, None, 1.0, 2.0, "e", "data"
    )
    event = EventRow(9, 1.0, "job.started", "s", 7, 5, 1, "w", "")
    worker = WorkerRow("w", "h", 1, "0", 1.0, 20.0)
    assert (
        job_view(job).as_json() | {"job": 5, "run": 7, "error_kind": "data"}
        == job_view(job).as_json()
    )
    assert (
        event_view(event).as_json() | {"event": 9, "run": 7, "job": 5}
        == event_view(event).as_json()
    )
    assert worker_view(worker, 10.0).as_json()["is_alive"] is True
    assert worker_view(worker, 20.0).as_json()["is_alive"] is False
    assert worker_view(worker, 12.5).as_json()["lease_left_s"] == 7.5
    for shape in (job_view(job).as_json(), event_view(event).as_json()):
        assert shape["at"] == "1970-01-01T00:00:01.000Z"


def test_who_schedules_is_told_while_its_term_lasts() -> None:
    leaders = [
        leader_view(LeaderRow("scheduler", "mill-1/17/abc", 3, 20.0)),
        leader_view(LeaderRow("upkeep", "mill-2/18/def", 9, 99.0)),
    ]
    assert scheduler_words(leaders, 12.0) == "pid 17 on mill-1, term 3, 8.0 s of it left"
    assert scheduler_words(leaders, 20.0).startswith("none; start one")
    assert scheduler_words([], 1.0).startswith("none; start one")
    assert leaders[0].as_json() == {
        **{"name": "scheduler", "holder": "mill-1/17/abc", "term": 3},
        "expires_at": "1970-01-01T00:00:20.000Z",
    }


def test_workers_are_listed_host_by_host() -> None:
    rows = [WorkerRow(name, host, 1, "0", at, 20.0) for name, host, at in HOSTS]
    assert [row.id for row in by_host(rows)] == ["c", "a", "d", "b"]


def test_a_record_has_exactly_seven_fields() -> None:
    row = RecordRow("k", {"a": 1}, 0.5, "s", 7, 2, 1.0, snapshot_id=3, pipeline_version="v")
    assert record_view(row).as_json() == {
        **{"key": "k", "data": {"a": 1}, "score": 0.5, "source": "s", "run": 7, "version": 2},
        "updated_at": "1970-01-01T00:00:01.000Z",
    }


# CSV.


def _record(data: Any, key: str = "k") -> dict[str, Any]:
    return {
        **{"key": key, "data": data, "score": None, "source": "s", "run": 1, "version": 1},
        "updated_at": "1970-01-01T00:00:01.000Z",
    }


def as_csv(*records: dict[str, Any]) -> list[dict[str, str]]:
    out, stream = printed()
    write_csv(lambda: iter(records), out)
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


@pytest.mark.parametrize(
    "start",
    ["=", "+", "-", "@", "\t", "\r", " =", "\x00=", "＝", "＋", "－", "＠", "\u200b=", "\ufeff@"],
)
def test_csv_text_can_not_be_taken_for_a_formula(start: str) -> None:
    [row] = as_csv(_record({"cell": f"{start}SUM(A1)", f"{start}field": "x"}, key=f"{start}k"))
    assert row["cell"].startswith("'")
    assert row["key"].startswith("'")
    assert all(not name.startswith(start) for name in row)


@pytest.mark.parametrize("between", [";", "; ", "\n", "\t", ";\u200b"])
@pytest.mark.parametrize("formula", ["=1+1", "＝1+1", "@SUM(A1)"])
def test_csv_text_holds_no_formula_behind_what_may_separate_cells(
    between: str, formula: str
) -> None:
    [row] = as_csv(_record({"cell": f"a{between}{formula}", "list": [f"a;{formula}"]}))
    for cell in row.values():
        assert not re.search(r"[;\t\n]\W*?(?<!')[=＝@]", cell.replace("'", "q")), cell


def test_csv_numbers_stay_numbers() -> None:
    [row] = as_csv(_record({"n": -5, "f": -0.5, "yes": True, "none": None}))
    assert (row["n"], row["f"], row["yes"], row["none"]) == ("-5", "-0.5", "true", "")


def test_csv_has_a_column_for_every_field_of_any_record() -> None:
    first, second = as_csv(_record({"a": 1}), _record({"b": {"deep": [1, "x"]}, "key": "own"}))
    assert (first["a"], first["b"], first["data.key"]) == ("1", "", "")
    assert (second["a"], second["b"]) == ("", '{"deep":[1,"x"]}')
    assert (second["key"], second["data.key"]) == ("k", "own")


def test_csv_takes_data_that_is_not_a_mapping() -> None:
    first, second = as_csv(_record([1, 2]), _record("text\nof two lines"))
    assert (first["data"], second["data"]) == ("[1,2]", "text\nof two lines")


def test_csv_says_which_field_came_too_late_for_a_column() -> None:
    out, _ = printed()
    passes = iter([[_record({"a": 1})], [_record({"a": 1, "late": 2})]])
    write_csv(lambda: next(passes), out)
    assert isinstance(out.stderr, io.StringIO)
    assert "not included: late" in out.stderr.getvalue()


# What happens to the unexpected.


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    return tmp_path


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def open_project(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("penstock.project.Project.open", open_project)


def test_a_bug_is_one_line_and_its_traceback_is_kept_for_its_owner(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(monkeypatch, ZeroDivisionError("division by zero"))
    assert main(["status", "--project", "."]) == exits.BUG
    first, second = capsys.readouterr().err.splitlines()
    assert first == "penstock: ZeroDivisionError: division by zero"
    [log] = temporary.glob("penstock-crash-*.log")
    assert second == f"  this is a bug; its traceback is in {log}"
    assert "Traceback (most recent call last)" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_debugging_shows_the_traceback(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    broken(monkeypatch, ZeroDivisionError("division by zero"))
    assert main(["status", "--project", str(temporary)]) == exits.BUG
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), exits.INTERRUPTED, "penstock: interrupted"),
        (PermissionError(13, "No", "x.db"), exits.BUG, "penstock: [Errno 13] No: 'x.db'"),
        (MemoryError(), exits.BUG, "penstock: MemoryError"),
    ],
)  # fmt: skip
def test_what_the_machine_or_the_operator_did_is_no_bug(
    error: BaseException,
    code: int,
    line: str,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken(monkeypatch, error)
    assert main(["status", "--project", "."]) == code
    assert capsys.readouterr().err.splitlines()[0] == line
    assert os.listdir(temporary) == []
