-- name: run_kinds
SELECT coalesce(json_object_agg(id, kind), '{}')::text FROM penstock.run
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: lock_checkpoints
-- In the order of their keys, so that two workers never wait for each other in a circle.
-- With the run that was refused last, if nothing happened since.
SELECT coalesce(json_agg(json_build_array(c.source_id, c.partition, c.cursor, c.last_offset, c.moves,
  (SELECT m.run_id FROM penstock.checkpoint_move AS m
    WHERE m.source_id = c.source_id AND m.partition = c.partition AND m.number = c.moves AND m.act = 'refused'))), '[]')::text
FROM (
  SELECT source_id, partition, cursor, last_offset, moves FROM penstock.checkpoint
  WHERE (source_id, partition) IN (SELECT (k ->> 0)::bigint, k ->> 1 FROM jsonb_array_elements(%(keys)s::jsonb) AS k)
  ORDER BY source_id, partition FOR NO KEY UPDATE
) AS c;

-- name: add_checkpoints
-- Empty, to be locked and moved next: whoever comes second waits here, and then compares with what it finds.
INSERT INTO penstock.checkpoint (source_id, partition, cursor, run_id, at)
SELECT (k ->> 0)::bigint, k ->> 1, 'null', 0, %(now)s FROM jsonb_array_elements(%(keys)s::jsonb) AS k
ORDER BY (k ->> 0)::bigint, (k ->> 1) COLLATE "C"
ON CONFLICT (source_id, partition) DO NOTHING;

-- name: move_checkpoints
UPDATE penstock.checkpoint AS c
SET cursor = m ->> 2, last_offset = m ->> 3, run_id = (m ->> 4)::bigint, moves = (m ->> 5)::bigint, at = %(now)s
FROM jsonb_array_elements(%(marks)s::jsonb) AS m
WHERE c.source_id = (m ->> 0)::bigint AND c.partition = m ->> 1;

-- name: count_checkpoint_moves
UPDATE penstock.checkpoint AS c SET moves = (m ->> 2)::bigint
FROM jsonb_array_elements(%(counts)s::jsonb) AS m
WHERE c.source_id = (m ->> 0)::bigint AND c.partition = m ->> 1;

-- name: add_checkpoint_moves
INSERT INTO penstock.checkpoint_move (source_id, partition, number, cursor, last_offset, run_id, actor, act, reason, at)
SELECT (m ->> 0)::bigint, m ->> 1, (m ->> 2)::bigint, m ->> 3, m ->> 4, (m ->> 5)::bigint, m ->> 6, m ->> 7, m ->> 8, %(now)s
FROM jsonb_array_elements(%(moves)s::jsonb) AS m;

-- name: drop_checkpoint_moves
-- Those up to a number, of each of these checkpoints.
DELETE FROM penstock.checkpoint_move AS c
USING jsonb_array_elements(%(upto)s::jsonb) AS u
WHERE c.source_id = (u ->> 0)::bigint AND c.partition = u ->> 1 AND c.number <= (u ->> 2)::bigint;

-- name: drop_old_checkpoint_moves
DELETE FROM penstock.checkpoint_move WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM penstock.checkpoint_move WHERE at < %(before)s ORDER BY at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
));

-- name: set_run_cursors
INSERT INTO penstock.run_cursor (run_id, partition, cursor, last_offset, at)
SELECT (c ->> 0)::bigint, c ->> 1, c ->> 2, c ->> 3, %(now)s FROM jsonb_array_elements(%(cursors)s::jsonb) AS c
ORDER BY (c ->> 0)::bigint, (c ->> 1) COLLATE "C"
ON CONFLICT (run_id, partition) DO UPDATE
SET cursor = excluded.cursor, last_offset = excluded.last_offset, at = excluded.at;

-- name: run_cursors
SELECT coalesce(json_object_agg(partition, cursor::json), '{}')::text FROM penstock.run_cursor WHERE run_id = %(run_id)s;

-- name: newest_cursors
-- A run that does not move its source's checkpoints keeps its cursors for itself.
SELECT coalesce(json_object_agg(id, cursor), '{}')::text FROM (
  SELECT r.id, coalesce(
    (SELECT c.cursor FROM penstock.run_cursor AS c WHERE c.run_id = r.id ORDER BY c.at DESC, c.partition LIMIT 1),
    (SELECT c.cursor FROM penstock.checkpoint AS c WHERE c.source_id = r.source_id AND c.run_id = r.id ORDER BY c.at DESC, c.partition LIMIT 1)
  ) AS cursor
  FROM penstock.run AS r WHERE r.id IN (SELECT value::bigint FROM jsonb_array_elements_text(%(ids)s::jsonb))
) AS newest WHERE cursor IS NOT NULL;

-- name: drop_run_cursors
-- A stream's stay: they say until when it was alive.
DELETE FROM penstock.run_cursor WHERE run_id = ANY (ARRAY(
  SELECT DISTINCT c.run_id FROM penstock.run_cursor AS c JOIN penstock.run AS r ON r.id = c.run_id
  WHERE r.finished_at < %(before)s AND r.kind IN ('backfill', 'replay', 'probe') LIMIT %(limit)s
));

-- name: checkpoint_rows
SELECT coalesce(json_agg(json_build_object(
  'partition', partition, 'cursor', cursor::json, 'last_offset', last_offset::json, 'run_id', run_id, 'at', at, 'moves', moves)
  ORDER BY partition), '[]')::text
FROM penstock.checkpoint WHERE source_id = %(source_id)s;

-- name: checkpoint_history
SELECT coalesce(json_agg(json_build_object(
  'number', number, 'cursor', cursor::json, 'last_offset', last_offset::json, 'run_id', run_id, 'at', at,
  'actor', actor, 'act', act, 'reason', reason) ORDER BY number DESC), '[]')::text
FROM (
  SELECT number, cursor, last_offset, run_id, at, actor, act, reason
  FROM penstock.checkpoint_move WHERE source_id = %(source_id)s AND partition = %(partition)s AND number < %(before)s
  ORDER BY number DESC LIMIT %(limit)s
) AS newest;

-- name: windows_since
-- The windows of a partition that live runs have ingested: all of them, and since then.
SELECT count(*), count(*) FILTER (WHERE c.at > %(since)s)
FROM penstock.coverage AS c JOIN penstock.run AS r ON r.id = c.run_id
WHERE c.source_id = %(source_id)s AND c.partition = %(partition)s AND r.kind NOT IN ('backfill', 'replay', 'probe');

-- name: pages_since
SELECT coalesce(sum(j.n), 0)::bigint FROM penstock.run AS r
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (SELECT job_id FROM penstock.job_key WHERE run_id = r.id OFFSET 0) AS k
  CROSS JOIN LATERAL (SELECT unit, state, at FROM penstock.job WHERE id = k.job_id OFFSET 0) AS o
  WHERE o.unit = 'page' AND o.state IN ('succeeded', 'skipped') AND o.at > %(since)s OFFSET 0
) AS j
WHERE r.source_id = %(source_id)s AND r.kind NOT IN ('backfill', 'replay', 'probe')
  AND (r.finished_at IS NULL OR r.finished_at > %(since)s);
