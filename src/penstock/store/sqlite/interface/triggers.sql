-- What RAISE says is a literal: older SQLite programs, which read this file too, know nothing else.
CREATE TRIGGER penstock_insert_job INSTEAD OF INSERT ON ingestion_jobs BEGIN
  SELECT RAISE(ABORT, 'a new job is queued or blocked') WHERE coalesce(new.status, 'queued') NOT IN ('queued', 'blocked');
  SELECT RAISE(ABORT, 'id, attempt, started_at, completed_at, result and error_message are written by workers')
  WHERE coalesce(new.id, nullif(new.attempt, 0), new.started_at, new.completed_at, new.result, new.error_message, new.state) IS NOT NULL;
  SELECT RAISE(ABORT, 'payload must be a JSON object: it becomes the params of the run')
  WHERE CASE WHEN json_valid(coalesce(new.payload, '{}')) THEN json_type(coalesce(new.payload, '{}')) <> 'object' ELSE 1 END;
  SELECT RAISE(ABORT, 'scheduled_for must be a time, such as 2026-01-31T02:00:00Z')
  WHERE new.scheduled_for IS NOT NULL AND julianday(new.scheduled_for) IS NULL;
  SELECT RAISE(ABORT, 'name the source: by source, or by job_type with site_url or organization_id')
  WHERE coalesce(new.source, new.site_url, new.organization_id) IS NULL;
  SELECT CASE (
    SELECT count(*) FROM ({candidates})
  ) WHEN 0 THEN RAISE(ABORT, 'no source has this job_type, site_url and organization_id: add it to penstock.yaml') END;
  SELECT RAISE(ABORT, 'several sources have this job_type, site_url and organization_id: name one in the column source')
  WHERE 1 < (SELECT count(*) FROM ({candidates}))
    AND 1 <> (SELECT count(*) FROM ({candidates}) WHERE site_url = new.site_url);
  INSERT INTO inbox (verb, state, source_id, key, params, at, due_at, actor, reason)
  SELECT 'runs.start', CASE new.status WHEN 'blocked' THEN 'blocked' ELSE 'open' END, w.source_id, new.idempotency_key, w.params,
    (julianday('now') - 2440587.5) * 86400.0, (julianday(new.scheduled_for) - 2440587.5) * 86400.0, 'sql', coalesce(new.reason, '')
  FROM (
    SELECT c.source_id, json_patch(json_object('kind', new.kind, 'priority', new.priority),
      json_object('params', json(coalesce(new.payload, '{}')))) AS params
    FROM ({candidates}) AS c
    ORDER BY c.site_url = new.site_url DESC LIMIT 1
  ) AS w
  WHERE NOT EXISTS (
    SELECT 1 FROM inbox AS i
    WHERE i.source_id = w.source_id AND i.verb = 'runs.start' AND CASE
      WHEN new.idempotency_key IS NOT NULL THEN i.key = new.idempotency_key
      ELSE i.key IS NULL AND i.state IN ('open', 'blocked') AND i.params = w.params
        AND i.due_at IS (julianday(new.scheduled_for) - 2440587.5) * 86400.0 END);
END;

