-- name: kpi_runs
-- Probes save nothing and replays go over what is there: neither says how well work is done. With what is in tallies still.
WITH ended AS (
  SELECT id, state, inserted, updated, unchanged FROM penstock.run
  WHERE finished_at >= %(since)s AND kind IN ('full', 'incremental', 'backfill', 'stream')
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
), tallied AS (
  SELECT coalesce(sum(t.inserted + t.updated + t.unchanged), 0)::bigint AS saves, coalesce(sum(t.unchanged), 0)::bigint AS duplicates
  FROM penstock.tally AS t JOIN ended AS e ON e.id = t.run_id
)
SELECT json_build_object(
  'completed', count(*) FILTER (WHERE e.state = 'completed'), 'partial', count(*) FILTER (WHERE e.state = 'partial'),
  'failed', count(*) FILTER (WHERE e.state = 'failed'),
  'restarted', (
    SELECT count(*) FROM penstock.run AS c
    WHERE c.finished_at >= %(since)s AND c.state = 'cancelled' AND c.started_at IS NOT NULL
      AND c.kind IN ('full', 'incremental', 'backfill', 'stream') AND (%(source_id)s::bigint IS NULL OR c.source_id = %(source_id)s)
      AND EXISTS (
        SELECT 1 FROM penstock.run AS n WHERE n.source_id = c.source_id AND n.kind = c.kind AND n.id > c.id
          AND ((n.options::json ->> 'continues')::bigint = c.id OR (c.kind = 'backfill'
            AND (n.options::json ->> 'start_at')::double precision < (c.options::json ->> 'end_at')::double precision
            AND (n.options::json ->> 'end_at')::double precision > (c.options::json ->> 'start_at')::double precision)))),
  'saves', coalesce(sum(e.inserted + e.updated + e.unchanged), 0)::bigint + (SELECT saves FROM tallied),
  'duplicates', coalesce(sum(e.unchanged), 0)::bigint + (SELECT duplicates FROM tallied),
  'first_at', (SELECT f.created_at FROM penstock.run AS f
    WHERE %(source_id)s::bigint IS NULL OR f.source_id = %(source_id)s ORDER BY f.id LIMIT 1))::text
FROM ended AS e;

-- name: journal_floor
SELECT coalesce((SELECT max(id) FROM penstock.event), 0) - %(lines)s::bigint;

-- name: kpi_interruptions
-- From a job's being taken back, or the last sign of life of a worker that died unseen, to its next start; one that
-- never starts again has not recovered.
SELECT json_build_object('recovered', count(*), 'mean_s', avg(s.at - coalesce(i.since, r.at)))::text
FROM (
  SELECT job_id, attempt, at FROM penstock.event
  WHERE id > %(floor)s AND at >= %(since)s AND kind = 'job.released'
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
) AS r
JOIN (
  SELECT job_id, attempt, at FROM penstock.event
  WHERE id > %(floor)s AND at >= %(since)s AND kind = 'job.started'
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
) AS s ON s.job_id = r.job_id AND s.attempt = r.attempt + 1
LEFT JOIN penstock.interruption AS i ON i.job_id = r.job_id AND i.attempt = r.attempt;

-- name: note_interruptions
INSERT INTO penstock.interruption (job_id, attempt, since)
SELECT (j ->> 0)::bigint, (j ->> 1)::integer, %(since)s FROM jsonb_array_elements(%(jobs)s::jsonb) AS j
ORDER BY 1, 2
ON CONFLICT (job_id, attempt) DO NOTHING;

-- name: drop_interruptions
DELETE FROM penstock.interruption WHERE (job_id, attempt) IN (
  SELECT job_id, attempt FROM penstock.interruption WHERE since < %(before)s
  ORDER BY since LIMIT %(limit)s FOR UPDATE SKIP LOCKED
);

-- name: kpi_incidents
-- What came soon after another of the same source belongs to it.
SELECT count(*) FROM (
  SELECT at - lag(at) OVER (PARTITION BY source_id ORDER BY id) AS gap FROM penstock.event
  WHERE id > %(floor)s AND at >= %(since)s AND kind = 'job.throttled'
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
) AS t WHERE gap IS NULL OR gap > %(gap_s)s;

-- name: kpi_acts
SELECT coalesce(json_agg(json_build_array(a.at, a.kind, a.source_id, a.run_id, a.run_kind, a.actor) ORDER BY a.id), '[]')::text FROM (
  SELECT e.id, e.at, e.kind, e.source_id, e.run_id, r.kind AS run_kind, e.actor
  FROM penstock.event AS e LEFT JOIN penstock.run AS r ON r.id = e.run_id
  WHERE e.id > %(floor)s AND e.at >= %(since)s AND e.kind IN (SELECT jsonb_array_elements_text(%(kinds)s::jsonb))
    AND (%(source_id)s::bigint IS NULL OR e.source_id = %(source_id)s)
  ORDER BY e.id DESC LIMIT %(limit)s
) AS a;
