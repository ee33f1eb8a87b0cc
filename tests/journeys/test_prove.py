"""`penstock prove`: what holds is said to hold, what is broken on purpose is found, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.prove.scratch import PREFIX, SCHEMA_PREFIX
from tests.journeys.rig import ENVIRONMENT, PENSTOCK, until
from tests.snapshots.s3 import ask, environment, s3_server

# Loaded by every Python that is started with it: a store that loses what it said was settled.
FORGETFUL = """
from penstock.store.sqlite.store import SqliteStore

turn = SqliteStore.turn


def forgetful(self, worker, ends, *more, **others):
    for end in ends:
        effects = getattr(end, "effects", None)
        if effects is not None and end.job_id % 10 == 0:
            effects.saves.clear()
    return turn(self, worker, ends, *more, **others)


SqliteStore.turn = forgetful
"""
# One that counts half of what was sent.
MISCOUNTING = """
from penstock.store.budgets import Budgets

every = Budgets.all


def halved(self, run_id=None):
    import msgspec
    return [msgspec.structs.replace(row, used=row.used / 2) for row in every(self, run_id)]


Budgets.all = halved
"""
# A journal in which one job ended twice.
TWICE = """
from penstock.prove.workplace import Workplace

events = Workplace.events
Workplace.events = lambda self, *kinds: [*events(self, *kinds), *events(self, "job.succeeded")[:1]]
"""


# A scene that is over before anything was struck, and one that was struck too seldom.
MISSING = """
from penstock.prove import scenes
from penstock.prove.scenes.stage import Scene
from penstock.prove.verdict import Verdict

for name, faults in (("kills", 0), ("clock", 3)):
    verdict = Verdict(name, name, faults=faults, wanted=4)
    scenes.SCENES[name] = Scene(name, name, lambda stage, verdict=verdict: verdict)
"""


def project(folder: Path, **config: Any) -> Path:
    (folder / "penstock.yaml").write_text(json.dumps({"project": "proven", **config}))
    return folder


def prove(folder: Path, *words: str, shim: str = "", within_s: float = 280) -> Any:
    environment = dict(ENVIRONMENT)
    if shim:
        (folder / "shim").mkdir()
        (folder / "shim" / "sitecustomize.py").write_text(shim)
        path = [str(folder / "shim"), ENVIRONMENT["PYTHONPATH"]]
        environment["PYTHONPATH"] = os.pathsep.join(path)
    done = subprocess.run(
        [*PENSTOCK, "prove", "--json", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=within_s,
    )
    print(done.stderr)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(PREFIX)]


def test_what_holds_is_said_to_hold_and_what_was_not_tested_is_named(tmp_path: Path) -> None:
    limits = {"concurrency": 8}
    sources = {"never.example": {"pipeline": "no:such", "limits": limits}}
    folder = project(tmp_path, sources=sources, store="sqlite:data.db")
    code, proof = prove(folder, "--only", "kills,server", "--kills", "2", "--seed", "11")

    assert code == 0
    assert (proof["held"], proof["seed"], proof["concurrency"]) == (True, 11, 8)
    assert (proof["store"], proof["synchronous"], proof["snapshots"]) == (
        "sqlite",
        "full",
        "folder",
    )
    kills, server = proof["scenes"]
    assert (kills["scene"], kills["state"], kills["faults"]) == ("kills", "held", 2)
    assert (kills["wanted"], proof["thin"]) == (2, False)
    assert (kills["lost"], kills["duplicated"], kills["unfinished"]) == (0, 0, 0)
    assert kills["records"] >= 100
    assert kills["records"] < kills["requests"] <= kills["counted"]
    assert kills["recovery"]["count"] <= 2
    assert (server["state"], server["text"]) == ("not_tested", "SQLite has no server")
    # Nothing of the project's own was made, and nothing of the scratch project is left.
    assert sorted(path.name for path in folder.iterdir()) == ["penstock.yaml"]


@pytest.mark.parametrize(
    ("shim", "complaint"),
    [
        (FORGETFUL, "records are lost"),
        pytest.param(MISCOUNTING, "and the budget counted", marks=pytest.mark.torture),
        pytest.param(TWICE, "ended 2 times", marks=pytest.mark.torture),
    ],
)
def test_promise_that_is_broken_on_purpose_is_found(
    tmp_path: Path, shim: str, complaint: str
) -> None:
    code, proof = prove(project(tmp_path), "--only", "network", shim=shim)

    assert code == 4
    assert not proof["held"]
    [network] = proof["scenes"]
    assert network["state"] == "broken"
    assert any(complaint in violation for violation in network["violations"])
    assert (network["lost"] > 0) == (shim is FORGETFUL)
    assert left(tmp_path) == []


@pytest.mark.parametrize(("scene", "state"), [("kills", "not_tested"), ("clock", "held")])
def test_scene_that_strikes_too_seldom_proves_nothing(
    tmp_path: Path, scene: str, state: str
) -> None:
    code, proof = prove(project(tmp_path), "--only", scene, shim=MISSING)
    assert (code, proof["thin"]) == (3, True)
    assert [each["state"] for each in proof["scenes"]] == [state]


def test_what_must_be_mended_first_is_said_before_anything_is_killed(tmp_path: Path) -> None:
    folder = project(tmp_path, store="postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
    done = subprocess.run(
        [*PENSTOCK, "prove"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 5
    assert "begins" not in done.stderr
    assert "can't reach the database" in done.stderr
    assert "Traceback" not in done.stderr
    assert left(tmp_path) == []


@pytest.mark.torture
def test_bucket_is_used_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as port:
        for name, value in environment(port).items():
            monkeypatch.setitem(ENVIRONMENT, name, value)
        assert ask(port, "PUT", "/bucket").status == 200
        folder = project(tmp_path, snapshots="s3://bucket/of-the-project")
        code, proof = prove(folder, "--only", "network,kills", "--kills", "3")
        kept = ask(port, "GET", "/bucket?list-type=2").body
    assert (code, proof["snapshots"]) == (0, "s3")
    assert b"<Key>" not in kept


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PENSTOCK, "prove", "--only", "clock"],
        cwd=project(tmp_path),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: _working(tmp_path), "a worker works in the scratch project", process=process)
        workers = _working(tmp_path)
        process.send_signal(signal.SIGINT)
        shown, told = process.communicate(timeout=60)
        print(shown, told)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert left(tmp_path) == []
    until(lambda: not any(_lives(pid) for pid in workers), "its processes are gone", within_s=20)


def _working(folder: Path) -> list[int]:
    """The processes that have their feet in a scratch project of this folder: supervisor and worker."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdecimal() and str(folder / PREFIX) in os.readlink(each / "cwd"):
                found.append(int(each.name))
        except OSError:
            continue
    return found if len(found) > 1 else []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("words", [("--kills", "0"), ("--minutes", "-1"), ("--only", "kilsl")])
