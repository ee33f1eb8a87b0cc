"""The command line as an operator meets it: the real command in subprocesses, on a site on loopback."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import penstock
from tests.journeys.commands import run_command

SECRET = "sesame-4711-oeffne-dich"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
    "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
    "SHOP_TOKEN": SECRET,
    "COLUMNS": "200",
}
PENSTOCK = [sys.executable, "-m", "penstock"]
PAGES = 6
# A title that would retitle the window, paint the screen and be a formula.
EVIL = "=1+1\x1b]0;owned\x07\x1b[31m [bold]red[/bold]"

PIPELINE = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    if "broken" in response.text:
        raise ValueError("no price; asked with " + ctx.params["token"])
    return {"url": page["url"], "title": response.text, "price": -1.5}


@shop.step(after="extract", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["url"].rpartition("/")[2], data=product, score=1.0)
"""
CONFIG = """
project: shop-watch
worker: {{grace: 1s}}
sources:
{sources}
"""
SOURCE = """
  {name}:
    pipeline: shop:shop
    params: {{sitemap: "{url}/{name}/sitemap.xml", token: "${{SHOP_TOKEN}}"}}
    fetch: {{allow_private: true, robots: false}}
"""


class Shop(ThreadingHTTPServer):
    """`good` has six pages; two of `spotty` are broken until they are mended; `broken` has no sitemap;
    the pages of `slow` answer when `open` is set."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.is_mended = threading.Event()
        self.open = threading.Event()
        self.asked = threading.Event()


class Answer(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, source, page = self.path.split("/", 2)
        if source == "broken":
            return self.answer(404, "gone")
        if page == "sitemap.xml":
            urls = "".join(
                f"<url><loc>{self.server.url}/{source}/p{number}</loc></url>"
                for number in range(PAGES)
            )
            return self.answer(200, f"<urlset>{urls}</urlset>")
        if source == "slow":
            self.server.asked.set()
            self.server.open.wait(30)
        if source == "spotty" and page in ("p1", "p2") and not self.server.is_mended.is_set():
            return self.answer(200, "broken")
        return self.answer(200, EVIL if page == "p3" else f"title of {page}")

    def answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    server = Shop()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.open.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(
            [*PENSTOCK, *words, "--project", str(self.folder)],
            env=ENVIRONMENT,
            text=True,
            **options,
        )

    def do(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_command([*words, "--project", str(self.folder)], Path.cwd(), ENVIRONMENT, 120)
        assert "Traceback" not in done.stdout + done.stderr
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def said(self, *words: str, code: int = 0) -> str:
        return self.do(*words, code=code).stdout

    def refused(self, *words: str, code: int) -> list[str]:
        """The lines of an error: what is wrong, and a hint."""
        done = self.do(*words, code=code)
        lines = done.stderr.splitlines()
        assert lines[0].startswith("penstock: ")
        assert len(lines) <= 2
        assert all(line.startswith("  ") for line in lines[1:])
        return lines

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.said(*words, "--json", code=code))

    def lines(self, *words: str, code: int = 0) -> list[Any]:
        return [json.loads(line) for line in self.said(*words, code=code).splitlines()]


def make(folder: Path, shop: Shop, *names: str) -> Project:
    folder.mkdir(parents=True)
    (folder / "shop.py").write_text(PIPELINE)
    sources = "".join(SOURCE.format(name=name, url=shop.url) for name in names)
    (folder / "penstock.yaml").write_text(CONFIG.format(sources=sources))
    return Project(folder)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> Project:
    """A project whose sources have all run once; to be looked at, not changed."""
    project = make(tmp_path_factory.mktemp("shop") / "worked", shop, "good", "spotty", "broken")
    project.do("run", "--all", "--json", code=4)
    return project


@pytest.fixture
def copied(worked: Project, tmp_path: Path) -> Project:
    """The same, to be changed."""
    shutil.copytree(worked.folder, tmp_path / "copied")
    return Project(tmp_path / "copied")


# Running.


def test_run_prints_one_object_for_each_run_and_the_worst_decides_the_code(
    tmp_path: Path, shop: Shop
) -> None:
    project = make(tmp_path / "p", shop, "good", "spotty", "broken")
    [good] = project.lines("run", "https://GOOD/", "good", "--json")
    names = ["run", "source", "kind", "state", "seconds", "counts", "end_reason", "expected"]
    assert list(good) == [*names, "requests", "cursor"]
    assert (good["run"], good["source"], good["kind"], good["state"]) == (
        1,
        "good",
        "full",
        "completed",
    )
    assert good["counts"]["pages"] == good["counts"]["saved"] == PAGES

    [again] = project.lines("run", "good", "--json")
    assert again["counts"]["unchanged"] == PAGES

    beside, spotty = project.lines("run", "good", "spotty", "--json", code=3)
    assert beside["counts"]["accepted"] == PAGES
    assert (spotty["state"], spotty["counts"]["quarantined"]) == ("partial", 2)

    states = {
        each["source"]: each["state"] for each in project.lines("run", "--all", "--json", code=4)
    }
    assert states == {"good": "completed", "spotty": "partial", "broken": "failed"}


def test_run_tells_progress_on_stderr_and_a_table_on_stdout(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    done = project.do("run", "good", "--reason", "a look")
    assert f"good: completed, {PAGES} of {PAGES} pages" in done.stderr
    head, row = done.stdout.splitlines()
    assert head.split()[:3] == ["run", "source", "state"]
    assert row.split()[:4] == ["1", "good", "completed", str(PAGES)]
    assert project.json("runs", "1")["reason"] == "a look"


def test_run_draws_its_progress_on_a_terminal(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    ours, theirs = pty.openpty()
    with project.start("run", "good", stderr=theirs) as process:
        os.close(theirs)
        drawn = read_terminal(ours)
    assert process.returncode == 0
    assert "good" in drawn
    assert "\x1b[" in drawn


def read_terminal(descriptor: int) -> str:
    found = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux's way to say that the other side has closed it
            piece = b""
        if not piece:
            os.close(descriptor)
            return found.decode()
        found += piece


def test_an_interrupted_run_stays_queued_and_up_until_idle_finishes_it(
    tmp_path: Path, shop: Shop
) -> None:
    project = make(tmp_path / "p", shop, "slow")
    shop.asked.clear()
    with project.start("run", "slow") as process:
        assert shop.asked.wait(120)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted; nothing is lost, run 1 stays queued" in err
    assert "penstock up --until-idle" in err
    assert project.json("runs", "--active")[0]["run"] == 1

    shop.open.set()
    try:
        project.do("up", "--until-idle")
    finally:
        shop.open.clear()
    [run] = project.json("runs")
    assert (run["state"], run["counts"]["inserted"]) == ("completed", PAGES)


def test_the_same_command_goes_on_with_a_run_that_has_not_ended(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    assert "run 1 of good is queued" in project.said("run", "good", "--detach")
    assert "run 1 of good has not ended yet" in project.do("run", "good", "--detach").stderr
    assert [
        each["run"] for each in project.lines("run", "good", "--detach", "--new", "--json")
    ] == [2]
    [first] = project.lines("run", "good", "--json")
    assert first["run"] in (1, 2)
    project.do("up", "--until-idle")
    assert [each["state"] for each in project.json("runs")] == ["completed", "completed"]


def test_while_up_works_run_watches_and_nobody_else_may_work_or_restore(
    tmp_path: Path, shop: Shop
) -> None:
    project = make(tmp_path / "p", shop, "good")
    project.do("run", "good", "--detach")
    project.do("db", "backup", str(tmp_path / "b.db"))
    with project.start("up") as up:
        try:
            while not project.json("workers"):
                assert up.poll() is None
            [watched] = project.lines("run", "good", "--new", "--json")
            assert watched["state"] == "completed"
            assert project.json("status")["overview"]["workers"] == 1
            [worker] = project.json("workers")
            assert worker["is_alive"] is True
            assert "is working on" in project.refused("up", code=6)[0]
            told = project.refused("db", "restore", str(tmp_path / "b.db"), "--yes", code=7)
            assert f"(pid {up.pid}) is working on this project" in told[0]
        finally:
            up.send_signal(signal.SIGTERM)
            up.communicate(timeout=120)
    assert up.returncode == 0
    assert project.json("workers") == []


# Looking.


def test_status_tells_what_is_going_on_and_what_to_type_next(worked: Project) -> None:
    told = worked.said("status")
    assert "shop-watch" in told
    assert "penstock up" in told
    assert "penstock quarantine list --source spotty" in told
    seen = worked.json("status")
    assert seen["overview"]["records"] == PAGES
    assert {each["source"]: each["quarantined"] for each in seen["sources"]} == {
        **{"good": 0, "spotty": 2, "broken": 1},
    }


def test_status_shows_active_and_waiting_work(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good", "spotty")
    project.do("run", "--all", "--detach")
    project.do("pause", "spotty", "--reason", "they are moving")
    told = project.said("status")
    assert re.search(r"^ +1 +good +full +queued +0 of 0", told, re.MULTILINE)
    assert re.search(r"spotty +paused since .*: they are moving; penstock resume spotty", told)
    assert "2 queued" in told


def test_a_fresh_project_can_be_looked_at(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    assert "no runs" in project.said("runs")
    assert "no events" in project.said("events")
    assert "no records yet" in project.said("records")
    assert "no such jobs" in project.said("jobs", "--source", "good")
    assert project.json("jobs") == project.json("records") == project.json("workers") == []
    [source] = project.json("sources")
    assert (source["source"], source["pipeline"]) == ("good", "shop:shop")


def test_sources_shows_what_is_configured_and_what_is_left_of_the_rest(copied: Project) -> None:
    told = copied.said("sources")
    assert re.search(r"^spotty +shop:shop +by hand only .* partial", told, re.MULTILINE)
    config = copied.folder / "penstock.yaml"
    config.write_text(config.read_text().split("  spotty:")[0])
    assert "not in penstock.yaml any more" in copied.said("sources")
    assert [each["source"] for each in copied.json("runs", "--source", "spotty")] == ["spotty"]


def test_runs_jobs_and_events_lead_from_one_to_the_next(worked: Project) -> None:
    [run] = worked.json("runs", "--source", "spotty", "--limit", "1")
    told = worked.said("runs", str(run["run"]))
    assert f"penstock retry {run['run']} --failed" in told

    jobs = worked.json("jobs", "--run", str(run["run"]), "--state", "quarantined")
    assert [each["key"].rpartition("/")[2] for each in jobs] == ["p1", "p2"]
    one = worked.json("jobs", str(jobs[0]["job"]))
    assert "no price" in one["error"]
    assert one["events"][-1]["kind"] == "job.quarantined"
    assert "no price" in worked.said("jobs", str(one["job"]))

    events = worked.json("events", "--job", str(one["job"]), "--run", str(run["run"]))
    assert {each["job"] for each in events} == {one["job"]}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", events[0]["at"])
    newest = worked.json("events", "--limit", "3")
    assert len(newest) == 3
    assert newest[-1]["event"] > events[-1]["event"] or newest[-1] == events[-1]


def test_events_can_be_followed(copied: Project) -> None:
    with copied.start("events", "--follow", "--json", "--limit", "1") as following:
        assert following.stdout is not None
        before = json.loads(following.stdout.readline())
        copied.do("pause", "good", "--reason", "for now")
        seen = json.loads(following.stdout.readline())
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=120)
    assert following.returncode == 130
    assert seen["event"] > before["event"]
    assert (seen["kind"], seen["source"], seen["detail"]) == ("source.paused", "good", "for now")


def test_records_as_json_lines_csv_and_table(worked: Project) -> None:
    lines = worked.lines("records", "product", "--format", "jsonl")
    assert [line["key"] for line in lines] == [f"p{number}" for number in range(PAGES)]
    for line in lines:
        assert list(line) == ["key", "data", "score", "source", "run", "version", "updated_at"]
    assert lines == worked.json("records", "product")

    rows = list(csv.DictReader(io.StringIO(worked.said("records", "product", "--format", "csv"))))
    assert [row["key"] for row in rows] == [line["key"] for line in lines]
    assert (rows[0]["title"], rows[0]["price"]) == ("title of p0", "-1.5")
    assert rows[3]["title"].startswith("'=1+1")

    assert worked.json("records") == [{"collection": "product", "records": PAGES}]
    table = worked.do("records", "product", "--limit", "2")
    assert len(table.stdout.splitlines()) == 3
    assert f"2 of {PAGES}" in table.stderr


def test_one_record_is_shown_with_every_version_it_had(copied: Project) -> None:
    shop = copied.folder / "shop.py"
    shop.write_text(shop.read_text().replace('"price": -1.5', '"price": 2'))
    copied.do("run", "good")
    versions = copied.lines("records", "product", "--key", "p0", "--versions", "--format", "jsonl")
    assert [(each["version"], each["data"]["price"]) for each in versions][-2:] == [
        (versions[-1]["version"] - 1, -1.5),
        (versions[-1]["version"], 2),
    ]
    [present] = copied.json("records", "product", "--key", "p0")
    assert present == versions[-1]


def test_a_reader_that_goes_away_is_no_error(worked: Project) -> None:
    with worked.start("records", "product", "--format", "jsonl") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


# Steering.


def test_a_paused_source_is_refused_until_it_is_resumed(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    assert "good is paused" in project.said("pause", "good", "--reason", "they are moving")
    assert "paused already" in project.said("pause", "good")
    assert project.refused("run", "good", code=7) == [
        "penstock: good is paused: they are moving",
        "  penstock resume good",
    ]
    assert "good is resumed" in project.said("resume", "good")
    assert "was not paused" in project.said("resume", "good")

    project.do("run", "good", "--detach")
    assert "run 1 is paused" in project.said("pause", "1")
    assert project.refused("run", "good", code=7)[1] == "  penstock resume 1"
    project.do("resume", "1")
    project.do("run", "good")
    assert "only an active run can be paused" in project.refused("pause", "1", code=7)[0]


def test_cancel_asks_and_without_a_terminal_only_yes_is_an_answer(
    tmp_path: Path, shop: Shop
) -> None:
    project = make(tmp_path / "p", shop, "good")
    project.do("run", "good", "--detach")
    assert project.refused("cancel", "1", code=7)[1] == "  say --yes if you mean it"
    assert project.json("runs", "1")["state"] == "queued"
    assert answered(project, "n", "cancel", "1") == 7
    assert project.json("runs", "1")["state"] == "queued"
    assert answered(project, "y", "cancel", "1") == 0
    assert project.json("runs", "1")["state"] == "cancelled"
    assert "is cancelled already" in project.refused("cancel", "1", "--yes", code=7)[0]
    assert "was cancelled" in project.refused("retry", "1", code=7)[0]


def answered(project: Project, answer: str, *words: str) -> int:
    ours, theirs = pty.openpty()
    with project.start(*words, stdin=theirs) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        process.communicate(timeout=120)
    os.close(ours)
    return process.returncode


def test_one_job_can_be_cancelled(copied: Project) -> None:
    [job, _] = copied.json("jobs", "--source", "spotty", "--state", "quarantined")
    number = str(job["job"])
    assert f"job {number} is cancelled" in copied.said("cancel", "--job", number, "--yes")
    assert "is cancelled already" in copied.refused("cancel", "--job", number, "--yes", code=7)[0]
    assert "can be retried" in copied.refused("retry", "--job", number, code=7)[0]


def test_retry_touches_only_what_failed(copied: Project, shop: Shop) -> None:
    [run] = copied.json("runs", "--source", "spotty")
    shop.is_mended.set()
    try:
        told = copied.said("retry", str(run["run"]), "--failed", "--reason", "mended")
        assert f"2 jobs of run {run['run']} queued again" in told
        assert "No workers are running. Start one: penstock up" in told
        copied.do("up", "--until-idle")
    finally:
        shop.is_mended.clear()
    [after] = copied.json("runs", "--source", "spotty")
    assert (after["run"], after["state"]) == (run["run"], "completed")
    assert after["counts"]["pages"] == PAGES
    retried = [
        each for each in copied.json("events", "--limit", "1000") if each["kind"] == "job.requeued"
    ]
    assert [each["detail"] for each in retried] == ["mended", "mended"]
    assert "nothing in quarantine" in copied.refused("retry", str(run["run"]), code=7)[0]


# The database.


def test_a_backup_can_be_put_back_and_the_journal_says_so(copied: Project, tmp_path: Path) -> None:
    backup = tmp_path / "monday.db"
    assert "checked" in copied.said("db", "backup", str(backup))
    assert copied.refused("db", "backup", str(backup), code=7)[1] == "  --yes replaces it"
    copied.do("db", "backup", str(backup), "--yes")
    copied.do("run", "good")
    assert len(copied.json("runs")) == 4

    assert copied.refused("db", "restore", str(backup), code=7)[1] == "  say --yes if you mean it"
    copied.do("db", "restore", str(backup), "--yes")

    assert len(copied.json("runs")) == 3
    [event] = copied.json("events", "--limit", "1")
    assert (event["kind"], event["detail"]) == ("db.restored", "monday.db")
    assert "sound" in copied.said("db", "check")
    assert copied.json("db", "check") == []


def test_a_damaged_database_is_told_and_can_be_restored(copied: Project, tmp_path: Path) -> None:
    backup = tmp_path / "monday.db"
    copied.do("db", "backup", str(backup))
    database = copied.folder / "penstock.db"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    (copied.folder / "penstock.db-wal").unlink(missing_ok=True)
    copied.do("db", "check", code=5)
    copied.do("status", code=5)
    copied.do("db", "restore", str(backup), "--yes")
    assert "sound" in copied.said("db", "check")


def test_what_is_no_backup_is_refused_and_nothing_is_changed(
    copied: Project, tmp_path: Path
) -> None:
    before = len(copied.json("runs"))
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"no database at all" * 1000)
    copied.refused("db", "restore", str(rubbish), "--yes", code=5)
    copied.refused("db", "restore", str(tmp_path / "absent.db"), "--yes", code=2)
    copied.refused("db", "restore", str(copied.folder / "penstock.db"), "--yes", code=2)
    copied.refused("db", "backup", str(copied.folder / "penstock.db"), "--yes", code=2)
    copied.refused("db", "backup", str(tmp_path / "no" / "such" / "folder.db"), code=2)
    copied.refused("db", "backup", str(tmp_path), code=2)
    assert len(copied.json("runs")) == before


def test_there_is_nothing_to_check_before_the_first_run(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    assert "there is no database" in project.refused("db", "check", code=5)[0]
    assert not (project.folder / "penstock.db").exists()


# What is wrong is told in one line.


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("run goood", 2, "penstock.yaml has no source 'goood'"),
        ("run", 2, "run what?"),
        ("run good --all", 2, "name the sources, or say --all"),
        ("runs 99", 2, "there is no run 99"),
        ("jobs 999999", 2, "there is no job 999999"),
        ("jobs --state quarantned", 2, "there is no state 'quarantned'"),
        ("jobs --source goood", 2, "has no source 'goood'"),
        ("jobs --run 99", 2, "there is no run 99"),
        ("events --run 99", 2, "there is no run 99"),
        ("events --job 999999", 2, "there is no job 999999"),
        ("records prodct", 2, "there is no collection 'prodct'"),
        ("records product --key none", 2, "product has no record with the key 'none'"),
        ("records product --versions", 2, "--versions needs --key"),
        ("records product --json --format csv", 2, "exclude each other"),
        ("records --format csv", 2, "which COLLECTION?"),
        ("pause goood", 2, "has no source 'goood'"),
        ("pause 99", 2, "there is no run 99"),
        ("cancel", 2, "cancel what?"),
        ("cancel 1 --job 2", 2, "cancel what?"),
        ("cancel 99 --yes", 2, "there is no run 99"),
        ("cancel 1 --yes", 7, "already"),
        ("retry", 2, "retry what?"),
        ("retry 1", 7, "nothing in quarantine"),
        ("retry --job 1", 7, "only a quarantined or waiting job can be retried"),
        ("status --env production", 2, "production"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(
    worked: Project, words: str, code: int, message: str
) -> None:
    assert message in worked.refused(*words.split(), code=code)[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("project:", "projekt:", "projekt"),
        ("shop:shop", "shp:shop", "'shp'"),
        ("shop:shop", "shop:sop", "'sop'"),
        ("pipeline:", "pipline:", "pipline"),
        ("robots: false", "robots: 7", "robots"),
        ("sources:", "sources: [", "penstock.yaml"),
    ],
)
def test_a_wrong_configuration_is_one_line_that_names_it(
    tmp_path: Path, shop: Shop, old: str, new: str, message: str
) -> None:
    project = make(tmp_path / "p", shop, "good")
    config = project.folder / "penstock.yaml"
    config.write_text(config.read_text().replace(old, new, 1))
    for command in (("sources", "--check"), ("run", "good"), ("up", "--until-idle")):
        lines = project.refused(*command, code=2)
        assert message in lines[0]
        assert "penstock.yaml" in lines[0]


def test_without_a_project_it_is_told_how_to_get_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PENSTOCK, "status"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "penstock init" in done.stderr


def test_the_nearest_project_upward_is_found(worked: Project) -> None:
    below = worked.folder / "a" / "b"
    below.mkdir(parents=True)
    done = subprocess.run(
        [*PENSTOCK, "status", "--json"], cwd=below, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["project"] == "shop-watch"


def test_an_environment_is_laid_over_the_project(copied: Project) -> None:
    (copied.folder / "penstock.production.yaml").write_text(
        "project: shop-live\nstore: sqlite:live.db\n"
    )
    assert copied.json("status", "--env", "production")["project"] == "shop-live"
    assert copied.json("runs", "--env", "production") == []
    assert copied.json("status")["project"] == "shop-watch"


# What must not come out.


LOOKS = [
    *(["status"], ["sources"], ["runs"], ["runs", "2"], ["jobs", "--limit", "500"], ["records"]),
    *(["events", "--limit", "5000"], ["jobs", "--state", "quarantined"], ["records", "product"]),
    *(["records", "product", "--format", "csv"], ["records", "product", "--format", "jsonl"]),
]


def test_no_output_has_a_secret_or_an_escape_sequence_from_outside(worked: Project) -> None:
    bad = worked.json("jobs", "--state", "quarantined")[0]["job"]
    asked = False
    for words in [*LOOKS, ["jobs", str(bad)]]:
        forms = [words] if "--format" in words else [words, [*words, "--json"]]
        for form in forms:
            done = worked.do(*form)
            told = done.stdout + done.stderr
            asked = asked or "asked with ***" in told
            assert SECRET not in told
            assert not set(told) & {"\x1b", "\x07", "\x9b"}, form
    assert asked


def test_what_the_projects_code_prints_stays_out_of_the_json(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    module = project.folder / "shop.py"
    module.write_text('print("hello")\n' + module.read_text())
    assert [each["source"] for each in project.json("sources")] == ["good"]
    assert [each["state"] for each in project.lines("run", "good", "--json")] == ["completed"]


def test_a_module_that_ends_the_program_is_told(tmp_path: Path, shop: Shop) -> None:
    project = make(tmp_path / "p", shop, "good")
    (project.folder / "shop.py").write_text('import sys\nsys.exit("no")\n')
    assert "called sys.exit('no')" in project.refused("sources", "--check", code=2)[0]


def test_an_answer_that_can_not_be_written_is_an_error(worked: Project) -> None:
    with (
        Path("/dev/full").open("w") as full,
        worked.start("records", "product", "--format", "csv", stdout=full) as process,
    ):
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert [line[:10] for line in err.splitlines()] == ["penstock: ", "  PENSTOCK"]
