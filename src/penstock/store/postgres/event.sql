-- name: add_events
-- `detail` is the sentence that older versions wrote instead of data; it is empty in what is written now.
INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker)
SELECT %(now)s, e ->> 0, (e ->> 1)::bigint, (e ->> 2)::bigint, (e ->> 3)::bigint, (e ->> 4)::integer, e ->> 5, e ->> 6,
  e ->> 7, e ->> 8
FROM jsonb_array_elements(%(events)s::jsonb) AS e;

-- name: add_job_events
-- The events of a batch of jobs that made the same move, written from the rows themselves.
INSERT INTO penstock.event (at, kind, source_id, run_id, job_id, attempt, actor, data)
SELECT %(now)s, %(kind)s, source_id, run_id, id, attempt, %(actor)s, %(data)s
FROM penstock.job WHERE id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: events
SELECT coalesce(json_agg(json_build_object(
  'id', e.id, 'at', e.at, 'kind', e.kind, 'source', s.key, 'run_id', e.run_id, 'job_id', e.job_id,
  'attempt', e.attempt, 'actor', e.actor, 'detail', e.detail, 'data', e.data, 'worker', e.worker
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker FROM penstock.event
  WHERE id > greatest(%(after_id)s, coalesce((SELECT first_event_id FROM penstock.run WHERE id = %(run_id)s), 0))
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
    AND (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s)
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
    AND (%(kind)s::text IS NULL OR kind = %(kind)s OR starts_with(kind, %(kind)s::text || '.'))
  ORDER BY id LIMIT %(limit)s
) AS e
LEFT JOIN penstock.source AS s ON s.id = e.source_id;

-- name: job_span
-- Where in the journal a job can be: from its run's first line to its last move, or to what was noted of it after that.
SELECT json_build_object('run_id', j.run_id, 'state', j.state,
  'at', greatest(j.at, (f.notes::jsonb -> -1 ->> 'at')::double precision))::text
FROM penstock.job AS j
LEFT JOIN penstock.job_failure AS f ON f.job_id = j.id WHERE j.id = %(id)s;

-- name: journal_ids
SELECT json_build_array((SELECT min(id) FROM penstock.event), (SELECT max(id) FROM penstock.event))::text;

-- name: event_from
SELECT json_build_array(id, at)::text FROM penstock.event WHERE id >= %(id)s ORDER BY id LIMIT 1;

-- name: latest_events
SELECT coalesce(json_agg(json_build_object(
  'id', e.id, 'at', e.at, 'kind', e.kind, 'source', s.key, 'run_id', e.run_id, 'job_id', e.job_id,
  'attempt', e.attempt, 'actor', e.actor, 'detail', e.detail, 'data', e.data, 'worker', e.worker
) ORDER BY e.id), '[]')::text
FROM (
  SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker FROM penstock.event
  WHERE id > coalesce((SELECT first_event_id FROM penstock.run WHERE id = %(run_id)s), 0)
    AND id <= coalesce(%(until_id)s::bigint, 9223372036854775807)
    AND (%(seen)s::pg_snapshot IS NULL OR pg_visible_in_snapshot(tx::text::xid8, %(seen)s::pg_snapshot))
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
    AND (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s)
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
    AND (%(kind)s::text IS NULL OR kind = %(kind)s OR starts_with(kind, %(kind)s::text || '.'))
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
      'id', e.id, 'at', e.at, 'kind', e.kind, 'source', s.key, 'run_id', e.run_id, 'job_id', e.job_id,
      'attempt', e.attempt, 'actor', e.actor, 'detail', e.detail, 'data', e.data, 'worker', e.worker
    ) ORDER BY e.id), '[]')
    FROM (
      SELECT id, at, kind, source_id, run_id, job_id, attempt, actor, detail, data, worker FROM penstock.event
      WHERE tx >= pg_snapshot_xmin(%(seen)s::pg_snapshot)::text::bigint
        AND NOT pg_visible_in_snapshot(tx::text::xid8, %(seen)s::pg_snapshot)
        AND pg_visible_in_snapshot(tx::text::xid8, coalesce(%(upto)s::pg_snapshot, pg_current_snapshot()))
        AND id > %(line)s
        AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s)
        AND (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s)
        AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s)
        AND (%(kind)s::text IS NULL OR kind = %(kind)s OR starts_with(kind, %(kind)s::text || '.'))
        AND (%(kinds)s::text IS NULL OR %(kinds)s::jsonb ? kind)
      ORDER BY id LIMIT %(limit)s
    ) AS e
    LEFT JOIN penstock.source AS s ON s.id = e.source_id
  ),
  'end', json_build_object('seen', coalesce(%(upto)s::pg_snapshot, pg_current_snapshot())::text)
)::text;
