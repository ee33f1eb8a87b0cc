-- name: kpi_runs
-- Probes save nothing and replays go over what is there: neither says how well work is done.
SELECT json_object(
  'completed', coalesce(sum(state = 'completed'), 0), 'partial', coalesce(sum(state = 'partial'), 0),
  'failed', coalesce(sum(state = 'failed'), 0),
  'restarted', (
    SELECT count(*) FROM run AS c
    WHERE c.finished_at >= :since AND c.state = 'cancelled' AND c.started_at IS NOT NULL
      AND c.kind IN ('full', 'incremental', 'backfill', 'stream') AND (:source_id IS NULL OR c.source_id = :source_id)
      AND EXISTS (
        SELECT 1 FROM run AS n WHERE n.source_id = c.source_id AND n.kind = c.kind AND n.id > c.id
          AND (n.options ->> 'continues' = c.id OR (c.kind = 'backfill'
            AND n.options ->> 'start_at' < c.options ->> 'end_at' AND n.options ->> 'end_at' > c.options ->> 'start_at')))),
  'saves', coalesce(sum(inserted + updated + unchanged), 0), 'duplicates', coalesce(sum(unchanged), 0),
  'first_at', (SELECT f.created_at FROM run AS f WHERE :source_id IS NULL OR f.source_id = :source_id ORDER BY f.id LIMIT 1))
FROM run
WHERE finished_at >= :since AND kind IN ('full', 'incremental', 'backfill', 'stream')
  AND (:source_id IS NULL OR source_id = :source_id);

-- name: journal_floor
SELECT coalesce((SELECT max(id) FROM event), 0) - :lines;

-- name: kpi_interruptions
-- From a job's being taken back, or the last sign of life of a worker that died unseen, to its next start; one that
-- never starts again has not recovered.
SELECT json_object('recovered', count(*), 'mean_s', avg(s.at - coalesce(i.since, r.at)))
FROM (
  SELECT job_id, attempt, at FROM event
  WHERE id > :floor AND at >= :since AND kind = 'job.released' AND (:source_id IS NULL OR source_id = :source_id)
) AS r
JOIN (
  SELECT job_id, attempt, at FROM event
  WHERE id > :floor AND at >= :since AND kind = 'job.started' AND (:source_id IS NULL OR source_id = :source_id)
) AS s ON s.job_id = r.job_id AND s.attempt = r.attempt + 1
LEFT JOIN interruption AS i ON i.job_id = r.job_id AND i.attempt = r.attempt;

-- name: note_interruptions
INSERT INTO interruption (job_id, attempt, since)
SELECT value ->> 0, value ->> 1, :since FROM jsonb_each(:jobs) WHERE true
ON CONFLICT (job_id, attempt) DO NOTHING;

-- name: drop_interruptions
DELETE FROM interruption WHERE (job_id, attempt) IN (
  SELECT job_id, attempt FROM interruption WHERE since < :before ORDER BY since LIMIT :limit
);

-- name: kpi_incidents
-- What came soon after another of the same source belongs to it.
SELECT count(*) FROM (
  SELECT at - lag(at) OVER (PARTITION BY source_id ORDER BY id) AS gap FROM event
  WHERE id > :floor AND at >= :since AND kind = 'job.throttled' AND (:source_id IS NULL OR source_id = :source_id)
) WHERE gap IS NULL OR gap > :gap_s;

-- name: kpi_acts
SELECT json_group_array(json_array(at, kind, source_id, run_id, run_kind, actor)) FROM (
  SELECT * FROM (
    SELECT e.id, e.at, e.kind, e.source_id, e.run_id, r.kind AS run_kind, e.actor
    FROM event AS e LEFT JOIN run AS r ON r.id = e.run_id
    WHERE e.id > :floor AND e.at >= :since AND e.kind IN (SELECT value FROM jsonb_each(:kinds))
      AND (:source_id IS NULL OR e.source_id = :source_id)
    ORDER BY e.id DESC LIMIT :limit
  ) ORDER BY id
);
