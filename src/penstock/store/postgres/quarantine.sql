-- part: entry_filter
AND (%(job_id)s::bigint IS NULL OR j.id = %(job_id)s)
AND (%(run_id)s::bigint IS NULL OR j.run_id = %(run_id)s)
AND (%(source_id)s::bigint IS NULL OR j.source_id = %(source_id)s)
AND (%(stage)s::text IS NULL OR j.stage = %(stage)s)
AND (%(kind)s::text IS NULL OR e.kind = %(kind)s)
AND (%(cause)s::text IS NULL OR e.cause = %(cause)s)
AND (NOT %(is_escalated)s OR e.escalated_at IS NOT NULL)
AND (%(run_id)s::bigint IS NOT NULL OR %(job_id)s::bigint IS NOT NULL OR %(is_apart)s = ((SELECT r.kind FROM penstock.run AS r WHERE r.id = j.run_id) IN ('replay', 'probe')))

-- name: escalated_causes
-- Of what failed now, the causes that are not to be tried again, with how many pages had succeeded when they last failed
-- and how many have by now.
SELECT coalesce(json_agg(json_build_array(
  c.source_id, r.id, c.cause, c.failures, c.succeeded,
  (SELECT coalesce(sum(g.succeeded), 0)::bigint FROM penstock.stage_count AS g WHERE g.run_id = r.id AND g.unit = 'page'))),
  '[]')::text
FROM jsonb_array_elements(%(wanted)s::jsonb) AS w
JOIN penstock.cause AS c ON c.source_id = (w ->> 0)::bigint AND c.cause = w ->> 2
JOIN penstock.run AS r ON r.id = (w ->> 1)::bigint
WHERE c.escalated_at IS NOT NULL AND c.pipeline_version = r.pipeline_version;

-- name: note_causes
-- Counts begin again with a new version of the pipeline, and for what may pass by itself with every page that succeeds.
-- In the order of their keys: two who note the same causes wait for each other in one direction only.
INSERT INTO penstock.cause (source_id, cause, pipeline_version, failures, first_at, last_at, succeeded)
SELECT (w ->> 0)::bigint, w ->> 1, r.pipeline_version, (w ->> 3)::bigint, %(now)s, %(now)s,
  CASE WHEN (w ->> 4)::boolean THEN (
    SELECT coalesce(sum(g.succeeded), 0)::bigint FROM penstock.stage_count AS g WHERE g.run_id = r.id AND g.unit = 'page'
  ) ELSE -1 END
FROM jsonb_array_elements(%(causes)s::jsonb) AS w JOIN penstock.run AS r ON r.id = (w ->> 2)::bigint
ORDER BY (w ->> 0)::bigint, (w ->> 1) COLLATE "C"
ON CONFLICT (source_id, cause) DO UPDATE
SET failures = excluded.failures + CASE
    WHEN cause.pipeline_version = excluded.pipeline_version AND cause.succeeded = excluded.succeeded THEN cause.failures
    ELSE 0 END,
  first_at = CASE
    WHEN cause.pipeline_version = excluded.pipeline_version AND cause.succeeded = excluded.succeeded THEN cause.first_at
    ELSE excluded.first_at END,
  escalated_at = CASE
    WHEN cause.pipeline_version = excluded.pipeline_version AND cause.succeeded = excluded.succeeded THEN cause.escalated_at
    END,
  pipeline_version = excluded.pipeline_version, succeeded = excluded.succeeded, last_at = excluded.last_at;

-- name: escalate_causes
UPDATE penstock.cause SET escalated_at = %(now)s
FROM jsonb_array_elements(%(causes)s::jsonb) AS w
WHERE cause.source_id = (w ->> 0)::bigint AND cause.cause = w ->> 1
  AND cause.escalated_at IS NULL AND cause.failures >= %(enough)s
RETURNING cause.source_id, cause.cause, cause.failures;

