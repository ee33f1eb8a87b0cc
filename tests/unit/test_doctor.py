"""`penstock doctor`: what is wrong is found, with what to do; what is sound is not complained about."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.doctor import AREAS
from penstock.cli import exits, main
from penstock.gates.loaded import Loaded
from penstock.testing import VirtualClock

MODULE = "doctor_steps"
PIPELINES = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    ctx.save("thing", key=ctx.source, data={})
"""
CONFIG = f"""\
project: shop
sources:
  notes: {{pipeline: "{MODULE}:things"}}
"""
AN_HOUR = 3600


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipelines: None) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir(mode=0o700)
    (folder / "penstock.yaml").write_text(CONFIG)
    monkeypatch.chdir(folder)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return folder


def with_database(folder: Path, clock: VirtualClock | None = None) -> None:
    project = Project.open(folder)
    if clock is not None:
        project.clock = clock
    with project:
        project.sources.pause("notes", reason="to have an event")


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["doctor", "--json", *words])
    return code, json.loads(capsys.readouterr().out)["findings"]


def wrong(found: list[dict[str, Any]], area: str) -> list[tuple[str, str]]:
    bad = [each for each in found if each["state"] in ("warning", "problem")]
    assert all(each["remedy"] for each in bad), "each finding has its remedy"
    return [(each["message"], each["remedy"]) for each in bad if each["area"] == area]


def test_a_sound_project_has_every_area_looked_at_and_no_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_database(folder)
    code, found = examined(capsys)
    assert code == exits.DONE
    assert {each["area"] for each in found} == set(AREAS)
    # The tests' own folder may lie in memory.
    assert {each["state"] for each in found if "in memory" not in each["message"]} <= {
        "ok",
        "skipped",
    }


def test_a_project_without_a_database_gets_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = examined(capsys)
    assert code == exits.DONE
    assert "no database" in next(each["message"] for each in found if each["area"] == "store")
    assert os.listdir(folder) == ["penstock.yaml"]


def test_without_a_project_the_machine_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, found = examined(capsys)
    assert code == exits.FAILED
    [(message, remedy)] = wrong(found, "config")
    assert "there is no penstock.yaml" in message
    assert remedy.startswith("penstock init")
    assert {each["area"] for each in found} == set(AREAS)


def test_every_mistake_of_the_configuration_is_a_finding_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(CONFIG + "  b: {pipelin: 'x:y'}\nworker: {slots: no}\n")
    code, found = examined(capsys)
    assert code == exits.FAILED
    assert [message.split(": ")[0] for message, _ in wrong(found, "config")] == [
        "penstock.yaml:4",
        "penstock.yaml:5",
    ]


def test_secrets_are_named_and_never_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SET_TOKEN", "hunter2hunter2")
    monkeypatch.delenv("MISSING_TOKEN", raising=False)
    (folder / "penstock.yaml").write_text(
        f"project: shop\nsources:\n"
        f'  a: {{pipeline: "{MODULE}:things", params: {{token: "${{SET_TOKEN}}"}}}}\n'
        f'  b: {{pipeline: "{MODULE}:things", params: {{token: "${{MISSING_TOKEN}}"}}}}\n'
    )
    code = main(["doctor", "--json"])
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err
    found = json.loads(told.out)["findings"]
    assert code == exits.FAILED
    [(message, remedy)] = wrong(found, "secrets")
    assert message == "MISSING_TOKEN is not set, which b needs"
    assert ".env" in remedy
    assert "set: SET_TOKEN" in [each["message"] for each in found]


def test_files_that_everybody_can_read_are_named_with_the_command_that_closes_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_database(folder)
    database, snapshots = folder / "penstock.db", folder / "snapshots"
    snapshots.mkdir()
    database.chmod(0o644)
    snapshots.chmod(0o755)
    (folder / ".env").write_text("A=b\n")
    (folder / ".env").chmod(0o644)
    code, found = examined(capsys)
    assert code == exits.DONE, "a warning is no problem"
    assert [remedy for _, remedy in wrong(found, "permissions")] == [
        f"chmod 0600 {database}",
        f"chmod 0600 {folder / '.env'}",
        f"chmod 0700 {snapshots}",
    ]
    assert examined(capsys, "--strict")[0] == exits.FAILED


def test_a_damaged_database_is_found_and_only_its_reading_is_left_out_when_quick(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_database(folder)
    database = folder / "penstock.db"
    raw = bytearray(database.read_bytes())
    raw[-4096:] = b"\xa5" * 4096  # an index that opening does not read
    database.write_bytes(raw)
    code, found = examined(capsys)
    assert code == exits.FAILED
    assert any("penstock db restore" in remedy for _, remedy in wrong(found, "store"))

    code, found = examined(capsys, "--quick")
    assert code == exits.DONE
    assert "not read" in " ".join(e["message"] for e in found if e["state"] == "skipped")


def test_what_is_no_database_is_a_finding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "penstock.db").write_bytes(b"\xa5" * 8192)
    code, found = examined(capsys, "--quick")
    assert code == exits.FAILED
    assert any("penstock db restore" in remedy for _, remedy in wrong(found, "store"))


