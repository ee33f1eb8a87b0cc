-- name: add_run_fields
INSERT INTO run_field (run_id, source_id, collection, field, kind, records)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(:fields) WHERE true
ON CONFLICT (source_id, run_id, collection, field, kind) DO UPDATE SET records = records + excluded.records;

-- name: run_fields
SELECT json_group_array(json_array(collection, field, kind, records)) FROM run_field
WHERE source_id = :source_id AND run_id = :run_id;
