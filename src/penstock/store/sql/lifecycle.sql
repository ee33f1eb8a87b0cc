-- name: start_run_if_draft
UPDATE penstock.run SET state = 'queued', queued_at = :now WHERE id = :id AND state = 'draft' RETURNING source_id;

-- name: add_hold
INSERT INTO penstock.hold (scope, at, actor, reason) VALUES (:scope, :now, :actor, :reason)
ON CONFLICT (scope) DO NOTHING;

-- name: drop_hold
DELETE FROM penstock.hold WHERE scope = :scope;

-- name: carry_cursors
-- A run goes on where the one that it continues has come to.
INSERT INTO penstock.run_cursor (run_id, partition, cursor, last_offset, at)
SELECT :run_id, partition, cursor, last_offset, at FROM penstock.run_cursor WHERE run_id = :continues
ON CONFLICT (run_id, partition) DO NOTHING;
