-- expands

-- How often each kind of value was in each field of what a run saved, for collections that have a schema. The field '' counts
-- records. Only the last run of a source is kept, for the next one to be compared with.
CREATE TABLE run_field (
  run_id INTEGER NOT NULL,
  source_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  field TEXT NOT NULL,
  kind TEXT NOT NULL,
  records INTEGER NOT NULL,
  PRIMARY KEY (source_id, run_id, collection, field, kind)
) STRICT, WITHOUT ROWID;
