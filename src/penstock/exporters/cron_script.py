"""The SQL that makes the jobs of pg_cron those of a list: what is new is scheduled, what has gone dropped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.exporters.sql_times import literal

# `cron.job.jobname` holds so many bytes in pg_cron before 1.5; what is longer would be cut off silently.
LONGEST_NAME, LONGEST_PROJECT = 63, 24
# Stands in commands for the schema that has the views.
VIEWS = "@views@"
_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
HAS_PG_CRON = """\
  IF NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_cron') THEN
    RAISE EXCEPTION 'pg_cron is not in the database %', current_database()
      USING HINT = 'CREATE EXTENSION pg_cron, where shared_preload_libraries has it; a server has it in one '
        'database, cron.database_name: for jobs of another, export with --database and run the script there';
  END IF;
  IF NOT has_schema_privilege('cron', 'USAGE') THEN
    RAISE EXCEPTION 'the role % may not use pg_cron', current_user
      USING HINT = format('as an administrator: GRANT USAGE ON SCHEMA cron TO %I', current_user);
  END IF;"""
KNOWS_SECONDS = r"""
  IF (SELECT (regexp_match(extversion, '^(\d+)\.(\d+)'))::integer[] FROM pg_extension
      WHERE extname = 'pg_cron') < ARRAY[1, 5] THEN
    RAISE EXCEPTION 'schedules in seconds need pg_cron 1.5 or later'
      USING HINT = 'update pg_cron, or give these schedules a minute or more in penstock.yaml';
  END IF;"""
# pg_cron grants it to nobody, and did not have it before 1.4.
MAY_SCHEDULE_ELSEWHERE = """
  IF NOT EXISTS (SELECT 1 FROM pg_proc
      WHERE pronamespace = 'cron'::regnamespace AND proname = 'schedule_in_database') THEN
    RAISE EXCEPTION 'jobs for another database need pg_cron 1.4 or later'
      USING HINT = 'update pg_cron, or have it in the database of this project: cron.database_name';
  END IF;
  IF NOT (SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
      WHERE pronamespace = 'cron'::regnamespace AND proname = 'schedule_in_database') THEN
    RAISE EXCEPTION 'the role % may not have pg_cron start jobs in another database', current_user
      USING HINT = format('as an administrator, in the database %I: '
        'GRANT EXECUTE ON FUNCTION cron.schedule_in_database TO %I', current_database(), current_user);
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_database WHERE datname = place) THEN
    RAISE EXCEPTION 'there is no database %', place
      USING HINT = 'penstock export pg-cron --database names the one that has the project';
  END IF;"""
FINDS_VIEWS = """
  SELECT min(n.nspname) INTO views FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relname = 'ingestion_jobs'
    AND obj_description(c.oid, 'pg_class') LIKE 'Penstock SQL interface%'
  HAVING count(*) = 1;
  IF views IS NULL THEN
    RAISE EXCEPTION 'the views of Penstock are not in this database, or more than once'
      USING HINT = 'penstock db sql install; with several, penstock export pg-cron --schema NAME';
  END IF;"""
BEFORE_JOBS = """
  -- Two who run this at once: one after the other.
  PERFORM pg_advisory_xact_lock(hashtext(prefix));
  FOR wanted IN SELECT * FROM (VALUES"""
AFTER_JOBS = """\
  ) AS v (name, schedule, command, home) WHERE name IS NOT NULL LOOP
    wanted.command := '/* ' || prefix || ' ' || version || ' */ '
      || replace(wanted.command, '@views@', coalesce(quote_ident(views), ''));
    IF EXISTS (SELECT 1 FROM cron.job WHERE jobname = wanted.name AND database <> wanted.home) THEN
      RAISE EXCEPTION 'the job % is of another database', wanted.name
        USING HINT = 'two projects of one name share this pg_cron: change project: in one penstock.yaml';
    END IF;
    IF EXISTS (SELECT 1 FROM cron.job WHERE jobname = wanted.name AND username <> current_user) THEN
      RAISE EXCEPTION 'the job % is of another role', wanted.name
        USING HINT = 'run this as the role that ran it first, or unschedule its jobs as that role';
    END IF;
    PERFORM @schedule@;
    names := names || wanted.name;
  END LOOP;
  -- What is no longer in penstock.yaml.
  FOR gone IN SELECT jobid FROM cron.job
    WHERE starts_with(jobname::text, prefix) AND database IN (place, current_database())
      AND jobname::text <> ALL (names) LOOP
    PERFORM cron.unschedule(gone.jobid);
  END LOOP;"""
HERE = "cron.schedule(wanted.name, wanted.schedule, wanted.command)"
ELSEWHERE = "cron.schedule_in_database(wanted.name, wanted.schedule, wanted.command, wanted.home)"


@dataclass(frozen=True, slots=True)
class CronJob:
    """A name, when it starts, and what it does."""

    name: str
    schedule: str
    command: str
    # Said above it in the file.
    title: str
    # Whether it is about pg_cron itself, and so runs in the database that has it.
    is_about_cron: bool = False

    @property
    def is_in_seconds(self) -> bool:
        return self.schedule.endswith("seconds")


@dataclass(frozen=True, slots=True)
class Script:
    """All jobs of a project.

    `checks` are PL/pgSQL that refuses before anything is changed; `finds_views`: the script looks for the
    schema of the views in the database it runs in, unless `schema` names it. With `database`, the jobs run
    in that one, and the script in the database of pg_cron.
    """

    project: str
    target: str
    jobs: Sequence[CronJob]
    head: Sequence[str]
    checks: Sequence[str] = ()
    # Statements after which the jobs are made, in the same transaction.
    before: str = ""
    finds_views: bool = False
    schema: str = ""
    database: str = ""

    @property
    def prefix(self) -> str:
        return f"{self.target}:{_short(self.project, LONGEST_PROJECT)}:"

    def name_of(self, job: CronJob) -> str:
        return _short(self.prefix + job.name, LONGEST_NAME, plain=False)

    @property
    def version(self) -> str:
        """Of what the script makes: the same for the same jobs."""
        said = "\0".join(
            part for each in self.jobs for part in (self.name_of(each), each.schedule, each.command)
        )
        whole = f"{said}\0{self.schema}\0{self.database}\0{self.before}"
        return hashlib.blake2b(whole.encode(), digest_size=4).hexdigest()

    @property
    def text(self) -> str:
        body = "\n".join([*self._declared(), "BEGIN", *self._checked(), *self._done(), "END"])
        tag = "$penstock$"
        while tag in body:
            tag = f"{tag[:-1]}_$"
        head = [f"-- {_comment(each)}".rstrip() for each in self.head]
        return "\n".join(
            [
                *head,
                "",
                "BEGIN;",
                *([self.before, ""] if self.before else []),
                f"DO {tag}",
                body,
                f"{tag};",
                "COMMIT;",
                "",
                *self._shown(),
                "",
            ]
        )

    def _declared(self) -> list[str]:
        database = literal(self.database) if self.database else "current_database()"
        return [
            "DECLARE",
            f"  prefix CONSTANT text := {literal(self.prefix)};",
            f"  version CONSTANT text := {literal(self.version)};",
            f"  place CONSTANT text := {database};",
            f"  views text := {literal(self.schema) if self.schema else 'NULL'};",
            "  wanted record;",
            "  gone record;",
            "  names text[] := '{}';",
        ]

    def _checked(self) -> list[str]:
        lines = [HAS_PG_CRON]
        if any(each.is_in_seconds for each in self.jobs):
            lines.append(KNOWS_SECONDS.lstrip("\n"))
        if self.database:
            lines.append(MAY_SCHEDULE_ELSEWHERE.lstrip("\n"))
        if self.finds_views:
            lines.append(FINDS_VIEWS.lstrip("\n"))
        return [*lines, *self.checks]

    def _done(self) -> list[str]:
        lines = [BEFORE_JOBS.lstrip("\n")]
        for number, each in enumerate(self.jobs, 1):
            comma = "" if number == len(self.jobs) else ","
            home = "current_database()" if each.is_about_cron else "place"
            lines += [
                f"    -- {_comment(each.title)}",
                f"    ({literal(self.name_of(each))}, {literal(each.schedule)},",
                f"      {literal(each.command)}, {home}){comma}",
            ]
        if not self.jobs:
            lines.append("    (NULL::text, NULL::text, NULL::text, NULL::text)")
        return [*lines, AFTER_JOBS.replace("@schedule@", ELSEWHERE if self.database else HERE)]

    def _shown(self) -> list[str]:
        return [
            "SELECT jobid, jobname, schedule, active FROM cron.job",
            f"WHERE starts_with(jobname::text, {literal(self.prefix)}) ORDER BY jobname;",
        ]


def _short(text: str, longest: int, *, plain: bool = True) -> str:
    """The same text, or what begins like it and is no other's."""
    kept = _PLAIN.sub("_", text) if plain else "".join(c if c.isprintable() else "?" for c in text)
    if kept == text and len(text.encode()) <= longest:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    room = longest - len(digest) - 1
    return kept.encode()[:room].decode(errors="ignore") + "~" + digest


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
