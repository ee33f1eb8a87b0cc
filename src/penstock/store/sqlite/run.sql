-- name: add_run
-- Its sums are kept unless somebody works here whose code does not count what becomes of candidates.
INSERT INTO run (source_id, kind, state, key, plan, pipeline_version, options, of_run_id, actor, reason, created_at, queued_at, for_drains, is_accounted, first_event_id)
VALUES (:source_id, :kind, :state, :key, :plan, :pipeline_version, :options, :of_run_id, :actor, :reason, :now, iif(:state = 'draft', NULL, :now), :for_drains,
  NOT EXISTS (SELECT 1 FROM worker WHERE schema < 3),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0))
ON CONFLICT (source_id, key) DO NOTHING
RETURNING id;

-- name: add_stages
INSERT INTO run_stage (run_id, stage, unit, priority, cpu, memory_mb)
SELECT :run_id, value ->> 'name', value ->> 'unit', value ->> 'priority', value ->> 'cpu', value ->> 'memory_mb'
FROM jsonb_each(:stages);

-- name: stage_total
SELECT queued + running + waiting + held + succeeded + skipped + quarantined + cancelled
FROM run_stage WHERE run_id = :run_id AND stage = :stage;

-- name: stages
SELECT json_group_object(g.stage, json_object('unit', g.unit, 'priority', g.priority, 'kind', r.kind, 'continues',
  CASE WHEN instr(r.options, '"continues":') > 0 AND g.stage IN (SELECT value FROM jsonb_each(r.options, '$.continued_stages'))
    THEN r.options ->> 'continues' END, 'bounds',
  json(CASE WHEN instr(r.options, '"bounds":') > 0 THEN json_extract(r.options, '$.bounds."' || g.stage || '"') END)))
FROM run AS r JOIN run_stage AS g ON g.run_id = r.id WHERE r.id = :run_id;

-- name: stage_counts
SELECT json_group_array(json_object('stage', stage, 'unit', unit, 'queued', queued, 'running', running, 'waiting', waiting,
  'held', held, 'succeeded', succeeded, 'skipped', skipped, 'quarantined', quarantined, 'cancelled', cancelled))
FROM run_stage WHERE run_id = :run_id;

-- name: count_stages
-- Moves the counters by what the transaction moved the rows by; a counter below zero fails its CHECK and the whole transaction.
UPDATE run_stage
SET queued = queued + (d.value ->> 2), running = running + (d.value ->> 3),
  waiting = waiting + (d.value ->> 4), held = held + (d.value ->> 5),
  succeeded = succeeded + (d.value ->> 6), skipped = skipped + (d.value ->> 7),
  quarantined = quarantined + (d.value ->> 8), cancelled = cancelled + (d.value ->> 9)
FROM jsonb_each(:deltas) AS d
WHERE run_stage.run_id = d.value ->> 0 AND run_stage.stage = d.value ->> 1;

-- name: count_runs
UPDATE run
SET inserted = inserted + (d.value ->> 1), updated = updated + (d.value ->> 2),
  unchanged = unchanged + (d.value ->> 3), rejected = rejected + (d.value ->> 4),
  retried = retried + (d.value ->> 5), throttled = throttled + (d.value ->> 6),
  candidates_accepted = candidates_accepted + (d.value ->> 7), candidates_rejected = candidates_rejected + (d.value ->> 8),
  candidates_duplicate = candidates_duplicate + (d.value ->> 9), candidates_passed = candidates_passed + (d.value ->> 10),
  candidates_dropped = candidates_dropped + (d.value ->> 11), pages_unchanged = pages_unchanged + (d.value ->> 12),
  disallowed = disallowed + (d.value ->> 13), requests = requests + (d.value ->> 14),
  bytes = bytes + (d.value ->> 15), seconds = seconds + (d.value ->> 16),
  money = money + (d.value ->> 17), pages_added = pages_added + (d.value ->> 18),
  candidates_added = candidates_added + (d.value ->> 19),
  pages_missing = pages_missing + (d.value ->> 20)
FROM jsonb_each(:deltas) AS d
WHERE run.id = d.value ->> 0;

-- name: runs_with_a_closed_stage
SELECT json_group_array(DISTINCT g.run_id)
FROM jsonb_each(:touched) AS t
JOIN run_stage AS g ON g.run_id = t.value ->> 0 AND g.stage = t.value ->> 1
WHERE g.queued + g.running + g.waiting + g.held = 0;

-- name: run_to_advance
SELECT json_object(
  'source_id', r.source_id, 'state', r.state, 'plan', json(r.plan), 'kind', r.kind, 'options', json(r.options),
  'counts', json((SELECT json_group_object(g.stage, json_object(
      'queued', g.queued, 'running', g.running, 'waiting', g.waiting, 'held', g.held,
      'succeeded', g.succeeded, 'skipped', g.skipped, 'quarantined', g.quarantined, 'cancelled', g.cancelled))
    FROM run_stage AS g WHERE g.run_id = r.id)))
FROM run AS r
WHERE r.id = :run_id AND r.state IN ('queued', 'running', 'paused');

-- name: begin_runs
UPDATE run SET state = 'running', started_at = :now
WHERE id IN (SELECT value FROM jsonb_each(:ids)) AND state = 'queued'
RETURNING id, source_id;

-- name: reopen_run_if_ended_badly
UPDATE run SET state = 'running', queued_at = :now, finished_at = NULL, end_reason = '', is_emptied = 0,
  reopened = reopened + 1
WHERE id = :id AND state IN ('partial', 'failed')
RETURNING source_id;

-- name: run_facts
SELECT json_group_array(json_object(
  'id', id, 'kind', kind, 'options', json(options), 'of_run_id', of_run_id, 'pipeline_version', pipeline_version,
  'created_at', created_at))
