-- name: lock_paces
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT json_group_object(key, next_at) FROM pace WHERE key IN (SELECT value FROM jsonb_each(:keys));

-- name: add_paces
INSERT INTO pace (key, next_at) SELECT value, 0.0 FROM jsonb_each(:keys) WHERE true
ON CONFLICT (key) DO NOTHING;

-- name: set_paces
UPDATE pace SET next_at = wanted.next_at
FROM (SELECT value ->> 0 AS key, value ->> 1 AS next_at FROM jsonb_each(:paces)) AS wanted
WHERE pace.key = wanted.key;
