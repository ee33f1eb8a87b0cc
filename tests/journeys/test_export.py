"""What an export has written, run as cron and a workflow's runner would: by a shell, word for word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journeys.rig import ENVIRONMENT, PENSTOCK

# Quotes, a percent sign, an expansion, a command, and a word that looks like an option.
KEYS = ["odd/%n'$(touch${IFS}owned)`>owned`\"", "--help", "plain.com"]
PIPELINE = """
from penstock import Pipeline

nothing = Pipeline("nothing")


@nothing.step(unit="run")
def save(ctx):
    ctx.save("thing", key=ctx.params["key"], data={"token": len(ctx.params["token"])})
"""
TOKEN = "it's 100% $ecret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a 100% project"
    folder.mkdir()
    sources = {
        key: {
            "pipeline": "nothing:nothing",
            "params": {"key": key.replace("${", "$${"), "token": "${TOKEN}"},
            "schedule": {"cron": f"{minute} 2 * * *"},
        }
        for minute, key in enumerate(KEYS)
    }
    (folder / "penstock.yaml").write_text(yaml.safe_dump({"project": "odd", "sources": sources}))
    (folder / "nothing.py").write_text(PIPELINE)
    return folder


def run(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def records(folder: Path) -> dict[str, Any]:
    done = run([*PENSTOCK, "records", "thing", "--format", "jsonl"], folder, TOKEN="x")
    return {each["key"]: each["data"] for each in map(json.loads, done.stdout.splitlines())}


def test_cron_runs_each_source_with_its_secret(folder: Path) -> None:
    exported = run([*PENSTOCK, "export", "crontab"], folder, TOKEN=TOKEN)
    assert exported.returncode == 0, exported.stderr
    assert TOKEN not in exported.stdout
    quoted = TOKEN.replace("'", "'\"'\"'")
    (folder / "penstock.env").write_text(f"TOKEN='{quoted}'\n")
    lines = [line for line in exported.stdout.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(KEYS)
    for line in lines:
        command = line.split(" ", 5)[5].replace("\\%", "%")
        done = run(["/bin/sh", "-c", command], folder)
        assert done.returncode == 0, done.stderr
    assert records(folder) == {key: {"token": len(TOKEN)} for key in KEYS}
    assert not (folder / "owned").exists()


def test_a_workflow_runs_each_source_by_schedule_and_by_hand(tmp_path: Path, folder: Path) -> None:
    shop = tmp_path / "shop"
    folder.rename(shop)
    exported = run([*PENSTOCK, "export", "github-actions"], shop, TOKEN=TOKEN)
    assert exported.returncode == 0, exported.stderr
    shim = tmp_path / "bin" / "penstock"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {PENSTOCK[0]} -m penstock "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}:{ENVIRONMENT['PATH']}"
    steps = yaml.safe_load(exported.stdout)["jobs"]["ingest"]["steps"]
    by_schedule = [step for step in steps if "by schedule" in step.get("name", "")]
    [by_hand] = [step for step in steps if step.get("name") == "Run by hand"]
    for step in by_schedule:
        done = run(["/bin/bash", "-e", "-c", step["run"]], shop, TOKEN=TOKEN, PATH=path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["state"] == "completed"
    assert set(records(shop)) == set(KEYS)
    for source, count in ((KEYS[0], 1), ("(everything)", len(KEYS))):
        inputs = {"PENSTOCK_SOURCE": source, "PENSTOCK_KIND": "full", "TOKEN": TOKEN, "PATH": path}
        done = run(["/bin/bash", "-e", "-c", by_hand["run"]], shop, **inputs)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == count
    assert not (shop / "owned").exists()
