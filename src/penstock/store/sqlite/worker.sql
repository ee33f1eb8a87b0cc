-- name: is_registered
SELECT 1 FROM worker WHERE id = :id;

-- name: workers
SELECT json_group_array(json_object(
  'id', w.id, 'host', w.host, 'pid', w.pid, 'version', w.version, 'started_at', w.started_at,
  'lease_expires_at', w.lease_expires_at, 'slots', w.slots, 'admits', w.admits, 'scope', w.scope,
  'running', (SELECT count(*) FROM job WHERE state = 'running' AND worker = w.id)
))
FROM (SELECT * FROM worker ORDER BY started_at, id) AS w;

-- name: worker_codes
SELECT json_group_array(json_object('worker', w.id, 'host', w.host, 'parent_pid', w.parent_pid, 'loaded', json(l.code)))
FROM (SELECT id, host, parent_pid, loaded FROM worker WHERE lease_expires_at > :now ORDER BY started_at, id) AS w
LEFT JOIN loaded AS l ON l.hash = w.loaded;

-- name: jobs_of
SELECT json_group_array(json_array(id, attempt)) FROM job WHERE state = 'running' AND worker = :id;

-- name: bury_jobs
-- The death counts as an attempt and as a try; the third one is the job's own fault until a person says otherwise.
UPDATE job
SET state = CASE WHEN deaths + 1 >= :max_deaths THEN 'quarantined' ELSE 'queued' END,
  deaths = deaths + 1, tries = tries + 1, is_resumed = 1, worker = NULL, at = :now
WHERE state = 'running' AND worker = :id
RETURNING id, run_id, source_id, stage, attempt, state;

-- name: release_jobs
UPDATE job SET state = 'queued', is_resumed = 1, worker = NULL, at = :now
WHERE state = 'running' AND worker = :id
RETURNING id, run_id, source_id, stage, attempt, state;
