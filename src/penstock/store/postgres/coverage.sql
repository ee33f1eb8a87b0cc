-- name: cover
-- The run that was first stays with it: one that comes again finds the same, and undoing it takes nothing away.
-- In the order of their keys, so that two workers never wait for each other in a circle.
INSERT INTO penstock.coverage (source_id, partition, start_at, end_at, run_id, at)
SELECT (c ->> 0)::bigint, c ->> 1, (c ->> 2)::double precision, (c ->> 3)::double precision, (c ->> 4)::bigint, %(now)s
FROM jsonb_array_elements(%(covered)s::jsonb) AS c
ORDER BY (c ->> 0)::bigint, (c ->> 1) COLLATE "C", (c ->> 2)::double precision, (c ->> 3)::double precision
ON CONFLICT (source_id, partition, start_at, end_at) DO UPDATE SET at = excluded.at;

-- name: covered
-- What is ingested of a stretch of time, partition by partition, in order.
SELECT coalesce(json_agg(json_build_array(partition, start_at, end_at, run_id) ORDER BY partition, start_at), '[]')::text
FROM penstock.coverage
WHERE source_id = %(source_id)s
  AND partition = ANY (ARRAY(SELECT jsonb_array_elements_text(%(partitions)s::jsonb)))
  AND start_at < %(end_at)s AND end_at > %(start_at)s;

-- name: backlog
-- How many jobs of a run are still to be done.
SELECT coalesce(sum(queued + running + waiting + held), 0)::bigint, coalesce(sum(succeeded + skipped + quarantined + cancelled), 0)::bigint
FROM penstock.stage_count WHERE run_id = %(run_id)s AND stage <> %(planner)s;

-- name: outgrow
-- A window that is fetched again and again until it has ended has one row, not one for each time.
DELETE FROM penstock.coverage AS c USING jsonb_array_elements(%(covered)s::jsonb) AS g
WHERE c.source_id = (g ->> 0)::bigint AND c.partition = g ->> 1
  AND c.start_at = (g ->> 2)::double precision AND c.end_at < (g ->> 3)::double precision;
