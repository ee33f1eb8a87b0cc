-- name: add_deliveries
-- One for each schedule that waits for a signal: who writes it first has delivered it.
INSERT INTO penstock.delivery (signal_id, source_id, schedule, state, at)
SELECT (d ->> 0)::bigint, (d ->> 1)::bigint, d ->> 2, d ->> 3, %(now)s
FROM jsonb_array_elements(%(deliveries)s::jsonb) AS d
ORDER BY 1, 2, 3
ON CONFLICT (signal_id, source_id, schedule) DO NOTHING;

-- name: waiting_deliveries
-- What a schedule has of the sources that it waits for: the last signal, and the sources, of those that are no run's yet.
SELECT json_build_object('last', max(d.signal_id), 'sources', coalesce(json_agg(DISTINCT g.source_id), '[]'))::text
FROM penstock.delivery AS d JOIN penstock.signal AS g ON g.id = d.signal_id
WHERE d.source_id = %(source_id)s AND d.schedule = %(schedule)s AND d.state = 'waiting';

-- name: join_deliveries
-- Everything is there: the last one is queued, and the others join it.
UPDATE penstock.delivery
SET state = CASE WHEN signal_id = %(last)s THEN 'queued' ELSE 'joined' END,
  joins = CASE WHEN signal_id = %(last)s THEN NULL ELSE %(last)s::bigint END, at = %(now)s
WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND state = 'waiting' AND signal_id <= %(last)s;

-- name: waiting_places
SELECT coalesce(json_agg(json_build_array(source_id, schedule)), '[]')::text
FROM (SELECT DISTINCT source_id, schedule FROM penstock.delivery WHERE state = 'waiting') AS w;

-- name: skip_waiting
-- Of a schedule that waits for these sources only.
UPDATE penstock.delivery SET state = 'skipped', reason = %(reason)s, at = %(now)s
WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND state = 'waiting'
  AND signal_id IN (SELECT g.id FROM penstock.signal AS g WHERE g.id = delivery.signal_id
    AND g.source_id <> ALL (translate(%(needed)s, '[]', '{}')::bigint[]));

-- name: queued_deliveries
-- The first in the queue of each schedule.
SELECT coalesce(json_agg(json_build_object(
  'signal', json_build_object('id', g.id, 'name', g.name, 'data', g.data::json, 'source', s.key, 'source_id', g.source_id,
    'run_id', g.run_id, 'at', g.at, 'actor', g.actor, 'key', g.key),
  'source_id', d.source_id, 'schedule', d.schedule, 'reason', d.reason,
  'raised_by', r.options::jsonb -> 'signal' ->> 'name',
  'runs', (SELECT coalesce(json_object_agg(js.key, jg.run_id), '{}')
    FROM penstock.delivery AS j
    JOIN penstock.signal AS jg ON jg.id = j.signal_id
    JOIN penstock.source AS js ON js.id = jg.source_id
    WHERE j.source_id = d.source_id AND j.schedule = d.schedule AND j.joins = d.signal_id))), '[]')::text
FROM (
  SELECT source_id, schedule, min(signal_id) AS signal_id FROM penstock.delivery
  WHERE state IN ('queued', 'waiting') AND state = 'queued' GROUP BY source_id, schedule
) AS f
JOIN penstock.delivery AS d ON d.signal_id = f.signal_id AND d.source_id = f.source_id AND d.schedule = f.schedule
JOIN penstock.signal AS g ON g.id = d.signal_id
LEFT JOIN penstock.source AS s ON s.id = g.source_id
LEFT JOIN penstock.run AS r ON r.id = g.run_id AND r.source_id = d.source_id;

-- name: note_delivery
UPDATE penstock.delivery SET reason = %(reason)s, waits_for_run_id = %(run_id)s
WHERE signal_id = %(signal_id)s AND source_id = %(source_id)s AND schedule = %(schedule)s AND state = 'queued'
  AND (reason <> %(reason)s OR waits_for_run_id IS DISTINCT FROM %(run_id)s::bigint);

-- name: deliveries
SELECT coalesce(json_agg(json_build_object(
  'signal_id', d.signal_id, 'source', s.key, 'schedule', d.schedule, 'state', d.state, 'run_id', d.run_id,
  'joins', d.joins, 'reason', d.reason, 'at', d.at
) ORDER BY d.signal_id, d.source_id, d.schedule), '[]')::text
FROM penstock.delivery AS d
JOIN penstock.source AS s ON s.id = d.source_id
WHERE d.signal_id = ANY (translate(%(ids)s, '[]', '{}')::bigint[]);

-- name: standing_deliveries
-- What stands in the queues of a source.
SELECT coalesce(json_agg(json_build_object(
  'signal_id', d.signal_id, 'name', g.name, 'about', s.key, 'run_id', g.run_id, 'schedule', d.schedule, 'state', d.state,
  'reason', d.reason, 'at', d.at
) ORDER BY d.schedule, d.signal_id), '[]')::text
FROM (
  SELECT signal_id, schedule, state, reason, at FROM penstock.delivery
  WHERE source_id = %(source_id)s AND state IN ('queued', 'waiting')
  ORDER BY schedule, signal_id LIMIT %(limit)s
) AS d
JOIN penstock.signal AS g ON g.id = d.signal_id
LEFT JOIN penstock.source AS s ON s.id = g.source_id;
