-- name: drop_other_hooks
DELETE FROM hook WHERE (name, state, source_id) NOT IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:hooks));

-- name: add_hooks
INSERT INTO hook (name, state, source_id)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:hooks) WHERE true
ON CONFLICT (name, state) DO NOTHING;

-- name: hooks_of_ends
-- Who is to be told of these ends: the hook, and the run.
SELECT h.name, e.value ->> 0 FROM jsonb_each(:ends) AS e
CROSS JOIN hook AS h ON h.state = e.value ->> 2 AND h.source_id IN (0, e.value ->> 1)
ORDER BY e.value ->> 0, h.name;

-- name: add_outbox
INSERT INTO outbox (hook, run_id, state, body, created_at, due_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now, :now FROM jsonb_each(:told) WHERE true
ON CONFLICT (hook, run_id, created_at) DO NOTHING;

-- name: claim_outbox
-- Each is somebody's to send for a while; whoever does not say in time how it went is followed by another.
UPDATE outbox SET attempts = attempts + 1, due_at = :until
WHERE id IN (SELECT id FROM outbox WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit)
RETURNING id, hook, run_id, state, body, attempts;

-- name: outbox
SELECT json_group_array(json_object(
  'id', o.id, 'hook', o.hook, 'run_id', o.run_id, 'source', s.key, 'run_state', o.state, 'created_at', o.created_at,
  'due_at', o.due_at, 'attempts', o.attempts, 'delivered_at', o.delivered_at, 'error', o.error))
FROM (
  SELECT * FROM outbox WHERE id < :before_id AND (NOT :undelivered_only OR delivered_at IS NULL) ORDER BY id DESC LIMIT :limit
) AS o
LEFT JOIN run AS r ON r.id = o.run_id
LEFT JOIN source AS s ON s.id = r.source_id;
