-- part: event_fields
-- An event as JSON has it, with the key of its source.
'id', e.id, 'at', e.at, 'kind', e.kind, 'source', s.key, 'run_id', e.run_id, 'job_id', e.job_id,
'attempt', e.attempt, 'actor', e.actor, 'detail', e.detail, 'data', e.data, 'worker', e.worker, 'origin', e.origin

-- part: event_filter
AND (:run_id IS NULL OR run_id = :run_id)
AND (:job_id IS NULL OR job_id = :job_id)
AND (:source_id IS NULL OR source_id = :source_id)
AND (:kind IS NULL OR kind = :kind OR substr(kind, 1, length(:kind) + 1) = :kind || '.')
AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))

-- part: event_where
-- [field, path in the data, value, path as a list] of each. A sentence of an older version has no data to look at:
-- it comes along, and whoever asks looks at it again.
AND (:where IS NULL OR NOT EXISTS (
  SELECT 1 FROM json_each(:where) AS w
  WHERE NOT coalesce(CASE w.value ->> 0
    WHEN 'actor' THEN actor = w.value ->> 2
    WHEN 'attempt' THEN CAST(attempt AS TEXT) = w.value ->> 2
    WHEN 'worker' THEN w.value ->> 2 IN (actor, coalesce(worker, ''))
    WHEN 'data' THEN detail <> '' OR CASE json_type(data, w.value ->> 1)
      WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(data ->> (w.value ->> 1) AS TEXT) END = w.value ->> 2
    ELSE true END, false)))

-- name: add_events
-- `detail` is the sentence that older versions wrote instead of data; it is empty in what is written now.
INSERT INTO event (at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker, origin)
SELECT :now, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
  value ->> 8, :origin
FROM jsonb_each(:events);

-- name: add_job_events
-- The events of a batch of jobs that made the same move, written from the rows themselves.
INSERT INTO event (at, kind, source_id, run_id, job_id, attempt, actor, data, origin)
SELECT :now, :kind, job.source_id, job.run_id, job.id, job.attempt, :actor, :data, :origin
FROM jsonb_each(:ids) AS c CROSS JOIN job NOT INDEXED ON job.id = c.value;

-- name: events
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM event
  WHERE id > max(:after_id, coalesce((SELECT first_event_id FROM run WHERE id = :run_id), 0))
    {{event_filter}}
  ORDER BY id LIMIT :limit
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: job_span
-- Where in the journal a job can be: from its run's first line on. Its success, or its start if it is running, was its last move.
SELECT json_object('run_id', j.run_id, 'state', j.state, 'attempt', j.attempt, 'at', j.at, 'first_id', r.first_event_id)
FROM job AS j JOIN run AS r ON r.id = j.run_id WHERE j.id = :id;

-- name: journal_ids
SELECT json_array((SELECT min(id) FROM event), (SELECT max(id) FROM event));

-- name: line_until
-- The last of the lines that were written until a time, as far as they stand in its order: between two lines, by halves.
WITH RECURSIVE b (low, high) AS (
  SELECT (SELECT min(id) FROM event), (SELECT max(id) + 1 FROM event)
  UNION ALL
  SELECT CASE WHEN e.at > :at THEN b.low ELSE e.id + 1 END, CASE WHEN e.at > :at THEN (b.low + b.high) / 2 ELSE b.high END
  FROM b
  CROSS JOIN event AS e ON e.id = (SELECT x.id FROM event AS x WHERE x.id >= (b.low + b.high) / 2 ORDER BY x.id LIMIT 1)
  WHERE b.low < b.high
)
SELECT coalesce(max(low) - 1, 0) FROM b;

-- name: latest_events
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM event
    WHERE id > max(coalesce((SELECT first_event_id FROM run WHERE id = :run_id), 0), coalesce(:floor_id, 0))
      AND id <= min(coalesce(:line, 9223372036854775807), coalesce(:until_id, 9223372036854775807))
      {{event_filter}}
      {{event_where}}
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: events_of_run
-- What happened to a run itself, and not to its jobs.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM event INDEXED BY event_of_run WHERE run_id = :run_id AND job_id IS NULL
      AND id > :after_id AND id <= coalesce(:until_id, 9223372036854775807)
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: line_span
-- Where in the journal a run can be: from its first line to the last of its own, if it has ended; its jobs may be noted later.
SELECT json_object('first_id', r.first_event_id, 'ended_at', r.finished_at,
  'last_id', (SELECT max(id) FROM event INDEXED BY event_of_run WHERE run_id = :run_id AND job_id IS NULL))
FROM run AS r WHERE r.id = :run_id;

