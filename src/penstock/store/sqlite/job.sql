-- `NOT INDEXED` means: by id, whatever statistics an ANALYZE by somebody else may have left behind.

-- name: fence
-- Which of these attempts still own their job. Everything an attempt writes goes through this.
SELECT json_group_array(json_array(job.id, job.run_id, job.source_id, job.stage, job.attempt, job.flushes))
FROM jsonb_each(:fences) AS f
CROSS JOIN job NOT INDEXED ON job.id = f.value ->> 0
WHERE job.state = 'running' AND job.attempt = f.value ->> 1 AND job.worker = :worker;

-- name: owned_jobs
SELECT json_group_array(job.id)
FROM jsonb_each(:ids) AS c
CROSS JOIN job NOT INDEXED ON job.id = c.value
WHERE job.state = 'running' AND job.worker = :worker;

-- name: known_sent
SELECT json_group_array(json_array(sent.job_id, sent.hash))
FROM jsonb_each(:keys) AS k CROSS JOIN sent ON sent.job_id = k.value ->> 0 AND sent.hash = k.value ->> 1;

-- name: add_sent
INSERT INTO sent (job_id, hash) SELECT value ->> 0, value ->> 1 FROM jsonb_each(:keys) WHERE true ON CONFLICT DO NOTHING;

-- name: drop_sent
DELETE FROM sent WHERE job_id IN (SELECT value FROM jsonb_each(:ids));

-- name: halted_jobs
SELECT json_group_array(json_array(job.id, CASE
  WHEN r.state = 'paused' THEN 'run ' || r.id || ' is paused'
  WHEN s.paused_at IS NOT NULL THEN s.key || ' is paused'
  ELSE s.key || ' is held' END))
FROM jsonb_each(:ids) AS c
CROSS JOIN job NOT INDEXED ON job.id = c.value
CROSS JOIN run AS r ON r.id = job.run_id
CROSS JOIN source AS s ON s.id = job.source_id
WHERE job.state = 'running' AND job.worker = :worker
  AND (r.state = 'paused' OR s.paused_at IS NOT NULL OR EXISTS (SELECT 1 FROM hold WHERE hold.scope IN ('', s.key)));

-- name: note_flushes
UPDATE job NOT INDEXED
SET flushes = f.value ->> 1, tries = iif(f.value ->> 2, 0, tries), deaths = iif(f.value ->> 2, 0, deaths)
FROM jsonb_each(:flushes) AS f WHERE job.id = f.value ->> 0;

-- name: forgive_deaths
-- Of attempts that have come further since.
UPDATE job NOT INDEXED SET deaths = 0 FROM jsonb_each(:ids) AS c WHERE job.id = c.value AND job.deaths > 0;

-- name: succeed_if_running
UPDATE job NOT INDEXED SET state = 'succeeded', worker = NULL, at = :now
FROM jsonb_each(:ends) AS e
WHERE job.id = e.value ->> 0 AND job.attempt = e.value ->> 1 AND job.state = 'running';

-- name: settle_if_running
UPDATE job NOT INDEXED
SET state = e.value ->> 2,
  due_at = CASE WHEN e.value ->> 2 = 'waiting' THEN :now + (e.value ->> 3) END,
  tries = tries + (e.value ->> 4), throttles = throttles + (e.value ->> 5),
  is_resumed = (e.value ->> 2 = 'queued'), worker = NULL, at = :now
FROM jsonb_each(:ends) AS e
WHERE job.id = e.value ->> 0 AND job.attempt = e.value ->> 1 AND job.state = 'running';

-- name: last_job_id
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'job'), 0);

-- name: add_jobs
-- A known key keeps the job it has, in whatever state: enqueueing never resets anything.
INSERT INTO job (id, run_id, source_id, stage, unit, key, state, rank, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 'queued', value ->> 6, :now
FROM jsonb_each(:jobs) WHERE true
ON CONFLICT (run_id, stage, key) DO NOTHING;

-- name: add_items
INSERT INTO job_item (job_id, parent_id, item, snapshot_id)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:items);

