"""Supabase: jobs of pg_cron that call the trigger of a project over HTTP, by pg_net or an Edge Function.

For a project whose database is elsewhere, or closed. What was called is kept beside the jobs: a call that was
not accepted is sent again under the same Idempotency-Key, so it starts nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from penstock.exporters.cron_script import CronJob, Script
from penstock.exporters.pg_cron import Upkeep, collected, history_job, remarks
from penstock.exporters.sql_times import SqlTime, literal
from penstock.exporters.starts import Export, Inexpressible, Start
from penstock.settings.schedule_values import SCHEDULE_DUE

FILE = "penstock-supabase.sql"
FUNCTION = "penstock-trigger"
FUNCTION_FILE = f"supabase/functions/{FUNCTION}/index.ts"
TARGET = "penstock-http"
# Names in Supabase's vault.
URL, TOKEN, ALERT_URL = "penstock_url", "penstock_trigger_token", "penstock_alert_url"
PROJECT_URL, FUNCTION_KEY = "supabase_url", "penstock_function_key"
# As long as the trigger takes an Idempotency-Key, without the time in it.
LONGEST_KEY = 150
OBJECTS = """\
CREATE SCHEMA IF NOT EXISTS penstock_http;
REVOKE ALL ON SCHEMA penstock_http FROM PUBLIC;
CREATE TABLE IF NOT EXISTS penstock_http.call (
  key text PRIMARY KEY,
  path text NOT NULL,
  body jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  sent integer NOT NULL DEFAULT 0,
  request_id bigint,
  is_accepted boolean NOT NULL DEFAULT false
);
ALTER TABLE penstock_http.call ADD COLUMN IF NOT EXISTS sent_at timestamptz;
ALTER TABLE penstock_http.call ENABLE ROW LEVEL SECURITY;

CREATE OR REPLACE FUNCTION penstock_http.secret(wanted text) RETURNS text LANGUAGE sql STABLE AS $body$
  SELECT s.decrypted_secret FROM vault.decrypted_secrets AS s WHERE s.name = wanted
$body$;

