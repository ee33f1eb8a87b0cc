-- name: add_run
-- Its sums are kept unless somebody works here whose code does not count what becomes of candidates.
INSERT INTO penstock.run (source_id, kind, state, key, plan, pipeline_version, options, of_run_id, actor, reason, created_at, queued_at, for_drains, is_accounted, first_event_id)
VALUES (%(source_id)s, %(kind)s, %(state)s, %(key)s, %(plan)s, %(pipeline_version)s, %(options)s, %(of_run_id)s, %(actor)s,
  %(reason)s, %(now)s, CASE WHEN %(state)s <> 'draft' THEN %(now)s END, %(for_drains)s,
  NOT EXISTS (SELECT 1 FROM penstock.worker WHERE schema < 3),
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM penstock.event_id_seq))
ON CONFLICT (source_id, key) DO NOTHING
RETURNING id;

-- name: add_stages
INSERT INTO penstock.run_stage (run_id, stage, unit, priority, cpu, memory_mb)
SELECT %(run_id)s, s.name, s.unit, s.priority, s.cpu, s.memory_mb
FROM jsonb_to_recordset(%(stages)s::jsonb)
  AS s(name text, unit text, priority bigint, cpu double precision, memory_mb double precision);

-- name: stage_total
SELECT queued + running + waiting + held + succeeded + skipped + quarantined + cancelled
FROM penstock.stage_count WHERE run_id = %(run_id)s AND stage = %(stage)s;

-- name: stages
SELECT coalesce(json_object_agg(g.stage, json_build_object('unit', g.unit, 'priority', g.priority, 'kind', r.kind, 'continues',
  CASE WHEN strpos(r.options, '"continues":') > 0 AND r.options::jsonb -> 'continued_stages' ? g.stage THEN (r.options::jsonb ->> 'continues')::bigint END,
  'bounds', CASE WHEN strpos(r.options, '"bounds":') > 0 THEN r.options::jsonb -> 'bounds' -> g.stage END)), '{}')::text
FROM penstock.run AS r JOIN penstock.run_stage AS g ON g.run_id = r.id WHERE r.id = %(run_id)s;

-- name: stage_counts
SELECT coalesce(json_agg(json_build_object('stage', stage, 'unit', unit, 'queued', queued, 'running', running, 'waiting', waiting,
  'held', held, 'succeeded', succeeded, 'skipped', skipped, 'quarantined', quarantined, 'cancelled', cancelled)), '[]')::text
FROM penstock.stage_count WHERE run_id = %(run_id)s;

-- name: count_stages
-- What the transaction moved, as a line of its own.
INSERT INTO penstock.tally (run_id, stage, queued, running, waiting, held, succeeded, skipped, quarantined, cancelled)
SELECT (d ->> 0)::bigint, d ->> 1, (d ->> 2)::bigint, (d ->> 3)::bigint, (d ->> 4)::bigint, (d ->> 5)::bigint,
  (d ->> 6)::bigint, (d ->> 7)::bigint, (d ->> 8)::bigint, (d ->> 9)::bigint
FROM jsonb_array_elements(%(deltas)s::jsonb) AS d;

-- name: count_runs
INSERT INTO penstock.tally (
  run_id,
  inserted, updated, unchanged, rejected, retried, throttled,
  candidates_accepted, candidates_rejected, candidates_duplicate, candidates_passed, candidates_dropped, pages_unchanged,
  disallowed, requests, bytes, seconds, money, pages_added, candidates_added, pages_missing
)
SELECT (d ->> 0)::bigint,
  (d ->> 1)::bigint, (d ->> 2)::bigint, (d ->> 3)::bigint, (d ->> 4)::bigint, (d ->> 5)::bigint,
  (d ->> 6)::bigint, (d ->> 7)::bigint, (d ->> 8)::bigint, (d ->> 9)::bigint, (d ->> 10)::bigint,
  (d ->> 11)::bigint, (d ->> 12)::bigint, (d ->> 13)::bigint, (d ->> 14)::bigint, (d ->> 15)::bigint,
  (d ->> 16)::double precision, (d ->> 17)::double precision, (d ->> 18)::bigint, (d ->> 19)::bigint, (d ->> 20)::bigint