-- name: depths
-- How many of a job's ancestors in a row are of its own stage.
WITH RECURSIVE up (id, at, depth) AS (
  SELECT value, value, 0 FROM jsonb_each(:ids)
  UNION ALL
  SELECT up.id, i.parent_id, up.depth + 1 FROM up
  CROSS JOIN job_item AS i ON i.job_id = up.at
  CROSS JOIN job AS j NOT INDEXED ON j.id = up.at
  CROSS JOIN job AS p NOT INDEXED ON p.id = i.parent_id AND p.stage = j.stage
  WHERE up.depth < :most
)
SELECT json_group_array(json_array(id, depth)) FROM (SELECT id, max(depth) AS depth FROM up GROUP BY id);

-- name: present_jobs
-- Ids were handed out in this transaction: a job that has one of them was inserted by it.
SELECT json_group_array(id) FROM job NOT INDEXED WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: jobs_by_key
SELECT json_group_array(json_array(job.id, job.stage, job.key))
FROM jsonb_each(:keys) AS k
CROSS JOIN job ON job.run_id = :run_id AND job.stage = k.value ->> 0 AND job.key = k.value ->> 1;

-- name: parents_of_jobs
SELECT json_group_array(json_array(job_id, parent_id)) FROM job_item
WHERE job_id IN (SELECT value FROM jsonb_each(:ids)) AND parent_id IS NOT NULL;

-- name: next_due
SELECT min(due_at) FROM job WHERE state = 'waiting';

-- name: due
SELECT json_group_array(json_array(id, run_id, stage, rank)) FROM (
  SELECT id, run_id, stage, rank FROM job WHERE state = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT :limit
);

-- name: wake_if_waiting
UPDATE job NOT INDEXED SET state = 'queued', due_at = NULL, at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'waiting';

