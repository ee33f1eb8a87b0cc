-- A batch of ids is one array, and a state beside it is written `state || ''`. With a join, or with the bare state, the
-- planner may choose to read the index of all jobs in that state: the shorter way while the table is empty, and kept.
-- Where each id brings values of its own, they are looked up in an object of all of them; where rows are only read or
-- locked, they are looked up one by one (LATERAL, and OFFSET 0 or a lock, which keep it from becoming a join).

-- name: fence
-- Which of these attempts still own their job. Everything an attempt writes goes through this.
SELECT coalesce(json_agg(json_build_array(j.id, j.run_id, j.source_id, j.stage, j.attempt, j.flushes)), '[]')::text
FROM (
  SELECT (v ->> 0)::bigint AS id, (v ->> 1)::integer AS attempt
  FROM jsonb_array_elements(%(fences)s::jsonb) AS v ORDER BY 1
) AS f
CROSS JOIN LATERAL (
  SELECT job.id, job.run_id, job.source_id, job.stage, job.attempt, job.flushes FROM penstock.job
  WHERE job.id = f.id AND job.attempt = f.attempt AND job.state || '' = 'running' AND job.worker = %(worker)s
  FOR NO KEY UPDATE
) AS j;

-- name: owned_jobs
SELECT coalesce(json_agg(job.id), '[]')::text
FROM penstock.job
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'running' AND worker = %(worker)s;

-- name: known_sent
SELECT coalesce(json_agg(json_build_array(sent.job_id, sent.hash)), '[]')::text
FROM jsonb_array_elements(%(keys)s::jsonb) AS k
JOIN penstock.sent ON sent.job_id = (k ->> 0)::bigint AND sent.hash = k ->> 1;

-- name: add_sent
INSERT INTO penstock.sent (job_id, hash) SELECT (k ->> 0)::bigint, k ->> 1 FROM jsonb_array_elements(%(keys)s::jsonb) AS k
ON CONFLICT DO NOTHING;

-- name: drop_sent
DELETE FROM penstock.sent WHERE job_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: halted_jobs
SELECT coalesce(json_agg(json_build_array(job.id, CASE
  WHEN r.state = 'paused' THEN 'run ' || r.id || ' is paused'
  WHEN s.paused_at IS NOT NULL THEN s.key || ' is paused'
  ELSE s.key || ' is held' END)), '[]')::text
FROM penstock.job
JOIN penstock.run AS r ON r.id = job.run_id
JOIN penstock.source AS s ON s.id = job.source_id
WHERE job.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND job.state || '' = 'running' AND job.worker = %(worker)s
  AND (r.state = 'paused' OR s.paused_at IS NOT NULL OR EXISTS (SELECT 1 FROM penstock.hold WHERE hold.scope IN ('', s.key)));

-- name: note_flushes
WITH f AS MATERIALIZED (SELECT jsonb_object_agg(v ->> 0, v) AS by_id FROM jsonb_array_elements(%(flushes)s::jsonb) AS v)
UPDATE penstock.job
SET (flushes, tries, deaths) = (
  SELECT (own ->> 1)::integer, CASE WHEN (own ->> 2)::boolean THEN 0 ELSE job.tries END,
    CASE WHEN (own ->> 2)::boolean THEN 0 ELSE job.deaths END
  FROM (SELECT (SELECT by_id FROM f) -> job.id::text AS own OFFSET 0) AS x
)
WHERE id = ANY (ARRAY(SELECT k::bigint FROM jsonb_object_keys((SELECT by_id FROM f)) AS k));

-- name: forgive_deaths
-- Of attempts that have come further since.
UPDATE penstock.job SET deaths = 0
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND deaths > 0;

-- name: succeed_if_running
-- The fence, the move and the journal in one: answers with the jobs that were still this worker's.
WITH ended AS (
  UPDATE penstock.job SET state = 'succeeded', worker = NULL, at = %(now)s
  WHERE id = ANY (%(ids)s::bigint[]) AND attempt = %(attempt)s AND state || '' = 'running' AND worker || '' = %(worker)s
  RETURNING id, run_id, source_id, stage, attempt, flushes
), noted AS (
  INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, tx)
  SELECT %(now)s, 'job.succeeded', source_id, run_id, id, attempt, %(worker)s, (SELECT pg_current_xact_id()::text::bigint)
  FROM ended
)
SELECT id, run_id, source_id, stage, attempt, flushes FROM ended;

