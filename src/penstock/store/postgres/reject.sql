-- name: add_rejects
-- The page is the one that the job itself fetched last; else the one that its item came from.
INSERT INTO penstock.reject (source_id, run_id, job_id, stage, key, code, reason, score, item, snapshot_id, at)
SELECT j.source_id, j.run_id, j.id, j.stage, j.key, r.value ->> 1, r.value ->> 2, (r.value ->> 3)::double precision,
  coalesce(i.item, 'null'),
  coalesce((SELECT max(s.id) FROM penstock.snapshot AS s WHERE s.job_id = j.id), i.snapshot_id), %(now)s
FROM jsonb_array_elements(%(rejects)s::jsonb) WITH ORDINALITY AS r(value, n)
CROSS JOIN LATERAL (
  SELECT id, source_id, run_id, stage, key FROM penstock.job WHERE id = (r.value ->> 0)::bigint OFFSET 0
) AS j
LEFT JOIN LATERAL (SELECT item, snapshot_id FROM penstock.job_item WHERE job_id = j.id OFFSET 0) AS i ON true
ORDER BY r.n;

-- name: rejects
-- The newest first.
SELECT coalesce(json_agg(json_build_object(
  'id', r.id, 'source', r.source, 'run_id', r.run_id, 'job_id', r.job_id, 'stage', r.stage, 'key', r.key,
  'code', r.code, 'reason', r.reason, 'score', r.score, 'snapshot_id', r.snapshot_id, 'at', r.at,
  'redriven_run_id', r.redriven_run_id) ORDER BY r.id DESC), '[]')::text
FROM (
  SELECT r.id, r.run_id, r.job_id, r.stage, r.key, r.code, r.reason, r.score, r.snapshot_id, r.at, r.redriven_run_id, s.key AS source
  FROM penstock.reject AS r JOIN penstock.source AS s ON s.id = r.source_id
  WHERE r.id < %(before_id)s AND (%(source_id)s::bigint IS NULL OR r.source_id = %(source_id)s) AND (%(run_id)s::bigint IS NULL OR r.run_id = %(run_id)s)
    AND (%(code)s::text IS NULL OR r.code = %(code)s) AND (%(since)s::double precision IS NULL OR r.at >= %(since)s)
    AND (%(ids)s::text IS NULL OR r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]))
    AND (NOT %(open_only)s OR r.redriven_run_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM penstock.run AS u LEFT JOIN penstock.replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND (u.options::json ->> 'is_staged')::boolean AND coalesce(p.state, 'staged') <> 'committed'
    ))
  ORDER BY r.id DESC LIMIT %(limit)s
) AS r;

-- name: count_rejects
SELECT count(*) FROM penstock.reject AS r
WHERE (%(source_id)s::bigint IS NULL OR r.source_id = %(source_id)s) AND (%(run_id)s::bigint IS NULL OR r.run_id = %(run_id)s)
  AND (%(code)s::text IS NULL OR r.code = %(code)s) AND (%(since)s::double precision IS NULL OR r.at >= %(since)s)
  AND (%(ids)s::text IS NULL OR r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]))
  AND (NOT %(open_only)s OR r.redriven_run_id IS NULL AND NOT EXISTS (
    SELECT 1 FROM penstock.run AS u LEFT JOIN penstock.replay AS p ON p.run_id = u.id
    WHERE u.id = r.run_id AND (u.options::json ->> 'is_staged')::boolean AND coalesce(p.state, 'staged') <> 'committed'
  ));

-- name: stages_of_rejects
SELECT coalesce(json_agg(DISTINCT r.stage), '[]')::text FROM penstock.reject AS r
WHERE (%(source_id)s::bigint IS NULL OR r.source_id = %(source_id)s) AND (%(run_id)s::bigint IS NULL OR r.run_id = %(run_id)s)
  AND (%(code)s::text IS NULL OR r.code = %(code)s) AND (%(since)s::double precision IS NULL OR r.at >= %(since)s)
  AND (%(ids)s::text IS NULL OR r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]))
  AND (NOT %(open_only)s OR r.redriven_run_id IS NULL AND NOT EXISTS (
    SELECT 1 FROM penstock.run AS u LEFT JOIN penstock.replay AS p ON p.run_id = u.id
    WHERE u.id = r.run_id AND (u.options::json ->> 'is_staged')::boolean AND coalesce(p.state, 'staged') <> 'committed'
  ));

-- name: rejects_by_code
SELECT coalesce(json_object_agg(code, n ORDER BY n DESC, code), '{}')::text FROM (
  SELECT code, count(*) AS n FROM penstock.reject WHERE run_id = %(run_id)s GROUP BY code ORDER BY n DESC, code LIMIT 50
) AS c;

-- name: rejects_to_redrive
-- Those that no run has taken up, the oldest first. Not what a replay has rejected that nobody has committed. Locked: two who ask at once take each of them once.
SELECT coalesce(json_agg(json_build_array(r.id, r.run_id, r.stage, r.key, r.item, r.snapshot_id) ORDER BY r.id), '[]')::text FROM (
  SELECT r.id, r.run_id, r.stage, r.key, r.item, r.snapshot_id FROM penstock.reject AS r
  WHERE r.source_id = %(source_id)s AND (%(run_id)s::bigint IS NULL OR r.run_id = %(run_id)s)
    AND (%(code)s::text IS NULL OR r.code = %(code)s) AND (%(since)s::double precision IS NULL OR r.at >= %(since)s)
    AND (%(ids)s::text IS NULL OR r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]))
    AND r.stage IN (SELECT jsonb_array_elements_text(%(stages)s::jsonb))
    AND r.redriven_run_id IS NULL
    AND NOT EXISTS (
      SELECT 1 FROM penstock.run AS u LEFT JOIN penstock.replay AS p ON p.run_id = u.id
      WHERE u.id = r.run_id AND (u.options::json ->> 'is_staged')::boolean AND coalesce(p.state, 'staged') <> 'committed'
    )
  ORDER BY r.id LIMIT %(limit)s FOR UPDATE OF r
) AS r;

-- name: mark_redriven
UPDATE penstock.reject SET redriven_run_id = %(run_id)s
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND redriven_run_id IS NULL;

-- name: drop_rejects
-- In the order of time, as the journal is.
DELETE FROM penstock.reject WHERE id = ANY (ARRAY(
  SELECT id FROM (SELECT id, at FROM penstock.reject ORDER BY id LIMIT %(limit)s) AS oldest WHERE at < %(before)s
));
