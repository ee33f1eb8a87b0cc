-- name: note_pages
-- What a site announces of a page, and what it was when it was extracted, each where it is told. A page that was
-- announced twice in a run, and not alike, has said nothing. One that was
-- only looked at keeps the run that extracted it; one whose extraction came to nothing has no version.
INSERT INTO page (
  source_id, url, at, announced, announced_run_id,
  done_hash, done_snapshot_id, done_version, done_at, done_parts, done_run_id, done_announced
)
SELECT value ->> 0, value ->> 1, :now, coalesce(value ->> 3, ''), CASE WHEN value ->> 3 IS NOT NULL THEN value ->> 2 END,
  value ->> 4, value ->> 5, CASE WHEN value ->> 10 THEN '' ELSE value ->> 6 END, value ->> 7, coalesce(value ->> 8, 1),
  CASE WHEN value ->> 4 IS NOT NULL AND NOT value ->> 9 THEN value ->> 2 END,
  CASE WHEN value ->> 4 IS NOT NULL THEN coalesce(value ->> 3, '') ELSE '' END
FROM jsonb_each(:pages) WHERE true
ON CONFLICT (source_id, url) DO UPDATE SET
  at = excluded.at,
  announced = CASE
    WHEN excluded.announced_run_id IS NULL THEN announced
    WHEN announced_run_id = excluded.announced_run_id AND announced <> excluded.announced THEN ''
    ELSE excluded.announced
  END,
  announced_run_id = coalesce(excluded.announced_run_id, announced_run_id),
  done_hash = coalesce(excluded.done_hash, done_hash),
  done_snapshot_id = CASE WHEN excluded.done_hash IS NULL THEN done_snapshot_id ELSE excluded.done_snapshot_id END,
  done_version = coalesce(excluded.done_version, done_version),
  done_at = coalesce(excluded.done_at, done_at),
  done_parts = CASE WHEN excluded.done_hash IS NULL THEN done_parts ELSE excluded.done_parts END,
  done_run_id = coalesce(excluded.done_run_id, done_run_id),
  done_announced = CASE
    WHEN excluded.done_hash IS NULL THEN done_announced
    WHEN excluded.announced_run_id IS NOT NULL THEN excluded.announced
    ELSE announced
  END;

-- name: page_facts
SELECT json_object(
  'announced', p.announced, 'announced_run_id', p.announced_run_id, 'done_announced', p.done_announced,
  'done_hash', p.done_hash, 'done_version', p.done_version, 'done_run_id', p.done_run_id, 'done_at', p.done_at,
  'done_parts', p.done_parts, 'snapshot', json((
    SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status,
      'headers', json(s.headers), 'fetched_at', s.fetched_at,
      'hash', s.hash, 'segment', l.segment, 'offset', l.offset, 'length', l.length)
    FROM snapshot AS s JOIN payload AS l ON l.hash = s.hash
    WHERE s.id = p.done_snapshot_id
  )))
FROM page AS p WHERE p.source_id = :source_id AND p.url = :url;

-- name: pages_of_items
-- Of jobs: the addresses of the pages that their items came from, and of those that they fetched themselves.
-- What fails in a replay or a probe says nothing of its page.
SELECT DISTINCT j.source_id, s.url
FROM jsonb_each(:ids) AS i
CROSS JOIN job AS j ON j.id = i.value
CROSS JOIN run AS r ON r.id = j.run_id AND r.kind NOT IN ('replay', 'probe')
CROSS JOIN job_item AS t ON t.job_id = j.id
CROSS JOIN snapshot AS s ON s.id = t.snapshot_id
UNION
SELECT DISTINCT j.source_id, s.url
FROM jsonb_each(:ids) AS i
CROSS JOIN job AS j ON j.id = i.value
CROSS JOIN run AS r ON r.id = j.run_id AND r.kind NOT IN ('replay', 'probe')
CROSS JOIN snapshot AS s ON s.job_id = j.id;

-- name: drop_pages_if_old
DELETE FROM page
WHERE (source_id, url) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:pages)) AND at < :before;

-- name: stage_pages
INSERT INTO staged_page (run_id, url, job_id, hash, parts)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(:pages) WHERE true
ON CONFLICT (run_id, url, job_id) DO UPDATE SET hash = excluded.hash, parts = excluded.parts;

-- name: staged_pages
-- A page of what a replay has extracted, in the order of addresses: alike by all that did so where both hashes are equal.
SELECT json_group_array(json_array(p.url, p.least_hash, p.greatest_hash, p.parts, json(p.jobs))) FROM (
  SELECT url, min(hash) AS least_hash, max(hash) AS greatest_hash, max(parts) AS parts, json_group_array(job_id) AS jobs
  FROM staged_page WHERE run_id = :run_id AND url > :after_url GROUP BY url ORDER BY url LIMIT :limit
) AS p;

-- name: replay_of_pages
SELECT json_object('source_id', run.source_id, 'state', run.state, 'pipeline_version', run.pipeline_version,
  'failed', (SELECT coalesce(sum(quarantined + cancelled), 0) FROM run_stage WHERE run_stage.run_id = run.id))
FROM run WHERE run.id = :run_id;

-- name: spoilt_in_replay
-- What failed or was cancelled, all that it came from, and the addresses of the pages that those jobs were given.
WITH RECURSIVE bad (id) AS (
  SELECT id FROM job INDEXED BY sqlite_autoindex_job_1 WHERE run_id = :run_id AND state IN ('quarantined', 'cancelled')
), spoilt (job_id) AS (
  SELECT id FROM bad
  UNION SELECT i.parent_id FROM spoilt CROSS JOIN job_item AS i ON i.job_id = spoilt.job_id WHERE i.parent_id IS NOT NULL
)
SELECT json_object(
  'failed', (SELECT count(*) FROM bad),
  'jobs', json((SELECT json_group_array(job_id) FROM spoilt)),
  'urls', json((SELECT json_group_array(u.url) FROM (
    SELECT DISTINCT s.url FROM spoilt
    CROSS JOIN job_item AS i ON i.job_id = spoilt.job_id CROSS JOIN snapshot AS s ON s.id = i.snapshot_id
  ) AS u)));

-- name: left_on_stage
-- The pages of what a commit has left alone, and whether any of that may be of several pages.
SELECT json_object(
  'urls', json((SELECT json_group_array(u.url) FROM (
    SELECT DISTINCT s.url FROM staged AS t CROSS JOIN snapshot AS s ON s.id = t.snapshot_id
    WHERE t.run_id = :run_id AND t.data IS NOT NULL
  ) AS u)),
  'has_mixed', EXISTS (SELECT 1 FROM staged WHERE run_id = :run_id AND data IS NOT NULL AND merge <> 'replace'));

-- name: mark_pages
-- Only where a page is as it was replayed.
UPDATE page SET done_version = :version, done_run_id = :run_id, done_parts = p.value ->> 2
FROM jsonb_each(:pages) AS p
WHERE page.source_id = :source_id AND page.url = p.value ->> 0 AND page.done_hash = p.value ->> 1;

-- name: drop_staged_pages
DELETE FROM staged_page WHERE (run_id, url, job_id) IN (
  SELECT run_id, url, job_id FROM staged_page WHERE run_id = :run_id LIMIT :limit
);

-- name: known_pages
SELECT url, announced, announced_run_id, done_announced, done_hash, done_version, done_run_id, done_at, done_parts
FROM page WHERE source_id = :source_id AND url IN (SELECT value FROM jsonb_each(:urls));

-- name: drop_pages
DELETE FROM page WHERE (source_id, url) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:pages));
