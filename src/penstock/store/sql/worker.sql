-- name: register_if_welcome
-- Not code that knows too little, however long ago it has opened the database; nobody in an unfinished copy.
INSERT INTO penstock.worker (id, host, pid, version, schema, slots, admits, scope, started_at, lease_expires_at)
SELECT :id, :host, :pid, :version, :schema, :slots, :admits, :scope, :now, :now + :lease_s
WHERE NOT EXISTS (SELECT 1 FROM penstock.migration WHERE contracts > :schema)
  AND NOT EXISTS (SELECT 1 FROM penstock.copy WHERE table_name <> 'done');

-- name: beat_if_registered
-- Renews even a lease that has run out, as long as nobody buried the worker: after the machine slept, its own beat comes first.
UPDATE penstock.worker SET lease_expires_at = :now + :lease_s WHERE id = :id;

-- name: other_workers
SELECT count(*) FROM penstock.worker WHERE id <> :id;

-- name: expired
SELECT id FROM penstock.worker WHERE lease_expires_at <= :now ORDER BY id;

-- name: unregister
DELETE FROM penstock.worker WHERE id = :id;

-- name: lease_of
SELECT lease_expires_at FROM penstock.worker WHERE id = :id;

-- name: unregister_if_expired
-- It may have beaten since somebody read that it had not.
DELETE FROM penstock.worker WHERE id = :id AND lease_expires_at <= :now;

-- name: announce_if_registered
UPDATE penstock.worker SET loaded = :hash, parent_pid = :parent_pid WHERE id = :id;

-- name: add_loaded
INSERT INTO penstock.loaded (hash, code) VALUES (:hash, :code) ON CONFLICT (hash) DO NOTHING;

-- name: drop_loaded
DELETE FROM penstock.loaded WHERE hash NOT IN (SELECT loaded FROM penstock.worker WHERE loaded IS NOT NULL);
