-- name: note_pages
-- What a site announces of a page, and what it was when it was extracted, each where it is told. A page that was
-- announced twice in a run, and not alike, has said nothing. One that was
-- only looked at keeps the run that extracted it; one whose extraction came to nothing has no version.
INSERT INTO penstock.page (
  source_id, url, at, announced, announced_run_id,
  done_hash, done_snapshot_id, done_version, done_at, done_parts, done_run_id, done_announced
)
SELECT (p ->> 0)::bigint, p ->> 1, %(now)s, coalesce(p ->> 3, ''),
  CASE WHEN p ->> 3 IS NOT NULL THEN (p ->> 2)::bigint END,
  p ->> 4, (p ->> 5)::bigint, CASE WHEN (p ->> 10)::bigint = 1 THEN '' ELSE p ->> 6 END, (p ->> 7)::double precision, coalesce((p ->> 8)::bigint, 1),
  CASE WHEN p ->> 4 IS NOT NULL AND (p ->> 9)::bigint = 0 THEN (p ->> 2)::bigint END,
  CASE WHEN p ->> 4 IS NOT NULL THEN coalesce(p ->> 3, '') ELSE '' END
FROM jsonb_array_elements(%(pages)s::jsonb) AS p
ORDER BY (p ->> 0)::bigint, (p ->> 1) COLLATE "C"
ON CONFLICT (source_id, url) DO UPDATE SET
  at = excluded.at,
  announced = CASE
    WHEN excluded.announced_run_id IS NULL THEN page.announced
    WHEN page.announced_run_id = excluded.announced_run_id AND page.announced <> excluded.announced THEN ''
    ELSE excluded.announced
  END,
  announced_run_id = coalesce(excluded.announced_run_id, page.announced_run_id),
  done_hash = coalesce(excluded.done_hash, page.done_hash),
  done_snapshot_id = CASE WHEN excluded.done_hash IS NULL THEN page.done_snapshot_id ELSE excluded.done_snapshot_id END,
  done_version = coalesce(excluded.done_version, page.done_version),
  done_at = coalesce(excluded.done_at, page.done_at),
  done_parts = CASE WHEN excluded.done_hash IS NULL THEN page.done_parts ELSE excluded.done_parts END,
  done_run_id = coalesce(excluded.done_run_id, page.done_run_id),
  done_announced = CASE
    WHEN excluded.done_hash IS NULL THEN page.done_announced
    WHEN excluded.announced_run_id IS NOT NULL THEN excluded.announced
    ELSE page.announced
  END;

-- name: page_facts
SELECT json_build_object(
  'announced', p.announced, 'announced_run_id', p.announced_run_id, 'done_announced', p.done_announced,
  'done_hash', p.done_hash, 'done_version', p.done_version, 'done_run_id', p.done_run_id, 'done_at', p.done_at,
  'done_parts', p.done_parts, 'snapshot', (
    SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
      'headers', s.headers::json, 'fetched_at', s.fetched_at,
      'hash', s.hash, 'segment', l.segment, 'offset', l."offset", 'length', l.length)
    FROM penstock.snapshot AS s
    CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS l
    WHERE s.id = p.done_snapshot_id
  ))::text
FROM penstock.page AS p WHERE p.source_id = %(source_id)s AND p.url = %(url)s;

