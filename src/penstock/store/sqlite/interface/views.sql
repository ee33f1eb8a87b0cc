-- One row for each run of a source, and for each INSERT that no run has come of yet.
CREATE VIEW ingestion_jobs AS
SELECT b.id, b.organization_id, b.site_url, b.job_type,
  CASE WHEN b.own IN ('queued', 'running') AND b.stopped_by IS NOT NULL THEN 'blocked' ELSE b.own END AS status,
  CASE WHEN b.began_at IS NULL THEN 0 ELSE 1 + b.reopened END AS attempt,
  (SELECT min(g.priority) FROM run_stage AS g WHERE g.run_id = b.id) AS priority,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.made_at, 'unixepoch') AS scheduled_for,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.began_at, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.finished_at, 'unixepoch') AS completed_at,
  CASE WHEN b.is_private THEN '{}' ELSE coalesce(json_extract(b.options, '$.params'), '{}') END AS payload,
  CASE WHEN b.finished_at IS NOT NULL THEN json_object(
    'inserted', b.inserted, 'updated', b.updated, 'unchanged', b.unchanged, 'rejected', b.rejected,
    'quarantined', (SELECT coalesce(sum(g.quarantined), 0) FROM run_stage AS g WHERE g.run_id = b.id)) END AS result,
  CASE WHEN b.state IN ('partial', 'failed') THEN coalesce((
    SELECT CASE WHEN b.end_reason = '' THEN '' ELSE b.end_reason || ': ' END || CASE WHEN b.is_private THEN e.kind ELSE e.error END
    FROM job AS j JOIN job_failure AS e ON e.job_id = j.id
    WHERE j.run_id = b.id AND j.state = 'quarantined' ORDER BY j.id LIMIT 1
  ), nullif(b.end_reason, ''), b.state) END AS error_message,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.made_at, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', max(
    b.made_at, coalesce(b.began_at, 0), coalesce(b.queued_at, 0), coalesce(b.finished_at, 0), coalesce(b.asked_at, 0)
  ), 'unixepoch') AS updated_at,
  b.source, b.kind, b.state,
  CASE WHEN b.own = 'blocked' THEN CASE WHEN b.state = 'draft' THEN 'draft' ELSE 'run' END
    WHEN b.own IN ('queued', 'running') THEN b.stopped_by END AS blocked_by,
  b.reason,
  (SELECT max(i.id) FROM inbox AS i WHERE i.run_id = b.id AND i.verb = 'runs.start') AS request_id,
  (SELECT i.key FROM inbox AS i WHERE i.run_id = b.id AND i.verb = 'runs.start' AND i.key IS NOT NULL
    ORDER BY i.id LIMIT 1) AS idempotency_key,
  (SELECT i.error FROM inbox AS i WHERE i.run_id = b.id AND i.state = 'refused' ORDER BY i.id DESC LIMIT 1) AS request_error
