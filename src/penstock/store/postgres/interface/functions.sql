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
  RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = why, HINT = hint;
END $body$;

-- Only the triggers may ask: they have looked whether the move is possible.
REVOKE ALL ON FUNCTION penstock_sql.penstock_ask(text, bigint, bigint, jsonb, text) FROM PUBLIC;
