-- name: outlook_sources
-- What holds back each source as a whole, whether or not it has work.
SELECT coalesce(json_agg(json_build_array(
  s.id, s.key, s.paused_at, s.pause_reason, s.cooldown_until, s.cooldown_reason, coalesce(p.next_at, 0.0), s.level,
  b.state, b.opens_at, b.ramp, b.counts_until, b.since, b.reason, h.degraded_at, h.degraded_reason, c.next_due_at,
  (SELECT json_build_array(state, changed_at, changed_by, reason, proposed_at, owner, robots_verdict, robots_at,
    terms_verdict, terms_at, legal_hold_at, legal_hold_by, legal_hold_reason, cell_state, cell)
    FROM penstock.onboarding AS o WHERE o.source_id = s.id)) ORDER BY s.key), '[]')::text
FROM penstock.source AS s
LEFT JOIN penstock.pace AS p ON p.key = s.key
LEFT JOIN penstock.breaker AS b ON b.key = 'source:' || s.key
LEFT JOIN penstock.health AS h ON h.source_id = s.id
LEFT JOIN (SELECT source_id, min(next_due_at) AS next_due_at FROM penstock.schedule GROUP BY source_id) AS c ON c.source_id = s.id;

-- name: outlook_queues
-- Each stage that has something queued, with the first of it, of runs that could start it and of those that wait for a
-- person; and what is running, as running_counts has it: each counter is added up once for both.
WITH g AS MATERIALIZED (
  SELECT r.id AS run_id, r.source_id, r.kind, r.state, r.for_drains, c.stage, c.unit, c.queued, c.running, c.cpu, c.memory_mb
  FROM (
    SELECT id, source_id, kind, state, for_drains FROM penstock.run WHERE state IN ('queued', 'running', 'paused')
    UNION ALL
    SELECT id, source_id, kind, state, for_drains FROM penstock.run WHERE state = 'draft'
    UNION ALL
    SELECT id, source_id, kind, state, for_drains FROM penstock.run WHERE state = 'cancelled' AND swept_at IS NULL
  ) AS r
  JOIN penstock.stage_count AS c ON c.run_id = r.id
  WHERE c.queued > 0 OR c.running > 0
)
SELECT json_build_array((
  SELECT coalesce(json_agg(json_build_array(
    g.source_id, g.run_id, g.stage, g.unit, g.queued, g.cpu, g.memory_mb, g.kind, g.state, g.for_drains, h.first)), '[]')
  FROM g
  LEFT JOIN LATERAL (
    SELECT json_build_array(job.rank, job.id, job.deaths) AS first FROM penstock.job
    WHERE job.run_id = g.run_id AND job.stage = g.stage AND job.state = 'queued' ORDER BY job.rank, job.id LIMIT 1
  ) AS h ON true
  WHERE g.queued > 0 AND g.state <> 'cancelled'
), (
  SELECT coalesce(json_agg(json_build_array(n.source_id, n.unit, n.kind, n.running)), '[]') FROM (
    SELECT source_id, unit, kind, sum(running)::bigint AS running FROM g
    WHERE running > 0 AND state <> 'draft' GROUP BY source_id, unit, kind
  ) AS n
))::text;

-- name: outlook_due
-- Jobs that the next turn queues, as outlook_queued would have each of them alone.
SELECT coalesce(json_agg(json_build_array(
  r.source_id, d.run_id, d.stage, g.unit, 1, g.cpu, g.memory_mb, r.kind, r.state, r.for_drains, json_build_array(d.rank, d.id, d.deaths))), '[]')::text
FROM (
  SELECT id, run_id, stage, rank, deaths FROM penstock.job
  WHERE state = 'waiting' AND due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s
) AS d
CROSS JOIN LATERAL (
  SELECT unit, cpu, memory_mb FROM penstock.run_stage WHERE run_id = d.run_id AND stage = d.stage OFFSET 0
) AS g
CROSS JOIN LATERAL (
  SELECT source_id, kind, state, for_drains FROM penstock.run
  WHERE id = d.run_id AND state IN ('draft', 'queued', 'running', 'paused') OFFSET 0
) AS r;