-- name: settle_if_running
WITH e AS MATERIALIZED (SELECT jsonb_object_agg(v ->> 0, v) AS by_id FROM jsonb_array_elements(%(ends)s::jsonb) AS v)
UPDATE penstock.job
SET worker = NULL, at = %(now)s, (state, due_at, tries, throttles, is_resumed) = (
  SELECT own ->> 2, CASE WHEN own ->> 2 = 'waiting' THEN %(now)s + (own ->> 3)::double precision END,
    job.tries + (own ->> 4)::integer, job.throttles + (own ->> 5)::integer, own ->> 2 = 'queued'
  FROM (SELECT (SELECT by_id FROM e) -> job.id::text AS own OFFSET 0) AS x
)
WHERE id = ANY (ARRAY(SELECT k::bigint FROM jsonb_object_keys((SELECT by_id FROM e)) AS k))
  AND attempt = ((SELECT by_id FROM e) -> id::text ->> 1)::integer AND state || '' = 'running';

-- name: add_keys
-- A known key keeps the job it has, in whatever state: enqueueing never resets anything.
-- In the order of the keys: two who add the same keys wait for each other in one direction only.
INSERT INTO penstock.job_key (run_id, stage, key, job_id)
SELECT (j ->> 1)::bigint, j ->> 3, j ->> 5, (j ->> 0)::bigint
FROM jsonb_array_elements(%(jobs)s::jsonb) AS j
ORDER BY j ->> 3, j ->> 5, (j ->> 0)::bigint
ON CONFLICT (run_id, stage, key) DO NOTHING;

-- name: present_jobs
-- Which of these have their key for themselves.
SELECT coalesce(json_agg(k.job_id), '[]')::text
FROM jsonb_array_elements(%(jobs)s::jsonb) AS j
CROSS JOIN LATERAL (
  SELECT job_id FROM penstock.job_key
  WHERE run_id = (j ->> 1)::bigint AND stage = j ->> 3 AND key = j ->> 5 AND job_id = (j ->> 0)::bigint OFFSET 0
) AS k;

-- name: add_jobs
INSERT INTO penstock.job (id, run_id, source_id, stage, unit, key, state, rank, at)
SELECT (j ->> 0)::bigint, (j ->> 1)::bigint, (j ->> 2)::bigint, j ->> 3, j ->> 4, j ->> 5, 'queued',
  (j ->> 6)::double precision, %(now)s
FROM jsonb_array_elements(%(jobs)s::jsonb) AS j;

-- name: add_items
INSERT INTO penstock.job_item (job_id, parent_id, item, snapshot_id)
SELECT (i ->> 0)::bigint, (i ->> 1)::bigint, i ->> 2, (i ->> 3)::bigint
FROM jsonb_array_elements(%(items)s::jsonb) AS i;

-- name: depths
-- How many of a job's ancestors in a row are of its own stage. Looked up one by one: a join might walk all jobs.
WITH RECURSIVE up (id, at, depth) AS (
  SELECT x, x, 0 FROM unnest(translate(%(ids)s, '[]', '{}')::bigint[]) AS x
  UNION ALL
  SELECT up.id, i.parent_id, up.depth + 1 FROM up
  CROSS JOIN LATERAL (SELECT parent_id FROM penstock.job_item WHERE job_id = up.at OFFSET 0) AS i
  CROSS JOIN LATERAL (SELECT stage FROM penstock.job WHERE job.id = up.at OFFSET 0) AS j
  CROSS JOIN LATERAL (SELECT stage FROM penstock.job WHERE job.id = i.parent_id OFFSET 0) AS p
  WHERE up.depth < %(most)s AND p.stage = j.stage
)
SELECT coalesce(json_agg(json_build_array(id, depth)), '[]')::text FROM (SELECT id, max(depth) AS depth FROM up GROUP BY id) AS f;

-- name: jobs_by_key
SELECT coalesce(json_agg(json_build_array(known.job_id, k ->> 0, k ->> 1)), '[]')::text
FROM jsonb_array_elements(%(keys)s::jsonb) AS k
CROSS JOIN LATERAL (
  SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s AND stage = k ->> 0 AND key = k ->> 1 OFFSET 0
) AS known;

-- name: parents_of_jobs
SELECT coalesce(json_agg(json_build_array(job_id, parent_id)), '[]')::text FROM penstock.job_item
WHERE job_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND parent_id IS NOT NULL;