-- Sends a call that is kept. pg_net does so after the commit, and keeps the answer in net._http_response.
CREATE OR REPLACE FUNCTION penstock_http.send(wanted text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  called penstock_http.call;
BEGIN
  SELECT * INTO STRICT called FROM penstock_http.call AS c WHERE c.key = wanted FOR UPDATE;
  UPDATE penstock_http.call AS c SET sent = c.sent + 1, sent_at = now(), request_id = net.http_post(
    url := {url},
    headers := jsonb_build_object('Content-Type', 'application/json', 'Idempotency-Key', called.key,
      {credential}),
    body := {body},
    timeout_milliseconds := 10000)
  WHERE c.key = wanted;
END $body$;

-- pg_net forgets answers after some hours, and all of them in a crash, after which it counts from 1 again.
CREATE OR REPLACE FUNCTION penstock_http.take_in() RETURNS void LANGUAGE sql AS $body$
  UPDATE penstock_http.call AS c SET is_accepted = true FROM net._http_response AS r
  WHERE r.id = c.request_id AND r.created >= c.sent_at AND r.status_code BETWEEN 200 AND 299
    AND NOT c.is_accepted
$body$;

CREATE OR REPLACE FUNCTION penstock_http.call_once(wanted text, path text, body jsonb) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM penstock_http.take_in();
  INSERT INTO penstock_http.call (key, path, body) VALUES (wanted, path, body) ON CONFLICT DO NOTHING;
  IF found THEN
    PERFORM penstock_http.send(wanted);
  END IF;
END $body$;

-- Takes the answers in, sends again what was not accepted, forgets what is old; answers how many were sent.
CREATE OR REPLACE FUNCTION penstock_http.resend(lately interval, most integer) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
  late text;
  done bigint := 0;
BEGIN
  PERFORM penstock_http.take_in();
  FOR late IN SELECT c.key FROM penstock_http.call AS c
    LEFT JOIN net._http_response AS r ON r.id = c.request_id AND r.created >= c.sent_at
    WHERE NOT c.is_accepted AND c.at > now() - lately AND c.sent < most
      AND (r.id IS NOT NULL OR c.at < now() - interval '30 seconds') ORDER BY c.at LOOP
    PERFORM penstock_http.send(late);
    done := done + 1;
  END LOOP;
  DELETE FROM penstock_http.call AS c WHERE c.at < now() - interval '7 days';
  RETURN done;
END $body$;

-- Tells what was not accepted: to {alert_url} if the vault has it (a Slack webhook), else by failing.
CREATE OR REPLACE FUNCTION penstock_http.watch(patience interval) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  problem text;
BEGIN
  PERFORM penstock_http.take_in();
  SELECT format('penstock: %s calls were not accepted, the first at %s (%s)', count(*),
    to_char(min(c.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
    coalesce(max('HTTP ' || r.status_code), max(r.error_msg), 'no answer')) INTO problem
  FROM penstock_http.call AS c
  LEFT JOIN net._http_response AS r ON r.id = c.request_id AND r.created >= c.sent_at
  WHERE NOT c.is_accepted AND c.at < now() - patience AND c.at > now() - interval '1 day'
  HAVING count(*) > 0;
  IF problem IS NULL THEN
    RETURN 'no problem';
  ELSIF penstock_http.secret('{alert_url}') IS NULL THEN
    RAISE EXCEPTION '%', problem
      USING HINT = 'is penstock web or penstock trigger serve running, and the token right?';
  END IF;
  PERFORM net.http_post(
    url := penstock_http.secret('{alert_url}'), body := jsonb_build_object('text', problem));
  RETURN problem;
END $body$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA penstock_http FROM PUBLIC;"""
EDGE_FUNCTION = """\
// Made by `penstock export supabase --edge-function`: hands what pg_cron calls to the trigger of a project.
// It checks a key of its own, so Supabase is to ask for no JWT. In supabase/config.toml:
//   [functions.penstock-trigger]
//   verify_jwt = false
// supabase functions deploy penstock-trigger
// supabase secrets set PENSTOCK_URL=https://penstock.example.com PENSTOCK_TRIGGER_TOKEN=...
// supabase secrets set PENSTOCK_FUNCTION_KEY=...
const json = { "Content-Type": "application/json" };
const failure = (error, status) => new Response(JSON.stringify({ error }), { status, headers: json });
const digest = async (text) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));

// Of digests, how far two are alike says nothing about the key.
async function same(one, other) {
  const [first, second] = await Promise.all([digest(one), digest(other)]);
  return first.every((byte, at) => byte === second[at]);
}

Deno.serve(async (request) => {
  const names = ["PENSTOCK_URL", "PENSTOCK_TRIGGER_TOKEN", "PENSTOCK_FUNCTION_KEY"];
  const [url, token, key] = names.map((name) => Deno.env.get(name));
  if (!url || !token || !key) {
    return failure(`${names.join(", ")}: one is not set`, 500);
  }
  if (request.method !== "POST") {
    return failure("POST only", 405);
  }
  if (!(await same(request.headers.get("X-Penstock-Key") ?? "", key))) {
    return failure("X-Penstock-Key is not PENSTOCK_FUNCTION_KEY", 401);
  }
  const { path, body } = await request.json().catch(() => ({}));
  if (typeof path !== "string" || !/^\\/signals\\/(?!\\.)[\\w.-]+(\\?[^#\\s]*)?$/.test(path)) {
    return failure("only signals are passed on", 400);
  }
  try {
    const answer = await fetch(url.replace(/\\/+$/, "") + path, {
      method: "POST",
      headers: {
        ...json,
        Authorization: `Bearer ${token}`,
        "Idempotency-Key": request.headers.get("Idempotency-Key") ?? "",
      },
      body: JSON.stringify(body ?? {}),
      redirect: "error",
      signal: AbortSignal.timeout(8000),
    });
    return new Response(await answer.text(), { status: answer.status, headers: json });
  } catch {
    return failure("Penstock does not answer", 502);
  }
});
"""
DIRECT = (
    f"rtrim(penstock_http.secret('{URL}'), '/') || called.path",
    f"'Authorization', 'Bearer ' || penstock_http.secret('{TOKEN}')",
    "called.body",
)
# A key of the function's own: the keys of a Supabase project are no JWTs any more, and one of them is public.
BY_FUNCTION = (
    f"rtrim(penstock_http.secret('{PROJECT_URL}'), '/') || '/functions/v1/{FUNCTION}'",
    f"'X-Penstock-Key', penstock_http.secret('{FUNCTION_KEY}')",
    "jsonb_build_object('path', called.path, 'body', called.body)",
)


def supabase(
    starts: Sequence[Start],
    project: str,
    upkeep: Upkeep,
    year: int,
    *,
    by_edge_function: bool = False,
) -> Export:
    """The script for the SQL editor or a migration; and the Edge Function, if calls go by one."""
    found = collected(starts, year, partial(_call, project), has_jitter=False)
    url, credential, body = BY_FUNCTION if by_edge_function else DIRECT
    objects = OBJECTS
    for name, value in (
        ("{url}", url),
        ("{credential}", credential),
        ("{body}", body),
        ("{alert_url}", ALERT_URL),
    ):
        objects = objects.replace(name, value)
    secrets = (PROJECT_URL, FUNCTION_KEY) if by_edge_function else (URL, TOKEN)
    script = Script(
        project,
        TARGET,
        (*found.jobs, *_upkeep_jobs(upkeep)),
        head=[],
        checks=_checks(secrets),
        before=objects,
    )
    head = [
        f"The schedules of {project} for Supabase, by `penstock export supabase`. Version {script.version}",
        "Run it in the SQL editor, or as a migration, as often as you like. Each entry is one job; what has",
        "left penstock.yaml is unscheduled. Needs the extensions pg_cron, pg_net, supabase_vault, and once:",
        *(f"  SELECT vault.create_secret('...', '{each}');" for each in secrets),
        f"With {ALERT_URL} in the vault (a Slack webhook), the watchdog tells it what was not accepted.",
        "The jobs raise signals at `penstock web` or `penstock trigger serve`, with the token of `trigger:`.",
        "Say `timers: external` in penstock.yaml: only then do these signals start the schedules.",
        *remarks(found),
    ]
    files = {FILE: replace(script, head=head).text}
    if by_edge_function:
        files[FUNCTION_FILE] = EDGE_FUNCTION
    return Export(files, found.left_out, found.otherwise)


def _call(project: str, start: Start, time: SqlTime) -> str:
    settings = start.settings
    key = f"{project}/{start.source}/{settings.name} "
    if len(key) > LONGEST_KEY:
        raise Inexpressible(f"takes no names of more than {LONGEST_KEY} characters together")
    minute = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
    if time.is_in_seconds:
        minute = minute.replace("HH24:MI", "HH24:MI:SS")
    path = f"/signals/{SCHEDULE_DUE}?source={quote(start.source, safe='')}"
    body = f"jsonb_build_object('schedule', {literal(settings.name)})"
    call = f"{literal(key)} || {time.wall_time or minute}, {literal(path)}, {body}"
    return f"SELECT penstock_http.call_once({call}) {time.source_rows}".rstrip()


def _upkeep_jobs(upkeep: Upkeep) -> list[CronJob]:
    jobs = []
    if upkeep.retries:
        command = f"SELECT penstock_http.resend('6 hours', {upkeep.attempts})"
        title = "Sends again what was not accepted, under the same key"
        jobs.append(CronJob("(retries)", upkeep.retries, command, title))
    if upkeep.watchdog:
        command = f"SELECT penstock_http.watch('{upkeep.patience_s:g} seconds')"
        jobs.append(CronJob("(watchdog)", upkeep.watchdog, command, "Tells what was not accepted"))
    if jobs and upkeep.history_days:
        jobs.append(history_job(upkeep.history_days))
    return jobs


def _checks(secrets: Sequence[str]) -> list[str]:
    lines = [
        "  IF NOT EXISTS (SELECT 1 FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace",
        "      WHERE n.nspname = 'net' AND p.proname = 'http_post') THEN",
        "    RAISE EXCEPTION 'pg_net is not in this database' USING HINT = 'CREATE EXTENSION pg_net';",
        "  END IF;",
    ]
    for name in secrets:
        lines += [
            f"  IF penstock_http.secret({literal(name)}) IS NULL THEN",
            f"    RAISE EXCEPTION 'the vault has no secret {name}'",
            f"      USING HINT = 'SELECT vault.create_secret(''...'', ''{name}'')';",
            "  END IF;",
        ]
    return lines
