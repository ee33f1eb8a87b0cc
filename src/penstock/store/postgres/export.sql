-- name: add_export_cursor
INSERT INTO penstock.export_cursor (token, seen, at) VALUES (%(token)s, pg_current_snapshot()::text, %(now)s);

-- name: export_cursor
SELECT seen FROM penstock.export_cursor WHERE token = %(token)s;

-- name: export_page
-- A page of keys is looked at, however few of them are in the range: a read is short, whatever it finds. A record that was
-- written again after `upto` is the version that it was then; one that a run wrote, the last version that the run gave it.
WITH p AS MATERIALIZED (
  SELECT id, key, run_id, pg_visible_in_snapshot(tx::text::xid8, %(seen_upto)s::pg_snapshot) AS is_seen FROM penstock.record
  WHERE collection = %(collection)s AND key > %(after_key)s ORDER BY key LIMIT %(limit)s
),
v AS (
  SELECT p.key, r.version, r.data, r.score, r.source_id, r.run_id, r.updated_at, r.is_removed, r.tx
  FROM p CROSS JOIN LATERAL (
    SELECT version, data, score, source_id, run_id, updated_at, is_removed, tx FROM penstock.record WHERE id = p.id OFFSET 0
  ) AS r
  WHERE p.is_seen AND (%(run_id)s::bigint IS NULL OR r.run_id = %(run_id)s)
  UNION ALL
  SELECT p.key, h.version, h.data, h.score, h.source_id, h.run_id, h.updated_at, h.is_removed, h.tx
  FROM p CROSS JOIN LATERAL (
    SELECT o.version, o.data, o.score, o.source_id, o.run_id, o.updated_at, o.is_removed, o.tx FROM penstock.record_version AS o
    WHERE o.record_id = p.id AND pg_visible_in_snapshot(o.tx::text::xid8, %(seen_upto)s::pg_snapshot)
      AND (%(run_id)s::bigint IS NULL OR o.run_id = %(run_id)s)
    ORDER BY o.version DESC LIMIT 1
  ) AS h
  WHERE NOT p.is_seen OR p.run_id <> %(run_id)s
)
SELECT json_build_object('last', (SELECT key FROM p ORDER BY key DESC LIMIT 1), 'records', (
  SELECT coalesce(json_agg(json_build_object(
    'key', v.key, 'data', v.data::json, 'score', v.score, 'source', s.key, 'run', v.run_id, 'version', v.version,
    'updated_at', v.updated_at, 'is_removed', v.is_removed
  ) ORDER BY v.key), '[]')
  FROM v JOIN penstock.source AS s ON s.id = v.source_id
  WHERE %(seen_since)s::pg_snapshot IS NULL OR NOT pg_visible_in_snapshot(v.tx::text::xid8, %(seen_since)s::pg_snapshot)
))::text;
