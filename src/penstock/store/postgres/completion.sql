-- name: complete_runs
SELECT r.id::text, r.source || ' ' || r.kind || ' ' || r.state FROM (
  SELECT run.id, s.key AS source, run.kind, run.state FROM penstock.run JOIN penstock.source AS s ON s.id = run.source_id ORDER BY run.id DESC LIMIT 1000
) AS r
WHERE (%(source)s::text IS NULL OR r.source = %(source)s::text) AND starts_with(r.id::text, %(prefix)s::text) ORDER BY r.id DESC LIMIT %(limit)s;

-- name: complete_jobs
-- Those in quarantine: the ones that a person looks at by their number.
SELECT j.id::text, s.key || ' ' || j.stage FROM (
  SELECT id, source_id, stage FROM penstock.job WHERE state = 'quarantined' ORDER BY id DESC LIMIT 2000
) AS j JOIN penstock.source AS s ON s.id = j.source_id
WHERE (%(source)s::text IS NULL OR s.key = %(source)s::text) AND starts_with(j.id::text, %(prefix)s::text) ORDER BY j.id DESC LIMIT %(limit)s;

-- name: complete_stages
-- Those of the newest runs.
SELECT DISTINCT g.stage, '' FROM (
  SELECT run.id, s.key AS source FROM penstock.run JOIN penstock.source AS s ON s.id = run.source_id ORDER BY run.id DESC LIMIT 1000
) AS r JOIN penstock.run_stage AS g ON g.run_id = r.id
WHERE (%(source)s::text IS NULL OR r.source = %(source)s::text) AND g.stage >= %(prefix)s::text ORDER BY g.stage LIMIT %(limit)s;

-- name: complete_causes
SELECT c.cause, sum(c.failures)::text || ' failed' FROM penstock.cause AS c JOIN penstock.source AS s ON s.id = c.source_id
WHERE (%(source)s::text IS NULL OR s.key = %(source)s::text) AND c.cause >= %(prefix)s::text
GROUP BY c.cause ORDER BY c.cause LIMIT %(limit)s;

-- name: complete_collections
SELECT name, sum(records)::text || ' records' FROM penstock.collection
WHERE name >= %(prefix)s::text GROUP BY name HAVING sum(records) > 0 ORDER BY name LIMIT %(limit)s;

-- name: complete_keys
SELECT key, '' FROM penstock.record WHERE collection = %(collection)s::text AND key >= %(prefix)s::text AND NOT is_removed ORDER BY key LIMIT %(limit)s;

-- name: complete_partitions
SELECT c.partition, c.cursor FROM penstock.source AS s JOIN penstock.checkpoint AS c ON c.source_id = s.id
WHERE s.key = %(source)s::text AND c.partition >= %(prefix)s::text ORDER BY c.partition LIMIT %(limit)s;

-- name: complete_breakers
SELECT substr(key, strpos(key, ':') + 1), state FROM penstock.breaker
WHERE key >= 'host:' || %(prefix)s::text AND key < 'host;' ORDER BY key LIMIT %(limit)s;
