"""What `penstock export pg-cron` and `export supabase` write, on the real pg_cron, which is seen firing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString
from zoneinfo import ZoneInfo

import psycopg
import pytest
from cronsim import CronSim

from penstock import Project
from penstock.engine.leader.signals import SignalChore
from penstock.exporters.fields import fields_of, matches
from penstock.exporters.sql_times import times_of
from penstock.exporters.starts import Start
from penstock.schedules import Cron
from penstock.settings import ScheduleSettings
from penstock.settings.values import TriggerSettings
from tests.contract.sql_clients import STEPS, a_failed_run
from tests.journeys.rig import ENVIRONMENT, PENSTOCK
from tests.postgres.pg_cron import (
    NEWER,
    SETTINGS,
    clock_at,
    newer_postgres_with_cron,
    postgres_with_cron,
)
from tests.postgres.server import Server
from tests.postgres.workspace import Workspace, until
from tests.programs import needed
from tests.unit.test_trigger import ask

PARIS = "Europe/Paris"
# 02:30 in Paris, in winter; the clock of the server begins shortly before it.
DUE = datetime(2027, 2, 10, 1, 30, tzinfo=UTC)
# So long before: more, where the machine was too busy to start a server in that time.
BEFORE_S = (5, 15, 30, 45)
# Where no job has begun so long after the minute came, pg_cron has not seen it come.
MISSED_S = 15
LAUNCHER: LiteralString = "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'"
HOSTILE = "o'dd/$penstock$%s\\'--*"
DATABASE = "shop"
SCHEDULES: dict[str, Any] = {
    "acme.com": {"cron": "30 2 * * *", "timezone": PARIS},
    "beta.com": {"cron": "30 1 * * *"},
    "gamma.com": {"cron": "30 2 * * *"},  # by UTC: not due in Paris's night
    HOSTILE: {"every": "1d"},
    "files": {"watch": "./in/*.json"},
}


@dataclass
class CronServer:
    """A server with pg_cron, and a project in it whose schedules are external."""

    server: Server
    folder: Path

    @property
    def knows_seconds(self) -> bool:
        return self.server.installation.major == NEWER

    def write(self, schedules: dict[str, Any], **more: Any) -> None:
        sources = {
            key: {
                "pipeline": "steps:mapper",
                "schedule": schedule,
                "params": {"organization_id": "o" + str(number)},
            }
            for number, (key, schedule) in enumerate(schedules.items())
        }
        settings = {"project": "shop-watch", "store": self.url, "sources": sources, **more}
        (self.folder / "penstock.yaml").write_text(json.dumps(settings))

    @property
    def url(self) -> str:
        return self.server.url(DATABASE)

    def project(self) -> Project:
        return Project.load(self.folder)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def jobs(self) -> dict[str, tuple[int, str, bool]]:
        found = self.rows("SELECT jobname::text, jobid, schedule, active FROM cron.job")
        return {name: (number, schedule, active) for name, number, schedule, active in found}

    def go_on_at(self, moment: datetime) -> None:
        """The server is started again, and its clock shows this."""
        # A process that Postgres forks while it handles a signal does not see the clock of libfaketime.
        # What is tried again, because it could not connect at first, is forked at another time.
        self.server.admin("ALTER DATABASE shop ALLOW_CONNECTIONS false")
        self.server.stop(signal.SIGINT)
        self.server.environment = clock_at(self.server.workspace, moment)
        self.server.start_again()
        refused = "not currently accepting connections"
        until("pg_cron is refused", lambda: refused in self.server.log.read_text())
        self.server.admin("ALTER DATABASE shop ALLOW_CONNECTIONS true")
        until("pg_cron is there", lambda: bool(self.server.admin(LAUNCHER)))


INSTALLATIONS = {"1.4": postgres_with_cron, "1.6": newer_postgres_with_cron}


@pytest.fixture(scope="module", params=["1.4", pytest.param("1.6", marks=pytest.mark.torture)])
def server(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[Server]:
    installation = INSTALLATIONS[request.param](workspace)
    settings = SETTINGS.format(database=DATABASE)
    server = Server.start(installation, workspace, settings)
    yield server
    server.close()


@pytest.fixture
def cron(server: Server, tmp_path: Path) -> Iterator[CronServer]:
    server.create_database(DATABASE)
    server.admin("CREATE EXTENSION pg_cron", DATABASE)
    server.admin("GRANT USAGE ON SCHEMA cron TO penstock", DATABASE)
    (tmp_path / "steps.py").write_text(STEPS)
    made = CronServer(server, tmp_path)
    made.write(SCHEDULES, timers="external")
    yield made
    if server.environment:  # the clock of the other tests is right
        server.stop(signal.SIGINT)
        server.environment = {}
        server.start_again()
    server.drop_database(DATABASE)


def script(cron: CronServer, **options: Any) -> str:
    with cron.project() as project:
        [text] = project.exports.pg_cron(**options).files.values()
    return text


def test_a_script_makes_one_job_of_each_entry_however_often_and_drops_what_has_gone(
    cron: CronServer,
) -> None:
    with cron.project() as project:
        project.sql.install()
    cron.rows(script(cron))
    first = cron.jobs()
    assert {name.removeprefix("penstock:shop-watch:") for name in first} == {
        *(f"{key}/main" for key in ("acme.com", "beta.com", "gamma.com", HOSTILE)),
        *("(retries)", "(watchdog)", "(history)"),
    }
    assert first["penstock:shop-watch:acme.com/main"][1] == "30 0,1 * * *"
    cron.server.admin("UPDATE cron.job SET active = false WHERE jobid = 1", DATABASE)
    cron.rows("SELECT cron.schedule('mine', '0 0 * * *', 'SELECT 1')")
    cron.rows(script(cron))
    again = cron.jobs()
    # An operator's switch stays as it is, and so does a job of somebody else.
    assert again.pop("mine")
    assert {name: each[0] for name, each in again.items()} == {n: e[0] for n, e in first.items()}
    assert [number for number, _, active in again.values() if not active] == [1]

    cron.write({"acme.com": {"cron": "45 2 * * *"}}, timers="external")
    cron.rows(script(cron, retries="off", watchdog="off"))
    left = cron.jobs()
    assert left.keys() == {"penstock:shop-watch:acme.com/main", "mine"}
    assert left["penstock:shop-watch:acme.com/main"][1] == "45 2 * * *"
    versions = cron.rows(
        r"SELECT DISTINCT substring(command FROM '\m[0-9a-f]{8}\M') FROM cron.job WHERE jobname <> 'mine'"
    )
    assert [version for (version,) in versions] == [
        version_of(script(cron, retries="off", watchdog="off"))
    ]


def version_of(text: str) -> str:
    return text.partition("Version ")[2][:8]


def test_pg_cron_starts_what_is_due_retries_what_failed_and_says_that_nobody_works(
    cron: CronServer,
) -> None:
    with cron.project() as project:
        project.sql.install()
        project.connection.workers.register("w", "here", 1, "1")
        failed = a_failed_run(project, "gamma.com")
        project.connection.workers.bury("w", "ended")
    cron.rows(script(cron, retries="30 1 * * *", watchdog="30 1 * * *", patience="1s"))
    # Else what failed would have done so months ago.
    ago = (DUE - datetime.now(UTC)).total_seconds()
    cron.rows(f"UPDATE penstock.run SET finished_at = finished_at + {ago} WHERE id = {failed}")
    see_firing(cron, 4)
    told = cron.rows("SELECT status, return_message FROM cron.job_run_details ORDER BY status")
    assert [status for status, _ in told] == ["failed", "succeeded", "succeeded", "succeeded"]
    assert "nobody starts what is asked for" in told[0][1]

    with cron.project() as project:
        project.sql.perform()
        runs = {run.source: run for run in project.runs.list().items}
        assert runs.keys() == {"acme.com", "beta.com", "gamma.com"}
        assert runs["acme.com"].actor == "sql:penstock"
        assert runs["acme.com"].reason == "schedule main, by pg_cron"
        assert (runs["gamma.com"].id, runs["gamma.com"].state) == (failed, "running")
        # What is due is left to pg_cron, and nobody is said to be late with it.
        assert {
            each.source: each.next_due_at for each in project.schedules.list().items
        } == dict.fromkeys(SCHEDULES)


def see_firing(cron: CronServer, jobs: int) -> None:
    """So many jobs have run that are due at that minute, as pg_cron saw it come.

    Its first look at the clock is after its process is there, and the minute of that look counts as done.
    One that was forked in a signal's handler shows the true time. In both cases it starts nothing at all.
    """
    begun = "SELECT EXISTS (SELECT FROM cron.job_run_details)"
    past = f"SELECT now() > timestamptz '{DUE}' + interval '{MISSED_S} s'"
    ended = "SELECT count(*) FROM cron.job_run_details WHERE status IN ('succeeded', 'failed')"

    def holds(text: str) -> bool:
        return cron.rows(text) == [(True,)]

    for before_s in BEFORE_S:
        cron.go_on_at(DUE - timedelta(seconds=before_s))
        until("the minute has come", lambda: holds(begun) or holds(past), 60 + before_s)
        if holds(begun):
            break
    until("pg_cron has run what is due", lambda: cron.rows(ended) == [(jobs,)], 60)


def test_a_retry_goes_by_attempts_and_stops(cron: CronServer) -> None:
    from tests.contract.sql_clients import fail

    with cron.project() as project:
        project.sql.install()
        project.connection.workers.register("w", "here", 1, "1")
        a_failed_run(project, "gamma.com")
        for asked in (1, 1, 0):
            assert cron.rows("SELECT penstock_sql.penstock_retry_failed(3)") == [(asked,)]
            assert project.sql.perform() == asked
            if asked:
                fail(project)


@pytest.mark.parametrize(
    ("prepare", "refusal"),
    [
        ("SELECT 1", "views of Penstock are not in this database"),
        ("DROP EXTENSION pg_cron", "pg_cron is not in the database"),
        ("REVOKE USAGE ON SCHEMA cron FROM penstock", "may not use pg_cron"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_changed(
    cron: CronServer, prepare: Any, refusal: str
) -> None:
    cron.server.admin(prepare, DATABASE)
    with pytest.raises(psycopg.errors.RaiseException, match=refusal) as refused:
        cron.rows(script(cron))
    assert refused.value.diag.message_hint


def test_seconds_fire_or_are_refused_by_a_pg_cron_that_does_not_know_them(
    cron: CronServer,
) -> None:
    cron.write({"acme.com": {"every": "2s"}}, timers="external")
    text = script(cron, schema="penstock_sql")
    assert "'2 seconds'" in text
    if not cron.knows_seconds:
        with pytest.raises(psycopg.errors.RaiseException, match=r"need pg_cron 1\.5"):
            cron.rows(text)
        assert cron.jobs() == {}
        assert "need pg_cron 1.5" in penstock(cron, "--check", "--schema", "penstock_sql")[1]
        return
    with cron.project() as project:
        project.sql.install()
    for _ in range(2):
        cron.rows(text)
    assert cron.jobs()["penstock:shop-watch:acme.com/main"][1:] == ("2 seconds", True)
    assert penstock(cron, "--check", "--schema", "penstock_sql")[0] == 0
    started = (
        "SELECT d.start_time, d.status FROM cron.job_run_details d JOIN cron.job j USING (jobid) "
        "WHERE j.jobname LIKE '%acme.com/main' AND d.end_time IS NOT NULL ORDER BY d.start_time"
    )
    until("pg_cron has started it three times", lambda: len(cron.rows(started)) >= 3)
    times = [at for at, status in cron.rows(started) if status == "succeeded"][:3]
    # Not once a minute, and not more often than it says: a start that is late leaves less than two seconds.
    assert timedelta(seconds=2) < times[2] - times[0] < timedelta(seconds=40)
    with cron.project() as project:
        assert project.sql.perform() == 1  # while it waits, the next start asks for nothing new
        [run] = project.runs.list().items
        assert (run.source, run.reason) == ("acme.com", "schedule main, by pg_cron")


def penstock(cron: CronServer, *words: str) -> tuple[int, str]:
    """A command in the project's folder: its exit code, and all that it printed."""
    done = subprocess.run(
        [*PENSTOCK, "export", "pg-cron", *words],
        cwd=cron.folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_check_says_what_running_the_script_would_change_and_changes_nothing(
    cron: CronServer,
) -> None:
    cron.write({"acme.com": {"cron": "30 1 * * *"}, "beta.com": {"every": "1h"}}, timers="external")
    code, told = penstock(cron, "--check")
    assert code == 4
    assert "penstock db sql install" in told
    assert "acme.com/main: missing (30 1 * * *)" in told
    with cron.project() as project:
        project.sql.install()
    file = str(cron.folder / "cron.sql")
    assert penstock(cron, "--output", file)[0] == 0
    cron.rows(Path(file).read_text())
    code, told = penstock(cron, "--check", "--output", file)
    assert (code, "as in penstock.yaml" in told) == (0, True)

    # One was changed by hand, one switched off, one left penstock.yaml, one is new.
    cron.server.admin("UPDATE cron.job SET schedule = '1 1 * * *' WHERE jobid = 1", DATABASE)
    cron.server.admin("UPDATE cron.job SET command = 'SELECT 1' WHERE jobid = 3", DATABASE)
    cron.server.admin("UPDATE cron.job SET active = false WHERE jobid = 4", DATABASE)
    cron.write({"acme.com": {"cron": "30 1 * * *"}, "gamma.com": {"every": "1h"}})
    before = cron.rows("SELECT * FROM cron.job ORDER BY jobid")
    code, told = penstock(cron, "--check", "--output", file, "--json")
    found = json.loads(told)
    assert code == 4
    assert [(each["job"], each["state"]) for each in found["differences"]] == [
        ("acme.com/main", "changed"),
        ("gamma.com/main", "missing"),
        ("(retries)", "changed"),
        ("beta.com/main", "gone"),
    ]
    assert found["differences"][0]["found"] == "1 1 * * *"
    assert found["notes"] == ["(watchdog) is switched off in the database"]
    assert [f"{file} is not of this penstock.yaml" in each for each in found["problems"]] == [True]
    assert cron.rows("SELECT * FROM cron.job ORDER BY jobid") == before


def test_jobs_for_a_database_without_pg_cron_run_in_it(cron: CronServer) -> None:
    """The project is in `depot`, and pg_cron in `shop`."""
    cron.server.create_database("depot")
    try:
        cron.write(
            {"beta.com": {"cron": "30 1 * * *"}}, timers="external", store=cron.server.url("depot")
        )
        with cron.project() as project:
            project.sql.install()
        where = ("--database", "depot", "--cron-database", DATABASE)
        text = script(cron, database="depot", retries="30 1 * * *", watchdog="off")
        with pytest.raises(psycopg.errors.RaiseException, match="may not have pg_cron") as refused:
            cron.rows(text)
        grant = str(refused.value.diag.message_hint).rpartition(": ")[2]
        assert grant.startswith("GRANT EXECUTE ON FUNCTION cron.schedule_in_database")
        cron.server.admin(grant, DATABASE)
        wrong = script(cron, database="dept")
        with pytest.raises(psycopg.errors.RaiseException, match="there is no database dept"):
            cron.rows(wrong)
        # Nobody clears pg_cron's memory on the night of this test, so its job is told to.
        due = text.replace("'23 3 * * *'", "'30 1 * * *'")
        for _ in range(2):
            cron.rows(due)
        homes = dict(cron.rows("SELECT split_part(jobname, ':', 3), database FROM cron.job"))
        assert homes == {"beta.com/main": "depot", "(retries)": "depot", "(history)": DATABASE}
        options = (*where, "--retries", "30 1 * * *", "--watchdog", "off")
        assert "(history): changed" in penstock(cron, *options, "--check")[1]
        cron.rows(text)
        assert penstock(cron, *options, "--check")[0] == 0
        cron.rows(due)

        see_firing(cron, 3)
        told = cron.rows("SELECT DISTINCT status FROM cron.job_run_details")
        assert told == [("succeeded",)], cron.rows("SELECT * FROM cron.job_run_details")
        with cron.project() as project:
            assert project.sql.perform() == 1
            assert [run.source for run in project.runs.list().items] == ["beta.com"]
        cron.write({}, timers="external", store=cron.server.url("depot"))
        cron.rows(script(cron, database="depot", retries="off", watchdog="off"))
        assert cron.jobs() == {}
    finally:
        cron.server.drop_database("depot")


YEAR = 2027
FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (YEAR, YEAR + 1))
MOMENTS = [
    ("30 2 * * *", PARIS),
    ("0 4 L * *", "UTC"),
    ("0 5 * * MON#1,5L", "Asia/Kolkata"),
    ("*/20 9-17 * * MON-FRI", "America/New_York"),
    ("15 1 */10 * MON", "Australia/Lord_Howe"),
    ("0 0 LW 2,6 *", "Africa/Cairo"),
    ("30 2 13 * FRI", "America/Santiago"),
    ("10 * * * MON", PARIS),
]


