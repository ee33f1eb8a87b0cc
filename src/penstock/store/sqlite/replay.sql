-- name: runs_since
-- The runs that a source has ended since then, the newest first.
SELECT json_group_array(id) FROM (
  SELECT id FROM run
  WHERE source_id = :source_id AND kind NOT IN ('replay', 'probe')
    AND state IN ('completed', 'partial', 'failed', 'cancelled') AND coalesce(started_at, created_at) >= :since_at
  ORDER BY id DESC
);

-- name: replay_scope
-- For each stage: how many of its jobs came to an end, and how many of those are still there.
SELECT json_group_array(json_array(g.run_id, g.stage, g.unit, g.succeeded + g.skipped + g.quarantined, (
  SELECT count(*) FROM job INDEXED BY sqlite_autoindex_job_1
  WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state IN ('succeeded', 'skipped', 'quarantined')
), g.quarantined))
FROM jsonb_each(:run_ids) AS c CROSS JOIN run_stage AS g ON g.run_id = c.value;

-- name: replayed_jobs
-- A page of the jobs of a stage, in the order of their keys, each with the last page it has fetched. What robots.txt
-- forbade has none.
SELECT json_group_array(json_array(j.key, i.item, (SELECT max(s.id) FROM snapshot AS s INDEXED BY snapshot_job WHERE s.job_id = j.id)))
FROM (
  SELECT id, key FROM job INDEXED BY sqlite_autoindex_job_1
  WHERE run_id = :run_id AND stage = :stage AND key >= :after_key AND (:is_first OR key <> :after_key)
    AND (state = 'quarantined' OR (state IN ('succeeded', 'skipped') AND NOT :quarantined_only))
    AND NOT (state = 'skipped' AND EXISTS (SELECT 1 FROM job_failure AS f WHERE f.job_id = job.id AND f.kind IN ('disallowed', 'missing')))
  ORDER BY key LIMIT :limit
) AS j
CROSS JOIN job_item AS i ON i.job_id = j.id;

-- name: replayed_snapshot
-- What the replayed runs have of this address: what the same job has fetched, else what was fetched last.
-- Where more was sent than an address, only what the same job has fetched there, and only if that was one thing.
SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', json(s.headers),
  'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p.offset, 'length', p.length)
FROM snapshot AS s JOIN payload AS p ON p.hash = s.hash
WHERE s.url = :url AND (
  s.run_id = :run_id
  OR :run_id IS NULL AND s.fetched_at >= :since_at AND s.run_id IN (SELECT id FROM run WHERE source_id = :source_id)
) AND (
  NOT :is_sole OR s.job_id = (SELECT job_id FROM snapshot WHERE id = :snapshot_id)
    AND (SELECT count(DISTINCT o.hash) FROM snapshot AS o INDEXED BY snapshot_job WHERE o.job_id = s.job_id AND o.url = :url) = 1
)
ORDER BY s.job_id = (SELECT job_id FROM snapshot WHERE id = :snapshot_id) DESC, s.id DESC LIMIT 1;

-- name: snapshot_before
-- What a run knew of a page that it did not fetch anew because it was unchanged.
SELECT json_object('id', s.id, 'url', s.url, 'final_url', s.final_url, 'status', s.status, 'headers', json(s.headers),
  'fetched_at', s.fetched_at, 'hash', s.hash, 'segment', p.segment, 'offset', p.offset, 'length', p.length)
FROM snapshot AS s JOIN payload AS p ON p.hash = s.hash
WHERE s.url = :url
  AND s.fetched_at <= coalesce((SELECT finished_at FROM run WHERE id = :run_id), 9e99)
  AND EXISTS (
    SELECT 1 FROM job
    WHERE job.run_id = :run_id AND job.stage = :stage AND job.key = :key AND job.state IN ('succeeded', 'skipped')
  )
ORDER BY s.id DESC LIMIT 1;

-- name: staged_present
-- What is staged under these keys, and the records as they are; NULL where there is none.
SELECT json_group_array(json_array(k.value ->> 0, k.value ->> 1, k.value ->> 2,
  t.merge, t.data, t.score, t.snapshot_id, t.base_version, r.version, r.data, r.score, r.is_removed))
FROM jsonb_each(:keys) AS k
LEFT JOIN staged AS t ON t.run_id = k.value ->> 0 AND t.collection = k.value ->> 1 AND t.key = k.value ->> 2
LEFT JOIN record AS r ON r.collection = k.value ->> 1 AND r.key = k.value ->> 2;

