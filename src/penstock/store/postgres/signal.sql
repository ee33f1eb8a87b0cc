-- name: signals
SELECT coalesce(json_agg(json_build_object(
  'id', g.id, 'name', g.name, 'data', g.data::json, 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key
) ORDER BY g.id), '[]')::text
FROM (
  SELECT id, name, data, source_id, run_id, at, actor, key
  FROM penstock.signal WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s
) AS g
LEFT JOIN penstock.source AS s ON s.id = g.source_id;

-- name: last_signals
SELECT coalesce(json_agg(json_build_object(
  'id', g.id, 'name', g.name, 'data', g.data::json, 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key
) ORDER BY g.id DESC), '[]')::text
FROM (
  SELECT id, name, data, source_id, run_id, at, actor, key
  FROM penstock.signal WHERE id < %(before_id)s AND (%(signal)s::text IS NULL OR name = %(signal)s) ORDER BY id DESC LIMIT %(limit)s
) AS g
LEFT JOIN penstock.source AS s ON s.id = g.source_id;

-- name: open_signals
SELECT coalesce(json_agg(json_build_object(
  'id', g.id, 'name', g.name, 'data', g.data::json, 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key
) ORDER BY g.id), '[]')::text
FROM (
  SELECT id, name, data, source_id, run_id, at, actor, key
  FROM penstock.signal WHERE is_open ORDER BY id LIMIT %(limit)s
) AS g
LEFT JOIN penstock.source AS s ON s.id = g.source_id;

-- name: raise_signal
-- No row back means that one of this name and key is there already.
INSERT INTO penstock.signal (name, data, source_id, run_id, at, actor, key, is_open)
VALUES (%(signal)s, %(data)s, %(source_id)s, 0, %(now)s, %(actor)s, %(key)s, true)
ON CONFLICT (name, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: close_signals
UPDATE penstock.signal SET is_open = false WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND is_open;

-- name: drop_signals
-- Ids become visible out of order, so by time: there are few of them.
DELETE FROM penstock.signal WHERE id IN (
  SELECT id FROM penstock.signal WHERE at < %(before)s ORDER BY id LIMIT %(limit)s
);