-- name: rare_events_of_job
-- All that happened to a job but its starts and its success, by the index that has nothing else.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM event INDEXED BY event_of_job
    WHERE run_id = :run_id AND job_id = :job_id AND kind NOT IN ('job.started', 'job.succeeded')
      AND id > :floor_id AND id <= :until_id
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: rare_events_of_run
-- The same of a run and all its jobs.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM (
      SELECT * FROM event INDEXED BY event_of_run
      WHERE run_id = :run_id AND job_id IS NULL
        AND id > :floor_id AND id <= :until_id
        AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
        {{event_where}}
      ORDER BY id DESC LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
      SELECT * FROM event INDEXED BY event_of_job
      WHERE run_id = :run_id AND job_id IS NOT NULL AND kind NOT IN ('job.started', 'job.succeeded')
        AND id > :floor_id AND id <= :until_id
        AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
        {{event_where}}
      ORDER BY id DESC LIMIT :limit
    )
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: rare_kinds
-- Every kind that the journal has but those two, each found by one step along the index.
WITH RECURSIVE k (kind) AS (
  SELECT min(kind) FROM event INDEXED BY event_of_kind WHERE kind NOT IN ('job.started', 'job.succeeded')
  UNION ALL
  SELECT (SELECT min(e.kind) FROM event AS e INDEXED BY event_of_kind WHERE e.kind NOT IN ('job.started', 'job.succeeded') AND e.kind > k.kind)
  FROM k WHERE k.kind IS NOT NULL
)
SELECT json_group_array(kind) FROM k WHERE kind IS NOT NULL;

-- name: events_of_kinds
-- The newest of each of these kinds, by the index, and of them the newest.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM event WHERE id IN (
    SELECT found.value FROM json_each(:kinds) AS wanted, json_each((
      SELECT json_group_array(id) FROM (
        SELECT id FROM event INDEXED BY event_of_kind
        WHERE kind = wanted.value AND kind NOT IN ('job.started', 'job.succeeded')
          AND id > :floor_id AND id <= :until_id
          AND (:source_id IS NULL OR source_id = :source_id)
          {{event_where}}
        ORDER BY id DESC LIMIT :limit
      )
    )) AS found
    ORDER BY found.value DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: hot_event_of_job
-- The start or the success of one attempt: no index has it, so it is looked for from what came after it.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM event
  WHERE id > :floor_id AND id <= :until_id AND run_id = :run_id AND job_id = :job_id AND kind = :kind AND attempt = :attempt
  ORDER BY id DESC LIMIT 1
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: events_of_source
-- What happened to a source itself, and not to its runs and jobs.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM event INDEXED BY event_of_source WHERE source_id = :source_id AND job_id IS NULL AND run_id IS NULL
      AND id > :after_id AND id <= coalesce(:until_id, 9223372036854775807)
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: events_of_people
-- What people did, by whatever front end; the conditions on `origin` must be those of the indexes.
SELECT json_group_array(json_object(
  {{event_fields}}
))
FROM (
  SELECT * FROM (
    SELECT * FROM (
      SELECT * FROM event INDEXED BY event_of_people WHERE origin IN ('cli', 'python', 'api', 'dashboard')
        AND id > :after_id AND id <= coalesce(:until_id, 9223372036854775807)
      ORDER BY id DESC LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
      SELECT * FROM event INDEXED BY event_of_mcp WHERE origin = 'mcp'
        AND id > :after_id AND id <= coalesce(:until_id, 9223372036854775807)
      ORDER BY id DESC LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
      SELECT * FROM event INDEXED BY event_of_sql WHERE origin = 'sql'
        AND id > :after_id AND id <= coalesce(:until_id, 9223372036854775807)
      ORDER BY id DESC LIMIT :limit
    )
    ORDER BY id DESC LIMIT :limit
  ) ORDER BY id
) AS e
LEFT JOIN source AS s ON s.id = e.source_id;

-- name: journal_end
-- There is one writer at a time, so lines become visible in the order of their ids.
SELECT json_object('line', coalesce(max(id), 0)) FROM event;

-- name: follow_events
SELECT json_object(
  'lines', json((
    SELECT json_group_array(json_object(
      {{event_fields}}
    ))
    FROM (
      SELECT * FROM event
      WHERE id > :line
        {{event_filter}}
        {{event_where}}
      ORDER BY id LIMIT :limit
    ) AS e
    LEFT JOIN source AS s ON s.id = e.source_id
  )),
  'end', json_object('line', max(:line, coalesce((SELECT max(id) FROM event), 0)))
);

-- name: kinds_behind
-- The kinds alone: however much was written, none of it becomes text.
SELECT json_object(
  'kinds', json((SELECT json_group_array(DISTINCT kind) FROM event WHERE id > :line)),
  'end', json_object('line', max(:line, coalesce((SELECT max(id) FROM event), 0)))
);

-- name: old_sentences
-- The next lines of the journal: the last of them, and those that older versions have written as sentences.
SELECT json_object(
  'last_id', max(id), 'last_at', max(at), 'count', count(*),
  'lines', json_group_array(json_array(id, kind, detail, source_id IS NOT NULL)) FILTER (WHERE detail <> '')
)
FROM (SELECT id, at, kind, detail, source_id FROM event WHERE id > :after_id ORDER BY id LIMIT :limit);

-- name: journal_data_since
SELECT applied_at FROM migration WHERE number = :number;

-- name: convert_sentences
UPDATE event SET detail = '', kind = c.value ->> 1, data = c.value ->> 2
FROM jsonb_each(:converted) AS c
WHERE event.id = c.value ->> 0 AND event.data IS NULL;