-- name: stage_new
INSERT INTO staged (run_id, collection, key, data, score, merge, source_id, snapshot_id, base_version, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, :now
FROM jsonb_each(:rows) WHERE true
ON CONFLICT (run_id, collection, key) DO NOTHING;

-- name: stage_again
UPDATE staged
SET data = u.value ->> 3, score = u.value ->> 4, merge = u.value ->> 5, source_id = u.value ->> 6,
  snapshot_id = u.value ->> 7, base_version = u.value ->> 8, at = :now
FROM jsonb_each(:rows) AS u
WHERE staged.run_id = u.value ->> 0 AND staged.collection = u.value ->> 1 AND staged.key = u.value ->> 2;

-- name: sealable
-- A page of a replay's own jobs: what they were served from, and how they ended.
SELECT json_group_array(json_array(j.key, i.snapshot_id, j.state))
FROM (
  SELECT id, key, state FROM job INDEXED BY sqlite_autoindex_job_1
  WHERE run_id = :run_id AND stage = :stage AND key >= :after_key AND (:is_first OR key <> :after_key)
  ORDER BY key LIMIT :limit
) AS j
CROSS JOIN job_item AS i ON i.job_id = j.id;

-- name: stage_removals
-- Records that came from these pages, or from what stood at their addresses earlier, and were not made again.
-- Not where something that was made of the page has failed: nobody knows what it would have become.
INSERT INTO staged (run_id, collection, key, data, score, merge, source_id, snapshot_id, base_version, at)
SELECT DISTINCT :run_id, r.collection, r.key, NULL, NULL, 'remove', r.source_id, r.snapshot_id, r.version, :now
FROM jsonb_each(:snapshots) AS c
CROSS JOIN snapshot AS origin ON origin.id = c.value
CROSS JOIN snapshot AS page INDEXED BY snapshot_job ON page.job_id = origin.job_id
CROSS JOIN snapshot AS earlier INDEXED BY snapshot_url ON earlier.url = page.url AND earlier.id <= page.id
CROSS JOIN record AS r INDEXED BY record_snapshot ON r.snapshot_id = earlier.id
WHERE r.source_id = :source_id AND NOT r.is_removed AND origin.job_id NOT IN (
  SELECT s.job_id FROM job INDEXED BY job_quarantined
  CROSS JOIN job_item AS i ON i.job_id = job.id CROSS JOIN snapshot AS s ON s.id = i.snapshot_id
  WHERE job.state = 'quarantined' AND job.run_id = :run_id
)
ON CONFLICT (run_id, collection, key) DO NOTHING;

-- name: staged_changes
-- A page of what a replay would change, in the order of collections and keys, each beside the record as it is.
SELECT json_group_array(json_array(t.collection, t.key, t.merge, t.data, t.score, t.source_id, t.snapshot_id, t.base_version,
  r.version, r.data, r.score, r.snapshot_id, r.is_removed))
FROM (
  SELECT collection, key, merge, data, score, source_id, snapshot_id, base_version FROM staged
  WHERE run_id = :run_id AND (collection, key) > (:after_collection, :after_key) AND (data IS NOT NULL OR merge = 'remove')
  ORDER BY collection, key LIMIT :limit
) AS t
LEFT JOIN record AS r ON r.collection = t.collection AND r.key = t.key;

-- name: unstage
DELETE FROM staged
WHERE run_id = :run_id AND (collection, key) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:keys))
RETURNING collection, key;

-- name: drop_staged
DELETE FROM staged WHERE (run_id, collection, key) IN (
  SELECT run_id, collection, key FROM staged
  WHERE run_id = :run_id AND (NOT :same_only OR data IS NULL AND merge <> 'remove') LIMIT :limit
);

-- name: replay_state
SELECT json_object('state', state, 'sealed', json(sealed), 'added', added, 'changed', changed, 'removed', removed, 'at', at)
FROM replay WHERE run_id = :run_id;

-- name: undecided
-- Replays that have ended and have something staged, and what was cut short half-way; by one look for each of them, however
-- much they have staged.
WITH RECURSIVE waiting (run_id) AS (
  SELECT min(run_id) FROM staged
  UNION ALL
  SELECT (SELECT min(staged.run_id) FROM staged WHERE staged.run_id > waiting.run_id)
  FROM waiting WHERE waiting.run_id IS NOT NULL
), found (run_id) AS (
  SELECT run_id FROM waiting WHERE run_id IS NOT NULL UNION SELECT run_id FROM replay WHERE state = 'committing'
)
SELECT json_group_array(json_object('run_id', u.id, 'source', u.source, 'of_run_id', u.of_run_id, 'is_undo', json(u.is_undo),
  'is_cut_short', json(u.is_cut_short), 'finished_at', u.finished_at))