CREATE TRIGGER penstock_update_job INSTEAD OF UPDATE ON ingestion_jobs BEGIN
  SELECT RAISE(ABORT, 'only status and reason of a job can be changed; INSERT a new job to have other work done')
  WHERE new.id IS NOT old.id OR new.organization_id IS NOT old.organization_id OR new.site_url IS NOT old.site_url
    OR new.job_type IS NOT old.job_type OR new.attempt IS NOT old.attempt OR new.priority IS NOT old.priority
    OR new.scheduled_for IS NOT old.scheduled_for OR new.started_at IS NOT old.started_at
    OR new.completed_at IS NOT old.completed_at OR new.payload IS NOT old.payload OR new.result IS NOT old.result
    OR new.error_message IS NOT old.error_message OR new.source IS NOT old.source OR new.kind IS NOT old.kind
    OR new.state IS NOT old.state OR new.idempotency_key IS NOT old.idempotency_key;
  SELECT RAISE(ABORT, 'there is no such status; a client can set queued, blocked and cancelled')
  WHERE coalesce(new.status, '') NOT IN ('queued', 'running', 'succeeded', 'failed', 'blocked', 'cancelled');
  SELECT RAISE(ABORT, 'this job was not started yet, and can only be queued, blocked or cancelled')
  WHERE old.id < 0 AND new.status IS NOT old.status
    AND (new.status NOT IN ('queued', 'blocked', 'cancelled') OR old.status NOT IN ('queued', 'blocked'));
  SELECT RAISE(ABORT, 'this job is blocked by a hold or a pause: UPDATE organizations SET status = ''active'', or penstock unhold')
  WHERE old.status = 'blocked' AND new.status IN ('queued', 'running') AND old.blocked_by NOT IN ('run', 'draft', 'request');
  SELECT RAISE(ABORT, 'a draft can only become queued or cancelled')
  WHERE old.blocked_by = 'draft' AND new.status = 'running';
  SELECT RAISE(ABORT, 'only workers set a job to this status')
  WHERE old.id > 0 AND new.status IS NOT old.status
    AND (new.status IN ('succeeded', 'failed') OR new.status = 'running' AND old.status <> 'blocked');
  SELECT RAISE(ABORT, 'this job has ended; INSERT a new job to run it again')
  WHERE old.id > 0 AND new.status IS NOT old.status
    AND (old.status IN ('succeeded', 'cancelled') OR old.status = 'failed' AND new.status <> 'queued');
  SELECT RAISE(ABORT, 'this job is running')
  WHERE old.id > 0 AND old.status = 'running' AND new.status = 'queued';
  SELECT RAISE(ABORT, 'this job has failed with nothing in quarantine to try again; INSERT a new job')
  WHERE old.id > 0 AND old.status = 'failed' AND new.status = 'queued'
    AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.run_id = old.id AND j.state = 'quarantined');
  UPDATE inbox SET state = CASE new.status WHEN 'queued' THEN 'open' ELSE new.status END,
    ended_at = CASE new.status WHEN 'cancelled' THEN (julianday('now') - 2440587.5) * 86400.0 END
  WHERE id = -old.id AND old.id < 0 AND new.status IS NOT old.status AND state IN ('open', 'blocked');
  INSERT INTO inbox (verb, source_id, run_id, at, actor, reason)
  SELECT CASE
      WHEN old.status IN ('queued', 'running') AND new.status = 'blocked' THEN 'runs.pause'
      WHEN new.status = 'cancelled' THEN 'runs.cancel'
      WHEN old.blocked_by = 'run' THEN 'runs.resume'
      WHEN old.blocked_by = 'draft' THEN 'runs.begin'
      ELSE 'runs.retry' END,
    r.source_id, r.id, (julianday('now') - 2440587.5) * 86400.0, 'sql',
    CASE WHEN new.reason IS NOT old.reason THEN coalesce(new.reason, '') ELSE '' END
  FROM run AS r WHERE r.id = old.id AND new.status IS NOT old.status;
END;

CREATE TRIGGER penstock_delete_job INSTEAD OF DELETE ON ingestion_jobs BEGIN
  SELECT RAISE(ABORT, 'a job is not deleted: UPDATE its status to cancelled');
END;

