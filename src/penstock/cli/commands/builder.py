"""`penstock builder`: from a job.yaml to a dataset of companies, step by step or all at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.commands.builder_batch import register_batch, register_first
from penstock.cli.commands.web import port_number
from penstock.cli.parser import Commands, add_command, add_json, add_verb, whole_number
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.builder.builder import Builder
    from penstock.app.builder.choices import Choices
    from penstock.app.views.builder import BuilderStepView

DESCRIPTION = """\
Build a dataset of companies from a job: collect, crawl, parse, normalise, enrich, check, score and package.
A job becomes a project of its own in --outdir, so every other command works on it, too:
penstock status --project OUT. What is done is known by the store, never by a file that exists."""
EXAMPLES = """\
  penstock builder demo              the dataset of a city on this machine
  penstock builder init bakeries     a first job of your own
  penstock builder run-profile --job job.yaml --outdir out --profile quick
  penstock builder run-step dumps.collect --job job.yaml --outdir out
  penstock builder resume --job job.yaml --outdir out

exit codes: 0 done, 2 the job or the command is wrong, 3 --strict and some items failed, 4 a step failed,
6 another step works on this SQLite file, 7 a step before it is not done, 8 a budget is exhausted,
9 a target of the dataset is missed, 130 interrupted"""
RUN_STEP = """\
Perform one step of the profile, as a task of an orchestrator does. Steps of one configuration (job, profile,
options, code) share a run. Without --resume a new run begins when its first step is run again; with it, the
newest run continues: what is committed is skipped, what failed is retried, and a package that was changed
on disk is written again. On SQLite one step works at a time; on Postgres any number, on any hosts."""
STEP_EXAMPLES = """\
  penstock builder run-step dumps.collect --job job.yaml --outdir out
  penstock builder run-step http.static --job job.yaml --outdir out --resume --json
  penstock builder run-step crawl.site_async --job job.yaml --outdir out --resume --shard 2/4"""
RUN_PROFILE = """\
Perform all steps of the profile in one run, at once: items go on to the next step without waiting for the
others. It ends with the first step that fails."""
PROFILE_EXAMPLES = """\
  penstock builder run-profile --job job.yaml --outdir out
  penstock builder run-profile --job job.yaml --outdir out --profile deep --dry-run
  penstock builder run-profile --job job.yaml --outdir trial --sample 20 --json"""
RESUME = "Continue the newest run of this configuration: run-profile --resume."
RESUME_EXAMPLES = "  penstock builder resume --job job.yaml --outdir out"
SCHEMA = """\
Print the JSON Schema of job.yaml, or write it beside the job. With this first line editors check the job:
# yaml-language-server: $schema=job.schema.json"""
SCHEMA_EXAMPLES = """\
  penstock builder schema
  penstock builder schema --output job.schema.json"""
MEGABYTE_HELP = "memory of Penstock's processes on this host, in MB"


def register(commands: Commands) -> None:
    parser = add_command(commands, "builder", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    step = add_verb(verbs, "run-step", "perform one step", RUN_STEP, STEP_EXAMPLES)
    step.add_argument("step", nargs="?", metavar="STEP", help="such as dumps.collect")
    step.add_argument("--step", dest="named", metavar="STEP", help="the same")
    step.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="part I of N")
    _add_options(step)
    step.set_defaults(run=run_step)
    profile = add_verb(verbs, "run-profile", "perform all steps", RUN_PROFILE, PROFILE_EXAMPLES)
    profile.add_argument("--explain", action="store_true", help="why each step is in, and end")
    _add_options(profile)
    profile.set_defaults(run=run_profile)
    resume = add_verb(verbs, "resume", "continue the newest run", RESUME, RESUME_EXAMPLES)
    _add_options(resume)
    resume.set_defaults(run=run_profile, resume=True, explain=False)
    batch = register_batch(verbs)
    _add_options(batch, is_batch=True)
    register_first(verbs)
    schema = add_verb(verbs, "schema", "the JSON Schema of job.yaml", SCHEMA, SCHEMA_EXAMPLES)
    schema.add_argument("--output", type=Path, metavar="FILE", help="file to write (stdout)")
    schema.set_defaults(run=show_schema)
    for verb in verbs.choices.values():
        verb.set_defaults(run=_with_extra(verb.get_default("run")))


