-- name: next_outbox_due
SELECT min(due_at) FROM penstock.outbox WHERE due_at IS NOT NULL;

-- name: accept_outbox
UPDATE penstock.outbox SET delivered_at = :now, due_at = NULL, error = '' WHERE id = :id AND delivered_at IS NULL;

-- name: refuse_outbox
UPDATE penstock.outbox SET error = :error, due_at = :due_at
WHERE id = :id AND delivered_at IS NULL AND attempts = :attempts;

-- name: retry_outbox
UPDATE penstock.outbox SET due_at = :now, attempts = 0 WHERE id = :id AND delivered_at IS NULL;

-- name: outbox_state
SELECT delivered_at IS NOT NULL, run_id, hook FROM penstock.outbox WHERE id = :id;

-- name: drop_outbox
DELETE FROM penstock.outbox WHERE id IN (
  SELECT id FROM penstock.outbox WHERE due_at IS NULL AND created_at < :before ORDER BY id LIMIT :limit
);

-- name: send_head_if_due
INSERT INTO penstock.outbox (hook, run_id, state, body, created_at, due_at)
SELECT :hook, 0, 'audit', :body, :now, :now
WHERE NOT EXISTS (
  SELECT 1 FROM penstock.outbox WHERE hook = :hook AND run_id = 0 AND created_at > :since
);
