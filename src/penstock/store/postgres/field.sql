-- name: add_run_fields
INSERT INTO penstock.run_field (run_id, source_id, collection, field, kind, records)
SELECT (f ->> 0)::bigint, (f ->> 1)::bigint, f ->> 2, f ->> 3, f ->> 4, (f ->> 5)::bigint
FROM jsonb_array_elements(%(fields)s::jsonb) AS f;

-- name: run_fields
SELECT coalesce(json_agg(json_build_array(collection, field, kind, records)), '[]')::text
FROM (
  SELECT collection, field, kind, sum(records)::bigint AS records FROM penstock.run_field
  WHERE source_id = %(source_id)s AND run_id = %(run_id)s GROUP BY collection, field, kind
) AS f;
