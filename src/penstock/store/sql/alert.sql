-- name: add_alert
-- No row back means that one of this rule and source stands already.
INSERT INTO penstock.alert (rule, source_id, state, severity, summary, cause, incident_id, opened_at, seen_at, finding, memory, evidence)
VALUES (:rule, :source_id, 'open', :severity, :summary, :cause, :incident_id, :now, :now, :finding, :memory, :evidence)
ON CONFLICT (rule, source_id) WHERE state <> 'resolved' DO NOTHING
RETURNING id;

-- name: lead_own_incident
UPDATE penstock.alert SET incident_id = id WHERE id = :id AND incident_id = 0;

-- name: note_alert_if_standing
UPDATE penstock.alert SET seen_at = :now, severity = :severity, summary = :summary, cause = :cause, finding = :finding
WHERE id = :id AND state <> 'resolved';

-- name: remember_of_alert
UPDATE penstock.alert SET memory = :memory WHERE id = :id;

-- name: acknowledge_alert_if_open
UPDATE penstock.alert SET state = 'acknowledged', acknowledged_at = :now, snoozed_until = NULL, actor = :actor, reason = :reason
WHERE id = :id AND state = 'open'
RETURNING rule, source_id;

-- name: snooze_alert_if_standing
UPDATE penstock.alert SET snoozed_until = :until, actor = :actor, reason = :reason
WHERE id = :id AND state <> 'resolved'
RETURNING rule, source_id;

-- name: wake_alert_if_snoozed
UPDATE penstock.alert SET snoozed_until = NULL WHERE id = :id AND state <> 'resolved' AND snoozed_until <= :now
RETURNING rule, source_id;

-- name: resolve_alert_if_standing
UPDATE penstock.alert SET state = 'resolved', resolved_at = :now, snoozed_until = NULL, is_held = :is_held, actor = :actor, reason = :reason
WHERE id = :id AND state <> 'resolved'
RETURNING rule, source_id, incident_id;

-- name: reopen_alert_if_resolved
UPDATE penstock.alert SET state = 'open', resolved_at = NULL, acknowledged_at = NULL, is_held = false, seen_at = :now
WHERE id = :id AND state = 'resolved'
  AND NOT EXISTS (
    SELECT 1 FROM penstock.alert AS other
    WHERE other.rule = alert.rule AND other.source_id = alert.source_id AND other.state <> 'resolved'
  )
RETURNING rule, source_id;

-- name: let_held_alert_go
UPDATE penstock.alert SET is_held = false WHERE id = :id AND state = 'resolved';

-- name: alerts_standing_of_incident
SELECT count(*) FROM penstock.alert WHERE incident_id = :incident_id AND state <> 'resolved';

-- name: drop_alert_pins
DELETE FROM penstock.alert_pin WHERE NOT EXISTS (SELECT 1 FROM penstock.alert WHERE alert.id = alert_pin.alert_id);

-- name: drop_alert_notices
DELETE FROM penstock.alert_notice WHERE NOT EXISTS (SELECT 1 FROM penstock.alert WHERE alert.id = alert_notice.alert_id);

-- name: drop_alerts
-- An incident goes as a whole.
DELETE FROM penstock.alert WHERE id IN (
  SELECT a.id FROM penstock.alert AS a
  WHERE a.resolved_at < :before AND NOT a.is_held
    AND NOT EXISTS (
      SELECT 1 FROM penstock.alert AS other
      WHERE other.incident_id = a.incident_id AND (other.resolved_at IS NULL OR other.resolved_at >= :before)
    )
  ORDER BY a.resolved_at LIMIT :limit
);

-- name: put_alert_message
-- Its moment is its own: the outbox tells messages to one route apart by it.
INSERT INTO penstock.outbox (hook, run_id, state, body, created_at, due_at)
SELECT :hook, 0, 'alert', :body, t.at, :now FROM (
  SELECT CASE WHEN last.at >= :now THEN last.at + 0.000002 ELSE :now END AS at
  FROM (SELECT coalesce(max(created_at), 0) AS at FROM penstock.outbox WHERE hook = :hook AND run_id = 0) AS last
) AS t
RETURNING id;

-- name: alert_evidence
SELECT evidence FROM penstock.alert WHERE id = :id;
