-- name: signals
SELECT json_group_array(json_object(
  'id', g.id, 'name', g.name, 'data', json(g.data), 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key))
FROM (SELECT * FROM signal WHERE id > :after_id ORDER BY id LIMIT :limit) AS g
LEFT JOIN source AS s ON s.id = g.source_id;

-- name: last_signals
SELECT json_group_array(json_object(
  'id', g.id, 'name', g.name, 'data', json(g.data), 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key))
FROM (
  SELECT * FROM signal WHERE id < :before_id AND (:signal IS NULL OR name = :signal) ORDER BY id DESC LIMIT :limit
) AS g
LEFT JOIN source AS s ON s.id = g.source_id;

-- name: open_signals
SELECT json_group_array(json_object(
  'id', g.id, 'name', g.name, 'data', json(g.data), 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at,
  'actor', g.actor, 'key', g.key))
FROM (SELECT * FROM signal WHERE is_open ORDER BY id LIMIT :limit) AS g
LEFT JOIN source AS s ON s.id = g.source_id;

-- name: raise_signal
-- No row back means that one of this name and key is there already.
INSERT INTO signal (name, data, source_id, run_id, at, actor, key, is_open)
VALUES (:signal, :data, :source_id, 0, :now, :actor, :key, 1)
ON CONFLICT (name, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: close_signals
UPDATE signal SET is_open = 0 WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND is_open;

-- name: drop_signals
-- Signals are in the order of time: where the first young one is, the old ones end. The last one stays: its number
-- would be given out again, and deliveries know signals by their numbers.
DELETE FROM signal WHERE id IN (
  SELECT id FROM signal
  WHERE id < coalesce((SELECT id FROM signal WHERE at >= :before ORDER BY id LIMIT 1), (SELECT max(id) FROM signal))
  ORDER BY id LIMIT :limit
);
