CREATE FUNCTION penstock_sql.penstock_insert_job() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  found bigint[];
  about penstock.sql_source;
  wanted jsonb;
  known bigint;
  known_run bigint;
BEGIN
  PERFORM penstock_sql.penstock_only_of(tg_relid, 'penstock_sql.ingestion_jobs');
  IF coalesce(new.status, 'queued') NOT IN ('queued', 'blocked') THEN
    PERFORM penstock_sql.penstock_refuse(format('a new job is queued or blocked, not %s', new.status));
  END IF;
  IF num_nonnulls(new.id, nullif(new.attempt, 0), new.started_at, new.completed_at, new.result, new.error_message, new.state) > 0 THEN
    PERFORM penstock_sql.penstock_refuse('id, attempt, started_at, completed_at, result and error_message are written by workers',
      'INSERT job_type, site_url or organization_id or source, payload, priority, scheduled_for');
  END IF;
  IF jsonb_typeof(coalesce(new.payload, '{}')) <> 'object' THEN
    PERFORM penstock_sql.penstock_refuse('payload must be a JSON object: it becomes the params of the run');
  END IF;
  IF num_nonnulls(new.source, new.site_url, new.organization_id) = 0 THEN
    PERFORM penstock_sql.penstock_refuse('name the source: by source, or by job_type with site_url or organization_id');
  END IF;
  SELECT coalesce(array_agg(f.source_id ORDER BY f.site_url = new.site_url DESC NULLS LAST, s.key), '{}') INTO found
  FROM penstock.sql_source AS f JOIN penstock.source AS s ON s.id = f.source_id
  WHERE (new.source IS NULL OR s.key = new.source) AND (new.job_type IS NULL OR f.job_type = new.job_type)
    AND (new.organization_id IS NULL OR f.organization_id = new.organization_id)
    AND (new.site_url IS NULL OR f.domain = penstock_sql.penstock_host(new.site_url))
    AND penstock_sql.penstock_sees(f.organization_id);
  IF cardinality(found) > 1 AND new.site_url IS NOT NULL THEN
    SELECT coalesce(array_agg(f.source_id), found) INTO found FROM penstock.sql_source AS f
    WHERE f.source_id = ANY (found) AND f.site_url = new.site_url HAVING count(*) = 1;
    found := coalesce(found, '{}');
  END IF;
  IF coalesce(cardinality(found), 0) = 0 THEN
    PERFORM penstock_sql.penstock_refuse(format('no source has job_type %s, site_url %s, organization_id %s',
      coalesce(new.job_type, 'any'), coalesce(new.site_url, 'any'), coalesce(new.organization_id, 'any')),
      'add it to penstock.yaml; penstock db sql check says which sources SQL clients see');
  END IF;
  IF cardinality(found) > 1 THEN
    PERFORM penstock_sql.penstock_refuse(format('%s sources have job_type %s, site_url %s, organization_id %s', cardinality(found),
      coalesce(new.job_type, 'any'), coalesce(new.site_url, 'any'), coalesce(new.organization_id, 'any')),
      'name one of them in the column source');
  END IF;
  SELECT * INTO about FROM penstock.sql_source AS f WHERE f.source_id = found[1];
  wanted := jsonb_strip_nulls(jsonb_build_object('kind', new.kind, 'priority', new.priority))
    || jsonb_build_object('params', coalesce(new.payload, '{}'));
  -- Of many who ask for the same at once, one is first.
  PERFORM pg_advisory_xact_lock(1347638347, about.source_id::integer);
  SELECT i.id, i.run_id INTO known, known_run FROM penstock.inbox AS i
  WHERE i.source_id = about.source_id AND i.verb = 'runs.start' AND CASE
    WHEN new.idempotency_key IS NOT NULL THEN i.key = new.idempotency_key
    ELSE i.key IS NULL AND i.state IN ('open', 'blocked') AND i.params::jsonb = wanted
      AND i.due_at IS NOT DISTINCT FROM extract(epoch FROM new.scheduled_for)::double precision END
  ORDER BY i.id LIMIT 1;
  IF known IS NULL THEN
    INSERT INTO penstock.inbox (verb, state, source_id, key, params, at, due_at, actor, reason)
    VALUES ('runs.start', CASE new.status WHEN 'blocked' THEN 'blocked' ELSE 'open' END, about.source_id, new.idempotency_key,
      wanted::text, extract(epoch FROM clock_timestamp()), extract(epoch FROM new.scheduled_for),
      penstock_sql.penstock_actor(), coalesce(new.reason, ''))
    RETURNING id INTO known;
  END IF;
  new.id := coalesce(known_run, -known);
  new.request_id := known;
  new.status := coalesce(new.status, 'queued');
  new.organization_id := about.organization_id;
  new.site_url := about.site_url;
  new.job_type := about.job_type;
  SELECT s.key INTO new.source FROM penstock.source AS s WHERE s.id = about.source_id;
  RETURN new;
END $body$;

