-- One row for each run of a source, and for each INSERT that no run has come of yet.
-- In a select of its own: Postgres takes a UNION ALL apart even behind a security barrier, and would then give a client's
-- function rows that are kept back.
CREATE VIEW penstock_sql.ingestion_jobs WITH (security_barrier) AS
SELECT u.* FROM (
SELECT r.id, f.organization_id, f.site_url, f.job_type,
  CASE WHEN t.own IN ('queued', 'running') AND t.stopped_by IS NOT NULL THEN 'blocked' ELSE t.own END AS status,
  CASE WHEN r.started_at IS NULL THEN 0 ELSE 1 + r.reopened END::integer AS attempt,
  (SELECT min(g.priority) FROM penstock.run_stage AS g WHERE g.run_id = r.id)::integer AS priority,
  to_timestamp(r.created_at) AS scheduled_for,
  to_timestamp(r.started_at) AS started_at,
  to_timestamp(r.finished_at) AS completed_at,
  CASE WHEN f.is_private THEN '{}'::jsonb ELSE coalesce(r.options::jsonb -> 'params', '{}'::jsonb) END AS payload,
  CASE WHEN r.finished_at IS NOT NULL THEN (
    SELECT jsonb_build_object(
      'inserted', r.inserted + coalesce(sum(l.inserted), 0), 'updated', r.updated + coalesce(sum(l.updated), 0),
      'unchanged', r.unchanged + coalesce(sum(l.unchanged), 0), 'rejected', r.rejected + coalesce(sum(l.rejected), 0),
      'quarantined', (SELECT coalesce(sum(c.quarantined), 0) FROM penstock.stage_count AS c WHERE c.run_id = r.id))
    FROM penstock.tally AS l
    WHERE l.run_id = r.id AND l.id > (SELECT w.floor FROM penstock.run_floor AS w WHERE w.run_id = r.id)
  ) END AS result,
  CASE WHEN r.state IN ('partial', 'failed') THEN coalesce((
    SELECT concat_ws(': ', nullif(r.end_reason, ''), CASE WHEN f.is_private THEN e.kind ELSE e.error END)
    FROM penstock.job AS j JOIN penstock.job_failure AS e ON e.job_id = j.id
    WHERE j.run_id = r.id AND j.state = 'quarantined' ORDER BY j.id LIMIT 1
  ), nullif(r.end_reason, ''), r.state) END AS error_message,
  to_timestamp(r.created_at) AS created_at,
  to_timestamp(greatest(r.created_at, r.started_at, r.queued_at, r.finished_at, q.at)) AS updated_at,
  s.key AS source, r.kind, r.state,
  CASE WHEN t.own = 'blocked' THEN CASE WHEN r.state = 'draft' THEN 'draft' ELSE 'run' END
    WHEN t.own IN ('queued', 'running') THEN t.stopped_by END AS blocked_by,
  r.reason,
  (SELECT max(i.id) FROM penstock.inbox AS i WHERE i.run_id = r.id AND i.verb = 'runs.start') AS request_id,
  (SELECT i.key FROM penstock.inbox AS i WHERE i.run_id = r.id AND i.verb = 'runs.start' AND i.key IS NOT NULL
    ORDER BY i.id LIMIT 1) AS idempotency_key,
  (SELECT i.error FROM penstock.inbox AS i WHERE i.run_id = r.id AND i.state = 'refused' ORDER BY i.id DESC LIMIT 1) AS request_error
FROM penstock.run AS r
JOIN penstock.sql_source AS f ON f.source_id = r.source_id
JOIN penstock.source AS s ON s.id = r.source_id
LEFT JOIN LATERAL (
  SELECT i.verb, i.at FROM penstock.inbox AS i
  WHERE i.run_id = r.id AND i.state IN ('open', 'taken') ORDER BY i.id DESC LIMIT 1
) AS q ON true
CROSS JOIN LATERAL (
  SELECT CASE
      WHEN q.verb = 'runs.cancel' THEN 'cancelled'
      WHEN q.verb = 'runs.pause' THEN 'blocked'
      WHEN q.verb IN ('runs.begin', 'runs.retry') THEN 'queued'
      WHEN q.verb = 'runs.resume' THEN CASE WHEN r.started_at IS NULL THEN 'queued' ELSE 'running' END
      WHEN r.state = 'completed' THEN 'succeeded'
      WHEN r.state IN ('partial', 'failed') THEN 'failed'
      WHEN r.state IN ('paused', 'draft') THEN 'blocked'
      ELSE r.state END AS own,
    CASE
      WHEN EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope = '') THEN 'hold of everything'
      WHEN EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope = s.key) THEN 'hold of the source'
      WHEN s.paused_at IS NOT NULL THEN 'pause of the source' END AS stopped_by
) AS t
WHERE r.key <> 'edits' AND penstock_sql.penstock_sees(f.organization_id)
UNION ALL
SELECT -i.id, f.organization_id, f.site_url, f.job_type,
  CASE i.state WHEN 'blocked' THEN 'blocked' WHEN 'refused' THEN 'failed' WHEN 'cancelled' THEN 'cancelled'
    ELSE CASE WHEN t.stopped_by IS NULL THEN 'queued' ELSE 'blocked' END END,
  0, (i.params::jsonb ->> 'priority')::integer,
  to_timestamp(coalesce(i.due_at, i.at)), NULL, to_timestamp(i.ended_at),
  CASE WHEN f.is_private THEN '{}'::jsonb ELSE coalesce(i.params::jsonb -> 'params', '{}'::jsonb) END,
  NULL, nullif(i.error, ''), to_timestamp(i.at), to_timestamp(coalesce(i.ended_at, i.at)),
  s.key, i.params::jsonb ->> 'kind', i.state,
  CASE i.state WHEN 'blocked' THEN 'request' WHEN 'refused' THEN NULL WHEN 'cancelled' THEN NULL ELSE t.stopped_by END,
  i.reason, i.id, i.key, nullif(i.error, '')