CREATE TRIGGER penstock_update_site_schema INSTEAD OF UPDATE ON source_site_schemas BEGIN
  SELECT RAISE(ABORT, 'a client can set site_name, site_type, classification_confidence, image selectors, pollution_notes, schema_proposals, last_verified_at, is_valid, extraction_confidence; pipelines write the rest')
  WHERE new.id IS NOT old.id OR new.domain IS NOT old.domain OR new.schema_data IS NOT old.schema_data
    OR new.supplier_references IS NOT old.supplier_references OR new.cataloged_at IS NOT old.cataloged_at
    OR new.cataloged_by IS NOT old.cataloged_by OR new.version IS NOT old.version OR new.source IS NOT old.source
    OR new.organization_id IS NOT old.organization_id OR new.record_version IS NOT old.record_version
    OR new.updated_at IS NOT old.updated_at;
  SELECT RAISE(ABORT, 'pollution_notes, schema_proposals and image selectors must be JSON')
  WHERE NOT (json_valid(coalesce(new.pollution_notes, '[]')) AND json_valid(coalesce(new.schema_proposals, '[]'))
    AND json_valid(coalesce(new.image_include_selectors, '[]')) AND json_valid(coalesce(new.image_exclude_selectors, '[]')));
  SELECT RAISE(ABORT, 'last_verified_at must be a time, such as 2026-01-31T02:00:00Z')
  WHERE new.last_verified_at IS NOT NULL AND julianday(new.last_verified_at) IS NULL;
  INSERT INTO inbox (verb, source_id, params, at, actor, reason)
  SELECT 'records.edit', r.source_id,
    json_object('collection', r.collection, 'key', r.key, 'record', r.id, 'fields', json(c.fields)),
    (julianday('now') - 2440587.5) * 86400.0, 'sql', coalesce(new.reason, '')
  FROM record AS r, (
    SELECT json_group_object(name, json(value)) AS fields, count(*) AS number FROM (
      SELECT 'site_name' AS name, json_quote(new.site_name) AS value WHERE new.site_name IS NOT old.site_name
      UNION ALL SELECT 'site_type', json_quote(new.site_type) WHERE new.site_type IS NOT old.site_type
      UNION ALL SELECT 'classification_confidence', json_quote(new.classification_confidence)
        WHERE new.classification_confidence IS NOT old.classification_confidence
      UNION ALL SELECT 'image_include_selectors', coalesce(new.image_include_selectors, 'null')
        WHERE new.image_include_selectors IS NOT old.image_include_selectors
      UNION ALL SELECT 'image_exclude_selectors', coalesce(new.image_exclude_selectors, 'null')
        WHERE new.image_exclude_selectors IS NOT old.image_exclude_selectors
      UNION ALL SELECT 'pollution_notes', coalesce(new.pollution_notes, 'null') WHERE new.pollution_notes IS NOT old.pollution_notes
      UNION ALL SELECT 'schema_proposals', coalesce(new.schema_proposals, 'null')
        WHERE new.schema_proposals IS NOT old.schema_proposals
      UNION ALL SELECT 'last_verified_at', json_quote(strftime('%Y-%m-%dT%H:%M:%fZ', new.last_verified_at))
        WHERE new.last_verified_at IS NOT old.last_verified_at
      UNION ALL SELECT 'is_valid', CASE new.is_valid WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END
        WHERE new.is_valid IS NOT old.is_valid
      UNION ALL SELECT 'extraction_confidence', json_quote(new.extraction_confidence)
        WHERE new.extraction_confidence IS NOT old.extraction_confidence
    )
  ) AS c
  WHERE r.id = old.id AND c.number > 0;
END;