-- name: next_due
SELECT due_at FROM penstock.job WHERE state = 'waiting' AND due_at > %(after)s ORDER BY due_at LIMIT 1;

-- name: due
SELECT coalesce(json_agg(json_build_array(d.id, d.run_id, d.stage, d.rank)), '[]')::text FROM (
  SELECT id, run_id, stage, rank FROM penstock.job
  WHERE state = 'waiting' AND due_at > %(after)s AND due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
) AS d;

-- name: wake_if_waiting
UPDATE penstock.job SET state = 'queued', due_at = NULL, at = %(now)s
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' = 'waiting';

-- name: ready_lanes
-- The heads of what is queued (SQLite's ready_heads), and what is running (as running_counts): each counter is added up
-- once for both. A stage's floor is looked up in an object of all of them: a join without hashes would be quadratic.
-- Then the source up to which these are all: that of the run with the number most, or the end. The last part is what
-- was committed when it was read.
WITH reach AS MATERIALIZED (
  SELECT coalesce((
    SELECT source_id FROM penstock.run
    WHERE state IN ('queued', 'running', 'paused') AND source_id > %(after)s::bigint AND source_id <= %(until)s::bigint
    ORDER BY source_id LIMIT 1 OFFSET %(most)s::bigint
  ), %(until)s::bigint) AS source_id
), f AS MATERIALIZED (
  SELECT coalesce(jsonb_object_agg((v ->> 0) || ' ' || (v ->> 1), v), '{}') AS by_stage
  FROM jsonb_array_elements(%(floors)s::jsonb) AS v
), g AS MATERIALIZED (
  SELECT r.id AS run_id, r.source_id, r.kind, r.state, r.for_drains, c.stage, c.unit, c.queued, c.running, c.cpu, c.memory_mb
  FROM (
    SELECT id, source_id, kind, state, for_drains FROM penstock.run
    WHERE state IN ('queued', 'running', 'paused') AND source_id > %(after)s::bigint AND source_id <= (SELECT source_id FROM reach)
    UNION ALL
    SELECT id, source_id, kind, state, for_drains FROM penstock.run
    WHERE state = 'cancelled' AND swept_at IS NULL AND source_id > %(after)s::bigint AND source_id <= (SELECT source_id FROM reach)
  ) AS r
  JOIN penstock.stage_count AS c ON c.run_id = r.id
  WHERE (c.queued > 0 OR c.running > 0)
    AND (%(sources)s::jsonb IS NULL OR r.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x))
)
SELECT json_build_array((
  SELECT coalesce(json_agg(json_build_array(
    g.source_id, g.run_id, g.stage, g.unit, g.queued, h.rank,
    g.cpu, g.memory_mb, g.kind, s.paused_at IS NOT NULL, s.cooldown_until,
    (SELECT next_at FROM penstock.pace WHERE pace.key = s.key),
    EXISTS (SELECT 1 FROM penstock.hold WHERE hold.scope IN ('', s.key)),
    (SELECT json_build_array(state, opens_at, ramp, counts_until) FROM penstock.breaker WHERE breaker.key = 'source:' || s.key),
    s.level,
  (SELECT json_build_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM penstock.onboarding AS o WHERE o.source_id = s.id)) ORDER BY g.source_id), '[]')
  FROM (
    SELECT run_id, source_id, kind, stage, unit, queued, cpu, memory_mb,
      (SELECT by_stage FROM f) -> (run_id || ' ' || stage) AS floor
    FROM g WHERE state IN ('queued', 'running') AND queued > 0 AND for_drains = %(for_drains)s OFFSET 0
  ) AS g
  JOIN penstock.source AS s ON s.id = g.source_id
  LEFT JOIN LATERAL (
    SELECT job.rank FROM penstock.job
    WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued'
      AND (job.rank, job.id)
        > (coalesce((g.floor ->> 2)::double precision, -1e300), coalesce((g.floor ->> 3)::bigint, 0))
    ORDER BY job.rank, job.id LIMIT 1
  ) AS h ON true
), (
  SELECT coalesce(json_agg(json_build_array(n.source_id, n.unit, n.kind, n.running)), '[]') FROM (
    SELECT source_id, unit, kind, sum(running)::bigint AS running FROM g WHERE running > 0 GROUP BY source_id, unit, kind
  ) AS n
), (SELECT source_id FROM reach), pg_current_snapshot()::text)::text;