-- name: outlook_with_suspects
-- The first jobs of each stage in which a job is queued under which two workers died already, and of these stages.
SELECT coalesce(json_agg(json_build_array(t.run_id, t.stage, f.jobs)), '[]')::text
FROM (
  SELECT run_id, stage FROM penstock.job WHERE state = 'queued' AND deaths >= 2
  UNION
  SELECT (v ->> 0)::bigint, v ->> 1 FROM jsonb_array_elements(%(stages)s::jsonb) AS v
) AS t
CROSS JOIN LATERAL (
  SELECT coalesce(json_agg(json_build_array(j.id, j.deaths, j.rank) ORDER BY j.rank, j.id), '[]') AS jobs FROM (
    SELECT job.id, job.deaths, job.rank FROM penstock.job
    WHERE job.run_id = t.run_id AND job.stage = t.stage AND job.state = 'queued' ORDER BY job.rank, job.id LIMIT %(limit)s
  ) AS j
) AS f;

-- name: outlook_waiting
-- Of these sources, the job that is due first.
SELECT coalesce(json_agg(json_build_array(f.source_id, f.id)), '[]')::text FROM (
  SELECT DISTINCT ON (j.source_id) j.source_id, j.id FROM penstock.job AS j
  WHERE j.state = 'waiting' AND j.due_at > %(now)s
    AND j.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x)
    AND EXISTS (SELECT 1 FROM penstock.run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
  ORDER BY j.source_id, j.due_at, j.id
) AS f;

-- name: outlook_held
-- Of these sources, the job that is held the longest.
SELECT coalesce(json_agg(json_build_array(f.source_id, f.id)), '[]')::text FROM (
  SELECT DISTINCT ON (j.source_id) j.source_id, j.id FROM penstock.job AS j
  WHERE j.state = 'held' AND j.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x)
    AND EXISTS (SELECT 1 FROM penstock.run WHERE run.id = j.run_id AND run.state IN ('draft', 'queued', 'running', 'paused'))
  ORDER BY j.source_id, j.at, j.id
) AS f;

-- name: outlook_running
-- Of these sources, the job that runs the longest.
SELECT coalesce(json_agg(json_build_array(f.source_id, f.id)), '[]')::text FROM (
  SELECT DISTINCT ON (j.source_id) j.source_id, j.id FROM penstock.job AS j
  WHERE j.state = 'running' AND j.source_id IN (SELECT x::bigint FROM jsonb_array_elements(%(sources)s::jsonb) AS x)
  ORDER BY j.source_id, j.at, j.id
) AS f;

-- name: outlook_jobs
-- Jobs that can't start yet: what is known of each without its history. `host` is the one whose hours it waits for.
SELECT coalesce(json_agg(json_build_object(
  'id', j.id, 'source_id', j.source_id, 'run_id', j.run_id, 'stage', j.stage, 'unit', j.unit, 'state', j.state,
  'at', j.at, 'due_at', j.due_at, 'worker', coalesce(j.worker, ''), 'deaths', j.deaths, 'error', coalesce(f.error, ''),
  'host', coalesce(w.host, ''), 'cpu', coalesce(g.cpu, 0.0), 'memory_mb', coalesce(g.memory_mb, 0.0),
  'kind', r.kind, 'run_state', r.state, 'for_drains', r.for_drains, 'run_actor', r.actor, 'run_reason', r.reason, 'run_at', r.created_at)), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS c(v)
CROSS JOIN LATERAL (
  SELECT id, source_id, run_id, stage, unit, state, at, due_at, worker, deaths FROM penstock.job WHERE id = c.v::bigint OFFSET 0
) AS j
CROSS JOIN LATERAL (SELECT kind, state, for_drains, actor, reason, created_at FROM penstock.run WHERE id = j.run_id OFFSET 0) AS r
LEFT JOIN LATERAL (
  SELECT cpu, memory_mb FROM penstock.run_stage WHERE run_id = j.run_id AND stage = j.stage OFFSET 0
) AS g ON true
LEFT JOIN LATERAL (SELECT error FROM penstock.job_failure WHERE job_id = j.id OFFSET 0) AS f ON true
LEFT JOIN LATERAL (SELECT host FROM penstock.host_wait WHERE job_id = j.id AND due_at = j.due_at OFFSET 0) AS w ON true;
