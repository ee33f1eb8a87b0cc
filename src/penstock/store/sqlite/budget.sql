-- name: lock_budgets
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT json_group_array(json_array(b.scope, b.measure, b.period, b.period_at, b.resets_at, b.used, b.bound, b.warned))
FROM jsonb_each(:keys) AS k
CROSS JOIN budget AS b ON b.scope = k.value ->> 0 AND b.measure = k.value ->> 1 AND b.period = k.value ->> 2;

-- name: lock_lasting_budgets
-- Those that begin anew by themselves.
SELECT json_group_array(json_array(scope, measure, period, period_at, resets_at, used, bound, warned))
FROM budget WHERE resets_at IS NOT NULL;

-- name: add_budgets
INSERT INTO budget (scope, measure, period, period_at, resets_at, bound)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(:budgets) WHERE true
ON CONFLICT (scope, measure, period) DO NOTHING;

-- name: set_budgets
UPDATE budget
SET period_at = b.value ->> 3, resets_at = b.value ->> 4, used = b.value ->> 5, bound = b.value ->> 6, warned = b.value ->> 7
FROM jsonb_each(:budgets) AS b
WHERE budget.scope = b.value ->> 0 AND budget.measure = b.value ->> 1 AND budget.period = b.value ->> 2;

-- name: held_by_others
SELECT json_group_object(key, amount) FROM (
  SELECT key, sum(amount) AS amount FROM holding
  WHERE key IN (SELECT value FROM jsonb_each(:keys)) AND worker <> :worker GROUP BY key
);

-- name: held_at_hosts
SELECT json_group_object(key, amount) FROM (
  SELECT key, sum(amount) AS amount FROM holding WHERE key >= 'host:' AND key < 'host;' GROUP BY key
);

-- name: set_holdings
INSERT INTO holding (worker, key, amount) SELECT :worker, value ->> 0, value ->> 1 FROM jsonb_each(:holdings) WHERE true
ON CONFLICT (key, worker) DO UPDATE SET amount = excluded.amount;

-- name: drop_empty_usage
DELETE FROM holding WHERE worker = :worker AND amount <= 0 AND key >= 'usage:' AND key < 'usage;';

-- name: budgets
SELECT json_group_array(json_object(
  'scope', scope, 'measure', measure, 'period', period, 'period_at', period_at, 'resets_at', resets_at,
  'used', used, 'bound', bound, 'warned', warned,
  'held', coalesce((SELECT sum(amount) FROM holding WHERE key = 'budget:' || measure || ':' || period || ':' || scope), 0.0)))
FROM (SELECT * FROM budget ORDER BY scope, measure, period) WHERE :run_id IS NULL OR resets_at IS NOT NULL OR scope = 'run:' || :run_id;

-- name: exhausted_budgets
-- A run's only while it goes on: nobody asks for the others.
SELECT json_group_array(json_object(
  'scope', scope, 'measure', measure, 'period', period, 'period_at', period_at, 'resets_at', resets_at,
  'used', used, 'bound', bound, 'warned', warned))
FROM budget
WHERE warned >= 100 AND (resets_at > :now
  OR (resets_at IS NULL AND scope IN (SELECT 'run:' || id FROM run WHERE state IN ('queued', 'running', 'paused'))));

-- name: runs_set_aside
-- Runs with jobs that a budget stopped (a step that says so itself names a cause), where no budget does so any more. One that its own budget stopped waits for a person.
-- One that has ended is not opened again while its source is degraded, and runs probes only.
SELECT DISTINCT j.run_id
FROM job AS j INDEXED BY job_quarantined
CROSS JOIN job_failure AS f ON f.job_id = j.id AND f.kind = 'budget' AND f.cause = ''
CROSS JOIN run AS r ON r.id = j.run_id AND r.state <> 'cancelled'
CROSS JOIN source AS s ON s.id = j.source_id
WHERE j.state = 'quarantined' AND NOT EXISTS (
  SELECT 1 FROM budget AS b
  WHERE b.scope IN ('project', 'source:' || s.key, 'run:' || j.run_id) AND b.warned >= 100
    AND (b.resets_at IS NULL OR b.resets_at > :now)
) AND (r.finished_at IS NULL OR r.kind IN ('probe', 'replay') OR NOT EXISTS (
  SELECT 1 FROM health AS h WHERE h.source_id = j.source_id AND h.degraded_at IS NOT NULL
))
ORDER BY j.run_id LIMIT :limit;

-- name: release_set_aside
UPDATE job SET state = 'queued', is_resumed = 0, at = :now
WHERE id IN (
  SELECT j.id FROM job AS j INDEXED BY job_quarantined
  CROSS JOIN job_failure AS f ON f.job_id = j.id AND f.kind = 'budget' AND f.cause = ''
  WHERE j.run_id = :run_id AND j.state = 'quarantined' LIMIT :limit
)
RETURNING id, stage, attempt;

-- name: stopped_by_budget
SELECT json_group_object(stage, n) FROM (
  SELECT j.stage, count(*) AS n FROM job AS j INDEXED BY job_quarantined
  CROSS JOIN job_failure AS f ON f.job_id = j.id AND f.kind = 'budget'
  WHERE j.run_id = :run_id AND j.state = 'quarantined' GROUP BY j.stage
);

-- name: drop_ended_budgets
DELETE FROM budget
WHERE resets_at IS NULL AND period_at < :before
  AND scope LIKE 'run:%' AND NOT EXISTS (
    SELECT 1 FROM run WHERE id = CAST(substr(budget.scope, 5) AS INTEGER) AND state NOT IN ('completed', 'cancelled')
  );

-- name: set_aside_if_queued
UPDATE job SET state = 'quarantined', at = :now
WHERE id IN (
  SELECT id FROM job WHERE run_id = :run_id AND stage = :stage AND state = 'queued' ORDER BY rank LIMIT :limit
)
RETURNING id, attempt;
