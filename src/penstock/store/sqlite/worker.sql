-- name: register_if_welcome
-- Not code that knows too little, however long ago it has opened the database; nobody in an unfinished copy.
INSERT INTO worker (id, host, pid, version, schema, slots, admits, started_at, lease_expires_at)
SELECT :id, :host, :pid, :version, :schema, :slots, :admits, :now, :now + :lease_s
WHERE NOT EXISTS (SELECT 1 FROM migration WHERE contracts > :schema) AND NOT EXISTS (SELECT 1 FROM copy WHERE table_name <> 'done');

-- name: beat_if_registered
-- Renews even a lease that has run out, as long as nobody buried the worker: after the machine slept, its own beat comes first.
UPDATE worker SET lease_expires_at = :now + :lease_s WHERE id = :id;

-- name: is_registered
SELECT 1 FROM worker WHERE id = :id;

-- name: expired
SELECT id FROM worker WHERE lease_expires_at <= :now ORDER BY id;

-- name: unregister
DELETE FROM worker WHERE id = :id;

-- name: lease_of
SELECT lease_expires_at FROM worker WHERE id = :id;

-- name: unregister_if_expired
-- It may have beaten since somebody read that it had not.
DELETE FROM worker WHERE id = :id AND lease_expires_at <= :now;

-- name: workers
SELECT json_group_array(json_object(
  'id', w.id, 'host', w.host, 'pid', w.pid, 'version', w.version, 'started_at', w.started_at,
  'lease_expires_at', w.lease_expires_at, 'slots', w.slots, 'admits', w.admits,
  'running', (SELECT count(*) FROM job WHERE state = 'running' AND worker = w.id)
))
FROM (SELECT * FROM worker ORDER BY started_at, id) AS w;

-- name: announce_if_registered
UPDATE worker SET loaded = :hash, parent_pid = :parent_pid WHERE id = :id;

-- name: add_loaded
INSERT INTO loaded (hash, code) VALUES (:hash, :code) ON CONFLICT (hash) DO NOTHING;

-- name: drop_loaded
DELETE FROM loaded WHERE hash NOT IN (SELECT loaded FROM worker WHERE loaded IS NOT NULL);

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