-- name: ready_heads
-- Of the sources in a part of the ring, in their order, and the source up to which these are all: that of the run with
-- the number :most, or the end.
WITH reach AS MATERIALIZED (
  SELECT coalesce((
    SELECT source_id FROM run INDEXED BY run_active
    WHERE state IN ('queued', 'running', 'paused') AND source_id > :after AND source_id <= :until
    ORDER BY source_id LIMIT 1 OFFSET :most
  ), :until) AS source_id
)
SELECT json_group_array(json_array(
  r.source_id, g.run_id, g.stage, g.unit, g.queued,
  (SELECT rank FROM job WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' ORDER BY rank LIMIT 1),
  g.cpu, g.memory_mb, r.kind, s.paused_at IS NOT NULL, s.cooldown_until,
  (SELECT next_at FROM pace WHERE pace.key = s.key),
  EXISTS (SELECT 1 FROM hold WHERE hold.scope IN ('', s.key)),
  json((SELECT json_array(state, opens_at, ramp, counts_until) FROM breaker WHERE breaker.key = 'source:' || s.key)),
  s.level,
  json((SELECT json_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM onboarding AS o WHERE o.source_id = s.id)))),
  (SELECT source_id FROM reach)
FROM run AS r INDEXED BY run_active
CROSS JOIN run_stage AS g INDEXED BY run_stage_ready ON g.run_id = r.id
CROSS JOIN source AS s ON s.id = r.source_id
WHERE r.state IN ('queued', 'running', 'paused') AND r.state <> 'paused' AND r.for_drains = :for_drains
  AND r.source_id > :after AND r.source_id <= (SELECT source_id FROM reach) AND g.queued > 0;

-- name: suspect_heads
-- As ready_heads, for jobs under which two workers died already, and only those.
SELECT json_group_array(json_array(
  r.source_id, g.run_id, g.stage, g.unit, j.depth, j.rank,
  g.cpu, g.memory_mb, r.kind, s.paused_at IS NOT NULL, s.cooldown_until,
  (SELECT next_at FROM pace WHERE pace.key = s.key),
  EXISTS (SELECT 1 FROM hold WHERE hold.scope IN ('', s.key)),
  json((SELECT json_array(state, opens_at, ramp, counts_until) FROM breaker WHERE breaker.key = 'source:' || s.key)),
  s.level,
  json((SELECT json_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM onboarding AS o WHERE o.source_id = s.id))))
FROM (
  SELECT run_id, stage, count(*) AS depth, min(rank) AS rank FROM job INDEXED BY job_suspect
  WHERE state = 'queued' AND deaths >= 2 GROUP BY run_id, stage
) AS j
CROSS JOIN run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage
CROSS JOIN run AS r ON r.id = g.run_id
CROSS JOIN source AS s ON s.id = r.source_id
WHERE r.state IN ('queued', 'running') AND r.for_drains = :for_drains;

-- name: suspect
SELECT 1 FROM job INDEXED BY job_suspect WHERE state = 'queued' AND deaths >= 2 LIMIT 1;

-- name: suspect_of
-- One that workers start, or the drains of this run.
SELECT 1 FROM job INDEXED BY job_suspect CROSS JOIN run ON run.id = job.run_id
WHERE job.state = 'queued' AND job.deaths >= 2
  AND run.for_drains = (:run_id IS NOT NULL) AND run.id = coalesce(:run_id, run.id)
LIMIT 1;

-- name: running_counts
SELECT json_group_array(json_array(c.source_id, c.unit, run.kind, c.n))
FROM (
  SELECT source_id, unit, run_id, count(*) AS n FROM job INDEXED BY job_running
  WHERE state = 'running' GROUP BY source_id, unit, run_id
) AS c
CROSS JOIN run ON run.id = c.run_id;

-- name: ward_count
-- Jobs whose worker died under them twice already; at most one of them runs in a worker at a time.
SELECT count(*) FROM job WHERE state = 'running' AND worker = :worker AND deaths >= 2;

-- name: pick
SELECT json_group_array(json(picked)) FROM (
  SELECT (
    SELECT json_group_array(json_array(id, deaths, rank)) FROM (
      SELECT id, deaths, rank FROM job
      WHERE run_id = g.value ->> 0 AND stage = g.value ->> 1 AND state = 'queued'
        AND (deaths < 2 OR :ward_is_free) AND (:shards = 1 OR id % :shards = :shard)
      ORDER BY rank LIMIT :limit
    )
  ) AS picked
  FROM jsonb_each(:grants) AS g
);

-- name: pick_suspects
SELECT json_group_array(json(picked)) FROM (
  SELECT (
    SELECT json_group_array(json_array(id, deaths, rank)) FROM (
      SELECT id, deaths, rank FROM job INDEXED BY job_suspect
      WHERE run_id = g.value ->> 0 AND stage = g.value ->> 1 AND state = 'queued' AND deaths >= 2 AND :ward_is_free
        AND (:shards = 1 OR id % :shards = :shard)
      ORDER BY rank LIMIT :limit
    )
  ) AS picked
  FROM jsonb_each(:grants) AS g
);

-- name: claim_if_queued
UPDATE job NOT INDEXED SET state = 'running', attempt = attempt + 1, flushes = 0, worker = :worker, at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'queued';

-- name: claimed
-- A job without its item is claimed all the same: its attempt fails, instead of every turn that meets it.
SELECT json_group_array(json_array(
  job.id, job.run_id, job.source_id, job.stage, job.key, job.attempt, job.tries, job.throttles, job.deaths,
  json(iif(job.is_resumed, 'true', 'false')), coalesce(i.item, ''), i.snapshot_id))
FROM jsonb_each(:ids) AS c
CROSS JOIN job NOT INDEXED ON job.id = c.value
LEFT JOIN job_item AS i ON i.job_id = job.id;

-- name: note_failures
-- A job has one entry, however often it fails: it counts how often the job was quarantined, and keeps its notes.
INSERT INTO job_failure (job_id, attempt, kind, error, traceback, at, cause, quarantines, first_at, escalated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now, coalesce(value ->> 5, ''),
  coalesce(value ->> 6, 0), iif(coalesce(value ->> 6, 0), :now, NULL), iif(coalesce(value ->> 7, 0), :now, NULL)
FROM jsonb_each(:failures) WHERE true
ON CONFLICT (job_id) DO UPDATE
SET attempt = excluded.attempt, kind = excluded.kind, error = excluded.error, traceback = excluded.traceback, at = excluded.at,
  cause = excluded.cause, quarantines = quarantines + excluded.quarantines,
  first_at = coalesce(first_at, excluded.first_at), escalated_at = excluded.escalated_at,
  closed_at = CASE WHEN excluded.quarantines = 0 THEN closed_at END;

-- name: cancel_running_of_run
UPDATE job INDEXED BY job_running SET state = 'cancelled', worker = NULL, at = :now
WHERE state = 'running' AND run_id = :run_id
RETURNING id, stage, attempt;

-- name: mark_swept
UPDATE run SET swept_at = :now WHERE id = :run_id AND state = 'cancelled';

-- name: open_of_run
-- By the indexes of open jobs: by that of the run, each batch would pass over all that were swept before.
SELECT json_group_array(json_array(id, stage, state)) FROM (
  SELECT id, stage, state FROM job INDEXED BY job_ready WHERE run_id = :run_id AND state = 'queued'
  UNION ALL
  SELECT id, stage, state FROM job INDEXED BY job_waiting WHERE run_id = :run_id AND state = 'waiting'
  UNION ALL
  SELECT id, stage, state FROM job INDEXED BY job_held WHERE run_id = :run_id AND state = 'held'
  LIMIT :limit
);

-- name: cancel_jobs_if_open
UPDATE job NOT INDEXED SET state = 'cancelled', due_at = NULL, at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state IN ('queued', 'waiting', 'held');

-- name: retry_job_if_stopped
UPDATE job SET state = 'queued', due_at = NULL, tries = 0, throttles = 0, deaths = 0, is_resumed = 0, at = :now
WHERE id = :id AND state = :leaves
RETURNING run_id, source_id, stage, attempt;

-- name: retry_quarantined_of_run
UPDATE job SET state = 'queued', tries = 0, throttles = 0, deaths = 0, is_resumed = 0, at = :now
WHERE id IN (
  SELECT id FROM job WHERE run_id = :run_id AND state = 'quarantined' AND (:stage IS NULL OR stage = :stage)
    AND (:shards = 1 OR id % :shards = :shard)
  LIMIT :limit
)
RETURNING id, stage, attempt;

-- name: job_state
SELECT state, run_id FROM job WHERE id = :id;

-- name: run_state_of_job
SELECT run.state FROM job JOIN run ON run.id = job.run_id WHERE job.id = :id;

-- name: find_jobs
SELECT json_group_array(id) FROM (
  SELECT id FROM job
  WHERE id > :after_id
    AND (:run_id IS NULL OR run_id = :run_id)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:stage IS NULL OR stage = :stage)
    AND (:states IS NULL OR state IN (SELECT value FROM jsonb_each(:states)))
  ORDER BY id LIMIT :limit
);

-- name: find_live
-- The same along the indexes that hold what is not done yet: there is little of it beside all that is.
SELECT json_group_array(id) FROM (
  SELECT id FROM (
    SELECT id, run_id, source_id, stage FROM job INDEXED BY job_ready
    WHERE state = 'queued' AND instr(:states, '"queued"') > 0
    UNION ALL
    SELECT id, run_id, source_id, stage FROM job INDEXED BY job_running
    WHERE state = 'running' AND instr(:states, '"running"') > 0
    UNION ALL
    SELECT id, run_id, source_id, stage FROM job INDEXED BY job_waiting
    WHERE state = 'waiting' AND instr(:states, '"waiting"') > 0
    UNION ALL
    SELECT id, run_id, source_id, stage FROM job INDEXED BY job_held
    WHERE state = 'held' AND instr(:states, '"held"') > 0
  )
  WHERE id > :after_id
    AND (:run_id IS NULL OR run_id = :run_id)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:stage IS NULL OR stage = :stage)
  ORDER BY id LIMIT :limit
);

