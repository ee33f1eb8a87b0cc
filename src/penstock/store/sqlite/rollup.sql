-- name: add_measured
INSERT INTO measured (run_id, at, amounts) SELECT value ->> 0, :now, value ->> 1 FROM jsonb_each(:measured);

-- name: rollup_position
SELECT json_object('version', version, 'line', line, 'holes', json(holes), 'memory', json(memory), 'at', at) FROM rollup_position;

-- name: lines_to_fold
-- The next lines of the journal; with those that count, what they are counted by. One writer at a time: there are no holes.
SELECT json_object(
  'count', count(*), 'last_id', max(l.id), 'gaps', json('[]'), 'late', json('[]'), 'oldest_tx', 1, 'next_tx', 0,
  'lines', json_group_array(json_array(
    l.id, l.at, l.kind, l.source_id, l.run_id, l.job_id, l.attempt,
    CASE WHEN l.job_id IS NOT NULL AND l.kind <> 'job.started' THEN (SELECT stage FROM job WHERE job.id = l.job_id) END,
    CASE WHEN l.job_id IS NOT NULL AND l.kind <> 'job.started'
      THEN (SELECT o.at FROM open_attempt AS o WHERE o.job_id = l.job_id AND o.attempt = l.attempt) END,
    CASE WHEN l.kind = 'run.queued' THEN (SELECT key FROM run WHERE run.id = l.run_id) END,
    CASE WHEN l.kind IN ('job.quarantined', 'schedule.missed', 'sla.breached', 'schema.stale') THEN l.data END,
    CASE WHEN l.kind IN ('job.quarantined', 'schedule.missed', 'sla.breached', 'schema.stale') THEN l.detail ELSE '' END,
    l.actor, CASE WHEN l.job_id IS NULL THEN (SELECT kind FROM run WHERE run.id = l.run_id) END,
    CASE
      WHEN l.kind = 'job.started' AND l.attempt > 1
        THEN (SELECT o.at FROM released_attempt AS o WHERE o.job_id = l.job_id AND o.attempt = l.attempt - 1)
      WHEN l.kind = 'job.released'
        THEN (SELECT i.since FROM interruption AS i WHERE i.job_id = l.job_id AND i.attempt = l.attempt)
    END,
    CASE WHEN l.kind = 'run.reopened' THEN (
      SELECT o.label FROM run_rollup AS o WHERE o.run_id = l.run_id AND o.measure = 'ended' AND o.value > 0
    ) END,
    json(CASE WHEN l.kind = 'run.queued' THEN (
      -- Cancelled runs that this one starts over: it continues them, or is a backfill of the same range.
      SELECT json_group_array(c.id) FROM run AS n
      CROSS JOIN run AS c ON c.id IN (
        SELECT n.options ->> 'continues'
        UNION ALL
        SELECT id FROM (
          SELECT b.id FROM run AS b INDEXED BY run_of_source
          WHERE n.kind = 'backfill' AND b.source_id = n.source_id AND b.id < n.id ORDER BY b.id DESC LIMIT 200
        )
      )
      WHERE n.id = l.run_id AND c.kind = n.kind AND c.state = 'cancelled' AND c.started_at IS NOT NULL
        AND (n.options ->> 'continues' = c.id
          OR (n.options ->> 'start_at' < c.options ->> 'end_at' AND n.options ->> 'end_at' > c.options ->> 'start_at'))
        AND NOT EXISTS (SELECT 1 FROM run_rollup AS o WHERE o.run_id = c.id AND o.measure = 'restarted')
    ) END)
  )) FILTER (WHERE l.kind IN (SELECT value FROM json_each(:kinds)))
)
FROM (SELECT * FROM event WHERE id > :line ORDER BY id LIMIT :limit) AS l;

-- name: measured_to_fold
SELECT json_group_array(json_array(m.id, m.at, m.run_id, (SELECT source_id FROM run WHERE run.id = m.run_id), json(m.amounts)))
FROM (SELECT * FROM measured ORDER BY id LIMIT :limit) AS m;

-- name: drop_measured
DELETE FROM measured WHERE id IN (SELECT value FROM json_each(:ids));

-- name: add_rollups
INSERT INTO rollup (source_id, measure, step, at, label, value)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(:sums) WHERE true
ON CONFLICT (source_id, measure, step, at, label) DO UPDATE SET value = rollup.value + excluded.value;

