-- name: landed
SELECT coalesce(json_object_agg(path, stamp), '{}')::text
FROM penstock.landed WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND gone_at IS NULL;

-- name: land_if_changed
-- The paths that are new or have changed: of many who see a file land, one is answered with it.
INSERT INTO penstock.landed AS l (source_id, schedule, path, stamp, signal_id, at)
SELECT %(source_id)s, %(schedule)s, f ->> 0, f ->> 1, 0, %(now)s FROM jsonb_array_elements(%(files)s::jsonb) AS f
ORDER BY 3
ON CONFLICT (source_id, schedule, path) DO UPDATE
SET stamp = excluded.stamp, signal_id = 0, at = excluded.at, gone_at = NULL
WHERE l.stamp <> excluded.stamp
RETURNING path;

-- name: set_signal_of_landed
UPDATE penstock.landed SET signal_id = %(signal_id)s
WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND path IN (SELECT jsonb_array_elements_text(%(paths)s::jsonb))
  AND signal_id = 0;

-- name: note_gone
UPDATE penstock.landed SET gone_at = %(now)s
WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND path IN (SELECT jsonb_array_elements_text(%(paths)s::jsonb))
  AND gone_at IS NULL;

-- name: note_back
-- They were away for a while, and are what they were: a disk that was not mounted, say.
UPDATE penstock.landed SET gone_at = NULL
WHERE source_id = %(source_id)s AND schedule = %(schedule)s AND path IN (SELECT jsonb_array_elements_text(%(paths)s::jsonb))
  AND gone_at IS NOT NULL;
