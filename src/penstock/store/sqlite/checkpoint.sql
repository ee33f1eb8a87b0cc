-- name: run_kinds
SELECT json_group_object(id, kind) FROM run WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: lock_checkpoints
-- Nothing to lock here: a transaction that writes has the file to itself.
-- With the run that was refused last, if nothing happened since.
SELECT json_group_array(json_array(c.source_id, c.partition, c.cursor, c.last_offset, c.moves,
  (SELECT m.run_id FROM checkpoint_move AS m
    WHERE m.source_id = c.source_id AND m.partition = c.partition AND m.number = c.moves AND m.act = 'refused')))
FROM jsonb_each(:keys) AS k
CROSS JOIN checkpoint AS c ON c.source_id = k.value ->> 0 AND c.partition = k.value ->> 1;

-- name: add_checkpoints
-- Empty, to be locked and moved next.
INSERT INTO checkpoint (source_id, partition, cursor, run_id, at)
SELECT value ->> 0, value ->> 1, 'null', 0, :now FROM jsonb_each(:keys) WHERE true
ON CONFLICT (source_id, partition) DO NOTHING;

-- name: move_checkpoints
UPDATE checkpoint
SET cursor = m.value ->> 2, last_offset = m.value ->> 3, run_id = m.value ->> 4, moves = m.value ->> 5, at = :now
FROM jsonb_each(:marks) AS m
WHERE checkpoint.source_id = m.value ->> 0 AND checkpoint.partition = m.value ->> 1;

-- name: count_checkpoint_moves
UPDATE checkpoint SET moves = m.value ->> 2
FROM jsonb_each(:counts) AS m
WHERE checkpoint.source_id = m.value ->> 0 AND checkpoint.partition = m.value ->> 1;

-- name: add_checkpoint_moves
INSERT INTO checkpoint_move (source_id, partition, number, cursor, last_offset, run_id, actor, act, reason, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, :now
FROM jsonb_each(:moves);

-- name: drop_checkpoint_moves
-- Those up to a number, of each of these checkpoints.
DELETE FROM checkpoint_move WHERE (source_id, partition, number) IN (
  SELECT m.source_id, m.partition, m.number FROM jsonb_each(:upto) AS u
  CROSS JOIN checkpoint_move AS m
    ON m.source_id = u.value ->> 0 AND m.partition = u.value ->> 1 AND m.number <= u.value ->> 2
);

-- name: drop_old_checkpoint_moves
DELETE FROM checkpoint_move WHERE (source_id, partition, number) IN (
  SELECT source_id, partition, number FROM checkpoint_move WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: set_run_cursors
INSERT INTO run_cursor (run_id, partition, cursor, last_offset, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now FROM jsonb_each(:cursors) WHERE true
ON CONFLICT (run_id, partition) DO UPDATE
SET cursor = excluded.cursor, last_offset = excluded.last_offset, at = excluded.at;

-- name: run_cursors
SELECT json_group_object(partition, json(cursor)) FROM run_cursor WHERE run_id = :run_id;

-- name: newest_cursors
-- A run that does not move its source's checkpoints keeps its cursors for itself.
SELECT json_group_object(id, cursor) FROM (
  SELECT r.id, coalesce(
    (SELECT c.cursor FROM run_cursor AS c WHERE c.run_id = r.id ORDER BY c.at DESC, c.partition LIMIT 1),
    (SELECT c.cursor FROM checkpoint AS c WHERE c.source_id = r.source_id AND c.run_id = r.id ORDER BY c.at DESC, c.partition LIMIT 1)
  ) AS cursor
  FROM json_each(:ids) AS wanted CROSS JOIN run AS r ON r.id = wanted.value
) WHERE cursor IS NOT NULL;

-- name: drop_run_cursors
-- A stream's stay: they say until when it was alive.
DELETE FROM run_cursor WHERE run_id IN (
  SELECT DISTINCT c.run_id FROM run_cursor AS c JOIN run AS r ON r.id = c.run_id
  WHERE r.finished_at < :before AND r.kind IN ('backfill', 'replay', 'probe') LIMIT :limit
);

-- name: checkpoint_rows
SELECT json_group_array(json_object(
  'partition', partition, 'cursor', json(cursor), 'last_offset', json(last_offset), 'run_id', run_id, 'at', at, 'moves', moves))
FROM (SELECT * FROM checkpoint WHERE source_id = :source_id ORDER BY partition);

-- name: checkpoint_history
SELECT json_group_array(json_object(
  'number', number, 'cursor', json(cursor), 'last_offset', json(last_offset), 'run_id', run_id, 'at', at,
  'actor', actor, 'act', act, 'reason', reason))
FROM (
  SELECT * FROM checkpoint_move
  WHERE source_id = :source_id AND partition = :partition AND number < :before
  ORDER BY number DESC LIMIT :limit
);

-- name: windows_since
-- The windows of a partition that live runs have ingested: all of them, and since then.
SELECT count(*), coalesce(sum(c.at > :since), 0) FROM coverage AS c JOIN run AS r ON r.id = c.run_id
WHERE c.source_id = :source_id AND c.partition = :partition AND r.kind NOT IN ('backfill', 'replay', 'probe');

-- name: pages_since
SELECT count(*) FROM run AS r CROSS JOIN job AS j ON j.run_id = r.id
WHERE r.source_id = :source_id AND r.kind NOT IN ('backfill', 'replay', 'probe')
  AND (r.finished_at IS NULL OR r.finished_at > :since)
  AND j.unit = 'page' AND j.state IN ('succeeded', 'skipped') AND j.at > :since;