@pytest.mark.parametrize(("expression", "zone"), MOMENTS)
def test_a_job_starts_when_the_schedule_is_due_all_year_round(
    database: str, expression: str, zone: str
) -> None:
    start = Start("acme.com", ScheduleSettings("cron", cron=expression, timezone=zone))
    started: dict[str, float] = {}
    with psycopg.connect(database) as connection:
        for time in times_of(start):
            text = (
                f"SELECT extract(epoch FROM t.at), {time.wall_time or 't.at::text'} {rows_of(time)}"
            )
            for moment, once in connection.execute(text.encode(), [by_utc(time.schedule)]):
                started.setdefault(once, float(moment))
    wanted, cron, moment = set(), Cron(expression, zone), FIRST - 1
    while (due := cron.next_due(moment)) is not None and due < LAST:
        wanted.add(due)
        moment = due
    skipped = {due for due in wanted if not is_shown(due, expression, zone)}
    assert set(started.values()) == wanted - skipped
    assert len(skipped) <= 1
    assert len(wanted) > 1


def by_utc(schedule: str) -> list[datetime]:
    """The moments of the year that pg_cron runs this at."""
    found = []
    for moment in CronSim(schedule, datetime(YEAR - 1, 12, 31, 23, 59, tzinfo=UTC)):
        if moment.year != YEAR:
            break
        found.append(moment)
    return found


