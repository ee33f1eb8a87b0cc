-- Retention of what grows with the work that was ever done. Each of these looks at one bounded piece behind a mark.

-- name: runs_to_empty
-- Ended runs that may have jobs left, the oldest first.
SELECT json_group_array(json_array(id, finished_at)) FROM (
  SELECT id, finished_at FROM run INDEXED BY run_with_jobs
  WHERE finished_at IS NOT NULL AND is_emptied = 0 AND finished_at < :before AND (finished_at, id) > (:after_at, :after_id)
  ORDER BY finished_at, id LIMIT :limit
);

-- name: old_jobs
-- Only jobs of ended runs: an idempotency key must outlive the run it belongs to.
-- What was cancelled later than its run ended, as closed entries of quarantine are, is as young as that.
-- Each run is [id, stage, key]: where to begin in it.
SELECT json_group_array(json_array(id, run_id, stage, key)) FROM (
  SELECT job.id, job.run_id, job.stage, job.key
  FROM json_each(:runs) AS r
  CROSS JOIN job INDEXED BY sqlite_autoindex_job_1
    ON job.run_id = r.value ->> 0 AND (job.stage, job.key) > (r.value ->> 1, r.value ->> 2)
  WHERE job.state IN ('succeeded', 'skipped', 'cancelled') AND (job.state <> 'cancelled' OR job.at < :before)
  LIMIT :limit
);

-- name: note_emptied
UPDATE run SET is_emptied = 1
WHERE id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (SELECT 1 FROM job WHERE job.run_id = run.id);

-- name: old_runs
-- Of the next emptied runs, which may go. The last run of a source stays, and the last one that went well; so does what
-- another run, a rejected item, a staged change or the coverage of a backfill refers to.
SELECT json_group_array(json_array(id, finished_at, is_free)) FROM (
  SELECT r.id, r.finished_at,
    EXISTS (SELECT 1 FROM run AS n WHERE n.source_id = r.source_id AND n.id > r.id)
    AND (r.state NOT IN ('completed', 'partial') OR r.kind NOT IN ('full', 'incremental') OR EXISTS (
      SELECT 1 FROM run AS n INDEXED BY run_good
      WHERE n.source_id = r.source_id AND n.finished_at > r.finished_at
        AND n.state IN ('completed', 'partial') AND n.kind IN ('full', 'incremental')
    ))
    AND NOT EXISTS (SELECT 1 FROM run AS n WHERE n.of_run_id = r.id)
    AND NOT EXISTS (SELECT 1 FROM reject WHERE reject.run_id = r.id)
    AND NOT EXISTS (SELECT 1 FROM staged WHERE staged.run_id = r.id)
    AND NOT EXISTS (SELECT 1 FROM replay WHERE replay.run_id = r.id AND replay.state IN ('staged', 'committing'))
    AND (r.kind <> 'backfill'
      OR NOT EXISTS (SELECT 1 FROM coverage WHERE coverage.source_id = r.source_id AND coverage.run_id = r.id)) AS is_free
  FROM run AS r INDEXED BY run_emptied
  WHERE r.is_emptied = 1 AND r.finished_at < :before AND (r.finished_at, r.id) > (:after_at, :after_id)
  ORDER BY r.finished_at, r.id LIMIT :limit
);

-- name: drop_stages_of_runs
DELETE FROM run_stage WHERE run_id IN (SELECT value FROM json_each(:ids));

-- name: drop_cursors_of_runs
DELETE FROM run_cursor WHERE run_id IN (SELECT value FROM json_each(:ids));

-- name: drop_probes_of_runs
DELETE FROM probe WHERE run_id IN (SELECT value FROM json_each(:ids));

-- name: drop_replays_of_runs
DELETE FROM replay WHERE run_id IN (SELECT value FROM json_each(:ids));

-- name: drop_runs
DELETE FROM run WHERE id IN (SELECT value FROM json_each(:ids));

-- name: old_snapshots
-- The next ones, [id, whether it is old, whether it may go]. What a quarantined job fetched, or was made from, stays: it
-- is the evidence. So does what a replay is to be served from, and what its difference refers to, until it is
-- committed or dropped, and what the evidence of an alert refers to.
SELECT json_group_array(json_array(id, fetched_at < :before, fetched_at < :before
  AND NOT EXISTS (SELECT 1 FROM alert_pin WHERE alert_pin.snapshot_id = s.id)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = s.job_id AND job.state NOT IN ('succeeded', 'skipped', 'cancelled'))
  AND s.id NOT IN (
    SELECT i.snapshot_id FROM job AS q INDEXED BY job_quarantined CROSS JOIN job_item AS i ON i.job_id = q.id
    WHERE q.state = 'quarantined' AND i.snapshot_id IS NOT NULL
  )
  AND NOT EXISTS (SELECT 1 FROM staged WHERE staged.snapshot_id = s.id)
  AND NOT EXISTS (
    SELECT 1 FROM run AS o CROSS JOIN run AS r INDEXED BY run_active ON r.source_id = o.source_id
    WHERE o.id = s.run_id AND r.kind = 'replay' AND r.state IN ('queued', 'running', 'paused')
  )))
FROM (SELECT id, job_id, run_id, fetched_at FROM snapshot WHERE id > :after_id ORDER BY id LIMIT :limit) AS s;

-- name: drop_snapshots
DELETE FROM snapshot WHERE id IN (SELECT value FROM json_each(:ids));
