-- name: add_payloads
INSERT INTO penstock.payload (hash, segment, "offset", length)
SELECT p ->> 0, p ->> 1, (p ->> 2)::bigint, (p ->> 3)::bigint
FROM jsonb_array_elements(%(payloads)s::jsonb) AS p
ORDER BY p ->> 0
ON CONFLICT (hash) DO NOTHING;

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