CREATE TRIGGER penstock_update_supplier_reference INSTEAD OF UPDATE ON supplier_references BEGIN
  SELECT RAISE(ABORT, 'a client can set status and linked_organization_id of a supplier reference; pipelines write the rest')
  WHERE new.id IS NOT old.id OR new.organization_id IS NOT old.organization_id OR new.source_domain IS NOT old.source_domain
    OR new.source_url IS NOT old.source_url OR new.supplier_name IS NOT old.supplier_name
    OR new.supplier_domain IS NOT old.supplier_domain OR new.supplier_url IS NOT old.supplier_url OR new.role IS NOT old.role
    OR new.context_snippet IS NOT old.context_snippet OR new.confidence IS NOT old.confidence OR new.metadata IS NOT old.metadata
    OR new.source IS NOT old.source OR new.created_at IS NOT old.created_at OR new.updated_at IS NOT old.updated_at
    OR new.ingestion_job_id IS NOT old.ingestion_job_id OR new.record_version IS NOT old.record_version;
  SELECT RAISE(ABORT, 'the status of a supplier reference is new, in_review, linked or dismissed')
  WHERE coalesce(new.status, '') NOT IN ('new', 'in_review', 'linked', 'dismissed');
  SELECT RAISE(ABORT, 'a linked supplier reference needs a linked_organization_id')
  WHERE new.status = 'linked' AND new.linked_organization_id IS NULL;
  INSERT INTO inbox (verb, source_id, params, at, actor, reason)
  SELECT 'records.edit', r.source_id, json_object('collection', r.collection, 'key', r.key, 'record', r.id, 'fields',
      json_object('status', new.status, 'linked_organization_id', new.linked_organization_id)),
    (julianday('now') - 2440587.5) * 86400.0, 'sql', coalesce(new.reason, '')
  FROM record AS r
  WHERE r.id = old.id
    AND (new.status IS NOT old.status OR new.linked_organization_id IS NOT old.linked_organization_id);
END;

CREATE TRIGGER penstock_update_organization INSTEAD OF UPDATE ON organizations BEGIN
  SELECT RAISE(ABORT, 'only status and reason of an organization can be changed; its name and sources stand in penstock.yaml')
  WHERE new.id IS NOT old.id OR new.name IS NOT old.name OR new.website IS NOT old.website OR new.domain IS NOT old.domain
    OR new.sources IS NOT old.sources OR new.last_ingested_at IS NOT old.last_ingested_at OR new.created_at IS NOT old.created_at;
  SELECT RAISE(ABORT, 'the status of an organization is active, paused or blocked')
  WHERE coalesce(new.status, '') NOT IN ('active', 'paused', 'blocked');
  SELECT RAISE(ABORT, 'the whole project is held: penstock unhold ends it')
  WHERE new.status = 'active' AND old.status <> 'active' AND EXISTS (SELECT 1 FROM hold WHERE scope = '');
  SELECT RAISE(ABORT, 'a blocked organization can only become active')
  WHERE old.status = 'blocked' AND new.status = 'paused';
  INSERT INTO inbox (verb, source_id, at, actor, reason)
  SELECT CASE new.status WHEN 'blocked' THEN 'sources.hold' WHEN 'paused' THEN 'sources.pause'
      ELSE CASE old.status WHEN 'blocked' THEN 'sources.unhold' ELSE 'sources.resume' END END,
    f.source_id, (julianday('now') - 2440587.5) * 86400.0, 'sql', coalesce(new.reason, '')
  FROM sql_source AS f WHERE f.organization_id = old.id AND new.status IS NOT old.status;
END;

CREATE TRIGGER penstock_insert_site_schema INSTEAD OF INSERT ON source_site_schemas BEGIN
  SELECT RAISE(ABORT, 'a mapper saves site schemas: INSERT a job for it');
END;
CREATE TRIGGER penstock_delete_site_schema INSTEAD OF DELETE ON source_site_schemas BEGIN
  SELECT RAISE(ABORT, 'a mapper saves site schemas: INSERT a job for it');
END;
CREATE TRIGGER penstock_insert_supplier_reference INSTEAD OF INSERT ON supplier_references BEGIN
  SELECT RAISE(ABORT, 'a pipeline saves supplier references; UPDATE the status to dismissed');
END;
CREATE TRIGGER penstock_delete_supplier_reference INSTEAD OF DELETE ON supplier_references BEGIN
  SELECT RAISE(ABORT, 'a pipeline saves supplier references; UPDATE the status to dismissed');
END;
CREATE TRIGGER penstock_insert_organization INSTEAD OF INSERT ON organizations BEGIN
  SELECT RAISE(ABORT, 'sources and their organizations stand in penstock.yaml');
END;
CREATE TRIGGER penstock_delete_organization INSTEAD OF DELETE ON organizations BEGIN
  SELECT RAISE(ABORT, 'sources and their organizations stand in penstock.yaml');
END;