-- name: suspect_heads
-- The heads of ready_lanes, for jobs under which two workers died already, and only those.
SELECT coalesce(json_agg(json_build_array(
  r.source_id, g.run_id, g.stage, g.unit, j.depth, j.rank,
  g.cpu, g.memory_mb, r.kind, s.paused_at IS NOT NULL, s.cooldown_until,
  (SELECT next_at FROM penstock.pace WHERE pace.key = s.key),
  EXISTS (SELECT 1 FROM penstock.hold WHERE hold.scope IN ('', s.key)),
  (SELECT json_build_array(state, opens_at, ramp, counts_until) FROM penstock.breaker WHERE breaker.key = 'source:' || s.key),
  s.level,
  (SELECT json_build_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM penstock.onboarding AS o WHERE o.source_id = s.id))), '[]')::text
FROM (
  SELECT run_id, stage, count(*) AS depth, min(rank) AS rank FROM penstock.job
  WHERE state = 'queued' AND deaths >= 2 GROUP BY run_id, stage
) AS j
JOIN penstock.run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage
JOIN penstock.run AS r ON r.id = g.run_id
JOIN penstock.source AS s ON s.id = r.source_id
WHERE r.state IN ('queued', 'running') AND r.for_drains = %(for_drains)s
  AND (%(sources)s::jsonb IS NULL OR r.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x));

-- name: suspect
SELECT 1 FROM penstock.job WHERE state = 'queued' AND deaths >= 2 LIMIT 1;

-- name: suspect_of
-- One that workers start, or the drains of this run.
SELECT 1 FROM penstock.job JOIN penstock.run ON run.id = job.run_id
WHERE job.state = 'queued' AND job.deaths >= 2
  AND run.for_drains = (%(run_id)s::bigint IS NOT NULL) AND run.id = coalesce(%(run_id)s::bigint, run.id)
LIMIT 1;

-- name: running_counts
-- From the counters: a count is moved by the transaction that moves its row, and by none that dies.
-- What is running would have to be found among all that was running since the oldest snapshot.
SELECT coalesce(json_agg(json_build_array(c.source_id, c.unit, c.kind, c.n)), '[]')::text FROM (
  SELECT r.source_id, g.unit, r.kind, sum(g.running)::bigint AS n
  FROM (
    SELECT id, source_id, kind FROM penstock.run WHERE state IN ('queued', 'running', 'paused')
    UNION ALL
    SELECT id, source_id, kind FROM penstock.run WHERE state = 'cancelled' AND swept_at IS NULL
  ) AS r
  JOIN penstock.stage_count AS g ON g.run_id = r.id
  WHERE g.running > 0
    AND (%(sources)s::jsonb IS NULL OR r.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x))
  GROUP BY r.source_id, g.unit, r.kind
) AS c;

-- name: ward_count
-- Jobs whose worker died under them twice already; at most one of them runs in a worker at a time.
SELECT count(*) FROM penstock.job WHERE state = 'running' AND deaths >= 2 AND worker = %(worker)s;

-- name: pick
SELECT coalesce(json_agg(p.picked ORDER BY p.n), '[]')::text FROM (
  SELECT g.n, (
    SELECT coalesce(json_agg(json_build_array(j.id, j.deaths, j.rank) ORDER BY j.rank, j.id), '[]') FROM (
      SELECT job.id, job.deaths, job.rank FROM penstock.job
      WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued'
        AND (job.rank, job.id) > (g.rank, g.job_id)
        AND (job.deaths < 2 OR %(ward_is_free)s)
        AND (%(shards)s::bigint = 1 OR job.id %% %(shards)s::bigint = %(shard)s::bigint)
      ORDER BY job.rank, job.id LIMIT g.count FOR NO KEY UPDATE SKIP LOCKED
    ) AS j
  ) AS picked
  FROM (
    SELECT n, (v ->> 0)::bigint AS run_id, v ->> 1 AS stage, (v ->> 2)::bigint AS count,
      (v ->> 3)::double precision AS rank, (v ->> 4)::bigint AS job_id
    FROM jsonb_array_elements(%(grants)s::jsonb) WITH ORDINALITY AS e(v, n)
  ) AS g
) AS p;

