-- name: add_announcements
-- A source has so many at most: of those that are new, the soonest.
INSERT INTO announcement (source_id, at, run_id, is_open)
SELECT n.source_id, n.at, n.run_id, 1
FROM (
  SELECT w.value ->> 0 AS source_id, w.value ->> 1 AS at, w.value ->> 2 AS run_id,
    row_number() OVER (PARTITION BY w.value ->> 0 ORDER BY w.value ->> 1) AS number
  FROM jsonb_each(:announced) AS w
  WHERE NOT EXISTS (SELECT 1 FROM announcement AS a WHERE a.source_id = w.value ->> 0 AND a.at = w.value ->> 1)
) AS n
WHERE n.number + (SELECT count(*) FROM announcement AS a WHERE a.source_id = n.source_id) <= :most
ON CONFLICT (source_id, at) DO NOTHING;

-- name: close_announcements
UPDATE announcement SET is_open = 0 FROM jsonb_each(:announced) AS w
WHERE announcement.source_id = w.value ->> 0 AND announcement.at = w.value ->> 1 AND announcement.is_open;

-- name: bring_forward_if_later
UPDATE schedule SET next_due_at = value ->> 3, look_at = value ->> 3 FROM jsonb_each(:schedules)
WHERE source_id = value ->> 0 AND name = value ->> 1 AND version = value ->> 2 AND next_due_at > value ->> 3;
