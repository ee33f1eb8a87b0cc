-- part: entry_filter
AND (:job_id IS NULL OR j.id = :job_id)
AND (:run_id IS NULL OR j.run_id = :run_id)
AND (:source_id IS NULL OR j.source_id = :source_id)
AND (:stage IS NULL OR j.stage = :stage)
AND (:kind IS NULL OR e.kind = :kind)
AND (:cause IS NULL OR e.cause = :cause)
AND (NOT :is_escalated OR e.escalated_at IS NOT NULL)
AND (:run_id IS NOT NULL OR :job_id IS NOT NULL OR :is_apart = ((SELECT r.kind FROM run AS r WHERE r.id = j.run_id) IN ('replay', 'probe')))

-- name: escalated_causes
-- Of what failed now, the causes that are not to be tried again, with how many pages had succeeded when they last failed
-- and how many have by now.
SELECT json_group_array(json_array(
  c.source_id, w.value ->> 1, c.cause, c.failures, c.succeeded,
  (SELECT coalesce(sum(g.succeeded), 0) FROM run_stage AS g WHERE g.run_id = r.id AND g.unit = 'page')))
FROM jsonb_each(:wanted) AS w
CROSS JOIN cause AS c ON c.source_id = w.value ->> 0 AND c.cause = w.value ->> 2
CROSS JOIN run AS r ON r.id = w.value ->> 1
WHERE c.escalated_at IS NOT NULL AND c.pipeline_version = r.pipeline_version;

-- name: note_causes
-- Counts begin again with a new version of the pipeline, and for what may pass by itself with every page that succeeds.
INSERT INTO cause (source_id, cause, pipeline_version, failures, first_at, last_at, succeeded)
SELECT w.value ->> 0, w.value ->> 1, r.pipeline_version, w.value ->> 3, :now, :now,
  iif(w.value ->> 4, (SELECT coalesce(sum(g.succeeded), 0) FROM run_stage AS g WHERE g.run_id = r.id AND g.unit = 'page'), -1)
FROM jsonb_each(:causes) AS w CROSS JOIN run AS r ON r.id = w.value ->> 2
WHERE true
ON CONFLICT (source_id, cause) DO UPDATE
SET failures = excluded.failures + iif(pipeline_version = excluded.pipeline_version AND succeeded = excluded.succeeded, failures, 0),
  first_at = iif(pipeline_version = excluded.pipeline_version AND succeeded = excluded.succeeded, first_at, :now),
  escalated_at = iif(pipeline_version = excluded.pipeline_version AND succeeded = excluded.succeeded, escalated_at, NULL),
  pipeline_version = excluded.pipeline_version, succeeded = excluded.succeeded, last_at = :now;

-- name: escalate_causes
UPDATE cause SET escalated_at = :now
FROM jsonb_each(:causes) AS w
WHERE cause.source_id = w.value ->> 0 AND cause.cause = w.value ->> 1
  AND cause.escalated_at IS NULL AND cause.failures >= :enough
RETURNING cause.source_id, cause.cause, cause.failures;

-- name: escalate_entries
UPDATE job_failure SET escalated_at = :now
WHERE escalated_at IS NULL AND cause = :cause AND job_id IN (
  SELECT id FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' AND source_id = :source_id
);

-- name: forget_causes
-- Somebody has looked at them: what fails for these causes is counted from the beginning.
DELETE FROM cause WHERE (source_id, cause) IN (
  SELECT job.source_id, f.cause FROM jsonb_each(:ids) AS c
  CROSS JOIN job NOT INDEXED ON job.id = c.value
  CROSS JOIN job_failure AS f ON f.job_id = job.id
);

-- name: forget_causes_of_run
DELETE FROM cause WHERE (source_id, cause) IN (
  SELECT job.source_id, f.cause FROM job INDEXED BY job_quarantined
  CROSS JOIN job_failure AS f ON f.job_id = job.id
  WHERE job.state = 'quarantined' AND job.run_id = :run_id
);

-- name: drop_causes
DELETE FROM cause WHERE last_at < :before;

-- name: enqueued_at
-- A job's rank says when it was enqueued, and stays what it was however often it is tried.
SELECT json_group_array(json_array(job.id, job.rank - g.priority * :ageing_s))
FROM jsonb_each(:ids) AS c
CROSS JOIN job NOT INDEXED ON job.id = c.value
CROSS JOIN run_stage AS g ON g.run_id = job.run_id AND g.stage = job.stage;

-- name: find_entries
-- In the order of the index that holds the quarantined ones only.
SELECT json_group_array(json_array(f.run_id, f.id)) FROM (
  SELECT j.run_id, j.id FROM job AS j INDEXED BY job_quarantined
  LEFT JOIN job_failure AS e ON e.job_id = j.id
  WHERE j.state = 'quarantined' AND (j.run_id, j.id) > (:after_run_id, :after_id)
    AND (:since IS NULL OR e.at >= :since)
    {{entry_filter}}
  ORDER BY j.run_id, j.id LIMIT :limit
) AS f;

