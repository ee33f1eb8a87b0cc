-- name: undoable
-- Records as a run has left them, by id, each beside the version before that run, where that is kept.
SELECT json_group_array(json_array(r.id, r.collection, r.key, r.version, r.data, r.score, r.source_id, r.snapshot_id, r.is_removed,
  coalesce((SELECT min(version) FROM record_version AS own
    WHERE own.record_id = r.id AND own.run_id = :run_id AND own.version > coalesce(v.version, 0)), r.version),
  v.version, v.data, v.score, v.source_id, v.snapshot_id, v.pipeline_version, v.is_removed))
FROM (
  SELECT id, collection, key, version, data, score, source_id, snapshot_id, is_removed FROM record
  WHERE id > :after_id AND run_id = :run_id ORDER BY id LIMIT :limit
) AS r
LEFT JOIN record_version AS v ON v.record_id = r.id AND v.version = (
  SELECT max(version) FROM record_version AS other WHERE other.record_id = r.id AND other.run_id <> :run_id
);

-- name: changed_since
-- Records that a run has changed and that another has changed after it; not by undoing it.
WITH later AS MATERIALIZED (
  SELECT DISTINCT r.collection, r.key, r.run_id FROM record_version AS v CROSS JOIN record AS r ON r.id = v.record_id
  WHERE v.run_id = :run_id AND r.run_id <> :run_id AND r.run_id NOT IN (SELECT value FROM jsonb_each(:undos))
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
