"""Every table shows what the next command needs, on every terminal from 80 columns up."""

from __future__ import annotations

import argparse
import ast
import io
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock.cli
from penstock.app.golden.corpus import FORMAT, MANIFEST, RECORDS, Manifest
from penstock.cli import main
from penstock.cli.render.output import Output
from penstock.cli.render.tables import column
from penstock.cli.render.wording import Shortened
from penstock.store.alert_rows import AlertFilter
from tests.contract.sql_clients import client_of
from tests.journeys.rig import Rig, kill, until

WIDTHS = (80, 100, 120, 160)
# What each table must show whatever the terminal, by the function that draws it. Ids, numbers and states are
# shown whole; a key that is too long keeps its beginning and its end.
NEEDED = {
    "alerts._show_routes": ("route", "kind"),
    "alerts.show_rules": ("rule", "state", "severity"),
    "alerts.show_list": ("alert", "severity", "source", "rule", "state"),
    "audit._tell": ("wrong", "event", "seal"),
    "breakers.run": ("what", "name", "state"),
    "budget.run": ("of", "budget", "left"),
    "builder._show_budgets": ("budget", "used", "bound"),
    "builder._show_kpis": ("target", "wanted", "is"),
    "builder.show_plan": ("step", "would"),
    "builder.show_summary": ("step", "status"),
    "builder.show_truth": ("field", "precision", "recall"),
    "builder_batch._table": ("item", "status", "folder"),
    "cadence.run": ("source", "class"),
    "canary._tell_guards": ("guardrail", "canary", "control", "crossed"),
    "canary._tell_runs": ("run", "source", "state"),
    "canary.show": ("canary", "state", "release"),
    "cells._tell_alerts": ("alert", "cell", "severity", "state"),
    "cells._tell_cells": ("cell", "sources", "queued", "workers"),
    "cells._tell_found": ("cell", "what", "name"),
    "cells._tell_runs": ("run", "cell", "source", "state"),
    "cells._tell_sources": ("source", "cell", "state"),
    "checkpoints._tell_history": ("number", "act", "cursor"),
    "checkpoints.run": ("partition", "cursor"),
    "connectors.show_all": ("connector", "installed"),
    "db_copy._tell": ("table", "rows"),
    "db_migrate._show": ("migration", "effect"),
    "db_sql.query": ("id", "status"),
    "db_sql.requests": ("request", "verb", "state"),
    "drain._list": ("stage", "state"),
    "diffs.tell_changes": ("what", "key", "field"),
    "diffs.tell_rejects": ("only", "key"),
    "diffs.tell_totals": ("field", "records"),
    "config.show": ("key", "value"),
    "events.run": ("event", "what", "job"),
    "explain._tell_timeline": ("attempt", "outcome"),
    "explain.tell": ("gate", "now", "by"),
    "golden._list": ("source", "pages"),
    "hooks.show": ("delivery", "hook", "run", "state"),
    "jobs._tell_one": ("event", "what", "job"),
    "jobs.run": ("job", "source", "stage", "state", "key"),
    "kpis.run": ("number", "value"),
    "pipeline._tell": ("step", "after"),
    "prove._tell": ("scene", "result"),
    "quarantine.list_entries": ("job", "source", "stage", "kind", "key"),
    "quarantine.show": ("event", "what", "job"),
    "metrics._list": ("name", "type"),
    "queues.tell_queue": ("signal", "name"),
    "records._tell_collections": ("collection", "records"),
    "records._tell_table": ("key",),
    "release.diff": ("what", "change", "name"),
    "release.history": ("act", "release"),
    "rejects.tell": ("reject", "source", "code", "key"),
    "run._tell": ("run", "source", "state", "inserted", "updated", "unchanged", "quarantined"),
    "run_report._tell_events": ("event", "what", "job"),
    "runbook._list": ("runbook", "for"),
    "runbook._tell_signals": ("signal", "now"),
    "runbook._tell_steps": ("step", "state"),
    "runs.run": ("run", "source", "kind", "state"),
    "schedules.run": ("source", "schedule", "next"),
    "schedules.run_history": ("schedule", "version"),
    "schedules_explain._tell": ("due", "outcome", "run", "state"),
    "schedules_next._tell": ("day", "at", "source", "schedule", "kind"),
    "schema.check": ("key",),
    "signals.show": ("signal", "name"),
    "simulate._table": ("figure", "now"),
    "sites.show_list": ("domain", "state"),
    "sites.show_proposals": ("domain", "proposal", "kind"),
    # Several tables, each with columns of its own.
    "source_lifecycle.report": (),
    "sources.run": ("source", "state"),
    "status._tell_runs": ("run", "source", "state"),
    "token.show_list": ("name", "role", "state"),
    "try_page._tell": ("stage", "key", "state"),
    "undo._tell": ("changed later", "key", "by run"),
    "workers.run": ("host", "worker", "pid"),
}
SHOP, NEWS = "shop.example-company.com", "news.example.org"
PIPELINE = """
from penstock import Pipeline, Reject

shop = Pipeline("shop")
VERSION = 1


@shop.step(unit="run")
async def discover(ctx):
    ctx.checkpoint({"day": "2026-11-15", "page": 17}, partition="prices-of-the-european-shop")
    ctx.signal("catalogue.was.discovered", pages=6)
    for number in range(6):
        yield {
            "url": "https://shop.example-company.com/catalogue/household/kitchen/"
            f"pots-and-pans/a-cast-iron-pan-of-28-centimetres-{number:04}.html"
        }


@shop.step(after="discover", unit="page", key="url")
def extract_product(page, ctx):
    number = int(page["url"][-9:-5])
    if number == 0:
        raise ValueError("the selector .price > span.amount was not found in the page of this product")
    if number == 1 + VERSION:
        raise Reject("it has no price although it is in stock", code="no_price")
    price = number + (10 * VERSION if number == 5 else 0)
    ctx.save("product", key=page["url"], data={"price": price, "name": "A pan"}, score=0.5)


news = Pipeline("news")


@news.step(unit="run")
async def look(ctx):
    about = {"kind": "images", "name": "a badge in a gallery", "description": "", "proposed_at": "2026-11-19"}
    schema = {"domain": "news.example.org", "schema_proposals": [{"id": "1f0c22ab", **about}]}
    ctx.save("site_schemas", key="news.example.org", data=schema)
"""
CONFIG: dict[str, Any] = {
    "alerts": [{"to": "http://127.0.0.1:9/alerts", "name": "on-call", "allow_private": True}],
    "alert_rules": {"failures-in-an-hour": {"failures": 1}},
    "budget": {"requests": "5000/d"},
    "hooks": [{"on": ["partial"], "url": "http://127.0.0.1:9/penstock", "allow_private": True}],
    "sources": {
        SHOP: {
            "pipeline": "steps:shop",
            "schedule": {"every": "30d"},
            "budget": {"requests": "100/d"},
        },
        NEWS: {"pipeline": "steps:news", "schedule": {"cadence": "auto"}},
        "ticking": {"pipeline": "steps:news", "schedule": {"every": "30d"}},
        "joined": {"pipeline": "steps:news", "schedule": {"after": [NEWS, SHOP]}},
    },
}