-- name: count_entries
SELECT count(*) FROM job AS j INDEXED BY job_quarantined
LEFT JOIN job_failure AS e ON e.job_id = j.id
WHERE j.state = 'quarantined'
  AND (:since IS NULL OR e.at >= :since)
  {{entry_filter}};

-- name: entries
SELECT json_group_array(json_object(
  'id', j.id, 'run_id', j.run_id, 'source', s.key, 'stage', j.stage, 'unit', j.unit, 'key', j.key, 'state', j.state,
  'attempt', j.attempt, 'tries', j.tries, 'deaths', j.deaths, 'since', j.at, 'kind', coalesce(e.kind, 'unknown'),
  'error', coalesce(e.error, ''), 'cause', coalesce(e.cause, ''), 'traceback', coalesce(e.traceback, ''),
  'quarantines', coalesce(e.quarantines, 1), 'first_at', coalesce(e.first_at, j.at), 'escalated_at', e.escalated_at,
  'last_at', coalesce(e.at, j.at), 'closed_at', e.closed_at, 'closed_why', coalesce(e.closed_why, ''), 'closed_by_job_id', e.closed_by_job_id,
  'notes', json(coalesce(e.notes, '[]')), 'item', i.item,
  'snapshot', json((
    SELECT json_object('id', p.id, 'url', p.url, 'status', p.status, 'fetched_at', p.fetched_at) FROM snapshot AS p
    WHERE p.id = coalesce((SELECT max(o.id) FROM snapshot AS o WHERE o.job_id = j.id), i.snapshot_id)))))
FROM jsonb_each(:ids) AS c
CROSS JOIN job AS j NOT INDEXED ON j.id = c.value
JOIN source AS s ON s.id = j.source_id
LEFT JOIN job_item AS i ON i.job_id = j.id
LEFT JOIN job_failure AS e ON e.job_id = j.id;

-- name: cancelled_runs
SELECT json_group_array(id) FROM run WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'cancelled';

-- name: release_entries_if_quarantined
UPDATE job NOT INDEXED
SET state = 'queued', tries = 0, throttles = 0, deaths = 0, is_resumed = 0, at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'quarantined'
RETURNING id, run_id, source_id, stage, attempt;

-- name: discard_entries_if_quarantined
UPDATE job NOT INDEXED SET state = 'cancelled', at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'quarantined'
RETURNING id, run_id, source_id, stage, attempt;

-- name: expired_entries
SELECT json_group_array(id) FROM (
  SELECT id FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' AND at < :before LIMIT :limit
);

-- name: add_entry_note
UPDATE job_failure SET notes = json_insert(notes, '$[#]', json(:note)) WHERE job_id = :id;

-- name: causes
SELECT json_group_array(json_object(
  'source', c.source, 'cause', c.cause, 'failures', c.failures, 'pipeline_version', c.pipeline_version,
  'first_at', c.first_at, 'last_at', c.last_at, 'escalated_at', c.escalated_at))
FROM (
  SELECT s.key AS source, cause.cause, failures, pipeline_version, first_at, last_at, escalated_at
  FROM cause JOIN source AS s ON s.id = cause.source_id
  WHERE (:source_id IS NULL OR cause.source_id = :source_id)
  ORDER BY escalated_at IS NULL, failures DESC, s.key, cause.cause LIMIT :limit
) AS c;

-- name: entry_groups
-- The entries by source, kind and cause. What budgets and the like stop has no cause. Only so many entries are looked at.
SELECT json_group_array(json_object(
  'source', g.source, 'kind', g.kind, 'cause', g.cause, 'jobs', g.n, 'first_at', g.first_at, 'last_at', g.last_at,
  'escalated_at', g.escalated_at, 'error', (SELECT coalesce(max(error), '') FROM job_failure WHERE job_id = g.job_id), 'job_id', g.job_id))
FROM (
  SELECT s.key AS source, coalesce(e.kind, 'unknown') AS kind, coalesce(e.cause, '') AS cause, count(*) AS n, min(j.at) AS first_at,
    max(j.at) AS last_at, max(e.escalated_at) AS escalated_at, max(j.id) AS job_id
  FROM (
    SELECT id, source_id, at FROM job INDEXED BY job_quarantined
    WHERE state = 'quarantined' AND (:source_id IS NULL OR source_id = :source_id)
      AND (SELECT r.kind FROM run AS r WHERE r.id = job.run_id) NOT IN ('replay', 'probe')
    LIMIT :most
  ) AS j
  LEFT JOIN job_failure AS e ON e.job_id = j.id JOIN source AS s ON s.id = j.source_id
  GROUP BY s.key, coalesce(e.kind, 'unknown'), coalesce(e.cause, '')
  ORDER BY escalated_at IS NULL, n DESC, source, kind, cause LIMIT :limit
) AS g;

