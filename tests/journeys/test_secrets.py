"""A secret that a step shouts in every spelling is in no file and no output of the project."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

from tests.journeys.commands import run_command

TOKEN = 'Zq7Xw9KpHd/3Vt5Wb2Yc"Rm1NLf8G&x'
PEM = (
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nAgEAAoIBAQC7\n-----END KEY-----"
)
CONFIG = """\
hooks: [{command: [/bin/sh, -c, 'echo "$HOOK" >&2; exit 1'], env: {HOOK: "${TOKEN}"}}]
retries: {once: {tries: 1, unknown_tries: 1}}
sources:
  shouting:
    pipeline: "shouting:shouting"
    retry: once
    params: {token: "${TOKEN}", pem: "${PEM}"}
"""
PIPELINE = """\
import base64
import html
import json
import logging
from urllib.parse import quote

from penstock import Pipeline

shouting = Pipeline("shouting")
SPELLINGS = (
    str, repr, ascii, json.dumps, html.escape, quote,
    lambda text: quote(text, safe="").replace("%2F", "%2f"),
    lambda text: json.dumps(json.dumps(text)),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(b"x:" + text.encode()).decode(),
    lambda text: base64.b64encode(b"user:" + text.encode()).decode(),
    lambda text: text.encode().hex(),
)


@shouting.step(unit="run")
def begin(ctx):
    for number in range(len(SPELLINGS)):
        for secret in ("token", "pem"):
            for before in (0, 185, 1985):
                yield {"number": number, "secret": secret, "before": before}


@shouting.step(after="begin", unit="page")
def shout(item, ctx):
    spelled = SPELLINGS[item["number"]](ctx.params[item["secret"]])
    text = "." * item["before"] + spelled
    print("printed", text, flush=True)
    logging.getLogger("mine").warning(text)
    ctx.note(text)
    ctx.reject(text)
    raise [ValueError, KeyError, RuntimeError][item["number"] % 3](text)
"""
LOOKING = (
    ["status"],
    ["status", "--json"],
    ["runs", "1", "--json"],
    ["jobs", "--json", "--limit", "1000"],
    ["events", "--limit", "1000"],
    ["events", "--json", "--limit", "1000"],
    ["quarantine", "list"],
    ["quarantine", "export", "--format", "csv"],
    ["quarantine", "export", "--format", "jsonl"],
    ["rejects", "list", "--json"],
    ["hooks", "--json"],
    ["explain", "shouting"],
    ["sources", "--json"],
    ["logs", "1"],
    ["logs", "1", "--json"],
)


KNOWN = {name: value for name, value in os.environ.items() if name not in ("TOKEN", "PEM")}


def penstock(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        cwd=folder,
        env={**KNOWN, "TOKEN": TOKEN, "PEM": PEM},
        capture_output=True,
        timeout=180,
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def pieces(secret: str) -> set[bytes]:
    """Every stretch of eight letters and digits of it, and of what encodes it: a part is too much."""
    raw = secret.encode()
    encoded = [base64.b64encode(before + raw).decode()[4:] for before in (b"", b"x:", b"user:")]
    words = "".join(char if char.isalnum() else " " for char in secret).split()
    runs = [*words, *encoded, raw.hex()]
    return {run[at : at + 8].encode() for run in runs for at in range(len(run) - 7)}


def test_a_secret_that_is_shouted_is_in_no_file_and_no_output(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "shouting.py").write_text(PIPELINE)
    told = penstock(tmp_path, "run", "shouting")
    assert "printed" in told
    told += penstock(tmp_path, "up", "--until-idle")
    told += penstock(tmp_path, "db", "backup", "monday.db")
    # Without the variables, so that nothing but what was written down is masked.
    for words in LOOKING:
        done = run_command(words, tmp_path, KNOWN, 180)
        shown = done.stdout + done.stderr
        assert "Traceback" not in shown
        told += shown
    assert "***" in told
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    kept = {path: path.read_bytes() for path in files}
    assert tmp_path / "monday.db" in kept
    for secret in (TOKEN, PEM):
        for piece in pieces(secret):
            assert piece.decode() not in told
            assert [path for path, held in kept.items() if piece in held] == []
