-- name: lock_seals
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT 1;

-- name: journal_writers
-- There is one writer at a time, so lines become visible in the order of their ids.
SELECT '' WHERE false;

-- name: lines_to_seal
-- `at` in ticks: a whole number has every bit of it.
SELECT json_group_array(json_object(
  'actor', e.actor, 'at', CAST(e.at * 4194304 AS INTEGER), 'attempt', e.attempt, 'data', e.data, 'detail', e.detail, 'id', e.id,
  'job_id', e.job_id, 'kind', e.kind, 'origin', e.origin, 'run_id', e.run_id, 'source', s.key, 'source_id', e.source_id,
  'worker', e.worker
))
FROM (SELECT * FROM event WHERE id > :after_id AND id <= :until_id ORDER BY id LIMIT :limit) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: acts_of_erasure
-- The events that tell of erasures, [id, digest of the tombstones].
SELECT json_group_array(json_array(e.id, e.data ->> 'tombstones')) FROM event AS e
WHERE e.id IN (SELECT act_id FROM tombstone UNION SELECT act_id FROM erasure) AND e.kind = 'record.forgotten';