CREATE FUNCTION penstock_sql.penstock_update_job() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  what text := format('job %s', old.id);
  verb text;
  owner bigint;
BEGIN
  PERFORM penstock_sql.penstock_only_of(tg_relid, 'penstock_sql.ingestion_jobs');
  -- What is set by habit beside the status says nothing: updated_at is when it was asked for.
  IF to_jsonb(new) - '{status,reason,updated_at}'::text[] <> to_jsonb(old) - '{status,reason,updated_at}'::text[] THEN
    PERFORM penstock_sql.penstock_refuse('only status and reason of a job can be changed',
      'INSERT a new job to have other work done');
  END IF;
  IF new.status IS NOT DISTINCT FROM old.status THEN
    RETURN new;
  END IF;
  IF new.status IS NULL OR new.status NOT IN ('queued', 'running', 'succeeded', 'failed', 'blocked', 'cancelled') THEN
    PERFORM penstock_sql.penstock_refuse(format('there is no status %L', new.status),
      'a client can set queued, blocked and cancelled');
  END IF;
  IF old.id < 0 THEN
    IF NOT (old.status IN ('queued', 'blocked') AND new.status IN ('queued', 'blocked', 'cancelled'))
       OR old.blocked_by NOT IN ('request') AND new.status = 'queued' THEN
      PERFORM penstock_sql.penstock_refuse(format('%s is %s and can''t become %s', what, old.status, new.status),
        'INSERT a new job');
    END IF;
    UPDATE penstock.inbox SET state = CASE new.status WHEN 'queued' THEN 'open' ELSE new.status END,
      ended_at = CASE new.status WHEN 'cancelled' THEN extract(epoch FROM clock_timestamp()) END
    WHERE id = -old.id AND state IN ('open', 'blocked');
    IF NOT found THEN
      PERFORM penstock_sql.penstock_refuse(format('%s is being started at this moment', what), 'try again');
    END IF;
    RETURN new;
  END IF;
  verb := CASE
    WHEN old.status IN ('queued', 'running') AND new.status = 'blocked' THEN 'runs.pause'
    WHEN old.blocked_by = 'run' AND new.status IN ('queued', 'running') THEN 'runs.resume'
    WHEN old.blocked_by = 'draft' AND new.status = 'queued' THEN 'runs.begin'
    WHEN old.status = 'failed' AND new.status = 'queued' THEN 'runs.retry'
    WHEN old.status IN ('queued', 'running', 'blocked') AND new.status = 'cancelled' THEN 'runs.cancel' END;
  IF verb IS NULL AND old.status = 'blocked' AND new.status IN ('queued', 'running') THEN
    PERFORM penstock_sql.penstock_refuse(format('%s is blocked by a %s', what, old.blocked_by),
      'UPDATE organizations SET status = ''active'', or penstock unhold or resume');
  ELSIF verb IS NULL AND new.status IN ('running', 'succeeded', 'failed') THEN
    PERFORM penstock_sql.penstock_refuse(format('%s is %s; only workers set a job to %s', what, old.status, new.status));
  ELSIF verb IS NULL THEN
    PERFORM penstock_sql.penstock_refuse(format('%s is %s and can''t become %s', what, old.status, new.status),
      CASE WHEN new.status = 'queued' THEN 'INSERT a new job to run it again' ELSE '' END);
  ELSIF verb = 'runs.retry'
    AND NOT EXISTS (SELECT 1 FROM penstock.job AS j WHERE j.run_id = old.id AND j.state = 'quarantined') THEN
    PERFORM penstock_sql.penstock_refuse(format('%s has failed with nothing in quarantine to try again', what),
      'INSERT a new job to run it again');
  END IF;
  SELECT r.source_id INTO owner FROM penstock.run AS r WHERE r.id = old.id;
  PERFORM penstock_sql.penstock_ask(verb, owner, old.id, '{}',
    CASE WHEN new.reason IS DISTINCT FROM old.reason THEN new.reason END);
  RETURN new;
END $body$;

CREATE FUNCTION penstock_sql.penstock_update_record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  changed jsonb;
  fixed text;
  about penstock.record;