FROM (
  SELECT a.*, CASE
      WHEN a.verb = 'runs.cancel' THEN 'cancelled'
      WHEN a.verb = 'runs.pause' THEN 'blocked'
      WHEN a.verb IN ('runs.begin', 'runs.retry') THEN 'queued'
      WHEN a.verb = 'runs.resume' THEN CASE WHEN a.began_at IS NULL THEN 'queued' ELSE 'running' END
      WHEN a.state = 'completed' THEN 'succeeded'
      WHEN a.state IN ('partial', 'failed') THEN 'failed'
      WHEN a.state IN ('paused', 'draft') THEN 'blocked'
      ELSE a.state END AS own
  FROM (
    SELECT r.id, r.kind, r.state, r.options, r.end_reason, r.reason, r.reopened, r.inserted, r.updated, r.unchanged, r.rejected,
      r.created_at AS made_at, r.started_at AS began_at, r.queued_at, r.finished_at,
      f.organization_id, f.site_url, f.job_type, f.is_private, s.key AS source,
      (SELECT i.verb FROM inbox AS i WHERE i.run_id = r.id AND i.state IN ('open', 'taken') ORDER BY i.id DESC LIMIT 1) AS verb,
      (SELECT i.at FROM inbox AS i WHERE i.run_id = r.id AND i.state IN ('open', 'taken') ORDER BY i.id DESC LIMIT 1) AS asked_at,
      CASE
        WHEN EXISTS (SELECT 1 FROM hold AS h WHERE h.scope = '') THEN 'hold of everything'
        WHEN EXISTS (SELECT 1 FROM hold AS h WHERE h.scope = s.key) THEN 'hold of the source'
        WHEN s.paused_at IS NOT NULL THEN 'pause of the source' END AS stopped_by
    FROM run AS r
    JOIN sql_source AS f ON f.source_id = r.source_id
    JOIN source AS s ON s.id = r.source_id
    WHERE r.key <> 'edits'
  ) AS a
) AS b
UNION ALL
SELECT -c.id, c.organization_id, c.site_url, c.job_type,
  CASE c.state WHEN 'blocked' THEN 'blocked' WHEN 'refused' THEN 'failed' WHEN 'cancelled' THEN 'cancelled'
    ELSE CASE WHEN c.stopped_by IS NULL THEN 'queued' ELSE 'blocked' END END,
  0, json_extract(c.params, '$.priority'),
  strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(c.due_at, c.at), 'unixepoch'), NULL,
  strftime('%Y-%m-%dT%H:%M:%fZ', c.ended_at, 'unixepoch'),
  CASE WHEN c.is_private THEN '{}' ELSE coalesce(json_extract(c.params, '$.params'), '{}') END,
  NULL, nullif(c.error, ''), strftime('%Y-%m-%dT%H:%M:%fZ', c.at, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(c.ended_at, c.at), 'unixepoch'),
  c.source, json_extract(c.params, '$.kind'), c.state,
  CASE c.state WHEN 'blocked' THEN 'request' WHEN 'refused' THEN NULL WHEN 'cancelled' THEN NULL ELSE c.stopped_by END,
  c.reason, c.id, c.key, nullif(c.error, '')
FROM (
  SELECT i.*, f.organization_id, f.site_url, f.job_type, f.is_private, s.key AS source,
    CASE
      WHEN EXISTS (SELECT 1 FROM hold AS h WHERE h.scope = '') THEN 'hold of everything'
      WHEN EXISTS (SELECT 1 FROM hold AS h WHERE h.scope = s.key) THEN 'hold of the source'
      WHEN s.paused_at IS NOT NULL THEN 'pause of the source' END AS stopped_by
  FROM inbox AS i
  JOIN sql_source AS f ON f.source_id = i.source_id
  JOIN source AS s ON s.id = i.source_id
  WHERE i.verb = 'runs.start' AND i.run_id IS NULL
) AS c;

-- The records of the collection site_schemas.
CREATE VIEW source_site_schemas AS
SELECT r.id, json_extract(r.data, '$.domain') AS domain, json_extract(r.data, '$.site_name') AS site_name,
  json_extract(r.data, '$.site_type') AS site_type, json_extract(r.data, '$.schema_data') AS schema_data,
  json_extract(r.data, '$.classification_confidence') AS classification_confidence,
  json_extract(r.data, '$.image_include_selectors') AS image_include_selectors,
  json_extract(r.data, '$.image_exclude_selectors') AS image_exclude_selectors,
  json_extract(r.data, '$.pollution_notes') AS pollution_notes,
  json_extract(r.data, '$.supplier_references') AS supplier_references,
  json_extract(r.data, '$.schema_proposals') AS schema_proposals,
  json_extract(r.data, '$.cataloged_at') AS cataloged_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(r.data, '$.last_verified_at')) AS last_verified_at,
  json_extract(r.data, '$.is_valid') AS is_valid,
  json_extract(r.data, '$.extraction_confidence') AS extraction_confidence,
  json_extract(r.data, '$.cataloged_by') AS cataloged_by, json_extract(r.data, '$.version') AS version,
  s.key AS source, f.organization_id, r.version AS record_version,
  strftime('%Y-%m-%dT%H:%M:%fZ', r.updated_at, 'unixepoch') AS updated_at, NULL AS reason