FROM penstock.inbox AS i
JOIN penstock.sql_source AS f ON f.source_id = i.source_id
JOIN penstock.source AS s ON s.id = i.source_id
CROSS JOIN LATERAL (
  SELECT CASE
      WHEN EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope = '') THEN 'hold of everything'
      WHEN EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope = s.key) THEN 'hold of the source'
      WHEN s.paused_at IS NOT NULL THEN 'pause of the source' END AS stopped_by
) AS t
WHERE i.verb = 'runs.start' AND i.run_id IS NULL AND penstock_sql.penstock_sees(f.organization_id)
) AS u;

-- The records of the collection site_schemas, with what clients have asked to change.
CREATE VIEW penstock_sql.source_site_schemas WITH (security_barrier) AS
SELECT r.id, d.v ->> 'domain' AS domain, d.v ->> 'site_name' AS site_name, d.v ->> 'site_type' AS site_type,
  d.v -> 'schema_data' AS schema_data,
  (d.v ->> 'classification_confidence')::double precision AS classification_confidence,
  nullif(d.v -> 'image_include_selectors', 'null') AS image_include_selectors,
  nullif(d.v -> 'image_exclude_selectors', 'null') AS image_exclude_selectors,
  nullif(d.v -> 'pollution_notes', 'null') AS pollution_notes,
  nullif(d.v -> 'supplier_references', 'null') AS supplier_references,
  nullif(d.v -> 'schema_proposals', 'null') AS schema_proposals,
  (d.v ->> 'cataloged_at')::timestamptz AS cataloged_at,
  (d.v ->> 'last_verified_at')::timestamptz AS last_verified_at,
  (d.v ->> 'is_valid')::boolean AS is_valid,
  (d.v ->> 'extraction_confidence')::double precision AS extraction_confidence,
  d.v ->> 'cataloged_by' AS cataloged_by, (d.v ->> 'version')::integer AS version,
  s.key AS source, f.organization_id, r.version::integer AS record_version,
  to_timestamp(r.updated_at) AS updated_at, NULL::text AS reason
FROM penstock.record AS r
JOIN penstock.sql_source AS f ON f.source_id = r.source_id
JOIN penstock.source AS s ON s.id = r.source_id
CROSS JOIN LATERAL (
  SELECT r.data::jsonb || coalesce((
    SELECT jsonb_object_agg(x.key, x.value ORDER BY i.id)
    FROM penstock.inbox AS i, jsonb_each(i.params::jsonb -> 'fields') AS x
    WHERE i.source_id = r.source_id AND i.verb = 'records.edit' AND i.state IN ('open', 'taken')
      AND (i.params::jsonb ->> 'record')::bigint = r.id), '{}'::jsonb) AS v
) AS d
WHERE r.collection = 'site_schemas' AND NOT r.is_removed AND NOT f.is_private AND penstock_sql.penstock_sees(f.organization_id);

