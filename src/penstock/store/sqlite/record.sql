-- name: present
SELECT json_group_array(json_array(k.value ->> 0, k.value ->> 1, r.id, r.version, r.data, r.score, r.is_removed, r.source_id))
FROM jsonb_each(:keys) AS k
CROSS JOIN record AS r ON r.collection = k.value ->> 0 AND r.key = k.value ->> 1;

-- name: keep_versions
INSERT INTO record_version (record_id, version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, superseded_at, is_removed, epoch)
SELECT r.id, r.version, r.data, r.score, r.source_id, r.run_id, r.snapshot_id, r.pipeline_version, r.updated_at, :now, r.is_removed, r.epoch
FROM jsonb_each(:ids) AS c CROSS JOIN record AS r ON r.id = c.value;

-- name: update_records
UPDATE record
SET version = u.value ->> 1, data = u.value ->> 2, score = u.value ->> 3, source_id = u.value ->> 4,
  run_id = u.value ->> 5, snapshot_id = u.value ->> 6, pipeline_version = u.value ->> 7, is_removed = u.value ->> 8, updated_at = :now,
  epoch = (SELECT coalesce(max(id), 0) FROM export_cursor)
FROM jsonb_each(:updates) AS u
WHERE record.id = u.value ->> 0;

-- name: insert_records
INSERT INTO record (collection, key, version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, epoch)
SELECT value ->> 0, value ->> 1, 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, :now,
  (SELECT coalesce(max(id), 0) FROM export_cursor)
FROM jsonb_each(:inserts);

-- name: count_collections
INSERT INTO collection (name, records)
SELECT value ->> 0, value ->> 1 FROM jsonb_each(:deltas) WHERE true
ON CONFLICT (name) DO UPDATE SET records = records + excluded.records;

-- name: collections
SELECT name, records FROM collection ORDER BY name;

-- name: pipeline_versions
SELECT json_group_object(id, pipeline_version) FROM run WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: records
SELECT json_group_array(json_object(
  'key', r.key, 'data', json(r.data), 'score', r.score, 'source', s.key, 'run', r.run_id,
  'version', r.version, 'updated_at', r.updated_at, 'snapshot_id', r.snapshot_id, 'pipeline_version', r.pipeline_version
))
FROM (
  SELECT * FROM record
  WHERE collection = :collection AND key > :after_key AND NOT is_removed
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:run_id IS NULL OR run_id = :run_id)
    AND (:since IS NULL OR updated_at >= :since)
  ORDER BY key LIMIT :limit
) AS r
JOIN source AS s ON s.id = r.source_id;

-- name: versions
SELECT json_group_array(json_object(
  'key', :key, 'data', json(v.data), 'score', v.score, 'source', s.key, 'run', v.run_id,
  'version', v.version, 'updated_at', v.updated_at, 'snapshot_id', v.snapshot_id, 'pipeline_version', v.pipeline_version,
  'is_removed', json(iif(v.is_removed, 'true', 'false'))
))
FROM (
  SELECT version, data, score, source_id, run_id, snapshot_id, pipeline_version, updated_at, is_removed
  FROM record WHERE collection = :collection AND key = :key
  UNION ALL
  SELECT h.version, h.data, h.score, h.source_id, h.run_id, h.snapshot_id, h.pipeline_version, h.updated_at, h.is_removed
  FROM record_version AS h JOIN record AS r ON r.id = h.record_id
  WHERE r.collection = :collection AND r.key = :key
  ORDER BY 1
) AS v
JOIN source AS s ON s.id = v.source_id;

-- name: checkpoints
SELECT json_group_object(partition, json(cursor)) FROM checkpoint WHERE source_id = :source_id;

-- name: add_signals
INSERT INTO signal (name, data, source_id, run_id, at, is_open)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now, 1 FROM jsonb_each(:signals);
