-- name: known_schedules
SELECT json_group_array(json_array(c.source_id, c.name, c.definition, c.words, c.next_due_at))
FROM jsonb_each(:ids) AS w CROSS JOIN schedule AS c ON c.source_id = w.value;

-- name: schedule_keys
SELECT json_group_array(json_array(source_id, name)) FROM schedule;

-- name: put_schedules
-- One that was not changed keeps its next time, so that a restart can't move it. Versions go on where they ended.
INSERT INTO schedule (source_id, name, version, definition, words, kind, next_due_at, look_at, changed_at)
SELECT value ->> 0, value ->> 1,
  1 + coalesce((SELECT max(v.version) FROM schedule_version AS v WHERE v.source_id = value ->> 0 AND v.name = value ->> 1), 0),
  value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 5, :now
FROM jsonb_each(:schedules) WHERE true
ON CONFLICT (source_id, name) DO UPDATE SET version = excluded.version, definition = excluded.definition, words = excluded.words,
  kind = excluded.kind, next_due_at = excluded.next_due_at, look_at = excluded.look_at, changed_at = excluded.changed_at
WHERE schedule.definition <> excluded.definition
RETURNING source_id, name, version, definition, words;

-- name: add_schedule_versions
INSERT INTO schedule_version (source_id, name, version, definition, words, at, actor)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now, :actor FROM jsonb_each(:versions) WHERE true
ON CONFLICT (source_id, name, version) DO NOTHING;

-- name: say_schedules
UPDATE schedule SET words = value ->> 2 FROM jsonb_each(:schedules)
WHERE source_id = value ->> 0 AND name = value ->> 1;

-- name: plan_schedules_if_idle
-- A calendar that knew no more knows more by now.
UPDATE schedule SET next_due_at = value ->> 2, look_at = value ->> 2 FROM jsonb_each(:schedules)
WHERE source_id = value ->> 0 AND name = value ->> 1 AND next_due_at IS NULL;

-- name: drop_schedules
DELETE FROM schedule WHERE (source_id, name) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:schedules))
RETURNING source_id, name, version + 1, '', 'removed';

-- name: due_schedules
SELECT json_group_array(json_array(d.source_id, s.key, d.name, d.version, d.next_due_at, d.look_at, d.definition))
FROM (
  SELECT * FROM schedule
  WHERE look_at <= :now
  ORDER BY look_at, next_due_at LIMIT :limit
) AS d CROSS JOIN source AS s ON s.id = d.source_id;

-- name: due_of
SELECT json_group_array(json_array(c.source_id, s.key, c.name, c.version, c.next_due_at, c.look_at, c.definition))
FROM jsonb_each(:schedules) AS w CROSS JOIN schedule AS c ON c.source_id = w.value ->> 0 AND c.name = w.value ->> 1
CROSS JOIN source AS s ON s.id = c.source_id
WHERE c.next_due_at <= :now AND c.definition <> w.value ->> 2;

-- name: schedule_to_fire
-- Nothing to lock here: a transaction that writes has the file to itself.
SELECT version, next_due_at, last_due_at, words FROM schedule WHERE source_id = :source_id AND name = :schedule;

-- name: add_ticks
-- Whoever wrote one first has decided.
INSERT INTO tick (source_id, schedule, due_at, version, outcome, run_id, reason, was_missed, at)
SELECT :source_id, :schedule, value, :version, :outcome, :run_id, :reason, :was_missed, :now FROM jsonb_each(:due) WHERE true
ON CONFLICT (source_id, schedule, due_at) DO NOTHING;

-- name: look_again
UPDATE schedule SET look_at = :look_at FROM jsonb_each(:schedules)
WHERE source_id = value ->> 0 AND name = value ->> 1 AND version = value ->> 2 AND next_due_at = value ->> 3;

-- name: schedules
SELECT json_group_array(json_object(
  'source_id', c.source_id, 'source', s.key, 'name', c.name, 'version', c.version, 'definition', c.definition,
  'words', c.words, 'kind', c.kind, 'next_due_at', c.next_due_at, 'look_at', c.look_at, 'last_due_at', c.last_due_at,
  'last_run_id', c.last_run_id, 'changed_at', c.changed_at,
  'last_started_at', coalesce(f.at, r.created_at), 'last_state', r.state,
  'tick_at', t.due_at, 'tick_outcome', t.outcome, 'tick_reason', coalesce(t.reason, '')))
FROM (SELECT * FROM schedule WHERE :source_id IS NULL OR source_id = :source_id) AS c
JOIN source AS s ON s.id = c.source_id
LEFT JOIN tick AS f ON f.source_id = c.source_id AND f.schedule = c.name AND f.due_at = c.last_due_at
LEFT JOIN run AS r ON r.id = c.last_run_id
LEFT JOIN tick AS t ON t.source_id = c.source_id AND t.schedule = c.name AND t.due_at = (
  SELECT max(l.due_at) FROM tick AS l WHERE l.source_id = c.source_id AND l.schedule = c.name)
ORDER BY s.key, c.name;

-- name: ticks
SELECT json_group_array(json_object(
  'schedule', t.schedule, 'due_at', t.due_at, 'version', t.version, 'outcome', t.outcome, 'run_id', t.run_id,
  'reason', t.reason, 'at', t.at, 'state', r.state))
FROM (
  SELECT * FROM tick WHERE source_id = :source_id AND schedule = :schedule AND due_at < :before AND (:with_missed OR outcome <> 'missed')
  ORDER BY due_at DESC LIMIT :limit
) AS t LEFT JOIN run AS r ON r.id = t.run_id;

