-- name: add_export_cursor
INSERT INTO export_cursor (token, at) VALUES (:token, :now);

-- name: export_cursor
SELECT CAST(id AS TEXT) FROM export_cursor WHERE token = :token;

-- name: export_page
-- A page of keys is looked at, however few of them are in the range: a read is short, whatever it finds. A record that was
-- written again after `upto` is the version that it was then; one that a run wrote, the last version that the run gave it.
WITH p AS MATERIALIZED (
  SELECT id, key, epoch, run_id, version FROM record
  WHERE collection = :collection AND key > :after_key ORDER BY key LIMIT :limit
),
v AS (
  SELECT p.key, r.version, r.data, r.score, r.source_id, r.run_id, r.updated_at, r.is_removed
  FROM p CROSS JOIN record AS r ON r.id = p.id
  WHERE r.epoch < CAST(:seen_upto AS INTEGER) AND r.epoch >= CAST(coalesce(:seen_since, 0) AS INTEGER)
    AND (:run_id IS NULL OR r.run_id = :run_id)
  UNION ALL
  SELECT p.key, h.version, h.data, h.score, h.source_id, h.run_id, h.updated_at, h.is_removed
  FROM p CROSS JOIN record_version AS h ON h.record_id = p.id
  WHERE h.epoch >= CAST(coalesce(:seen_since, 0) AS INTEGER) AND (p.epoch >= CAST(:seen_upto AS INTEGER) OR p.run_id <> :run_id)
    AND h.version = (
      SELECT max(version) FROM record_version AS o
      WHERE o.record_id = p.id AND o.epoch < CAST(:seen_upto AS INTEGER) AND (:run_id IS NULL OR o.run_id = :run_id)
    )
)
SELECT json_object('last', (SELECT max(key) FROM p), 'records', json((
  SELECT json_group_array(json_object(
    'key', o.key, 'data', json(o.data), 'score', o.score, 'source', s.key, 'run', o.run_id, 'version', o.version,
    'updated_at', o.updated_at, 'is_removed', json(iif(o.is_removed, 'true', 'false'))
  ))
  FROM (SELECT * FROM v ORDER BY key) AS o JOIN source AS s ON s.id = o.source_id
)));