-- name: pick_suspects
SELECT coalesce(json_agg(p.picked ORDER BY p.n), '[]')::text FROM (
  SELECT g.n, (
    SELECT coalesce(json_agg(json_build_array(j.id, j.deaths, j.rank) ORDER BY j.rank, j.id), '[]') FROM (
      SELECT job.id, job.deaths, job.rank FROM penstock.job
      WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' AND job.deaths >= 2
        AND %(ward_is_free)s AND (%(shards)s::bigint = 1 OR job.id %% %(shards)s::bigint = %(shard)s::bigint)
      ORDER BY job.rank, job.id LIMIT g.count FOR NO KEY UPDATE SKIP LOCKED
    ) AS j
  ) AS picked
  FROM (
    SELECT n, (v ->> 0)::bigint AS run_id, v ->> 1 AS stage, (v ->> 2)::bigint AS count
    FROM jsonb_array_elements(%(grants)s::jsonb) WITH ORDINALITY AS e(v, n)
  ) AS g
) AS p;

-- name: claim_if_queued
-- The move, the journal and the answer in one.
-- A job without its item is claimed all the same: its attempt fails, instead of every turn that meets it.
WITH begun AS (
  UPDATE penstock.job SET state = 'running', attempt = attempt + 1, flushes = 0, worker = %(worker)s, at = %(now)s
  WHERE id = ANY (%(ids)s::bigint[]) AND state || '' = 'queued'
  RETURNING id, run_id, source_id, stage, key, attempt, tries, throttles, deaths, is_resumed
), noted AS (
  INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, tx)
  SELECT %(now)s, 'job.started', source_id, run_id, id, attempt, %(worker)s, (SELECT pg_current_xact_id()::text::bigint)
  FROM begun
)
SELECT b.id, b.run_id, b.source_id, b.stage, b.key, b.attempt, b.tries, b.throttles, b.deaths, b.is_resumed,
  coalesce(i.item, ''), i.snapshot_id
FROM begun AS b
LEFT JOIN LATERAL (SELECT item, snapshot_id FROM penstock.job_item WHERE job_id = b.id OFFSET 0) AS i ON true;

-- name: note_failures
-- A job has one entry, however often it fails: it counts how often the job was quarantined, and keeps its notes.
INSERT INTO penstock.job_failure (job_id, attempt, kind, error, traceback, at, cause, quarantines, first_at, escalated_at)
SELECT DISTINCT ON ((f.v ->> 0)::bigint)
  (f.v ->> 0)::bigint, (f.v ->> 1)::integer, f.v ->> 2, f.v ->> 3, f.v ->> 4, %(now)s, coalesce(f.v ->> 5, ''),
  coalesce((f.v ->> 6)::bigint, 0), CASE WHEN f.v ->> 6 = '1' THEN %(now)s::double precision END,
  CASE WHEN f.v ->> 7 = '1' THEN %(now)s::double precision END
FROM jsonb_array_elements(%(failures)s::jsonb) WITH ORDINALITY AS f(v, n)
ORDER BY (f.v ->> 0)::bigint, f.n DESC
ON CONFLICT (job_id) DO UPDATE
SET attempt = excluded.attempt, kind = excluded.kind, error = excluded.error, traceback = excluded.traceback, at = excluded.at,
  cause = excluded.cause, quarantines = job_failure.quarantines + excluded.quarantines,
  first_at = coalesce(job_failure.first_at, excluded.first_at), escalated_at = excluded.escalated_at,
  closed_at = CASE WHEN excluded.quarantines = 0 THEN job_failure.closed_at END;

-- name: cancel_running_of_run
-- What somebody is settling at this moment is left to the sweep: waiting for it here could be waiting in a circle.
UPDATE penstock.job SET state = 'cancelled', worker = NULL, at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE state = 'running' AND run_id = %(run_id)s FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, stage, attempt;

-- name: mark_swept
-- By the counters: a job that somebody held while its run was swept is still in them.
UPDATE penstock.run SET swept_at = %(now)s
WHERE id = %(run_id)s AND state = 'cancelled' AND NOT EXISTS (
  SELECT 1 FROM penstock.stage_count AS g
  WHERE g.run_id = %(run_id)s AND g.queued + g.running + g.waiting + g.held > 0
);

-- name: open_of_run
SELECT coalesce(json_agg(json_build_array(o.id, o.stage, o.state)), '[]')::text FROM (
  SELECT j.id, j.stage, j.state FROM (SELECT job_id FROM penstock.job_key WHERE run_id = %(run_id)s OFFSET 0) AS k
  CROSS JOIN LATERAL (
    SELECT id, stage, state FROM penstock.job
    WHERE id = k.job_id AND state || '' IN ('queued', 'waiting', 'held', 'running') FOR NO KEY UPDATE SKIP LOCKED
  ) AS j
  LIMIT %(limit)s
) AS o;