BEGIN
  PERFORM penstock_sql.penstock_only_of(tg_relid, 'penstock_sql.source_site_schemas', 'penstock_sql.supplier_references');
  SELECT coalesce(jsonb_object_agg(x.key, CASE
    WHEN x.key IN ('last_verified_at', 'cataloged_at') AND jsonb_typeof(x.value) = 'string'
    THEN to_jsonb(to_char((x.value #>> '{}')::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
    ELSE x.value END), '{}') INTO changed
  FROM jsonb_each(to_jsonb(new)) AS x WHERE x.value IS DISTINCT FROM to_jsonb(old) -> x.key AND x.key <> 'reason';
  IF changed = '{}' THEN
    RETURN new;
  END IF;
  SELECT min(k) INTO fixed FROM jsonb_object_keys(changed) AS k WHERE k <> ALL (string_to_array(tg_argv[0], ' '));
  IF fixed IS NOT NULL THEN
    PERFORM penstock_sql.penstock_refuse(format('%s of %s is written by pipelines', fixed, tg_table_name),
      format('a client can set %s', replace(tg_argv[0], ' ', ', ')));
  END IF;
  IF tg_table_name = 'supplier_references' THEN
    IF new.status IS NULL OR new.status NOT IN ('new', 'in_review', 'linked', 'dismissed') THEN
      PERFORM penstock_sql.penstock_refuse(format('there is no status %L of a supplier reference', new.status),
        'it is new, in_review, linked or dismissed');
    ELSIF new.status = 'linked' AND new.linked_organization_id IS NULL THEN
      PERFORM penstock_sql.penstock_refuse('a linked supplier reference needs a linked_organization_id');
    END IF;
  END IF;
  SELECT * INTO about FROM penstock.record AS r WHERE r.id = old.id;
  PERFORM penstock_sql.penstock_ask('records.edit', about.source_id, NULL, jsonb_build_object(
    'collection', about.collection, 'key', about.key, 'record', about.id, 'fields', changed), new.reason);
  RETURN new;
END $body$;

CREATE FUNCTION penstock_sql.penstock_update_organization() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  verb text;
BEGIN
  PERFORM penstock_sql.penstock_only_of(tg_relid, 'penstock_sql.organizations');
  IF to_jsonb(new) - 'status' - 'reason' <> to_jsonb(old) - 'status' - 'reason' THEN
    PERFORM penstock_sql.penstock_refuse('only status and reason of an organization can be changed',
      'its name and its sources stand in penstock.yaml');
  END IF;
  IF new.status IS NOT DISTINCT FROM old.status THEN
    RETURN new;
  END IF;
  IF new.status = 'active' AND EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope = '') THEN
    PERFORM penstock_sql.penstock_refuse('the whole project is held', 'penstock unhold ends it');
  END IF;
  verb := CASE new.status WHEN 'blocked' THEN 'sources.hold'
    WHEN 'paused' THEN CASE old.status WHEN 'active' THEN 'sources.pause' END
    WHEN 'active' THEN CASE old.status WHEN 'blocked' THEN 'sources.unhold' ELSE 'sources.resume' END END;
  IF verb IS NULL THEN
    PERFORM penstock_sql.penstock_refuse(format('organization %s is %s and can''t become %s', old.id, old.status, new.status),
      'it is active, paused or blocked');
  END IF;
  PERFORM penstock_sql.penstock_ask(verb, f.source_id, NULL, '{}', new.reason)
  FROM penstock.sql_source AS f WHERE f.organization_id = old.id;
  RETURN new;
END $body$;

CREATE FUNCTION penstock_sql.penstock_refuse_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  PERFORM penstock_sql.penstock_refuse(format('%s of %s is not possible', tg_op, tg_table_name), tg_argv[0]);
  RETURN NULL;
END $body$;

CREATE TRIGGER penstock_insert INSTEAD OF INSERT ON penstock_sql.ingestion_jobs
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_insert_job();
CREATE TRIGGER penstock_update INSTEAD OF UPDATE ON penstock_sql.ingestion_jobs
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_update_job();
CREATE TRIGGER penstock_delete INSTEAD OF DELETE ON penstock_sql.ingestion_jobs
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_refuse_row('UPDATE its status to cancelled');
CREATE TRIGGER penstock_update INSTEAD OF UPDATE ON penstock_sql.source_site_schemas
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_update_record(
  'site_name site_type classification_confidence image_include_selectors image_exclude_selectors pollution_notes schema_proposals last_verified_at is_valid extraction_confidence');
CREATE TRIGGER penstock_other INSTEAD OF INSERT OR DELETE ON penstock_sql.source_site_schemas
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_refuse_row('a mapper saves site schemas: INSERT a job for it');
CREATE TRIGGER penstock_update INSTEAD OF UPDATE ON penstock_sql.supplier_references
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_update_record('status linked_organization_id');
CREATE TRIGGER penstock_other INSTEAD OF INSERT OR DELETE ON penstock_sql.supplier_references
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_refuse_row('a pipeline saves supplier references; UPDATE the status to dismissed');
CREATE TRIGGER penstock_update INSTEAD OF UPDATE ON penstock_sql.organizations
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_update_organization();
CREATE TRIGGER penstock_other INSTEAD OF INSERT OR DELETE ON penstock_sql.organizations
FOR EACH ROW EXECUTE FUNCTION penstock_sql.penstock_refuse_row('sources and their organizations stand in penstock.yaml');

ALTER TABLE penstock.sql_source ENABLE ROW LEVEL SECURITY;
CREATE POLICY penstock_sees ON penstock.sql_source USING (penstock_sql.penstock_sees(organization_id)) WITH CHECK (true);
ALTER TABLE penstock.inbox ENABLE ROW LEVEL SECURITY;
CREATE POLICY penstock_sees ON penstock.inbox USING (EXISTS (
  SELECT 1 FROM penstock.sql_source AS f WHERE f.source_id = inbox.source_id)) WITH CHECK (true);
