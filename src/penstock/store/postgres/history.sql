-- Retention of what grows with the work that was ever done. Each of these looks at one bounded piece behind a mark: what
-- was deleted before it stays in the index until it is vacuumed, and would be passed over again and again.

-- name: runs_to_empty
-- Ended runs that may have jobs left, the oldest first.
SELECT coalesce(json_agg(json_build_array(id, finished_at) ORDER BY finished_at, id), '[]')::text FROM (
  SELECT id, finished_at FROM penstock.run
  WHERE finished_at IS NOT NULL AND NOT is_emptied AND finished_at < %(before)s
    AND (finished_at, id) > (%(after_at)s::double precision, %(after_id)s::bigint)
  ORDER BY finished_at, id LIMIT %(limit)s
) AS r;

-- name: old_jobs
-- Only jobs of ended runs: an idempotency key must outlive the run it belongs to.
-- What was cancelled later than its run ended, as closed entries of quarantine are, is as young as that.
-- Each run is [id, stage, key]: where to begin in it.
SELECT coalesce(json_agg(json_build_array(o.id, o.run_id, o.stage, o.key)), '[]')::text FROM (
  SELECT j.id, j.run_id, j.stage, j.key FROM jsonb_array_elements(%(runs)s::jsonb) AS r
  CROSS JOIN LATERAL (
    SELECT o.id, k.run_id, k.stage, k.key
    FROM (
      SELECT run_id, stage, key, job_id FROM penstock.job_key
      WHERE run_id = (r ->> 0)::bigint AND (stage, key) > (r ->> 1, r ->> 2) ORDER BY run_id, stage, key OFFSET 0
    ) AS k
    CROSS JOIN LATERAL (
      SELECT id FROM penstock.job
      WHERE id = k.job_id AND state || '' IN ('succeeded', 'skipped', 'cancelled')
        AND (state || '' <> 'cancelled' OR at < %(before)s) FOR UPDATE SKIP LOCKED
    ) AS o
    LIMIT %(limit)s
  ) AS j
  LIMIT %(limit)s
) AS o;

-- name: note_emptied
UPDATE penstock.run SET is_emptied = true
WHERE id = ANY (ARRAY(
  SELECT r.id FROM (
    SELECT id FROM penstock.run WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
  ) AS r
  WHERE (SELECT k.job_id FROM penstock.job_key AS k WHERE k.run_id = r.id LIMIT 1) IS NULL
)) AND finished_at IS NOT NULL;

-- name: old_runs
-- Of the next emptied runs, which may go. The last run of a source stays, and the last one that went well; so does what
-- another run, a rejected item, a staged change or the coverage of a backfill refers to.
SELECT coalesce(json_agg(json_build_array(r.id, r.finished_at,
  EXISTS (SELECT 1 FROM penstock.run AS n WHERE n.source_id = r.source_id AND n.id > r.id)
  AND (r.state NOT IN ('completed', 'partial') OR r.kind NOT IN ('full', 'incremental') OR EXISTS (
    SELECT 1 FROM penstock.run AS n
    WHERE n.source_id = r.source_id AND n.finished_at > r.finished_at
      AND n.state IN ('completed', 'partial') AND n.kind IN ('full', 'incremental')
  ))
  AND NOT EXISTS (SELECT 1 FROM penstock.run AS n WHERE n.of_run_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM penstock.reject WHERE reject.run_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM penstock.staged WHERE staged.run_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM penstock.replay WHERE replay.run_id = r.id AND replay.state IN ('staged', 'committing'))
  AND (r.kind <> 'backfill'
    OR NOT EXISTS (SELECT 1 FROM penstock.coverage WHERE coverage.source_id = r.source_id AND coverage.run_id = r.id))
) ORDER BY r.finished_at, r.id), '[]')::text
FROM (
  SELECT id, source_id, kind, state, finished_at FROM penstock.run
  WHERE is_emptied AND finished_at < %(before)s
    AND (finished_at, id) > (%(after_at)s::double precision, %(after_id)s::bigint)
  ORDER BY finished_at, id LIMIT %(limit)s
) AS r;

-- name: drop_stages_of_runs
DELETE FROM penstock.run_stage WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_cursors_of_runs
DELETE FROM penstock.run_cursor WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_probes_of_runs
DELETE FROM penstock.probe WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_replays_of_runs
DELETE FROM penstock.replay WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_runs
-- With what was tallied of them: nobody is left to fold it.
WITH tallied AS (DELETE FROM penstock.tally WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]))
DELETE FROM penstock.run WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: old_snapshots
-- The next ones, [id, whether it is old, whether it may go]. What a quarantined job fetched, or was made from, stays: it
-- is the evidence. So does what a replay is to be served from, and what its difference refers to, until it is
-- committed or dropped, and what the evidence of an alert refers to.
SELECT coalesce(json_agg(json_build_array(s.id, s.fetched_at < %(before)s, s.fetched_at < %(before)s
  AND NOT EXISTS (SELECT 1 FROM penstock.alert_pin WHERE alert_pin.snapshot_id = s.id)
  AND NOT EXISTS (
    SELECT 1 FROM penstock.job WHERE job.id = s.job_id AND job.state NOT IN ('succeeded', 'skipped', 'cancelled')
  )
  AND s.id NOT IN (
    SELECT i.snapshot_id FROM (SELECT id FROM penstock.job WHERE state = 'quarantined' OFFSET 0) AS q
    CROSS JOIN LATERAL (SELECT snapshot_id FROM penstock.job_item WHERE job_id = q.id OFFSET 0) AS i
    WHERE i.snapshot_id IS NOT NULL
  )
  AND NOT EXISTS (SELECT 1 FROM penstock.staged WHERE staged.snapshot_id = s.id)
  AND NOT EXISTS (
    SELECT 1 FROM penstock.run AS o JOIN penstock.run AS r ON r.source_id = o.source_id
    WHERE o.id = s.run_id AND r.kind = 'replay' AND r.state IN ('queued', 'running', 'paused')
  )) ORDER BY s.id), '[]')::text
FROM (
  SELECT id, job_id, run_id, fetched_at FROM penstock.snapshot WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s
) AS s;

-- name: drop_snapshots
DELETE FROM penstock.snapshot WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);
