-- name: lock_seals
-- One seals, erases or prunes at a time; readers are not kept out.
LOCK TABLE penstock.seal IN SHARE ROW EXCLUSIVE MODE;

-- name: journal_writers
-- Who may have drawn ids of lines that are not visible yet: an id is drawn under this lock, and becomes visible when it ends.
SELECT virtualtransaction FROM pg_locks
WHERE relation = to_regclass('penstock.event') AND granted AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');

-- name: lines_to_seal
-- `at` in ticks: a whole number has every bit of it.
SELECT coalesce(json_agg(json_build_object(
  'actor', e.actor, 'at', trunc(e.at * 4194304)::bigint, 'attempt', e.attempt, 'data', e.data, 'detail', e.detail, 'id', e.id,
  'job_id', e.job_id, 'kind', e.kind, 'origin', e.origin, 'run_id', e.run_id, 'source', s.key, 'source_id', e.source_id,
  'worker', e.worker
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE id > %(after_id)s AND id <= %(until_id)s ORDER BY id LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: acts_of_erasure
-- The events that tell of erasures, [id, digest of the tombstones].
SELECT coalesce(json_agg(json_build_array(e.id, e.data::jsonb ->> 'tombstones') ORDER BY e.id), '[]')::text
FROM penstock.event AS e
WHERE e.id IN (SELECT act_id FROM penstock.tombstone UNION SELECT act_id FROM penstock.erasure)
  AND e.kind = 'record.forgotten';
