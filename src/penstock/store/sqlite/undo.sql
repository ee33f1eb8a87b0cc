-- name: last_written_by
-- Records whose newest version is by a run; and those that an undo of another run has brought back since, with the
-- versions they had, so that it can be found out whose version was brought back.
SELECT json_group_array(json_array(r.id, r.version, r.run_id,
  json(CASE WHEN r.run_id = :run_id THEN '[]' ELSE (
    SELECT json_group_array(json_array(h.version, h.run_id))
    FROM (SELECT version, run_id FROM record_version WHERE record_id = r.id ORDER BY version) AS h) END)))
FROM (
  SELECT id, version, run_id FROM record
  WHERE id > :after_id AND (run_id = :run_id OR (run_id IN (SELECT value FROM jsonb_each(:undos))
    AND EXISTS (SELECT 1 FROM record_version AS v WHERE v.record_id = record.id AND v.run_id = :run_id)))
  ORDER BY id LIMIT :limit
) AS r;

-- name: undoable
-- Records as a run has left them, by id, each beside the version before that run, where that is kept. `left` has for each
-- record the version by which the run left it: the newest, or one that was brought back.
SELECT json_group_array(json_array(r.id, r.collection, r.key, r.version, r.data, r.score, r.source_id, r.snapshot_id, r.is_removed,
  coalesce((SELECT min(version) FROM record_version AS own
    WHERE own.record_id = r.id AND own.run_id = :run_id AND own.version > coalesce(v.version, 0)), r.version),
  v.version, v.data, v.score, v.source_id, v.snapshot_id, v.pipeline_version, v.is_removed))
FROM (SELECT value ->> 0 AS id, value ->> 1 AS version FROM jsonb_each(:left)) AS l
CROSS JOIN record AS r ON r.id = l.id
LEFT JOIN record_version AS v ON v.record_id = r.id AND v.version = (
  SELECT max(version) FROM record_version AS other
  WHERE other.record_id = r.id AND other.run_id <> :run_id AND other.version < l.version
);

-- name: changed_since
-- Records that a run has changed and that another has changed after it; not by undoing it.
WITH later AS MATERIALIZED (
  SELECT DISTINCT r.collection, r.key, r.run_id FROM record_version AS v CROSS JOIN record AS r ON r.id = v.record_id
  WHERE v.run_id = :run_id AND r.run_id <> :run_id AND r.run_id NOT IN (SELECT value FROM jsonb_each(:undos))
    AND r.id NOT IN (SELECT value FROM jsonb_each(:brought_back))
)
SELECT json_object('count', (SELECT count(*) FROM later), 'first', json((
  SELECT json_group_array(json_array(l.collection, l.key, l.run_id))
  FROM (SELECT collection, key, run_id FROM later ORDER BY collection, key LIMIT :limit) AS l)));

-- name: undos_of
-- The undos of a run, the newest first, and how far each has come.
SELECT json_group_array(json_array(u.id, u.state)) FROM (
  SELECT run.id, replay.state FROM run INDEXED BY run_of CROSS JOIN replay ON replay.run_id = run.id
  WHERE run.of_run_id = :run_id AND run.options ->> 'is_undo' ORDER BY run.id DESC
) AS u;

-- name: undos_since
-- The undos of runs that came after a run, and what each of them has undone.
SELECT json_group_array(json_array(id, of_run_id)) FROM run INDEXED BY run_of
WHERE of_run_id > :run_id AND options ->> 'is_undo';

-- name: know_pages_again
-- Pages that were forgotten because they were gone, from the snapshots of records that an undo has brought back. They
-- have no version: what is there is read again, and what is not is found to be gone again.
INSERT INTO page (source_id, url, at, done_hash, done_snapshot_id, done_version, done_run_id, done_at)
SELECT p.value ->> 0, s.url, :now, s.hash, s.id, '', :run_id, s.fetched_at
FROM jsonb_each(:pages) AS p CROSS JOIN snapshot AS s ON s.id = p.value ->> 1 WHERE true
ON CONFLICT (source_id, url) DO NOTHING;
