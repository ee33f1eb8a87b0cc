-- name: add_deliveries
-- One for each schedule that waits for a signal: who writes it first has delivered it.
INSERT INTO delivery (signal_id, source_id, schedule, state, at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now FROM jsonb_each(:deliveries) WHERE true
ON CONFLICT (signal_id, source_id, schedule) DO NOTHING;

-- name: waiting_deliveries
-- What a schedule has of the sources that it waits for: the last signal, and the sources, of those that are no run's yet.
SELECT json_object('last', max(d.signal_id), 'sources', json_group_array(DISTINCT g.source_id))
FROM delivery AS d CROSS JOIN signal AS g ON g.id = d.signal_id
WHERE d.source_id = :source_id AND d.schedule = :schedule AND d.state = 'waiting';

-- name: join_deliveries
-- Everything is there: the last one is queued, and the others join it.
UPDATE delivery
SET state = iif(signal_id = :last, 'queued', 'joined'), joins = iif(signal_id = :last, NULL, :last), at = :now
WHERE source_id = :source_id AND schedule = :schedule AND state = 'waiting' AND signal_id <= :last;

-- name: waiting_places
SELECT json_group_array(json_array(source_id, schedule))
FROM (SELECT DISTINCT source_id, schedule FROM delivery WHERE state IN ('queued', 'waiting') AND state = 'waiting');

-- name: skip_waiting
-- Of a schedule that waits for these sources only.
UPDATE delivery SET state = 'skipped', reason = :reason, at = :now
WHERE source_id = :source_id AND schedule = :schedule AND state = 'waiting'
  AND signal_id IN (SELECT g.id FROM signal AS g WHERE g.id = delivery.signal_id
    AND g.source_id NOT IN (SELECT value FROM jsonb_each(:needed)));

-- name: queued_deliveries
-- The first in the queue of each schedule.
SELECT json_group_array(json_object(
  'signal', json_object('id', g.id, 'name', g.name, 'data', json(g.data), 'source', s.key, 'source_id', g.source_id,
    'run_id', g.run_id, 'at', g.at, 'actor', g.actor, 'key', g.key),
  'source_id', d.source_id, 'schedule', d.schedule, 'reason', d.reason,
  'raised_by', r.options -> 'signal' ->> 'name',
  'runs', json((SELECT json_group_object(js.key, jg.run_id)
    FROM delivery AS j CROSS JOIN signal AS jg ON jg.id = j.signal_id CROSS JOIN source AS js ON js.id = jg.source_id
    WHERE j.source_id = d.source_id AND j.schedule = d.schedule AND j.joins = d.signal_id))))
FROM (
  SELECT source_id, schedule, min(signal_id) AS signal_id FROM delivery
  WHERE state IN ('queued', 'waiting') AND state = 'queued' GROUP BY source_id, schedule
) AS f
CROSS JOIN delivery AS d ON d.signal_id = f.signal_id AND d.source_id = f.source_id AND d.schedule = f.schedule
CROSS JOIN signal AS g ON g.id = d.signal_id
LEFT JOIN source AS s ON s.id = g.source_id
LEFT JOIN run AS r ON r.id = g.run_id AND r.source_id = d.source_id;

-- name: note_delivery
UPDATE delivery SET reason = :reason, waits_for_run_id = :run_id
WHERE signal_id = :signal_id AND source_id = :source_id AND schedule = :schedule AND state = 'queued'
  AND (reason <> :reason OR waits_for_run_id IS NOT :run_id);

-- name: deliveries
SELECT json_group_array(json_object(
  'signal_id', d.signal_id, 'source', s.key, 'schedule', d.schedule, 'state', d.state, 'run_id', d.run_id,
  'joins', d.joins, 'reason', d.reason, 'at', d.at))
FROM (
  SELECT * FROM delivery WHERE signal_id IN (SELECT value FROM jsonb_each(:ids)) ORDER BY signal_id, source_id, schedule
) AS d
CROSS JOIN source AS s ON s.id = d.source_id;

-- name: standing_deliveries
-- What stands in the queues of a source.
SELECT json_group_array(json_object(
  'signal_id', d.signal_id, 'name', g.name, 'about', s.key, 'run_id', g.run_id, 'schedule', d.schedule, 'state', d.state,
  'reason', d.reason, 'at', d.at))
FROM (
  SELECT * FROM delivery WHERE source_id = :source_id AND state IN ('queued', 'waiting')
  ORDER BY schedule, signal_id LIMIT :limit
) AS d
CROSS JOIN signal AS g ON g.id = d.signal_id
LEFT JOIN source AS s ON s.id = g.source_id;
