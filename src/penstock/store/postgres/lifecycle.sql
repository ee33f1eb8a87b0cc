-- name: recovered_drafts
-- Those that wait until their source is not degraded any more, where it is not.
SELECT coalesce(json_agg(d.id ORDER BY d.id), '[]')::text FROM (
  SELECT run.id FROM penstock.run
  WHERE run.state = 'draft' AND (run.options::json ->> 'waits_for_recovery')::boolean
    AND NOT EXISTS (
      SELECT 1 FROM penstock.health AS h WHERE h.source_id = run.source_id AND h.degraded_at IS NOT NULL
    )
  ORDER BY run.id LIMIT 100
) AS d;

-- name: followers
-- Drafts whose run has ended, each with how that has ended.
SELECT coalesce(json_agg(json_build_array(d.id, d.state) ORDER BY d.id), '[]')::text FROM (
  SELECT run.id, o.state FROM penstock.run JOIN penstock.run AS o ON o.id = run.of_run_id
  WHERE run.state = 'draft' AND (run.options::json ->> 'follows')::boolean AND o.finished_at IS NOT NULL
  ORDER BY run.id LIMIT 100
) AS d;

-- name: open_followers
SELECT EXISTS (
  SELECT 1 FROM penstock.run WHERE of_run_id = %(run_id)s AND finished_at IS NULL AND (options::json ->> 'follows')::boolean
);

-- name: runs_by_releases
-- Active runs that are performed by a release, and have something queued or running.
SELECT coalesce(json_agg(json_build_array(d.id, d.release) ORDER BY d.id), '[]')::text FROM (
  SELECT run.id, run.options::json ->> 'by_release' AS release FROM penstock.run
  WHERE run.state IN ('queued', 'running', 'paused') AND run.state <> 'paused' AND run.for_drains AND run.options::json ->> 'by_release' IS NOT NULL
    AND EXISTS (SELECT 1 FROM penstock.stage_count AS g WHERE g.run_id = run.id AND g.queued + g.running > 0)
  ORDER BY run.id LIMIT %(limit)s
) AS d;

-- name: holds
SELECT coalesce(json_agg(json_build_object('scope', scope, 'at', at, 'actor', actor, 'reason', reason) ORDER BY scope), '[]')::text
FROM penstock.hold;

-- name: hold_job_if_open
-- It remembers where to return to: to the queue, or to its wait with the time that it had.
UPDATE penstock.job SET returns_to = state, returns_due_at = due_at, state = 'held', due_at = NULL, at = %(now)s
WHERE id = %(id)s AND state = %(leaves)s AND state || '' IN ('queued', 'waiting')
RETURNING run_id, source_id, stage, attempt;

-- name: unhold_job_if_held
UPDATE penstock.job
SET state = coalesce(returns_to, 'queued'), due_at = returns_due_at, returns_to = NULL, returns_due_at = NULL, at = %(now)s
WHERE id = %(id)s AND state || '' = 'held'
RETURNING run_id, source_id, stage, attempt, state;

-- name: run_to_continue
SELECT json_build_object('source_id', source_id, 'state', state, 'kind', kind, 'options', options::json, 'of_run_id', of_run_id)::text
FROM penstock.run WHERE id = %(id)s;

-- name: undone_jobs
-- By the index of keys, a batch behind the one before it.
SELECT coalesce(json_agg(json_build_array(j.stage, j.key, coalesce(i.item, 'null'), i.snapshot_id) ORDER BY j.stage, j.key), '[]')::text
FROM (
  SELECT k.job_id AS id, k.stage, k.key FROM penstock.job_key AS k
  CROSS JOIN LATERAL (SELECT state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS o
  WHERE k.run_id = %(run_id)s AND (k.stage, k.key) > (%(stage)s, %(key)s)
    AND o.state IN (SELECT x FROM jsonb_array_elements_text(%(states)s::jsonb) AS x)
    AND k.stage IN (SELECT x FROM jsonb_array_elements_text(%(stages)s::jsonb) AS x)
  ORDER BY k.stage, k.key LIMIT %(limit)s
) AS j
LEFT JOIN LATERAL (SELECT item, snapshot_id FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS i ON true;

-- name: done_before
-- Which of these jobs were done in the run that theirs continues, or in one that this one continues; and in which.
WITH RECURSIVE chain(id) AS (
  SELECT %(continues)s::bigint
  UNION
  SELECT (run.options::jsonb ->> 'continues')::bigint FROM chain JOIN penstock.run ON run.id = chain.id
  WHERE run.options::jsonb ->> 'continues' IS NOT NULL
)
SELECT coalesce(json_agg(json_build_array(d.id, d.done_in)), '[]')::text FROM (
  SELECT (k ->> 0)::bigint AS id, min(j.run_id) AS done_in
  FROM jsonb_array_elements(%(keys)s::jsonb) AS k
  CROSS JOIN chain
  CROSS JOIN LATERAL (
    SELECT run_id, job_id FROM penstock.job_key
    WHERE run_id = chain.id AND stage = k ->> 1 AND key = k ->> 2 OFFSET 0
  ) AS known
  CROSS JOIN LATERAL (SELECT run_id, state FROM penstock.job WHERE id = known.job_id OFFSET 0) AS j
  WHERE j.state IN ('succeeded', 'skipped')
  GROUP BY (k ->> 0)::bigint
) AS d;

-- name: skip_if_queued
UPDATE penstock.job SET state = 'skipped', at = %(now)s
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'queued';
