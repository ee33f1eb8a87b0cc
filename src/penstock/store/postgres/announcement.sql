-- name: add_announcements
-- A source has so many at most: of those that are new, the soonest.
INSERT INTO penstock.announcement (source_id, at, run_id, is_open)
SELECT n.source_id, n.at, n.run_id, true
FROM (
  SELECT w.source_id, w.at, w.run_id, row_number() OVER (PARTITION BY w.source_id ORDER BY w.at) AS number
  FROM (
    SELECT (v ->> 0)::bigint AS source_id, (v ->> 1)::double precision AS at, (v ->> 2)::bigint AS run_id
    FROM jsonb_array_elements(%(announced)s::jsonb) AS v
  ) AS w
  WHERE NOT EXISTS (SELECT 1 FROM penstock.announcement AS a WHERE a.source_id = w.source_id AND a.at = w.at)
) AS n
WHERE n.number + (SELECT count(*) FROM penstock.announcement AS a WHERE a.source_id = n.source_id) <= %(most)s
ORDER BY n.source_id, n.at
ON CONFLICT (source_id, at) DO NOTHING;

-- name: close_announcements
UPDATE penstock.announcement AS a SET is_open = false
FROM jsonb_array_elements(%(announced)s::jsonb) AS w
WHERE a.source_id = (w ->> 0)::bigint AND a.at = (w ->> 1)::double precision AND a.is_open;

-- name: bring_forward_if_later
UPDATE penstock.schedule SET next_due_at = (s ->> 3)::double precision, look_at = (s ->> 3)::double precision
FROM jsonb_array_elements(%(schedules)s::jsonb) AS s
WHERE source_id = (s ->> 0)::bigint AND name = s ->> 1 AND version = (s ->> 2)::bigint
  AND next_due_at > (s ->> 3)::double precision;