-- name: tick_counts
SELECT json_group_array(json_object(
  'schedule', schedule, 'version', version, 'outcome', outcome, 'ticks', ticks, 'first_at', first_at, 'last_at', last_at,
  'missed', missed, 'first_missed_at', first_missed_at, 'last_missed_at', last_missed_at))
FROM (
  SELECT schedule, version, outcome, count(*) AS ticks, min(due_at) AS first_at, max(due_at) AS last_at,
    count(*) FILTER (WHERE was_missed OR outcome = 'missed') AS missed, min(due_at) FILTER (WHERE was_missed OR outcome = 'missed') AS first_missed_at,
    max(due_at) FILTER (WHERE was_missed OR outcome = 'missed') AS last_missed_at
  FROM tick WHERE source_id = :source_id AND due_at >= :since GROUP BY schedule, version, outcome ORDER BY schedule, version, outcome
);

-- name: schedule_versions
SELECT json_group_array(json_object(
  'name', name, 'version', version, 'definition', definition, 'words', words, 'at', at, 'actor', actor))
FROM (SELECT * FROM schedule_version WHERE source_id = :source_id ORDER BY name, version);

-- name: freshness
-- The end of the last good run, or when a stream was last known to be alive.
SELECT json_group_array(json_array(s.id, s.created_at, nullif(max(coalesce((
    SELECT max(r.finished_at) FROM run AS r INDEXED BY run_good
    WHERE r.source_id = s.id AND r.state IN ('completed', 'partial') AND r.kind IN ('full', 'incremental')), 0), coalesce((
    SELECT max(c.at) FROM run AS a JOIN run_cursor AS c ON c.run_id = a.id AND c.partition = '~alive'
    WHERE a.source_id = s.id AND a.kind = 'stream'), 0)), 0)))
FROM jsonb_each(:ids) AS w CROSS JOIN source AS s ON s.id = w.value;

-- name: runs_under_way
SELECT json_group_array(json_array(r.source_id, r.id, coalesce(r.queued_at, r.created_at), r.options ->> 'deadline_s'))
FROM jsonb_each(:ids) AS w CROSS JOIN run AS r INDEXED BY run_active ON r.source_id = w.value
WHERE r.state IN ('queued', 'running', 'paused') AND r.kind IN ('full', 'incremental', 'probe');

-- name: queued_at_of
SELECT json_group_array(json_array(r.id, r.queued_at))
FROM jsonb_each(:ids) AS w CROSS JOIN run AS r ON r.id = w.value WHERE r.queued_at IS NOT NULL;

-- name: good_before_runs
-- Not of a run that was opened again: it may have been a good one before, and nobody knows when.
SELECT json_group_array(json_array(r.id, max(coalesce((
    SELECT g.finished_at FROM run AS g INDEXED BY run_good
    WHERE g.source_id = s.id AND g.state IN ('completed', 'partial') AND g.kind IN ('full', 'incremental')
      AND g.id NOT IN (SELECT value FROM jsonb_each(:ids))
    ORDER BY g.finished_at DESC LIMIT 1), s.created_at), coalesce((
    SELECT max(c.at) FROM run AS a JOIN run_cursor AS c ON c.run_id = a.id AND c.partition = '~alive'
    WHERE a.source_id = s.id AND a.kind = 'stream'), 0))))
FROM jsonb_each(:ids) AS w CROSS JOIN run AS r ON r.id = w.value CROSS JOIN source AS s ON s.id = r.source_id
WHERE r.queued_at <= r.started_at;

-- name: verifications
SELECT json_group_array(json_array(v.source_id, v.promised_at, v.verified_at, v.run_id))
FROM jsonb_each(:ids) AS w CROSS JOIN verification AS v ON v.source_id = w.value;

-- name: verified_before
SELECT json_group_array(json_array(
  v.source_id, coalesce(v.verified_at, v.promised_at), v.run_id, r.options ->> 'schema_freshness_s'))
FROM jsonb_each(:verified) AS w CROSS JOIN verification AS v ON v.source_id = w.value ->> 0
LEFT JOIN run AS r ON r.id = w.value ->> 1;

-- name: promise_schemas
INSERT INTO verification (source_id, promised_at) SELECT value, :now FROM jsonb_each(:ids) WHERE true
ON CONFLICT (source_id) DO UPDATE SET promised_at = excluded.promised_at WHERE promised_at IS NULL;

-- name: verify_schemas
INSERT INTO verification (source_id, verified_at, run_id) SELECT value ->> 0, :now, value ->> 1 FROM jsonb_each(:verified) WHERE true
ON CONFLICT (source_id) DO UPDATE SET verified_at = excluded.verified_at, run_id = excluded.run_id;

-- name: open_breaches
SELECT json_group_array(json_array(source_id, rule, since, run_id)) FROM breach WHERE ended_at IS NULL;

-- name: add_breaches
INSERT INTO breach (source_id, rule, since, run_id, detail)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(:breaches) WHERE true
ON CONFLICT (source_id, rule, since) DO NOTHING
RETURNING source_id, rule, since, run_id, detail;

-- name: end_breaches_if_open
UPDATE breach SET ended_at = :now FROM jsonb_each(:breaches)
WHERE breach.source_id = value ->> 0 AND breach.rule = value ->> 1 AND breach.since = value ->> 2 AND breach.ended_at IS NULL
RETURNING source_id, rule, since, run_id, detail;

-- name: breaches
SELECT json_group_array(json_object(
  'source', s.key, 'rule', b.rule, 'since', b.since, 'run_id', b.run_id, 'detail', b.detail, 'ended_at', b.ended_at))
FROM (
  SELECT * FROM breach WHERE (:source_id IS NULL OR source_id = :source_id) AND (NOT :open_only OR ended_at IS NULL)
  ORDER BY since DESC LIMIT :limit
) AS b JOIN source AS s ON s.id = b.source_id;