def test_a_server_that_does_not_answer_is_a_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (folder / "penstock.yaml").write_text(
        f"store: postgresql://shop:hunter2hunter2@127.0.0.1:{port}/shop\n{CONFIG}"
    )
    code = main(["doctor", "--json"])
    told = capsys.readouterr().out
    assert code == exits.FAILED
    assert "hunter2" not in told
    assert wrong(json.loads(told)["findings"], "store")


def test_a_clock_that_was_set_back_is_found_by_the_newest_event(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_database(folder, VirtualClock(time.time() + AN_HOUR))
    code, found = examined(capsys)
    assert code == exits.FAILED
    [(message, remedy)] = wrong(found, "clock")
    assert "in the future" in message
    assert "NTP" in remedy


def test_a_disk_without_room_and_one_that_can_not_sync_are_problems(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = os.statvfs(folder)
    few = os.statvfs_result((*real[:3], 1000, 1000, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: few)

    def broken(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    code, found = examined(capsys)
    assert code == exits.FAILED
    assert wrong(found, "disk")
    words = " ".join(e["message"] for e in found if e["state"] == "problem")
    assert "MB left" in words
    assert "syncing a file failed (Input/output error)" in words
    assert os.listdir(folder) == ["penstock.yaml"], "it leaves nothing behind"


def test_hosts_without_an_address_and_proxies_that_are_not_used_are_warnings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, really = [], socket.getaddrinfo

    def resolve(host: str, *args: Any, **named: Any) -> list[Any]:
        if host == "127.0.0.1":
            return really(host, *args, **named)
        asked.append(host)
        if host == "gone.example.com":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hunter2hunter2@proxy:3128")
    (folder / "penstock.yaml").write_text(
        f"{CONFIG}  acme.com: {{pipeline: '{MODULE}:things', "
        "params: {start: 'https://gone.example.com/list'}}\n"
    )
    code = main(["doctor", "--json"])
    told = capsys.readouterr().out
    assert code == exits.DONE
    assert "hunter2" not in told
    messages = [message for message, _ in wrong(json.loads(told)["findings"], "network")]
    assert messages == [
        "HTTPS_PROXY is set, and Penstock does not use it",
        "gone.example.com has no address here (Name or service not known)",
    ]
    assert set(asked) == {"acme.com", "gone.example.com"}

    asked.clear()
    examined(capsys, "--offline")
    assert asked == []


def test_an_extra_that_the_store_needs_is_a_problem_with_the_command_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        metadata,
        "requires",
        lambda _: ["no-such-driver[binary]>=3.3; extra == 'postgres'", "msgspec>=99; extra == 'x'"],
    )
    (folder / "penstock.yaml").write_text(f"store: postgresql://127.0.0.1:1/shop\n{CONFIG}")
    code, found = examined(capsys, "--quick")
    assert code == exits.FAILED
    [missing, old] = wrong(found, "versions")
    assert missing == (
        "store: postgresql:// needs no-such-driver",
        "pip install 'penstock[postgres]'",
    )
    assert "is older than 99" in old[0]


def test_people_see_the_remedy_below_the_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text("sources: {a: {pipeline: 'nowhere:things'}}\n")
    assert main(["doctor", "--offline"]) == exits.FAILED
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("problem "))
    assert lines[at].split()[1] == "config"
    assert lines[at + 1].strip()
    assert lines[-1].startswith("1 problem, ")


def test_what_is_not_the_release_of_the_environment_is_a_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def findings(environment: str) -> list[tuple[str, str, str]]:
        _, found = examined(capsys, "--offline", "--quick", "--env", environment)
        return [
            (each["state"], each["message"], each["remedy"])
            for each in found
            if each["area"] == "release"
        ]

    (folder / "penstock.staging.yaml").write_text("store: sqlite:staging.db\n")
    (folder / "penstock.production.yaml").write_text("store: sqlite:production.db\n")
    releases = {}
    for name in ("staging", "production"):
        assert "no release" in findings(name)[0][1]
        with Project.open(folder, name) as project:
            releases[name] = project.releases.create(reason="new").release[:12]
        assert findings(name) == [
            ("ok", f"the release of {name} is {releases[name]}, and so is this folder", "")
        ]

    with Project.open(folder, "staging") as staging:
        staging.connection.workers.register("w7", "far", 7, "1")
        staging.connection.workers.announce("w7", Loaded(runs="another"), 7)
        # One that tries a release runs nothing else of the environment.
        staging.connection.workers.register("w8", "far", 8, "1")
        staging.connection.workers.announce("w8", Loaded(runs="tried", on_trial=True), 8)
        assert [each.worker for each in staging.status().release.others] == ["w7"]
    (folder / "penstock.yaml").write_text(CONFIG + "worker: {slots: 3}\n")
    other, worker = findings("staging")
    assert (other[0], worker[0]) == ("warning", "warning")
    assert "file penstock.yaml" in other[1] or "configuration" in other[1]
    assert "release checkout --yes" in other[2]
    assert worker[1] == (
        f"worker w7 on far (pid 7) has loaded something else than {releases['staging']}, "
        "the release of staging"
    )
    [refused] = findings("production")
    assert refused[0] == "problem"
    assert "penstock --env production release diff" in refused[2]