FROM jsonb_array_elements(%(deltas)s::jsonb) AS d;

-- name: runs_with_a_closed_stage
SELECT coalesce(json_agg(DISTINCT g.run_id), '[]')::text
FROM jsonb_array_elements(%(touched)s::jsonb) AS t
CROSS JOIN LATERAL (
  SELECT run_id, queued + running + waiting + held AS open
  FROM penstock.stage_count WHERE run_id = (t ->> 0)::bigint AND stage = t ->> 1 OFFSET 0
) AS g
WHERE g.open = 0;

-- name: run_to_advance
SELECT json_build_object(
  'source_id', r.source_id, 'state', r.state, 'plan', r.plan::json, 'kind', r.kind, 'options', r.options::json,
  'counts', (SELECT json_object_agg(g.stage, json_build_object(
      'queued', g.queued, 'running', g.running, 'waiting', g.waiting, 'held', g.held,
      'succeeded', g.succeeded, 'skipped', g.skipped, 'quarantined', g.quarantined, 'cancelled', g.cancelled))
    FROM penstock.stage_count AS g WHERE g.run_id = r.id))::text
FROM penstock.run AS r
WHERE r.id = %(run_id)s AND r.state IN ('queued', 'running', 'paused');

-- name: begin_runs
UPDATE penstock.run SET state = 'running', started_at = %(now)s
WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND state = 'queued'
RETURNING id, source_id;

-- name: reopen_run_if_ended_badly
UPDATE penstock.run SET state = 'running', queued_at = %(now)s, finished_at = NULL, end_reason = '', is_emptied = false,
  reopened = reopened + 1
WHERE id = %(id)s AND state IN ('partial', 'failed')
RETURNING source_id;

-- name: run_facts
SELECT coalesce(json_agg(json_build_object(
  'id', id, 'kind', kind, 'options', options::json, 'of_run_id', of_run_id, 'pipeline_version', pipeline_version,
  'created_at', created_at)), '[]')::text
FROM penstock.run WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: run_plan
SELECT plan::text FROM penstock.run WHERE id = %(id)s;

-- name: active_runs_of
SELECT coalesce(json_agg(json_build_array(id, kind, created_at) ORDER BY id), '[]')::text FROM penstock.run
WHERE source_id = %(source_id)s AND state IN ('queued', 'running', 'paused') AND kind IN ('full', 'incremental', 'probe');

-- name: latest_runs
SELECT coalesce(json_agg(id), '[]')::text FROM (
  SELECT id FROM penstock.run WHERE id < %(before_id)s ORDER BY id DESC LIMIT %(limit)s
) AS r;

-- name: latest_runs_of
-- By two bounds and not by one value, which would let the planner walk through the runs of all sources instead.
SELECT coalesce(json_agg(id), '[]')::text FROM (
  SELECT id FROM penstock.run
  WHERE source_id >= %(source_id)s AND source_id <= %(source_id)s AND id < %(before_id)s
  ORDER BY source_id DESC, id DESC LIMIT %(limit)s
) AS r;

-- name: latest_active_runs
-- Along the index that holds nothing else: of few active ones among many, the newest are not the last that were made.
SELECT coalesce(json_agg(id), '[]')::text FROM (
  SELECT id FROM (
    SELECT id, source_id FROM penstock.run WHERE state IN ('queued', 'running', 'paused') OFFSET 0
  ) AS a
  WHERE (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s) AND id < %(before_id)s
  ORDER BY id DESC LIMIT %(limit)s
) AS r;

-- name: use_of_runs
-- What those of these runs have used and brought in together that were active since then.
SELECT json_build_object('accepted', coalesce(sum(r.accepted + t.accepted), 0), 'requests', coalesce(sum(r.requests + t.requests), 0),
  'bytes', coalesce(sum(r.bytes + t.bytes), 0), 'seconds', coalesce(sum(r.seconds + t.seconds), 0),
  'money', coalesce(sum(r.money + t.money), 0))::text
