-- name: lock_budgets
-- In the order of their keys, so that two hosts never wait for each other in a circle.
SELECT coalesce(json_agg(json_build_array(scope, measure, period, period_at, resets_at, used, bound, warned)), '[]')::text FROM (
  SELECT b.scope, b.measure, b.period, b.period_at, b.resets_at, b.used, b.bound, b.warned
  FROM penstock.budget AS b
  WHERE (b.scope, b.measure, b.period) IN (SELECT k ->> 0, k ->> 1, k ->> 2 FROM jsonb_array_elements(%(keys)s::jsonb) AS k)
  ORDER BY b.scope, b.measure, b.period FOR NO KEY UPDATE OF b
) AS locked;

-- name: lock_lasting_budgets
-- Those that begin anew by themselves.
SELECT coalesce(json_agg(json_build_array(scope, measure, period, period_at, resets_at, used, bound, warned)), '[]')::text FROM (
  SELECT scope, measure, period, period_at, resets_at, used, bound, warned
  FROM penstock.budget WHERE resets_at IS NOT NULL
  ORDER BY scope, measure, period FOR NO KEY UPDATE
) AS locked;

-- name: add_budgets
INSERT INTO penstock.budget (scope, measure, period, period_at, resets_at, bound)
SELECT b ->> 0, b ->> 1, b ->> 2, (b ->> 3)::double precision, (b ->> 4)::double precision, (b ->> 5)::double precision
FROM jsonb_array_elements(%(budgets)s::jsonb) AS b
ORDER BY (b ->> 0) COLLATE "C", (b ->> 1) COLLATE "C", (b ->> 2) COLLATE "C"
ON CONFLICT (scope, measure, period) DO NOTHING;

-- name: set_budgets
UPDATE penstock.budget
SET period_at = (b ->> 3)::double precision, resets_at = (b ->> 4)::double precision, used = (b ->> 5)::double precision,
  bound = (b ->> 6)::double precision, warned = (b ->> 7)::bigint
FROM jsonb_array_elements(%(budgets)s::jsonb) AS b
WHERE budget.scope = b ->> 0 AND budget.measure = b ->> 1 AND budget.period = b ->> 2;

-- name: held_by_others
SELECT coalesce(json_object_agg(key, amount), '{}')::text FROM (
  SELECT key, sum(amount) AS amount FROM penstock.holding
  WHERE key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(keys)s::jsonb))) AND worker <> %(worker)s GROUP BY key
) AS others;

-- name: held_at_hosts
SELECT coalesce(json_object_agg(key, amount), '{}')::text FROM (
  SELECT key, sum(amount) AS amount FROM penstock.holding WHERE starts_with(key, 'host:') GROUP BY key
) AS held;

-- name: set_holdings
INSERT INTO penstock.holding (worker, key, amount)
SELECT %(worker)s, h ->> 0, (h ->> 1)::double precision FROM jsonb_array_elements(%(holdings)s::jsonb) AS h
ORDER BY (h ->> 0) COLLATE "C"
ON CONFLICT (key, worker) DO UPDATE SET amount = excluded.amount;

-- name: drop_empty_usage
DELETE FROM penstock.holding WHERE worker = %(worker)s AND amount <= 0 AND starts_with(key, 'usage:');

-- name: budgets
SELECT coalesce(json_agg(json_build_object(
  'scope', b.scope, 'measure', b.measure, 'period', b.period, 'period_at', b.period_at, 'resets_at', b.resets_at,
  'used', b.used, 'bound', b.bound, 'warned', b.warned,
  'held', coalesce((SELECT sum(h.amount) FROM penstock.holding AS h WHERE h.key = 'budget:' || b.measure || ':' || b.period || ':' || b.scope), 0))
  ORDER BY b.scope, b.measure, b.period), '[]')::text
FROM penstock.budget AS b
WHERE %(run_id)s::bigint IS NULL OR b.resets_at IS NOT NULL OR b.scope = 'run:' || %(run_id)s::bigint;

-- name: exhausted_budgets
-- A run's only while it goes on: nobody asks for the others.
SELECT coalesce(json_agg(json_build_object(
  'scope', scope, 'measure', measure, 'period', period, 'period_at', period_at, 'resets_at', resets_at,
  'used', used, 'bound', bound, 'warned', warned)), '[]')::text
FROM penstock.budget
WHERE warned >= 100 AND (resets_at > %(now)s
  OR (resets_at IS NULL AND scope IN (SELECT 'run:' || id FROM penstock.run WHERE state IN ('queued', 'running', 'paused'))));

-- name: runs_set_aside
-- Runs with jobs that a budget stopped (a step that says so itself names a cause), where no budget does so any more. One that its own budget stopped waits for a person.
-- One that has ended is not opened again while its source is degraded, and runs probes only.
SELECT DISTINCT j.run_id
FROM penstock.job AS j
CROSS JOIN LATERAL (
  SELECT 1 FROM penstock.job_failure WHERE job_id = j.id AND kind = 'budget' AND cause = '' OFFSET 0
) AS f
JOIN penstock.run AS r ON r.id = j.run_id AND r.state <> 'cancelled'
JOIN penstock.source AS s ON s.id = j.source_id
WHERE j.state = 'quarantined' AND NOT EXISTS (
  SELECT 1 FROM penstock.budget AS b
  WHERE b.scope IN ('project', 'source:' || s.key, 'run:' || j.run_id) AND b.warned >= 100
    AND (b.resets_at IS NULL OR b.resets_at > %(now)s)
) AND (r.finished_at IS NULL OR r.kind IN ('probe', 'replay') OR NOT EXISTS (
  SELECT 1 FROM penstock.health AS h WHERE h.source_id = j.source_id AND h.degraded_at IS NOT NULL
))
ORDER BY j.run_id LIMIT %(limit)s;

-- name: release_set_aside
UPDATE penstock.job SET state = 'queued', is_resumed = false, at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT j.id FROM penstock.job AS j
  CROSS JOIN LATERAL (
    SELECT 1 FROM penstock.job_failure WHERE job_id = j.id AND kind = 'budget' AND cause = '' OFFSET 0
  ) AS f
  WHERE j.run_id = %(run_id)s AND j.state = 'quarantined' LIMIT %(limit)s FOR NO KEY UPDATE OF j SKIP LOCKED
))
RETURNING id, stage, attempt;

-- name: stopped_by_budget
SELECT coalesce(json_object_agg(stage, n), '{}')::text FROM (
  SELECT j.stage, count(*) AS n FROM penstock.job AS j
  CROSS JOIN LATERAL (SELECT 1 FROM penstock.job_failure WHERE job_id = j.id AND kind = 'budget' OFFSET 0) AS f
  WHERE j.run_id = %(run_id)s AND j.state = 'quarantined' GROUP BY j.stage
) AS stopped;

-- name: drop_ended_budgets
DELETE FROM penstock.budget
WHERE resets_at IS NULL AND period_at < %(before)s
  AND scope LIKE 'run:%%' AND NOT EXISTS (
    SELECT 1 FROM penstock.run
    WHERE id = CASE WHEN budget.scope LIKE 'run:%%' THEN substr(budget.scope, 5)::bigint END AND state NOT IN ('completed', 'cancelled')
  );

-- name: set_aside_if_queued
UPDATE penstock.job SET state = 'quarantined', at = %(now)s
WHERE id = ANY (ARRAY(
  SELECT id FROM penstock.job WHERE run_id = %(run_id)s AND stage = %(stage)s AND state = 'queued'
  ORDER BY rank LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, attempt;
