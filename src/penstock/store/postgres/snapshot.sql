-- name: add_payloads
INSERT INTO penstock.payload (hash, segment, "offset", length)
SELECT p ->> 0, p ->> 1, (p ->> 2)::bigint, (p ->> 3)::bigint
FROM jsonb_array_elements(%(payloads)s::jsonb) AS p
ORDER BY p ->> 0
ON CONFLICT (hash) DO NOTHING;

-- name: mend_payloads
-- They could not be read where they were, and were stored again.
UPDATE penstock.payload AS p SET segment = v ->> 1, "offset" = (v ->> 2)::bigint, length = (v ->> 3)::bigint
FROM jsonb_array_elements(%(payloads)s::jsonb) AS v
WHERE p.hash = v ->> 0 AND p.hash = ANY (ARRAY(SELECT e ->> 0 FROM jsonb_array_elements(%(payloads)s::jsonb) AS e));

-- name: segment_ends
SELECT coalesce(json_agg(json_build_array(segment, size, payloads) ORDER BY segment), '[]')::text FROM (
  SELECT segment, max("offset" + length) AS size, count(*) AS payloads FROM penstock.payload WHERE segment > %(after)s
  GROUP BY segment ORDER BY segment LIMIT %(limit)s
) AS s;

-- name: payloads
SELECT coalesce(json_agg(json_build_array(hash, "offset", length) ORDER BY "offset"), '[]')::text
FROM penstock.payload WHERE segment = %(segment)s;

-- name: add_snapshots
-- A turn whose commit was in doubt is taken again: its snapshots may be there.
INSERT INTO penstock.snapshot (id, job_id, run_id, url, hash, status, headers, fetched_at, final_url)
SELECT (s ->> 0)::bigint, (s ->> 1)::bigint, (s ->> 2)::bigint, s ->> 3, s ->> 4, (s ->> 5)::integer, s ->> 6,
  (s ->> 7)::double precision, s ->> 8
FROM jsonb_array_elements(%(snapshots)s::jsonb) AS s
ORDER BY (s ->> 0)::bigint
ON CONFLICT (id) DO NOTHING;

-- name: snapshot_of_job
SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', s.headers::json, 'fetched_at', s.fetched_at,
  'hash', s.hash, 'segment', p.segment, 'offset', p."offset", 'length', p.length)::text
FROM penstock.snapshot AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p
WHERE s.job_id = %(job_id)s AND s.url = %(url)s ORDER BY s.id DESC LIMIT 1;

-- name: last_snapshot
SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', s.headers::json, 'fetched_at', s.fetched_at,
  'hash', s.hash, 'segment', p.segment, 'offset', p."offset", 'length', p.length)::text
FROM penstock.snapshot AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p
WHERE md5(s.url) = md5(%(url)s) AND s.url = %(url)s ORDER BY s.id DESC LIMIT 1;

-- name: places
SELECT coalesce(json_object_agg(p.hash, json_build_array(p.segment, p."offset", p.length)), '{}')::text
FROM penstock.payload AS p
WHERE p.hash = ANY (ARRAY(SELECT jsonb_array_elements_text(%(hashes)s::jsonb)));

-- name: pages_of_job
-- What a job fetched, the newest first; where it fetched nothing, the page that its item came from.
SELECT coalesce(json_agg(json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', s.headers::json, 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p."offset",
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id) ORDER BY s.id DESC), '[]')::text
FROM (
  (SELECT id, url, final_url, status, headers, fetched_at, hash, job_id, run_id FROM penstock.snapshot WHERE job_id = %(job_id)s ORDER BY id DESC LIMIT %(limit)s)
  UNION ALL
  (
    SELECT id, url, final_url, status, headers, fetched_at, hash, job_id, run_id FROM penstock.snapshot
    WHERE id = (SELECT snapshot_id FROM penstock.job_item WHERE job_id = %(job_id)s)
      AND NOT EXISTS (SELECT 1 FROM penstock.snapshot WHERE job_id = %(job_id)s)
  )
) AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p;

-- name: page_by_id
-- One page that was fetched.
SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', s.headers::json, 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p."offset",
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id)::text
FROM penstock.snapshot AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p
WHERE s.id = %(id)s;

-- name: pages_at
-- What was fetched from an address, the newest first.
SELECT coalesce(json_agg(json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
  'headers', s.headers::json, 'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p."offset",
  'length', p.length, 'job_id', s.job_id, 'run_id', s.run_id) ORDER BY s.id DESC), '[]')::text
FROM (
  SELECT id, url, final_url, status, headers, fetched_at, hash, job_id, run_id FROM penstock.snapshot
  WHERE md5(url) = md5(%(url)s) AND url = %(url)s ORDER BY id DESC LIMIT %(limit)s
) AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p;

-- name: last_job_of
-- The newest job of a source for this stage and key, in one of its newest runs.
SELECT k.job_id FROM (SELECT id FROM penstock.run WHERE source_id = %(source_id)s ORDER BY id DESC LIMIT %(runs)s) AS r
CROSS JOIN LATERAL (
  SELECT job_id FROM penstock.job_key WHERE run_id = r.id AND stage = %(stage)s AND key = %(key)s OFFSET 0
) AS k
ORDER BY k.job_id DESC LIMIT 1;

-- name: snapshots_at_url
-- What a source fetched from an address, and what nobody knows the run of any more. The index is over hashes of addresses.
SELECT s.id, s.hash FROM penstock.snapshot AS s LEFT JOIN penstock.run AS r ON r.id = s.run_id
WHERE md5(s.url) = md5(%(url)s) AND s.url = %(url)s AND (r.source_id = %(source_id)s OR r.id IS NULL);
