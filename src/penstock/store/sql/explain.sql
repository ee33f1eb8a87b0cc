-- name: pretend_run
-- In a transaction that is undone: a run that could start, to see what would hold it back.
INSERT INTO penstock.run (id, source_id, kind, state, key, plan, pipeline_version, actor, created_at)
VALUES (-1, :source_id, :kind, 'running', 'pretended', '{}', '', '', :now);

-- name: pretend_stage
INSERT INTO penstock.run_stage (run_id, stage, unit, priority, cpu, memory_mb, queued)
VALUES (-1, 'pretended', :unit, 5, :cpu, :memory_mb, 1);
