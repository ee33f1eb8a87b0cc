-- name: signals
SELECT coalesce(json_agg(json_build_object(
  'id', g.id, 'name', g.name, 'data', g.data::json, 'source', s.key, 'source_id', g.source_id, 'run_id', g.run_id, 'at', g.at
) ORDER BY g.id), '[]')::text
FROM (
  SELECT id, name, data, source_id, run_id, at FROM penstock.signal WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s
) AS g
LEFT JOIN penstock.source AS s ON s.id = g.source_id;

-- name: drop_signals
-- Ids become visible out of order, so by time: there are few of them.
DELETE FROM penstock.signal WHERE id IN (
  SELECT id FROM penstock.signal WHERE at < %(before)s ORDER BY id LIMIT %(limit)s
);
