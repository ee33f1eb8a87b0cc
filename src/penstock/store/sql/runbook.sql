-- name: add_runbook_execution
INSERT INTO penstock.runbook_execution (runbook, target, started_at, actor) VALUES (:runbook, :target, :now, :actor)
ON CONFLICT (runbook, target) WHERE ended_at IS NULL DO NOTHING;

-- name: open_runbook_execution
SELECT id, runbook, target, started_at, actor, ended_at, outcome FROM penstock.runbook_execution
WHERE runbook = :runbook AND target = :target AND ended_at IS NULL;

-- name: runbook_executions
SELECT id, runbook, target, started_at, actor, ended_at, outcome FROM penstock.runbook_execution
WHERE id < :before_id ORDER BY id DESC LIMIT :limit;

-- name: count_runbook_step
-- It locks the row: two people who record a step at once get two numbers.
UPDATE penstock.runbook_execution SET steps = steps + 1 WHERE id = :id AND ended_at IS NULL;

-- name: add_runbook_step
INSERT INTO penstock.runbook_step (execution_id, number, step, outcome, summary, findings, at, actor, reason)
SELECT id, steps, :step, :outcome, :summary, :findings, :at, :actor, :reason FROM penstock.runbook_execution
WHERE id = :id;

-- name: runbook_steps
SELECT step, outcome, summary, findings, at, actor, reason FROM penstock.runbook_step
WHERE execution_id = :id ORDER BY number;

-- name: end_runbook_execution
UPDATE penstock.runbook_execution SET ended_at = :now, outcome = :outcome WHERE id = :id AND ended_at IS NULL;

-- name: drop_runbook_steps
DELETE FROM penstock.runbook_step WHERE execution_id IN (
  SELECT id FROM penstock.runbook_execution WHERE ended_at < :before AND steps > 0 ORDER BY id LIMIT :limit
);

-- name: drop_runbook_executions
-- Those whose steps are gone.
DELETE FROM penstock.runbook_execution WHERE id IN (
  SELECT e.id FROM penstock.runbook_execution AS e
  WHERE e.ended_at < :before AND NOT EXISTS (SELECT 1 FROM penstock.runbook_step AS s WHERE s.execution_id = e.id)
  ORDER BY e.id LIMIT :limit
);
