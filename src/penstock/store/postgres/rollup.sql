-- name: add_measured
INSERT INTO penstock.measured (run_id, at, amounts)
SELECT (v ->> 0)::bigint, %(now)s, v ->> 1 FROM jsonb_array_elements(%(measured)s::jsonb) AS v;

-- name: rollup_position
SELECT json_build_object('version', version, 'line', line, 'holes', holes::json, 'memory', memory::json, 'at', at)::text FROM penstock.rollup_position;

-- name: lines_to_fold
-- The next lines of the journal; with those that count, what they are counted by. Ids become visible out of order: what
-- was not there at its turn is a gap, and is looked for again in `holes` until nobody is left who may write it.
WITH h AS MATERIALIZED (
  SELECT (v ->> 0)::bigint AS first_id, (v ->> 1)::bigint AS last_id FROM jsonb_array_elements(%(holes)s::jsonb) AS v
), e AS MATERIALIZED (
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, data, detail, actor FROM penstock.event
    WHERE id > %(line)s ORDER BY id LIMIT %(limit)s
  )
  UNION ALL
  SELECT late.id, late.at, late.kind, late.source_id, late.run_id, late.job_id, late.attempt, late.data, late.detail,
    late.actor
  FROM h CROSS JOIN LATERAL (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, data, detail, actor FROM penstock.event
    WHERE id BETWEEN h.first_id AND h.last_id OFFSET 0
  ) AS late
)
SELECT json_build_object(
  'count', (SELECT count(*) FROM e), 'last_id', (SELECT max(id) FROM e),
  'late', (SELECT coalesce(json_agg(id ORDER BY id), '[]') FROM e WHERE id <= %(line)s),
  'gaps', (
    SELECT coalesce(json_agg(json_build_array(before + 1, id - 1) ORDER BY id), '[]')
    FROM (SELECT id, lag(id, 1, %(line)s::bigint) OVER (ORDER BY id) AS before FROM e WHERE id > %(line)s) AS g
    WHERE id > before + 1
  ),
  'oldest_tx', pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
  'next_tx', pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  'lines', (
    SELECT coalesce(json_agg(json_build_array(
      e.id, e.at, e.kind, e.source_id, e.run_id, e.job_id, e.attempt,
      CASE WHEN e.job_id IS NOT NULL AND e.kind <> 'job.started'
        THEN (SELECT stage FROM penstock.job WHERE job.id = e.job_id) END,
      CASE WHEN e.job_id IS NOT NULL AND e.kind <> 'job.started'
        THEN (SELECT o.at FROM penstock.open_attempt AS o WHERE o.job_id = e.job_id AND o.attempt = e.attempt) END,
      CASE WHEN e.kind = 'run.queued' THEN (SELECT key FROM penstock.run WHERE run.id = e.run_id) END,
      CASE WHEN e.kind IN ('job.quarantined', 'schedule.missed', 'sla.breached', 'schema.stale') THEN e.data END,
      CASE WHEN e.kind IN ('job.quarantined', 'schedule.missed', 'sla.breached', 'schema.stale') THEN e.detail ELSE '' END,
      e.actor, CASE WHEN e.job_id IS NULL THEN (SELECT kind FROM penstock.run WHERE run.id = e.run_id) END,
      CASE
        WHEN e.kind = 'job.started' AND e.attempt > 1
          THEN (SELECT o.at FROM penstock.released_attempt AS o WHERE o.job_id = e.job_id AND o.attempt = e.attempt - 1)
        WHEN e.kind = 'job.released'
          THEN (SELECT i.since FROM penstock.interruption AS i WHERE i.job_id = e.job_id AND i.attempt = e.attempt)
      END,
      CASE WHEN e.kind = 'run.reopened' THEN (
        SELECT o.label FROM penstock.run_rollup AS o WHERE o.run_id = e.run_id AND o.measure = 'ended' AND o.value > 0
      ) END,
      CASE WHEN e.kind = 'run.queued' THEN (
        -- Cancelled runs that this one starts over: it continues them, or is a backfill of the same range.
        SELECT coalesce(json_agg(c.id), '[]') FROM penstock.run AS n
        CROSS JOIN LATERAL (
          SELECT r.id, r.options FROM penstock.run AS r
          WHERE r.id = (n.options::json ->> 'continues')::bigint
            AND r.kind = n.kind AND r.state = 'cancelled' AND r.started_at IS NOT NULL
          UNION
          SELECT b.id, b.options FROM (
            SELECT id, options, state, started_at, kind FROM penstock.run
            WHERE n.kind = 'backfill' AND source_id = n.source_id AND id < n.id ORDER BY id DESC LIMIT 200
          ) AS b
          WHERE b.kind = n.kind AND b.state = 'cancelled' AND b.started_at IS NOT NULL
            AND (n.options::json ->> 'start_at')::double precision < (b.options::json ->> 'end_at')::double precision
            AND (n.options::json ->> 'end_at')::double precision > (b.options::json ->> 'start_at')::double precision
        ) AS c
        WHERE n.id = e.run_id
          AND NOT EXISTS (SELECT 1 FROM penstock.run_rollup AS o WHERE o.run_id = c.id AND o.measure = 'restarted')
      ) END
    ) ORDER BY e.id), '[]')
    FROM e WHERE %(kinds)s::jsonb ? e.kind
  )
)::text;

