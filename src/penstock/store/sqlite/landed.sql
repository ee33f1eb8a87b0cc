-- name: landed
SELECT json_group_object(path, stamp) FROM landed WHERE source_id = :source_id AND schedule = :schedule AND gone_at IS NULL;

-- name: land_if_changed
-- The paths that are new or have changed: of many who see a file land, one is answered with it.
INSERT INTO landed (source_id, schedule, path, stamp, signal_id, at)
SELECT :source_id, :schedule, value ->> 0, value ->> 1, 0, :now FROM jsonb_each(:files) WHERE true
ON CONFLICT (source_id, schedule, path) DO UPDATE SET stamp = excluded.stamp, signal_id = 0, at = excluded.at, gone_at = NULL
WHERE stamp <> excluded.stamp
RETURNING path;

-- name: set_signal_of_landed
UPDATE landed SET signal_id = :signal_id
WHERE source_id = :source_id AND schedule = :schedule AND path IN (SELECT value FROM jsonb_each(:paths)) AND signal_id = 0;

-- name: note_gone
UPDATE landed SET gone_at = :now
WHERE source_id = :source_id AND schedule = :schedule AND path IN (SELECT value FROM jsonb_each(:paths)) AND gone_at IS NULL;

-- name: note_back
-- They were away for a while, and are what they were: a disk that was not mounted, say.
UPDATE landed SET gone_at = NULL
WHERE source_id = :source_id AND schedule = :schedule AND path IN (SELECT value FROM jsonb_each(:paths)) AND gone_at IS NOT NULL;