-- name: pages_of_items
-- Of jobs: the addresses of the pages that their items came from, and of those that they fetched themselves.
-- What fails in a replay or a probe says nothing of its page.
SELECT j.source_id, s.url
FROM penstock.job AS j
CROSS JOIN LATERAL (SELECT kind FROM penstock.run WHERE id = j.run_id OFFSET 0) AS r
CROSS JOIN LATERAL (SELECT snapshot_id FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS t
CROSS JOIN LATERAL (SELECT url FROM penstock.snapshot WHERE id = t.snapshot_id OFFSET 0) AS s
WHERE j.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND r.kind NOT IN ('replay', 'probe')
UNION
SELECT j.source_id, s.url
FROM penstock.job AS j
CROSS JOIN LATERAL (SELECT kind FROM penstock.run WHERE id = j.run_id OFFSET 0) AS r
CROSS JOIN LATERAL (SELECT url FROM penstock.snapshot WHERE job_id = j.id OFFSET 0) AS s
WHERE j.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND r.kind NOT IN ('replay', 'probe');

-- name: drop_pages_if_old
-- What somebody writes just now is not old.
DELETE FROM penstock.page WHERE ctid = ANY (ARRAY(
  SELECT d.ctid FROM jsonb_array_elements(%(pages)s::jsonb) AS p
  CROSS JOIN LATERAL (
    SELECT ctid FROM penstock.page
    WHERE source_id = (p ->> 0)::bigint AND url = p ->> 1 AND at < %(before)s
    OFFSET 0 FOR UPDATE SKIP LOCKED
  ) AS d
));

-- name: stage_pages
INSERT INTO penstock.staged_page (run_id, url, job_id, hash, parts)
SELECT (v ->> 0)::bigint, v ->> 1, (v ->> 2)::bigint, v ->> 3, (v ->> 4)::bigint
FROM jsonb_array_elements(%(pages)s::jsonb) AS v
ON CONFLICT (run_id, url, job_id) DO UPDATE SET hash = excluded.hash, parts = excluded.parts;

-- name: staged_pages
-- A page of what a replay has extracted, in the order of addresses: alike by all that did so where both hashes are equal.
SELECT coalesce(json_agg(
  json_build_array(p.url, p.least_hash, p.greatest_hash, p.parts, p.jobs) ORDER BY p.url COLLATE "C"), '[]')::text
FROM (
  SELECT url, min(hash) AS least_hash, max(hash) AS greatest_hash, max(parts) AS parts, json_agg(job_id) AS jobs
  FROM penstock.staged_page WHERE run_id = %(run_id)s AND url > %(after_url)s
  GROUP BY url ORDER BY url LIMIT %(limit)s
) AS p;

-- name: replay_of_pages
SELECT json_build_object('source_id', run.source_id, 'state', run.state, 'pipeline_version', run.pipeline_version,
  'failed', (
    SELECT coalesce(sum(quarantined + cancelled), 0)::bigint FROM penstock.stage_count AS g WHERE g.run_id = run.id
  ))::text
FROM penstock.run WHERE run.id = %(run_id)s;

-- name: spoilt_in_replay
-- What failed or was cancelled, all that it came from, and the addresses of the pages that those jobs were given.
WITH RECURSIVE bad (id) AS (
  SELECT j.id FROM (SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s OFFSET 0) AS k
  CROSS JOIN LATERAL (SELECT id, state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
  WHERE j.state IN ('quarantined', 'cancelled')
), spoilt (job_id) AS (
  SELECT id FROM bad
  UNION
  SELECT i.parent_id FROM spoilt
  CROSS JOIN LATERAL (SELECT parent_id FROM penstock.job_item WHERE job_id = spoilt.job_id OFFSET 0) AS i
  WHERE i.parent_id IS NOT NULL
)
SELECT json_build_object(
  'failed', (SELECT count(*) FROM bad),
  'jobs', (SELECT coalesce(json_agg(job_id), '[]') FROM spoilt),
  'urls', (SELECT coalesce(json_agg(u.url), '[]') FROM (
    SELECT DISTINCT s.url FROM spoilt
    CROSS JOIN LATERAL (SELECT snapshot_id FROM penstock.job_item WHERE job_id = spoilt.job_id OFFSET 0) AS i
    CROSS JOIN LATERAL (SELECT url FROM penstock.snapshot WHERE id = i.snapshot_id OFFSET 0) AS s
  ) AS u))::text;

-- name: left_on_stage
-- The pages of what a commit has left alone, and whether any of that may be of several pages.
SELECT json_build_object(
  'urls', (SELECT coalesce(json_agg(u.url), '[]') FROM (
    SELECT DISTINCT s.url FROM penstock.staged AS t
    CROSS JOIN LATERAL (SELECT url FROM penstock.snapshot WHERE id = t.snapshot_id OFFSET 0) AS s
    WHERE t.run_id = %(run_id)s AND t.data IS NOT NULL
  ) AS u),
  'has_mixed', EXISTS (
    SELECT 1 FROM penstock.staged WHERE run_id = %(run_id)s AND data IS NOT NULL AND merge <> 'replace'
  ))::text;

-- name: mark_pages
-- Only where a page is as it was replayed. One that somebody writes just now is left to them.
WITH found AS MATERIALIZED (
  SELECT d.ctid AS place, (v ->> 2)::bigint AS parts FROM jsonb_array_elements(%(pages)s::jsonb) AS v
  CROSS JOIN LATERAL (
    SELECT ctid FROM penstock.page
    WHERE source_id = %(source_id)s AND url = v ->> 0 AND done_hash = v ->> 1
    OFFSET 0 FOR UPDATE SKIP LOCKED
  ) AS d
)
UPDATE penstock.page SET done_version = %(version)s, done_run_id = %(run_id)s, done_parts = found.parts
FROM found WHERE page.ctid = found.place;

-- name: drop_staged_pages
DELETE FROM penstock.staged_page WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM penstock.staged_page WHERE run_id = %(run_id)s LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));

-- name: known_pages
SELECT p.url, p.announced, p.announced_run_id, p.done_announced, p.done_hash, p.done_version, p.done_run_id, p.done_at,
  p.done_parts
FROM jsonb_array_elements_text(%(urls)s::jsonb) AS u (url)
CROSS JOIN LATERAL (
  SELECT url, announced, announced_run_id, done_announced, done_hash, done_version, done_run_id, done_at, done_parts
  FROM penstock.page WHERE source_id = %(source_id)s AND url = u.url OFFSET 0
) AS p;

-- name: drop_pages
DELETE FROM penstock.page WHERE ctid = ANY (ARRAY(
  SELECT d.ctid FROM jsonb_array_elements(%(pages)s::jsonb) AS p
  CROSS JOIN LATERAL (
    SELECT ctid FROM penstock.page
    WHERE source_id = (p ->> 0)::bigint AND url = p ->> 1
    OFFSET 0 FOR UPDATE
  ) AS d
));