FROM run WHERE id IN (SELECT value FROM jsonb_each(:ids));

-- name: run_plan
SELECT json(plan) FROM run WHERE id = :id;

-- name: active_runs_of
SELECT json_group_array(json_array(id, kind, created_at)) FROM (
  SELECT id, kind, created_at FROM run
  WHERE source_id = :source_id AND state IN ('queued', 'running', 'paused') AND kind IN ('full', 'incremental', 'probe')
  ORDER BY id
);

-- name: latest_runs
SELECT json_group_array(id) FROM (SELECT id FROM run WHERE id < :before_id ORDER BY id DESC LIMIT :limit);

-- name: latest_runs_of
SELECT json_group_array(id) FROM (
  SELECT id FROM run INDEXED BY run_of_source WHERE source_id = :source_id AND id < :before_id
  ORDER BY id DESC LIMIT :limit
);

-- name: latest_active_runs
-- Along the index that holds nothing else: of few active ones among many, the newest are not the last that were made.
SELECT json_group_array(id) FROM (
  SELECT id FROM run INDEXED BY run_active
  WHERE state IN ('queued', 'running', 'paused') AND (:source_id IS NULL OR source_id = :source_id)
    AND id < :before_id
  ORDER BY id DESC LIMIT :limit
);

-- name: use_of_runs
-- What those of these runs have used and brought in together that were active since then.
SELECT json_object('accepted', coalesce(sum(r.inserted + r.updated + r.unchanged), 0), 'requests', coalesce(sum(r.requests), 0),
  'bytes', coalesce(sum(r.bytes), 0), 'seconds', coalesce(sum(r.seconds), 0.0), 'money', coalesce(sum(r.money), 0.0))
FROM json_each(:ids) AS wanted CROSS JOIN run AS r ON r.id = wanted.value
WHERE r.finished_at IS NULL OR r.finished_at >= :since;

-- name: uses_of_sources
-- The same of the newest runs of each source: [source, since when] of each, with one answer for each.
SELECT json_group_array(json((
  SELECT json_object('accepted', coalesce(sum(r.inserted + r.updated + r.unchanged), 0), 'requests', coalesce(sum(r.requests), 0),
    'bytes', coalesce(sum(r.bytes), 0), 'seconds', coalesce(sum(r.seconds), 0.0), 'money', coalesce(sum(r.money), 0.0))
  FROM (SELECT * FROM run WHERE source_id = wanted.value ->> 0 ORDER BY id DESC LIMIT :limit) AS r
  WHERE r.finished_at IS NULL OR r.finished_at >= wanted.value ->> 1
)))
FROM json_each(:wanted) AS wanted;

-- name: runs
SELECT json_group_array(json_object(
  'id', r.id, 'source_id', r.source_id, 'source', r.source, 'kind', r.kind, 'state', r.state,
  'actor', r.actor, 'reason', r.reason, 'pipeline_version', r.pipeline_version,
  'created_at', r.created_at, 'started_at', r.started_at, 'finished_at', r.finished_at,
  'inserted', r.inserted, 'updated', r.updated, 'unchanged', r.unchanged, 'rejected', r.rejected,
  'retried', r.retried, 'throttled', r.throttled,
  'options', json(r.options), 'of_run_id', r.of_run_id, 'end_reason', r.end_reason,
  'candidates_accepted', r.candidates_accepted, 'candidates_rejected', r.candidates_rejected,
  'candidates_duplicate', r.candidates_duplicate, 'candidates_passed', r.candidates_passed,
  'candidates_dropped', r.candidates_dropped, 'pages_unchanged', r.pages_unchanged, 'disallowed', r.disallowed,
  'requests', r.requests, 'bytes', r.bytes, 'seconds', r.seconds, 'money', r.money,
  'is_accounted', json(iif(r.is_accounted, 'true', 'false')), 'pages_added', r.pages_added, 'candidates_added', r.candidates_added,
  'pages_missing', r.pages_missing, 'for_drains', json(iif(r.for_drains, 'true', 'false')),
  'pages', r.pages, 'pages_done', r.pages_done, 'candidates', r.candidates,
  'queued', r.queued, 'running', r.running, 'waiting', r.waiting, 'held', r.held,
  'succeeded', r.succeeded, 'skipped', r.skipped, 'quarantined', r.quarantined, 'cancelled', r.cancelled
))
FROM (
  SELECT r.*, s.key AS source,
    sum(CASE WHEN g.unit = 'page' THEN g.queued + g.running + g.waiting + g.held + g.succeeded + g.skipped + g.quarantined + g.cancelled ELSE 0 END) AS pages,
    sum(CASE WHEN g.unit = 'page' THEN g.succeeded + g.skipped + g.quarantined + g.cancelled ELSE 0 END) AS pages_done,
    sum(CASE WHEN g.unit = 'candidate' THEN g.queued + g.running + g.waiting + g.held + g.succeeded + g.skipped + g.quarantined + g.cancelled ELSE 0 END) AS candidates,
    sum(g.queued) AS queued, sum(g.running) AS running, sum(g.waiting) AS waiting, sum(g.held) AS held,
    sum(g.succeeded) AS succeeded, sum(g.skipped) AS skipped, sum(g.quarantined) AS quarantined, sum(g.cancelled) AS cancelled
  FROM (
    SELECT run.* FROM json_each(:ids) AS wanted CROSS JOIN run ON run.id = wanted.value
  ) AS r
  CROSS JOIN source AS s ON s.id = r.source_id
  CROSS JOIN run_stage AS g ON g.run_id = r.id
  GROUP BY r.id ORDER BY r.id DESC
) AS r;
