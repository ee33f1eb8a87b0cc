-- name: live_run_of
-- A run that may move the checkpoints of its source and has not ended.
SELECT id FROM penstock.run
WHERE source_id = :source_id AND state IN ('queued', 'running', 'paused') AND kind NOT IN ('backfill', 'replay', 'probe')
ORDER BY id LIMIT 1;
