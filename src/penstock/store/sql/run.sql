-- name: known_run
SELECT id FROM penstock.run WHERE source_id = :source_id AND key = :key;

-- name: restamp_if_known
UPDATE penstock.run SET pipeline_version = :version WHERE id = :id AND pipeline_version = :known RETURNING source_id;

-- name: end_run_if_active
UPDATE penstock.run SET state = :state, end_reason = :end_reason, finished_at = :now, started_at = coalesce(started_at, :now)
WHERE id = :id AND state IN ('queued', 'running', 'paused');

-- name: hand_over_if_prepared
UPDATE penstock.run SET for_drains = NOT for_drains WHERE id = :id AND for_drains RETURNING source_id;

-- name: pause_run_if_active
-- One that has not begun keeps that it has not: resuming brings back exactly what was.
UPDATE penstock.run SET state = 'paused'
WHERE id = :id AND state IN ('queued', 'running')
RETURNING source_id;

-- name: resume_run_if_paused
UPDATE penstock.run SET state = CASE WHEN started_at IS NULL THEN 'queued' ELSE 'running' END
WHERE id = :id AND state = 'paused'
RETURNING source_id;

-- name: cancel_run_if_active
UPDATE penstock.run SET state = 'cancelled', finished_at = :now
WHERE id = :id AND state IN ('draft', 'queued', 'running', 'paused')
RETURNING source_id;

-- name: run_state
SELECT state, source_id FROM penstock.run WHERE id = :id;

-- name: active_run_of
-- One of the kinds that a schedule starts: a backfill of a week or a stream must not hold it up.
SELECT id FROM penstock.run
WHERE source_id = :source_id AND state IN ('queued', 'running', 'paused') AND kind IN ('full', 'incremental', 'probe')
ORDER BY id LIMIT 1;

-- name: active_run_of_kind
SELECT id FROM penstock.run WHERE source_id = :source_id AND kind = :kind AND state IN ('queued', 'running', 'paused') AND (NOT for_drains OR options LIKE '%"by_release":%') ORDER BY id DESC LIMIT 1;
