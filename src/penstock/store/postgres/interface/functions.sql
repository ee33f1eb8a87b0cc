-- Who asks: the role that was set, as PostgREST does it, else the one that came in. Not `current_user`, which is the
-- owner of these functions inside them.
CREATE FUNCTION penstock_sql.penstock_role() RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $body$
  SELECT CASE WHEN coalesce(current_setting('role', true), 'none') = 'none' THEN session_user::text
    ELSE current_setting('role') END
$body$;

-- Whether whoever asks may see this organization. A role with rows in sql_access sees those organizations alone.
CREATE FUNCTION penstock_sql.penstock_sees(organization text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
  SELECT NOT EXISTS (SELECT 1 FROM penstock.sql_access AS a WHERE a.role = penstock_sql.penstock_role())
    OR EXISTS (
      SELECT 1 FROM penstock.sql_access AS a
      WHERE a.role = penstock_sql.penstock_role() AND a.organization_id = organization)
$body$;

-- The name in the journal. Behind PostgREST, the subject of the token is only what was claimed.
CREATE FUNCTION penstock_sql.penstock_actor() RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $body$
  SELECT 'sql:' || penstock_sql.penstock_role() || coalesce(
    ' (says ' || left(nullif(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', ''), 64) || ')', '')
$body$;

-- The host that an address names, as Penstock writes it: `HTTPS://WWW.Acme.com:443/` is acme.com.
CREATE FUNCTION penstock_sql.penstock_host(address text) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $body$
  SELECT regexp_replace(rtrim(regexp_replace(
    regexp_replace(regexp_replace(lower(btrim(address)), '^[a-z][a-z0-9+.-]*://', ''), '[/?#].*$', ''),
    '^.*@|:(80|443)$', '', 'g'), '.'), '^www\.(?=.*\.)', '')
$body$;

-- What a client has asked for. The leader is woken, and performs it by the verb that the command line uses.
CREATE FUNCTION penstock_sql.penstock_ask(verb text, source bigint, run bigint, params jsonb, reason text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  INSERT INTO penstock.inbox (verb, source_id, run_id, params, at, actor, reason)
  VALUES (verb, source, run, params::text, extract(epoch FROM clock_timestamp()), penstock_sql.penstock_actor(), coalesce(reason, ''));
END $body$;

CREATE FUNCTION penstock_sql.penstock_refuse(why text, hint text DEFAULT '') RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF hint = '' THEN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = why;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = why, HINT = hint;
END $body$;

-- The triggers act with the rights of their owner, by the rows of their view. On a table of somebody's own, with rows of his
-- own making, they would let anybody do anything.
CREATE FUNCTION penstock_sql.penstock_only_of(relation oid, VARIADIC views text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF relation <> ALL (views::regclass[]) THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'this trigger belongs to the views of Penstock';
  END IF;
END $body$;

-- For `penstock export pg-cron`: queues again what is in quarantine, of runs that failed lately and were not tried too
-- often. One that can't be retried stands in nobody's way; one whose retry was refused waits for a person.
CREATE FUNCTION penstock_sql.penstock_retry_failed(most_attempts integer DEFAULT 3, lately interval DEFAULT '1 day')
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  failed bigint;
  done bigint := 0;
BEGIN
  FOR failed IN
    SELECT j.id FROM penstock_sql.ingestion_jobs AS j
    WHERE j.status = 'failed' AND j.id > 0 AND j.attempt < most_attempts AND j.completed_at > now() - lately
      AND (j.result ->> 'quarantined')::bigint > 0 AND j.request_error IS NULL
    ORDER BY j.id
  LOOP
    BEGIN
      UPDATE penstock_sql.ingestion_jobs SET status = 'queued', reason = 'retried by schedule' WHERE id = failed;
      done := done + 1;
    EXCEPTION WHEN check_violation THEN NULL;
    END;
  END LOOP;
  RETURN done;
END $body$;

-- What is wrong with the processes of this project, as far as its database can tell: a row for each problem, with when it
-- began. Counts alone, so that whoever may read the views may have it.
CREATE FUNCTION penstock_sql.penstock_problems(patience interval DEFAULT '5 minutes')
RETURNS TABLE (problem text, since timestamptz, remedy text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
  WITH moment AS (SELECT extract(epoch FROM now())::double precision AS at, extract(epoch FROM patience)::double precision AS wait)
  SELECT 'nobody starts what is asked for: no scheduler has been running', to_timestamp(max(l.expires_at)),
    'penstock up, or penstock scheduler, on any host'
  FROM moment AS m LEFT JOIN penstock.leader AS l ON l.name = 'scheduler'
  GROUP BY m.at, m.wait HAVING coalesce(max(l.expires_at), 0) < m.at - m.wait
  UNION ALL
  SELECT format('%s requests of SQL clients wait', count(*)), to_timestamp(min(coalesce(i.due_at, i.at))),
    'penstock up, or penstock scheduler, on any host'
  FROM moment AS m, penstock.inbox AS i
  WHERE i.state IN ('open', 'taken') AND coalesce(i.due_at, i.at) < m.at - m.wait GROUP BY m.at HAVING count(*) > 0
  UNION ALL
  SELECT format('%s workers are silent and still have jobs', count(*)), to_timestamp(min(w.lease_expires_at)),
    'penstock up, or penstock worker, on any host: it takes their jobs over'
  FROM moment AS m, penstock.worker AS w
  WHERE w.lease_expires_at < m.at - m.wait
    AND EXISTS (SELECT 1 FROM penstock.job AS j WHERE j.state = 'running' AND j.worker = w.id)
  GROUP BY m.at HAVING count(*) > 0
  UNION ALL
  SELECT 'runs are queued or running, and there is no worker', to_timestamp(min(r.created_at)),
    'penstock up, or penstock worker, on any host'
  FROM moment AS m, penstock.run AS r
  WHERE r.state IN ('queued', 'running') AND r.created_at < m.at - m.wait
    AND NOT EXISTS (SELECT 1 FROM penstock.worker AS w WHERE w.lease_expires_at >= m.at - m.wait)
  GROUP BY m.at HAVING count(*) > 0
  UNION ALL
  SELECT format('%s schedules of Penstock''s own are overdue', count(*)), to_timestamp(min(d.next_due_at)),
    'penstock up, or penstock scheduler, on any host'
  FROM moment AS m, penstock.schedule AS d
  WHERE d.look_at < m.at - m.wait GROUP BY m.at HAVING count(*) > 0
$body$;

-- For `penstock export pg-cron`: fails while there is a problem, so that the failure is in cron.job_run_details and in the
-- server's log.
CREATE FUNCTION penstock_sql.penstock_watchdog(patience interval DEFAULT '5 minutes') RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  found text;
  remedies text;
BEGIN
  SELECT string_agg(format('%s (since %s)', p.problem, coalesce(to_char(p.since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'), 'ever')), '; '),
    string_agg(DISTINCT p.remedy, '; ') INTO found, remedies
  FROM penstock_sql.penstock_problems(patience) AS p;
  IF found IS NOT NULL THEN
    RAISE EXCEPTION USING MESSAGE = 'penstock: ' || found, HINT = remedies;
  END IF;
  RETURN 'no problem';
END $body$;
