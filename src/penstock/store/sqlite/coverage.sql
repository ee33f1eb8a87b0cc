-- name: cover
-- The run that was first stays with it: one that comes again finds the same, and undoing it takes nothing away.
INSERT INTO coverage (source_id, partition, start_at, end_at, run_id, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now FROM jsonb_each(:covered) WHERE true
ON CONFLICT (source_id, partition, start_at, end_at) DO UPDATE SET at = excluded.at;

-- name: covered
-- What is ingested of a stretch of time, partition by partition, in order.
SELECT json_group_array(json_array(c.partition, c.start_at, c.end_at, c.run_id)) FROM (
  SELECT partition, start_at, end_at, run_id FROM coverage
  WHERE source_id = :source_id AND partition IN (SELECT value FROM jsonb_each(:partitions))
    AND start_at < :end_at AND end_at > :start_at
  ORDER BY partition, start_at
) AS c;

-- name: backlog
-- How many jobs of a run are still to be done.
SELECT coalesce(sum(queued + running + waiting + held), 0), coalesce(sum(succeeded + skipped + quarantined + cancelled), 0)
FROM run_stage WHERE run_id = :run_id AND stage <> :planner;

-- name: outgrow
-- A window that is fetched again and again until it has ended has one row, not one for each time.
DELETE FROM coverage WHERE (source_id, partition, start_at, end_at) IN (
  SELECT c.source_id, c.partition, c.start_at, c.end_at FROM jsonb_each(:covered) AS g
  CROSS JOIN coverage AS c ON c.source_id = g.value ->> 0 AND c.partition = g.value ->> 1
    AND c.start_at = g.value ->> 2 AND c.end_at < g.value ->> 3
);
