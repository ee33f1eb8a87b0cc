-- name: cancel_job_if_open
UPDATE penstock.job SET state = 'cancelled', worker = NULL, due_at = NULL, at = :now
WHERE id = :id AND state = :leaves
RETURNING run_id, source_id, stage, attempt;

-- name: unswept_run
SELECT id FROM penstock.run WHERE state = 'cancelled' AND swept_at IS NULL LIMIT 1;
