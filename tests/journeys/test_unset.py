"""A variable that is not set: its source waits, whole, and everything else works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CONFIG = """\
sources:
  open: {pipeline: "things:things"}
  closed: {pipeline: "things:things", params: {token: "${SHOP_TOKEN}"}}
"""
PIPELINE = """\
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    print("the token is", ctx.params.get("token"), flush=True)
    ctx.save("thing", key=ctx.source.key, data={})
"""
TOKEN = "hunter2-and-more"


def penstock(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name != "SHOP_TOKEN"}
    command = [sys.executable, "-m", "penstock", *words]
    return subprocess.run(
        command, cwd=folder, env={**known, **environ}, capture_output=True, text=True, timeout=120
    )


def runs(folder: Path) -> dict[str, Any]:
    listed = json.loads(penstock(folder, "runs", "--json").stdout)
    return {each["source"]: each["state"] for each in listed}


def test_jobs_of_a_source_whose_variable_is_not_set_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "things.py").write_text(PIPELINE)
    assert penstock(tmp_path, "run", "open", "closed", "--detach", SHOP_TOKEN=TOKEN).returncode == 0

    without = penstock(tmp_path, "up", "--until-idle")
    assert without.returncode == 0, without.stderr
    assert "SHOP_TOKEN is not set: closed can't run" in without.stderr
    assert runs(tmp_path) == {"open": "completed", "closed": "queued"}

    (tmp_path / ".env").write_text(f"SHOP_TOKEN='{TOKEN}'\n")
    (tmp_path / ".env").chmod(0o600)
    with_it = penstock(tmp_path, "up", "--until-idle")
    assert with_it.returncode == 0, with_it.stderr
    assert runs(tmp_path) == {"open": "completed", "closed": "completed"}
    assert TOKEN not in with_it.stdout + with_it.stderr