def rows_of(time: Any) -> str:
    """What selects a row of a job, for each of many moments instead of now."""
    moments = "FROM unnest(%s::timestamptz[]) AS t (at)"
    if not time.source_rows:
        return moments
    clock, _, condition = time.source_rows.removeprefix("FROM ").partition(" WHERE ")
    clock = clock.replace("now()", "t.at")
    return f"{moments} CROSS JOIN LATERAL {clock} WHERE {condition}"


def is_shown(due: float, expression: str, zone: str) -> bool:
    """Whether the clock shows the time that was asked for: at the end of a gap it does not."""
    return matches(fields_of(expression), datetime.fromtimestamp(due, ZoneInfo(zone)))


# Supabase has pg_cron, pg_net and a vault. The last two are stood in for, with the names, arguments, defaults
# and checks of pg_net 0.20 and supabase_vault 0.3: what pg_net is to send is kept,
# and handed to the real trigger.

STAND_INS: LiteralString = """
CREATE SCHEMA net; CREATE SCHEMA vault;
CREATE UNLOGGED TABLE net.sent (id bigserial PRIMARY KEY, url text NOT NULL, body jsonb, headers jsonb);
CREATE UNLOGGED TABLE net._http_response (id bigint, status_code integer, content_type text, headers jsonb,
  content text, timed_out bool, error_msg text, created timestamptz NOT NULL DEFAULT now());
CREATE FUNCTION net.http_post(url text, body jsonb DEFAULT '{}', params jsonb DEFAULT '{}',
  headers jsonb DEFAULT '{"Content-Type": "application/json"}', timeout_milliseconds int DEFAULT 5000)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  request_id bigint;
BEGIN
  IF NOT headers @> '{"Content-Type": "application/json"}' THEN
    RAISE EXCEPTION 'Content-Type header must be "application/json"';
  END IF;
  INSERT INTO net.sent (url, body, headers) VALUES (url, body, headers) RETURNING id INTO request_id;
  RETURN request_id;
END $$;
CREATE TABLE vault.secrets (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text UNIQUE,
  description text NOT NULL DEFAULT '', secret text NOT NULL);
CREATE VIEW vault.decrypted_secrets AS SELECT *, secret AS decrypted_secret FROM vault.secrets;
CREATE FUNCTION vault.create_secret(new_secret text, new_name text = NULL, new_description text = '',
  new_key_id uuid = NULL) RETURNS uuid LANGUAGE sql AS
'INSERT INTO vault.secrets (secret, name, description) VALUES (new_secret, new_name, new_description)
RETURNING id';
"""
TOKEN = "canary-of-the-trigger"


