-- expands

-- What is wrong with a source, or with the project (source 0), by the rule that found it. Of each rule and source one
-- alert stands at a time. `is_held` is one that a person resolved although its condition holds: it opens again only
-- after that has ended once.
CREATE TABLE alert (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  rule TEXT NOT NULL,
  source_id INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'acknowledged', 'resolved')),
  severity TEXT NOT NULL CHECK (severity IN ('low', 'medium', 'high', 'critical')),
  summary TEXT NOT NULL,
  cause TEXT NOT NULL DEFAULT '',
  incident_id INTEGER NOT NULL DEFAULT 0,
  opened_at REAL NOT NULL,
  seen_at REAL NOT NULL,
  acknowledged_at REAL,
  resolved_at REAL,
  snoozed_until REAL,
  is_held INTEGER NOT NULL DEFAULT 0,
  actor TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  -- What the judge said last, what it remembers of this alert, and what was gathered when it opened: JSON.
  finding TEXT NOT NULL,
  memory TEXT NOT NULL DEFAULT '{}',
  evidence TEXT NOT NULL DEFAULT '{}',
  CHECK ((state = 'resolved') = (resolved_at IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX alert_standing ON alert (rule, source_id) WHERE state <> 'resolved';
CREATE INDEX alert_incident ON alert (incident_id);
CREATE INDEX alert_source ON alert (source_id, id);
CREATE INDEX alert_resolved ON alert (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX alert_held ON alert (id) WHERE is_held;

-- Snapshots that an alert's evidence refers to: they stay for as long as the alert does.
CREATE TABLE alert_pin (
  snapshot_id INTEGER NOT NULL,
  alert_id INTEGER NOT NULL,
  PRIMARY KEY (snapshot_id, alert_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_pin_alert ON alert_pin (alert_id);

-- What a route is to be told of an alert. It waits until the route's quiet hours and its digest let it go, and is then
-- put into the outbox in the transaction that notes it as sent.
CREATE TABLE alert_notice (
  alert_id INTEGER NOT NULL,
  route TEXT NOT NULL,
  number INTEGER NOT NULL,
  change TEXT NOT NULL,
  at REAL NOT NULL,
  sent_at REAL,
  PRIMARY KEY (alert_id, route, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_notice_waiting ON alert_notice (route, at) WHERE sent_at IS NULL;

-- What is not accepted yet, or was given up: few, and asked for often.
CREATE INDEX outbox_undelivered ON outbox (hook, id) WHERE delivered_at IS NULL;