-- name: measured_to_fold
SELECT coalesce(json_agg(json_build_array(
  m.id, m.at, m.run_id, (SELECT source_id FROM penstock.run WHERE run.id = m.run_id), m.amounts::json
) ORDER BY m.id), '[]')::text
FROM (SELECT id, at, run_id, amounts FROM penstock.measured ORDER BY id LIMIT %(limit)s) AS m;

-- name: drop_measured
DELETE FROM penstock.measured WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: add_rollups
INSERT INTO penstock.rollup (source_id, measure, step, at, label, value)
SELECT (v ->> 0)::bigint, v ->> 1, (v ->> 2)::integer, (v ->> 3)::double precision, v ->> 4, (v ->> 5)::double precision
FROM jsonb_array_elements(%(sums)s::jsonb) AS v
ON CONFLICT (source_id, measure, step, at, label) DO UPDATE SET value = rollup.value + excluded.value;

-- name: set_rollups
INSERT INTO penstock.rollup (source_id, measure, step, at, label, value)
SELECT (v ->> 0)::bigint, v ->> 1, (v ->> 2)::integer, (v ->> 3)::double precision, v ->> 4, (v ->> 5)::double precision
FROM jsonb_array_elements(%(values)s::jsonb) AS v
ON CONFLICT (source_id, measure, step, at, label) DO UPDATE SET value = excluded.value;

-- name: add_run_rollups
INSERT INTO penstock.run_rollup (run_id, measure, label, value)
SELECT (v ->> 0)::bigint, v ->> 1, v ->> 2, (v ->> 3)::double precision
FROM jsonb_array_elements(%(sums)s::jsonb) AS v
ON CONFLICT (run_id, measure, label) DO UPDATE SET value = run_rollup.value + excluded.value;

-- name: open_attempts
INSERT INTO penstock.open_attempt (job_id, attempt, at)
SELECT (v ->> 0)::bigint, (v ->> 1)::bigint, (v ->> 2)::double precision FROM jsonb_array_elements(%(attempts)s::jsonb) AS v
ON CONFLICT DO NOTHING;

-- name: close_attempts
DELETE FROM penstock.open_attempt WHERE (job_id, attempt) IN (
  SELECT (v ->> 0)::bigint, (v ->> 1)::bigint FROM jsonb_array_elements(%(attempts)s::jsonb) AS v
);

-- name: add_releases
INSERT INTO penstock.released_attempt (job_id, attempt, at)
SELECT (v ->> 0)::bigint, (v ->> 1)::bigint, (v ->> 2)::double precision FROM jsonb_array_elements(%(attempts)s::jsonb) AS v
ON CONFLICT DO NOTHING;

-- name: drop_releases
DELETE FROM penstock.released_attempt WHERE (job_id, attempt) IN (
  SELECT (v ->> 0)::bigint, (v ->> 1)::bigint FROM jsonb_array_elements(%(attempts)s::jsonb) AS v
);

