-- name: recovered_drafts
-- Those that wait until their source is not degraded any more, where it is not.
SELECT json_group_array(id) FROM (
  SELECT run.id FROM run INDEXED BY run_draft
  WHERE run.state = 'draft' AND run.options ->> 'waits_for_recovery'
    AND NOT EXISTS (SELECT 1 FROM health AS h WHERE h.source_id = run.source_id AND h.degraded_at IS NOT NULL)
  ORDER BY run.id LIMIT 100
);

-- name: followers
-- Drafts whose run has ended, each with how that has ended.
SELECT json_group_array(json_array(id, state)) FROM (
  SELECT run.id, o.state FROM run INDEXED BY run_draft CROSS JOIN run AS o ON o.id = run.of_run_id
  WHERE run.state = 'draft' AND run.options ->> 'follows' AND o.finished_at IS NOT NULL
  ORDER BY run.id LIMIT 100
);

-- name: open_followers
SELECT EXISTS (
  SELECT 1 FROM run INDEXED BY run_of WHERE of_run_id = :run_id AND finished_at IS NULL AND options ->> 'follows'
);

-- name: runs_by_releases
-- Active runs that are performed by a release, and have something queued or running.
SELECT json_group_array(json_array(id, release)) FROM (
  SELECT run.id, run.options ->> 'by_release' AS release FROM run INDEXED BY run_active
  WHERE run.state IN ('queued', 'running', 'paused') AND run.state <> 'paused' AND run.for_drains AND run.options ->> 'by_release' IS NOT NULL
    AND EXISTS (SELECT 1 FROM run_stage AS g WHERE g.run_id = run.id AND g.queued + g.running > 0)
  ORDER BY run.id LIMIT :limit
);

-- name: holds
SELECT json_group_array(json_object('scope', scope, 'at', at, 'actor', actor, 'reason', reason))
FROM (SELECT scope, at, actor, reason FROM hold ORDER BY scope);

-- name: hold_job_if_open
-- It remembers where to return to: to the queue, or to its wait with the time that it had.
UPDATE job SET returns_to = state, returns_due_at = due_at, state = 'held', due_at = NULL, at = :now
WHERE id = :id AND state = :leaves AND state IN ('queued', 'waiting')
RETURNING run_id, source_id, stage, attempt;

-- name: unhold_job_if_held
UPDATE job
SET state = coalesce(returns_to, 'queued'), due_at = returns_due_at, returns_to = NULL, returns_due_at = NULL, at = :now
WHERE id = :id AND state = 'held'
RETURNING run_id, source_id, stage, attempt, state;

-- name: run_to_continue
SELECT json_object('source_id', source_id, 'state', state, 'kind', kind, 'options', json(options), 'of_run_id', of_run_id)
FROM run WHERE id = :id;

-- name: undone_jobs
-- By the index of keys, a batch behind the one before it.
SELECT json_group_array(json_array(j.stage, j.key, coalesce(i.item, 'null'), i.snapshot_id)) FROM (
  SELECT id, stage, key FROM job
  WHERE run_id = :run_id AND (stage, key) > (:stage, :key)
    AND state IN (SELECT value FROM jsonb_each(:states)) AND +stage IN (SELECT value FROM jsonb_each(:stages))
  ORDER BY stage, key LIMIT :limit
) AS j
LEFT JOIN job_item AS i ON i.job_id = j.id;

-- name: done_before
-- Which of these jobs were done in the run that theirs continues, or in one that this one continues; and in which.
WITH RECURSIVE chain(id) AS (
  SELECT :continues
  UNION
  SELECT run.options ->> 'continues' FROM chain CROSS JOIN run ON run.id = chain.id
  WHERE run.options ->> 'continues' IS NOT NULL
)
SELECT json_group_array(json_array(id, done_in)) FROM (
  SELECT k.value ->> 0 AS id, (
    SELECT min(job.run_id) FROM chain
    CROSS JOIN job ON job.run_id = chain.id AND job.stage = k.value ->> 1 AND job.key = k.value ->> 2
    WHERE job.state IN ('succeeded', 'skipped')
  ) AS done_in
  FROM jsonb_each(:keys) AS k
) WHERE done_in IS NOT NULL;

-- name: skip_if_queued
UPDATE job NOT INDEXED SET state = 'skipped', at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'queued';
