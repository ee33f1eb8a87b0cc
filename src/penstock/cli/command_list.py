"""The commands: in which groups and order help shows them, what it says of each, and the module of each.

Help is made from this list alone, so that it appears at once: no command is imported for it.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command: the module that registers it, and the line that help shows."""

    module: str
    summary: str


GROUPS = {
    "run - bring data in": {
        "init": Command("init", "create a project with a first pipeline"),
        "demo": Command("demo", "ingest a bundled demo site"),
        "add": Command("add", "add a source for a URL or a folder"),
        "probe": Command("probe", "can a source be read, what would come"),
        "connectors": Command("connectors", "what can be read without code"),
        "run": Command("run", "run sources in the foreground"),
        "backfill": Command("backfill", "fetch a source's history"),
        "start": Command("start", "start a draft run"),
        "prepare": Command("prepare", "make a run for an orchestrator's tasks"),
        "drain": Command("drain", "perform one step of a prepared run"),
        "builder": Command("builder", "build a dataset of companies from a job"),
        "up": Command("up", "run workers and the scheduler"),
        "worker": Command("worker", "run workers only"),
        "scheduler": Command("scheduler", "run the scheduler only"),
        "signal": Command("signals", "raise a signal"),
        "trigger": Command("trigger", "accept signals over HTTP"),
        "web": Command("web", "serve the API and the dashboard"),
        "mcp": Command("mcp", "serve a model's client over stdin"),
    },
    "look - what is there, what happens and why": {
        "status": Command("status", "what is going on"),
        "alerts": Command("alerts", "what is wrong, with evidence"),
        "explain": Command("explain", "why something is not running"),
        "sources": Command("sources", "configured sources and their state"),
        "runs": Command("runs", "list runs, or show one"),
        "jobs": Command("jobs", "list jobs, or show one"),
        "records": Command("records", "list or export records"),
        "schema": Command("schema", "schemas of records: infer, check"),
        "sites": Command("sites", "sites that agents learned, proposals to decide"),
        "page": Command("page", "show a fetched page"),
        "rejects": Command("rejects", "rejected items: list, show, redrive"),
        "checkpoints": Command("checkpoints", "checkpoints of a source"),
        "events": Command("events", "the journal: what happened, and who did it"),
        "logs": Command("logs", "output and logs of steps"),
        "workers": Command("workers", "running workers, by host"),
        "signals": Command("signals", "raised signals and what they started"),
        "hooks": Command("hooks", "webhook deliveries"),
        "breakers": Command("breakers", "circuit breakers of sources and hosts"),
        "budget": Command("budget", "budgets: what is used and left"),
        "kpis": Command("kpis", "key figures about recovery"),
        "canaries": Command("canary", "canaries: releases on trial, and how they do"),
        "metrics": Command("metrics", "metrics for Prometheus"),
    },
    "mend - repair and repeat": {
        "try": Command("try_page", "try a pipeline on one page, write nothing"),
        "retry": Command("retry", "queue failed jobs again"),
        "quarantine": Command("quarantine", "inspect failed jobs, release them"),
        "golden": Command("golden", "approved records of stored pages, for CI"),
        "replay": Command("replay", "run today's code on stored pages, show the diff"),
        "shadow": Command("shadow", "a release on live pages, staged, show the diff"),
        "canary": Command("canary", "a release on a share of live work"),
        "undo": Command("undo", "revert the records of a run"),
        "forget": Command("forget", "erase a key for good"),
        "checkpoint": Command("checkpoint", "move a checkpoint back"),
        "breaker": Command("breakers", "open or close a breaker"),
        "runbook": Command("runbook", "repair a fault step by step"),
    },
    "plan - when things run, and what would happen": {
        "schedules": Command("schedules", "schedules: next, explain, diff, history"),
        "simulate": Command("simulate", "forecast runs, load and budgets"),
        "pipeline": Command("pipeline", "the graph of a pipeline or a profile"),
        "export": Command("export", "write schedules for cron, or dashboards"),
    },
    "operate - stop, continue, maintain the database": {
        "pause": Command("pause", "pause a source or a run"),
        "resume": Command("pause", "resume a paused source or run"),
        "hold": Command("hold", "maintenance: start nothing"),
        "unhold": Command("hold", "end maintenance"),
        "cancel": Command("cancel", "cancel a run or a job for good"),
        "release": Command("release", "what an environment runs: create, promote, roll back"),
        "cells": Command("cells", "sources in several databases: list, place, move"),
        "token": Command("token", "tokens for the web server"),
        "audit": Command("audit", "verify, export or anchor the sealed journal"),
        "doctor": Command("doctor", "check this machine and installation"),
        "prove": Command("prove", "kill it on purpose, see what survives"),
        "config": Command("config", "check penstock.yaml, show the effective settings"),
        "db": Command("db", "show, check, backup, restore, migrate, copy, rename, grants, sql"),
        "completion": Command("completion", "shell completion"),
        "help": Command("help", "this, or help on a command"),
    },
}
LISTED = {name: command for group in GROUPS.values() for name, command in group.items()}