-- name: escalate_entries
UPDATE penstock.job_failure SET escalated_at = %(now)s
WHERE escalated_at IS NULL AND cause = %(cause)s AND job_id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE state = 'quarantined' AND source_id = %(source_id)s
));

-- name: forget_causes
-- Somebody has looked at them: what fails for these causes is counted from the beginning.
DELETE FROM penstock.cause WHERE (source_id, cause) IN (
  SELECT k.source_id, k.cause FROM penstock.cause AS k
  WHERE (k.source_id, k.cause) IN (
    SELECT j.source_id, f.cause FROM jsonb_array_elements(%(ids)s::jsonb) AS c
    CROSS JOIN LATERAL (SELECT id, source_id FROM penstock.job WHERE id = c::bigint OFFSET 0) AS j
    CROSS JOIN LATERAL (SELECT cause FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f
  )
  ORDER BY k.source_id, k.cause FOR UPDATE
);

-- name: forget_causes_of_run
DELETE FROM penstock.cause WHERE (source_id, cause) IN (
  SELECT k.source_id, k.cause FROM penstock.cause AS k
  WHERE (k.source_id, k.cause) IN (
    SELECT j.source_id, f.cause FROM penstock.job AS j
    CROSS JOIN LATERAL (SELECT cause FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f
    WHERE j.state = 'quarantined' AND j.run_id = %(run_id)s
  )
  ORDER BY k.source_id, k.cause FOR UPDATE
);

-- name: drop_causes
DELETE FROM penstock.cause WHERE (source_id, cause) IN (
  SELECT k.source_id, k.cause FROM penstock.cause AS k WHERE k.last_at < %(before)s FOR UPDATE SKIP LOCKED
);

-- name: enqueued_at
-- A job's rank says when it was enqueued, and stays what it was however often it is tried.
SELECT coalesce(json_agg(json_build_array(j.id, j.rank - g.priority * %(ageing_s)s::double precision)), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS c
CROSS JOIN LATERAL (SELECT id, run_id, stage, rank FROM penstock.job WHERE id = c::bigint OFFSET 0) AS j
JOIN penstock.run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage;

-- name: find_entries
-- In the order of the index that holds the quarantined ones only.
SELECT coalesce(json_agg(json_build_array(f.run_id, f.id) ORDER BY f.run_id, f.id), '[]')::text FROM (
  SELECT j.run_id, j.id FROM penstock.job AS j
  LEFT JOIN LATERAL (
    SELECT kind, cause, at, escalated_at FROM penstock.job_failure WHERE job_id = j.id OFFSET 0
  ) AS e ON true
  WHERE j.state = 'quarantined' AND (j.run_id, j.id) > (%(after_run_id)s, %(after_id)s)
    AND (%(since)s::double precision IS NULL OR e.at >= %(since)s)
    {{entry_filter}}
  ORDER BY j.run_id, j.id LIMIT %(limit)s
) AS f;

-- name: count_entries
SELECT count(*) FROM penstock.job AS j
LEFT JOIN LATERAL (
    SELECT kind, cause, at, escalated_at FROM penstock.job_failure WHERE job_id = j.id OFFSET 0
  ) AS e ON true
WHERE j.state = 'quarantined'
  AND (%(since)s::double precision IS NULL OR e.at >= %(since)s)
  {{entry_filter}};

-- name: entries
SELECT coalesce(json_agg(json_build_object(
  'id', j.id, 'run_id', j.run_id, 'source', s.key, 'stage', j.stage, 'unit', j.unit, 'key', j.key, 'state', j.state,
  'attempt', j.attempt, 'tries', j.tries, 'deaths', j.deaths, 'since', j.at, 'kind', coalesce(e.kind, 'unknown'),
  'error', coalesce(e.error, ''), 'cause', coalesce(e.cause, ''), 'traceback', coalesce(e.traceback, ''),
  'quarantines', coalesce(e.quarantines, 1), 'first_at', coalesce(e.first_at, j.at), 'escalated_at', e.escalated_at,
  'last_at', coalesce(e.at, j.at), 'closed_at', e.closed_at, 'closed_why', coalesce(e.closed_why, ''), 'closed_by_job_id', e.closed_by_job_id,
  'notes', coalesce(e.notes, '[]')::json, 'item', i.item,
  'snapshot', (
    SELECT json_build_object('id', p.id, 'url', p.url, 'status', p.status, 'fetched_at', p.fetched_at)
    FROM penstock.snapshot AS p
    WHERE p.id = coalesce((SELECT max(o.id) FROM penstock.snapshot AS o WHERE o.job_id = j.id), i.snapshot_id))
) ORDER BY c.n), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) WITH ORDINALITY AS c(v, n)
CROSS JOIN LATERAL (
  SELECT id, run_id, source_id, stage, unit, key, state, attempt, tries, deaths, at
  FROM penstock.job WHERE id = c.v::bigint OFFSET 0
) AS j
JOIN penstock.source AS s ON s.id = j.source_id
LEFT JOIN LATERAL (SELECT item, snapshot_id FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS i ON true
LEFT JOIN LATERAL (
  SELECT kind, error, cause, traceback, quarantines, first_at, escalated_at, notes, at,
    closed_at, closed_why, closed_by_job_id
  FROM penstock.job_failure WHERE job_id = j.id OFFSET 0
) AS e ON true;

-- name: cancelled_runs
SELECT coalesce(json_agg(id), '[]')::text FROM penstock.run
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state = 'cancelled';

-- name: release_entries_if_quarantined
-- What is in somebody's hands at this moment is left to them: waiting for it here could be waiting in a circle.
UPDATE penstock.job
SET state = 'queued', tries = 0, throttles = 0, deaths = 0, is_resumed = false, at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'quarantined'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, run_id, source_id, stage, attempt;

-- name: discard_entries_if_quarantined
UPDATE penstock.job SET state = 'cancelled', at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'quarantined'
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, run_id, source_id, stage, attempt;

-- name: expired_entries
SELECT coalesce(json_agg(f.id), '[]')::text FROM (
  SELECT id FROM penstock.job WHERE state = 'quarantined' AND at < %(before)s LIMIT %(limit)s
) AS f;

-- name: add_entry_note
UPDATE penstock.job_failure SET notes = (notes::jsonb || jsonb_build_array(%(note)s::jsonb))::text WHERE job_id = %(id)s;

-- name: causes
SELECT coalesce(json_agg(json_build_object(
  'source', c.source, 'cause', c.cause, 'failures', c.failures, 'pipeline_version', c.pipeline_version,
  'first_at', c.first_at, 'last_at', c.last_at, 'escalated_at', c.escalated_at
) ORDER BY c.escalated_at IS NULL, c.failures DESC, c.source, c.cause), '[]')::text
FROM (
  SELECT s.key AS source, cause.cause, failures, pipeline_version, first_at, last_at, escalated_at
  FROM penstock.cause JOIN penstock.source AS s ON s.id = cause.source_id
  WHERE (%(source_id)s::bigint IS NULL OR cause.source_id = %(source_id)s)
  ORDER BY escalated_at IS NULL, failures DESC, s.key, cause.cause LIMIT %(limit)s
) AS c;

-- name: entry_groups
-- The entries by source, kind and cause. What budgets and the like stop has no cause. Only so many entries are looked at.
SELECT coalesce(json_agg(json_build_object(
  'source', g.source, 'kind', g.kind, 'cause', g.cause, 'jobs', g.n, 'first_at', g.first_at, 'last_at', g.last_at,
  'escalated_at', g.escalated_at, 'error', (SELECT coalesce(max(error), '') FROM penstock.job_failure WHERE job_id = g.job_id),
  'job_id', g.job_id) ORDER BY g.escalated_at IS NULL, g.n DESC, g.source, g.kind, g.cause), '[]')::text
FROM (
  SELECT s.key AS source, coalesce(e.kind, 'unknown') AS kind, coalesce(e.cause, '') AS cause, count(*) AS n, min(j.at) AS first_at,
    max(j.at) AS last_at, max(e.escalated_at) AS escalated_at, max(j.id) AS job_id
  FROM (
    SELECT q.id, q.source_id, q.at FROM penstock.job AS q
    WHERE q.state = 'quarantined' AND (%(source_id)s::bigint IS NULL OR q.source_id = %(source_id)s)
      AND (SELECT r.kind FROM penstock.run AS r WHERE r.id = q.run_id) NOT IN ('replay', 'probe')
    LIMIT %(most)s
  ) AS j
  LEFT JOIN LATERAL (
    SELECT kind, cause, escalated_at FROM penstock.job_failure WHERE job_id = j.id OFFSET 0
  ) AS e ON true
  JOIN penstock.source AS s ON s.id = j.source_id
  GROUP BY s.key, coalesce(e.kind, 'unknown'), coalesce(e.cause, '')
  ORDER BY max(e.escalated_at) IS NULL, count(*) DESC, s.key, 2, 3 LIMIT %(limit)s
) AS g;

-- name: answered_entries
-- The entries of a run's source for which this run has a later job of the same stage and key; or, of a candidate, has
-- extracted its page again. What a backfill does as a whole answers for its own range only. Of its newest runs: a page
-- that fails again and again has its entry in the newest of them.
SELECT coalesce(json_agg(json_build_array(a.id, a.by_id, a.by_state, a.is_same) ORDER BY a.id), '[]')::text FROM (
  SELECT e.id, coalesce(n.id, m.id) AS by_id, coalesce(n.state, m.state) AS by_state, n.id IS NOT NULL AS is_same
  FROM penstock.run AS r
  CROSS JOIN LATERAL (
    SELECT id, kind, state FROM penstock.run WHERE source_id = r.source_id ORDER BY id DESC LIMIT %(runs)s
  ) AS o
  CROSS JOIN LATERAL (
    SELECT id, stage, key, unit, at FROM penstock.job
    WHERE run_id = o.id AND state = 'quarantined' AND id + 0 > %(after_id)s OFFSET 0
  ) AS e
  LEFT JOIN LATERAL (
    SELECT j.id, j.state FROM penstock.job_key AS k
    CROSS JOIN LATERAL (SELECT id, state, at FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
    WHERE k.run_id = r.id AND k.stage = e.stage AND k.key = e.key
      AND j.state IN ('succeeded', 'skipped', 'quarantined') AND (j.at, j.id) > (e.at, e.id)
  ) AS n ON true
  LEFT JOIN LATERAL (
    SELECT j.id, j.state
    FROM (SELECT parent_id FROM penstock.job_item WHERE job_id = e.id AND e.unit = 'candidate' OFFSET 0) AS i
    CROSS JOIN LATERAL (SELECT stage, key FROM penstock.job WHERE id = i.parent_id AND unit = 'page' OFFSET 0) AS p
    CROSS JOIN LATERAL (
      SELECT job_id FROM penstock.job_key WHERE run_id = r.id AND stage = p.stage AND key = p.key OFFSET 0
    ) AS k
    CROSS JOIN LATERAL (SELECT id, state, at FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
    WHERE j.state = 'succeeded' AND (j.at, j.id) > (e.at, e.id)
  ) AS m ON true
  WHERE r.id = %(run_id)s AND o.id <> r.id AND o.state <> 'completed'
    AND o.kind NOT IN ('replay', 'probe') AND r.kind <> 'probe'
    AND (r.kind <> 'replay' OR (%(is_committed)s AND coalesce(n.state, m.state) <> 'quarantined'))
    AND (e.unit <> 'run' OR (o.kind <> 'backfill' AND r.kind <> 'backfill'))
    AND coalesce(n.id, m.id) IS NOT NULL
  ORDER BY e.id LIMIT %(limit)s
) AS a;

-- name: merge_entries
-- What the older entry knows goes into the newer one.
UPDATE penstock.job_failure AS f
SET quarantines = f.quarantines + d.quarantines, first_at = least(coalesce(f.first_at, f.at), d.first_at),
  notes = (d.notes::jsonb || f.notes::jsonb)::text
FROM (
  SELECT (w ->> 1)::bigint AS by_id, o.quarantines, coalesce(o.first_at, o.at) AS first_at, o.notes
  FROM jsonb_array_elements(%(merges)s::jsonb) AS w
  CROSS JOIN LATERAL (
    SELECT quarantines, first_at, at, notes FROM penstock.job_failure WHERE job_id = (w ->> 0)::bigint OFFSET 0
  ) AS o
) AS d
WHERE f.job_id = d.by_id
  AND f.job_id = ANY (ARRAY(SELECT (c ->> 1)::bigint FROM jsonb_array_elements(%(merges)s::jsonb) AS c));

-- name: note_closed
UPDATE penstock.job_failure AS f
SET closed_at = %(now)s, closed_why = w ->> 1, closed_by_job_id = (w ->> 2)::bigint
FROM jsonb_array_elements(%(closings)s::jsonb) AS w
WHERE f.job_id = (w ->> 0)::bigint
  AND f.job_id = ANY (ARRAY(SELECT (c ->> 0)::bigint FROM jsonb_array_elements(%(closings)s::jsonb) AS c));

-- name: entries_of_run
SELECT coalesce(json_agg(f.id), '[]')::text FROM (
  SELECT id FROM penstock.job WHERE state = 'quarantined' AND run_id = %(run_id)s LIMIT %(limit)s
) AS f;

-- name: runs_with_older_entries
-- Runs that go on, of sources with entries of other runs: from the entries, which are few, to the runs.
SELECT coalesce(json_agg(DISTINCT r.id), '[]')::text
FROM (SELECT DISTINCT run_id FROM penstock.job WHERE state = 'quarantined') AS e
CROSS JOIN LATERAL (SELECT id, source_id FROM penstock.run WHERE id = e.run_id OFFSET 0) AS o
CROSS JOIN LATERAL (
  SELECT id FROM penstock.run
  WHERE source_id = o.source_id AND state IN ('queued', 'running', 'paused') AND id <> o.id OFFSET 0
) AS r;

-- name: find_closed_entries
-- From the newest, along the index that holds the closed ones only.
SELECT coalesce(json_agg(json_build_array(f.closed_at, f.id) ORDER BY f.closed_at DESC, f.id DESC), '[]')::text FROM (
  SELECT e.closed_at, j.id FROM penstock.job_failure AS e
  CROSS JOIN LATERAL (SELECT id, run_id, source_id, stage, state FROM penstock.job WHERE id = e.job_id OFFSET 0) AS j
  WHERE e.closed_at IS NOT NULL AND (e.closed_at, e.job_id) < (%(before_at)s, %(before_id)s) AND j.state = 'cancelled'
    AND (%(since)s::double precision IS NULL OR e.closed_at >= %(since)s)
    {{entry_filter}}
  ORDER BY e.closed_at DESC, e.job_id DESC LIMIT %(limit)s
) AS f;

-- name: count_closed_entries
SELECT count(*) FROM penstock.job_failure AS e
CROSS JOIN LATERAL (SELECT id, run_id, source_id, stage, state FROM penstock.job WHERE id = e.job_id OFFSET 0) AS j
WHERE e.closed_at IS NOT NULL AND j.state = 'cancelled'
  AND (%(since)s::double precision IS NULL OR e.closed_at >= %(since)s)
  {{entry_filter}};
