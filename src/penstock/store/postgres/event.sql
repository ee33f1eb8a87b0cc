-- part: event_fields
-- An event as JSON has it, with the key of its source.
'id', e.id, 'at', e.at, 'kind', e.kind, 'source', s.key, 'run_id', e.run_id, 'job_id', e.job_id,
'attempt', e.attempt, 'actor', e.actor, 'detail', e.detail, 'data', e.data, 'worker', e.worker, 'origin', e.origin

-- part: event_filter
AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
AND (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s)
AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
AND (%(kind)s::text IS NULL OR kind = %(kind)s OR starts_with(kind, %(kind)s::text || '.'))
AND (%(kinds)s::text IS NULL OR %(kinds)s::jsonb ? kind)

-- part: event_where
-- [field, path in the data, value, path as a list] of each. A sentence of an older version has no data to look at:
-- it comes along, and whoever asks looks at it again.
AND (%(where)s::jsonb IS NULL OR NOT EXISTS (
  SELECT 1 FROM jsonb_array_elements(%(where)s::jsonb) AS w
  WHERE NOT coalesce(CASE w ->> 0
    WHEN 'actor' THEN actor = w ->> 2
    WHEN 'attempt' THEN attempt::text = w ->> 2
    WHEN 'worker' THEN w ->> 2 IN (actor, coalesce(worker, ''))
    WHEN 'data' THEN detail <> '' OR data::jsonb #>> ARRAY(SELECT jsonb_array_elements_text(w -> 3)) = w ->> 2
    ELSE true END, false)))

-- name: add_events
-- `detail` is the sentence that older versions wrote instead of data; it is empty in what is written now.
INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin)
SELECT %(now)s, e ->> 0, (e ->> 1)::bigint, (e ->> 2)::bigint, (e ->> 3)::bigint, (e ->> 4)::integer, e ->> 5, e ->> 6,
  e ->> 7, e ->> 8, %(origin)s
FROM jsonb_array_elements(%(events)s::jsonb) AS e;

-- name: add_job_events
-- The events of a batch of jobs that made the same move, written from the rows themselves.
INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, data, origin)
SELECT %(now)s, %(kind)s, source_id, run_id, id, attempt, %(actor)s, %(data)s, %(origin)s
FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: events
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE id > greatest(%(after_id)s, coalesce((SELECT first_event_id FROM penstock.run WHERE id = %(run_id)s), 0))
    {{event_filter}}
  ORDER BY id LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: job_span
-- Where in the journal a job can be: from its run's first line on. Its success, or its start if it is running, was its last move.
SELECT json_build_object('run_id', j.run_id, 'state', j.state, 'attempt', j.attempt, 'at', j.at, 'first_id', r.first_event_id)::text
FROM penstock.job AS j JOIN penstock.run AS r ON r.id = j.run_id WHERE j.id = %(id)s;

-- name: journal_ids
SELECT json_build_array((SELECT min(id) FROM penstock.event), (SELECT max(id) FROM penstock.event))::text;

-- name: line_until
-- The last of the lines that were written until a time, as far as they stand in its order: between two lines, by halves.
WITH RECURSIVE b (low, high) AS (
  SELECT (SELECT min(id) FROM penstock.event), (SELECT max(id) + 1 FROM penstock.event)
  UNION ALL
  SELECT CASE WHEN e.at > %(at)s THEN b.low ELSE e.id + 1 END, CASE WHEN e.at > %(at)s THEN (b.low + b.high) / 2 ELSE b.high END
  FROM b
  CROSS JOIN LATERAL (SELECT id, at FROM penstock.event WHERE id >= (b.low + b.high) / 2 ORDER BY id LIMIT 1) AS e
  WHERE b.low < b.high
)
SELECT coalesce(max(low) - 1, 0) FROM b;

