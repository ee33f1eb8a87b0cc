-- name: add_payloads
INSERT INTO payload (hash, segment, offset, length)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:payloads) WHERE true
ON CONFLICT (hash) DO NOTHING;

-- name: mend_payloads
-- They could not be read where they were, and were stored again.
UPDATE payload SET segment = value ->> 1, offset = value ->> 2, length = value ->> 3
FROM jsonb_each(:payloads) WHERE hash = value ->> 0;

-- name: segment_ends
SELECT json_group_array(json_array(segment, size, payloads)) FROM (
  SELECT segment, max(offset + length) AS size, count(*) AS payloads FROM payload WHERE segment > :after
  GROUP BY segment ORDER BY segment LIMIT :limit
);

-- name: payloads
SELECT json_group_array(json_array(hash, offset, length)) FROM (
  SELECT hash, offset, length FROM payload WHERE segment = :segment ORDER BY offset
);

-- name: add_snapshots
-- A turn whose commit was in doubt is taken again: its snapshots may be there.
INSERT INTO snapshot (id, job_id, run_id, url, hash, status, headers, fetched_at, final_url)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
  value ->> 8
FROM jsonb_each(:snapshots) WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: snapshot_of_job
SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', json(s.headers), 'fetched_at', s.fetched_at,
  'hash', s.hash, 'segment', p.segment, 'offset', p.offset, 'length', p.length)
FROM snapshot AS s JOIN payload AS p ON p.hash = s.hash
WHERE s.job_id = :job_id AND s.url = :url ORDER BY s.id DESC LIMIT 1;

-- name: last_snapshot
SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', json(s.headers), 'fetched_at', s.fetched_at,
  'hash', s.hash, 'segment', p.segment, 'offset', p.offset, 'length', p.length)
FROM snapshot AS s JOIN payload AS p ON p.hash = s.hash
WHERE s.url = :url ORDER BY s.id DESC LIMIT 1;

-- name: places
SELECT json_group_object(p.hash, json_array(p.segment, p.offset, p.length))
FROM jsonb_each(:hashes) AS h CROSS JOIN payload AS p ON p.hash = h.value;

-- name: pages_of_job
-- What a job fetched, the newest first; where it fetched nothing, the page that its item came from.
SELECT json_group_array(json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', json(s.headers), 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p.offset,
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id))
FROM (
  SELECT * FROM snapshot WHERE job_id = :job_id
  UNION ALL
  SELECT * FROM snapshot WHERE id = (SELECT snapshot_id FROM job_item WHERE job_id = :job_id)
    AND NOT EXISTS (SELECT 1 FROM snapshot WHERE job_id = :job_id)
  ORDER BY id DESC LIMIT :limit
) AS s JOIN payload AS p ON p.hash = s.hash;

-- name: page_by_id
-- One page that was fetched.
SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', json(s.headers), 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p.offset,
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id)
FROM snapshot AS s JOIN payload AS p ON p.hash = s.hash WHERE s.id = :id;

-- name: pages_at
-- What was fetched from an address, the newest first.
SELECT json_group_array(json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', json(s.headers), 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p.offset,
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id))
FROM (SELECT * FROM snapshot WHERE url = :url ORDER BY id DESC LIMIT :limit) AS s JOIN payload AS p ON p.hash = s.hash;

-- name: last_job_of
-- The newest job of a source for this stage and key, in one of its newest runs.
SELECT j.id FROM (SELECT id FROM run WHERE source_id = :source_id ORDER BY id DESC LIMIT :runs) AS r
CROSS JOIN job AS j INDEXED BY sqlite_autoindex_job_1 ON j.run_id = r.id AND j.stage = :stage AND j.key = :key
ORDER BY j.id DESC LIMIT 1;

-- name: snapshots_at_url
-- What a source fetched from an address, and what nobody knows the run of any more.
SELECT s.id, s.hash FROM snapshot AS s LEFT JOIN run AS r ON r.id = s.run_id
WHERE s.url = :url AND (r.source_id = :source_id OR r.id IS NULL);
