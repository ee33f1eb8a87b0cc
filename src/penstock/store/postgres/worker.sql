-- name: is_registered
-- Whoever buries the worker waits until this transaction has ended, and a beat does not.
SELECT 1 FROM penstock.worker WHERE id = %(id)s FOR KEY SHARE;

-- name: workers
SELECT coalesce(json_agg(json_build_object(
  'id', w.id, 'host', w.host, 'pid', w.pid, 'version', w.version, 'started_at', w.started_at,
  'lease_expires_at', w.lease_expires_at, 'slots', w.slots, 'admits', w.admits, 'scope', w.scope,
  'running', (SELECT count(*) FROM penstock.job WHERE job.state = 'running' AND job.worker = w.id)
) ORDER BY w.started_at, w.id), '[]')::text
FROM penstock.worker AS w;

-- name: worker_codes
SELECT coalesce(json_agg(json_build_object(
  'worker', w.id, 'host', w.host, 'parent_pid', w.parent_pid, 'loaded', l.code::json) ORDER BY w.started_at, w.id), '[]')::text
FROM penstock.worker AS w
LEFT JOIN penstock.loaded AS l ON l.hash = w.loaded
WHERE w.lease_expires_at > %(now)s;

-- name: jobs_of
SELECT coalesce(json_agg(json_build_array(id, attempt)), '[]')::text
FROM penstock.job WHERE state = 'running' AND worker = %(id)s;

-- name: bury_jobs
-- The death counts as an attempt and as a try; the third one is the job's own fault until a person says otherwise.
UPDATE penstock.job
SET state = CASE WHEN deaths + 1 >= %(max_deaths)s THEN 'quarantined' ELSE 'queued' END,
  deaths = deaths + 1, tries = tries + 1, is_resumed = true, worker = NULL, at = %(now)s
WHERE state = 'running' AND worker = %(id)s
RETURNING id, run_id, source_id, stage, attempt, state;

-- name: release_jobs
UPDATE penstock.job SET state = 'queued', is_resumed = true, worker = NULL, at = %(now)s
WHERE state = 'running' AND worker = %(id)s
RETURNING id, run_id, source_id, stage, attempt, state;
