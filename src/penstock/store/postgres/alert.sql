-- name: alerts
SELECT coalesce(json_agg(json_build_object(
  'id', a.id, 'rule', a.rule, 'source_id', a.source_id, 'source', s.key, 'state', a.state, 'severity', a.severity,
  'summary', a.summary, 'cause', a.cause, 'incident_id', a.incident_id, 'opened_at', a.opened_at, 'seen_at', a.seen_at,
  'acknowledged_at', a.acknowledged_at, 'resolved_at', a.resolved_at, 'snoozed_until', a.snoozed_until,
  'is_held', a.is_held, 'actor', a.actor, 'reason', a.reason, 'finding', a.finding, 'memory', a.memory
) ORDER BY a.id DESC), '[]')::text
FROM (
  SELECT id FROM penstock.alert
  WHERE id < %(before_id)s AND (NOT %(standing_only)s OR state <> 'resolved') AND (%(state)s::text IS NULL OR state = %(state)s)
    AND (%(source_id)s::bigint IS NULL OR source_id = %(source_id)s) AND (%(rule)s::text IS NULL OR rule = %(rule)s)
    AND (%(incident_id)s::bigint IS NULL OR incident_id = %(incident_id)s)
  ORDER BY id DESC LIMIT %(limit)s
) AS w JOIN penstock.alert AS a ON a.id = w.id LEFT JOIN penstock.source AS s ON s.id = a.source_id;

-- name: watched_alerts
-- What stands, and what was resolved so lately, or by a person while it held, that it matters to what is found now.
SELECT coalesce(json_agg(json_build_object(
  'id', a.id, 'rule', a.rule, 'source_id', a.source_id, 'source', s.key, 'state', a.state, 'severity', a.severity,
  'summary', a.summary, 'cause', a.cause, 'incident_id', a.incident_id, 'opened_at', a.opened_at, 'seen_at', a.seen_at,
  'acknowledged_at', a.acknowledged_at, 'resolved_at', a.resolved_at, 'snoozed_until', a.snoozed_until,
  'is_held', a.is_held, 'actor', a.actor, 'reason', a.reason, 'finding', a.finding, 'memory', a.memory
) ORDER BY a.id), '[]')::text
FROM (
  SELECT id FROM penstock.alert WHERE state <> 'resolved'
  UNION ALL
  SELECT id FROM penstock.alert WHERE is_held
  UNION ALL
  SELECT id FROM penstock.alert WHERE resolved_at >= %(since)s AND NOT is_held
) AS w JOIN penstock.alert AS a ON a.id = w.id LEFT JOIN penstock.source AS s ON s.id = a.source_id;

-- name: pin_snapshots
-- Those that are still there; answers with them.
INSERT INTO penstock.alert_pin (snapshot_id, alert_id)
SELECT s.id, %(alert_id)s FROM penstock.snapshot AS s WHERE s.id = ANY (translate(%(ids)s, '[]', '{}')::bigint[])
ON CONFLICT (snapshot_id, alert_id) DO NOTHING;

-- name: pinned_snapshots
SELECT coalesce(json_agg(snapshot_id ORDER BY snapshot_id), '[]')::text FROM penstock.alert_pin WHERE alert_id = %(alert_id)s;

-- name: add_notices
INSERT INTO penstock.alert_notice (alert_id, route, number, change, at)
SELECT %(alert_id)s, w.route,
  1 + (SELECT count(*) FROM penstock.alert_notice AS n WHERE n.alert_id = %(alert_id)s AND n.route = w.route),
  %(change)s, %(now)s
FROM jsonb_array_elements_text(%(routes)s::jsonb) AS w (route);

-- name: waiting_notices
SELECT coalesce(json_agg(json_build_array(alert_id, route, number, change, at) ORDER BY route, at, alert_id, number), '[]')::text
FROM penstock.alert_notice WHERE sent_at IS NULL;

-- name: notices_of_alert
SELECT coalesce(json_agg(json_build_array(alert_id, route, number, change, at, sent_at) ORDER BY at, route, number), '[]')::text
FROM penstock.alert_notice WHERE alert_id = %(alert_id)s;

-- name: note_sent_if_waiting
UPDATE penstock.alert_notice SET sent_at = %(now)s
WHERE sent_at IS NULL AND (alert_id, route, number) IN (
  SELECT (w ->> 0)::bigint, w ->> 1, (w ->> 2)::integer FROM jsonb_array_elements(%(notices)s::jsonb) AS w
);

-- name: routes_told
-- Which routes were, or are to be, told that an incident is open, and of which of its alerts first.
SELECT coalesce(json_object_agg(route, alert_id), '{}')::text FROM (
  SELECT n.route, min(n.alert_id) AS alert_id FROM penstock.alert AS a JOIN penstock.alert_notice AS n ON n.alert_id = a.id
  WHERE a.incident_id = %(incident_id)s AND n.change <> 'resolved' GROUP BY n.route
) AS t;

-- name: drop_notices_of_others
DELETE FROM penstock.alert_notice
WHERE sent_at IS NULL AND route NOT IN (SELECT jsonb_array_elements_text(%(routes)s::jsonb));