def _with_extra(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command; where a module of the extra is not installed, one line says so."""

    def perform(args: argparse.Namespace) -> int:
        try:
            return run(args)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("penstock"):
                raise
            raise UsageError(
                f"the builder needs the module {error.name!r}",
                "pip install 'penstock[builder]'",
                code="extra_missing",
            ) from None

    return perform


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and len(text) < 12):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 1/4")
    return int(part), int(parts)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return number


def _bound(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 12):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up; 0 is no bound")
    return int(text)


def _add_options(parser: argparse.ArgumentParser, *, is_batch: bool = False) -> None:
    where = parser.add_argument_group("job")
    if not is_batch:
        where.add_argument("--job", type=Path, required=True, metavar="FILE", help="the job.yaml")
    where.add_argument(
        "--outdir", "--out", type=Path, required=True, metavar="DIR", help="folder of its project"
    )
    where.add_argument("--profile", metavar="NAME", help="instead of the job's")
    where.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="NAME",
        help="switch steps on (repeatable)",
    )
    where.add_argument(
        "--no-feature", action="append", default=[], metavar="NAME", help="switch steps off"
    )
    where.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="over the job and the profile: crawl.max_pages=5 (repeatable)",
    )
    where.add_argument("--concurrency", type=whole_number, metavar="N", help="requests at once")
    budgets = parser.add_argument_group("budgets of a run, over the job's; 0 is no bound")
    budgets.add_argument("--max-http-requests", type=_bound, metavar="N", help="requests")
    budgets.add_argument("--max-http-bytes", type=_bound, metavar="N", help="bytes of answers")
    budgets.add_argument("--time-budget-min", type=_number, metavar="N", help="minutes of the run")
    budgets.add_argument("--max-ram-mb", type=_bound, metavar="N", help=MEGABYTE_HELP)
    _add_ways(parser)
    if not is_batch:
        _add_metrics(parser)


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resume", action="store_true", help="continue the newest run")
    parser.add_argument(
        "--run-id", type=whole_number, metavar="RUN", help="continue this run; implies --resume"
    )
    parser.add_argument(
        "--sample", type=whole_number, metavar="N", help="at most N rows, pages and companies"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")
    parser.add_argument(
        "--continue-on-error", action="store_true", help="continue after a step that failed"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 3 if items failed")
    add_json(parser)


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prometheus-port",
        type=port_number,
        default=0,
        metavar="N",
        help="serve metrics on this port meanwhile; steps beside each other share it",
    )
    parser.add_argument(
        "--prometheus-address", default="127.0.0.1", metavar="HOST", help="where (127.0.0.1)"
    )


def choices_of(args: argparse.Namespace) -> Choices:
    """What the command line says over a job."""
    from penstock.app.builder.choices import Choices

    both = set(args.feature) & set(args.no_feature)
    if both:
        raise UsageError(f"feature {min(both)!r} is switched both on and off")
    return Choices(
        profile=args.profile,
        features=dict.fromkeys(args.feature, True) | dict.fromkeys(args.no_feature, False),
        changes=tuple(args.changes),
        max_http_requests=args.max_http_requests,
        max_http_bytes=args.max_http_bytes,
        time_budget_min=args.time_budget_min,
        ram_mb=args.max_ram_mb,
        concurrency=args.concurrency,
        sample=args.sample,
    )


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[Builder]:
    """The job that the command line means; its secrets are masked from here on."""
    from penstock.app.builder.builder import Builder
    from penstock.app.builder.job import read_job, refuse_project

    refuse_project(args.project)
    job = read_job(args.job)
    args.out.secrets = job.secrets
    args.resume = args.resume or args.run_id is not None
    with Builder(job, args.outdir, choices_of(args), args.out.note, args.run_id) as builder:
        yield builder


def run_step(args: argparse.Namespace) -> int:
    from penstock.cli.render.builder import show_plan, show_step

    step = args.step or args.named
    if step is None or (args.step and args.named and args.step != args.named):
        raise UsageError("run which step? One STEP", "penstock builder run-step dumps.collect …")
    with opened(args) as builder:
        if args.dry_run:
            show_plan(args, builder.plan(resume=args.resume, step=step))
            return exits.DONE
        with _metrics(args, builder):
            view = builder.run_step(
                step, resume=args.resume, anyway=args.continue_on_error, shard=args.shard
            )
        show_step(args, view)
    return exit_code([view], strict=args.strict)


def run_profile(args: argparse.Namespace) -> int:
    from penstock.cli.render.builder import show_plan, show_step, show_summary

    with opened(args) as builder:
        if args.explain:
            from penstock.cli.commands.pipeline import show_graph

            return show_graph(builder.graph(), args)
        if args.dry_run:
            show_plan(args, builder.plan(resume=args.resume))
            return exits.DONE
        with _metrics(args, builder):
            views = builder.run_profile(
                resume=args.resume,
                anyway=args.continue_on_error,
                on_step=lambda view: show_step(args, view, is_one_of_many=True),
            )
        show_summary(args, views)
    return exit_code(views, strict=args.strict)


def exit_code(views: Sequence[BuilderStepView], *, strict: bool) -> int:
    """The worst that became of a step decides; then the targets."""
    statuses = {view.status for view in views}
    if any(view.is_stopped for view in views) and "FAIL" not in statuses:
        return exits.INTERRUPTED
    if "FAIL" in statuses:
        return exits.FAILED
    if "BUDGET_EXCEEDED" in statuses:
        return exits.BUDGET_EXCEEDED
    if any(view.is_blocked for view in views):
        return exits.REFUSED
    if any(view.missed for view in views):
        return exits.KPI_MISSED
    return exits.PARTIAL if strict and "WARN" in statuses else exits.DONE


@contextmanager
def _metrics(args: argparse.Namespace, builder: Builder) -> Iterator[None]:
    """Metrics of the project over HTTP while the steps run, if a port is named."""
    if not args.prometheus_port:
        yield
        return
    from penstock.web.metrics_port import serving_metrics

    where = (args.prometheus_address, args.prometheus_port)
    with serving_metrics(builder.project, *where, args.out.note):
        yield


def show_schema(args: argparse.Namespace) -> int:
    import json

    from penstock.app.builder.job import job_schema

    text = json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        args.out.stdout.write(text)
        return exits.DONE
    try:
        args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{args.output} can't be written: {error.strerror}") from None
    args.out.note(f"written to {args.output}")
    return exits.DONE