-- name: drop_rollups_of_runs
DELETE FROM penstock.run_rollup WHERE run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: drop_old_rollups
-- Of some sources, the hours and days that are too old: each measure is one range of the key.
DELETE FROM penstock.rollup
WHERE source_id = ANY (translate(%(source_ids)s, '[]', '{}')::bigint[])
  AND measure = ANY (ARRAY(SELECT jsonb_array_elements_text(%(measures)s::jsonb)))
  AND step = %(step)s AND at < %(before)s;

-- name: source_ids_after
SELECT coalesce(json_agg(id ORDER BY id), '[]')::text
FROM (SELECT id FROM penstock.source WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s) AS s;

-- name: rollup_series
SELECT coalesce(json_agg(json_build_array(at, value) ORDER BY at), '[]')::text FROM (
  SELECT at, sum(value) AS value FROM penstock.rollup
  WHERE source_id = %(source_id)s AND measure = %(measure)s AND step = %(step)s AND at >= %(since)s AND at < %(until)s
    AND (%(labels)s::text IS NULL OR %(labels)s::jsonb ? label)
  GROUP BY at
) AS r;

-- name: rollup_by_label
SELECT coalesce(json_object_agg(label, value ORDER BY label), '{}')::text FROM (
  SELECT label, sum(value) AS value FROM penstock.rollup
  WHERE source_id = %(source_id)s AND measure = %(measure)s AND step = %(step)s AND at >= %(since)s AND at < %(until)s
  GROUP BY label
) AS r;

-- name: rollup_by_source
-- Of the sources that have any.
SELECT coalesce(json_object_agg(key, value ORDER BY key), '{}')::text FROM (
  SELECT s.key, r.value FROM penstock.source AS s CROSS JOIN LATERAL (
    SELECT sum(value) AS value FROM penstock.rollup
    WHERE source_id = s.id AND measure = %(measure)s AND step = %(step)s AND at >= %(since)s AND at < %(until)s
      AND (%(labels)s::text IS NULL OR %(labels)s::jsonb ? label)
    OFFSET 0
  ) AS r
  WHERE r.value IS NOT NULL
) AS found;

-- name: rollup_totals
-- What these measures come to since the beginning: [source, measure, label, value]; of all sources together, the source is null.
SELECT coalesce(json_agg(json_build_array(s.key, r.measure, r.label, r.value)), '[]')::text
FROM (SELECT id, key FROM penstock.source UNION ALL SELECT 0, NULL) AS s
CROSS JOIN LATERAL (
  SELECT measure, label, value FROM penstock.rollup
  WHERE source_id = s.id AND measure = ANY (ARRAY(SELECT jsonb_array_elements_text(%(measures)s::jsonb)))
    AND step = 0 AND at = 0
  OFFSET 0
) AS r;

-- name: rollups_of_runs
SELECT coalesce(json_agg(json_build_array(r.run_id, r.measure, r.label, r.value)), '[]')::text
FROM penstock.run_rollup AS r WHERE r.run_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: open_jobs_by_source
-- Jobs of active runs that have not ended: it does not grow with what has.
SELECT coalesce(json_agg(json_build_array(source_id, jobs)), '[]')::text FROM (
  SELECT r.source_id, sum(g.jobs)::bigint AS jobs
  FROM (SELECT id, source_id FROM penstock.run WHERE state IN ('queued', 'running', 'paused') OFFSET 0) AS r
  CROSS JOIN LATERAL (
    SELECT queued + running + waiting + held AS jobs FROM penstock.stage_count WHERE run_id = r.id OFFSET 0
  ) AS g
  GROUP BY r.source_id
) AS found;

-- name: present_backlogs
SELECT coalesce(json_agg(r.source_id), '[]')::text
FROM (SELECT id FROM penstock.source UNION ALL SELECT 0) AS s
CROSS JOIN LATERAL (
  SELECT source_id, value FROM penstock.rollup
  WHERE source_id = s.id AND measure = 'backlog' AND step = 0 AND at = 0 AND label = '' OFFSET 0
) AS r
WHERE r.value <> 0;