-- name: answered_entries
-- The entries of a run's source for which this run has a later job of the same stage and key; or, of a candidate, has
-- extracted its page again. What a backfill does as a whole answers for its own range only. Of its newest runs: a page
-- that fails again and again has its entry in the newest of them.
SELECT json_group_array(json_array(a.id, a.by_id, a.by_state, a.is_same)) FROM (
  SELECT e.id, coalesce(n.id, m.id) AS by_id, coalesce(n.state, m.state) AS by_state, n.id IS NOT NULL AS is_same
  FROM run AS r
  CROSS JOIN (
    SELECT id, kind, state FROM run INDEXED BY run_of_source
    WHERE source_id = (SELECT source_id FROM run WHERE id = :run_id) ORDER BY id DESC LIMIT :runs
  ) AS o ON o.id <> r.id AND o.state <> 'completed'
  CROSS JOIN job AS e INDEXED BY job_quarantined ON e.run_id = o.id AND e.state = 'quarantined'
  LEFT JOIN job AS n INDEXED BY sqlite_autoindex_job_1 ON n.run_id = r.id AND n.stage = e.stage AND n.key = e.key
    AND n.state IN ('succeeded', 'skipped', 'quarantined') AND (n.at, n.id) > (e.at, e.id)
  LEFT JOIN job_item AS i ON i.job_id = e.id AND e.unit = 'candidate'
  LEFT JOIN job AS p NOT INDEXED ON p.id = i.parent_id
  LEFT JOIN job AS m INDEXED BY sqlite_autoindex_job_1 ON m.run_id = r.id AND m.stage = p.stage AND m.key = p.key
    AND p.unit = 'page' AND m.state = 'succeeded' AND (m.at, m.id) > (e.at, e.id)
  WHERE r.id = :run_id AND e.id > :after_id
    AND o.kind NOT IN ('replay', 'probe') AND r.kind <> 'probe'
    AND (r.kind <> 'replay' OR (:is_committed AND coalesce(n.state, m.state) <> 'quarantined'))
    AND (e.unit <> 'run' OR (o.kind <> 'backfill' AND r.kind <> 'backfill'))
    AND coalesce(n.id, m.id) IS NOT NULL
  ORDER BY e.id LIMIT :limit
) AS a;

-- name: merge_entries
-- What the older entry knows goes into the newer one.
UPDATE job_failure AS f
SET quarantines = f.quarantines + d.quarantines, first_at = min(coalesce(f.first_at, f.at), d.first_at),
  notes = (SELECT json_group_array(json(v.value)) FROM (
    SELECT value FROM json_each(d.notes) UNION ALL SELECT value FROM json_each(f.notes)) AS v)
FROM (
  SELECT w.value ->> 1 AS by_id, o.quarantines, coalesce(o.first_at, o.at) AS first_at, o.notes
  FROM jsonb_each(:merges) AS w CROSS JOIN job_failure AS o ON o.job_id = w.value ->> 0
) AS d
WHERE f.job_id = d.by_id;

-- name: note_closed
UPDATE job_failure SET closed_at = :now, closed_why = w.value ->> 1, closed_by_job_id = w.value ->> 2
FROM jsonb_each(:closings) AS w WHERE job_failure.job_id = w.value ->> 0;

-- name: entries_of_run
SELECT json_group_array(id) FROM (
  SELECT id FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' AND run_id = :run_id LIMIT :limit
);

-- name: runs_with_older_entries
-- Runs that go on, of sources with entries of other runs: from the entries, which are few, to the runs.
SELECT json_group_array(DISTINCT r.id)
FROM (SELECT DISTINCT run_id FROM job INDEXED BY job_quarantined WHERE state = 'quarantined') AS e
CROSS JOIN run AS o ON o.id = e.run_id
CROSS JOIN run AS r INDEXED BY run_active ON r.source_id = o.source_id AND r.id <> o.id
WHERE r.state IN ('queued', 'running', 'paused');

-- name: find_closed_entries
-- From the newest, along the index that holds the closed ones only.
SELECT json_group_array(json_array(f.closed_at, f.id)) FROM (
  SELECT e.closed_at, j.id FROM job_failure AS e INDEXED BY job_failure_closed
  CROSS JOIN job AS j NOT INDEXED ON j.id = e.job_id
  WHERE e.closed_at IS NOT NULL AND (e.closed_at, e.job_id) < (:before_at, :before_id) AND j.state = 'cancelled'
    AND (:since IS NULL OR e.closed_at >= :since)
    {{entry_filter}}
  ORDER BY e.closed_at DESC, e.job_id DESC LIMIT :limit
) AS f;

-- name: count_closed_entries
SELECT count(*) FROM job_failure AS e INDEXED BY job_failure_closed
CROSS JOIN job AS j NOT INDEXED ON j.id = e.job_id
WHERE e.closed_at IS NOT NULL AND j.state = 'cancelled'
  AND (:since IS NULL OR e.closed_at >= :since)
  {{entry_filter}};
