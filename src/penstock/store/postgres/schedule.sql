-- name: known_schedules
SELECT coalesce(json_agg(json_build_array(c.source_id, c.name, c.definition, c.words, c.next_due_at)), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS w JOIN penstock.schedule AS c ON c.source_id = w::text::bigint;

-- name: schedule_keys
SELECT coalesce(json_agg(json_build_array(source_id, name)), '[]')::text FROM penstock.schedule;

-- name: put_schedules
-- One that was not changed keeps its next time, so that a restart can't move it. Versions go on where they ended.
-- In the order of their keys: two who plan at once must not wait for each other in a circle.
INSERT INTO penstock.schedule (source_id, name, version, definition, words, kind, next_due_at, look_at, changed_at)
SELECT (s ->> 0)::bigint, s ->> 1,
  1 + coalesce((SELECT max(v.version) FROM penstock.schedule_version AS v WHERE v.source_id = (s ->> 0)::bigint AND v.name = s ->> 1), 0),
  s ->> 2, s ->> 3, s ->> 4, (s ->> 5)::double precision, (s ->> 5)::double precision, %(now)s
FROM jsonb_array_elements(%(schedules)s::jsonb) WITH ORDINALITY AS w(s, n) ORDER BY n
ON CONFLICT (source_id, name) DO UPDATE SET version = excluded.version, definition = excluded.definition, words = excluded.words,
  kind = excluded.kind, next_due_at = excluded.next_due_at, look_at = excluded.look_at, changed_at = excluded.changed_at
WHERE schedule.definition <> excluded.definition
RETURNING source_id, name, version, definition, words;

-- name: add_schedule_versions
INSERT INTO penstock.schedule_version (source_id, name, version, definition, words, at, actor)
SELECT (v ->> 0)::bigint, v ->> 1, (v ->> 2)::bigint, v ->> 3, v ->> 4, %(now)s, %(actor)s
FROM jsonb_array_elements(%(versions)s::jsonb) WITH ORDINALITY AS w(v, n) ORDER BY n
ON CONFLICT (source_id, name, version) DO NOTHING;

-- name: say_schedules
UPDATE penstock.schedule SET words = s ->> 2 FROM jsonb_array_elements(%(schedules)s::jsonb) AS s
WHERE source_id = (s ->> 0)::bigint AND name = s ->> 1;

-- name: plan_schedules_if_idle
-- A calendar that knew no more knows more by now.
UPDATE penstock.schedule SET next_due_at = (s ->> 2)::double precision, look_at = (s ->> 2)::double precision
FROM jsonb_array_elements(%(schedules)s::jsonb) AS s
WHERE source_id = (s ->> 0)::bigint AND name = s ->> 1 AND next_due_at IS NULL;

-- name: drop_schedules
DELETE FROM penstock.schedule
WHERE (source_id, name) IN (SELECT (s ->> 0)::bigint, s ->> 1 FROM jsonb_array_elements(%(schedules)s::jsonb) AS s)
RETURNING source_id, name, version + 1, '', 'removed';

-- name: due_schedules
SELECT coalesce(json_agg(json_build_array(d.source_id, s.key, d.name, d.version, d.next_due_at, d.look_at, d.definition)
  ORDER BY d.look_at, d.next_due_at), '[]')::text
FROM (
  SELECT source_id, name, version, next_due_at, look_at, definition FROM penstock.schedule
  WHERE look_at <= %(now)s
  ORDER BY look_at, next_due_at LIMIT %(limit)s
) AS d JOIN penstock.source AS s ON s.id = d.source_id;

-- name: due_of
-- Locked, in the order of their keys: nobody fires what is taken for forgotten.
SELECT coalesce(json_agg(json_build_array(d.source_id, d.key, d.name, d.version, d.next_due_at, d.look_at, d.definition)), '[]')::text
FROM (
  SELECT c.source_id, s.key, c.name, c.version, c.next_due_at, c.look_at, c.definition
  FROM jsonb_array_elements(%(schedules)s::jsonb) AS w
  JOIN penstock.schedule AS c ON c.source_id = (w ->> 0)::bigint AND c.name = w ->> 1
  JOIN penstock.source AS s ON s.id = c.source_id
  WHERE c.next_due_at <= %(now)s AND c.definition <> w ->> 2
  ORDER BY c.source_id, c.name FOR NO KEY UPDATE OF c
) AS d;

-- name: schedule_to_fire
-- Locked: of many who fire the same tick, the others wait here and see that it is over.
SELECT version, next_due_at, last_due_at, words FROM penstock.schedule
WHERE source_id = %(source_id)s AND name = %(schedule)s FOR NO KEY UPDATE;

-- name: add_ticks
-- Whoever wrote one first has decided.
INSERT INTO penstock.tick (source_id, schedule, due_at, version, outcome, run_id, reason, was_missed, at)
SELECT %(source_id)s, %(schedule)s, t::text::double precision, %(version)s, %(outcome)s, %(run_id)s, %(reason)s, %(was_missed)s, %(now)s
FROM jsonb_array_elements(%(due)s::jsonb) AS t
ON CONFLICT (source_id, schedule, due_at) DO NOTHING;

-- name: look_again
UPDATE penstock.schedule SET look_at = %(look_at)s FROM jsonb_array_elements(%(schedules)s::jsonb) AS s
WHERE source_id = (s ->> 0)::bigint AND name = s ->> 1 AND version = (s ->> 2)::bigint
  AND next_due_at = (s ->> 3)::double precision;

-- name: schedules
SELECT coalesce(json_agg(json_build_object(
  'source_id', c.source_id, 'source', s.key, 'name', c.name, 'version', c.version, 'definition', c.definition,
  'words', c.words, 'kind', c.kind, 'next_due_at', c.next_due_at, 'look_at', c.look_at, 'last_due_at', c.last_due_at,
  'last_run_id', c.last_run_id, 'changed_at', c.changed_at,
  'last_started_at', coalesce(f.at, r.created_at), 'last_state', r.state,
  'tick_at', t.due_at, 'tick_outcome', t.outcome, 'tick_reason', coalesce(t.reason, '')
) ORDER BY s.key, c.name), '[]')::text
FROM penstock.schedule AS c
JOIN penstock.source AS s ON s.id = c.source_id
LEFT JOIN penstock.tick AS f ON f.source_id = c.source_id AND f.schedule = c.name AND f.due_at = c.last_due_at
LEFT JOIN penstock.run AS r ON r.id = c.last_run_id
LEFT JOIN LATERAL (
  SELECT l.due_at, l.outcome, l.reason FROM penstock.tick AS l
  WHERE l.source_id = c.source_id AND l.schedule = c.name ORDER BY l.due_at DESC LIMIT 1
) AS t ON true
WHERE %(source_id)s::bigint IS NULL OR c.source_id = %(source_id)s;

-- name: ticks
SELECT coalesce(json_agg(json_build_object(
  'schedule', t.schedule, 'due_at', t.due_at, 'version', t.version, 'outcome', t.outcome, 'run_id', t.run_id,
  'reason', t.reason, 'at', t.at, 'state', r.state) ORDER BY t.due_at DESC), '[]')::text
FROM (
  SELECT schedule, due_at, version, outcome, run_id, reason, at FROM penstock.tick
  WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND due_at < %(before)s AND (%(with_missed)s OR outcome <> 'missed')
  ORDER BY due_at DESC LIMIT %(limit)s
) AS t LEFT JOIN penstock.run AS r ON r.id = t.run_id;

-- name: tick_counts
SELECT coalesce(json_agg(json_build_object(
  'schedule', schedule, 'version', version, 'outcome', outcome, 'ticks', ticks, 'first_at', first_at, 'last_at', last_at,
  'missed', missed, 'first_missed_at', first_missed_at, 'last_missed_at', last_missed_at
) ORDER BY schedule, version, outcome), '[]')::text
FROM (
  SELECT schedule, version, outcome, count(*) AS ticks, min(due_at) AS first_at, max(due_at) AS last_at,
    count(*) FILTER (WHERE was_missed OR outcome = 'missed') AS missed, min(due_at) FILTER (WHERE was_missed OR outcome = 'missed') AS first_missed_at,
    max(due_at) FILTER (WHERE was_missed OR outcome = 'missed') AS last_missed_at
  FROM penstock.tick WHERE source_id = %(source_id)s AND due_at >= %(since)s GROUP BY schedule, version, outcome
) AS c;

-- name: schedule_versions
SELECT coalesce(json_agg(json_build_object(
  'name', name, 'version', version, 'definition', definition, 'words', words, 'at', at, 'actor', actor
) ORDER BY name, version), '[]')::text
FROM penstock.schedule_version WHERE source_id = %(source_id)s;

-- name: freshness
-- The end of the last good run, or when a stream was last known to be alive.
SELECT coalesce(json_agg(json_build_array(s.id, s.created_at, greatest((
    SELECT max(r.finished_at) FROM penstock.run AS r
    WHERE r.source_id = s.id AND r.state IN ('completed', 'partial') AND r.kind IN ('full', 'incremental')), (
    SELECT max(c.at) FROM penstock.run AS a JOIN penstock.run_cursor AS c ON c.run_id = a.id AND c.partition = '~alive'
    WHERE a.source_id = s.id AND a.kind = 'stream')))), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS w JOIN penstock.source AS s ON s.id = w::text::bigint;

-- name: runs_under_way
SELECT coalesce(json_agg(json_build_array(
  r.source_id, r.id, coalesce(r.queued_at, r.created_at), (r.options::json ->> 'deadline_s')::double precision)), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS w JOIN penstock.run AS r ON r.source_id = w::text::bigint
WHERE r.state IN ('queued', 'running', 'paused') AND r.kind IN ('full', 'incremental', 'probe');

-- name: queued_at_of
SELECT coalesce(json_agg(json_build_array(r.id, r.queued_at)), '[]')::text
FROM penstock.run AS r
WHERE r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND r.queued_at IS NOT NULL;

-- name: good_before_runs
-- Not of a run that was opened again: it may have been a good one before, and nobody knows when.
SELECT coalesce(json_agg(json_build_array(r.id, greatest(coalesce((
    SELECT g.finished_at FROM penstock.run AS g
    WHERE g.source_id = s.id AND g.state IN ('completed', 'partial') AND g.kind IN ('full', 'incremental')
      AND g.id <> ALL (translate(%(ids)s, '[]', '{}')::bigint[])
    ORDER BY g.finished_at DESC LIMIT 1), s.created_at), (
    SELECT max(c.at) FROM penstock.run AS a JOIN penstock.run_cursor AS c ON c.run_id = a.id AND c.partition = '~alive'
    WHERE a.source_id = s.id AND a.kind = 'stream')))), '[]')::text
FROM penstock.run AS r JOIN penstock.source AS s ON s.id = r.source_id
WHERE r.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]) AND r.queued_at <= r.started_at;

-- name: verifications
SELECT coalesce(json_agg(json_build_array(v.source_id, v.promised_at, v.verified_at, v.run_id)), '[]')::text
FROM jsonb_array_elements(%(ids)s::jsonb) AS w JOIN penstock.verification AS v ON v.source_id = w::text::bigint;

-- name: verified_before
SELECT coalesce(json_agg(json_build_array(
  v.source_id, coalesce(v.verified_at, v.promised_at), v.run_id, (r.options::json ->> 'schema_freshness_s')::double precision)), '[]')::text
FROM jsonb_array_elements(%(verified)s::jsonb) AS w JOIN penstock.verification AS v ON v.source_id = (w ->> 0)::bigint
LEFT JOIN penstock.run AS r ON r.id = (w ->> 1)::bigint;

-- name: promise_schemas
INSERT INTO penstock.verification AS v (source_id, promised_at)
SELECT w::text::bigint, %(now)s FROM jsonb_array_elements(%(ids)s::jsonb) WITH ORDINALITY AS j(w, n) ORDER BY n
ON CONFLICT (source_id) DO UPDATE SET promised_at = excluded.promised_at WHERE v.promised_at IS NULL;

-- name: verify_schemas
INSERT INTO penstock.verification (source_id, verified_at, run_id)
SELECT (w ->> 0)::bigint, %(now)s, (w ->> 1)::bigint
FROM jsonb_array_elements(%(verified)s::jsonb) WITH ORDINALITY AS j(w, n) ORDER BY n
ON CONFLICT (source_id) DO UPDATE SET verified_at = excluded.verified_at, run_id = excluded.run_id;

-- name: open_breaches
SELECT coalesce(json_agg(json_build_array(source_id, rule, since, run_id)), '[]')::text FROM penstock.breach WHERE ended_at IS NULL;

-- name: add_breaches
INSERT INTO penstock.breach (source_id, rule, since, run_id, detail)
SELECT (b ->> 0)::bigint, b ->> 1, (b ->> 2)::double precision, (b ->> 3)::bigint, b ->> 4
FROM jsonb_array_elements(%(breaches)s::jsonb) WITH ORDINALITY AS w(b, n) ORDER BY n
ON CONFLICT (source_id, rule, since) DO NOTHING
RETURNING source_id, rule, since, run_id, detail;

-- name: end_breaches_if_open
UPDATE penstock.breach SET ended_at = %(now)s FROM jsonb_array_elements(%(breaches)s::jsonb) AS b
WHERE breach.source_id = (b ->> 0)::bigint AND breach.rule = b ->> 1 AND breach.since = (b ->> 2)::double precision
  AND breach.ended_at IS NULL
RETURNING source_id, rule, since, run_id, detail;

-- name: breaches
SELECT coalesce(json_agg(json_build_object(
  'source', s.key, 'rule', b.rule, 'since', b.since, 'run_id', b.run_id, 'detail', b.detail, 'ended_at', b.ended_at
) ORDER BY b.since DESC), '[]')::text
FROM (
  SELECT source_id, rule, since, run_id, detail, ended_at FROM penstock.breach
  WHERE (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s) AND (NOT %(open_only)s OR ended_at IS NULL)
  ORDER BY since DESC LIMIT %(limit)s
) AS b JOIN penstock.source AS s ON s.id = b.source_id;