-- name: latest_events
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE id > greatest((SELECT first_event_id FROM penstock.run WHERE id = %(run_id)s), %(floor_id)s::bigint, 0)
    AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
    AND (%(seen)s::pg_snapshot IS NULL OR pg_visible_in_snapshot(tx::text::xid8, %(seen)s::pg_snapshot))
    {{event_filter}}
    {{event_where}}
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: events_of_run
-- What happened to a run itself, and not to its jobs.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE run_id = %(run_id)s AND job_id IS NULL
    AND id > %(after_id)s AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: line_span
-- Where in the journal a run can be: from its first line to the last of its own, if it has ended; its jobs may be noted later.
SELECT json_build_object('first_id', r.first_event_id, 'ended_at', r.finished_at,
  'last_id', (SELECT max(id) FROM penstock.event WHERE run_id = %(run_id)s AND job_id IS NULL))::text
FROM penstock.run AS r WHERE r.id = %(run_id)s;

-- name: rare_events_of_job
-- All that happened to a job but its starts and its success, by the index that has nothing else.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE run_id = %(run_id)s AND job_id = %(job_id)s AND kind NOT IN ('job.started', 'job.succeeded')
    AND id > %(floor_id)s AND id <= %(until_id)s
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: rare_events_of_run
-- The same of a run and all its jobs. OFFSET 0 and the sums keep the planner from walking through the journal in its order.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
    WHERE run_id = %(run_id)s AND job_id IS NULL
      AND id > %(floor_id)s AND id <= %(until_id)s
      AND (%(kinds)s::text IS NULL OR %(kinds)s::jsonb ? kind)
      {{event_where}}
    ORDER BY id DESC LIMIT %(limit)s
  )
  UNION ALL
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM (
      SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
      WHERE run_id = %(run_id)s AND job_id IS NOT NULL AND kind NOT IN ('job.started', 'job.succeeded')
        AND id + 0 > %(floor_id)s AND id + 0 <= %(until_id)s
        AND (%(kinds)s::text IS NULL OR %(kinds)s::jsonb ? kind)
        {{event_where}}
      OFFSET 0
    ) AS of_jobs
    ORDER BY id DESC LIMIT %(limit)s
  )
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: rare_kinds
-- Every kind that the journal has but those two, each found by one step along the index.
WITH RECURSIVE k (kind) AS (
  (SELECT kind FROM penstock.event WHERE kind NOT IN ('job.started', 'job.succeeded') ORDER BY kind LIMIT 1)
  UNION ALL
  SELECT (SELECT kind FROM penstock.event WHERE kind NOT IN ('job.started', 'job.succeeded') AND kind > k.kind ORDER BY kind LIMIT 1)
  FROM k WHERE k.kind IS NOT NULL
)
SELECT coalesce(json_agg(kind), '[]')::text FROM k WHERE kind IS NOT NULL;

-- name: events_of_kinds
-- The newest of each of these kinds, by the index, and of them the newest.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT x.id, x.at, x.kind, x.source_id, x.run_id, x.job_id, x.attempt, x.actor, x.detail, x.data, x.worker, x.origin
  FROM jsonb_array_elements_text(%(kinds)s::jsonb) AS wanted (kind)
  CROSS JOIN LATERAL (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
    WHERE event.kind = wanted.kind AND event.kind NOT IN ('job.started', 'job.succeeded')
      AND id > %(floor_id)s AND id <= %(until_id)s
      AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
      {{event_where}}
    ORDER BY id DESC LIMIT %(limit)s
  ) AS x
  ORDER BY x.id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: hot_event_of_job
-- The start or the success of one attempt: no index has it, so it is looked for from what came after it.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE id > %(floor_id)s AND id <= %(until_id)s AND run_id = %(run_id)s AND job_id = %(job_id)s AND kind = %(kind)s AND attempt = %(attempt)s
  ORDER BY id DESC LIMIT 1
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: events_of_source
-- What happened to a source itself, and not to its runs and jobs.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
  WHERE source_id = %(source_id)s AND job_id IS NULL AND run_id IS NULL
    AND id > %(after_id)s AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: events_of_people