@pytest.fixture
def supabase(cron: CronServer) -> CronServer:
    cron.server.admin("GRANT CREATE ON DATABASE shop TO penstock")
    cron.rows(STAND_INS)
    cron.write(
        {"beta.com": {"cron": "30 1 * * *"}, "acme.com": SCHEDULES["acme.com"]}, timers="external"
    )
    return cron


def secret(cron: CronServer, name: str, value: str) -> None:
    cron.rows(f"SELECT vault.create_secret('{value}', '{name}')")


def answer(cron: CronServer, request: int, status: int | None, error: str = "") -> None:
    """What pg_net notes down when a request has ended."""
    values = f"({request}, {'NULL' if status is None else status}, nullif('{error}', ''))"
    cron.rows(f"INSERT INTO net._http_response (id, status_code, error_msg) VALUES {values}")


def installed(cron: CronServer, **options: Any) -> dict[str, str]:
    """Run the script as it is written, twice; the commands of the jobs by their names."""
    with cron.project() as project:
        files = project.exports.supabase(**options).files
    for _ in range(2):
        cron.rows(files["penstock-supabase.sql"])
    assert "canary" not in "".join(files.values())
    return dict(cron.rows("SELECT split_part(jobname, ':', 3), command FROM cron.job"))


def test_a_call_by_pg_net_starts_a_run_once_though_it_is_sent_twice(supabase: CronServer) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="vault has no secret penstock_url"):
        installed(supabase)
    secret(supabase, "penstock_url", "http://127.0.0.1:1/")
    secret(supabase, "penstock_trigger_token", TOKEN)
    jobs = installed(supabase)
    assert jobs.keys() == {"acme.com/main", "beta.com/main", "(retries)", "(watchdog)", "(history)"}

    # As pg_cron runs them, twice in one minute; it is not half past two in Paris.
    supabase.rows("; ".join([jobs["beta.com/main"], jobs["acme.com/main"], jobs["beta.com/main"]]))
    [(sent, url, body, headers)] = supabase.rows("SELECT id, url, body, headers FROM net.sent")
    assert url == "http://127.0.0.1:1/signals/schedule.due?source=beta.com"
    assert headers["Authorization"] == f"Bearer {TOKEN}"

    # Nobody answers: it is told, and sent again under the same key.
    answer(supabase, sent, None, "Couldn''t connect")
    supabase.rows("UPDATE penstock_http.call SET at = at - interval '11 minutes'")
    with pytest.raises(
        psycopg.errors.RaiseException, match=r"1 calls were not accepted.*Couldn't connect"
    ):
        supabase.rows(jobs["(watchdog)"])
    assert supabase.rows(jobs["(retries)"]) == [(1,)]
    again = supabase.rows(f"SELECT id, url, body, headers FROM net.sent WHERE id > {sent}")
    assert [row[1:] for row in again] == [(url, body, headers)]

    with supabase.project() as project:
        project.settings = replace(project.settings, trigger=TriggerSettings(TOKEN))
        path, data = url.removeprefix("http://127.0.0.1:1"), json.dumps(body).encode()
        wrong = {**headers, "Authorization": "Bearer wrong"}
        answers = [ask(project, path, data, each) for each in (wrong, headers, headers)]
        assert [answer[0] for answer in answers] == [401, 202, 202]
        assert [answer[1]["is_new"] for answer in answers[1:]] == [True, False]
        chore = SignalChore(project, project.connection)
        chore.plan()
        [run_id] = chore.look()
        run = project.runs.get(run_id)
        assert (run.source, run.reason) == ("beta.com", "main: signal schedule.due (1)")
        # Another name is no schedule of this source, and a signal about none is nobody's.
        project.signals.raise_("schedule.due", {"schedule": "other"}, source="acme.com")
        project.signals.raise_("schedule.due", {"schedule": "main"})
        assert chore.look() == []

    # After a crash pg_net counts from 1 again: an answer from before it is about another call.
    answer(supabase, again[0][0], 202)
    supabase.rows("UPDATE net._http_response SET created = created - interval '1 hour'")
    with pytest.raises(psycopg.errors.RaiseException, match=r"1 calls were not accepted"):
        supabase.rows(jobs["(watchdog)"])
    supabase.rows("UPDATE net._http_response SET created = now()")
    assert supabase.rows(jobs["(watchdog)"]) == [("no problem",)]
    # What was accepted stays so when pg_net has forgotten its answer.
    supabase.rows("TRUNCATE net._http_response")
    assert supabase.rows(jobs["(retries)"]) == [(0,)]
    assert supabase.rows(jobs["(watchdog)"]) == [("no problem",)]