def test_mistake_is_one_line_with_what_was_meant(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "prove", *words],
        cwd=project(tmp_path), env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("penstock: ")
    assert "kilsl" not in words or "did you mean 'kills'?" in done.stderr


@pytest.mark.torture
def test_whole_sweep_on_sqlite(tmp_path: Path) -> None:
    code, proof = prove(project(tmp_path), "--kills", "30", within_s=1200)
    print(json.dumps(proof, indent=1))
    assert code == 0
    assert {scene["state"] for scene in proof["scenes"]} <= {"held", "not_tested"}


def schemas(database: str) -> list[str]:
    with psycopg.connect(database) as connection:
        names = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    return [name for (name,) in names if name.startswith(SCHEMA_PREFIX)]


def test_postgres_gets_a_schema_that_is_dropped_again(tmp_path: Path, database: str) -> None:
    folder = project(tmp_path, store=database)
    code, proof = prove(folder, "--only", "network,writes")
    network, writes = proof["scenes"]
    assert (code, network["state"], network["violations"]) == (0, "held", [])
    assert (proof["store"], writes["state"]) == ("postgres", "not_tested")
    assert schemas(database) == []
    assert left(tmp_path) == []


@pytest.mark.torture
def test_whole_sweep_on_postgres_leaves_no_schema(tmp_path: Path, database: str) -> None:
    folder = project(tmp_path, store=database)
    code, proof = prove(folder, "--kills", "10", within_s=1200)
    print(json.dumps(proof, indent=1))
    assert schemas(database) == []
    assert left(tmp_path) == []
    assert code == 0
    states = {scene["scene"]: scene["state"] for scene in proof["scenes"]}
    assert (states["kills"], states["server"], states["stops"]) == ("held", "held", "held")
    assert (states["writes"], states["disk"]) == ("not_tested", "not_tested")
