"""The commands on a project whose store is a server: they work, or say what to do instead."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.journeys.holding import HOLDING, holding_source, let_go, wait_until_held
from tests.journeys.rig import ENVIRONMENT, PENSTOCK, Rig, until
from tests.journeys.test_many_hosts import pids_by_host, stop
from tests.postgres.server import PASSWORD, Server


def test_workers_and_status_tell_hosts_load_lease_and_who_schedules(
    tmp_path: Path, database: str
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4)}, HOLDING, {"slots": 7}, database) as rig:
        up, worker = rig.start("up"), rig.start("worker", "--workers", "2")
        pids_by_host(rig, up, worker)
        rig.enqueue("shop")
        wait_until_held(rig, 4)

        rows = json.loads(rig.penstock("workers", "--json").stdout)
        assert {row["pid"] for row in rows} >= set(rig.worker_pids(up) + rig.worker_pids(worker))
        assert sum(row["running"] for row in rows) == 4
        assert {row["slots"] for row in rows} == {7}
        assert {row["admits"] for row in rows} == {"sound"}
        assert all(0 < row["lease_left_s"] <= 15 and row["is_alive"] for row in rows)
        shown = rig.penstock("workers").stdout
        assert f"scheduler: pid {up.pid} on " in shown
        assert "/7  " in shown
        status = json.loads(rig.penstock("status", "--json").stdout)
        assert status["scheduler"]["term"] == 1
        assert f"/{up.pid}/" in status["scheduler"]["holder"]
        assert f"pid {up.pid} on " in rig.penstock("status").stdout

        let_go(rig)
        stop(up, worker)
        assert rig.penstock("workers").stdout.splitlines() == [
            "no worker; `penstock up` starts one",
            "scheduler: none; start one with `penstock up` or `penstock scheduler`",
        ]


def test_db_check_works_and_backup_and_restore_name_the_servers_own_tools(
    tmp_path: Path, database: str
) -> None:
    with Rig(tmp_path, {"shop": holding_source(1)}, HOLDING, store=database) as rig:
        let_go(rig)
        assert rig.penstock("run", "shop").returncode == 0
        checked = rig.penstock("db", "check")
        assert checked.returncode == 0, checked.stderr
        assert checked.stdout.endswith(": sound\n")
        (tmp_path / "x.db").touch()
        for words in (("backup", "y.db"), ("restore", "x.db", "--yes")):
            refused = rig.penstock("db", *words)
            assert refused.returncode == 7
            assert "pg_dump" in refused.stderr


def test_maintenance_is_explained_and_ends_where_it_began(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(2)}, HOLDING, store=database) as rig:
        let_go(rig)
        up = rig.start("up", "--workers", "2")
        pids_by_host(rig, up)
        assert rig.penstock("hold", "--reason", "a new server").returncode == 0
        assert rig.penstock("run", "shop", "--draft").returncode == 0
        why = rig.penstock("explain", "shop").stdout
        assert "waits for you: penstock start 1; penstock unhold\n" in why
        assert rig.penstock("start", "1").returncode == 0
        held = json.loads(rig.penstock("explain", "--run", "1", "--json").stdout)
        assert (held["would_start"], held["gate"]) == (False, "held")
        assert rig.run(1).state == "queued"

        assert rig.penstock("unhold", "--reason", "it is there").returncode == 0
        until(lambda: rig.run(1).is_ended, "the run has ended", process=up)
        stop(up)
        done = json.loads(rig.penstock("explain", "--job", "1", "--json").stdout)
        assert [each["outcome"] for each in done["attempts"]] == ["succeeded"]
        assert done["verdict"] == "has ended: succeeded"


def test_journal_is_followed(tmp_path: Path, database: str) -> None:
    with Rig(tmp_path, {"shop": holding_source(3)}, HOLDING, store=database) as rig:
        let_go(rig)
        rig.enqueue("shop")
        with subprocess.Popen(
            [*PENSTOCK, "events", "--follow", "--json", "--limit", "1000"],
            cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True,
        ) as following:  # fmt: skip
            assert following.stdout is not None
            assert rig.penstock("up", "--until-idle").returncode == 0
            written = {event.id for event in rig.events()}
            seen: list[int] = []
            while set(seen) != written:
                seen.append(json.loads(following.stdout.readline())["event"])
            assert len(seen) == len(written)
            following.send_signal(signal.SIGINT)
            following.communicate(timeout=120)
        assert following.returncode == 130


def test_password_is_told_nowhere(tmp_path: Path, postgres: Server, database: str) -> None:
    name = database.rpartition("/")[2]
    wrong = "wrong-horse"
    for url, code in (
        (postgres.url_with_password(name, wrong), 5),
        (postgres.url_with_password("no_such_database"), 5),
        (f"postgresql://secretive:{wrong}@127.0.0.1:1/{name}", 5),
    ):
        with Rig(tmp_path, {"shop": holding_source(1)}, HOLDING, store=url) as rig:
            for words in (("status",), ("run", "shop"), ("db", "check")):
                done = rig.penstock(*words)
                assert done.returncode == code, done.stderr
                told = done.stdout + done.stderr
                assert wrong not in told
                assert PASSWORD not in told
                assert "battery" not in told
                assert "Traceback" not in told
