-- name: present
-- Locked in the order of their keys: two who save the same records wait for each other in one direction only.
SELECT coalesce(json_agg(json_build_array(p.collection, p.key, p.id, p.version, p.data, p.score, p.is_removed, p.source_id)), '[]')::text
FROM (
  SELECT r.collection, r.key, r.id, r.version, r.data, r.score, r.is_removed, r.source_id
  FROM (
    SELECT v ->> 0 AS collection, v ->> 1 AS key FROM jsonb_array_elements(%(keys)s::jsonb) AS v
    ORDER BY (v ->> 0) COLLATE "C", (v ->> 1) COLLATE "C"
  ) AS k
  CROSS JOIN LATERAL (
    SELECT collection, key, id, version, data, score, is_removed, source_id FROM penstock.record
    WHERE collection = k.collection AND key = k.key FOR NO KEY UPDATE
  ) AS r
) AS p;

-- name: keep_versions
INSERT INTO penstock.record_version (record_id, version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, superseded_at, is_removed, tx)
SELECT id, version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, %(now)s, is_removed, tx
FROM penstock.record WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: update_records
WITH u AS MATERIALIZED (SELECT jsonb_object_agg(v ->> 0, v) AS by_id FROM jsonb_array_elements(%(updates)s::jsonb) AS v)
UPDATE penstock.record
SET updated_at = %(now)s, tx = pg_current_xact_id()::text::bigint, (version, data, score, source_id, run_id, snapshot_id, pipeline_version, is_removed) = (
  SELECT (own ->> 1)::bigint, own ->> 2, (own ->> 3)::double precision, (own ->> 4)::bigint, (own ->> 5)::bigint,
    (own ->> 6)::bigint, own ->> 7, (own ->> 8)::boolean
  FROM (SELECT (SELECT by_id FROM u) -> record.id::text AS own OFFSET 0) AS x
)
WHERE id = ANY (ARRAY(SELECT k::bigint FROM jsonb_object_keys((SELECT by_id FROM u)) AS k));

-- name: insert_records
-- One that somebody else has inserted meanwhile is left as it is, and missing from the count.
INSERT INTO penstock.record (collection, key, version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at)
SELECT i ->> 0, i ->> 1, 1, i ->> 2, (i ->> 3)::double precision, (i ->> 4)::bigint, (i ->> 5)::bigint,
  (i ->> 6)::bigint, i ->> 7, %(now)s
FROM jsonb_array_elements(%(inserts)s::jsonb) AS i
ORDER BY i ->> 0, i ->> 1
ON CONFLICT (collection, key) DO NOTHING;

-- name: count_collections
INSERT INTO penstock.collection (name, records)
SELECT d ->> 0, (d ->> 1)::bigint FROM jsonb_array_elements(%(deltas)s::jsonb) AS d;

-- name: collections
SELECT name, sum(records)::bigint FROM penstock.collection GROUP BY name ORDER BY name;

-- name: pipeline_versions
SELECT coalesce(json_object_agg(id, pipeline_version), '{}')::text
FROM penstock.run WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: records
SELECT coalesce(json_agg(json_build_object(
  'key', r.key, 'data', r.data::json, 'score', r.score, 'source', s.key, 'run', r.run_id,
  'version', r.version, 'updated_at', r.updated_at, 'snapshot_id', r.snapshot_id, 'pipeline_version', r.pipeline_version
) ORDER BY r.key), '[]')::text
FROM (
  SELECT key, data, score, source_id, run_id, version, updated_at, snapshot_id, pipeline_version FROM penstock.record
  WHERE collection = %(collection)s AND key > %(after_key)s AND NOT is_removed
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
    AND (%(since)s::double precision IS NULL OR updated_at >= %(since)s)
  ORDER BY key LIMIT %(limit)s
) AS r
JOIN penstock.source AS s ON s.id = r.source_id;

-- name: versions
SELECT coalesce(json_agg(json_build_object(
  'key', %(key)s::text, 'data', v.data::json, 'score', v.score, 'source', s.key, 'run', v.run_id,
  'version', v.version, 'updated_at', v.updated_at, 'snapshot_id', v.snapshot_id, 'pipeline_version', v.pipeline_version,
  'is_removed', v.is_removed
) ORDER BY v.version), '[]')::text
FROM (
  SELECT version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, is_removed
  FROM penstock.record WHERE collection = %(collection)s AND key = %(key)s
  UNION ALL
  SELECT version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, is_removed
  FROM penstock.record_version
  WHERE record_id = (SELECT id FROM penstock.record WHERE collection = %(collection)s AND key = %(key)s)
) AS v
JOIN penstock.source AS s ON s.id = v.source_id;

-- name: checkpoints
SELECT coalesce(json_object_agg(partition, cursor::json), '{}')::text
FROM penstock.checkpoint WHERE source_id = %(source_id)s;

-- name: add_signals
INSERT INTO penstock.signal (name, data, source_id, run_id, at, is_open)
SELECT s ->> 0, s ->> 1, (s ->> 2)::bigint, (s ->> 3)::bigint, %(now)s, true
FROM jsonb_array_elements(%(signals)s::jsonb) AS s;
