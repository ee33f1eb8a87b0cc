-- name: runs_since
-- The runs that a source has ended since then, the newest first.
SELECT coalesce(json_agg(id ORDER BY id DESC), '[]')::text FROM penstock.run
WHERE source_id = %(source_id)s AND kind NOT IN ('replay', 'probe')
  AND state IN ('completed', 'partial', 'failed', 'cancelled') AND coalesce(started_at, created_at) >= %(since_at)s;

-- name: replay_scope
-- For each stage: how many of its jobs came to an end, and how many of those are still there.
SELECT coalesce(json_agg(json_build_array(g.run_id, g.stage, g.unit, g.succeeded + g.skipped + g.quarantined, (
  SELECT count(*) FROM (
    SELECT job_id FROM penstock.job_key WHERE job_key.run_id = g.run_id AND job_key.stage = g.stage OFFSET 0
  ) AS k
  CROSS JOIN LATERAL (SELECT state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
  WHERE j.state IN ('succeeded', 'skipped', 'quarantined')
), g.quarantined)), '[]')::text
FROM penstock.stage_count AS g WHERE g.run_id = ANY (translate(%(run_ids)s, '[]', '{}')::bigint[]);

-- name: replayed_jobs
-- A page of the jobs of a stage, in the order of their keys, each with the last page it has fetched. What robots.txt
-- forbade has none.
-- Behind OFFSET 0: the largest of all ids is not to be walked down from.
SELECT coalesce(json_agg(json_build_array(j.key, i.item, (
  SELECT max(s.id) FROM (SELECT id FROM penstock.snapshot WHERE job_id = j.id OFFSET 0) AS s)) ORDER BY j.key), '[]')::text
FROM (
  SELECT k.job_id AS id, k.key FROM penstock.job_key AS k
  CROSS JOIN LATERAL (SELECT state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS o
  WHERE k.run_id = %(run_id)s AND k.stage = %(stage)s AND k.key >= %(after_key)s
    AND (%(is_first)s OR k.key <> %(after_key)s)
    AND (o.state = 'quarantined' OR (o.state IN ('succeeded', 'skipped') AND NOT %(quarantined_only)s))
    AND NOT (o.state = 'skipped' AND EXISTS (
      SELECT 1 FROM penstock.job_failure AS f WHERE f.job_id = k.job_id AND f.kind IN ('disallowed', 'missing') OFFSET 0))
  ORDER BY k.key LIMIT %(limit)s
) AS j
CROSS JOIN LATERAL (SELECT item FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS i;

-- name: replayed_snapshot
-- What the replayed runs have of this address: what the same job has fetched, else what was fetched last.
-- Where more was sent than an address, only what the same job has fetched there, and only if that was one thing.
SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', s.headers::json,
  'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p."offset", 'length', p.length)::text
FROM penstock.snapshot AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p
WHERE md5(s.url) = md5(%(url)s) AND s.url = %(url)s AND (
  s.run_id = %(run_id)s::bigint
  OR %(run_id)s::bigint IS NULL AND s.fetched_at >= %(since_at)s::double precision
    AND s.run_id IN (SELECT id FROM penstock.run WHERE source_id = %(source_id)s)
) AND (
  NOT %(is_sole)s OR s.job_id = (SELECT job_id FROM penstock.snapshot WHERE id = %(snapshot_id)s::bigint)
    AND (SELECT count(DISTINCT o.hash) FROM penstock.snapshot AS o WHERE o.job_id = s.job_id AND o.url = %(url)s) = 1
)
ORDER BY s.job_id IS NOT DISTINCT FROM (SELECT job_id FROM penstock.snapshot WHERE id = %(snapshot_id)s::bigint) DESC, s.id DESC
LIMIT 1;

-- name: snapshot_before
-- What a run knew of a page that it did not fetch anew because it was unchanged.
SELECT json_build_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', s.headers::json,
  'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p."offset", 'length', p.length)::text
FROM penstock.snapshot AS s
CROSS JOIN LATERAL (SELECT segment, "offset", length FROM penstock.payload WHERE hash = s.hash OFFSET 0) AS p
WHERE md5(s.url) = md5(%(url)s) AND s.url = %(url)s
  AND s.fetched_at <= coalesce((SELECT finished_at FROM penstock.run WHERE id = %(run_id)s), 'infinity')
  AND EXISTS (
    SELECT 1 FROM penstock.job_key AS k
    CROSS JOIN LATERAL (SELECT state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
    WHERE k.run_id = %(run_id)s AND k.stage = %(stage)s AND k.key = %(key)s AND j.state IN ('succeeded', 'skipped')
  )
ORDER BY s.id DESC LIMIT 1;

-- name: staged_present
-- What is staged under these keys, and the records as they are; NULL where there is none.
-- What is staged is locked in the order of its keys: two who stage the same wait for each other in one direction only.
SELECT coalesce(json_agg(json_build_array(k.run_id, k.collection, k.key,
  t.merge, t.data, t.score, t.snapshot_id, t.base_version, r.version, r.data, r.score, r.is_removed)), '[]')::text
FROM (
  SELECT (v ->> 0)::bigint AS run_id, v ->> 1 AS collection, v ->> 2 AS key FROM jsonb_array_elements(%(keys)s::jsonb) AS v
  ORDER BY (v ->> 0)::bigint, (v ->> 1) COLLATE "C", (v ->> 2) COLLATE "C"
) AS k
LEFT JOIN LATERAL (
  SELECT merge, data, score, snapshot_id, base_version FROM penstock.staged
  WHERE run_id = k.run_id AND collection = k.collection AND key = k.key FOR UPDATE
) AS t ON true
LEFT JOIN LATERAL (
  SELECT version, data, score, is_removed FROM penstock.record WHERE collection = k.collection AND key = k.key OFFSET 0
) AS r ON true;

-- name: stage_new
-- One that somebody else has staged meanwhile is left as it is, and missing from the count.
INSERT INTO penstock.staged (run_id, collection, key, data, score, merge, source_id, snapshot_id, base_version, at)
SELECT (s ->> 0)::bigint, s ->> 1, s ->> 2, s ->> 3, (s ->> 4)::double precision, s ->> 5, (s ->> 6)::bigint,
  (s ->> 7)::bigint, (s ->> 8)::bigint, %(now)s
FROM jsonb_array_elements(%(rows)s::jsonb) AS s
ORDER BY (s ->> 0)::bigint, (s ->> 1) COLLATE "C", (s ->> 2) COLLATE "C"
ON CONFLICT (run_id, collection, key) DO NOTHING;

-- name: stage_again
UPDATE penstock.staged AS t
SET data = u.v ->> 3, score = (u.v ->> 4)::double precision, merge = u.v ->> 5, source_id = (u.v ->> 6)::bigint,
  snapshot_id = (u.v ->> 7)::bigint, base_version = (u.v ->> 8)::bigint, at = %(now)s
FROM (SELECT v FROM jsonb_array_elements(%(rows)s::jsonb) AS v) AS u
WHERE t.run_id = (u.v ->> 0)::bigint AND t.collection = u.v ->> 1 AND t.key = u.v ->> 2;

-- name: sealable
-- A page of a replay's own jobs: what they were served from, and how they ended.
SELECT coalesce(json_agg(json_build_array(j.key, i.snapshot_id, j.state) ORDER BY j.key), '[]')::text
FROM (
  SELECT k.job_id AS id, k.key, o.state FROM penstock.job_key AS k
  CROSS JOIN LATERAL (SELECT state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS o
  WHERE k.run_id = %(run_id)s AND k.stage = %(stage)s AND k.key >= %(after_key)s
    AND (%(is_first)s OR k.key <> %(after_key)s)
  ORDER BY k.key LIMIT %(limit)s
) AS j
CROSS JOIN LATERAL (SELECT snapshot_id FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS i;

-- name: stage_removals
-- Records that came from these pages, or from what stood at their addresses earlier, and were not made again.
-- Not where something that was made of the page has failed: nobody knows what it would have become.
INSERT INTO penstock.staged (run_id, collection, key, data, score, merge, source_id, snapshot_id, base_version, at)
SELECT DISTINCT ON (r.collection, r.key)
  %(run_id)s::bigint, r.collection, r.key, NULL, NULL::double precision, 'remove', r.source_id, r.snapshot_id, r.version, %(now)s
FROM unnest(translate(%(snapshots)s, '[]', '{}')::bigint[]) AS c (id)
CROSS JOIN LATERAL (SELECT job_id FROM penstock.snapshot WHERE id = c.id OFFSET 0) AS origin
CROSS JOIN LATERAL (SELECT id, url FROM penstock.snapshot WHERE job_id = origin.job_id OFFSET 0) AS page
CROSS JOIN LATERAL (
  SELECT id FROM penstock.snapshot WHERE md5(url) = md5(page.url) AND url = page.url AND id <= page.id OFFSET 0
) AS earlier
CROSS JOIN LATERAL (
  SELECT collection, key, source_id, snapshot_id, version FROM penstock.record
  WHERE snapshot_id = earlier.id AND source_id = %(source_id)s AND NOT is_removed OFFSET 0
) AS r
WHERE origin.job_id NOT IN (
  SELECT s.job_id FROM (
    SELECT id FROM penstock.job WHERE state = 'quarantined' AND run_id = %(run_id)s OFFSET 0
  ) AS failed
  CROSS JOIN LATERAL (SELECT snapshot_id FROM penstock.job_item WHERE job_id = failed.id OFFSET 0) AS i
  CROSS JOIN LATERAL (SELECT job_id FROM penstock.snapshot WHERE id = i.snapshot_id OFFSET 0) AS s
)
ORDER BY r.collection, r.key
ON CONFLICT (run_id, collection, key) DO NOTHING;

-- name: staged_changes
-- A page of what a replay would change, in the order of collections and keys, each beside the record as it is.
SELECT coalesce(json_agg(json_build_array(
  t.collection, t.key, t.merge, t.data, t.score, t.source_id, t.snapshot_id, t.base_version,
  r.version, r.data, r.score, r.snapshot_id, r.is_removed) ORDER BY t.collection, t.key), '[]')::text
FROM (
  SELECT collection, key, merge, data, score, source_id, snapshot_id, base_version FROM penstock.staged
  WHERE run_id = %(run_id)s AND (collection, key) > (%(after_collection)s, %(after_key)s)
    AND (data IS NOT NULL OR merge = 'remove')
  ORDER BY collection, key LIMIT %(limit)s
) AS t
LEFT JOIN LATERAL (
  SELECT version, data, score, snapshot_id, is_removed FROM penstock.record
  WHERE collection = t.collection AND key = t.key OFFSET 0
) AS r ON true;

-- name: unstage
DELETE FROM penstock.staged
WHERE run_id = %(run_id)s AND (collection, key) IN (
  SELECT v ->> 0, v ->> 1 FROM jsonb_array_elements(%(keys)s::jsonb) AS v
)
RETURNING collection, key;

-- name: drop_staged
DELETE FROM penstock.staged WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM penstock.staged
  WHERE run_id = %(run_id)s AND (NOT %(same_only)s OR data IS NULL AND merge <> 'remove')
  LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));

-- name: replay_state
SELECT json_build_object(
  'state', state, 'sealed', sealed::json, 'added', added, 'changed', changed, 'removed', removed, 'at', at)::text
FROM penstock.replay WHERE run_id = %(run_id)s;

-- name: undecided
-- Replays that have ended and have something staged, and what was cut short half-way; by one look for each of them, however
-- much they have staged.
WITH RECURSIVE waiting (run_id) AS (
  SELECT min(run_id) FROM penstock.staged
  UNION ALL
  SELECT (SELECT min(s.run_id) FROM penstock.staged AS s WHERE s.run_id > waiting.run_id)
  FROM waiting WHERE waiting.run_id IS NOT NULL
), found (run_id) AS (
  SELECT run_id FROM waiting WHERE run_id IS NOT NULL
  UNION SELECT run_id FROM penstock.replay WHERE state = 'committing'
)
SELECT coalesce(json_agg(json_build_object('run_id', u.id, 'source', u.source, 'of_run_id', u.of_run_id,
  'is_undo', u.is_undo, 'is_cut_short', u.is_cut_short, 'finished_at', u.finished_at) ORDER BY u.id), '[]')::text
FROM (
  SELECT run.id, source.key AS source, run.of_run_id, run.finished_at,
    coalesce((run.options::json ->> 'is_undo')::boolean, false) AS is_undo,
    coalesce(replay.state, '') = 'committing' AS is_cut_short
  FROM found
  CROSS JOIN LATERAL (
    SELECT id, source_id, of_run_id, options, finished_at FROM penstock.run
    WHERE id = found.run_id AND kind = 'replay' AND finished_at IS NOT NULL OFFSET 0
  ) AS run
  JOIN penstock.source ON source.id = run.source_id
  LEFT JOIN penstock.replay ON replay.run_id = run.id
  ORDER BY run.id LIMIT %(limit)s
) AS u;

-- name: old_replays
-- Replays that nobody has committed or dropped for too long: by one look for each that has something staged.
WITH RECURSIVE waiting (run_id) AS (
  SELECT least((SELECT min(run_id) FROM penstock.staged), (SELECT min(run_id) FROM penstock.staged_page))
  UNION ALL
  SELECT least(
    (SELECT min(s.run_id) FROM penstock.staged AS s WHERE s.run_id > waiting.run_id),
    (SELECT min(p.run_id) FROM penstock.staged_page AS p WHERE p.run_id > waiting.run_id)
  ) FROM waiting WHERE waiting.run_id IS NOT NULL
)
SELECT coalesce(json_agg(json_build_array(o.id, o.source_id)), '[]')::text FROM (
  SELECT r.id, r.source_id FROM waiting
  CROSS JOIN LATERAL (
    SELECT id, source_id FROM penstock.run WHERE id = waiting.run_id AND kind IN ('replay', 'probe') AND finished_at < %(before)s OFFSET 0
  ) AS r
  ORDER BY r.id LIMIT 1
) AS o;

-- name: reject_shift
-- What is rejected in these runs and not in those, by stage and key, of jobs and pages that the replay has, too. Without a key of their own, items that were made
-- differently of one page have different keys: of those, as many as were rejected there for the same code are no news.
WITH here AS MATERIALIZED (
  SELECT stage, key, min(snapshot_id) AS snapshot_id, min(code) AS code, min(reason) AS reason,
    key LIKE '1:%%' AND length(key) = 34 AND min(snapshot_id) IS NOT NULL AS is_digest
  FROM penstock.reject WHERE run_id = ANY (translate(%(these)s, '[]', '{}')::bigint[])
    AND (run_id = %(replay_id)s OR EXISTS (
      SELECT 1 FROM (SELECT stage, key FROM penstock.job WHERE id = reject.job_id OFFSET 0) AS j
      LEFT JOIN LATERAL (SELECT parent_id FROM penstock.job_item WHERE job_id = reject.job_id OFFSET 0) AS i ON true
      LEFT JOIN LATERAL (SELECT stage, key FROM penstock.job WHERE id = i.parent_id OFFSET 0) AS p ON true
      WHERE EXISTS (SELECT 1 FROM penstock.job_key AS r WHERE r.run_id = %(replay_id)s AND r.stage = j.stage AND r.key = j.key)
        OR EXISTS (SELECT 1 FROM penstock.job_key AS r WHERE r.run_id = %(replay_id)s AND r.stage = p.stage AND r.key = p.key)))
  GROUP BY stage, key
), there AS MATERIALIZED (
  SELECT stage, key, min(snapshot_id) AS snapshot_id, min(code) AS code,
    key LIKE '1:%%' AND length(key) = 34 AND min(snapshot_id) IS NOT NULL AS is_digest
  FROM penstock.reject WHERE run_id = ANY (translate(%(those)s, '[]', '{}')::bigint[])
    AND (run_id = %(replay_id)s OR EXISTS (
      SELECT 1 FROM (SELECT stage, key FROM penstock.job WHERE id = reject.job_id OFFSET 0) AS j
      LEFT JOIN LATERAL (SELECT parent_id FROM penstock.job_item WHERE job_id = reject.job_id OFFSET 0) AS i ON true
      LEFT JOIN LATERAL (SELECT stage, key FROM penstock.job WHERE id = i.parent_id OFFSET 0) AS p ON true
      WHERE EXISTS (SELECT 1 FROM penstock.job_key AS r WHERE r.run_id = %(replay_id)s AND r.stage = j.stage AND r.key = j.key)
        OR EXISTS (SELECT 1 FROM penstock.job_key AS r WHERE r.run_id = %(replay_id)s AND r.stage = p.stage AND r.key = p.key)))
  GROUP BY stage, key
), news AS MATERIALIZED (
  SELECT h.stage, h.key, h.snapshot_id, h.code, h.reason, h.is_digest,
    row_number() OVER (PARTITION BY h.stage, h.snapshot_id, h.code, h.is_digest ORDER BY h.key) AS n
  FROM here AS h WHERE NOT EXISTS (SELECT 1 FROM there AS t WHERE t.stage = h.stage AND t.key = h.key)
), olds AS MATERIALIZED (
  SELECT t.stage, t.snapshot_id, t.code, t.is_digest,
    row_number() OVER (PARTITION BY t.stage, t.snapshot_id, t.code, t.is_digest ORDER BY t.key) AS n
  FROM there AS t WHERE NOT EXISTS (SELECT 1 FROM here AS h WHERE h.stage = t.stage AND h.key = t.key)
), only_here AS MATERIALIZED (
  SELECT news.stage, news.key, news.reason FROM news WHERE NOT (news.is_digest AND EXISTS (
    SELECT 1 FROM olds AS o
    WHERE o.snapshot_id = news.snapshot_id AND o.stage = news.stage AND o.code = news.code AND o.n = news.n AND o.is_digest
  ))
)
SELECT json_build_object(
  'count', (SELECT count(*) FROM here),
  'only', (SELECT count(*) FROM only_here),
  'first', (SELECT coalesce(json_agg(json_build_object('stage', o.stage, 'key', o.key, 'reason', o.reason)), '[]')
    FROM (SELECT stage, key, reason FROM only_here ORDER BY stage, key LIMIT %(limit)s) AS o))::text;

-- name: replay_run
SELECT json_build_object('source_id', source_id, 'state', state, 'finished_at', finished_at)::text
FROM penstock.run WHERE id = %(id)s;
