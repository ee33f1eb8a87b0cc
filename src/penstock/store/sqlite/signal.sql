-- name: signals
SELECT json_group_array(json_object(
  'id', g.id, 'name', g.name, 'data', json(g.data), 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at))
FROM (SELECT * FROM signal WHERE id > :after_id ORDER BY id LIMIT :limit) AS g
LEFT JOIN source AS s ON s.id = g.source_id;

-- name: drop_signals
-- Signals are in the order of time: where the first young one is, the old ones end.
DELETE FROM signal WHERE id IN (
  SELECT id FROM signal
  WHERE id < coalesce((SELECT id FROM signal WHERE at >= :before ORDER BY id LIMIT 1), 9223372036854775807)
  ORDER BY id LIMIT :limit
);