-- name: cancel_jobs_if_open
UPDATE penstock.job SET state = 'cancelled', worker = NULL, due_at = NULL, at = %(now)s
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state || '' IN ('queued', 'waiting', 'held', 'running');

-- name: retry_job_if_stopped
UPDATE penstock.job
SET state = 'queued', due_at = NULL, tries = 0, throttles = 0, deaths = 0, is_resumed = false, at = %(now)s
WHERE id = %(id)s AND state = %(leaves)s
RETURNING run_id, source_id, stage, attempt;

-- name: retry_quarantined_of_run
UPDATE penstock.job SET state = 'queued', tries = 0, throttles = 0, deaths = 0, is_resumed = false, at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE run_id = %(run_id)s AND state = 'quarantined'
    AND (%(stage)s::text IS NULL OR stage = %(stage)s)
    AND (%(shards)s::bigint = 1 OR id %% %(shards)s::bigint = %(shard)s::bigint)
  LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, stage, attempt;

-- name: job_state
SELECT state, run_id FROM penstock.job WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: run_state_of_job
SELECT state FROM penstock.run WHERE id = (SELECT run_id FROM penstock.job WHERE id = %(id)s);

-- name: find_jobs
-- Those of a run by the keys that it has, all others in their order: whichever is not asked for costs nothing.
SELECT coalesce(json_agg(f.id ORDER BY f.id), '[]')::text FROM (
  (
    SELECT id FROM penstock.job
    WHERE %(run_id)s::bigint IS NULL AND id > %(after_id)s
      AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
      AND (%(stage)s::text IS NULL OR stage = %(stage)s)
      AND (%(states)s::jsonb IS NULL OR state IN (SELECT x #>> '{}' FROM jsonb_array_elements(%(states)s::jsonb) AS x))
    ORDER BY id LIMIT %(limit)s
  )
  UNION ALL
  (
    SELECT j.id FROM penstock.job_key AS k
    CROSS JOIN LATERAL (SELECT id, source_id, state FROM penstock.job WHERE id = k.job_id OFFSET 0) AS j
    WHERE k.run_id = %(run_id)s AND k.job_id > %(after_id)s
      AND (%(source_id)s::bigint IS NULL OR j.source_id = %(source_id)s)
      AND (%(stage)s::text IS NULL OR k.stage = %(stage)s)
      AND (%(states)s::jsonb IS NULL OR j.state IN (SELECT x #>> '{}' FROM jsonb_array_elements(%(states)s::jsonb) AS x))
    ORDER BY j.id LIMIT %(limit)s
  )
) AS f;

-- name: find_live
-- The same along the indexes that hold what is not done yet: there is little of it beside all that is.
SELECT coalesce(json_agg(f.id ORDER BY f.id), '[]')::text FROM (
  SELECT id FROM (
    SELECT id, run_id, source_id, stage FROM penstock.job WHERE state = 'queued' AND %(states)s::jsonb ? 'queued'
    UNION ALL
    SELECT id, run_id, source_id, stage FROM penstock.job WHERE state = 'running' AND %(states)s::jsonb ? 'running'
    UNION ALL
    SELECT id, run_id, source_id, stage FROM penstock.job WHERE state = 'waiting' AND %(states)s::jsonb ? 'waiting'
    UNION ALL
    SELECT id, run_id, source_id, stage FROM penstock.job WHERE state = 'held' AND %(states)s::jsonb ? 'held'
    OFFSET 0
  ) AS live
  WHERE id > %(after_id)s
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
    AND (%(stage)s::text IS NULL OR stage = %(stage)s)
  ORDER BY id LIMIT %(limit)s
) AS f;

-- name: find_quarantined
-- The same along the index that holds the quarantined ones only: what is asked at 3 a.m. is quick.
SELECT coalesce(json_agg(f.id ORDER BY f.id), '[]')::text FROM (
  SELECT id FROM penstock.job
  WHERE state = 'quarantined' AND id > %(after_id)s
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
    AND (%(stage)s::text IS NULL OR stage = %(stage)s)
  ORDER BY id LIMIT %(limit)s
) AS f;

-- name: jobs
SELECT coalesce(json_agg(json_build_object(
  'id', j.id, 'run_id', j.run_id, 'source', s.key, 'stage', j.stage, 'unit', j.unit, 'key', j.key,
  'state', j.state, 'attempt', j.attempt, 'tries', j.tries, 'throttles', j.throttles, 'deaths', j.deaths,
  'worker', j.worker, 'at', j.at, 'due_at', j.due_at, 'error', f.error, 'kind', f.kind
) ORDER BY c.n), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) WITH ORDINALITY AS c(v, n)
CROSS JOIN LATERAL (
  SELECT id, run_id, source_id, stage, unit, key, state, attempt, tries, throttles, deaths, worker, at, due_at
  FROM penstock.job WHERE id = c.v::bigint OFFSET 0
) AS j
JOIN penstock.source AS s ON s.id = j.source_id
LEFT JOIN LATERAL (SELECT error, kind FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f ON true;

-- name: startable_stages
SELECT coalesce(json_agg(json_build_array(source_id, stage)), '[]')::text FROM (
  SELECT DISTINCT r.source_id, g.stage FROM penstock.run AS r
  JOIN penstock.source AS s ON s.id = r.source_id
  JOIN penstock.stage_count AS g ON g.run_id = r.id
  WHERE g.queued > 0 AND r.state IN ('queued', 'running') AND s.paused_at IS NULL AND s.cooldown_until <= %(until)s
    AND r.for_drains = (%(run_id)s::bigint IS NOT NULL) AND r.id = coalesce(%(run_id)s::bigint, r.id)
    AND NOT EXISTS (SELECT 1 FROM penstock.hold WHERE hold.scope IN ('', s.key))
    AND (g.unit = 'candidate' OR r.kind = 'replay' OR s.id <> ALL (translate(%(outside)s, '[]', '{}')::bigint[]) AND NOT EXISTS (
      SELECT 1 FROM penstock.breaker
      WHERE breaker.key = 'source:' || s.key AND breaker.state = 'open' AND breaker.opens_at > %(until)s))
) AS found;

-- name: startable
SELECT 1 FROM penstock.run AS r
JOIN penstock.source AS s ON s.id = r.source_id
JOIN penstock.stage_count AS g ON g.run_id = r.id
WHERE g.queued > 0 AND r.state IN ('queued', 'running') AND NOT r.for_drains
  AND s.paused_at IS NULL AND s.cooldown_until <= %(until)s
  AND NOT EXISTS (SELECT 1 FROM penstock.hold WHERE hold.scope IN ('', s.key))
  AND (g.unit = 'candidate' OR r.kind = 'replay' OR s.id <> ALL (translate(%(outside)s, '[]', '{}')::bigint[]) AND NOT EXISTS (
    SELECT 1 FROM penstock.breaker
    WHERE breaker.key = 'source:' || s.key AND breaker.state = 'open' AND breaker.opens_at > %(until)s))
LIMIT 1;

-- name: open_in_shard
-- What is left of one stage of a run, or of a part of it: whether something is queued, running, held, and when the first
-- of what waits is due.
SELECT json_build_array(
  EXISTS (
    SELECT 1 FROM penstock.job
    WHERE run_id = %(run_id)s AND stage = %(stage)s AND state = 'queued' AND id %% %(shards)s::bigint = %(shard)s::bigint),
  EXISTS (
    SELECT 1 FROM penstock.job
    WHERE state = 'running' AND run_id = %(run_id)s AND stage = %(stage)s AND id %% %(shards)s::bigint = %(shard)s::bigint),
  EXISTS (
    SELECT 1 FROM penstock.job
    WHERE state = 'held' AND run_id = %(run_id)s AND stage = %(stage)s AND id %% %(shards)s::bigint = %(shard)s::bigint),
  (
    SELECT due_at FROM penstock.job
    WHERE state = 'waiting' AND run_id = %(run_id)s AND stage = %(stage)s AND id %% %(shards)s::bigint = %(shard)s::bigint
    ORDER BY due_at LIMIT 1))::text;

-- name: job_detail
SELECT json_build_object('item', i.item, 'parent_id', i.parent_id, 'traceback', coalesce(f.traceback, ''))::text
FROM (SELECT %(id)s::bigint AS id) AS wanted
LEFT JOIN penstock.job_item AS i ON i.job_id = wanted.id
LEFT JOIN penstock.job_failure AS f ON f.job_id = wanted.id;