@dataclass
class Drawn:
    """One call of Output.table, and what it printed."""

    site: str
    columns: Sequence[Any]
    rows: list[Sequence[object]]
    text: str = ""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A project in which everything that can be listed is there at least once."""
    folder = tmp_path_factory.mktemp("lists")
    with Rig(folder, {}, PIPELINE) as rig:
        (folder / "penstock.yaml").write_text(json.dumps(CONFIG))
        assert rig.penstock("run", SHOP).returncode == 3
        assert rig.penstock("run", NEWS).returncode == 0
        release = _release(rig)
        _tick(rig)
        (folder / "steps.py").write_text(PIPELINE.replace("VERSION = 1", "VERSION = 2"))
        assert rig.penstock("run", SHOP).returncode == 3
        (folder / "steps.py").write_text(PIPELINE.replace("VERSION = 1", "VERSION = 3"))
        assert rig.penstock("replay", "1", "--json").returncode in (0, 3)
        done = rig.penstock("breaker", "open", SHOP, "--for", "1h", "--yes")
        assert done.returncode == 0, done.stderr
        rig.penstock("run", SHOP, "--detach")
        token = ("token", "create", "a-reader-of-metrics-in-the-office", "--role", "viewer")
        assert rig.penstock(*token).returncode == 0
        about = ("--percent", "10", "--reason", "try it", "--yes")
        canary = rig.penstock("canary", SHOP, "--release", release, *about)
        assert canary.returncode == 0, canary.stderr
        corpus = folder / "golden" / "shop"
        corpus.mkdir(parents=True)
        manifest = Manifest(format=FORMAT, source=SHOP, private=False, cases=[])
        (corpus / MANIFEST).write_bytes(msgspec.json.encode(manifest))
        (corpus / RECORDS).write_text("")
        assert rig.penstock("db", "sql", "install").returncode == 0
        with client_of(folder / "penstock.db") as client:
            client.do(f"INSERT INTO ingestion_jobs (source) VALUES ('{NEWS}')")
        rig.store.workers.register("a-worker", "mill-1.example-company.com", 1, "0.1")
        narrow = {"type": "object", "properties": {"price": {"type": "string"}}}
        (folder / "narrow.json").write_text(json.dumps(narrow))
        yield rig
    sys.modules.pop("steps", None)


def _release(rig: Rig) -> str:
    """A release without the addresses that count as secrets; its id."""
    file = rig.folder / "penstock.yaml"
    usual = file.read_text()
    file.write_text(json.dumps({**CONFIG, "alerts": [], "hooks": []}))
    made = rig.penstock("release", "create", "--reason", "what the lists began with", "--json")
    assert made.returncode == 0, made.stderr
    file.write_text(usual)
    return str(json.loads(made.stdout)["release"])


def _tick(rig: Rig) -> None:
    """Put the schedules to work until one of them has fired; and then let them fire no more."""
    file = rig.folder / "penstock.yaml"
    usual = file.read_text()
    often = {
        **CONFIG["sources"],
        "ticking": {**CONFIG["sources"]["ticking"], "schedule": {"every": "1s"}},
    }
    file.write_text(json.dumps({**CONFIG, "sources": often}))
    up = rig.start("up")
    until(
        lambda: (
            any(row.last_run_id for row in rig.store.schedules.all())
            and bool(rig.store.alerts.newest(AlertFilter()))
        ),
        "a schedule has fired and an alert was opened",
        process=up,
    )
    kill(up.pid, signal.SIGTERM)
    assert up.wait(timeout=60) == 0
    file.write_text(usual)


def commands(rig: Rig) -> list[list[str]]:
    job = str(_quarantined(rig))
    replay = next(str(row.id) for row in rig.store.runs.newest() if row.kind == "replay")
    return [
        ["status"], ["sources"], ["sources", "report", SHOP],
        ["runs"], ["runs", "show", "1"], ["jobs"], ["jobs", job],
        ["records"], ["records", "product"], ["events"], ["workers"], ["signals"], ["hooks"],
        ["checkpoints", SHOP], ["checkpoints", SHOP, "--history", "prices-of-the-european-shop"],
        ["rejects", "list"], ["quarantine", "list"], ["quarantine", "show", job], ["breakers"],
        ["budget"], ["kpis"], ["explain", SHOP], ["explain", "joined"], ["explain", "--job", job],
        ["schedules"], ["schedules", "next", "--days", "3"], ["schedules", "history", SHOP],
        ["schedules", "explain", "ticking"], ["schedules", "cadence"], ["simulate", "--days", "1"],
        ["replay", replay, "--diff"], ["try", SHOP, job], ["undo", "1", "--dry-run"],
        ["config", "show"], ["sites"], ["sites", "proposals"],
        ["alerts"], ["alerts", "test"], ["runbook"], ["runbook", "source-broke", SHOP],
        ["token", "list"], ["connectors"], ["alerts", "rules", SHOP], ["metrics", "--list"],
        ["schema", "check", "product", "--schema", "narrow.json"], ["drain", "1", "--stages"],
        ["pipeline", "graph", SHOP, "--explain"], ["db", "sql", "requests"],
        ["db", "sql", "query", "SELECT id, name, status FROM organizations ORDER BY id"],
        ["release", "history"], ["release", "diff"], ["golden", "list"], ["canaries"],
    ]  # fmt: skip


def _quarantined(rig: Rig) -> int:
    from penstock.jobs.job import JobState

    return rig.jobs(JobState.QUARANTINED)[0].id


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """Every table that is drawn from now on, with the function that draws it."""
    found: list[Drawn] = []
    original = Output.table

    def table(self: Output, columns: Any, rows: Any) -> None:
        caller = sys._getframe(1)
        site = f"{Path(caller.f_code.co_filename).stem}.{caller.f_code.co_name}"
        kept = list(rows)
        before = self.stdout.tell()
        original(self, columns, kept)
        assert isinstance(self.stdout, io.StringIO)
        found.append(Drawn(site, columns, kept, self.stdout.getvalue()[before:]))

    monkeypatch.setattr(Output, "table", table)
    monkeypatch.setenv("NO_COLOR", "1")
    return found


def look(words: list[str]) -> None:
    with redirect_stdout(Terminal()), redirect_stderr(io.StringIO()) as told:
        assert main(words) in (0, 3, 4), (words, told.getvalue())


def look_at_rare_tables(rig: Rig) -> None:
    """Those that another database, or a run in the foreground, would show."""
    from penstock import Project
    from penstock.app.store_copy import Copied, Digest
    from penstock.app.views.audit import FindingView, HeadView, VerificationView
    from penstock.app.views.progress import run_report
    from penstock.app.views.store import copy_view, plan_view
    from penstock.cli.commands import audit, db_copy, db_migrate, run
    from penstock.store.schema import Migration, Plan, State

    out = Output(Terminal(), io.StringIO())
    args = argparse.Namespace(out=out, json=False)
    digest = Digest("schedule_version", 123456, "0123456789abcdef" * 4)
    copied = copy_view("sqlite:a.db", "postgresql://b", Copied([digest], False, 0))
    db_copy._tell(copied, args)
    pending = Migration(12, "0012_a_name_that_is_long_enough.sql", "", 3, "job, run, record", False)
    db_migrate._show(plan_view("sqlite:a.db", Plan(State(11), [pending]), 12), args)
    head = HeadView(project="p", seal=9, last_event=90, hash="ab" * 32, at=1.0, unsealed=0)
    changed = FindingView(
        what="changed_event", event=123456, seal=7, text="its actor is not as sealed"
    )
    audit._tell(
        VerificationView(
            **dict.fromkeys(("pruned_seals", "pruned_events", "erased", "unsealed", "anchors"), 0),
            is_sound=False,
            seals=9,
            events=90,
            pruned_until=None,
            head=head,
            findings=[changed],
        ),
        out,
    )
    _look_at_the_builder(out)
    _look_at_proofs_and_canaries(out)
    _look_at_cells(rig, out)
    reports = [run_report(row, rig.store.now()) for row in rig.store.runs.newest()]
    with Project.open(rig.folder) as project:
        run._tell(project, reports, args)


def _look_at_the_builder(out: Output) -> None:
    from penstock.app.views.builder import (
        BatchItemView,
        BuilderPlanView,
        BuilderStepView,
        DatasetTruthView,
        FieldTruthView,
        JobBudgetView,
        PlannedStepView,
        TargetView,
    )
    from penstock.cli.commands import builder_batch
    from penstock.cli.render import builder

    args = argparse.Namespace(out=out, json=False)
    job, long = "bakeries-of-the-state-of-illinois", "normalize.standardize"
    budget = JobBudgetView(
        name="max_http_requests",
        bound=20_000,
        used=19_999,
        percent=99.9,
        is_exhausted=False,
        resets_at=None,
    )
    target = TargetView(
        name="min_domain_resolved_pct", target=80, value=79.5, is_met=False, is_asked=True
    )
    step = BuilderStepView(
        job=job,
        profile="standard",
        run=12,
        step=long,
        status="BUDGET_EXCEEDED",
        reason="max_http_requests has no room for another request of this step " * 3,
        seconds=1234.5,
        counts={"succeeded": 123_456},
        done=123_456,
        outputs=[],
        budgets=[budget],
        kpis=[target],
        errors=(),
    )
    builder.show_summary(args, [step])
    truth = DatasetTruthView(
        companies=12_345,
        expected=12_346,
        duplicates=0,
        unknown=0,
        precision=0.999,
        recall=0.998,
        coverage=0.9,
        fields=[FieldTruthView(field="domain", precision=0.999, recall=0.95)],
    )
    builder.show_truth(args, truth)
    planned = PlannedStepView(
        step=long,
        phase="Parsing & Normalisation",
        after=["dumps.collect", "api.collect", "parse.html", "parse.jsonld"],
        is_network=False,
        would="continue",
        counts={},
    )
    plan = BuilderPlanView(
        job=job, profile="standard", outdir="out", run=12, steps=[planned], budgets=[], sample=None
    )
    builder.show_plan(args, plan)
    item = BatchItemView(
        item="naf_include=10.71",
        job="all/naf-10.71/job.yaml",
        outdir="all/naf-10.71-of-the-template-of-bakeries",
        status="BUDGET_EXCEEDED",
        reason="max_http_requests has no room for another request of this step",
        seconds=12.5,
    )
    builder_batch._table(out, [item])


def _look_at_proofs_and_canaries(out: Output) -> None:
    from penstock.app.views.canaries import (
        CanaryRunView,
        CanaryView,
        GuardView,
        LimitsView,
        LookView,
    )
    from penstock.app.views.proof import ProofView, ProvedSceneView, RecoveryView
    from penstock.cli.commands import canary, prove

    scene = ProvedSceneView(
        **dict.fromkeys(("rounds", "faults", "records", "lost", "duplicated"), 12_345),
        **dict.fromkeys(("unfinished", "requests", "counted", "wanted"), 12_345),
        scene="network",
        title="a site that drops connections",
        state="held",
        text="60 faults",
        recovery=RecoveryView(count=3, median_s=11.9, longest_s=13.3),
        violations=[],
        seconds=61.5,
    )
    about = {"store": "sqlite", "synchronous": "full", "snapshots": "folder"}
    proof = ProofView(
        held=True, thin=False, seed=2026, concurrency=4, seconds=461.0, scenes=[scene], **about
    )
    prove._tell(proof, out)
    shares = dict.fromkeys(("failures", "yields", "rejections", "duplicates", "quality"), 0.02)
    guard = GuardView(
        guard="duplicates", canary=0.25, control=0.125, worse_by=0.125, tolerance=0.02, p=0.0004,
        alpha=0.05, is_crossed=True,
    )  # fmt: skip
    run = CanaryRunView(
        run=123_456, source=SHOP, of_run=123_455, arm="canary", kind="incremental",
        state="completed", saved=12_345,
    )  # fmt: skip
    look = LookView(number=3, canary_pages=400, control_pages=3600, diff=0.25, guards=(guard,))
    whole = CanaryView(
        id=3,
        release="3f9a52" * 10,
        share="pages",
        percent=10.0,
        state="stopped",
        sources=(SHOP,),
        canary_pages=400,
        control_pages=3600,
        limits=LimitsView(alpha=0.05, min_pages=50, pages=400, diff=None, alerts="high", **shares),
        look=look,
        runs=(run,),
        began_at=1.0,
        ended_at=2.0,
        actor="ops",
        reason="better prices",
        end_reason="duplicates",
    )
    canary._tell_whole(whole, out)


def _look_at_cells(rig: Rig, out: Output) -> None:
    from penstock import Project
    from penstock.app.views.cells import (
        CellAlertView,
        CellFoundView,
        CellRunView,
        CellSourceView,
        CellView,
    )
    from penstock.cli.commands import cells

    counts = dict.fromkeys(
        ("sources", "leaving", "arriving", "active_runs", "queued", "running", "waiting"), 123_456
    )
    cell = CellView(
        name="north-of-the-river", number=12, store="postgresql://db-1.example.com:5432/shop?schema=shop",
        is_this=True, is_reachable=True, error="", quarantined=123, records=1_234_567, workers=12, **counts,
    )  # fmt: skip
    source = CellSourceView(
        key=SHOP, cell="north-of-the-river", state="leaving", to="south", origin="", lifecycle="active",
        queued=123_456, running=12, waiting=12, quarantined=123, last_state="completed",
    )  # fmt: skip
    cells._tell_cells([cell], out)
    cells._tell_sources([source], out)
    name = "north-of-the-river"
    with Project.load(rig.folder) as project:
        runs, found = project.runs.list(SHOP).items, project.search(SHOP)
        alerts = project.alerts.list(state="all").items
    cells._tell_runs([CellRunView(cell=name, run=run) for run in runs], out)
    cells._tell_alerts([CellAlertView(cell=name, alert=alert) for alert in alerts], out)
    cells._tell_found(cells._found_lines(CellFoundView(cell=name, found=found)), out)


def sites() -> set[str]:
    """Every function of the command line that draws a table."""
    found = set()
    for file in Path(penstock.cli.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
                if any(isinstance(call, ast.Attribute) and call.attr == "table" for call in calls):
                    found.add(f"{file.stem}.{function.name}")
    return found


def test_no_table_is_missing_from_this_test() -> None:
    assert sites() == set(NEEDED)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_list_shows_its_ids_keys_and_states(
    project: Rig, drawn: list[Drawn], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("COLUMNS", str(width))
    for words in commands(project):
        look(words)
    look_at_rare_tables(project)

    assert {each.site for each in drawn} == set(NEEDED)
    for each in drawn:
        assert_useful(each, width)


def assert_useful(table: Drawn, width: int) -> None:
    head, *lines = table.text.splitlines()
    names = [column(each).name for each in table.columns]
    assert len(lines) == len(table.rows), table.text
    assert max(map(len, (head, *lines))) <= width, (table.site, table.text)
    for name in NEEDED[table.site]:
        assert name in head, (table.site, name, table.text)
        for row, line in zip(table.rows, lines, strict=True):
            assert_shown(row[names.index(name)], column(table.columns[names.index(name)]), line)


def assert_shown(value: object, of: Any, line: str) -> None:
    value = value.text if isinstance(value, Shortened) else value
    number = f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
    shown = {"" if value is None else number, getattr(value, "brief", number)}
    if of.least is None:
        assert any(text in line for text in shown), (of.name, value, line)
    else:
        ends = [(text[:3], text[-3:]) for text in shown]
        head, tail = ends[0]
        assert head in line, (of.name, value, line)
        assert not of.is_cut_in_the_middle or tail in line, (of.name, value, line)


def test_what_is_left_out_is_named(
    project: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("COLUMNS", "80")
    with redirect_stdout(Terminal()):
        assert main(["jobs"]) == 0

    told = capsys.readouterr().err
    assert told.startswith("not shown: ")
    assert "tries" in told
    assert "--json" in told
