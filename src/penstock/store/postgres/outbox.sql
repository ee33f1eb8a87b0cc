-- name: drop_other_hooks
DELETE FROM penstock.hook WHERE (name, state, source_id) NOT IN (
  SELECT h ->> 0, h ->> 1, (h ->> 2)::bigint FROM jsonb_array_elements(%(hooks)s::jsonb) AS h
);

-- name: add_hooks
INSERT INTO penstock.hook (name, state, source_id)
SELECT h ->> 0, h ->> 1, (h ->> 2)::bigint FROM jsonb_array_elements(%(hooks)s::jsonb) AS h
ORDER BY 1, 2
ON CONFLICT (name, state) DO NOTHING;

-- name: hooks_of_ends
-- Who is to be told of these ends: the hook, and the run.
SELECT h.name, (e ->> 0)::bigint FROM jsonb_array_elements(%(ends)s::jsonb) AS e
JOIN penstock.hook AS h ON h.state = e ->> 2 AND h.source_id IN (0, (e ->> 1)::bigint)
ORDER BY 2, 1;

-- name: add_outbox
INSERT INTO penstock.outbox (hook, run_id, state, body, created_at, due_at)
SELECT t ->> 0, (t ->> 1)::bigint, t ->> 2, t ->> 3, %(now)s, %(now)s FROM jsonb_array_elements(%(told)s::jsonb) AS t
ON CONFLICT (hook, run_id, created_at) DO NOTHING;

-- name: claim_outbox
-- Each is somebody's to send for a while; whoever does not say in time how it went is followed by another.
UPDATE penstock.outbox SET attempts = attempts + 1, due_at = %(until)s
WHERE id IN (
  SELECT id FROM penstock.outbox WHERE due_at <= %(now)s ORDER BY due_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
RETURNING id, hook, run_id, state, body, attempts;

-- name: outbox
SELECT coalesce(json_agg(json_build_object(
  'id', o.id, 'hook', o.hook, 'run_id', o.run_id, 'source', s.key, 'run_state', o.state, 'created_at', o.created_at,
  'due_at', o.due_at, 'attempts', o.attempts, 'delivered_at', o.delivered_at, 'error', o.error
) ORDER BY o.id DESC), '[]')::text
FROM (
  SELECT id, hook, run_id, state, created_at, due_at, attempts, delivered_at, error FROM penstock.outbox
  WHERE id < %(before_id)s AND (NOT %(undelivered_only)s OR delivered_at IS NULL) ORDER BY id DESC LIMIT %(limit)s
) AS o
LEFT JOIN penstock.run AS r ON r.id = o.run_id
LEFT JOIN penstock.source AS s ON s.id = r.source_id;
