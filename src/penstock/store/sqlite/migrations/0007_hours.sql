-- expands

-- Jobs that were put off until the hours of a host begin: until when, by what they were told. Of no use after that.
CREATE TABLE host_wait (
  job_id INTEGER PRIMARY KEY,
  host TEXT NOT NULL,
  due_at REAL NOT NULL
) STRICT;

CREATE INDEX host_wait_due ON host_wait (due_at);

-- The hours of hosts, as whoever led last has them.
CREATE TABLE host_hours (
  host TEXT PRIMARY KEY,
  definition TEXT NOT NULL
) STRICT, WITHOUT ROWID;