FROM (
  SELECT run.id, source.key AS source, run.of_run_id, run.finished_at,
    iif(run.options ->> 'is_undo', 'true', 'false') AS is_undo,
    iif(coalesce(replay.state, '') = 'committing', 'true', 'false') AS is_cut_short
  FROM found CROSS JOIN run ON run.id = found.run_id CROSS JOIN source ON source.id = run.source_id
  LEFT JOIN replay ON replay.run_id = run.id
  WHERE run.kind = 'replay' AND run.finished_at IS NOT NULL
  ORDER BY run.id LIMIT :limit
) AS u;

-- name: old_replays
-- Replays that nobody has committed or dropped for too long: by one look for each that has something staged.
WITH RECURSIVE waiting (run_id) AS (
  SELECT min(run_id) FROM (SELECT min(run_id) AS run_id FROM staged UNION ALL SELECT min(run_id) FROM staged_page)
  UNION ALL
  SELECT (
    SELECT min(run_id) FROM (
      SELECT min(run_id) AS run_id FROM staged WHERE staged.run_id > waiting.run_id
      UNION ALL SELECT min(run_id) FROM staged_page WHERE staged_page.run_id > waiting.run_id
    )
  ) FROM waiting WHERE waiting.run_id IS NOT NULL
)
SELECT json_group_array(json_array(id, source_id)) FROM (
  SELECT run.id, run.source_id FROM waiting CROSS JOIN run ON run.id = waiting.run_id
  WHERE run.kind IN ('replay', 'probe') AND run.finished_at < :before
  ORDER BY run.id LIMIT 1
);

-- name: reject_shift
-- What is rejected in these runs and not in those, by stage and key, of jobs and pages that the replay has, too. Without a key of their own, items that were made
-- differently of one page have different keys: of those, as many as were rejected there for the same code are no news.
WITH here AS MATERIALIZED (
  SELECT stage, key, min(snapshot_id) AS snapshot_id, min(code) AS code, min(reason) AS reason,
    key GLOB '1:*' AND length(key) = 34 AND min(snapshot_id) IS NOT NULL AS is_digest
  FROM reject WHERE run_id IN (SELECT value FROM jsonb_each(:these))
    AND (run_id = :replay_id OR EXISTS (
      SELECT 1 FROM job AS j LEFT JOIN job_item AS i ON i.job_id = j.id LEFT JOIN job AS p NOT INDEXED ON p.id = i.parent_id
      WHERE j.id = reject.job_id AND EXISTS (
        SELECT 1 FROM job AS r INDEXED BY sqlite_autoindex_job_1
        WHERE r.run_id = :replay_id AND (r.stage, r.key) IN ((j.stage, j.key), (p.stage, p.key)))))
  GROUP BY stage, key
), there AS MATERIALIZED (
  SELECT stage, key, min(snapshot_id) AS snapshot_id, min(code) AS code,
    key GLOB '1:*' AND length(key) = 34 AND min(snapshot_id) IS NOT NULL AS is_digest
  FROM reject WHERE run_id IN (SELECT value FROM jsonb_each(:those))
    AND (run_id = :replay_id OR EXISTS (
      SELECT 1 FROM job AS j LEFT JOIN job_item AS i ON i.job_id = j.id LEFT JOIN job AS p NOT INDEXED ON p.id = i.parent_id
      WHERE j.id = reject.job_id AND EXISTS (
        SELECT 1 FROM job AS r INDEXED BY sqlite_autoindex_job_1
        WHERE r.run_id = :replay_id AND (r.stage, r.key) IN ((j.stage, j.key), (p.stage, p.key)))))
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
SELECT json_object(
  'count', (SELECT count(*) FROM here),
  'only', (SELECT count(*) FROM only_here),
  'first', json((SELECT json_group_array(json_object('stage', o.stage, 'key', o.key, 'reason', o.reason))
    FROM (SELECT stage, key, reason FROM only_here ORDER BY stage, key LIMIT :limit) AS o)));

-- name: replay_run
SELECT json_object('source_id', source_id, 'state', state, 'finished_at', finished_at) FROM run WHERE id = :id;