-- name: find_quarantined
-- The same along the index that holds the quarantined ones only: what is asked at 3 a.m. is quick.
SELECT json_group_array(id) FROM (
  SELECT id FROM job INDEXED BY job_quarantined
  WHERE state = 'quarantined' AND id > :after_id
    AND (:run_id IS NULL OR run_id = :run_id)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:stage IS NULL OR stage = :stage)
  ORDER BY id LIMIT :limit
);

-- name: jobs
SELECT json_group_array(json_object(
  'id', j.id, 'run_id', j.run_id, 'source', s.key, 'stage', j.stage, 'unit', j.unit, 'key', j.key,
  'state', j.state, 'attempt', j.attempt, 'tries', j.tries, 'throttles', j.throttles, 'deaths', j.deaths,
  'worker', j.worker, 'at', j.at, 'due_at', j.due_at, 'error', f.error, 'kind', f.kind
))
FROM jsonb_each(:ids) AS c
CROSS JOIN job AS j ON j.id = c.value
JOIN source AS s ON s.id = j.source_id
LEFT JOIN job_failure AS f ON f.job_id = j.id;

-- name: startable_stages
SELECT json_group_array(json_array(source_id, stage)) FROM (
  SELECT DISTINCT r.source_id, g.stage FROM run_stage AS g INDEXED BY run_stage_ready
  CROSS JOIN run AS r ON r.id = g.run_id
  CROSS JOIN source AS s ON s.id = r.source_id
  WHERE g.queued > 0 AND r.state IN ('queued', 'running') AND s.paused_at IS NULL AND s.cooldown_until <= :until
    AND r.for_drains = (:run_id IS NOT NULL) AND r.id = coalesce(:run_id, r.id)
    AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.scope IN ('', s.key))
    AND (g.unit = 'candidate' OR r.kind = 'replay' OR s.id NOT IN (SELECT value FROM jsonb_each(:outside)) AND NOT EXISTS (
      SELECT 1 FROM breaker WHERE breaker.key = 'source:' || s.key AND breaker.state = 'open' AND breaker.opens_at > :until))
);

