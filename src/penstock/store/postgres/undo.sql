-- name: last_written_by
-- Records whose newest version is by a run; and those that an undo of another run has brought back since, with the
-- versions they had, so that it can be found out whose version was brought back.
SELECT coalesce(json_agg(json_build_array(r.id, r.version, r.run_id, CASE WHEN r.run_id = %(run_id)s THEN '[]' ELSE (
    SELECT coalesce(json_agg(json_build_array(h.version, h.run_id) ORDER BY h.version), '[]')
    FROM penstock.record_version AS h WHERE h.record_id = r.id) END) ORDER BY r.id), '[]')::text
FROM (
  SELECT id, version, run_id FROM penstock.record
  WHERE id > %(after_id)s AND (run_id = %(run_id)s OR (run_id = ANY (translate(%(undos)s, '[]', '{}')::bigint[])
    AND EXISTS (SELECT 1 FROM penstock.record_version AS v WHERE v.record_id = record.id AND v.run_id = %(run_id)s OFFSET 0)))
  ORDER BY id LIMIT %(limit)s
) AS r;

-- name: undoable
-- Records as a run has left them, by id, each beside the version before that run, where that is kept. `left` has for each
-- record the version by which the run left it: the newest, or one that was brought back.
SELECT coalesce(json_agg(json_build_array(r.id, r.collection, r.key, r.version, r.data, r.score, r.source_id, r.snapshot_id, r.is_removed,
  coalesce((SELECT min(own.version) FROM penstock.record_version AS own
    WHERE own.record_id = r.id AND own.run_id = %(run_id)s AND own.version > coalesce(v.version, 0)), r.version),
  v.version, v.data, v.score, v.source_id, v.snapshot_id, v.pipeline_version, v.is_removed) ORDER BY r.id), '[]')::text
FROM (SELECT (value ->> 0)::bigint AS id, (value ->> 1)::bigint AS version FROM json_array_elements(%(left)s::json)) AS l
CROSS JOIN LATERAL (
  SELECT id, collection, key, version, data, score, source_id, snapshot_id, is_removed
  FROM penstock.record WHERE id = l.id OFFSET 0
) AS r
LEFT JOIN LATERAL (
  SELECT h.version, h.data, h.score, h.source_id, h.snapshot_id, h.pipeline_version, h.is_removed
  FROM penstock.record_version AS h
  WHERE h.record_id = r.id AND h.run_id <> %(run_id)s AND h.version < l.version ORDER BY h.version DESC LIMIT 1
) AS v ON true;

-- name: changed_since
-- Records that a run has changed and that another has changed after it; not by undoing it.
WITH later AS MATERIALIZED (
  SELECT DISTINCT r.collection, r.key, r.run_id
  FROM penstock.record_version AS v JOIN penstock.record AS r ON r.id = v.record_id
  WHERE v.run_id = %(run_id)s AND r.run_id <> %(run_id)s AND r.run_id <> ALL (translate(%(undos)s, '[]', '{}')::bigint[])
    AND r.id <> ALL (translate(%(brought_back)s, '[]', '{}')::bigint[])
)
SELECT json_build_object('count', (SELECT count(*) FROM later), 'first', (
  SELECT coalesce(json_agg(json_build_array(l.collection, l.key, l.run_id)), '[]')
  FROM (SELECT collection, key, run_id FROM later ORDER BY collection, key LIMIT %(limit)s) AS l))::text;

-- name: undos_of
-- The undos of a run, the newest first, and how far each has come.
SELECT coalesce(json_agg(json_build_array(u.id, u.state) ORDER BY u.id DESC), '[]')::text FROM (
  SELECT run.id, replay.state FROM penstock.run AS run JOIN penstock.replay AS replay ON replay.run_id = run.id
  WHERE run.of_run_id = %(run_id)s AND (run.options::json ->> 'is_undo')::boolean
) AS u;

-- name: undos_since
-- The undos of runs that came after a run, and what each of them has undone.
SELECT coalesce(json_agg(json_build_array(id, of_run_id)), '[]')::text FROM penstock.run
WHERE of_run_id > %(run_id)s AND (options::json ->> 'is_undo')::boolean;

-- name: know_pages_again
-- Pages that were forgotten because they were gone, from the snapshots of records that an undo has brought back. They
-- have no version: what is there is read again, and what is not is found to be gone again.
INSERT INTO penstock.page (source_id, url, at, done_hash, done_snapshot_id, done_version, done_run_id, done_at)
SELECT (p.value ->> 0)::bigint, s.url, %(now)s, s.hash, s.id, '', %(run_id)s, s.fetched_at
FROM jsonb_array_elements(%(pages)s::jsonb) AS p (value)
CROSS JOIN LATERAL (
  SELECT id, url, hash, fetched_at FROM penstock.snapshot WHERE id = (p.value ->> 1)::bigint OFFSET 0
) AS s
ON CONFLICT (source_id, url) DO NOTHING;