def test_the_watchdog_tells_slack_where_the_vault_has_its_address(supabase: CronServer) -> None:
    for name in ("penstock_url", "penstock_trigger_token", "penstock_alert_url"):
        secret(supabase, name, f"https://{name}.example")
    jobs = installed(supabase)
    supabase.rows(jobs["beta.com/main"])
    answer(supabase, supabase.rows("SELECT max(id) FROM net.sent")[0][0], 503)
    supabase.rows("UPDATE penstock_http.call SET at = at - interval '1 hour'")
    supabase.rows(jobs["(watchdog)"])
    [(url, body)] = supabase.rows("SELECT url, body FROM net.sent ORDER BY id DESC LIMIT 1")
    assert url == "https://penstock_alert_url.example"
    assert re.fullmatch(
        r"penstock: 1 calls were not accepted, the first at .* \(HTTP 503\)", body["text"]
    )


def test_calls_can_go_by_an_edge_function_that_passes_signals_on_alone(
    supabase: CronServer, tmp_path: Path
) -> None:
    secret(supabase, "supabase_url", "https://abc.supabase.co")
    secret(supabase, "penstock_function_key", "canary-of-the-function")
    jobs = installed(supabase, edge_function=True)
    supabase.rows(jobs["beta.com/main"])
    [(url, body, headers)] = supabase.rows("SELECT url, body, headers FROM net.sent")
    assert url == "https://abc.supabase.co/functions/v1/penstock-trigger"
    assert headers["X-Penstock-Key"] == "canary-of-the-function"
    assert "Authorization" not in headers

    with supabase.project() as project:
        text = project.exports.supabase(edge_function=True).files[
            "supabase/functions/penstock-trigger/index.ts"
        ]
    (tmp_path / "index.mjs").write_text(RUNTIME + text)
    plain = {"method": "POST", "headers": headers}
    others = {name: value for name, value in headers.items() if name != "X-Penstock-Key"}
    asked = [
        {**plain, "body": json.dumps(body)},
        {**plain, "headers": others, "body": json.dumps(body)},
        {**plain, "headers": {**others, "X-Penstock-Key": "x"}, "body": json.dumps(body)},
        {**plain, "body": json.dumps({**body, "path": "/api/v1/runs"})},
        {**plain, "body": json.dumps({**body, "path": "/signals/../api/v1/runs"})},
        {**plain, "body": "no JSON"},
        {"method": "GET", "headers": headers},
    ]
    done = subprocess.run(
        [needed("node"), tmp_path / "index.mjs", json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stdout)
    assert [each["status"] for each in told["answers"]] == [202, 401, 401, 400, 400, 400, 405]
    [passed] = told["fetched"]
    assert passed["url"] == "https://p.example/signals/schedule.due?source=beta.com"
    assert passed["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert passed["headers"]["Idempotency-Key"] == headers["Idempotency-Key"]
    assert json.loads(passed["body"]) == {"schedule": "main"}


# As much of Supabase's runtime as the function uses.
RUNTIME = """
const fetched = [];
const variables = {
  PENSTOCK_URL: "https://p.example/",
  PENSTOCK_TRIGGER_TOKEN: "TOKEN",
  PENSTOCK_FUNCTION_KEY: "canary-of-the-function",
};
globalThis.fetch = async (url, options) => {
  fetched.push({ url, ...options });
  return new Response("{}", { status: 202 });
};
globalThis.Deno = {
  env: { get: (name) => variables[name] },
  serve: async (handle) => {
    const answers = [];
    for (const asked of JSON.parse(process.argv[2])) {
      answers.push({ status: (await handle(new Request("https://f.example/", asked))).status });
    }
    console.log(JSON.stringify({ answers, fetched }));
  },
};
""".replace('TOKEN"', TOKEN + '"')
