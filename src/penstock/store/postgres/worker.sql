-- name: register_if_welcome
-- Not code that knows too little, however long ago it has opened the database; nobody in an unfinished copy.
INSERT INTO penstock.worker (id, host, pid, version, schema, slots, admits, started_at, lease_expires_at)
SELECT %(id)s, %(host)s, %(pid)s, %(version)s, %(schema)s, %(slots)s, %(admits)s, %(now)s, %(now)s + %(lease_s)s
WHERE NOT EXISTS (SELECT 1 FROM penstock.migration WHERE contracts > %(schema)s)
  AND NOT EXISTS (SELECT 1 FROM penstock.copy WHERE table_name <> 'done');

-- name: beat_if_registered
-- Renews even a lease that has run out, as long as nobody buried the worker: after the machine slept, its own beat comes first.
UPDATE penstock.worker SET lease_expires_at = %(now)s + %(lease_s)s WHERE id = %(id)s;

-- name: is_registered
-- Whoever buries the worker waits until this transaction has ended, and a beat does not.
SELECT 1 FROM penstock.worker WHERE id = %(id)s FOR KEY SHARE;

-- name: expired
SELECT id FROM penstock.worker WHERE lease_expires_at <= %(now)s ORDER BY id;

-- name: unregister
DELETE FROM penstock.worker WHERE id = %(id)s;

-- name: lease_of
SELECT lease_expires_at FROM penstock.worker WHERE id = %(id)s;

-- name: unregister_if_expired
-- It may have beaten since somebody read that it had not.
DELETE FROM penstock.worker WHERE id = %(id)s AND lease_expires_at <= %(now)s;

-- name: workers
SELECT coalesce(json_agg(json_build_object(
  'id', w.id, 'host', w.host, 'pid', w.pid, 'version', w.version, 'started_at', w.started_at,
  'lease_expires_at', w.lease_expires_at, 'slots', w.slots, 'admits', w.admits,
  'running', (SELECT count(*) FROM penstock.job WHERE job.state = 'running' AND job.worker = w.id)
) ORDER BY w.started_at, w.id), '[]')::text
FROM penstock.worker AS w;

-- name: announce_if_registered
UPDATE penstock.worker SET loaded = %(hash)s, parent_pid = %(parent_pid)s WHERE id = %(id)s;

-- name: add_loaded
INSERT INTO penstock.loaded (hash, code) VALUES (%(hash)s, %(code)s) ON CONFLICT (hash) DO NOTHING;

-- name: drop_loaded
DELETE FROM penstock.loaded WHERE hash NOT IN (SELECT loaded FROM penstock.worker WHERE loaded IS NOT NULL);

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
