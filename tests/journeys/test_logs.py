"""What steps print and log is kept with source, run and job, and shown by `penstock logs`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.rig import Rig

TALKING = """
import logging
import os
import subprocess
import sys

from penstock import Pipeline

pages = Pipeline("pages")
log = logging.getLogger(__name__)


@pages.step(unit="run")
async def discover(ctx):
    print("discovering with", os.environ["SHOP_TOKEN"])
    for number in range(2):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
def look(page, ctx):
    print("looking at", page["number"])
    log.info("found %s", page["number"])
    log.debug("too fine")
    yield page


@pages.step(after="look", unit="page", key="number", isolation="process")
def apart(page, ctx):
    print("apart", page["number"], "SHOP_TOKEN" in os.environ, os.environ.get("MODEL_DIR"))
    subprocess.run([sys.executable, "-c", "print('from a subprocess')"], check=True)
    if page["number"] == 1:
        sys.stderr.write("Traceback of a crash\\n")
        os._exit(3)
"""


def test_prints_and_logging_are_shown_by_run_and_job_with_secrets_masked(tmp_path: Path) -> None:
    sources = {"shop": {"pipeline": "steps:pages", "params": {"token": "${SHOP_TOKEN}"}}}
    with Rig(tmp_path, sources, TALKING, worker={"pass_env": ["MODEL_*"]}) as rig:
        process = rig.start("run", "shop", SHOP_TOKEN="s3cret-token-1", MODEL_DIR="/models")
        assert process.wait(timeout=120) == 3, rig.output(process)
        assert "s3cret-token-1" not in rig.output(process)
        assert "Traceback of a crash" not in rig.output(process)

        shown = rig.start("logs", "1", "--json", SHOP_TOKEN="s3cret-token-1")
        assert shown.wait(timeout=60) == 0
        lines = json.loads(rig.output(shown))
        said = {(line["level"], line["text"]) for line in lines}
        assert ("stdout", "discovering with ***") in said
        assert ("info", "steps: found 0") in said
        assert not any("too fine" in text for _, text in said)
        assert ("output", "apart 0 False /models") in said
        assert ("output", "from a subprocess") in said
        assert ("output", "Traceback of a crash") in said
        assert {line["source"] for line in lines} == {"shop"}

        [job] = [job for job in rig.jobs(stage="look") if job.key == "1"]
        of_job = rig.start("logs", "--job", str(job.id), SHOP_TOKEN="s3cret-token-1")
        assert of_job.wait(timeout=60) == 0
        assert "looking at 1" in rig.output(of_job)
        assert "looking at 0" not in rig.output(of_job)
        # The run has ended, so there is nothing to wait for.
        followed = rig.start("logs", "1", "--follow", SHOP_TOKEN="s3cret-token-1")
        assert followed.wait(timeout=60) == 0
        assert rig.output(followed).count("looking at") == 2