-- name: set_rollups
INSERT INTO rollup (source_id, measure, step, at, label, value)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(:values) WHERE true
ON CONFLICT (source_id, measure, step, at, label) DO UPDATE SET value = excluded.value;

-- name: add_run_rollups
INSERT INTO run_rollup (run_id, measure, label, value)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:sums) WHERE true
ON CONFLICT (run_id, measure, label) DO UPDATE SET value = run_rollup.value + excluded.value;

-- name: open_attempts
INSERT INTO open_attempt (job_id, attempt, at) SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:attempts) WHERE true
ON CONFLICT DO NOTHING;

-- name: close_attempts
DELETE FROM open_attempt WHERE (job_id, attempt) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:attempts));

-- name: add_releases
INSERT INTO released_attempt (job_id, attempt, at) SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:attempts) WHERE true
ON CONFLICT DO NOTHING;

-- name: drop_releases
DELETE FROM released_attempt WHERE (job_id, attempt) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:attempts));

-- name: drop_rollups_of_runs
DELETE FROM run_rollup WHERE run_id IN (SELECT value FROM json_each(:ids));

-- name: drop_old_rollups
-- Of some sources, the hours and days that are too old: each measure is one range of the key.
DELETE FROM rollup
WHERE source_id IN (SELECT value FROM json_each(:source_ids)) AND measure IN (SELECT value FROM json_each(:measures))
  AND step = :step AND at < :before;

-- name: source_ids_after
SELECT json_group_array(id) FROM (SELECT id FROM source WHERE id > :after_id ORDER BY id LIMIT :limit);

-- name: rollup_series
SELECT json_group_array(json_array(at, value)) FROM (
  SELECT at, sum(value) AS value FROM rollup
  WHERE source_id = :source_id AND measure = :measure AND step = :step AND at >= :since AND at < :until
    AND (:labels IS NULL OR label IN (SELECT value FROM json_each(:labels)))
  GROUP BY at ORDER BY at
);

-- name: rollup_by_label
SELECT json_group_object(label, value) FROM (
  SELECT label, sum(value) AS value FROM rollup
  WHERE source_id = :source_id AND measure = :measure AND step = :step AND at >= :since AND at < :until
  GROUP BY label ORDER BY label
);

-- name: rollup_by_source
-- Of the sources that have any.
SELECT json_group_object(key, value) FROM (
  SELECT s.key, sum(r.value) AS value FROM source AS s CROSS JOIN rollup AS r ON r.source_id = s.id
  WHERE r.measure = :measure AND r.step = :step AND r.at >= :since AND r.at < :until
    AND (:labels IS NULL OR r.label IN (SELECT value FROM json_each(:labels)))
  GROUP BY s.key ORDER BY s.key
);

-- name: rollup_totals
-- What these measures come to since the beginning: [source, measure, label, value]; of all sources together, the source is null.
SELECT json_group_array(json_array(s.key, r.measure, r.label, r.value))
FROM (SELECT id, key FROM source UNION ALL SELECT 0, NULL) AS s
CROSS JOIN json_each(:measures) AS m
CROSS JOIN rollup AS r ON r.source_id = s.id AND r.measure = m.value AND r.step = 0 AND r.at = 0;

-- name: rollups_of_runs
SELECT json_group_array(json_array(r.run_id, r.measure, r.label, r.value))
FROM json_each(:ids) AS i CROSS JOIN run_rollup AS r ON r.run_id = i.value;

-- name: open_jobs_by_source
-- Jobs of active runs that have not ended: it does not grow with what has.
SELECT json_group_array(json_array(source_id, jobs)) FROM (
  SELECT r.source_id, sum(g.queued + g.running + g.waiting + g.held) AS jobs
  FROM run AS r INDEXED BY run_active CROSS JOIN run_stage AS g ON g.run_id = r.id
  WHERE r.state IN ('queued', 'running', 'paused') GROUP BY r.source_id
);

-- name: present_backlogs
SELECT json_group_array(r.source_id)
FROM (SELECT id FROM source UNION ALL SELECT 0) AS s
CROSS JOIN rollup AS r ON r.source_id = s.id AND r.measure = 'backlog' AND r.step = 0 AND r.at = 0 AND r.label = ''
WHERE r.value <> 0;