FROM (
  SELECT id, inserted + updated + unchanged AS accepted, requests, bytes, seconds, money FROM penstock.run
  WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND (finished_at IS NULL OR finished_at >= %(since)s)
) AS r
CROSS JOIN LATERAL (
  SELECT coalesce(sum(inserted + updated + unchanged), 0) AS accepted, coalesce(sum(requests), 0) AS requests,
    coalesce(sum(bytes), 0) AS bytes, coalesce(sum(seconds), 0) AS seconds, coalesce(sum(money), 0) AS money
  FROM penstock.tally AS l
  WHERE l.run_id = r.id AND l.id > (SELECT f.floor FROM penstock.run_floor AS f WHERE f.run_id = r.id)
) AS t;

-- name: uses_of_sources
-- The same of the newest runs of each source: [source, since when] of each, with one answer for each.
SELECT coalesce(json_agg(u.found ORDER BY w.place), '[]')::text
FROM jsonb_array_elements(%(wanted)s::jsonb) WITH ORDINALITY AS w(asked, place)
CROSS JOIN LATERAL (
  SELECT json_build_object('accepted', coalesce(sum(r.accepted + t.accepted), 0), 'requests', coalesce(sum(r.requests + t.requests), 0),
    'bytes', coalesce(sum(r.bytes + t.bytes), 0), 'seconds', coalesce(sum(r.seconds + t.seconds), 0),
    'money', coalesce(sum(r.money + t.money), 0)) AS found
  FROM (
    SELECT id, finished_at, inserted + updated + unchanged AS accepted, requests, bytes, seconds, money FROM penstock.run
    WHERE source_id >= (w.asked ->> 0)::bigint AND source_id <= (w.asked ->> 0)::bigint
    ORDER BY source_id DESC, id DESC LIMIT %(limit)s
  ) AS r
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(inserted + updated + unchanged), 0) AS accepted, coalesce(sum(requests), 0) AS requests,
      coalesce(sum(bytes), 0) AS bytes, coalesce(sum(seconds), 0) AS seconds, coalesce(sum(money), 0) AS money
    FROM penstock.tally AS l
    WHERE l.run_id = r.id AND l.id > (SELECT f.floor FROM penstock.run_floor AS f WHERE f.run_id = r.id)
  ) AS t
  WHERE r.finished_at IS NULL OR r.finished_at >= (w.asked ->> 1)::double precision
) AS u;

