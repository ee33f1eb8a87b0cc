"""The API under thousands of requests that nobody wrote: schemathesis makes them from the OpenAPI document.

Nothing may answer with a server error, with a status, a type or a body that the document does not have, or
accept what the document forbids.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.shop import fill, fill_a_little, served
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# A valid request may still be refused for what only the project knows: a cursor of another list, no such run.
CHECKS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 422, 429]
"""
# What is there: else nearly every request is for something that does not exist.
KNOWN = """
[parameters]
"path.run" = 1
"path.job" = 5
"path.source" = "shop"
"path.collection" = "product"
"path.snapshot" = 1
"path.alert" = 1
"path.measure" = "jobs"
"path.runbook" = "source-broke"
"path.step" = "compare"
"path.name" = "shop"
"path.delivery" = 1
"""
OPTIONS = (
    *("--phases", "fuzzing", "--warnings", "off", "--generation-database", "none", "--no-color"),
    # Streams do not end. That a token is asked for has tests of its own: failed logins are bounded.
    *("--exclude-path-regex", "stream$", "--exclude-checks", "ignored_auth"),
    *("--request-timeout", "60"),
)


def cases(folder: Path, known: str, each: int, seed: int) -> int:
    """How many requests were made without finding anything, so many for each operation."""
    made = subprocess.run(
        [*PENSTOCK, "token", "create", f"cases{seed}", "--role", "admin", "--json"],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    token = json.loads(made.stdout)["token"]
    config = folder / "schemathesis.toml"
    config.write_text(known + CHECKS)
    with served(folder) as (address, _):
        found = subprocess.run(
            [
                *(str(SCHEMATHESIS), "--config-file", str(config), "run"),
                *(f"{address}/api/openapi.json", "--header", f"Authorization: Bearer {token}"),
                *("--max-examples", str(each), "--seed", str(seed), *OPTIONS),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    assert found.returncode == 0, found.stdout[-6000:]
    generated = re.search(r"(\d+) generated, (\d+) passed", found.stdout)
    assert generated is not None, found.stdout[-2000:]
    assert generated[1] == generated[2]
    return int(generated[1])


@pytest.mark.timeout(280)
def test_hundreds_of_generated_requests_find_nothing(tmp_path: Path) -> None:
    fill_a_little(tmp_path)
    assert cases(tmp_path, KNOWN, 2, seed=1) >= 250


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_five_thousand_generated_requests_find_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    number = cases(tmp_path, KNOWN, 20, seed=2) + cases(tmp_path, "", 25, seed=3)
    print(f"{number:,} requests, nothing found")
    assert number >= 5000