-- What people did, by whatever front end; the conditions on `origin` must be those of the indexes.
SELECT coalesce(json_agg(json_build_object(
  {{event_fields}}
) ORDER BY e.id), '[]')::text
FROM (
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
    WHERE origin IN ('cli', 'python', 'api', 'dashboard')
      AND id > %(after_id)s AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
    ORDER BY id DESC LIMIT %(limit)s
  )
  UNION ALL
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
    WHERE origin = 'mcp'
      AND id > %(after_id)s AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
    ORDER BY id DESC LIMIT %(limit)s
  )
  UNION ALL
  (
    SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
    WHERE origin = 'sql'
      AND id > %(after_id)s AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
    ORDER BY id DESC LIMIT %(limit)s
  )
  ORDER BY id DESC LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: journal_end
-- Ids become visible out of order, and a transaction may take its time: a reader has seen what a snapshot shows.
SELECT json_build_object('seen', pg_current_snapshot()::text)::text;

-- name: follow_events
-- What a later snapshot shows and the one before did not: all of it, once, whoever else is still writing.
SELECT json_build_object(
  'lines', (
    SELECT coalesce(json_agg(json_build_object(
      {{event_fields}}
    ) ORDER BY e.id), '[]')
    FROM (
      SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin FROM penstock.event
      WHERE tx >= pg_snapshot_xmin(%(seen)s::pg_snapshot)::text::bigint
        AND NOT pg_visible_in_snapshot(tx::text::xid8, %(seen)s::pg_snapshot)
        AND pg_visible_in_snapshot(tx::text::xid8, coalesce(%(upto)s::pg_snapshot, pg_current_snapshot()))
        AND id > %(line)s
        {{event_filter}}
        {{event_where}}
      ORDER BY id LIMIT %(limit)s
    ) AS e
    LEFT JOIN penstock.source AS s ON s.id = e.source_id
  ),
  'end', json_build_object('seen', coalesce(%(upto)s::pg_snapshot, pg_current_snapshot())::text)
)::text;

-- name: kinds_behind
-- The kinds alone, of what a later snapshot shows and the one before did not.
SELECT json_build_object(
  'kinds', (
    SELECT coalesce(json_agg(DISTINCT kind), '[]') FROM penstock.event
    WHERE tx >= pg_snapshot_xmin(%(seen)s::pg_snapshot)::text::bigint
      AND NOT pg_visible_in_snapshot(tx::text::xid8, %(seen)s::pg_snapshot)
      AND pg_visible_in_snapshot(tx::text::xid8, coalesce(%(upto)s::pg_snapshot, pg_current_snapshot()))
      AND id > %(line)s
  ),
  'end', json_build_object('seen', coalesce(%(upto)s::pg_snapshot, pg_current_snapshot())::text)
)::text;

-- name: old_sentences
-- The next lines of the journal: the last of them, and those that older versions have written as sentences.
SELECT json_build_object(
  'last_id', max(id), 'last_at', max(at), 'count', count(*),
  'lines', coalesce(json_agg(json_build_array(id, kind, detail, source_id IS NOT NULL)) FILTER (WHERE detail <> ''), '[]')
)::text
FROM (SELECT id, at, kind, detail, source_id FROM penstock.event WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s) AS e;

-- name: journal_data_since
SELECT extract(epoch FROM applied_at)::double precision FROM penstock.migration WHERE number = %(number)s;

-- name: convert_sentences
WITH c AS MATERIALIZED (SELECT jsonb_object_agg(v ->> 0, v) AS by_id FROM jsonb_array_elements(%(converted)s::jsonb) AS v)
UPDATE penstock.event
SET detail = '', (kind, data) = (
  SELECT own ->> 1, own ->> 2 FROM (SELECT (SELECT by_id FROM c) -> event.id::text AS own OFFSET 0) AS x
)
WHERE id = ANY (ARRAY(SELECT k::bigint FROM jsonb_object_keys((SELECT by_id FROM c)) AS k)) AND data IS NULL;
