-- name: alerts
SELECT json_group_array(json_object(
  'id', a.id, 'rule', a.rule, 'source_id', a.source_id, 'source', s.key, 'state', a.state, 'severity', a.severity,
  'summary', a.summary, 'cause', a.cause, 'incident_id', a.incident_id, 'opened_at', a.opened_at, 'seen_at', a.seen_at,
  'acknowledged_at', a.acknowledged_at, 'resolved_at', a.resolved_at, 'snoozed_until', a.snoozed_until,
  'is_held', json(iif(a.is_held, 'true', 'false')), 'actor', a.actor, 'reason', a.reason, 'finding', a.finding, 'memory', a.memory))
FROM (
  SELECT * FROM alert
  WHERE id < :before_id AND (NOT :standing_only OR state <> 'resolved') AND (:state IS NULL OR state = :state)
    AND (:source_id IS NULL OR source_id = :source_id) AND (:rule IS NULL OR rule = :rule)
    AND (:incident_id IS NULL OR incident_id = :incident_id)
  ORDER BY id DESC LIMIT :limit
) AS a LEFT JOIN source AS s ON s.id = a.source_id;

-- name: watched_alerts
-- What stands, and what was resolved so lately, or by a person while it held, that it matters to what is found now.
SELECT json_group_array(json_object(
  'id', a.id, 'rule', a.rule, 'source_id', a.source_id, 'source', s.key, 'state', a.state, 'severity', a.severity,
  'summary', a.summary, 'cause', a.cause, 'incident_id', a.incident_id, 'opened_at', a.opened_at, 'seen_at', a.seen_at,
  'acknowledged_at', a.acknowledged_at, 'resolved_at', a.resolved_at, 'snoozed_until', a.snoozed_until,
  'is_held', json(iif(a.is_held, 'true', 'false')), 'actor', a.actor, 'reason', a.reason, 'finding', a.finding, 'memory', a.memory))
FROM (
  SELECT * FROM alert WHERE state <> 'resolved'
  UNION ALL
  SELECT * FROM alert WHERE is_held
  UNION ALL
  SELECT * FROM alert WHERE resolved_at >= :since AND NOT is_held
) AS a LEFT JOIN source AS s ON s.id = a.source_id;

-- name: pin_snapshots
-- Those that are still there; answers with them.
INSERT INTO alert_pin (snapshot_id, alert_id)
SELECT s.id, :alert_id FROM json_each(:ids) AS w CROSS JOIN snapshot AS s ON s.id = w.value WHERE true
ON CONFLICT (snapshot_id, alert_id) DO NOTHING;

-- name: pinned_snapshots
SELECT json_group_array(snapshot_id) FROM (SELECT snapshot_id FROM alert_pin WHERE alert_id = :alert_id ORDER BY snapshot_id);

-- name: add_notices
INSERT INTO alert_notice (alert_id, route, number, change, at)
SELECT :alert_id, w.value,
  1 + (SELECT count(*) FROM alert_notice AS n WHERE n.alert_id = :alert_id AND n.route = w.value), :change, :now
FROM json_each(:routes) AS w;

-- name: waiting_notices
SELECT json_group_array(json_array(alert_id, route, number, change, at)) FROM (
  SELECT alert_id, route, number, change, at FROM alert_notice WHERE sent_at IS NULL ORDER BY route, at, alert_id, number
);

-- name: notices_of_alert
SELECT json_group_array(json_array(alert_id, route, number, change, at, sent_at)) FROM (
  SELECT * FROM alert_notice WHERE alert_id = :alert_id ORDER BY at, route, number
);

-- name: note_sent_if_waiting
UPDATE alert_notice SET sent_at = :now
WHERE sent_at IS NULL AND (alert_id, route, number) IN (
  SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:notices)
);

-- name: routes_told
-- Which routes were, or are to be, told that an incident is open, and of which of its alerts first.
SELECT json_group_object(route, alert_id) FROM (
  SELECT n.route, min(n.alert_id) AS alert_id FROM alert AS a CROSS JOIN alert_notice AS n ON n.alert_id = a.id
  WHERE a.incident_id = :incident_id AND n.change <> 'resolved' GROUP BY n.route
);

-- name: drop_notices_of_others
DELETE FROM alert_notice WHERE sent_at IS NULL AND route NOT IN (SELECT value FROM json_each(:routes));