-- name: runs
SELECT coalesce(json_agg(json_build_object(
  'id', r.id, 'source_id', r.source_id, 'source', s.key, 'kind', r.kind, 'state', r.state,
  'actor', r.actor, 'reason', r.reason, 'pipeline_version', r.pipeline_version,
  'created_at', r.created_at, 'started_at', r.started_at, 'finished_at', r.finished_at,
  'inserted', r.inserted + t.inserted, 'updated', r.updated + t.updated, 'unchanged', r.unchanged + t.unchanged,
  'rejected', r.rejected + t.rejected, 'retried', r.retried + t.retried, 'throttled', r.throttled + t.throttled,
  'options', r.options::json, 'of_run_id', r.of_run_id, 'end_reason', r.end_reason,
  'candidates_accepted', r.candidates_accepted + t.candidates_accepted, 'candidates_rejected', r.candidates_rejected + t.candidates_rejected,
  'candidates_duplicate', r.candidates_duplicate + t.candidates_duplicate, 'candidates_passed', r.candidates_passed + t.candidates_passed,
  'candidates_dropped', r.candidates_dropped + t.candidates_dropped, 'pages_unchanged', r.pages_unchanged + t.pages_unchanged,
  'disallowed', r.disallowed + t.disallowed, 'requests', r.requests + t.requests,
  'bytes', r.bytes + t.bytes, 'seconds', r.seconds + t.seconds,
  'money', r.money + t.money, 'is_accounted', r.is_accounted,
  'pages_added', r.pages_added + t.pages_added, 'candidates_added', r.candidates_added + t.candidates_added,
  'pages_missing', r.pages_missing + t.pages_missing, 'for_drains', r.for_drains,
  'pages', g.pages, 'pages_done', g.pages_done, 'candidates', g.candidates,
  'queued', g.queued, 'running', g.running, 'waiting', g.waiting, 'held', g.held,
  'succeeded', g.succeeded, 'skipped', g.skipped, 'quarantined', g.quarantined, 'cancelled', g.cancelled
) ORDER BY r.id DESC), '[]')::text
FROM (
  SELECT id, source_id, kind, state, actor, reason, pipeline_version, created_at, started_at, finished_at,
    inserted, updated, unchanged, rejected, retried, throttled, options, of_run_id, end_reason,
    candidates_accepted, candidates_rejected, candidates_duplicate, candidates_passed, candidates_dropped,
    pages_unchanged, disallowed, requests, bytes, seconds, money, is_accounted, pages_added, candidates_added,
    pages_missing, for_drains
  FROM penstock.run WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[])
) AS r
JOIN penstock.source AS s ON s.id = r.source_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(inserted), 0)::bigint AS inserted, coalesce(sum(updated), 0)::bigint AS updated,
    coalesce(sum(unchanged), 0)::bigint AS unchanged, coalesce(sum(rejected), 0)::bigint AS rejected,
    coalesce(sum(retried), 0)::bigint AS retried, coalesce(sum(throttled), 0)::bigint AS throttled,
    coalesce(sum(candidates_accepted), 0)::bigint AS candidates_accepted,
    coalesce(sum(candidates_rejected), 0)::bigint AS candidates_rejected,
    coalesce(sum(candidates_duplicate), 0)::bigint AS candidates_duplicate,
    coalesce(sum(candidates_passed), 0)::bigint AS candidates_passed,
    coalesce(sum(candidates_dropped), 0)::bigint AS candidates_dropped,
    coalesce(sum(pages_unchanged), 0)::bigint AS pages_unchanged,
    coalesce(sum(disallowed), 0)::bigint AS disallowed,
    coalesce(sum(requests), 0)::bigint AS requests,
    coalesce(sum(bytes), 0)::bigint AS bytes,
    coalesce(sum(seconds), 0)::double precision AS seconds,
    coalesce(sum(money), 0)::double precision AS money,
    coalesce(sum(pages_added), 0)::bigint AS pages_added,
    coalesce(sum(candidates_added), 0)::bigint AS candidates_added,
    coalesce(sum(pages_missing), 0)::bigint AS pages_missing
  FROM penstock.tally AS l
  WHERE l.run_id = r.id AND l.id > (SELECT f.floor FROM penstock.run_floor AS f WHERE f.run_id = r.id)
) AS t
CROSS JOIN LATERAL (
  SELECT
    coalesce(sum(c.queued + c.running + c.waiting + c.held + c.succeeded + c.skipped + c.quarantined + c.cancelled) FILTER (WHERE c.unit = 'page'), 0)::bigint AS pages,
    coalesce(sum(c.succeeded + c.skipped + c.quarantined + c.cancelled) FILTER (WHERE c.unit = 'page'), 0)::bigint AS pages_done,
    coalesce(sum(c.queued + c.running + c.waiting + c.held + c.succeeded + c.skipped + c.quarantined + c.cancelled) FILTER (WHERE c.unit = 'candidate'), 0)::bigint AS candidates,
    sum(c.queued)::bigint AS queued, sum(c.running)::bigint AS running, sum(c.waiting)::bigint AS waiting,
    sum(c.held)::bigint AS held, sum(c.succeeded)::bigint AS succeeded, sum(c.skipped)::bigint AS skipped,
    sum(c.quarantined)::bigint AS quarantined, sum(c.cancelled)::bigint AS cancelled
  FROM penstock.stage_count AS c WHERE c.run_id = r.id
) AS g;