-- The records of the collection supplier_references, with what clients have asked to change.
CREATE VIEW penstock_sql.supplier_references WITH (security_barrier) AS
SELECT r.id, d.v ->> 'organization_id' AS organization_id, d.v ->> 'source_domain' AS source_domain,
  d.v ->> 'source_url' AS source_url, d.v ->> 'supplier_name' AS supplier_name, d.v ->> 'supplier_domain' AS supplier_domain,
  d.v ->> 'supplier_url' AS supplier_url, d.v ->> 'role' AS role, d.v ->> 'context_snippet' AS context_snippet,
  (d.v ->> 'confidence')::double precision AS confidence, coalesce(d.v ->> 'status', 'new') AS status,
  d.v ->> 'linked_organization_id' AS linked_organization_id, d.v -> 'metadata' AS metadata,
  r.run_id AS ingestion_job_id, s.key AS source, r.version::integer AS record_version,
  to_timestamp(coalesce((
    SELECT v.updated_at FROM penstock.record_version AS v WHERE v.record_id = r.id ORDER BY v.version LIMIT 1
  ), r.updated_at)) AS created_at,
  to_timestamp(r.updated_at) AS updated_at, NULL::text AS reason
FROM penstock.record AS r
JOIN penstock.sql_source AS f ON f.source_id = r.source_id
JOIN penstock.source AS s ON s.id = r.source_id
CROSS JOIN LATERAL (
  SELECT r.data::jsonb || coalesce((
    SELECT jsonb_object_agg(x.key, x.value ORDER BY i.id)
    FROM penstock.inbox AS i, jsonb_each(i.params::jsonb -> 'fields') AS x
    WHERE i.source_id = r.source_id AND i.verb = 'records.edit' AND i.state IN ('open', 'taken')
      AND (i.params::jsonb ->> 'record')::bigint = r.id), '{}'::jsonb) AS v
) AS d
WHERE r.collection = 'supplier_references' AND NOT r.is_removed AND NOT f.is_private
  AND penstock_sql.penstock_sees(f.organization_id);

-- The organizations that the sources of penstock.yaml belong to.
CREATE VIEW penstock_sql.organizations WITH (security_barrier) AS
SELECT o.organization_id AS id, o.name, o.website, o.domain, o.sources,
  CASE WHEN coalesce(q.verb = 'sources.hold', false) OR o.is_held AND coalesce(q.verb, '') <> 'sources.unhold' THEN 'blocked'
    WHEN coalesce(q.verb = 'sources.pause', false) OR o.is_paused AND coalesce(q.verb, '') <> 'sources.resume' THEN 'paused'
    ELSE 'active' END AS status,
  (SELECT to_timestamp(max(r.finished_at)) FROM penstock.run AS r JOIN penstock.sql_source AS f ON f.source_id = r.source_id
    WHERE f.organization_id = o.organization_id AND r.state IN ('completed', 'partial') AND r.kind <> 'replay') AS last_ingested_at,
  to_timestamp(o.created_at) AS created_at, NULL::text AS reason
FROM (
  SELECT f.organization_id, min(f.organization_name) AS name, min(f.site_url) AS website, min(f.domain) AS domain,
    jsonb_agg(s.key ORDER BY s.key) AS sources, min(s.created_at) AS created_at,
    bool_or(EXISTS (SELECT 1 FROM penstock.hold AS h WHERE h.scope IN ('', s.key))) AS is_held,
    bool_and(s.paused_at IS NOT NULL) AS is_paused, min(f.source_id) AS first_source
  FROM penstock.sql_source AS f JOIN penstock.source AS s ON s.id = f.source_id
  WHERE penstock_sql.penstock_sees(f.organization_id)
  GROUP BY f.organization_id
) AS o
LEFT JOIN LATERAL (
  SELECT i.verb FROM penstock.inbox AS i
  WHERE i.source_id = o.first_source AND i.state IN ('open', 'taken') AND i.verb LIKE 'sources.%'
  ORDER BY i.id DESC LIMIT 1
) AS q ON true;