-- name: startable
SELECT 1 FROM run_stage AS g INDEXED BY run_stage_ready
CROSS JOIN run AS r ON r.id = g.run_id
CROSS JOIN source AS s ON s.id = r.source_id
WHERE g.queued > 0 AND r.state IN ('queued', 'running') AND NOT r.for_drains AND s.paused_at IS NULL AND s.cooldown_until <= :until
  AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.scope IN ('', s.key))
  AND (g.unit = 'candidate' OR r.kind = 'replay' OR s.id NOT IN (SELECT value FROM jsonb_each(:outside)) AND NOT EXISTS (
    SELECT 1 FROM breaker WHERE breaker.key = 'source:' || s.key AND breaker.state = 'open' AND breaker.opens_at > :until))
LIMIT 1;

-- name: open_in_shard
-- What is left of one stage of a run, or of a part of it: whether something is queued, running, held, and when the first
-- of what waits is due.
SELECT json_array(
  EXISTS (
    SELECT 1 FROM job INDEXED BY job_ready
    WHERE run_id = :run_id AND stage = :stage AND state = 'queued' AND id % :shards = :shard),
  EXISTS (
    SELECT 1 FROM job INDEXED BY job_running
    WHERE state = 'running' AND run_id = :run_id AND stage = :stage AND id % :shards = :shard),
  EXISTS (
    SELECT 1 FROM job INDEXED BY job_held
    WHERE state = 'held' AND run_id = :run_id AND stage = :stage AND id % :shards = :shard),
  (
    SELECT due_at FROM job INDEXED BY job_waiting
    WHERE state = 'waiting' AND run_id = :run_id AND stage = :stage AND id % :shards = :shard
    ORDER BY due_at LIMIT 1));

-- name: job_detail
SELECT json_object('item', i.item, 'parent_id', i.parent_id, 'traceback', coalesce(f.traceback, ''))
FROM (SELECT :id AS id) AS wanted
LEFT JOIN job_item AS i ON i.job_id = wanted.id
LEFT JOIN job_failure AS f ON f.job_id = wanted.id;
