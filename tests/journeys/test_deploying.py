"""What `penstock export deploy` writes, where Docker is not: its steps in a clean folder, and
each service of the compose file as it says, on a real Postgres.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import yaml

from penstock.cli import main
from tests.postgres.ports import free_port
from tests.postgres.server import Server
from tests.postgres.workspace import until
from tests.unit.test_deploy import instructions

pytestmark = pytest.mark.torture
PIPELINE = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
def save(ctx):
    ctx.save("thing", key="1", data={"key": ctx.params["key"]})
"""
SETTINGS = {
    "project": "shop",
    "sources": {"acme.com": {"pipeline": "steps:shop", "params": {"key": "${API_KEY}"}}},
}


def wheel_in(folder: Path) -> Path:
    root = Path(__file__).parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    return folder


def python_without_penstock(folder: Path) -> Path:
    """A new environment that has what Penstock needs, and not Penstock."""
    subprocess.run([sys.executable, "-m", "venv", "--symlinks", folder], check=True)
    [site] = (folder / "lib").glob("python3.*/site-packages")
    [ours] = (Path(sys.prefix) / "lib").glob("python3.*/site-packages")
    for each in ours.iterdir():
        if "penstock" not in each.name and not (site / each.name).exists():
            (site / each.name).symlink_to(each)
    return folder / "bin"


def copied(source: Path, target: Path) -> None:
    """As COPY . . does it."""
    ignored = (source / ".dockerignore").read_text().splitlines()
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*filter(None, ignored)))


class Container:
    """A folder in which the instructions of a Dockerfile were followed, and what its services see."""

    def __init__(self, folder: Path, project: Path, server: Server, tmp: Path) -> None:
        self.folder, self._processes = folder, dict[str, subprocess.Popen[bytes]]()
        programs = python_without_penstock(tmp / "python")
        wheels = wheel_in(tmp / "wheels")
        self._environment = {
            "PATH": f"{programs}:{os.defpath}",
            "HOME": str(tmp),
            # No package is asked for from elsewhere, and `postgres` is this server.
            **{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)},
            **{"PGHOSTADDR": "127.0.0.1", "PGPORT": str(server.port)},
        }
        self.entrypoint: list[str] = []
        for word, rest in instructions((project / "Dockerfile").read_text()):
            if word == "ENV":
                self._environment |= dict(each.split("=", 1) for each in shlex.split(rest))
            elif word == "RUN" and "useradd" not in rest:
                command = ["/bin/sh", "-c", rest]
                subprocess.run(command, check=True, cwd=tmp, env=self._environment)
            elif word == "COPY" and rest == ". .":
                copied(project, folder)
            elif word == "ENTRYPOINT":
                self.entrypoint = yaml.safe_load(rest)

    def start(self, name: str, service: dict[str, Any], *more: str) -> subprocess.Popen[bytes]:
        given = {"POSTGRES_PASSWORD": "secret", "API_KEY": "canary"}
        environment = {
            key: filled_in(str(value), given) for key, value in service["environment"].items()
        }
        command = [filled_in(each, given) for each in more or service["command"]]
        with self._said(name).open("wb") as said:
            process = subprocess.Popen(
                [*self.entrypoint, *command],
                cwd=self.folder,
                env={**self._environment, **environment},
                stdout=said,
                stderr=said,
            )
        self._processes[name] = process
        return process

    def _said(self, name: str) -> Path:
        return self.folder.with_name(f"{name}.log")

    def run(self, name: str, service: dict[str, Any], *more: str) -> str:
        code = self.start(name, service, *more).wait(120)
        said = self._said(name).read_text()
        assert code == 0, said
        return said

    def stop(self, number: int) -> dict[str, int]:
        for each in self._processes.values():
            if each.poll() is None:
                each.send_signal(number)
        return {name: each.wait(60) for name, each in self._processes.items()}


def filled_in(text: str, given: dict[str, str]) -> str:
    """As compose fills variables in: `${NAME:?why}` has to be given, `${NAME:-usual}` may be."""

    def one(found: re.Match[str]) -> str:
        name, how, rest = found.groups()
        return given[name] if how == "?" else given.get(name, rest)

    return re.sub(r"\$\{(\w+):([?-])([^}]*)\}", one, text)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return bool(answer.read() == b"ok\n")
    except URLError:
        return False


def test_steps_of_the_dockerfile_make_what_the_compose_file_runs(
    tmp_path: Path, own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_postgres.create_database("penstock")
    project = tmp_path / "project"
    project.mkdir()
    (project / "penstock.yaml").write_text(yaml.safe_dump(SETTINGS))
    (project / "steps.py").write_text(PIPELINE)
    (project / ".env").write_text("API_KEY=canary\n")
    monkeypatch.setenv("API_KEY", "canary")
    assert main(["export", "deploy", "--project", str(project), "--dir", str(project)]) == 0
    services = yaml.safe_load((project / "compose.yaml").read_text())["services"]

    container = Container(tmp_path / "app", project, own_postgres, tmp_path)
    try:
        follow(container, services)
    finally:
        container.stop(signal.SIGKILL)


def follow(container: Container, services: dict[str, Any]) -> None:
    assert not (container.folder / ".env").exists()
    container.run("migrate", services["migrate"])
    port = free_port()
    for number in range(services["worker"]["deploy"]["replicas"]):
        container.start(f"worker {number}", services["worker"])
    web = [*services["web"]["command"], "--port", str(port)]
    container.start("web", services["web"], *web)
    until("web answers", lambda: answers(port), 120)
    said = container.run("run", services["web"], "run", "acme.com")
    assert "completed" in said
    records = container.run("records", services["web"], "records", "thing", "--format", "jsonl")
    assert '"key":"1"' in records.replace(" ", "")
    ends = container.stop(signal.SIGTERM)
    assert set(ends.values()) == {0}, ends