FROM record AS r
JOIN sql_source AS f ON f.source_id = r.source_id
JOIN source AS s ON s.id = r.source_id
WHERE r.collection = 'site_schemas' AND NOT r.is_removed AND NOT f.is_private;

-- The records of the collection supplier_references, with what clients have asked to change.
CREATE VIEW supplier_references AS
SELECT b.id, json_extract(b.data, '$.organization_id') AS organization_id, json_extract(b.data, '$.source_domain') AS source_domain,
  json_extract(b.data, '$.source_url') AS source_url, json_extract(b.data, '$.supplier_name') AS supplier_name,
  json_extract(b.data, '$.supplier_domain') AS supplier_domain, json_extract(b.data, '$.supplier_url') AS supplier_url,
  json_extract(b.data, '$.role') AS role, json_extract(b.data, '$.context_snippet') AS context_snippet,
  json_extract(b.data, '$.confidence') AS confidence,
  coalesce(json_extract(b.asked, '$.fields.status'), json_extract(b.data, '$.status'), 'new') AS status,
  CASE WHEN b.asked IS NULL THEN json_extract(b.data, '$.linked_organization_id')
    ELSE json_extract(b.asked, '$.fields.linked_organization_id') END AS linked_organization_id,
  json_extract(b.data, '$.metadata') AS metadata, b.run_id AS ingestion_job_id, b.source, b.version AS record_version,
  strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((
    SELECT v.updated_at FROM record_version AS v WHERE v.record_id = b.id ORDER BY v.version LIMIT 1
  ), b.saved_at), 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.saved_at, 'unixepoch') AS updated_at, NULL AS reason
FROM (
  SELECT r.id, r.data, r.run_id, r.version, r.updated_at AS saved_at, s.key AS source, (
    SELECT i.params FROM inbox AS i
    WHERE i.source_id = r.source_id AND i.verb = 'records.edit' AND i.state IN ('open', 'taken')
      AND json_extract(i.params, '$.record') = r.id
    ORDER BY i.id DESC LIMIT 1) AS asked
  FROM record AS r
  JOIN sql_source AS f ON f.source_id = r.source_id
  JOIN source AS s ON s.id = r.source_id
  WHERE r.collection = 'supplier_references' AND NOT r.is_removed AND NOT f.is_private
) AS b;

-- The organizations that the sources of penstock.yaml belong to.
CREATE VIEW organizations AS
SELECT o.organization_id AS id, o.name, o.website, o.domain, o.sources,
  CASE WHEN coalesce(o.verb, '') = 'sources.hold' OR o.is_held AND coalesce(o.verb, '') <> 'sources.unhold' THEN 'blocked'
    WHEN coalesce(o.verb, '') = 'sources.pause' OR o.is_paused AND coalesce(o.verb, '') <> 'sources.resume' THEN 'paused'
    ELSE 'active' END AS status,
  (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', max(r.finished_at), 'unixepoch') FROM run AS r
    JOIN sql_source AS f ON f.source_id = r.source_id
    WHERE f.organization_id = o.organization_id AND r.state IN ('completed', 'partial') AND r.kind <> 'replay') AS last_ingested_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', o.made_at, 'unixepoch') AS created_at, NULL AS reason
FROM (
  SELECT g.*, (
    SELECT i.verb FROM inbox AS i
    WHERE i.source_id = g.first_source AND i.state IN ('open', 'taken') AND i.verb LIKE 'sources.%'
    ORDER BY i.id DESC LIMIT 1) AS verb
  FROM (
    SELECT f.organization_id, min(f.organization_name) AS name, min(f.site_url) AS website, min(f.domain) AS domain,
      json_group_array(s.key) AS sources, min(s.created_at) AS made_at,
      max(EXISTS (SELECT 1 FROM hold AS h WHERE h.scope IN ('', s.key))) AS is_held,
      min(s.paused_at IS NOT NULL) AS is_paused, min(f.source_id) AS first_source
    FROM sql_source AS f JOIN source AS s ON s.id = f.source_id
    GROUP BY f.organization_id
  ) AS g
) AS o;
