"""`penstock builder batch`, `init` and `demo`: many jobs, and a first one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_json, add_verb, whole_number
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.builder import BatchItemView
    from penstock.cli.render.output import Output

BATCH = """\
Perform a job for each of many items, or many jobs, one after the other; each has a folder and a project of
its own below --outdir. A job that fails keeps no other from running."""
BATCH_EXAMPLES = """\
  penstock builder batch --template job.yaml --naf 10.71 47.24 --outdir out
  penstock builder batch --template job.yaml --each country=US,CA,GB --outdir out
  penstock builder batch --jobs-dir jobs --outdir out --resume --json"""
INIT = "Write a job.yaml, its JSON Schema and a list of companies to try it on. No request is needed for it."
INIT_EXAMPLES = """\
  penstock builder init bakeries
  penstock builder run-profile --job bakeries/job.yaml --outdir bakeries/out"""
DEMO = """\
Serve a city of companies on loopback, with sites, lists, an API, a search and a geocoder, some of them
broken; write a job for it, perform it, and compare the dataset with what is true of the city. Run it again
with --resume to see that nothing is done twice."""
DEMO_EXAMPLES = """\
  penstock builder demo
  penstock builder demo --companies 500 --dir /tmp/city --json"""
CODES = {
    "FAILED": exits.FAILED,
    "ERROR": exits.FAILED,
    "BUDGET_EXCEEDED": exits.BUDGET_EXCEEDED,
    "KPI_MISSED": exits.KPI_MISSED,
    "STOPPED": exits.INTERRUPTED,
}


def register_batch(verbs: Commands) -> argparse.ArgumentParser:
    batch = add_verb(verbs, "batch", "perform many jobs", BATCH, BATCH_EXAMPLES)
    what = batch.add_argument_group("items")
    what.add_argument("--template", type=Path, metavar="FILE", help="the job.yaml of all items")
    what.add_argument(
        "--naf", nargs="+", default=[], metavar="CODE", help="one item for each code of activity"
    )
    what.add_argument("--each", metavar="KEY=V,V", help="one item for each value of this key")
    what.add_argument("--jobs", nargs="+", type=Path, default=[], metavar="FILE", help="job files")
    what.add_argument("--jobs-dir", type=Path, metavar="DIR", help="all job files of a folder")
    batch.add_argument("--stop-on-error", action="store_true", help="end with the first failure")
    batch.set_defaults(run=run_batch)
    return batch


def register_first(verbs: Commands) -> None:
    init = add_verb(verbs, "init", "write a first job", INIT, INIT_EXAMPLES)
    init.add_argument("dir", nargs="?", type=Path, default=Path(), metavar="DIR", help="(here)")
    init.set_defaults(run=write_first)
    demo = add_verb(verbs, "demo", "build the dataset of a city here", DEMO, DEMO_EXAMPLES)
    demo.add_argument("--dir", type=Path, default=Path("penstock-city"), help="(./penstock-city)")
    demo.add_argument(
        "--companies", type=whole_number, default=60, metavar="N", help="size of the city (60)"
    )
    demo.add_argument("--profile", default="standard", metavar="NAME", help="(standard)")
    demo.add_argument("--resume", action="store_true", help="continue the newest run")
    add_json(demo)
    demo.set_defaults(run=run_demo)


def run_batch(args: argparse.Namespace) -> int:
    from penstock.app.builder.batch import items_of, job_files
    from penstock.app.builder.batch import run_batch as performed
    from penstock.app.builder.job import refuse_project
    from penstock.cli.commands.builder import choices_of
    from penstock.cli.render.builder import show_step

    refuse_project(args.project)
    jobs = [*args.jobs, *(job_files(args.jobs_dir) if args.jobs_dir else [])]
    items = items_of(args.template, args.naf, args.each, jobs)
    if args.dry_run:
        return _plans(args, items)
    views = performed(
        items,
        args.outdir,
        choices_of(args),
        resume=args.resume,
        stops=args.stop_on_error,
        on_item=lambda view: _tell(args, view),
        on_step=lambda view: None if args.json else show_step(args, view, is_one_of_many=True),
    )
    if not args.json:
        _table(args.out, views)
    found = {CODES[view.status] for view in views if view.status in CODES}
    worst = (exits.INTERRUPTED, exits.FAILED, exits.BUDGET_EXCEEDED, exits.KPI_MISSED)
    return next((code for code in worst if code in found), exits.DONE)


def _plans(args: argparse.Namespace, items: list) -> int:  # type: ignore[type-arg]
    from dataclasses import replace

    from penstock.app.builder.builder import Builder
    from penstock.cli.commands.builder import choices_of
    from penstock.cli.render.builder import show_plan

    choices = choices_of(args)
    for item in items:
        over = replace(choices, changes=(*choices.changes, *item.changes))
        with Builder.open(item.job, args.outdir / item.folder, over) as builder:
            show_plan(args, builder.plan(resume=args.resume))
    return exits.DONE


def _tell(args: argparse.Namespace, view: BatchItemView) -> None:
    if args.json:
        args.out.json(view.as_json())
    else:
        args.out.note(f"{view.item}: {view.status}{f', {view.reason}' if view.reason else ''}")


def _table(out: Output, views: list[BatchItemView]) -> None:
    rows = [
        (view.item, view.status, f"{view.seconds:.1f}", view.outdir, out.short(view.reason, 200))
        for view in views
    ]
    out.table(("item", "status", "seconds", "folder", "why"), rows)


def write_first(args: argparse.Namespace) -> int:
    from penstock.app.builder.first_job import write_first_job

    for file in write_first_job(args.dir):
        args.out.line(str(file))
    job = args.dir / "job.yaml"
    args.out.note(f"next: penstock builder run-profile --job {job} --outdir {args.dir / 'out'}")
    return exits.DONE


def run_demo(args: argparse.Namespace) -> int:
    from penstock.app.builder.builder import Builder
    from penstock.app.builder.city import serving_city
    from penstock.app.views.builder import OK, SKIPPED
    from penstock.cli.commands.builder import exit_code
    from penstock.cli.render.builder import show_step, show_summary, show_truth

    if args.companies > 5000:
        raise UsageError("a city of more than 5000 companies is too large for a demo")
    outdir = args.dir / "out"
    with serving_city(args.dir, args.companies, args.profile) as city:
        args.out.note(f"a city of {args.companies:,} companies; its job is {city.job}")
        with Builder.open(city.job, outdir, tell=args.out.note) as builder:
            views = builder.run_profile(
                resume=args.resume,
                on_step=lambda view: show_step(args, view, is_one_of_many=True),
            )
        show_summary(args, views)
        if views[-1].status in (OK, SKIPPED) and (truth := city.truth_of(outdir)):
            show_truth(args, truth)
    return exit_code(views, strict=False)
