-- name: complete_runs
SELECT r.id, r.source || ' ' || r.kind || ' ' || r.state FROM (
  SELECT run.id, s.key AS source, run.kind, run.state FROM run JOIN source AS s ON s.id = run.source_id ORDER BY run.id DESC LIMIT 1000
) AS r
WHERE (:source IS NULL OR r.source = :source) AND substr(r.id, 1, length(:prefix)) = :prefix ORDER BY r.id DESC LIMIT :limit;

-- name: complete_jobs
-- Those in quarantine: the ones that a person looks at by their number.
SELECT j.id, s.key || ' ' || j.stage FROM (
  SELECT id, source_id, stage FROM job INDEXED BY job_quarantined WHERE state = 'quarantined' AND id > 0 ORDER BY id DESC LIMIT 2000
) AS j JOIN source AS s ON s.id = j.source_id
WHERE (:source IS NULL OR s.key = :source) AND substr(j.id, 1, length(:prefix)) = :prefix ORDER BY j.id DESC LIMIT :limit;

-- name: complete_stages
-- Those of the newest runs.
SELECT DISTINCT g.stage, '' FROM (
  SELECT run.id, s.key AS source FROM run JOIN source AS s ON s.id = run.source_id ORDER BY run.id DESC LIMIT 1000
) AS r CROSS JOIN run_stage AS g ON g.run_id = r.id
WHERE (:source IS NULL OR r.source = :source) AND g.stage >= :prefix ORDER BY g.stage LIMIT :limit;

-- name: complete_causes
SELECT c.cause, sum(c.failures) || ' failed' FROM cause AS c JOIN source AS s ON s.id = c.source_id
WHERE (:source IS NULL OR s.key = :source) AND c.cause >= :prefix GROUP BY c.cause ORDER BY c.cause LIMIT :limit;

-- name: complete_collections
SELECT name, records || ' records' FROM collection WHERE name >= :prefix AND records > 0 ORDER BY name LIMIT :limit;

-- name: complete_keys
SELECT key, '' FROM record WHERE collection = :collection AND key >= :prefix AND NOT is_removed ORDER BY key LIMIT :limit;

-- name: complete_partitions
SELECT c.partition, c.cursor FROM source AS s JOIN checkpoint AS c ON c.source_id = s.id
WHERE s.key = :source AND c.partition >= :prefix ORDER BY c.partition LIMIT :limit;

-- name: complete_breakers
SELECT substr(key, instr(key, ':') + 1), state FROM breaker
WHERE key >= 'host:' || :prefix AND key < 'host;' ORDER BY key LIMIT :limit;
