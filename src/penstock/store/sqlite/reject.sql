-- name: add_rejects
-- The page is the one that the job itself fetched last; else the one that its item came from.
INSERT INTO reject (source_id, run_id, job_id, stage, key, code, reason, score, item, snapshot_id, at)
SELECT j.source_id, j.run_id, j.id, j.stage, j.key, r.value ->> 1, r.value ->> 2, r.value ->> 3, coalesce(i.item, 'null'),
  coalesce((SELECT max(s.id) FROM snapshot AS s WHERE s.job_id = j.id), i.snapshot_id), :now
FROM jsonb_each(:rejects) AS r
CROSS JOIN job AS j NOT INDEXED ON j.id = r.value ->> 0
LEFT JOIN job_item AS i ON i.job_id = j.id
ORDER BY r.key;

-- name: rejects
-- The newest first.
SELECT json_group_array(json_object(
  'id', r.id, 'source', r.source, 'run_id', r.run_id, 'job_id', r.job_id, 'stage', r.stage, 'key', r.key,
  'code', r.code, 'reason', r.reason, 'score', r.score, 'snapshot_id', r.snapshot_id, 'at', r.at,
  'redriven_run_id', r.redriven_run_id))
FROM (
  SELECT r.*, s.key AS source FROM reject AS r CROSS JOIN source AS s ON s.id = r.source_id
  WHERE r.id < :before_id AND (:source_id IS NULL OR r.source_id = :source_id) AND (:run_id IS NULL OR r.run_id = :run_id)
    AND (:code IS NULL OR r.code = :code) AND (:since IS NULL OR r.at >= :since)
    AND (:ids IS NULL OR r.id IN (SELECT value FROM jsonb_each(:ids)))
    AND (NOT :open_only OR r.redriven_run_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM run AS u LEFT JOIN replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND u.options ->> 'is_staged' AND coalesce(p.state, 'staged') <> 'committed'
    ))
  ORDER BY r.id DESC LIMIT :limit
) AS r;

-- name: count_rejects
SELECT count(*) FROM reject AS r
WHERE (:source_id IS NULL OR r.source_id = :source_id) AND (:run_id IS NULL OR r.run_id = :run_id)
  AND (:code IS NULL OR r.code = :code) AND (:since IS NULL OR r.at >= :since)
  AND (:ids IS NULL OR r.id IN (SELECT value FROM jsonb_each(:ids)))
  AND (NOT :open_only OR r.redriven_run_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM run AS u LEFT JOIN replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND u.options ->> 'is_staged' AND coalesce(p.state, 'staged') <> 'committed'
    ));

-- name: stages_of_rejects
SELECT json_group_array(DISTINCT r.stage) FROM reject AS r
WHERE (:source_id IS NULL OR r.source_id = :source_id) AND (:run_id IS NULL OR r.run_id = :run_id)
  AND (:code IS NULL OR r.code = :code) AND (:since IS NULL OR r.at >= :since)
  AND (:ids IS NULL OR r.id IN (SELECT value FROM jsonb_each(:ids)))
  AND (NOT :open_only OR r.redriven_run_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM run AS u LEFT JOIN replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND u.options ->> 'is_staged' AND coalesce(p.state, 'staged') <> 'committed'
    ));

-- name: rejects_by_code
SELECT json_group_object(code, n) FROM (
  SELECT code, count(*) AS n FROM reject WHERE run_id = :run_id GROUP BY code ORDER BY n DESC, code LIMIT 50
);

-- name: rejects_to_redrive
-- Those that no run has taken up, the oldest first. Not what a replay has rejected that nobody has committed.
SELECT json_group_array(json_array(r.id, r.run_id, r.stage, r.key, r.item, r.snapshot_id)) FROM (
  SELECT r.* FROM reject AS r
  WHERE r.source_id = :source_id AND (:run_id IS NULL OR r.run_id = :run_id)
    AND (:code IS NULL OR r.code = :code) AND (:since IS NULL OR r.at >= :since)
    AND (:ids IS NULL OR r.id IN (SELECT value FROM jsonb_each(:ids)))
    AND r.stage IN (SELECT value FROM jsonb_each(:stages))
    AND r.redriven_run_id IS NULL
    AND NOT EXISTS (
      SELECT 1 FROM run AS u LEFT JOIN replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND u.options ->> 'is_staged' AND coalesce(p.state, 'staged') <> 'committed'
    )
  ORDER BY r.id LIMIT :limit
) AS r;

-- name: mark_redriven
UPDATE reject SET redriven_run_id = :run_id WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND redriven_run_id IS NULL;

-- name: drop_rejects
-- In the order of time, as the journal is.
DELETE FROM reject WHERE id IN (
  SELECT id FROM (SELECT id, at FROM reject ORDER BY id LIMIT :limit) WHERE at < :before
);
