-- name: outlook_sources
-- What holds back each source as a whole, whether or not it has work.
SELECT json_group_array(json_array(
  s.id, s.key, s.paused_at, s.pause_reason, s.cooldown_until, s.cooldown_reason, coalesce(p.next_at, 0.0), s.level,
  b.state, b.opens_at, b.ramp, b.counts_until, b.since, b.reason, h.degraded_at, h.degraded_reason, c.next_due_at,
  json((SELECT json_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM onboarding AS o WHERE o.source_id = s.id))))
FROM (SELECT * FROM source ORDER BY key) AS s
LEFT JOIN pace AS p ON p.key = s.key
LEFT JOIN breaker AS b ON b.key = 'source:' || s.key
LEFT JOIN health AS h ON h.source_id = s.id
LEFT JOIN (SELECT source_id, min(next_due_at) AS next_due_at FROM schedule GROUP BY source_id) AS c ON c.source_id = s.id;

-- name: outlook_queues
-- Each stage that has something queued, with the first of it, of runs that could start it and of those that wait for a
-- person; and what is running, as running_counts has it.
SELECT json_array(json((
  SELECT json_group_array(json_array(
    r.source_id, g.run_id, g.stage, g.unit, g.queued, g.cpu, g.memory_mb, r.kind, r.state, json(iif(r.for_drains, 'true', 'false')),
    json((
      SELECT json_array(rank, id, deaths) FROM job
      WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' ORDER BY rank LIMIT 1
    ))))
  FROM run_stage AS g INDEXED BY run_stage_ready
  CROSS JOIN run AS r ON r.id = g.run_id
  WHERE g.queued > 0 AND r.state IN ('draft', 'queued', 'running', 'paused')
)), json((
  SELECT json_group_array(json_array(c.source_id, c.unit, run.kind, c.n))
  FROM (
    SELECT source_id, unit, run_id, count(*) AS n FROM job INDEXED BY job_running
    WHERE state = 'running' GROUP BY source_id, unit, run_id
  ) AS c
  CROSS JOIN run ON run.id = c.run_id
)));

-- name: outlook_due
-- Jobs that the next turn queues, as outlook_queued would have each of them alone.
SELECT json_group_array(json_array(
  r.source_id, d.run_id, d.stage, g.unit, 1, g.cpu, g.memory_mb, r.kind, r.state, json(iif(r.for_drains, 'true', 'false')), json_array(d.rank, d.id, d.deaths)))
FROM (
  SELECT id, run_id, stage, rank, deaths FROM job INDEXED BY job_waiting
  WHERE state = 'waiting' AND due_at <= :now ORDER BY due_at LIMIT :limit
) AS d
CROSS JOIN run_stage AS g ON g.run_id = d.run_id AND g.stage = d.stage
CROSS JOIN run AS r ON r.id = d.run_id
WHERE r.state IN ('draft', 'queued', 'running', 'paused');

-- name: outlook_with_suspects
-- The first jobs of each stage in which a job is queued under which two workers died already, and of these stages.
SELECT json_group_array(json_array(run_id, stage, json((
  SELECT json_group_array(json_array(id, deaths, rank)) FROM (
    SELECT id, deaths, rank FROM job
    WHERE job.run_id = t.run_id AND job.stage = t.stage AND job.state = 'queued' ORDER BY rank LIMIT :limit
  )
))))
FROM (
  SELECT run_id, stage FROM job INDEXED BY job_suspect WHERE state = 'queued' AND deaths >= 2
  UNION
  SELECT value ->> 0, value ->> 1 FROM jsonb_each(:stages)
) AS t;

-- name: outlook_waiting
-- Of these sources, the job that is due first.
SELECT json_group_array(json_array(source_id, id)) FROM (
  SELECT j.source_id, j.id, min(j.due_at) FROM job AS j INDEXED BY job_waiting
  WHERE j.state = 'waiting' AND j.due_at > :now AND j.source_id IN (SELECT value FROM jsonb_each(:sources))
    AND EXISTS (SELECT 1 FROM run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
  GROUP BY j.source_id
);

-- name: outlook_held
-- Of these sources, the job that is held the longest.
SELECT json_group_array(json_array(source_id, id)) FROM (
  SELECT j.source_id, j.id, min(j.at) FROM job AS j INDEXED BY job_held
  WHERE j.state = 'held' AND j.source_id IN (SELECT value FROM jsonb_each(:sources))
    AND EXISTS (SELECT 1 FROM run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
  GROUP BY j.source_id
);

-- name: outlook_running
-- Of these sources, the job that runs the longest.
SELECT json_group_array(json_array(source_id, id)) FROM (
  SELECT j.source_id, j.id, min(j.at) FROM job AS j INDEXED BY job_running
  WHERE j.state = 'running' AND j.source_id IN (SELECT value FROM jsonb_each(:sources))
  GROUP BY j.source_id
);

-- name: outlook_jobs
-- Jobs that can't start yet: what is known of each without its history. `host` is the one whose hours it waits for.
SELECT json_group_array(json_object(
  'id', j.id, 'source_id', j.source_id, 'run_id', j.run_id, 'stage', j.stage, 'unit', j.unit, 'state', j.state,
  'at', j.at, 'due_at', j.due_at, 'worker', coalesce(j.worker, ''), 'deaths', j.deaths, 'error', coalesce(f.error, ''),
  'host', coalesce(w.host, ''), 'cpu', coalesce(g.cpu, 0.0), 'memory_mb', coalesce(g.memory_mb, 0.0),
  'kind', r.kind, 'run_state', r.state, 'for_drains', json(iif(r.for_drains, 'true', 'false')), 'run_actor', r.actor, 'run_reason', r.reason, 'run_at', r.created_at))
FROM jsonb_each(:ids) AS c
CROSS JOIN job AS j ON j.id = c.value
CROSS JOIN run AS r ON r.id = j.run_id
LEFT JOIN run_stage AS g ON g.run_id = j.run_id AND g.stage = j.stage
LEFT JOIN job_failure AS f ON f.job_id = j.id
LEFT JOIN host_wait AS w ON w.job_id = j.id AND w.due_at = j.due_at;
