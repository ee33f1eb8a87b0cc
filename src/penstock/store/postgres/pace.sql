-- name: lock_paces
-- In the order of their keys, so that two hosts never wait for each other in a circle.
SELECT coalesce(json_object_agg(key, next_at), '{}')::text FROM (
  SELECT key, next_at FROM penstock.pace
  WHERE key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(keys)s::jsonb)))
  ORDER BY key FOR NO KEY UPDATE
) AS locked;

-- name: add_paces
INSERT INTO penstock.pace (key, next_at)
SELECT value, 0 FROM jsonb_array_elements_text(%(keys)s::jsonb) ORDER BY value COLLATE "C"
ON CONFLICT (key) DO NOTHING;

-- name: set_paces
UPDATE penstock.pace SET next_at = wanted.next_at
FROM (
  SELECT value ->> 0 AS key, (value ->> 1)::double precision AS next_at
  FROM jsonb_array_elements(%(paces)s::jsonb)
) AS wanted
WHERE pace.key = wanted.key;
